// Sum of an array at the speed of memory: 16-byte loads, several under way.
//
//   nvcc -arch=sm_80 -cubin vectorized.cu
//   grid (ceil(N/(4 UNROLL BLOCK), at most MOST_BLOCKS)), block (BLOCK)
//   Y[b] is the sum of block b's share; launched again on Y until one sum is left
//
// Four sums per thread, loaded and added four at a time; UNROLL loads are independent of each other, so that
// many are under way at once. The loop over the array is a grid-stride loop, with one iteration unless the
// grid is at its limit of MOST_BLOCKS. A length that is not a multiple of 4 leaves up to three elements,
// which block 0 adds.

#include "../sizes.cuh"
#include "shuffle.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 32 to 1024
#endif
#ifndef UNROLL
#define UNROLL 8              // 16-byte loads under way per thread
#define MOST_BLOCKS (1 << 17) // the launch keeps to it
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 32 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 32 on");

struct __align__(16) Vector {
    DTYPE x, y, z, w;
};

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_vectorized(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    const Vector *vectors = reinterpret_cast<const Vector *>(X);
    const int count = N / 4;
    const int stride = gridDim.x * BLOCK;
    Vector sums = {0, 0, 0, 0};
    for (int first = blockIdx.x * BLOCK + threadIdx.x; first < count; first += UNROLL * stride) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int i = first + u * stride;
            if (i < count) {
                const Vector v = vectors[i];
                sums.x += v.x;
                sums.y += v.y;
                sums.z += v.z;
                sums.w += v.w;
            }
        }
    }
    DTYPE total = sums.x + sums.y + sums.z + sums.w;
    if (blockIdx.x == 0 && threadIdx.x < N % 4)
        total += X[count * 4 + threadIdx.x];
    total = fold_block<BLOCK>(total);
    if (threadIdx.x == 0)
        Y[blockIdx.x] = total;
}
