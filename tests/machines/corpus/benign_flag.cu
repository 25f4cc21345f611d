// Many lanes of many blocks set one flag, all to 1: no fault, as whoever comes last leaves the same.
// launch: grid=4 block=64
// in X: int32[256] = numbers(256)
// inout Y: int32[1] = 0
// out Z: int32[4]
// right: Y == 1
// right: Z == 1
// broken 1: overlapping_writes(set, set) | race(set, set) -- each sets it to another value
// broken 2: race(mark, mark) | lockstep(mark, mark) -- each sets the flag of the block to another value
// broken 3: race(mark, read) -- no barrier before the flag of the block is read

extern "C" __global__ void KERNEL(const int* X, int* Y, int* Z) {
  __shared__ int odd;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) odd = 0;
  __syncthreads();
  if (X[i] % 2) {
#ifdef BROKEN_1
    *Y = i;  // @set
#else
    *Y = 1;  // @set
#endif
#ifdef BROKEN_2
    odd = t;  // @mark
#else
    odd = 1;  // @mark
#endif
  }
#ifndef BROKEN_3
  __syncthreads();
#endif
  if (t == 0) Z[blockIdx.x] = odd;  // @read
}
