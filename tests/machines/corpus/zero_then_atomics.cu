// One thread zeroes a counter of the block; behind a barrier all add to it.
// launch: grid=2 block=128
// in X: int32[256] = numbers(256)
// out Y: int32[2]
// right: Y == X.reshape(2, 128).sum(1)
// broken 1: race(zero, add) -- no barrier after zeroing
// broken 2: race(add, read) -- no barrier before reading
// broken 3: race(add, add) -- an addition without an atomic
// broken 4: uninitialized(add) -- nobody zeroes it

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int sum;
  const int t = threadIdx.x;
#ifndef BROKEN_4
  if (t == 0) sum = 0;  // @zero
#endif
#ifndef BROKEN_1
  __syncthreads();
#endif
#ifdef BROKEN_3
  sum += X[blockIdx.x * 128 + t];  // @add
#else
  atomicAdd(&sum, X[blockIdx.x * 128 + t]);  // @add
#endif
#ifndef BROKEN_2
  __syncthreads();
#endif
  if (t == 64) Y[blockIdx.x] = sum;  // @read
}
