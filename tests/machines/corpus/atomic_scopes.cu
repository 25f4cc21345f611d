// Atomics of the block's scope on what only this block has, of the device's scope on what all have.
// launch: grid=3 block=64
// in X: int32[192] = numbers(192)
// inout Y: int32[3] = 0
// inout Z: int32[1] = 0
// right: Y == X.reshape(3, 64).sum(1)
// right: Z == X.sum()
// broken 1: race(all, all) -- atomics of the block's scope on what all have
// broken 2: race(all, reset) -- one block resets the sum by a plain store
// broken 3: race(own, look) -- a look at the block's sum without a barrier

extern "C" __global__ void KERNEL(const int* X, int* Y, int* Z) {
  const int t = threadIdx.x, x = X[blockIdx.x * 64 + t];
  atomicAdd_block(Y + blockIdx.x, x);  // @own
#ifdef BROKEN_1
  atomicAdd_block(Z, x);  // @all
#else
  atomicAdd(Z, x);  // @all
#endif
#ifdef BROKEN_2
  if (blockIdx.x == 2 && t == 0) *Z = 0;  // @reset
#endif
#ifdef BROKEN_3
  if (t == 0 && Y[blockIdx.x] < 0) atomicExch(Z, 1);  // @look
#endif
}
