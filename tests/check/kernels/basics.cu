// Exercises of a first course: elements, grids of two dimensions, several types, a host program.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#ifndef SCALE
#define SCALE 3
#endif
#define DIV_UP(a, b) (((a) + (b) - 1) / (b))

// check: --kernel vector_add --let n=1000 --grid cdiv(n,256) --block 256
// check: --arg a=f32[n] --arg b=f32[n] --arg c=f32[n]:out --expect 'c=a + b'
__global__ void vector_add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// check: --kernel saxpy --let n=300 --grid 2 --block 64
// check: --arg alpha=2.5 --arg x=[n] --arg y=[n] --expect 'y=alpha * x + y'
extern "C" __global__ void saxpy(const int n, float alpha, const float *__restrict__ x, float *__restrict__ y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += alpha * x[i];
}

// check: --kernel matrix_add<int> --let rows=33 --let cols=50 --grid ceil(cols/16),ceil(rows/8) --block 16,8
// check: --arg a=[rows,cols] --arg b=[rows,cols] --arg c=[rows,cols]:out --expect 'c=a + b'
template <typename T>
__global__ void matrix_add(const T *a, const T *b, T *c, unsigned rows, unsigned cols) {
  unsigned col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) c[row * cols + col] = a[row * cols + col] + b[row * cols + col];
}

// check: --kernel image::grey --let width=40 --let height=20 --grid 3,2 --block 16,16
// check: --arg rgb=u8[height,width,3]:0..255 --arg out=u8[height,width]:out
// check: --expect 'out=floor((77 * rgb[:, :, 0] + 151 * rgb[:, :, 1] + 28 * rgb[:, :, 2]) / 256)'
namespace image {
__global__ void grey(const unsigned char *rgb, unsigned char *out, int width, int height) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x >= width || y >= height) return;
  const unsigned char *p = rgb + 3 * (y * width + x);
  out[y * width + x] = (77 * p[0] + 151 * p[1] + 28 * p[2]) >> 8;
}
}  // namespace image

// check: --kernel relu_half --grid 2 --block 64 --arg f16[128] --arg f16[128]:out --arg 128 --expect 'y=maximum(x, 0)'
__global__ void relu_half(const half *x, half *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hmax(x[i], __float2half(0.f));
}

// check: --kernel scale_doubles --grid 1 --block 100 --arg x=f64[100] --expect 'x=3 * x'
__global__ void scale_doubles(double *x) { x[threadIdx.x] *= SCALE; }

// check: --arg x=f32[50] --launch 'halve[1, 50](x)' --launch 'halve[2, 25](x)' --expect 'x=x / 4'
__global__ void halve(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] /= 2; }

// check: --kernel matvec --let M=70 --let N=90 --grid M --block 32 --arg A=[M,N] --arg x=[N] --arg y=[M]:out
// check: --expect 'y=A @ x'
__global__ void matvec(const float *A, const float *x, float *y, int M, int N) {
  float sum = 0;
  for (int j = threadIdx.x; j < N; j += 32) sum += A[blockIdx.x * N + j] * x[j];
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

__constant__ float mask[5];

// check: --kernel convolve --let n=200 --grid 4 --block 64 --arg x=[n] --arg y=[n]:out --arg mask=f32[5]
// check: --expect 'y=correlate(x, mask, mode="same")'
__global__ void convolve(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 5; ++k)
    if (i + k >= 2 && i + k - 2 < n) sum += mask[k] * x[i + k - 2];
  y[i] = sum;
}

struct Affine {
  float scale, shift;
};

// check: --kernel by_struct --grid 1 --block 64 --arg by=f32[2] --arg x=[64] --arg maybe=null
// check: --expect 'x=by[0] * x + by[1]'
__global__ void by_struct(Affine by, float *x, const int *maybe) {
  if (maybe) x[threadIdx.x] = maybe[threadIdx.x];
  else x[threadIdx.x] = by.scale * x[threadIdx.x] + by.shift;
}

// check: --kernel says --grid 1 --block 32 --arg x=i32[1]:7
__global__ void says(const int *x) {
  if (threadIdx.x == 0) printf("x is %d\n", x[0]);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::vector<float> host(n, 1.f);
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  vector_add<<<DIV_UP(n, 256), 256>>>(a, b, c, n);
  cudaMemcpy(host.data(), c, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::cout << host[0] << std::endl;
  return cudaDeviceSynchronize() == cudaSuccess ? EXIT_SUCCESS : EXIT_FAILURE;
}
