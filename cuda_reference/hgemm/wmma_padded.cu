// HGEMM on tensor cores: rows of the tiles in shared memory are padded, so that fragments are read without
// bank conflicts.
//
//   nvcc -arch=sm_80 -cubin wmma_padded.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: a tile of A and one of B, or one of C if larger and the block tile does not divide
//     M and N
//
// As wmma_shared.cu, but rows are PADDING halves further apart. A warp reads a fragment in pieces of 16 bytes
// from 8 rows at a time; where rows are 64 bytes long, as of the tile of A with BK 32, such 8 pieces lie in
// only 8 of the 32 banks and take 4 times as long. 16 bytes of padding per row move every row on by 4 banks
// and spread the pieces over all of them.
// The price is paid by the copies: the two rows of 64 bytes that 8 lanes write at once now overlap in 4
// banks.

#include <cuda_fp16.h>
#include <mma.h>

#ifndef NT
#define NT 1 // B is stored N x K (1) or K x N (0)
#endif
#ifndef ACC
#define ACC half // type of the accumulators and of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // whether K and N are multiples of 8, so that all rows start on 16 bytes
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define PADDING 8 // halves of padding after each row of the tiles
#endif

using namespace nvcuda;

constexpr int FRAGMENT = 16; // edge of the tiles that a warp multiplies at once
constexpr int VECTOR = 8;    // halves in 16 bytes
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STRIDE_A = BK + PADDING;             // elements from row to row of a tile in shared memory
constexpr int STRIDE_B = (NT ? BK : BN) + PADDING; // the tile of B is BN x BK or BK x BN, as B is stored
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(PADDING % VECTOR == 0, "rows must start on 16 bytes");
static_assert(WM % FRAGMENT == 0 && WN % FRAGMENT == 0 && BK % FRAGMENT == 0,
              "tiles must consist of fragments");

#if NT
using LayoutB = wmma::col_major;
#else
using LayoutB = wmma::row_major;
#endif
using FragmentA = wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, half, LayoutB>;
using FragmentC = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, ACC>;

// Copies VECTOR elements to shared memory: the first `inside` of them from global memory, the others are
// zeros.
static __device__ void copy_chunk(half *target, const half *__restrict__ source, int inside)
{
#if ALIGNED // all of them or none
    uint4 chunk = make_uint4(0, 0, 0, 0);
    if (inside > 0)
        chunk = *reinterpret_cast<const uint4 *>(source);
    *reinterpret_cast<uint4 *>(target) = chunk;
#else
#pragma unroll
    for (int e = 0; e < VECTOR; ++e)
        target[e] = e < inside ? source[e] : __float2half(0.0f);
#endif
}

// All threads copy the tile at (row, col) of a rows x cols matrix to shared memory, each one a chunk of every
// STEP-th row.
template <int ROWS, int COLS, int STRIDE>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                 int cols)
{
    constexpr int CHUNKS = COLS / VECTOR; // of a row
    constexpr int STEP = THREADS / CHUNKS;
    static_assert(THREADS % CHUNKS == 0, "threads must copy whole rows");
    const int r = (threadIdx.y * 32 + threadIdx.x) / CHUNKS;
    const int c = (threadIdx.y * 32 + threadIdx.x) % CHUNKS * VECTOR;
    const int source = (row + r) * cols + c + col;
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP)
        if (ROWS % STEP == 0 || r + i < ROWS)
            copy_chunk(tile + (r + i) * STRIDE + c, matrix + (source + i * cols),
                       i < rows - row - r ? cols - col - c : 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_padded(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                  int K)
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

    FragmentC accumulators[WM / FRAGMENT][WN / FRAGMENT];
#pragma unroll
    for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
        for (int j = 0; j < WN / FRAGMENT; ++j)
            wmma::fill_fragment(accumulators[i][j], static_cast<ACC>(0.0f));

    for (int k0 = 0; k0 < K; k0 += BK) {
        __syncthreads(); // no warp reads the previous tiles any more
        copy_tile<BM, BK, STRIDE_A>(tile_a, A, block_row, k0, M, K);
#if NT
        copy_tile<BN, BK, STRIDE_B>(tile_b, B, block_col, k0, N, K);
#else
        copy_tile<BK, BN, STRIDE_B>(tile_b, B, k0, block_col, K, N);
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
                wmma::load_matrix_sync(
                    b[j], warp_b + (NT ? j * FRAGMENT * STRIDE_B + k : k * STRIDE_B + j * FRAGMENT),
                    STRIDE_B);
#pragma unroll
            for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
                for (int j = 0; j < WN / FRAGMENT; ++j)
                    wmma::mma_sync(accumulators[i][j], a[i], b[j], accumulators[i][j]);
        }
    }

    if (M % BM == 0 && N % BN == 0) {
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j) {
                const int row = block_row + warp_row + i * FRAGMENT;
                const int col = block_col + warp_col + j * FRAGMENT;
                wmma::store_matrix_sync(C + row * N + col, accumulators[i][j], N, wmma::mem_row_major);
            }
    } else {
        ACC *const tile_c = reinterpret_cast<ACC *>(shared);
        __syncthreads(); // no warp reads the tiles of A and B any more
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j) {
                ACC *target = tile_c + (warp_row + i * FRAGMENT) * BN + warp_col + j * FRAGMENT;
                wmma::store_matrix_sync(target, accumulators[i][j], BN, wmma::mem_row_major);
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
