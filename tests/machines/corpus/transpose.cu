// A matrix of 32x32 tiles transposed through shared memory with a padded row.
// launch: grid=4 block=256
// in X: int32[4096] = numbers(4096)
// out Y: int32[4096]
// right: Y.reshape(64, 64) == X.reshape(64, 64).T
// broken 1: race(put, get) -- no barrier between writing and reading the tile
// broken 2: out_of_bounds(put) -- a row too few

extern "C" __global__ void KERNEL(const int* X, int* Y) {
#ifdef BROKEN_2
  __shared__ int tile[31][33];
#else
  __shared__ int tile[32][33];
#endif
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const int row = blockIdx.x / 2 * 32, column = blockIdx.x % 2 * 32;
  for (int k = y; k < 32; k += 8) tile[k][x] = X[(row + k) * 64 + column + x];  // @put
#ifndef BROKEN_1
  __syncthreads();
#endif
  for (int k = y; k < 32; k += 8) Y[(column + k) * 64 + row + x] = tile[x][k];  // @get
}
