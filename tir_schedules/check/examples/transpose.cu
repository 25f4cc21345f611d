// A transpose through a tile in shared memory, with bank conflicts and without.
#include <cstdio>
#include <cuda_runtime.h>

template <int TILE, int ROWS, int PAD>
__global__ void transpose(const float *src, float *dst, int w, int h) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = src[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS)
    if (x < h && y + j < w) dst[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int w = 4096, h = 4096;
  float *src, *dst;
  cudaMalloc(&src, w * h * sizeof(float));
  cudaMalloc(&dst, w * h * sizeof(float));
  transpose<16, 16, 0><<<dim3(w / 16, h / 16), dim3(16, 16)>>>(src, dst, w, h);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}

// check: --kernel 'transpose<16, 16, 0>' --let w=256,h=128 --grid cdiv(w,16),cdiv(h,16) --block 16,16
// check: --arg src=[h,w] --arg dst=[w,h]:out --expect dst=src.T

// check: --kernel 'transpose<16, 16, 1>' --let w=256,h=128 --grid cdiv(w,16),cdiv(h,16) --block 16,16
// check: --arg src=[h,w] --arg dst=[w,h]:out --expect dst=src.T

// check: --kernel 'transpose<32, 8, 1>' --let w=256,h=128 --grid cdiv(w,32),cdiv(h,32) --block 32,8
// check: --arg src=[h,w] --arg dst=[w,h]:out --expect dst=src.T
