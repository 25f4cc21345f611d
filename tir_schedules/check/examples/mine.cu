// An SGEMM through tiles in shared memory, with its check in a comment: `inspect` and `layout` need no options.
// check: --kernel mine --as sgemm --mnk 128,96,64 --grid N//16,M//16 --block 16,16
__global__ void mine(const float *A, const float *B, float *C, int M, int N, int K) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < K; k += 16) {
    left[y][x] = A[row * K + k + x];
    right[y][x] = B[(k + y) * N + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  C[row * N + column] = sum;
}
