// SGEMM where C has one column or one row, or up to VECTORS: a matrix times vectors, which is bound by memory.
//
//   nvcc -arch=sm_80 -cubin gemv.cu
//   block (lanes, BLOCK/lanes), lanes a power of two
//   N <= M: grid (ceil(M / (BLOCK/lanes * TM)), parts); lanes share rows of A
//   N > M: grid (ceil(N / (lanes * width)), parts); lanes, at most 32, are neighbours in a row of B. With NT B is
//   stored as N x K, and the launch is that of N <= M, with N in place of M
//
// A load has 16 bytes if the rows of the matrix are multiples of 16 bytes, else 8 or 4; width is its floats.
// Each thread has sums in registers. Lanes fold them by shuffles, warps by shared memory. Blocks along y have
// parts of K, and the last of them adds up their sums, in order, see last_block.cuh. If K has several parts,
// the number of a block's sums is a power of two and at most BLOCK. All parts together have at most PLACES
// sums. Launches must follow one another.

#include "../gemv.cuh"
#include "../sizes.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads, 128 to 1024
#define TM 4    // of A, that lanes share
#define LOADS 8   // of 16 bytes, under way per thread
#define VECTORS 1 // most columns of C, or rows
#endif
#ifndef NT
#define NT 0 // B is stored K x N; 1: N x K
#endif

constexpr int PLACES = 1 << 18;
constexpr int WIDTH = 4; // elements of 16 bytes
// Sums that warps leave; the launch has so many lanes that there are no more.
constexpr int LEFT = least(BLOCK * most(TM, WIDTH) * VECTORS, most(4096, BLOCK * most(8, VECTORS)));

extern "C" __global__ void __launch_bounds__(BLOCK)
sgemm_gemv(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ float of_warps[LEFT];
    const bool of_a = N <= M;
    Gemv<float, float, float, BLOCK, PLACES> product{
        of_a ? A : B, of_a ? B : A, C, of_a ? M : N, of_a ? N : M, K, of_a, of_a && !NT, of_warps};
    multiply_as_wide<WIDTH, VECTORS, TM, LOADS>(product, of_a || NT);
}
