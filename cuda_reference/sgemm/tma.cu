// SGEMM whose slabs the copy engine (TMA) brings: one thread starts copies of boxes, and barriers count bytes.
//
//   nvcc -arch=sm_90a -cubin tma.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//   dynamic shared memory: 2 * BK * BM + STAGES * BK * (BM + BN) floats, the turned slabs of A, then the slots
//   maps: of A, boxes of BM x 32 under the swizzle of 128 bytes; of B, boxes of 32 x BN as they lie
//
// No thread computes an address in A or B or asks whether that is inside: a slab is two instructions of one
// thread. Slots form a ring: STAGES - 1 slabs are on their way or there while one is multiplied. A slot has a
// barrier whose phase ends when all bytes of a slab have come.
// The copy engine does not transpose. All threads turn a slab of A in shared memory before it is multiplied,
// and then meet: that is the one barrier of a slab, behind which the slot of the slab before is free.
// Fragments are double buffered as in pipelined.cu, and a thread's FMA are in the order of serpentine.cu.

#include <cuda.h>

#include "../hgemm/barriers.cuh"
#include "../hgemm/boxes.cuh"
#include "../sizes.cuh"
#include "turned_slab.cuh"
#include "warp_tiles.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 32 // extent of the slabs along K: rows of A of 128 bytes, for the swizzle
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define STAGES 3 // slots for slabs
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int FITTING = 1024 / (Tiles::THREAD_ROWS * Tiles::THREAD_COLS) / 2 * 2; // k whose FMA are 1024
constexpr int UNROLLED = FITTING < 2 ? 2 : FITTING > BK ? BK : FITTING;          // for the instruction cache
constexpr int BOX_OF_A = BM * BK, SLOT = (BM + BN) * BK; // floats
static_assert(BK == 32, "a row of a slab of A is 128 bytes");
static_assert(STAGES >= 2, "a slab must be copied while another is multiplied");

extern "C" __global__ void __launch_bounds__(Tiles::THREADS)
sgemm_tma(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
          float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) float shared[];
    __shared__ unsigned long long arrived[STAGES];
    float *const turned = shared, *const slots = shared + 2 * BOX_OF_A;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    const int slabs = (K + BK - 1) / BK;

    if (threadIdx.x == 0) {
        for (int slot = 0; slot < STAGES; ++slot)
            initialise_barrier(shared_address(&arrived[slot]), 1);
        publish_barriers();
    }
    __syncthreads();

    const auto load = [&](int slab) {
        if (threadIdx.x == 0 && slab < slabs) {
            const unsigned barrier = shared_address(&arrived[slab % STAGES]);
            const unsigned slot = shared_address(slots + slab % STAGES * SLOT);
            arrive_announcing(barrier, SLOT * sizeof(float));
            load_box(slot, A_map, block_row, slab * BK, barrier);
            load_box(slot + BOX_OF_A * sizeof(float), B_map, slab * BK, block_col, barrier);
        }
    };
    // Behind it the slab is there and turned, and nobody needs the slab before.
    const auto turn = [&](int slab) {
        turn_slab<BM, Tiles::THREADS>(turned + slab % 2 * BOX_OF_A, slots + slab % STAGES * SLOT,
                                      shared_address(&arrived[slab % STAGES]), slab / STAGES % 2);
    };
    __align__(16) float reg_a[2][Tiles::THREAD_ROWS], reg_b[2][Tiles::THREAD_COLS]; // of even k and of odd
    const auto read_fragments = [&](int slab, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], turned + slab % 2 * BOX_OF_A + k * BM,
                            slots + slab % STAGES * SLOT + BOX_OF_A + k * BN);
    };
    float thread_results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};

#pragma unroll
    for (int slab = 0; slab < STAGES - 1; ++slab)
        load(slab);
    turn(0);
    load(STAGES - 1);
    read_fragments(0, 0);
    const auto multiply = [&](int k) {
        part.multiply_in_serpentines(thread_results, reg_a[k % 2], reg_b[k % 2]);
    };
    const auto multiply_all_but_the_last = [&](int slab) {
#pragma unroll UNROLLED
        for (int k = 0; k < BK - 1; ++k) {
            read_fragments(slab, k + 1);
            multiply(k);
        }
    };
#pragma unroll 1
    for (int slab = 0; slab + 1 < slabs; ++slab) {
        multiply_all_but_the_last(slab);
        turn(slab + 1);
        load(slab + STAGES);
        read_fragments(slab + 1, 0);
        multiply(BK - 1);
    }
    multiply_all_but_the_last(slabs - 1); // apart, so that nothing in the loop asks whether a slab is left
    multiply(BK - 1);
    part.write_results<true>(thread_results, C, block_row, block_col, M, N);
}
