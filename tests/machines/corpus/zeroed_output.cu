// All blocks add to one output. The first zeroes it, and the others wait for a barrier of the grid.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// out Y: int32[1]
// right: Y == X.sum()
// broken 1: race(zero, add) -- the others do not wait: a block that comes early adds to what is then zeroed
// broken 2: race(zero, add) -- a barrier of the block only
// broken 3: uninitialized(add) -- nobody zeroes it
// broken 4: race(zero, add) -- the one who zeroes does not fence

__device__ unsigned count;

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  const int t = threadIdx.x;
#ifndef BROKEN_3
  if (blockIdx.x == 0 && t == 0) *Y = 0;  // @zero
#endif
#if !defined BROKEN_1 && !defined BROKEN_2 && !defined BROKEN_3
  if (t == 0) {
#ifndef BROKEN_4
    __threadfence();
#endif
    atomicAdd(&count, 1);
    while (*(volatile unsigned*)&count < gridDim.x) {
    }
    __threadfence();
  }
#endif
#ifndef BROKEN_1
  __syncthreads();
#endif
  const int sum = __reduce_add_sync(0xffffffff, X[blockIdx.x * 64 + t]);
  if (t % 32 == 0) atomicAdd(Y, sum);  // @add
}
