// HGEMM by wgmma and TMA whose blocks share a tile of C along K: each leaves the sums of a part of K.
//
//   nvcc -arch=sm_90a -cubin split_k.cu
//   before: repack.cu of A, of B, where their rows are not a multiple of LINE bytes
//   grid (CLUSTER * min(PROGRAMS / parts / CLUSTER, tiles of C / CLUSTER), 1, parts), block (128, CONSUMERS + 1),
//   CLUSTER = CLUSTER_M * CLUSTER_N blocks of a cluster
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them BOXES boxes of C for each
//   warpgroup that multiplies
//   maps: as those of repacked.cu
//   C: of several parts a matrix of floats for each, whose rows are filled up to multiples of 16 bytes;
//   split_k_sum.cu adds them up. Of one part it is C
//
// As repacked.cu, with a part of K for each block along z. All parts have the same number of K tiles;
// elements of the last part beyond K read as 0. Sums of halves are stored as floats, too, so that adding them
// up rounds once. SPLITS goes to the launch: 0 leaves the number of parts to the shape. With BOXES there is
// one part.

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
#define STAGES 4     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 0      // of C that a warpgroup has in shared memory; 0: C is written from registers
#define GROUP 16     // rows of tiles in a stripe
#define LINE 16      // bytes. Rows of A and B are multiples of it, or they are copied before
#define SPLITS 0     // parts of K, at most
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
hgemm_split_k(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
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
hgemm_split_k(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
              void *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Shape::RingOf<STAGES> ring;
    begin<Shape::WARPGROUPS>(ring, A_map, B_map);
    overlap_launches();
    const int k_tiles = ((K + BK - 1) / BK + gridDim.z - 1) / gridDim.z; // of a part
    const int pitch = (N + 3) / 4 * 4;                                  // of a row of a part of C
    float *const part = static_cast<float *>(C) + static_cast<size_t>(blockIdx.z) * M * pitch;
    OUT *const whole = static_cast<OUT *>(C);
    multiply_tiles<Shape, GROUP, ACC, IN>(
        shared_address(shared), ring, A_map, B_map, M, N, blockIdx.z * k_tiles * BK, k_tiles,
        [&](const auto &tile, int row, int col) {
            if (gridDim.z > 1)
                store_from_registers<Shape, true>(tile, part, row, col, M, pitch);
            else
                store_by_threads<Shape, STAGES, BOXES>(shared_address(shared), tile, whole, row, col, M, N);
        });
}
#endif
