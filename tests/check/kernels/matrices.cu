// Products, transposes and stencils in shared memory, and on tensor cores.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define TILE 32
#define OFFSET(row, col, ld) ((row) * (ld) + (col))
#define FETCH_FLOAT4(x) (reinterpret_cast<const float4 *>(&(x))[0])

// check: --kernel sgemm_naive --as sgemm --mnk 40,50,60 --grid cdiv(M,32),cdiv(N,32) --block 32,32
__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= M || y >= N) return;
  float tmp = 0.0f;
  for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
  C[x * N + y] = alpha * tmp + beta * C[x * N + y];
}

// check: --kernel 'matmul_tiled<16>' --as sgemm --mnk 48,32,64 --grid N//16,M//16 --block 16,16
template <int T>
__global__ void matmul_tiled(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[T][T], bs[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k / T; ++t) {
    as[threadIdx.y][threadIdx.x] = a[row * k + t * T + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t * T + threadIdx.y) * n + col];
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

// check: --kernel sgemm_of_rows --as sgemm --layout nt --mnk 40,50,60 --grid cdiv(N,16),cdiv(M,16) --block 16,16
__global__ void sgemm_of_rows(const float *A, const float *B, float *C, int M, int N, int K, int ldb) {
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row >= M || col >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[col * ldb + k];
  C[row * N + col] = sum;
}

// check: --kernel square_matmul --as sgemm --mnk 64,64,64 --grid 4,4 --block 16,16
__global__ void square_matmul(float *d_C, const float *d_A, const float *d_B, int width) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < width; ++k) sum += d_A[OFFSET(row, k, width)] * d_B[OFFSET(k, col, width)];
  if (row < width && col < width) d_C[OFFSET(row, col, width)] = sum;
}

// check: --kernel 'sgemm_vectorized<64, 64, 8, 4, 4>' --as sgemm --mnk 128,64,32 --grid N//64,M//64 --block 256
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__(BM *BN / (TM * TN))
    sgemm_vectorized(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  __shared__ float As[BK][BM], Bs[BK][BN];
  const int tx = threadIdx.x % (BN / TN), ty = threadIdx.x / (BN / TN);
  float sum[TM][TN] = {};
  for (int k = 0; k < K; k += BK) {
    if (threadIdx.x < BM * BK / 4) {
      int row = threadIdx.x / (BK / 4), col = threadIdx.x % (BK / 4) * 4;
      float4 v = FETCH_FLOAT4(A[OFFSET(blockIdx.y * BM + row, k + col, K)]);
      As[col][row] = v.x, As[col + 1][row] = v.y, As[col + 2][row] = v.z, As[col + 3][row] = v.w;
    } else {
      int i = threadIdx.x - BM * BK / 4, row = i / (BN / 4), col = i % (BN / 4) * 4;
      *reinterpret_cast<float4 *>(&Bs[row][col]) = FETCH_FLOAT4(B[OFFSET(k + row, blockIdx.x * BN + col, N)]);
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < BK; ++d)
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) sum[i][j] += As[d][ty * TM + i] * Bs[d][tx * TN + j];
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) {
      float &c = C[OFFSET(blockIdx.y * BM + ty * TM + i, blockIdx.x * BN + tx * TN + j, N)];
      c = alpha * sum[i][j] + beta * c;
    }
}

// check: --kernel gemm_strided --let M=20 --let N=24 --let K=28 --grid 1 --block N,M
// check: --arg A=[M,K] --arg B=[K,N] --arg C=[M,N]:inout --arg lda=K --arg ldb=N --arg ldc=N --expect 'C=A @ B + C'
__global__ void gemm_strided(int M, int N, int K, const float *A, int lda, const float *B, int ldb, float *C, int ldc) {
  float sum = C[threadIdx.y * ldc + threadIdx.x];
  for (int k = 0; k < K; ++k) sum += A[threadIdx.y * lda + k] * B[k * ldb + threadIdx.x];
  C[threadIdx.y * ldc + threadIdx.x] = sum;
}

// check: --kernel hgemm_wmma --as hgemm --layout nn --mnk 32,48,64 --grid N//16,M//16 --block 32
__global__ void hgemm_wmma(const half *A, const half *B, float *C, int M, int N, int K) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.f);
  for (int k = 0; k < K; k += 16) {
    wmma::load_matrix_sync(a, A + blockIdx.y * 16 * K + k, K);
    wmma::load_matrix_sync(b, B + k * N + blockIdx.x * 16, N);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(C + blockIdx.y * 16 * N + blockIdx.x * 16, c, N, wmma::mem_row_major);
}

// check: --kernel hgemm_simple --as hgemm --mnk 16,32,48 --grid 1,2 --block 32,8
__global__ void hgemm_simple(const half *A, const half *B, half *C, int M, int N, int K) {
  int col = threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  half sum = __float2half(0.f);
  for (int k = 0; k < K; ++k) sum = __hfma(A[row * K + k], B[col * K + k], sum);
  C[row * N + col] = sum;
}

// check: --kernel hgemm_bfloat --as hgemm --mnk 16,32,48 --grid 1,2 --block 32,8
__global__ void hgemm_bfloat(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C, int M, int N, int K,
                             float alpha, float beta) {
  int col = threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float sum = 0.f;
  for (int k = 0; k < K; ++k) sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[col * K + k]);
  C[row * N + col] = __float2bfloat16(alpha * sum + beta * __bfloat162float(C[row * N + col]));
}

// check: --kernel hgemm_rounded --as hgemm --accumulate float32 --mnk 16,32,48 --grid 1,2 --block 32,8
__global__ void hgemm_rounded(const half *A, const half *B, half *C, int M, int N, int K) {
  int col = threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float sum = 0.f;
  for (int k = 0; k < K; ++k) sum += __half2float(A[row * K + k]) * __half2float(B[col * K + k]);
  C[row * N + col] = __float2half(sum);
}

// check: --kernel 'transpose<float>' --let rows=70 --let cols=40 --grid cdiv(cols,32),cdiv(rows,32) --block 32,8
// check: --arg src=[rows,cols] --arg dst=[cols,rows]:out --expect 'dst=src.T'
template <typename T>
__global__ void transpose(const T *src, T *dst, int rows, int cols) {
  __shared__ T tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += 8)
    if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = src[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += 8)
    if (x < rows && y + j < cols) dst[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

// check: --kernel stencil --let h=20 --let w=36 --grid 3,2 --block 16,16 --arg src=[h,w] --arg out=[h,w]:out
// check: --expect 'out[1:19, 1:35]=0.25 * (src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:])'
__global__ void stencil(const float *src, float *out, int h, int w) {
  __shared__ float tile[18][18];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (int j = threadIdx.y; j < 18; j += 16)
    for (int i = threadIdx.x; i < 18; i += 16) {
      int gx = int(blockIdx.x * 16) + i - 1, gy = int(blockIdx.y * 16) + j - 1;
      tile[j][i] = gx >= 0 && gy >= 0 && gx < w && gy < h ? src[gy * w + gx] : 0.f;
    }
  __syncthreads();
  int i = threadIdx.x + 1, j = threadIdx.y + 1;
  if (x > 0 && y > 0 && x < w - 1 && y < h - 1)
    out[y * w + x] = 0.25f * (tile[j - 1][i] + tile[j + 1][i] + tile[j][i - 1] + tile[j][i + 1]);
}

// check: --kernel attention_scores --let L=16 --let D=64 --grid L --block L --arg Q=f16[L,D] --arg Kt=f16[L,D]
// check: --arg S=f32[L,L]:out --arg scale=0.125 --expect 'S=scale * (Q @ Kt.T)'
__global__ void attention_scores(const __half *Q, const __half *Kt, float *S, int L, int D, float scale) {
  float sum = 0;
  for (int d = 0; d < D; ++d) sum += __half2float(Q[blockIdx.x * D + d]) * __half2float(Kt[threadIdx.x * D + d]);
  S[blockIdx.x * L + threadIdx.x] = sum * scale;
}

// check: --kernel argmax_rows --let rows=8 --let cols=100 --grid rows --block 32 --arg x=f32[rows,cols] --arg best=i32[rows]:out
// check: --expect 'best=argmax(x, axis=1)'
__global__ void argmax_rows(const float *x, int *best, int cols) {
  float most = -1e30f;
  int at = 0;
  for (int i = threadIdx.x; i < cols; i += 32)
    if (x[blockIdx.x * cols + i] > most) most = x[blockIdx.x * cols + i], at = i;
  for (int o = 16; o; o /= 2) {
    float other = __shfl_down_sync(~0u, most, o);
    int where = __shfl_down_sync(~0u, at, o);
    if (other > most || (other == most && where < at)) most = other, at = where;
  }
  if (threadIdx.x == 0) best[blockIdx.x] = at;
}
