// SGEMM with TMA: one thread starts the copies of K tiles as boxes, and mbarriers count their bytes.
//
//   nvcc -arch=sm_90a -cubin tma.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//   dynamic shared memory: 2 * BK * BM + STAGES * BK * (BM + BN) floats, transposed K tiles of A, then stages
//   maps: of A, boxes of BM x 32 under the swizzle of 128 bytes; of B, boxes of 32 x BN as they lie
//
// No thread computes an address in A or B or has a guard: a K tile is two instructions of one thread. Of
// STAGES stages, STAGES - 1 are filled or being filled while one is multiplied. A stage has an mbarrier,
// whose phase ends when all bytes of a K tile have arrived.
// TMA does not transpose. All threads transpose a K tile of A in shared memory before it is multiplied. Then
// comes the one barrier per K tile, after which the stage of the K tile before is free. Fragments are double
// buffered as in pipelined.cu, and a thread's FMA are in the order of serpentine.cu.

#include <cuda.h>

#include "../hgemm/barriers.cuh"
#include "../hgemm/boxes.cuh"
#include "../sizes.cuh"
#include "transposed_k_tile.cuh"
#include "warp_tiles.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 32 // K tile: rows of A of 128 bytes, for the swizzle
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define STAGES 3 // of the pipeline; each holds a K tile
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int FITTING = 1024 / (Tiles::THREAD_ROWS * Tiles::THREAD_COLS) / 2 * 2; // k whose FMA are 1024
constexpr int UNROLLED = FITTING < 2 ? 2 : FITTING > BK ? BK : FITTING;          // for the instruction cache
constexpr int BOX_OF_A = BM * BK, STAGE = (BM + BN) * BK; // floats
static_assert(BK == 32, "a row of a K tile of A is 128 bytes");
static_assert(STAGES >= 2, "a K tile must be copied while another is multiplied");

extern "C" __global__ void __launch_bounds__(Tiles::THREADS)
sgemm_tma(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
          float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) float shared[];
    __shared__ unsigned long long arrived[STAGES];
    float *const transposed = shared, *const stages = shared + 2 * BOX_OF_A;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    const int k_tiles = (K + BK - 1) / BK;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            initialise_barrier(shared_address(&arrived[stage]), 1);
        publish_barriers();
    }
    __syncthreads();

    const auto load = [&](int k_tile) {
        if (threadIdx.x == 0 && k_tile < k_tiles) {
            const unsigned barrier = shared_address(&arrived[k_tile % STAGES]);
            const unsigned stage = shared_address(stages + k_tile % STAGES * STAGE);
            fence_async_proxy(); // the copy comes behind what threads have read of the stage
            arrive_announcing(barrier, STAGE * sizeof(float));
            load_box(stage, A_map, block_row, k_tile * BK, barrier);
            load_box(stage + BOX_OF_A * sizeof(float), B_map, k_tile * BK, block_col, barrier);
        }
    };
    // Behind it the K tile is there and transposed, and no thread needs the K tile before.
    const auto transpose = [&](int k_tile) {
        transpose_k_tile<BM, Tiles::THREADS>(transposed + k_tile % 2 * BOX_OF_A, stages + k_tile % STAGES * STAGE,
                                      shared_address(&arrived[k_tile % STAGES]), k_tile / STAGES % 2);
    };
    __align__(16) float reg_a[2][Tiles::THREAD_ROWS], reg_b[2][Tiles::THREAD_COLS]; // of even k and of odd
    const auto read_fragments = [&](int k_tile, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], transposed + k_tile % 2 * BOX_OF_A + k * BM,
                            stages + k_tile % STAGES * STAGE + BOX_OF_A + k * BN);
    };
    float thread_results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};

#pragma unroll
    for (int k_tile = 0; k_tile < STAGES - 1; ++k_tile)
        load(k_tile);
    transpose(0);
    load(STAGES - 1);
    read_fragments(0, 0);
    const auto multiply = [&](int k) {
        part.multiply_in_serpentines(thread_results, reg_a[k % 2], reg_b[k % 2]);
    };
    const auto multiply_all_but_the_last = [&](int k_tile) {
#pragma unroll UNROLLED
        for (int k = 0; k < BK - 1; ++k) {
            read_fragments(k_tile, k + 1);
            multiply(k);
        }
    };
#pragma unroll 1
    for (int k_tile = 0; k_tile + 1 < k_tiles; ++k_tile) {
        multiply_all_but_the_last(k_tile);
        transpose(k_tile + 1);
        load(k_tile + STAGES);
        read_fragments(k_tile + 1, 0);
        multiply(BK - 1);
    }
    multiply_all_but_the_last(k_tiles - 1); // peeled, so that the loop has no guard for the last K tile
    multiply(BK - 1);
    part.write_results<true>(thread_results, C, block_row, block_col, M, N);
}
