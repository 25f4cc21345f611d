// SGEMM as serpentine.cu does it, by programs that share along K the tiles that do not fill a whole round.
//
//   nvcc -arch=sm_80 -cubin stream_k.cu
//   grid min(PROGRAMS, 8 * tiles of C, tiles of C * pairs of K tiles), block (BM/WM * BN/WN * 32)
//   if nothing is shared, see below: grid (ceil(N/BN), ceil(M/BM)), as in serpentine.cu
//
// Stream-K: a program is a persistent block; in whole rounds each program computes a tile of C. The tiles
// that do not fill a whole round come first, and are shared. If they are few, the tiles of one whole round
// are shared with them. The K tiles of all shared tiles, in pairs and tile after tile, are cut into equal
// shares. The program with the first pair of a tile stores its sums, and programs with later pairs add to
// these, in the order of programs: see added_sums.cuh. A program begins with the tile in which its share
// ends, and stores it, so that the next program need not wait when it adds to that tile. If sharing would
// save a program fewer than WORTH pairs, nothing is shared. The last pair of a tile may have less of K than
// others. Rows that are not a multiple of 16 bytes are read and written float by float. The schedule writes
// such a C through shared memory. In the twin nvcc would then choose registers in which two of three operands
// of most FMA are in one bank. By the model of `tir-schedules inspect` the loop over K would take 1.4 times
// as long. So the twin does not use the dynamic shared memory that the schedule is launched with. Marks are a
// variable of the module, so launches of this kernel must follow one another.

#include "../program_shares.cuh"
#include "../sizes.cuh"
#include "added_sums.cuh"
#include "double_buffering.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8  // K tile
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define PADDING 4    // floats that pad the rows of the tile of A
#define PROGRAMS 264 // most blocks of the grid
#define WORTH 8      // pairs of K tiles that sharing must save a program
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int K_PAIR = 2 * BK, WARPS = Tiles::THREADS / 32;
constexpr int MOST_PARTS = 8; // of a tile

// What a program does in an iteration: the tile at (row, col), and the terms of K from `first` on and before
// `behind`. A row of M or more: no tile is left.
struct Piece {
    int row, col, first, behind;
};

// A number that the compiler does not recognise as one that it already has, so that values that depend on it
// are computed anew. Kept in registers, they would push out sums.
static __device__ __forceinline__ int anew(int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

// The piece of an iteration, computed anew wherever it is asked for.
static __device__ __forceinline__ Piece piece_of(int iteration, int M, int N, int K)
{
    const int program = anew(blockIdx.x);
    iteration = anew(iteration);
#ifndef SIZE_M
    M = anew(M), N = anew(N), K = anew(K);
#endif
    const int cols = (N + BN - 1) / BN, tiles = (M + BM - 1) / BM * cols;
    const auto make_piece = [&](int tile, int first, int behind) {
        return Piece{tile / cols * BM, tile % cols * BN, first, behind};
    };
    const int k_pairs = (K + K_PAIR - 1) / K_PAIR, programs = max(min(PROGRAMS, tiles * min(MOST_PARTS, k_pairs)), 1);
    const int left = tiles % programs;
    if (left == 0 || (programs - left) * k_pairs < WORTH * programs)
        return make_piece(iteration == 0 ? static_cast<int>(blockIdx.y) * cols + program : tiles, 0, K);
    const int shared = left * MOST_PARTS < programs ? left + programs : left; // tiles that programs share
    const int each = shared * k_pairs / programs, extra = shared * k_pairs % programs;
    const int begin = share_start(program, each, extra), end = share_start(program + 1, each, extra);
    const int last_tile = (end - 1) / k_pairs, parts = last_tile - begin / k_pairs + 1;
    if (iteration >= parts)
        return make_piece(shared + program + (iteration - parts) * programs, 0, K);
    const int tile = last_tile - iteration, before = tile * k_pairs;
    return make_piece(tile, max(begin - before, 0) * K_PAIR, min((end - before) * K_PAIR, K));
}

// Sums of a piece to C, or with ADDS added to C. ALIGNED promises N % 4 == 0. The place of the thread and the
// address of C are computed anew, like the piece.
template <bool ALIGNED, bool ADDS, typename Results>
static __device__ __forceinline__ void leave_sums(const Results &results, float *__restrict__ C, const Piece &piece,
                                                  int M, int N)
{
    const Tiles part = part_of_thread<Tiles>(anew(threadIdx.x));
    const int row = tile_start<BM, ALIGNED>(piece.row, M), col = tile_start<BN, ALIGNED>(piece.col, N);
    C += anew(0);
    if constexpr (ALIGNED && ADDS)
        part.for_each_four(results, [&](int r, int c, const float *values) {
            if (row + r < M && col + c < N)
                add_four(C[(row + r) * N + col + c], *values);
        });
    else if constexpr (ADDS)
        part.for_each_from(piece.row, piece.col, results, row, col, M, N, N,
                           [&](int index, float value) { add_one(C[index], value); });
    else if constexpr (ALIGNED)
        part.write_results<true>(results, C, row, col, M, N);
    else
        part.write_results_from(piece.row, piece.col, results, C, row, col, M, N, N);
}

template <bool ALIGNED>
static __device__ __forceinline__ void multiply_pieces(const float *__restrict__ A, const float *__restrict__ B,
                                                       float *__restrict__ C, int M, int N, int K,
                                                       float (&tile_a)[2][BK][BM + PADDING],
                                                       float (&tile_b)[2][BK][BN])
{
    auto multiply = [](float (&results)[WMITER * TM][WNITER * TN], const float (&reg_a)[WMITER * TM],
                       const float (&reg_b)[WNITER * TN]) {
        Tiles::multiply_in_serpentines(results, reg_a, reg_b);
    };
    const Tiles part = part_of_thread<Tiles>(threadIdx.x);
    for (int iteration = 0;; ++iteration) {
        Piece piece = piece_of(iteration, M, N, K);
        if (piece.row >= M)
            break;
        float results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};
        add_products<Tiles, ALIGNED>(part, results, A, B, M, N, K, tile_start<BM, ALIGNED>(piece.row, M),
                                     tile_start<BN, ALIGNED>(piece.col, N), piece.first,
                                     piece.behind - piece.first, tile_a, tile_b, multiply);
        piece = piece_of(iteration, M, N, K);
        wait_for_sums<PROGRAMS, WARPS>(piece.first > 0, anew(blockIdx.x));
        if (piece.first == 0)
            leave_sums<ALIGNED, false>(results, C, piece, M, N);
        else
            leave_sums<ALIGNED, true>(results, C, piece, M, N);
        leave_mark<PROGRAMS, WARPS>(piece.behind < K, anew(blockIdx.x));
        __syncthreads(); // all warps have read the last tile, in the place of the next one
    }
}

extern "C" __global__ void __launch_bounds__(Tiles::THREADS, 2)
sgemm_stream_k(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    if (N % 4 == 0 && K % 4 == 0)
        multiply_pieces<true>(A, B, C, M, N, K, tile_a, tile_b);
    else
        multiply_pieces<false>(A, B, C, M, N, K, tile_a, tile_b);
}
