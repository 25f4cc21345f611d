// Sums, scans, histograms, softmax: what threads do together.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <cfloat>

namespace cg = cooperative_groups;

// check: --kernel sum_shared --as reduce --n 5000 --grid 20 --block 256
__global__ void sum_shared(const float *in, float *out, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0.f;
  __syncthreads();
  for (int half = 128; half; half >>= 1) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// check: --kernel 'sum_atomic<256>' --as reduce --n 5000 --grid 4 --block 256
template <int THREADS>
__global__ void sum_atomic(int *input, int *total, size_t count) {
  int sum = 0;
  for (size_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += input[i];
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

// check: --let N=3000 --arg X=f32[N] --arg part=f32[cdiv(N,256)]:out --arg Y=f32[1]:out
// check: --launch 'sum_groups[cdiv(N, 256), 128, 16](X, part, N)' --launch 'sum_groups[1, 128, 16](part, Y, cdiv(N, 256))'
// check: --expect 'Y=sum(X)'
__global__ void sum_groups(const float *x, float *y, int n) {
  extern __shared__ float warps[];
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  int i = blockIdx.x * 2 * blockDim.x + threadIdx.x;
  float sum = (i < n ? x[i] : 0.f) + (i + blockDim.x < n ? x[i + blockDim.x] : 0.f);
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) warps[tile.meta_group_rank()] = sum;
  block.sync();
  if (block.thread_rank() == 0) {
    for (int w = 1; w < tile.meta_group_size(); ++w) sum += warps[w];
    y[blockIdx.x] = sum;
  }
}

// check: --kernel largest --let n=700 --grid 1 --block 256 --arg x=f32[n] --arg y=f32[1]:out --expect 'y=max(x)'
__global__ void largest(const float *x, float *y, int n) {
  __shared__ float of_warps[8];
  float most = -FLT_MAX;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, x[i]);
  for (int mask = 16; mask; mask /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, mask));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) most = fmaxf(most, of_warps[w]);
    *y = most;
  }
}

// check: --kernel dot --let n=2000 --grid 4 --block 128 --arg a=f32[n] --arg b=f32[n] --arg out=f32[1]:zeros
// check: --expect 'out=dot(a, b)'
__global__ void dot(const float *a, const float *b, float *out, int n) {
  __shared__ float cache[128];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += a[i] * b[i];
  cache[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, cache[0]);
}

// check: --kernel histogram --let n=4000 --grid 4 --block 256 --arg data=u8[n]:0..255 --arg bins=u32[256]:zeros
// check: --expect 'bins=bincount(data, minlength=256)'
__global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
  __shared__ unsigned int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&own[data[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// check: --kernel inclusive_scan --let n=512 --grid 1 --block n --shared 8*n --arg x=i32[n] --arg y=i32[n]:out
// check: --expect 'y=cumsum(x)'
__global__ void inclusive_scan(const int *x, int *y, int n) {
  extern __shared__ int buffer[];
  int *from = buffer, *to = buffer + n, i = threadIdx.x;
  from[i] = x[i];
  __syncthreads();
  for (int step = 1; step < n; step *= 2) {
    to[i] = i >= step ? from[i] + from[i - step] : from[i];
    __syncthreads();
    int *other = from;
    from = to;
    to = other;
  }
  y[i] = from[i];
}

// check: --let N=1000 --arg X=i32[N] --arg sums=i32[4]:out --arg Y=i32[N]:out
// check: --launch 'scan_blocks[4, 256](X, Y, sums, N)' --launch 'add_before[4, 256](Y, sums, N)' --expect 'Y=cumsum(X)'
__global__ void scan_blocks(const int *x, int *y, int *sums, int n) {
  __shared__ int s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int more = threadIdx.x >= step ? s[threadIdx.x - step] : 0;
    __syncthreads();
    s[threadIdx.x] += more;
  }
  if (i < n) y[i] = s[threadIdx.x];
  if (threadIdx.x == 255) sums[blockIdx.x] = s[255];
}
__global__ void add_before(int *y, const int *sums, int n) {
  int i = blockIdx.x * 256 + threadIdx.x, before = 0;
  for (int b = 0; b < blockIdx.x; ++b) before += sums[b];
  if (i < n) y[i] += before;
}

// check: --kernel softmax<128> --let rows=6 --let cols=300 --grid rows --block 128 --arg x=f32[rows,cols]
// check: --arg y=f32[rows,cols]:out --expect 'y=exp(x - max(x, axis=1, keepdims=True)) / sum(exp(x - max(x, axis=1, keepdims=True)), axis=1, keepdims=True)'
template <int THREADS>
__device__ float across(float value, bool add) {
  __shared__ float all[THREADS];
  all[threadIdx.x] = value;
  __syncthreads();
  for (int s = THREADS / 2; s; s /= 2) {
    if (threadIdx.x < s) {
      float a = all[threadIdx.x], b = all[threadIdx.x + s];
      all[threadIdx.x] = add ? a + b : fmaxf(a, b);
    }
    __syncthreads();
  }
  float result = all[0];
  __syncthreads();
  return result;
}
template <int THREADS>
__global__ void softmax(const float *x, float *y, int cols) {
  const float *row = x + blockIdx.x * cols;
  float most = -FLT_MAX, sum = 0;
  for (int i = threadIdx.x; i < cols; i += THREADS) most = fmaxf(most, row[i]);
  most = across<THREADS>(most, false);
  for (int i = threadIdx.x; i < cols; i += THREADS) sum += __expf(row[i] - most);
  sum = across<THREADS>(sum, true);
  for (int i = threadIdx.x; i < cols; i += THREADS) y[blockIdx.x * cols + i] = __expf(row[i] - most) / sum;
}

// check: --kernel layer_norm --let rows=5 --let n=256 --grid rows --block 32 --arg x=f32[rows,n] --arg y=f32[rows,n]:out --arg eps=0.00001
// check: --expect 'y=(x - mean(x, axis=1, keepdims=True)) / sqrt(var(x, axis=1, keepdims=True) + eps)'
__global__ void layer_norm(const float *x, float *y, int n, float eps) {
  const float *row = x + blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += row[i];
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  float mean = sum / n;
  for (int i = threadIdx.x; i < n; i += 32) squares += (row[i] - mean) * (row[i] - mean);
  for (int o = 16; o; o /= 2) squares += __shfl_xor_sync(~0u, squares, o);
  for (int i = threadIdx.x; i < n; i += 32) y[blockIdx.x * n + i] = (row[i] - mean) * rsqrtf(squares / n + eps);
}
