// HGEMM on tensor cores by PTX mma: a deep multistage buffer under an XOR swizzle, and a main loop with
// little beside mma.
//
//   nvcc -arch=sm_80 -cubin mma_multistage.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: the larger of STAGES * (BM + BN) * BK halves and BM * (BN + 8) elements of C
//
// One barrier per tile: behind it all warps have the last fragments of the tile, so the copy of the tile
// STAGES further on starts into its stage. Every tile commits a group, at the end an empty one, so wait_group
// can always leave STAGES - 2.
// Fragments are double buffered in registers: ldmatrix fetches those of the next k step, be it in the next
// tile, while mma multiplies those of this one.
// The ragged tile along K comes first, where the prologue fills it up with zeros. Rows and columns beyond A
// and B are copies of the last ones: they add only to elements of C that are not written. That leaves one
// test in the loop: is there a tile to copy. Tiles are 64 deep: 16 bytes of 8 neighbouring lanes are a whole
// line of global memory and a whole line of shared memory, where tiles 32 deep fill each line of shared
// memory from two of global memory, which takes twice the wavefronts.
// The XOR swizzle of tiles is that of mma_xor_swizzle.cu, the threadblock swizzle that of
// wmma_swizzled_grid.cu.

#include <cuda_fp16.h>

#ifndef NT
#define NT 1 // B is stored N x K, else K x N
#endif
#ifndef ACC
#define ACC half // accumulator and element of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // K % 8 == 0 and N % 8 == 0
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 64 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define STAGES 3               // tiles of A and of B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 // per SM: bounds the registers
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STEPS = BK / 16; // k steps of a tile: an mma is 16 x 8 x 16
constexpr int A_BYTES = BM * BK * 2;
constexpr int STAGE_BYTES = A_BYTES + BN * BK * 2;
constexpr int C_STRIDE = BN + 8; // of C in shared memory: 8 more, for no bank conflicts
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0,
              "warps must cover the block tile, mmas theirs");
static_assert((BK == 32 || BK == 64) && (NT || BN % 64 == 0), "swizzled() must know the rows of the tiles");
static_assert(NT || (WN & (WN - 1)) == 0, "an XOR must lead from the warp's first column to the others");
static_assert(STAGES >= 2, "a tile must be copied while others are read");

#if ALIGNED
using Piece = int4; // in which C is written
#else
using Piece = ACC;
#endif

// Byte offset in a tile with rows of COLS halves: the 16-byte chunk c of row r lies at chunk c ^ (r % 8). Of
// rows of 32 halves two fill the banks, so they are swizzled alike.
template <int COLS> static __device__ unsigned swizzled(unsigned row, unsigned chunk)
{
    return row * COLS * 2 + (chunk ^ (COLS == 32 ? row / 2 % 4 : row % 8)) * 16;
}

template <int GROUPS> static __device__ void wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// One thread's share of copying ROWS x COLS tiles: chunks of 8 halves, STEP rows apart. Along K a tile has
// its rows if K_DOWN, else its columns; the other way it starts at `start` of the `size` rows or columns that
// the matrix has.
template <int ROWS, int COLS, bool K_DOWN> struct Copies {
    static constexpr int STEP = THREADS / (COLS / 8);
    static constexpr int COUNT = (ROWS + STEP - 1) / STEP;
    // Steps until r % 8 is the same.
    static constexpr int PERIOD = STEP % 8 == 0 ? 1 : STEP % 4 == 0 ? 2 : STEP % 2 == 0 ? 4 : 8;
    static constexpr int UNROLL = ALIGNED ? COUNT : 1; // the guarded copies take too many registers
    static_assert(THREADS % (COLS / 8) == 0, "threads must start whole rows");
    const half *source; // of the next tile along K, the other way at 0
    const int start, size, width;
    const unsigned thread;

    // Starts the copies of a tile with `extent` k (BK if WHOLE), none unless `wanted`.
    template <bool WHOLE> __device__ void copy(unsigned char *tile, int extent, int wanted)
    {
        const int row = thread / (COLS / 8), col = thread % (COLS / 8) * 8;
#pragma unroll UNROLL
        for (int i = 0; i < COUNT; ++i) {
            if (ROWS % STEP != 0 && row + i * STEP >= ROWS)
                continue;
            const int from =
                K_DOWN ? (row + i * STEP) * width + (ALIGNED ? min(start + col, size - 8) : start + col)
                       : min(start + row + i * STEP, size - 1) * width + col;
            unsigned char *to = tile + swizzled<COLS>(row + i % PERIOD * STEP, col / 8) +
                                i / PERIOD * PERIOD * STEP * COLS * 2;
            const bool inside = WHOLE || (K_DOWN ? row + i * STEP : col) < extent;
#if ALIGNED
            const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
            asm volatile("{ .reg .pred wanted; .reg .u64 from; setp.ne.b32 wanted, %3, 0;"
                         " mad.wide.u32 from, %4, 2, %1;"
                         " @wanted cp.async.cg.shared.global.L2::128B [%0], [from], 16, %2; }" ::"r"(address),
                         "l"(source), "r"(inside ? 16 : 0), "r"(wanted), "r"(from) : "memory");
#else
            if (!wanted)
                continue;
            const int here = !inside ? 0 : K_DOWN ? size - start - col : WHOLE ? 8 : extent - col;
            __align__(16) half value[8];
#pragma unroll
            for (int e = 0; e < 8; ++e)
                value[e] = e < here ? source[from + e] : half(0.0f);
            *reinterpret_cast<int4 *>(to) = *reinterpret_cast<int4 *>(value);
#endif
        }
    }
};

// Four 8 x 8 matrices of halves: lane l gives the address of row l % 8 of matrix l / 8, and gets of each
// matrix the elements 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4, or of column l / 4 if TRANSPOSED.
template <bool TRANSPOSED> static __device__ void load_matrices(unsigned (&value)[4], unsigned address)
{
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                     : "r"(address)
                     : "memory");
}

// c += a @ b for a of 16 x 16, b of 16 x 8. Lane l has of c rows l / 4 and l / 4 + 8, columns 2 * (l % 4) and
// 2 * (l % 4) + 1:
// as two registers if they are halves, else as four.
static __device__ void multiply(unsigned (&c)[sizeof(ACC)], const unsigned (&a)[4], const unsigned *b)
{
    if constexpr (sizeof(ACC) == 2)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
                     " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                     : "+r"(c[0]), "+r"(c[1])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Stores what a lane has of row l / 4 (h 0) or l / 4 + 8 (h 1) of c.
static __device__ void store_pair(ACC *target, const unsigned (&c)[sizeof(ACC)], int h)
{
    if constexpr (sizeof(ACC) == 2)
        *reinterpret_cast<unsigned *>(target) = c[h];
    else
        *reinterpret_cast<uint2 *>(target) = make_uint2(c[2 * h], c[2 * h + 1]);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
hgemm_mma_multistage(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M,
                     int N, int K)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned lane = threadIdx.x;
    const unsigned thread = threadIdx.y * 32 + lane;
    const int warp_row = threadIdx.y / (BN / WN) * WM;
    const int warp_col = threadIdx.y % (BN / WN) * WN;
    const int block_row = (blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BM;
    const int block_col = (blockIdx.z * gridDim.x + blockIdx.x) * BN;

    Copies<BM, BK, false> a_copies = {A, block_row, M, K, thread};
    Copies<NT ? BN : BK, NT ? BK : BN, !NT> b_copies = {B, block_col, N, NT ? K : N, thread};

    // The lane's addresses for ldmatrix in k step 0, as in mma_xor_swizzle.cu. The next step is two chunks
    // further: another XOR.
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned a_lane = swizzled<BK>(warp_row + lane % 16, lane / 16);
    const unsigned b_lane = NT ? swizzled<BK>(warp_col + lane % 8 + lane / 16 * 8, lane / 8 % 2)
                               : swizzled<BN>(lane % 16, warp_col / 8 + lane / 16);
    unsigned a[2][WM / 16][4], b[2][WN / 16][4];
    auto load_fragments = [&](unsigned stage, int step) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_matrices<false>(a[step % 2][i], base + stage + (a_lane ^ step * 32) + i * 16 * BK * 2);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
            const unsigned at = NT ? (b_lane ^ step * 32) + j * 16 * BK * 2
                                   : (b_lane ^ j % 4 * 32) + j / 4 * 128 + step * 16 * BN * 2;
            load_matrices<!NT>(b[step % 2][j], base + stage + A_BYTES + at);
        }
    };

    const int tiles = (K + BK - 1) / BK;
    const int ragged = K - (tiles - 1) * BK; // k of the first
#pragma unroll
    for (int tile = 0; tile < STAGES; ++tile) {
        const int extent = tile == 0 ? ragged : tile < tiles ? BK : 0;
        const int advance = tile == 0 ? 0 : tile == 1 ? ragged : BK;
        a_copies.source += advance;
        b_copies.source += NT ? advance : advance * N;
        a_copies.copy<false>(shared + tile * STAGE_BYTES, extent, 1);
        b_copies.copy<false>(shared + tile * STAGE_BYTES + A_BYTES, extent, 1);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    wait_group<STAGES - 1>();
    __syncthreads();
    load_fragments(0, 0);

    unsigned accumulators[WM / 16][WN / 8][sizeof(ACC)] = {}; // zeros of either type
    int stage = 0, free_stage = 0; // byte offsets of the tiles that are read and copied
    int copying = 0;               // whether one is copied
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                asm volatile("cp.async.commit_group;" ::: "memory");
                wait_group<STAGES - 2>(); // the next tile is there
                __syncthreads();          // for all warps; and all are done with this one
                copying = tile + STAGES < tiles;
                a_copies.source += BK;
                b_copies.source += NT ? BK : BK * N;
                free_stage = stage;
                stage = stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
            }
            const int next = (step + 1) % STEPS;
            load_fragments(stage, next);
            if (next == 0) {
                a_copies.copy<true>(shared + free_stage, BK, copying);
                b_copies.copy<true>(shared + free_stage + A_BYTES, BK, copying);
            }
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int n = 0; n < WN / 8; ++n) {
                    const int j = i % 2 ? WN / 8 - 1 - n : n; // back and forth, so that one operand stays
                    multiply(accumulators[i][j], a[step % 2][i], &b[step % 2][j / 2][j % 2 * 2]);
                }
        }
    }

    // C goes through shared memory, so that neighbouring lanes write neighbouring pieces of a row.
    wait_group<0>();
    __syncthreads();
    ACC *tile = reinterpret_cast<ACC *>(shared);
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = warp_row + i * 16 + h * 8 + lane / 4;
                store_pair(tile + row * C_STRIDE + warp_col + j * 8 + lane % 4 * 2, accumulators[i][j], h);
            }
    __syncthreads();
    constexpr int PIECE = sizeof(Piece) / sizeof(ACC); // elements
#pragma unroll 8
    for (int i = 0; i < BM * BN / PIECE / THREADS; ++i) {
        const int row = (i * THREADS + thread) / (BN / PIECE);
        const int col = (i * THREADS + thread) % (BN / PIECE) * PIECE;
        if (block_row + row < M && block_col + col < N)
            *reinterpret_cast<Piece *>(C + (block_row + row) * N + block_col + col) =
                *reinterpret_cast<const Piece *>(tile + row * C_STRIDE + col);
    }
}
