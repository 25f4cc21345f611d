// Sum of an array: the last 64 sums are one warp's work.
//
//   nvcc -arch=sm_80 -cubin unrolled_warp.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// The lanes of one warp need no barrier of the block among themselves, but they need __syncwarp, since Volta
// lets them run apart. With VOLATILE 1 the kernel is the idiom of older tutorials: volatile memory and no
// synchronisation. It is kept to show what is wrong with it, for it is right only if the warp happens to run
// in lockstep. (article 002, last warp unrolled)

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 128 to 1024
#endif
#ifndef VOLATILE
#define VOLATILE 0
#endif
#ifndef DTYPE
#define DTYPE int
#endif
#if VOLATILE
typedef volatile DTYPE TILE;
#else
typedef DTYPE TILE;
#endif

// The last 64 sums, by one warp. Lanes read, meet, write, meet: without __syncwarp a lane could read what
// another has not written yet, or write what another has not read yet.
static __device__ void fold_last_warp(TILE *tile, int t)
{
#if VOLATILE
#pragma unroll
    for (int s = 32; s > 0; s /= 2)
        tile[t] += tile[t + s];
#else
    DTYPE total = tile[t];
#pragma unroll
    for (int s = 32; s > 0; s /= 2) {
        total += tile[t + s];
        __syncwarp();
        tile[t] = total;
        __syncwarp();
    }
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_unrolled_warp(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
    __shared__ TILE tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * 2 * BLOCK + t;
    tile[t] = (i < N ? X[i] : DTYPE(0)) + (i + BLOCK < N ? X[i + BLOCK] : DTYPE(0));
    __syncthreads();

#pragma unroll 1
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
