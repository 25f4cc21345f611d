// Two __device__ arrays of the module, one behind the other.
// launch: grid=2 block=32
// in X: int32[64] = numbers(64)
// out Y: int32[64]
// right: Y == 3 * X
// broken 1: out_of_bounds(put); may race, order_dependent -- one element too far, into the second
// broken 2: out_of_bounds(get); may race, order_dependent -- one element past the end of the second

__device__ int a[64], b[64];

extern "C" __global__ void KERNEL(const int* X, int* Y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
#ifdef BROKEN_1
  a[i + 1] = X[i];  // @put
#else
  a[i] = X[i];  // @put
#endif
  b[i] = 2 * X[i];
  __syncthreads();
#ifdef BROKEN_2
  Y[i] = a[i] + b[i + 1];  // @get
#else
  Y[i] = a[i] + b[i];  // @get
#endif
}
