// All blocks add to outputs that the host has zeroed: one by integers, one by floats, one by a maximum.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// inout Y: int32[1] = 0
// inout Z: float32[1] = 0
// inout M: int32[1] = 0
// right: Y == X.sum()
// right: Z == X.sum()
// right: M == X.max()
// broken 1: race(add, add) -- additions without an atomic
// broken 2: race(maximum, look) -- a plain look at the maximum before the atomic
// broken 3: race(add, read) -- an early block reads the sum
// broken 4: race(add, add) -- atomics of the block's scope

extern "C" __global__ void KERNEL(const int* X, int* Y, float* Z, int* M) {
  const int t = threadIdx.x, x = X[blockIdx.x * 64 + t];
  const int sum = __reduce_add_sync(0xffffffff, x);
  atomicAdd(Z, float(x));
#ifdef BROKEN_2
  if (*M < x)             // @look
#endif
    atomicMax(M, x);      // @maximum
  if (t % 32) return;
#if defined BROKEN_1
  *Y += sum;  // @add
#elif defined BROKEN_4
  atomicAdd_block(Y, sum);  // @add
#else
  atomicAdd(Y, sum);  // @add
#endif
#ifdef BROKEN_3
  if (*Y > 1000) atomicAdd(Z, 0.f);  // @read
#endif
}
