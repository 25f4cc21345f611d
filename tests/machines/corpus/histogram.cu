// A histogram in shared memory by atomics, added to one in global memory that the host has zeroed.
// launch: grid=4 block=64
// in X: int32[1024] = numbers(1024, 16)
// inout Y: int32[16] = 0
// right: Y == np.bincount(X, minlength=16)
// broken 1: race(zero, count) -- no barrier after the counters are zeroed
// broken 2: race(count, flush) -- no barrier before they are added to the global ones
// broken 3: race(count, count) -- the shared counters are raised without an atomic
// broken 4: race(flush, flush) -- the global counters are raised without an atomic
// broken 5: out_of_bounds(count) -- one key is a counter too far

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int counts[16];
  const int t = threadIdx.x;
  if (t < 16) counts[15 - t] = 0;  // @zero
#ifndef BROKEN_1
  __syncthreads();
#endif
  for (int i = blockIdx.x * 64 + t; i < 1024; i += gridDim.x * 64) {
#if defined BROKEN_3
    counts[X[i]]++;  // @count
#elif defined BROKEN_5
    atomicAdd(counts + X[i] + (X[i] == 15), 1);  // @count
#else
    atomicAdd(counts + X[i], 1);  // @count
#endif
  }
#ifndef BROKEN_2
  __syncthreads();
#endif
#ifdef BROKEN_4
  if (t < 16) Y[t] += counts[t];  // @flush
#else
  if (t < 16) atomicAdd(Y + t, counts[t]);  // @flush
#endif
}
