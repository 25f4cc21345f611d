// Sum of an array by bulk copies: one thread has pieces of it copied to shared memory, and all threads add.
//
//   nvcc -arch=sm_90a -cubin bulk.cu
//   grid (1, ceil(4 N/PIECE), at most MOST_BLOCKS), block (BLOCK)
//   dynamic shared memory: STAGES * PIECE bytes, or PIECE for each piece of a block where it has fewer
//   Y[0] is the sum
//
// A load holds a register for what is under way, so threads and registers bound how much that is. A bulk copy
// is one instruction for a whole piece, and shared memory holds what arrives: a ring of STAGES stages. A
// stage has two mbarriers. `full` ends a phase when all bytes of a piece are there, `empty` when every warp
// has added them up: then the stage is filled again. Only the first thread waits for that, so the other warps
// do not wait for each other. The last block adds up the sums of all blocks, as in single_pass.cu.

#include "../hgemm/barriers.cuh"
#include "../sizes.cuh"
#include "last_block.cuh"
#include "pieces.cuh"
#include "shuffle.cuh"

#ifndef BLOCK
#define BLOCK 512 // threads per block, a power of two from 32 to 1024
#endif
#ifndef PIECE
#define PIECE 32768     // bytes, a multiple of 16 BLOCK
#define STAGES 6        // pieces that shared memory holds
#define MOST_BLOCKS 132 // the launch keeps to it
#define FENCED 0        // 1: a fence and a counter in place of marks
#endif
#ifndef DTYPE
#define DTYPE int
#endif

constexpr int ELEMENTS = PIECE / 4, LOADS = PIECE / 16 / BLOCK; // of a piece; of a thread for it
static_assert(BLOCK >= 32 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 32 on");
static_assert(PIECE % (16 * BLOCK) == 0, "threads must share a piece evenly");
static_assert(STAGES >= 2, "a piece must be copied while another is added up");

struct __align__(16) Vector {
    DTYPE x, y, z, w;
};

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_bulk(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    extern __shared__ __align__(128) DTYPE stages[];
    __shared__ unsigned long long full[STAGES], empty[STAGES];
    const int pieces = (N - 1) / ELEMENTS + 1;
    const int turns = (pieces - 1) / gridDim.y + 1;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initialise_barrier(shared_address(&full[stage]), 1);
            initialise_barrier(shared_address(&empty[stage]), BLOCK / 32);
        }
        publish_barriers();
    }
    __syncthreads();

    const auto load = [&](int turn, int stage) {
        load_piece<ELEMENTS>(stages + stage * ELEMENTS, X, turn * gridDim.y + blockIdx.y, N,
                             shared_address(&full[stage]));
    };
    for (int turn = 0; turn < STAGES && turn < turns; ++turn)
        load(turn, turn);

    Vector sums = {};
    int stage = 0;
    unsigned parity = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        wait_for_parity(shared_address(&full[stage]), parity);
        const Vector *const vectors = reinterpret_cast<const Vector *>(stages + stage * ELEMENTS) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const Vector v = vectors[i * BLOCK];
            sums.x += v.x;
            sums.y += v.y;
            sums.z += v.z;
            sums.w += v.w;
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            arrive(shared_address(&empty[stage]));
        if (turn + STAGES < turns) {
            if (threadIdx.x == 0) {
                wait_for_parity(shared_address(&empty[stage]), parity);
                fence_async_proxy(); // copies come after what has been read
            }
            load(turn + STAGES, stage);
        }
        if (++stage == STAGES)
            stage = 0, parity ^= 1;
    }

    DTYPE total = fold_block<BLOCK>(sums.x + sums.y + sums.z + sums.w);
    store_sum_of_blocks<BLOCK, MOST_BLOCKS, FENCED>(total, Y);
}
