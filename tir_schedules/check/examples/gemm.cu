// An SGEMM as one downloads it: a template of its own names, that a `main` launches, and cuBLAS beside it.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
  std::cerr << cudaGetErrorString(e) << std::endl; exit(1); } } while (0)

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void tiled_matmul(int rows, int cols, int inner, float scale, const float *lhs, const float *rhs,
                             float old, float *dst) {
  __shared__ float lhsTile[BM * BK];
  __shared__ float rhsTile[BK * BN];
  const int cRow = blockIdx.y, cCol = blockIdx.x;
  const int tCol = threadIdx.x % (BN / TN), tRow = threadIdx.x / (BN / TN);
  lhs += cRow * BM * inner;
  rhs += cCol * BN;
  dst += cRow * BM * cols + cCol * BN;
  float acc[TM * TN] = {0.0f};
  const int threads = BM * BN / (TM * TN);
  for (int k = 0; k < inner; k += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += threads) lhsTile[i] = lhs[(i / BK) * inner + i % BK];
    for (int i = threadIdx.x; i < BK * BN; i += threads) rhsTile[i] = rhs[(i / BN) * cols + i % BN];
    __syncthreads();
    lhs += BK;
    rhs += BK * cols;
    for (int d = 0; d < BK; ++d) {
      float m[TM], n[TN];
      for (int i = 0; i < TM; ++i) m[i] = lhsTile[(tRow * TM + i) * BK + d];
      for (int i = 0; i < TN; ++i) n[i] = rhsTile[d * BN + tCol * TN + i];
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) acc[i * TN + j] += m[i] * n[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) {
      float *at = &dst[(tRow * TM + i) * cols + tCol * TN + j];
      *at = scale * acc[i * TN + j] + old * *at;
    }
}

int main() {
  const int M = 256, N = 256, K = 64;
  std::vector<float> a(M * K, 1), b(K * N, 2), c(M * N);
  float *dA, *dB, *dC;
  CHECK(cudaMalloc(&dA, a.size() * 4));
  CHECK(cudaMalloc(&dB, b.size() * 4));
  CHECK(cudaMalloc(&dC, c.size() * 4));
  dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 64));
  tiled_matmul<64, 64, 8, 8, 8><<<grid, 64>>>(M, N, K, 1.0f, dA, dB, 0.0f, dC);
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1, zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &one, dB, N, dA, K, &zero, dC, N);
  CHECK(cudaDeviceSynchronize());
  printf("%f\n", c[0]);
}
