// The smallest value and where it is, in one 64-bit atomic.
// launch: grid=4 block=64
// in X: int32[256] = (np.arange(256) * 37 + 11) % 257
// inout M: uint64[1] = 2**64 - 1
// out Y: int32[256]
// right: M == (int(X.min()) << 32 | int(X.argmin()))
// right: Y == X
// broken 1: race(where, where) | overlapping_writes(where, where) -- the place is stored apart from the value
// broken 2: race(smallest, look) -- a plain look before the atomic
// broken 3: race(smallest, late) -- a block reads the result before all have come

__device__ int place, seen;

extern "C" __global__ void KERNEL(const int* X, unsigned long long* M, int* Y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const unsigned long long packed = (unsigned long long)X[i] << 32 | unsigned(i);
  Y[i] = X[i];
#ifdef BROKEN_1
  if (atomicMin(M, packed) > packed) place = i;  // @where
#else
#ifdef BROKEN_2
  if (packed < *M)  // @look
#endif
    atomicMin(M, packed);  // @smallest
#endif
#ifdef BROKEN_3
  __syncthreads();
  if (threadIdx.x == 0) seen = int(*M);  // @late
#endif
}
