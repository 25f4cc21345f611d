// Sum of an array in one launch: the last block adds up the sums of all blocks.
//
//   nvcc -arch=sm_80 -cubin single_pass.cu
//   grid (1, ceil(N/(4 UNROLL BLOCK)), at most MOST_BLOCKS), block (BLOCK)
//   Y[0] is the sum
//
// Each block sums its share as in vectorized.cu and leaves the sum in memory, with a mark. The last one waits for
// the marks and adds the sums, always in the same order, so that floats have the same sum in each run. FENCED:
// blocks count themselves behind a fence, and the one that counts last adds. Sums, marks and counter are
// variables of the module: launches of this kernel must follow one another. A length that is not a multiple
// of 4 is summed in single elements.

#include "../sizes.cuh"
#include "last_block.cuh"
#include "shuffle.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 32 to 1024
#endif
#ifndef UNROLL
#define UNROLL 4         // loads under way per thread
#define MOST_BLOCKS 1056 // the launch keeps to it
#define FENCED 0         // 1: a fence and a counter in place of marks
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 32 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 32 on");

struct __align__(16) Vector {
    DTYPE x, y, z, w;
};

static __device__ void add(DTYPE &sums, DTYPE x)
{
    sums += x;
}

static __device__ void add(Vector &sums, Vector v)
{
    sums.x += v.x;
    sums.y += v.y;
    sums.z += v.z;
    sums.w += v.w;
}

// Sum of a thread's share of the elements, or of the vectors of four.
template <typename Element> static __device__ Element sum_of_share(const Element *elements, unsigned count)
{
    const unsigned stride = gridDim.y * BLOCK;
    Element sums = {};
    for (unsigned first = blockIdx.y * BLOCK + threadIdx.x; first < count; first += UNROLL * stride) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const unsigned i = first + u * stride;
            if (i < count)
                add(sums, elements[i]);
        }
    }
    return sums;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_single_pass(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    DTYPE total;
    if (N % 4 == 0) {
        const Vector sums = sum_of_share(reinterpret_cast<const Vector *>(X), N / 4);
        total = sums.x + sums.y + sums.z + sums.w;
    } else {
        total = sum_of_share(X, N);
    }
    store_sum_of_blocks<BLOCK, MOST_BLOCKS, FENCED>(fold_block<BLOCK>(total), Y);
}
