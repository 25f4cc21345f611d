// HGEMM by wgmma and TMA: one warpgroup only copies, and the others only multiply.
//
//   nvcc -arch=sm_90a -cubin warp_specialized.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N
//
// In tma.cu all threads meet in every iteration, and the next copies start when the last of them is there.
// Here a thread of the last warpgroup starts a copy as soon as its stage is free, and a warpgroup multiplies
// as soon as a stage is full, however far the others are: see ring.cuh. All stages except the one or two that
// are multiplied hold copies that have arrived or are under way. The roles need different numbers of
// registers: the sums of 64 x 256 take 128 as floats, and copies need few. The warpgroup that copies gives up
// most of its registers, and the others take them: see registers.cuh.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "registers.cuh"
#include "ring.cuh"
#include "k_tile.cuh"
#include "warpgroup_tile.cuh"

#ifndef NT
#define NT 1 // B is stored N x K, else K x N
#endif
#ifndef ACC
#define ACC half // sums: half or float
#endif
#ifndef IN
#define IN half // elements of A and B: half or __nv_bfloat16
#endif
#ifndef OUT
#define OUT ACC // elements of C: half, __nv_bfloat16 or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // N % 8 == 0; K % 8 == 0 in any case, for the maps
#endif
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64       // K tile
#define CONSUMERS 2 // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 4    // of the pipeline; each holds a K tile
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_warp_specialized(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
                       OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    const unsigned stages = shared_address(shared);
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int k_tiles = (K + BK - 1) / BK;

    if (threadIdx.x == 0 && threadIdx.y == CONSUMERS) {
        prefetch_map(A_map);
        prefetch_map(B_map);
        ring.initialise(CONSUMERS);
    }
    __syncthreads();

    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                Operands::load(stage, A_map, B_map, block_row, block_col, k0, barrier);
            });
    } else {
        RegistersOf<CONSUMERS>::take();
        const int first_row = warpgroup_number() * HEIGHT; // of the warpgroup in the block tile
        WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
        ring.multiply(state, stages, k_tiles, first_row, tile);
        tile.store<ALIGNED>(C, block_row + first_row, block_col, M, N);
    }
}
