// Two static arrays in shared memory, one behind the other.
// launch: grid=1 block=64
// in X: int32[64] = numbers(64)
// in I: int32[64] = np.arange(64)
// out Y: int32[64]
// right: Y == X + X[::-1]
// broken 1: out_of_bounds(put) -- one element past the end of the first, into the second
// broken 2: out_of_bounds(get) -- one element before the start of the second, into the first

extern "C" __global__ void KERNEL(const int* X, const int* I, int* Y) {
  __shared__ int a[64], b[64];
  const int t = threadIdx.x;
#ifdef BROKEN_1
  a[t + 1] = X[t];  // @put
#else
  a[t] = X[t];  // @put
#endif
  b[63 - I[t]] = X[t];
  __syncthreads();
#ifdef BROKEN_2
  Y[t] = a[t] + b[t - 1];  // @get
#else
  Y[t] = a[I[t]] + b[t];  // @get
#endif
}
