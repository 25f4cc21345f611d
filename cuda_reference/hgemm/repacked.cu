// HGEMM by wgmma and TMA, of any shape: rows that the copy engine does not take were copied before.
//
//   nvcc -arch=sm_90a -cubin repacked.cu
//   before: repack.cu of A, of B, where their rows are not a multiple of LINE bytes
//   grid and block as those of tile_shapes.cu
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them BOXES boxes of C for each
//   warpgroup that multiplies
//   maps: of A and B as those of tile_shapes.cu, or of their copies, with the extents of A and B; of C if the
//   copy engine takes its rows
//
// As tile_shapes.cu if rows of C are multiples of 16 bytes. Else threads copy boxes of C to their place, or
// write C from registers if BOXES is 0. The kernel does not depend on which array a map is of.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "programs.cuh"

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
#ifndef C_ALIGNED
#define C_ALIGNED 1 // rows of C are multiples of 16 bytes
#endif
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64        // K tile
#define CONSUMERS 2  // warpgroups that multiply
#define STAGES 3     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 4      // of C that a warpgroup has in shared memory; 0: C is written from registers
#define GROUP 16     // rows of tiles in a stripe
#define LINE 16      // bytes. Rows of A and B are multiples of it, or they are copied before
#define SWAP 0       // 1: A and B change places
#define PART_COLUMNS 0 // 1: warpgroups part a tile along wgmma's columns, else along its rows
#define CLUSTER_M 1    // blocks of a cluster along the rows of C
#define CLUSTER_N 1    // and along its columns
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
using Shape = TileShape<BM, BN, CONSUMERS, NT, SWAP, PART_COLUMNS, CLUSTER_M, CLUSTER_N>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

#if BOXES && C_ALIGNED
extern "C" __global__ void IN_CLUSTERS(CLUSTER_M, CLUSTER_N) __launch_bounds__(THREADS, 1)
hgemm_repacked(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
               const __grid_constant__ CUtensorMap C_map, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Shape::RingOf<STAGES> ring;
    begin<Shape::WARPGROUPS>(ring, A_map, B_map, C_map);
    overlap_launches();
    multiply_tiles_through_boxes<Shape, GROUP, ACC, IN, OUT, BOXES>(
        shared_address(shared), ring, A_map, B_map, C_map, M, N, (K + BK - 1) / BK);
}
#else
extern "C" __global__ void IN_CLUSTERS(CLUSTER_M, CLUSTER_N) __launch_bounds__(THREADS, 1)
hgemm_repacked(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
               OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Shape::RingOf<STAGES> ring;
    begin<Shape::WARPGROUPS>(ring, A_map, B_map);
    overlap_launches();
    multiply_tiles<Shape, GROUP, ACC, IN>(
        shared_address(shared), ring, A_map, B_map, M, N, 0, (K + BK - 1) / BK,
        [&](const auto &tile, int row, int col) {
            store_by_threads<Shape, STAGES, BOXES>(shared_address(shared), tile, C, row, col, M, N);
        });
}
#endif
