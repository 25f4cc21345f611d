// Twins of the kernels in this folder, each with one fault. `finds:` says what must be found, and the mark which
// line is to be named.
#include <cfloat>
#include <cuda_runtime.h>

// A barrier is missing before the tile is overwritten.
// check: --kernel 'matmul_no_barrier<16>' --as sgemm --mnk 48,32,64 --grid N//16,M//16 --block 16,16
// finds: race
template <int T>
__global__ void matmul_no_barrier(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float as[T][T], bs[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k / T; ++t) {
    as[threadIdx.y][threadIdx.x] = a[row * k + t * T + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t * T + threadIdx.y) * n + col];  // @here
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
  }
  c[row * n + col] = sum;
}

// No guard: the last block goes beyond the arrays.
// check: --kernel add_no_guard --let n=1000 --grid cdiv(n,256) --block 256
// check: --arg a=f32[n] --arg b=f32[n] --arg c=f32[n]:out --expect 'c=a + b'
// finds: out_of_bounds
__global__ void add_no_guard(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];  // @here
}

// Off by one: i <= n.
// check: --kernel off_by_one --let n=300 --grid 2 --block 64 --arg alpha=2.5 --arg x=f32[n] --arg y=f32[n]
// finds: out_of_bounds
__global__ void off_by_one(int n, float alpha, const float *x, float *y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= n; i += gridDim.x * blockDim.x)
    y[i] += alpha * x[i];  // @here
}

// The histogram of a block is not cleared.
// check: --kernel not_cleared --let n=4000 --grid 4 --block 256 --arg data=u8[n]:0..255 --arg bins=u32[256]:zeros
// check: --expect 'bins=bincount(data, minlength=256)'
// finds: uninitialized
__global__ void not_cleared(const unsigned char *data, unsigned int *bins, int n) {
  __shared__ unsigned int own[256];
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&own[data[i]], 1);  // @here
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// Off by one: the last term of each product is lost.
// check: --kernel lost_term --as sgemm --mnk 40,50,60 --grid cdiv(M,32),cdiv(N,32) --block 32,32
// finds: wrong
__global__ void lost_term(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= M || y >= N) return;
  float tmp = 0.0f;
  for (int i = 0; i < K - 1; ++i) tmp += A[x * K + i] * B[i * N + y];
  C[x * N + y] = alpha * tmp + beta * C[x * N + y];  // @here
}

// beta is forgotten, which nothing shows as long as it is 0.
// check: --kernel no_beta --as sgemm --mnk 40,50,60 --grid cdiv(M,32),cdiv(N,32) --block 32,32
// finds: wrong
__global__ void no_beta(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= M || y >= N) return;
  float tmp = 0.0f;
  for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
  C[x * N + y] = alpha * tmp;  // @here
}

// Not an atomic: blocks lose what others add.
// check: --kernel plain_add --let n=2000 --grid 4 --block 128 --arg a=f32[n] --arg out=f32[1]:zeros --expect 'out=sum(a)'
// finds: overlapping_writes race wrong
__global__ void plain_add(const float *a, float *out, int n) {
  __shared__ float cache[128];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += a[i];
  cache[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out += cache[0];  // @here
}

// A barrier that some threads reach while the others are at the next one.
// check: --kernel barrier_in_if --let n=700 --grid 1 --block 256 --arg x=f32[n] --arg y=f32[256]:out
// finds: divergent_barrier
__global__ void barrier_in_if(const float *x, float *y, int n) {
  __shared__ float s[256];
  if (threadIdx.x < 200) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();  // @here
  }
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 200];
}

// Lanes of a warp rely on lockstep.
// check: --kernel no_syncwarp --as reduce --n 64 --grid 1 --block 64
// finds: lockstep race
__global__ void no_syncwarp(const float *in, float *out, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32)
    for (int half = 32; half; half >>= 1) s[threadIdx.x] += s[threadIdx.x + half];  // @here
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// Shared memory that is asked for is too small for what is kept in it.
// check: --kernel too_little_shared --let n=512 --grid 1 --block n --shared 4*n --arg x=i32[n] --arg y=i32[n]:out
// check: --expect 'y=cumsum(x)'
// finds: out_of_bounds
__global__ void too_little_shared(const int *x, int *y, int n) {
  extern __shared__ int buffer[];
  int *from = buffer, *to = buffer + n, i = threadIdx.x;
  from[i] = x[i];
  __syncthreads();
  for (int step = 1; step < n; step *= 2) {
    to[i] = i >= step ? from[i] + from[i - step] : from[i];  // @here
    __syncthreads();
    int *other = from;
    from = to;
    to = other;
  }
  y[i] = from[i];
}

// It stores to what the user says is an input.
// check: --kernel clobbers --grid 1 --block 64 --arg x=f32[64]:in --arg y=f32[64]:out --expect 'y=2 * x'
// finds: write_to_input
__global__ void clobbers(float *x, float *y) {
  float twice = 2 * x[threadIdx.x];
  x[threadIdx.x] = 0;  // @here
  y[threadIdx.x] = twice;
}

// An output that is read before it is written.
// check: --kernel reads_output --grid 1 --block 64 --arg x=f32[64] --arg y=f32[64]:out
// finds: uninitialized
__global__ void reads_output(const float *x, float *y) { y[threadIdx.x] += x[threadIdx.x]; }  // @here

// The last element is left out, which a long sum's rounding would hide.
// check: --kernel leaves_one_out --let n=20000 --grid 8 --block 256 --arg x=f32[n] --arg y=f32[1]:zeros:inout
// check: --expect 'y=sum(x)'
// finds: wrong
__global__ void leaves_one_out(const float *x, float *y, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n - 1; i += gridDim.x * blockDim.x) sum += x[i];
  for (int half = 16; half; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
  if (threadIdx.x % 32 == 0) atomicAdd(y, sum);  // @here
}
