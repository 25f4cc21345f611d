// Blocks one after another: what one leaves in its shared memory is nothing to the next.
// launch: grid=8 block=32
// in X: int32[256] = numbers(256)
// out Y: int32[256]
// right: Y.reshape(8, 32) == X.reshape(8, 32)[:, ::-1]
// broken 1: uninitialized(get) -- only the first block fills its shared memory
// broken 2: uninitialized(get) -- one element is never written
// broken 3: uninitialized(out) -- an element of the output is read that nothing has written

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[32];
  const int t = threadIdx.x, i = blockIdx.x * 32 + t;
#if defined BROKEN_1
  if (blockIdx.x == 0) s[t] = X[i];
#elif defined BROKEN_2
  if (t < 31) s[t] = X[i];
#else
  s[t] = X[i];
#endif
  __syncthreads();
  int x = s[31 - t];  // @get
#ifdef BROKEN_3
  x += Y[i];  // @out
#endif
  Y[i] = x;
}
