// SGEMM double buffered twice: tiles come to shared memory through registers, fragments to registers, while
// others are multiplied.
//
//   nvcc -arch=sm_80 -cubin pipelined.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// A turn of the loop over tiles multiplies one tile, stores the next, which is in registers, to the other
// stage in shared memory, reads the one after it from global memory into these registers, and passes one
// barrier: before it all warps have read the last of the present tile, behind it the next one is there. The
// reads have the whole next multiplication to arrive; before the barrier they stay early, while from the head
// of the loop the compiler moves them down among the FMA, to save registers.
// Fragments are read one k ahead: those of k + 1 before the FMA of k, the first of the next tile before the
// last FMA of this one. The last turns read tiles beyond K, zeros without a read of global memory, which
// nobody multiplies: that is cheaper than a second copy of the FMA. Both stages are unrolled: so addresses
// are constants.
// Rows of the tile of A are PADDING longer than BM: the four elements of a float4 go to four rows, and with
// PADDING 4 the stores of a warp meet no bank twice. Lanes stand in pairs of rows as in lane_quads.cu. The
// thread tile is 8 x 16, the largest that registers hold, and its FMA go down one column after the other.
// All of it exists twice, for rows that float4s can take and for others, and the kernel chooses once.

#include "../sizes.cuh"
#include "tiles_in_registers.cuh"
#include "warp_tiles.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8  // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define PADDING 4 // floats that pad the rows of the tile of A
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
static_assert(Tiles::LANES_M % 2 == 0, "lanes must stand in pairs of rows");
static_assert(BK % 2 == 0 && PADDING % 4 == 0, "fragments must alternate, rows must be float4s");

template <bool ALIGNED>
static __device__ __forceinline__ void multiply(const float *__restrict__ A, const float *__restrict__ B,
                                                float *__restrict__ C, int M, int N, int K,
                                                float (&tile_a)[2][BK][BM + PADDING],
                                                float (&tile_b)[2][BK][BN])
{
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    float thread_results[WMITER * TM][WNITER * TN] = {{0.0f}};

    TilesInRegisters<Tiles::THREADS, BM, BN, BK, ALIGNED> copies(block_row, block_col, M, N, K);
    __align__(16) float reg_a[2][WMITER * TM], reg_b[2][WNITER * TN]; // of even k and of odd
    auto read_fragments = [&](int stage, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], tile_a[stage][k], tile_b[stage][k]);
    };
    auto multiply_k = [&](int k) {
#pragma unroll
        for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int m = 0; m < TM; ++m)
#pragma unroll
                    for (int sub_row = 0; sub_row < WMITER; ++sub_row)
                        thread_results[sub_row * TM + m][sub_col * TN + n] +=
                            reg_a[k % 2][sub_row * TM + m] * reg_b[k % 2][sub_col * TN + n];
    };

    copies.read(A, B, N, K, K);
    copies.store(tile_a[0], tile_b[0]);
    copies.read(A, B, N, K, K - BK);
    __syncthreads();
    read_fragments(0, 0);
    int k_left = K; // from the tile to be multiplied on
    while (k_left > 0) {
#pragma unroll
        for (int stage = 0; stage < 2; ++stage) {
            if (k_left <= 0)
                break;
            k_left -= BK;
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read_fragments(stage, k + 1);
                multiply_k(k);
            }
            copies.store(tile_a[1 - stage], tile_b[1 - stage]);
            copies.read(A, B, N, K, k_left - BK);
            __syncthreads();
            read_fragments(1 - stage, 0);
            multiply_k(BK - 1);
        }
    }

    part.write_results<ALIGNED>(thread_results, C, block_row, block_col, M, N);
}

extern "C" __global__ void __launch_bounds__(Tiles::THREADS, 2)
sgemm_pipelined(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    if (K % 4 == 0 && N % 4 == 0)
        multiply<true>(A, B, C, M, N, K, tile_a, tile_b);
    else
        multiply<false>(A, B, C, M, N, K, tile_a, tile_b);
}
