// HGEMM by wgmma and TMA whose tiles have a free side: as many as fill the SMs, with A and B swapped or not.
//
//   nvcc -arch=sm_90a -cubin tile_shapes.cu
//   grid CLUSTER * min(PROGRAMS / CLUSTER, tiles of C / CLUSTER), block (128, CONSUMERS + 1),
//   CLUSTER = CLUSTER_M * CLUSTER_N blocks of a cluster
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them BOXES boxes of C for each
//   warpgroup that multiplies
//   maps: of A, boxes of BM / CLUSTER_N x 64; of B, of BN / CLUSTER_M x 64, or where it is stored K x N
//   64 x 64, or 64 / CLUSTER_M x 64 if BN is no multiple of 64 * CLUSTER_M; of C, boxes as in result_boxes.cuh
//   A box has at most 256 rows. More rows come in as few boxes as can have as many rows each.
//
// As tma_store.cu, with one side of a tile as free as wgmma's columns. With SWAP it computes C^T = B^T A^T:
// the rows of wgmma, multiples of 64, are columns of C, and its columns, multiples of 8, are rows of C. Without
// it columns are multiples of 16. With PART_COLUMNS each warpgroup that multiplies has all rows of a tile, as
// wgmma has them, and some of the columns. Blocks of a cluster have neighbouring tiles, and each loads a part
// of what several need for all of them. Rows of A, B and C must be multiples of 16 bytes.

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
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64        // K tile
#define CONSUMERS 2  // warpgroups that multiply
#define STAGES 4     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 2      // of C that a warpgroup has in shared memory
#define GROUP 16     // rows of tiles in a stripe
#define SWAP 0       // 1: A and B change places
#define PART_COLUMNS 0 // 1: warpgroups part a tile along wgmma's columns, else along its rows
#define CLUSTER_M 1    // blocks of a cluster along the rows of C
#define CLUSTER_N 1    // and along its columns
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
using Shape = TileShape<BM, BN, CONSUMERS, NT, SWAP, PART_COLUMNS, CLUSTER_M, CLUSTER_N>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void IN_CLUSTERS(CLUSTER_M, CLUSTER_N) __launch_bounds__(THREADS, 1)
hgemm_tile_shapes(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
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
