// HGEMM on tensor cores: block tiles in shared memory, a tile of C in the registers of each warp.
//
//   nvcc -arch=sm_80 -cubin wmma_shared.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: a tile of A and one of B; where the block tile does not divide the shape, also enough for one of C
//
// For each tile along K all threads copy a tile of A and one of B to shared memory, 16 bytes at a time. Then every warp
// multiplies its WM rows of A by its WN columns of B in 16x16x16 fragments: for every 16 of K it reads WM/16 fragments of A
// and WN/16 of B and makes WM/16 * WN/16 products of them, so what it reads from shared memory it uses several times.
// Copies fill with zeros what lies beyond K. Warps write their accumulators to C themselves if the block tile divides the
// shape; if not, all threads copy those elements that C has from shared memory.

#include <cuda_fp16.h>
#include <mma.h>

#ifndef NT
#define NT 1 // B is stored 1: N x K, 0: K x N
#endif
#ifndef ACC
#define ACC half // type of the sums and of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // 1: K and N are multiples of 8, so that rows start on 16 bytes; 0: copies go element by element
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#endif

using namespace nvcuda;

constexpr int FRAGMENT = 16; // edge of the tiles that a warp multiplies at once
constexpr int VECTOR = 8;    // halves in 16 bytes
constexpr int WARPS = (BM / WM) * (BN / WN);
constexpr int THREADS = WARPS * 32;
constexpr int ROWS_B = NT ? BN : BK; // the tile of B as it is stored
constexpr int COLS_B = NT ? BK : BN;
constexpr int STRIDE_A = BK; // elements from row to row of the tiles in shared memory
constexpr int STRIDE_B = COLS_B;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(WM % FRAGMENT == 0 && WN % FRAGMENT == 0 && BK % FRAGMENT == 0, "tiles must consist of fragments");

#if NT
using LayoutB = wmma::col_major;
#else
using LayoutB = wmma::row_major;
#endif
using FragmentA = wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, half, LayoutB>;
using FragmentC = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, ACC>;

// What a thread copies of each tile, while the tiles follow each other along K: 16 bytes of every STEP-th row.
// K_IN_ROW: K runs along the rows of the matrix, not across them. Beyond the last row (or column) in the other direction
// the last one is read again, for nothing that comes of it is kept; so only K needs a test in the loop.
template <int ROWS, int COLS, int STRIDE, bool K_IN_ROW>
struct TileCopy {
    static constexpr int CHUNKS = COLS / VECTOR;  // of a row
    static constexpr int STEP = THREADS / CHUNKS; // rows that all threads copy at once
    static_assert(THREADS % CHUNKS == 0 && ROWS % STEP == 0, "threads must share the copies evenly");

    const half *source[ROWS / STEP]; // in the next tile
    int target;                      // offset in shared memory
    int k;                           // of the first row, in the first tile
    int advance;                     // elements from tile to tile

    // The tiles start at (row, col) of a rows x cols matrix.
    __device__ TileCopy(const half *matrix, int row, int col, int rows, int cols)
    {
        const int thread = threadIdx.y * 32 + threadIdx.x;
        const int r = thread / CHUNKS;
        const int c = thread % CHUNKS * VECTOR;
#pragma unroll
        for (int i = 0; i < ROWS / STEP; ++i)
            source[i] = K_IN_ROW ? matrix + min(row + r + i * STEP, rows - 1) * cols + c
                                 : matrix + (r + i * STEP) * cols + min(col + c, cols - VECTOR);
        target = r * STRIDE + c;
        k = K_IN_ROW ? c : r;
        advance = K_IN_ROW ? BK : BK * cols;
    }

    // Copies the next tile, which starts at k0, with zeros from K on.
    __device__ void operator()(half *tile, int k0, int K)
    {
        uint4 chunk[ROWS / STEP];
#pragma unroll
        for (int i = 0; i < ROWS / STEP; ++i) {
            chunk[i] = make_uint4(0, 0, 0, 0);
            if (k0 + k + (K_IN_ROW ? 0 : i * STEP) < K)
                chunk[i] = __ldg(reinterpret_cast<const uint4 *>(source[i]));
            source[i] += advance;
        }
#pragma unroll
        for (int i = 0; i < ROWS / STEP; ++i)
            *reinterpret_cast<uint4 *>(tile + target + i * STEP * STRIDE) = chunk[i];
    }
};

// For matrices whose rows start anywhere: all threads copy the tile at (row, col), with zeros where it lies beyond the matrix.
template <int ROWS, int COLS, int STRIDE>
static __device__ void copy_elements(half *tile, const half *matrix, int row, int col, int rows, int cols)
{
    for (int e = threadIdx.y * 32 + threadIdx.x; e < ROWS * COLS; e += THREADS) {
        const int r = e / COLS;
        const int c = e % COLS;
        const bool inside = row + r < rows && col + c < cols;
        tile[r * STRIDE + c] = inside ? matrix[(row + r) * cols + col + c] : __float2half(0.0f);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_shared(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(128) unsigned char shared[];
    half *const tile_a = reinterpret_cast<half *>(shared);
    half *const tile_b = tile_a + BM * STRIDE_A;

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;
    const half *const warp_a = tile_a + warp_row * STRIDE_A;
    const half *const warp_b = tile_b + warp_col * (NT ? STRIDE_B : 1);

#if ALIGNED
    TileCopy<BM, BK, STRIDE_A, true> copy_a(A, block_row, 0, M, K);
    TileCopy<ROWS_B, COLS_B, STRIDE_B, NT> copy_b(B, NT ? block_col : 0, NT ? 0 : block_col, NT ? N : K, NT ? K : N);
#endif

    FragmentC sums[WM / FRAGMENT][WN / FRAGMENT];
#pragma unroll
    for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
        for (int j = 0; j < WN / FRAGMENT; ++j)
            wmma::fill_fragment(sums[i][j], static_cast<ACC>(0.0f));

    for (int k0 = 0; k0 < K; k0 += BK) {
        __syncthreads(); // no warp reads the previous tiles any more
#if ALIGNED
        copy_a(tile_a, k0, K);
        copy_b(tile_b, k0, K);
#else
        copy_elements<BM, BK, STRIDE_A>(tile_a, A, block_row, k0, M, K);
        if (NT)
            copy_elements<BN, BK, STRIDE_B>(tile_b, B, block_col, k0, N, K);
        else
            copy_elements<BK, BN, STRIDE_B>(tile_b, B, k0, block_col, K, N);
#endif
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; k += FRAGMENT) {
            FragmentA a[WM / FRAGMENT];
            FragmentB b[WN / FRAGMENT];
#pragma unroll
            for (int i = 0; i < WM / FRAGMENT; ++i)
                wmma::load_matrix_sync(a[i], warp_a + i * FRAGMENT * STRIDE_A + k, STRIDE_A);
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j)
                wmma::load_matrix_sync(b[j], warp_b + (NT ? j * FRAGMENT * STRIDE_B + k : k * STRIDE_B + j * FRAGMENT), STRIDE_B);
#pragma unroll
            for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
                for (int j = 0; j < WN / FRAGMENT; ++j)
                    wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
        }
    }

    if (M % BM == 0 && N % BN == 0 && K % BK == 0) {
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j) {
                const int row = block_row + warp_row + i * FRAGMENT;
                const int col = block_col + warp_col + j * FRAGMENT;
                wmma::store_matrix_sync(C + row * N + col, sums[i][j], N, wmma::mem_row_major);
            }
    } else {
        ACC *const tile_c = reinterpret_cast<ACC *>(shared);
        __syncthreads(); // no warp reads the tiles of A and B any more
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j) {
                ACC *target = tile_c + (warp_row + i * FRAGMENT) * BN + warp_col + j * FRAGMENT;
                wmma::store_matrix_sync(target, sums[i][j], BN, wmma::mem_row_major);
            }
        __syncthreads();
        for (int e = threadIdx.y * 32 + threadIdx.x; e < BM * BN; e += THREADS) {
            const int row = block_row + e / BN;
            const int col = block_col + e % BN;
            if (row < M && col < N)
                C[row * N + col] = tile_c[e];
        }
    }
}
