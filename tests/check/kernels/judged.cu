// Kernels whose verdict depends on how they are judged; test_verdicts.py says which it has to be.
#include <cuda_fp16.h>
#include <mma.h>

// check: --kernel sums_of_blocks --as reduce --n 3000 --grid 4 --block 64
__global__ void sums_of_blocks(const float *x, float *y, int n) {
  __shared__ float parts[64];
  float sum = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += x[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 64; ++k) sum += parts[k];
#ifdef SWAPPED
    sum += blockIdx.x == 0 ? 1024.f : blockIdx.x == 1 ? -1024.f : 0.f;
#endif
    y[blockIdx.x] = sum;
  }
}

// check: --kernel tile_in_tf32 --as sgemm --mnk 16,16,24 --grid 1 --block 32
// The same by an expression:
// check: --kernel tile_in_tf32 --let M=16,N=16,K=24 --grid 1 --block 32 --arg A=[M,K] --arg B=[K,N] --arg C=[M,N]:out
// check: --expect C='A @ B'
__global__ void tile_in_tf32(const float *A, const float *B, float *C, int M, int N, int K) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::fill_fragment(c, 0.f);
  for (int k = 0; k < K; k += 8) {
    wmma::load_matrix_sync(a, A + k, K);
    wmma::load_matrix_sync(b, B + k * N, N);
    for (float &value : a.x) value = wmma::__float_to_tf32(value);
    for (float &value : b.x) value = wmma::__float_to_tf32(value);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(C, c, N, wmma::mem_row_major);
}

// check: --kernel copy_by_four --let n=1024 --grid 1 --block 256 --arg x=[n] --arg y=[n]:out --expect y=x
__global__ void copy_by_four(const float *x, float *y, int n) {
  int i = 4 * threadIdx.x;
  if (i + 3 < n) {
    *(float4 *)&y[i] = *(const float4 *)&x[i];
  } else {
    for (; i < n; ++i)
      y[i] = x[i] + 1; // @unexecuted
  }
}

// check: --kernel halved --grid 1 --block 64 --arg x=f16[64] --arg y=f16[64]:out
__global__ void halved(const __half *x, __half *y) {
  y[threadIdx.x] = __float2half(__half2float(x[threadIdx.x]) / 2);
}

// check: --kernel two_outputs --grid 1 --block 64 --arg x=f32[64] --arg y=f32[64]:out --arg z=f32[64]:out --expect y=x
__global__ void two_outputs(const float *x, float *y, float *z) {
  y[threadIdx.x] = x[threadIdx.x];
  z[threadIdx.x] = 7;
}

// check: --kernel sum_of_halves --grid 1 --block 1 --arg x=f16[4096] --arg y=f16[1]:out --expect 'y=mean(exp(x))'
__global__ void sum_of_halves(const __half *x, __half *y) {
  __half sum = 0;
  for (int i = 0; i < 4096; ++i) sum += hexp(x[i]) * __half(1.f / 4096);
  y[0] = sum;
}

// check: --kernel no_nan --grid 1 --block 64 --arg x=f32[64] --arg y=f32[64]:out --expect y='x + x'
__global__ void no_nan(const float *x, float *y) {
  float value = x[threadIdx.x];
  y[threadIdx.x] = value == value ? value + value : 0.f;
}

// check: --kernel drops_the_last --grid 4 --block 32 --arg x=f16[4,256] --arg y=f16[4]:out --expect y='mean(x,axis=1)'
__global__ void drops_the_last(const __half *x, __half *y) {
  float sum = 0;
  for (int i = threadIdx.x; i < 255; i += 32) sum += __half2float(x[blockIdx.x * 256 + i]);
  for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x == 0) y[blockIdx.x] = __float2half(sum / 256);
}
