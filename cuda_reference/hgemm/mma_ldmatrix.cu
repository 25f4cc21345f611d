// HGEMM on tensor cores by PTX mma, with fragments from ldmatrix, in place of wmma.
//
//   nvcc -arch=sm_80 -cubin mma_ldmatrix.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: the larger of STAGES tiles of A and of B and BM * (BN + PADDING) elements of C
//
// wmma hides which lane holds what; mma documents it. An mma is 16 x 8 x 16. With g = lane / 4 and t = lane %
// 4, each register holding two halves that are neighbours in a row of A or C, or in a column of B:
//   A, 16 x 16, 4 registers: row g, columns 2t, 2t + 1; row g + 8, same columns; row g, columns 2t + 8, 2t +
//     9; row g + 8, same
//   B, 16 x 8, 2 registers: column g, rows 2t, 2t + 1; column g, rows 2t + 8, 2t + 9
//   C, 16 x 8: row g, columns 2t, 2t + 1; row g + 8, same columns: 2 registers of halves or 4 of floats
// That is how ldmatrix hands out 8 x 8 matrices of halves in shared memory, up to four at once: lane l gives
// the address of row l % 8 of matrix l / 8, and gets of each matrix elements 2t and 2t + 1 of row g, or,
// transposed, of column g. Four matrices make the A of one mma, or the B of two.
// Pipeline, staged epilogue and grid are those of wmma_swizzled_grid.cu. (article 001 up to there)

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
#define BK 32 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define PADDING 8              // elements that pad each row in shared memory
#define STAGES 3               // tiles of A and of B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STEPS = BK / 16; // k steps of a tile
constexpr int A_STRIDE = BK + PADDING;
constexpr int B_ROWS = NT ? BN : BK;
constexpr int B_COLS = NT ? BK : BN;
constexpr int B_STRIDE = B_COLS + PADDING;
constexpr int C_STRIDE = BN + PADDING;
constexpr int STAGE = BM * A_STRIDE + B_ROWS * B_STRIDE; // elements
static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0,
              "warps must cover the block tile, mmas theirs");
static_assert(BK % 32 == 0, "the two buffers of fragments must take turns");
static_assert(PADDING % 8 == 0, "rows in shared memory must start on 16 bytes");
static_assert(STAGES >= 2, "a tile must be copied while another is read");

#if ALIGNED
using Piece = int4; // in which C is written
#else
using Piece = ACC;
#endif

// Starts copying a ROWS x COLS tile of a row-major matrix of rows x cols, from (row0, col0): zeros where it
// lies beyond.
template <int ROWS, int COLS>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row0, int col0, int rows,
                                 int cols, int thread)
{
    constexpr int STEP = THREADS / (COLS / 8); // rows between a thread's chunks of 16 bytes
    static_assert(THREADS % (COLS / 8) == 0 && COLS % 8 == 0, "threads must start whole rows");
    constexpr int UNROLL = ALIGNED ? ROWS / STEP : 1;
    const int col = thread % (COLS / 8) * 8;
#pragma unroll UNROLL
    for (int i = 0; i < (ROWS + STEP - 1) / STEP; ++i) {
        const int row = thread / (COLS / 8) + i * STEP;
        if (ROWS % STEP != 0 && row >= ROWS)
            break;
        half *target = tile + row * (COLS + PADDING) + col;
        const half *source = matrix + (row0 + row) * cols + col0 + col;
        const int present = row0 + row < rows ? cols - col0 - col : 0;
#if ALIGNED
        const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address), "l"(source),
                     "r"(present > 0 ? 16 : 0) : "memory");
#else
        __align__(16) half value[8];
#pragma unroll
        for (int e = 0; e < 8; ++e)
            value[e] = e < present ? source[e] : half(0.0f);
        *reinterpret_cast<int4 *>(target) = *reinterpret_cast<int4 *>(value);
#endif
    }
}

template <int GROUPS> static __device__ void wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// Four 8 x 8 matrices from shared memory, a register of each.
template <bool TRANSPOSED> static __device__ void load_matrices(unsigned (&value)[4], const half *row)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
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

// c += a @ b.
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

// Stores the two elements of c that a lane has in row g (h 0) or g + 8 (h 1).
static __device__ void store_pair(ACC *target, const unsigned (&c)[sizeof(ACC)], int h)
{
    if constexpr (sizeof(ACC) == 2)
        *reinterpret_cast<unsigned *>(target) = c[h];
    else
        *reinterpret_cast<uint2 *>(target) = make_uint2(c[2 * h], c[2 * h + 1]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_mma_ldmatrix(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                   int K)
{
    extern __shared__ __align__(128) unsigned char shared[];
    half *tiles = reinterpret_cast<half *>(shared); // of each stage that of A, then that of B
    const int lane = threadIdx.x;
    const int thread = threadIdx.y * 32 + lane;
    const int warp_row = threadIdx.y / (BN / WN) * WM;
    const int warp_col = threadIdx.y % (BN / WN) * WN;
    const int block_row = (blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BM;
    const int block_col = (blockIdx.z * gridDim.x + blockIdx.x) * BN;

    auto copy_tiles = [&](int stage, int k0) {
        copy_tile<BM, BK>(tiles + stage * STAGE, A, block_row, k0, M, K, thread);
        half *tile_b = tiles + stage * STAGE + BM * A_STRIDE;
        if (NT)
            copy_tile<B_ROWS, B_COLS>(tile_b, B, block_col, k0, N, K, thread);
        else
            copy_tile<B_ROWS, B_COLS>(tile_b, B, k0, block_col, K, N, thread);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    // The lane's row of four matrices at the start of the warp's tile. Those of a start at (row 0, k 0), (8,
    // 0), (0, 8), (8, 8); those of b, for two mmas, at (column 0, k 0), (0, 8), (8, 0), (8, 8). Where B is
    // stored N x K, rows in shared memory are columns of b, as mma wants them; where it is stored K x N they
    // are rows of b, and ldmatrix transposes them.
    const int a_lane = (warp_row + lane % 16) * A_STRIDE + lane / 16 * 8;
    const int b_lane =
        BM * A_STRIDE + (NT ? (warp_col + lane / 16 * 8 + lane % 8) * B_STRIDE + lane / 8 % 2 * 8
                            : lane % 16 * B_STRIDE + warp_col + lane / 16 * 8);
    unsigned a[2][WM / 16][4], b[2][WN / 16][4];
    auto load_fragments = [&](int stage, int step) {
        const half *tile = tiles + stage * STAGE;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_matrices<false>(a[step % 2][i], tile + a_lane + i * 16 * A_STRIDE + step * 16);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            if (NT)
                load_matrices<false>(b[step % 2][j], tile + b_lane + j * 16 * B_STRIDE + step * 16);
            else
                load_matrices<true>(b[step % 2][j], tile + b_lane + step * 16 * B_STRIDE + j * 16);
    };

#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage)
        copy_tiles(stage, stage * BK);
    wait_group<STAGES - 2>();
    __syncthreads();
    load_fragments(0, 0);

    unsigned accumulators[WM / 16][WN / 8][sizeof(ACC)] = {}; // zeros of either type
    int stage = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                wait_group<STAGES - 2>(); // the next tile is there
                __syncthreads();          // for all warps; and all are done with this one
                stage = stage == STAGES - 1 ? 0 : stage + 1;
            }
            load_fragments(stage, (step + 1) % STEPS);
            if (step == 0) // into the stage of the tile before this one
                copy_tiles(stage == 0 ? STAGES - 1 : stage - 1, k0 + (STAGES - 1) * BK);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j)
                    multiply(accumulators[i][j], a[step % 2][i], &b[step % 2][j / 2][j % 2 * 2]);
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
