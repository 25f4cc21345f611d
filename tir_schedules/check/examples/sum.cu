// Two launches of one kernel: each block leaves the sum of its share, and one block adds those up.
__global__ void sum(const float *in, float *out, int n) {
  __shared__ float part[256];
  float own = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) own += in[i];
  part[threadIdx.x] = own;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
