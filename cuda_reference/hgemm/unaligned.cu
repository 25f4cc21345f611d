// HGEMM of rows that start at any address, copied without a launch before: one launch if K is not split.
//
//   nvcc -arch=sm_80 -cubin unaligned.cu
//   grid (ceil(N/BN), ceil(M/BM), parts), block (32, WARPS_M * WARPS_N * WARPS_K)
//   dynamic shared memory: STAGES tiles of A, BM rows of BK + 8 elements, and of B, BN rows of BK + 8 or,
//   stored K x N, BK rows of BN + 8; at least (WARPS_K - 1) * BM * BN floats
//   C: of several parts a matrix of floats for each, whose rows are filled up to multiples of 16 bytes;
//   split_k_sum.cu adds them up. Of one part it is C
//
// K tiles come by asynchronous copies of 16 or 8 bytes, and rows of a B that is stored K x N of 4. Rows of
// other sizes are copied by 16 bytes as well, from the aligned address before them, see unaligned.cuh.
// Products are by mma. WARPS_K warps take turns at steps along K, and their sums are added at the end. SPLITS
// goes to the launch: 0 leaves the number of parts to the shape.

#include <type_traits>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "unaligned.cuh"

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
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 64     // K tile
#define STAGES 4  // K tiles in shared memory
#define WARPS_M 1 // warps along the rows of C
#define WARPS_N 4 // along its columns
#define WARPS_K 1 // along K
#define SPLITS 0  // parts of K
#endif

constexpr int THREADS = 32 * WARPS_M * WARPS_N * WARPS_K, WM = BM / WARPS_M, WN = BN / WARPS_N;
constexpr int SUMS = WM * WN / 32; // of a lane
constexpr int A_STRIDE = BK + 8, B_ROWS = NT ? BN : BK, B_COLS = NT ? BK : BN, B_STRIDE = B_COLS + 8;
constexpr int TILE_A = BM * A_STRIDE, STAGE = TILE_A + B_ROWS * B_STRIDE;

// Elements that the length of rows is a multiple of: 8, 4 or 1, or 2 where rows lie across K.
static __device__ __forceinline__ int piece_of(int columns, bool across)
{
    return columns % 8 == 0 ? 8 : columns % 4 == 0 ? 4 : across && columns % 2 == 0 ? 2 : 1;
}

// Starts the copy of a tile of a matrix in such pieces.
template <int HEIGHT, int WIDTH, int STRIDE>
static __device__ __forceinline__ void start_rows_of(int piece, IN *tile, const IN *matrix, int row, int col,
                                                     int rows, int cols)
{
    if (piece == 8)
        start_rows<HEIGHT, WIDTH, STRIDE, 8, THREADS>(tile, matrix, row, col, rows, cols);
    else if (piece == 4)
        start_rows<HEIGHT, WIDTH, STRIDE, 4, THREADS>(tile, matrix, row, col, rows, cols);
    else if (piece == 2)
        start_rows<HEIGHT, WIDTH, STRIDE, 2, THREADS>(tile, matrix, row, col, rows, cols);
    else
        start_rows<HEIGHT, WIDTH, STRIDE, 1, THREADS>(tile, matrix, row, col, rows, cols);
}

// Multiplies a block's tile. A_ODD, B_ODD: whether rows are copied from the aligned address before them.
template <bool A_ODD, bool B_ODD>
static __device__ __forceinline__ void multiply_rows(const IN *A, const IN *B, void *C, int M, int N, int K,
                                                     IN *shared)
{
    const int a_piece = piece_of(K, false), b_piece = piece_of(NT ? K : N, !NT);
    const int count = ((K + BK - 1) / BK + gridDim.z - 1) / gridDim.z; // K tiles of a part
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int deep = threadIdx.y / (WARPS_M * WARPS_N), wide = threadIdx.y % (WARPS_M * WARPS_N);
    const int row = wide / WARPS_N * WM, column = wide % WARPS_N * WN;
    const auto start = [&](int slot, int tile) {
        const int k = (blockIdx.z * count + tile) * BK;
        IN *const to = shared + slot * STAGE;
        start_rows_of<BM, BK, A_STRIDE>(a_piece, to, A, block_row, k, M, K);
        start_rows_of<B_ROWS, B_COLS, B_STRIDE>(b_piece, to + TILE_A, B, NT ? block_col : k,
                                                NT ? k : block_col, NT ? N : K, NT ? K : N);
    };

    ACC sums[SUMS] = {};
#pragma unroll
    for (int tile = 0; tile < STAGES - 1; ++tile) {
        if (tile < count)
            start(tile, tile);
        end_row_copies();
    }
    for (int tile = 0; tile < count; ++tile) {
        wait_for_rows<STAGES - 2>();
        __syncthreads();
        if (tile + STAGES - 1 < count)
            start((tile + STAGES - 1) % STAGES, tile + STAGES - 1);
        end_row_copies();
        const int at = tile % STAGES * STAGE;
        add_tiles<WM, WN, BK, WARPS_K, A_STRIDE, A_ODD, B_STRIDE, B_ODD, NT>(sums, shared, at, at + TILE_A, row,
                                                                             column, deep, K, NT ? K : N);
    }
    if (WARPS_K > 1)
        fold_warps<SUMS, WARPS_K, WARPS_M * WARPS_N>(sums, shared, wide, deep);
    if (deep > 0)
        return;
    const int pitch = (N + 3) / 4 * 4, r = block_row + row, c = block_col + column;
    float *const part = static_cast<float *>(C) + static_cast<long long>(blockIdx.z) * M * pitch;
    if (gridDim.z > 1)
        write_sums<WM, WN, true>(part, sums, r, c, M, pitch, pitch);
    else if (N % 2 == 0)
        write_sums<WM, WN, true>(static_cast<OUT *>(C), sums, r, c, M, N, N);
    else
        write_sums<WM, WN, false>(static_cast<OUT *>(C), sums, r, c, M, N, N);
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_unaligned(const IN *__restrict__ A, const IN *__restrict__ B, void *__restrict__ C, int M, int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    IN *const shared = reinterpret_cast<IN *>(dynamic_shared);
    const bool a_odd = K % 4, b_odd = NT ? K % 4 : N % 2;
    if (a_odd && b_odd)
        multiply_rows<true, true>(A, B, C, M, N, K, shared);
    else if (a_odd)
        multiply_rows<true, false>(A, B, C, M, N, K, shared);
    else if (b_odd)
        multiply_rows<false, true>(A, B, C, M, N, K, shared);
    else
        multiply_rows<false, false>(A, B, C, M, N, K, shared);
}
