// HGEMM where C is one column or one row: a matrix times a vector, which is bound by memory.
//
//   nvcc -arch=sm_80 -DNT=1 -DACC=half -cubin gemv.cu
//   block (lanes, BLOCK/lanes), lanes a power of two
//   N = 1, or NT: grid (ceil(M N / (BLOCK/lanes * TM)), parts); lanes share rows of A, or of B
//   else M = 1: grid (ceil(N / (lanes * width)), parts); lanes, at most 32, are neighbours in a row of B
//
// As sgemm/gemv.cu. A load of 16 bytes has eight elements. If rows are not multiples of 16 bytes, it has 4, 2
// or 1. Sums are of type ACC and rounded to C, of type OUT, once.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../gemv.cuh"
#include "../sizes.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads, 128 to 1024
#define TM 4    // of the matrix, that lanes share
#define LOADS 8   // of 16 bytes, under way per thread
#define VECTORS 1 // most columns of C, or rows
#endif
#ifndef NT
#define NT 1 // B is stored N x K; 0: K x N
#endif
#ifndef ACC
#define ACC half // accumulators
#endif
#ifndef IN
#define IN half // A and B
#endif
#ifndef OUT
#define OUT ACC // C
#endif

constexpr int PLACES = 1 << 18;
constexpr int WIDTH = 8; // elements of 16 bytes
// Most sums that warps leave in shared memory: the launch has no more lanes than these are for.
constexpr int LEFT = least(BLOCK * most(TM, WIDTH) * VECTORS, most(4096, BLOCK * most(8, VECTORS)));

extern "C" __global__ void __launch_bounds__(BLOCK)
hgemm_gemv(const IN *__restrict__ A, const IN *__restrict__ B, OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ ACC of_warps[LEFT];
    const bool of_a = N <= M;
    Gemv<IN, ACC, OUT, BLOCK, PLACES> product{
        of_a ? A : B, of_a ? B : A, C, of_a ? M : N, of_a ? N : M, K, of_a, of_a && !NT, of_warps};
    multiply_as_wide<WIDTH, VECTORS, TM, LOADS>(product, of_a || NT);
}
