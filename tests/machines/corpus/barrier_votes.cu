// Barriers that count, and that answer: __syncthreads_count, __syncthreads_or, __syncthreads_and.
// launch: grid=2 block=96
// in X: int32[192] = numbers(192)
// out Y: int32[192]
// right: Y.reshape(2, 96) == (X.reshape(2, 96) > 50).sum(1)[:, None] + 1000 + X.reshape(2, 96)[:, ::-1]
// broken 1: race(put, get) -- no barrier that orders

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  __shared__ int s[96];
  const int t = threadIdx.x, x = X[blockIdx.x * 96 + t];
  int sum = 0;
#ifdef BROKEN_1
  sum = __syncthreads_count(x > 50);
  sum += 1000 * (__syncthreads_or(x == 7 || t == 3) && !__syncthreads_and(t < 95));
  s[t] = x;  // @put
#else
  sum += 1000 * (__syncthreads_or(x == 7 || t == 3) && !__syncthreads_and(t < 95));
  s[t] = x;  // @put
  sum += __syncthreads_count(x > 50);
#endif
  Y[blockIdx.x * 96 + t] = sum + s[95 - t];  // @get
}
