// Sum of an array: all steps unrolled.
//
//   nvcc -arch=sm_80 -cubin unrolled.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// The block size is known when the kernel is compiled, so the steps that remain before the last warp take
// over become straight code: no loop counter, no comparison with it. (article 002, completely unrolled)

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 128 to 1024
#endif
#ifndef DTYPE
#define DTYPE int
#endif

// The last 64 sums, by one warp: lanes read, meet, write, meet.
static __device__ void fold_last_warp(DTYPE *tile, int t)
{
    DTYPE total = tile[t];
#pragma unroll
    for (int s = 32; s > 0; s /= 2) {
        total += tile[t + s];
        __syncwarp();
        tile[t] = total;
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_unrolled(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
    __shared__ DTYPE tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * 2 * BLOCK + t;
    tile[t] = (i < N ? X[i] : DTYPE(0)) + (i + BLOCK < N ? X[i + BLOCK] : DTYPE(0));
    __syncthreads();

#pragma unroll
    for (int s = BLOCK / 2; s > 32; s /= 2) {
        if (t < s)
            tile[t] += tile[t + s];
        __syncthreads();
    }
    if (t < 32)
        fold_last_warp(tile, t);
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
