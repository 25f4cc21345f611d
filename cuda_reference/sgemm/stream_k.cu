// SGEMM as serpentine.cu does it, by programs that share along K the tiles that are left of whole rounds.
//
//   nvcc -arch=sm_80 -cubin stream_k.cu
//   grid min(PROGRAMS, 8 tiles of C, slabs of all tiles), block (BM/WM * BN/WN * 32); where nothing is shared, see
//   below, grid (ceil(N/BN), ceil(M/BM)) as of serpentine.cu
//
// A program is a block that computes tile after tile of C; of whole rounds each has one. The first tiles, those that
// are left of whole rounds, are shared: their slabs, two tiles of A and B each, tile after tile, are cut into equal
// shares. Who has the first slab of a tile stores its sums, and who has later ones adds to these, in the order of
// programs: see added_sums.cuh. A program begins with the tile that its share ends in, which it stores, so that
// the next program need not wait when it comes to what it adds to that tile.
// Nothing is shared where programs would save less than WORTH slabs each, where K is no multiple of a slab, and
// where rows are no multiples of 16 bytes.
// Marks are a variable of the module: launches of this kernel must follow one another.

#include "../program_shares.cuh"
#include "../sizes.cuh"
#include "added_sums.cuh"
#include "double_buffering.cuh"

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
#define PADDING 4    // floats that pad the rows of the tile of A
#define PROGRAMS 264 // most blocks of the grid
#define WORTH 12     // slabs that sharing must save a program
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int SLAB = 2 * BK, WARPS = Tiles::THREADS / 32;
constexpr int MOST_PARTS = 8; // of a tile

extern "C" __global__ void __launch_bounds__(Tiles::THREADS, 2)
sgemm_stream_k(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    auto multiply = [](float (&results)[WMITER * TM][WNITER * TN], const float (&reg_a)[WMITER * TM],
                       const float (&reg_b)[WNITER * TN]) {
        Tiles::multiply_in_serpentines(results, reg_a, reg_b);
    };
    const bool aligned = K % 4 == 0 && N % 4 == 0;
    const int cols = (N + BN - 1) / BN, tiles = (M + BM - 1) / BM * cols, slabs = K / SLAB;
    const int programs = min(PROGRAMS, tiles * min(MOST_PARTS, slabs)), streamed = programs ? tiles % programs : 0;
    if (!aligned || K % SLAB != 0 || streamed == 0 || (programs - streamed) * slabs < WORTH * programs) {
        if (aligned)
            multiply_double_buffered<Tiles, true>(A, B, C, M, N, K, 0, K, tile_a, tile_b, multiply);
        else
            multiply_double_buffered<Tiles, false>(A, B, C, M, N, K, 0, K, tile_a, tile_b, multiply);
        return;
    }

    const int program = blockIdx.x, each = streamed * slabs / programs, extra = streamed * slabs % programs;
    const int begin = first_slab_of(program, each, extra), end = first_slab_of(program + 1, each, extra);
    const int last_tile = (end - 1) / slabs, parts = last_tile - begin / slabs + 1;
    const Tiles part = part_of_thread<Tiles>();
    for (int turn = 0; turn < parts + (tiles - streamed) / programs; ++turn) {
        const int tile = turn < parts ? last_tile - turn : streamed + program + (turn - parts) * programs;
        const int first = max(begin - tile * slabs, 0);
        const int behind = tile < streamed ? min(end - tile * slabs, slabs) : slabs;
        const int block_row = tile / cols * BM, block_col = tile % cols * BN;
        float results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};
        add_products<Tiles, true>(part, results, A, B, M, N, K, block_row, block_col, first * SLAB,
                                  (behind - first) * SLAB, tile_a, tile_b, multiply);
        wait_for_sums<PROGRAMS, WARPS>(first > 0, program);
        if (first == 0)
            part.write_results<true>(results, C, block_row, block_col, M, N);
        else
            part.for_each_four(results, [&](int r, int c, const float *values) {
                if (block_row + r < M && block_col + c < N)
                    add_four(C[(block_row + r) * N + block_col + c], *values);
            });
        leave_mark<PROGRAMS, WARPS>(behind < slabs, program);
        __syncthreads(); // all warps have read the last tile, in the place of the next one
    }
}
