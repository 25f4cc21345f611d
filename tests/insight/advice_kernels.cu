// Pairs of kernels: one that advice is about, and the one that follows it.
#include <cuda_runtime.h>

#define TILE 32

// check: --kernel transpose --grid 4,2 --block 32,32 --arg a=f32[64,128] --arg out=f32[128,64]:out --let w=128
// check: --let h=64 --expect out=a.T
__global__ void transpose(const float *a, float *out, int w, int h) {
  __shared__ float tile[32][32];
  int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 32;
  tile[y][x] = a[(r + y) * w + c + x];
  __syncthreads();
  out[(c + y) * h + r + x] = tile[x][y];
}

// check: --kernel transpose_padded --grid 4,2 --block 32,32 --arg a=f32[64,128] --arg out=f32[128,64]:out
// check: --let w=128 --let h=64 --expect out=a.T
__global__ void transpose_padded(const float *a, float *out, int w, int h) {
  __shared__ float tile[TILE][TILE + 1];
  int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 32;
  tile[y][x] = a[(r + y) * w + c + x];
  __syncthreads();
  out[(c + y) * h + r + x] = tile[x][y];
}

// The rows are not in the declaration.
// check: --kernel transpose_flat --grid 4,2 --block 32,32 --arg a=f32[64,128] --arg out=f32[128,64]:out --let w=128
// check: --let h=64 --expect out=a.T
__global__ void transpose_flat(const float *a, float *out, int w, int h) {
  __shared__ float tile[TILE * TILE];
  int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 32;
  tile[y * TILE + x] = a[(r + y) * w + c + x];
  __syncthreads();
  out[(c + y) * h + r + x] = tile[x * TILE + y];
}

// check: --kernel transpose_swizzled --grid 4,2 --block 32,32 --arg a=f32[64,128] --arg out=f32[128,64]:out
// check: --let w=128 --let h=64 --expect out=a.T
__global__ void transpose_swizzled(const float *a, float *out, int w, int h) {
  __shared__ float tile[TILE * TILE];
  int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 32;
  tile[y * TILE + (x ^ y)] = a[(r + y) * w + c + x];
  __syncthreads();
  out[(c + y) * h + r + x] = tile[x * TILE + (y ^ x)];
}

// Vectors are read of a tile that is stored transposed: rows have to begin at multiples of 16 bytes.
// check: --kernel vectors --grid 1 --block 32 --arg a=f32[32,64] --arg out=f32[64,32]:out --expect out=a.T
__global__ void vectors(const float *a, float4 *out) {
  __shared__ __align__(16) float tile[64][32];
  for (int k = 0; k < 64; k += 4) {
    float4 v = *(const float4 *)&a[threadIdx.x * 64 + k];
    tile[k][threadIdx.x] = v.x, tile[k + 1][threadIdx.x] = v.y;
    tile[k + 2][threadIdx.x] = v.z, tile[k + 3][threadIdx.x] = v.w;
  }
  __syncthreads();
  for (int k = 0; k < 16; ++k) out[threadIdx.x * 16 + k] = *(float4 *)&tile[threadIdx.x * 2 + k / 8][k % 8 * 4];
}

// check: --kernel vectors_swizzled --grid 1 --block 32 --arg a=f32[32,64] --arg out=f32[64,32]:out --expect out=a.T
__global__ void vectors_swizzled(const float4 *a, float4 *out) {
  __shared__ __align__(16) float tile[64][32];
  int t = threadIdx.x;
  for (int k = 0; k < 64; ++k) tile[k][(t / 4 ^ k / 2 % 8) * 4 + t % 4] = ((const float *)a)[t * 64 + k];
  __syncthreads();
  for (int k = 0; k < 16; ++k) {
    int row = t * 2 + k / 8;
    out[t * 16 + k] = *(float4 *)&tile[row][(k % 8 ^ row / 2 % 8) * 4];
  }
}

// Threads of a warp read one column of a matrix.
// check: --kernel columns --grid 2,2 --block 32,16 --arg a=f32[64,32] --arg out=f32[64,32]:out --expect 'out=2*a'
__global__ void columns(const float *a, float *out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
  out[row * 32 + column] = 2 * a[row * 32 + column];
}

// check: --kernel rows --grid 2,2 --block 16,32 --arg a=f32[64,32] --arg out=f32[64,32]:out --expect 'out=2*a'
__global__ void rows(const float *a, float *out) {
  int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.y * blockDim.x + threadIdx.x;
  out[row * 32 + column] = 2 * a[row * 32 + column];
}

// Each thread has four neighbouring elements.
// check: --kernel by_four --grid 2 --block 64 --arg a=f32[512] --arg out=f32[512]:out --expect 'out=2*a'
__global__ void by_four(const float *a, float *out) {
  int first = (blockIdx.x * 64 + threadIdx.x) * 4;
  for (int k = 0; k < 4; ++k) out[first + k] = 2 * a[first + k];
}

// check: --kernel by_vector --grid 2 --block 64 --arg a=f32[512] --arg out=f32[512]:out --expect 'out=2*a'
__global__ void by_vector(const float *a, float *out) {
  int first = (blockIdx.x * 64 + threadIdx.x) * 4;
  float4 v = *(const float4 *)&a[first];
  *(float4 *)&out[first] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

// Every thread reads every element.
// check: --kernel read_again --grid 2 --block 128 --arg a=f32[128] --arg out=f32[256]:out
// check: --expect 'out[:128]=a * sum(a)'
__global__ void read_again(const float *a, float *out) {
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 128; ++k) sum += a[k];
  out[blockIdx.x * 128 + threadIdx.x] = a[threadIdx.x] * sum;
}

// check: --kernel read_once --grid 2 --block 128 --arg a=f32[128] --arg out=f32[256]:out
// check: --expect 'out[:128]=a * sum(a)'
__global__ void read_once(const float *a, float *out) {
  __shared__ float kept[128];
  kept[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 128; ++k) sum += kept[k];
  out[blockIdx.x * 128 + threadIdx.x] = kept[threadIdx.x] * sum;
}

// Every fourth lane works.
// check: --kernel resting --grid 1 --block 128 --arg out=f32[128]:out
__global__ void resting(float *out) {
  float value = threadIdx.x;
  if (threadIdx.x % 4 == 0)
    for (int k = 0; k < 100; ++k) value = __sinf(value);
  out[threadIdx.x] = value;
}

// check: --kernel gathered --grid 1 --block 128 --arg out=f32[128]:out
__global__ void gathered(float *out) {
  float value = threadIdx.x;
  if (threadIdx.x < 32)
    for (int k = 0; k < 100; ++k) value = __sinf(value);
  out[threadIdx.x] = value;
}

// More registers than 32 blocks of 64 threads leave for each.
// check: --kernel spilling --grid 1 --block 64 --arg a=f32[4096] --arg out=f32[64]:out
__global__ void __launch_bounds__(64, 32) spilling(const float *a, float *out) {
  float v[64], sum = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = a[k * 64 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 64; ++k) sum = sum * v[k] + v[63 - k];
  out[threadIdx.x] = sum;
}

// check: --kernel large --grid 1 --block 128 --arg out=f32[128]:out
__global__ void large(float *out) {
  __shared__ float kept[12000];
  kept[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = kept[threadIdx.x];
}

// check: --kernel small --grid 1 --block 128 --arg out=f32[128]:out
__global__ void small(float *out) {
  __shared__ float kept[10240];
  kept[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = kept[threadIdx.x];
}

// Nothing to be said.
// check: --kernel sound --grid 4 --block 256 --arg a=f32[1024] --arg out=f32[1024]:out --expect 'out=2*a'
__global__ void sound(const float *a, float *out) {
  __shared__ float kept[256];
  kept[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = 2 * kept[threadIdx.x];
}

// The first block waits for the second.
// check: --kernel waits --grid 2 --block 32 --arg flag=i32[1]:0 --arg out=f32[64]:out
__global__ void waits(volatile int *flag, float *out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x == 1) *flag = 1;
    else
      while (!*flag) {}
  }
  __syncwarp();
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}

// The last block has fewer elements.
// check: --kernel ragged --grid 2 --block 128 --arg out=f32[160]:out
__global__ void ragged(float *out) {
  __shared__ float t[128][32];
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= 160) return;
  t[threadIdx.x][threadIdx.x / 32] = i;
  out[i] = t[threadIdx.x][threadIdx.x / 32];
}

// A pointer knows the length of rows, too: another declaration alone makes it wrong.
// check: --kernel by_pointer --grid 4,2 --block 32,32 --arg a=f32[64,128] --arg out=f32[128,64]:out --let w=128
// check: --let h=64 --expect out=a.T
__global__ void by_pointer(const float *a, float *out, int w, int h) {
  __shared__ float tile[32][32];
  float *flat = &tile[0][0];
  int x = threadIdx.x, y = threadIdx.y, c = blockIdx.x * 32, r = blockIdx.y * 32;
  flat[y * 32 + x] = a[(r + y) * w + c + x];
  __syncthreads();
  out[(c + y) * h + r + x] = tile[x][y];
}

// Each thread has two neighbouring elements, from an odd one on.
// check: --kernel from_odd --grid 1 --block 64 --arg a=f32[129] --arg out=f32[64]:out
// check: --expect 'out=a[1::2] + a[2::2]'
__global__ void from_odd(const float *a, float *out) {
  out[threadIdx.x] = a[2 * threadIdx.x + 1] + a[2 * threadIdx.x + 2];
}

// More than half of the lanes work.
// check: --kernel most_work --grid 1 --block 128 --arg out=f32[128]:out
__global__ void most_work(float *out) {
  float value = threadIdx.x;
  if (threadIdx.x % 32 < 20)
    for (int k = 0; k < 100; ++k) value = __sinf(value);
  out[threadIdx.x] = value;
}
