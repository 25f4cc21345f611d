// One piece of shared memory serves two phases, as ints and as doubles.
// launch: grid=2 block=64 shared=512
// in X: int32[128] = numbers(128)
// out Y: float32[128]
// right: Y.reshape(2, 64) == X.reshape(2, 64) + 2.0 * X.reshape(2, 64)[:, ::-1]
// broken 1: race(first, second) -- no barrier between the phases
// broken 2: race(second, last) -- no barrier in the second phase

extern "C" __global__ void KERNEL(const int* X, float* Y) {
  extern __shared__ double memory[];
  int* a = (int*)memory;
  double* b = memory;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  a[t] = 1;
  a[t] = X[i];
  __syncthreads();
  const int other = a[63 - t];  // @first
#ifndef BROKEN_1
  __syncthreads();
#endif
  b[t] = 2.0 * other;  // @second
#ifndef BROKEN_2
  __syncthreads();
#endif
  Y[i] = X[i] + b[t];
  if (b[t ^ 32] < 0) Y[i] = 0;  // @last
}
