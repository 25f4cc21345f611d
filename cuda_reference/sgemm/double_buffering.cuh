// Double buffering twice, of tiles in shared memory and of fragments in registers. Tiles come to shared
// memory through registers.
#pragma once

#include "tile_starts.cuh"
#include "tiles_in_registers.cuh"
#include "warp_tiles.cuh"

// Where a thread stands in a block's tile: lanes two by two.
template <class Tiles> static __device__ __forceinline__ Tiles part_of_thread(int thread)
{
    static_assert(Tiles::LANES_M % 2 == 0, "lanes must stand in pairs of rows");
    const int lane = thread % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    return Tiles(thread / 32, lane_row, lane_col);
}

// Adds the products of `terms` of K, from k = first on, to the sums of a thread, for the tile of C that
// begins at (block_row, block_col). Tiles are WarpTiles, `part` is those of the thread; multiply(results, a,
// b) adds the products of the fragments of one k.
//
// An iteration of the loop over tiles multiplies one tile, stores the next, which is in registers, to the
// other stage in shared memory, reads the one after it from global memory into these registers, and passes
// one barrier. Before the barrier all warps have read the last of the present tile, and after it the next
// tile is there. The reads have the whole next multiplication to arrive. Before the barrier they stay early;
// at the head of the loop the compiler would move them down among the FMA, to save registers. Fragments are
// read one k ahead: those of k + 1 before the FMA of k, the first of the next tile before the last FMA of
// this one. The last iterations read tiles beyond K, which are zeros without a read of global memory and are
// not multiplied. That is cheaper than a second copy of the FMA. Both stages are unrolled, so that addresses
// are constants. ALIGNED promises K % 4 == 0 and N % 4 == 0: then rows are read four floats at a time.
template <class Tiles, bool ALIGNED, int DEPTH, int A_ROW, int B_ROW, typename Multiply>
static __device__ __forceinline__ void
add_products(const Tiles &part, float (&thread_results)[Tiles::THREAD_ROWS][Tiles::THREAD_COLS],
             const float *__restrict__ A, const float *__restrict__ B, int M, int N, int K, int block_row,
             int block_col, int first, int terms, float (&tile_a)[2][DEPTH][A_ROW],
             float (&tile_b)[2][DEPTH][B_ROW], Multiply multiply)
{
    static_assert(DEPTH % 2 == 0 && A_ROW % 4 == 0, "fragments must alternate, rows must be float4s");
    TilesInRegisters<Tiles::THREADS, Tiles::ROWS, Tiles::COLS, DEPTH, ALIGNED, !ALIGNED> copies(
        block_row, block_col, first, M, N, K);
    __align__(16) float reg_a[2][Tiles::THREAD_ROWS], reg_b[2][Tiles::THREAD_COLS]; // of even k and of odd
    auto read_fragments = [&](int stage, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], tile_a[stage][k], tile_b[stage][k]);
    };

    copies.read(A, B, N, K, terms);
    copies.store(tile_a[0], tile_b[0]);
    copies.read(A, B, N, K, terms - DEPTH);
    __syncthreads();
    read_fragments(0, 0);
    int k_left = terms; // from the tile to be multiplied on
    while (k_left > 0) {
#pragma unroll
        for (int stage = 0; stage < 2; ++stage) {
            if (k_left <= 0)
                break;
            k_left -= DEPTH;
#pragma unroll
            for (int k = 0; k < DEPTH - 1; ++k) {
                read_fragments(stage, k + 1);
                multiply(thread_results, reg_a[k % 2], reg_b[k % 2]);
            }
            copies.store(tile_a[1 - stage], tile_b[1 - stage]);
            copies.read(A, B, N, K, k_left - DEPTH);
            __syncthreads();
            read_fragments(1 - stage, 0);
            multiply(thread_results, reg_a[(DEPTH - 1) % 2], reg_b[(DEPTH - 1) % 2]);
        }
    }
}

// C of a block: the sums of `terms` products from k = first on. Blocks along z have a matrix of C each, whose
// rows are `pitch` floats apart. rows: shared memory for C, see write_results_in_rows; nullptr where each
// lane writes its own elements.
template <class Tiles, bool ALIGNED, int DEPTH, int A_ROW, int B_ROW, typename Multiply>
static __device__ __forceinline__ void
multiply_double_buffered(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
                         int M, int N, int K, int first, int terms, int pitch, float (&tile_a)[2][DEPTH][A_ROW],
                         float (&tile_b)[2][DEPTH][B_ROW], Multiply multiply, float *rows = nullptr)
{
    const int first_row = blockIdx.y * Tiles::ROWS, first_col = blockIdx.x * Tiles::COLS; // written here
    const int block_row = tile_start<Tiles::ROWS, ALIGNED>(first_row, M);
    const int block_col = tile_start<Tiles::COLS, ALIGNED>(first_col, N);
    const Tiles part = part_of_thread<Tiles>(threadIdx.x);
    float thread_results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};

    add_products<Tiles, ALIGNED>(part, thread_results, A, B, M, N, K, block_row, block_col, first, terms, tile_a,
                                 tile_b, multiply);

    C += blockIdx.z * M * pitch;
    if (rows)
        part.write_results_in_rows(rows, first_row, first_col, thread_results, C, block_row, block_col, M, N,
                                   pitch);
    else if constexpr (ALIGNED)
        part.template write_results<true>(thread_results, C, block_row, block_col, M, N);
    else
        part.write_results_from(first_row, first_col, thread_results, C, block_row, block_col, M, N, pitch);
}
