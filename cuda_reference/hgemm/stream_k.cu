// HGEMM by wgmma and TMA: Stream-K, programs share along K the tiles that do not fill a whole round.
//
//   nvcc -arch=sm_90a -cubin stream_k.cu
//   grid at most PROGRAMS, block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them for each of CONSUMERS
//   min(BOXES, boxes of its tile) boxes of 8 KiB
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N; of C, boxes of 64
//   rows of 128 bytes
//
// tma_store.cu takes tiles in rounds, and in the last round some SMs have no tile. Here programs share the
// tiles that do not fill a whole round, and those of one full round more. These are the first tiles. Their K
// tiles, tile after tile, are cut into equal shares. The program with the end of a tile leaves its sums in
// memory, with a mark for each warp. The program with its first K tile waits for these, adds them in the
// order of programs and stores the tile: see streamed_parts.cuh. Programs are numbered backwards, so that
// blocks wait for blocks that began before them. Adding up the parts of a tile takes time. So programs share
// only if that saves each of them at least WORTH K tiles for each part of a tile besides the first. Sums and
// marks are variables of the module: launches of this kernel must follow one another. Rows of C must be
// multiples of 16 bytes.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "registers.cuh"
#include "result_boxes.cuh"
#include "ring.cuh"
#include "k_tile.cuh"
#include "streamed_parts.cuh"
#include "tile_order.cuh"
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
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64       // K tile
#define CONSUMERS 2 // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 3    // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 4     // of C that a warpgroup has in shared memory
#define GROUP 16     // rows of tiles in a stripe
#define WORTH 16     // K tiles that sharing must save a program for each other part of a tile
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
using Result = ResultBoxes<HEIGHT, BN, OUT, BOXES>;
constexpr int WARPS = CONSUMERS * 4;
constexpr int VECTORS = HEIGHT * BN * sizeof(ACC) / (16 * WARPGROUP); // of a thread's sums
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_stream_k(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
               const __grid_constant__ CUtensorMap C_map, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    const unsigned stages = shared_address(shared);
    const int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN; // of tiles
    const int k_tiles = (K + BK - 1) / BK;

    if (threadIdx.x == 0 && threadIdx.y == CONSUMERS) {
        prefetch_map(A_map);
        prefetch_map(B_map);
        prefetch_map(C_map);
        ring.initialise(CONSUMERS);
    }
    __syncthreads();
    overlap_launches();

    const int programs = gridDim.x, program = programs - 1 - blockIdx.x, tiles = rows * cols;
    const int left = tiles % programs;
    const int others = max(1, (programs - 1) / tiles); // parts of a tile besides the first
    const bool shares = left > 0 && (programs - left) * k_tiles >= WORTH * others * programs;
    const int streamed = shares ? left + (tiles > programs ? programs : 0) : 0;
    const int each = streamed * k_tiles / programs, extra = streamed * k_tiles % programs;
    const int begin = share_start(program, each, extra), end = share_start(program + 1, each, extra);

    // All tiles in which the program has K tiles, shared ones first. work(tile, first, behind): with K tiles
    // from `first` on, and before `behind`.
    const int first_tile = begin / k_tiles, parts = shares ? (end - 1) / k_tiles - first_tile + 1 : 0;
    const auto for_each_tile = [&](const auto &work) {
        for (int i = 0; i < parts + (tiles - streamed - program + programs - 1) / programs; ++i) {
            const int alone = streamed + program + (i - parts) * programs;
            const int tile = i < parts ? first_tile + i : alone;
            work(tile, max(begin - tile * k_tiles, 0),
                 tile < streamed ? min(end - tile * k_tiles, k_tiles) : k_tiles);
        }
    };

    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            for_each_tile([&](int number, int first, int behind) {
                const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
                ring.fill(state, stages, behind - first, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, A_map, B_map, at.row * BM, at.col * BN, first * K_TILE + k0, barrier);
                });
            });
    } else {
        RegistersOf<CONSUMERS>::take();
        const int first_row = warpgroup_number() * HEIGHT; // of the warpgroup in the block tile
        const unsigned places = stages + STAGES * Operands::BYTES + threadIdx.y * Result::BYTES;
        for_each_tile([&](int number, int first, int behind) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
            ring.multiply(state, stages, behind - first, first_row, tile);
            const int tile_end = number < streamed ? (number + 1) * k_tiles : 0;
            share_sums<PROGRAMS, WARPS, VECTORS>(reinterpret_cast<ACC &>(tile.sums), first > 0, program, tile_end,
                                                 each, extra, programs);
            if (first == 0)
                store_through<Result>(places, tile, C_map, at.row * BM + first_row, at.col * BN);
        });
        if (threadIdx.x == 0)
            wait_until_stores_have_read();
    }
}
