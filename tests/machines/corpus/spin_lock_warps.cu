// A lock in shared memory: one lane of each warp takes it.
// launch: grid=1 block=128
// in X: int32[128] = numbers(128)
// out Y: int32[1]
// right: Y == X.sum()
// broken 1: race(update, update) -- no fence at either end
// broken 2: deadlock(take) | endless_loop(take) -- it is never given back
// broken 3: race(zero, take) | race(zero, update); may deadlock, endless_loop -- no barrier after zeroing
// broken 4: race(update, read) -- no barrier before the sum is read

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int lock, sum;
  const int t = threadIdx.x;
  if (t == 0) lock = 0, sum = 0;  // @zero
#ifndef BROKEN_3
  __syncthreads();
#endif
  const int part = __reduce_add_sync(0xffffffff, X[t]);
  if (t % 32 == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {  // @take
    }
#ifndef BROKEN_1
    __threadfence_block();
#endif
    sum += part;  // @update
#ifndef BROKEN_1
    __threadfence_block();
#endif
#ifndef BROKEN_2
    atomicExch(&lock, 0);
#endif
  }
#ifndef BROKEN_4
  __syncthreads();
#endif
  if (t == 0) *Y = sum;  // @read
}
