// HGEMM on tensor cores, the simplest way: a warp computes one 16x16 tile of C with fragments from global
// memory.
//
//   nvcc -arch=sm_80 -cubin wmma_naive.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: none where tiles divide the shape, else those of A and B, or of C if larger and
//     tiles do not divide it
//
// A fragment is a 16x16 tile of a matrix spread over the registers of a warp; only wmma knows which lane has
// which element.
// For each 16 of K a warp reads a fragment of A and one of B and multiplies them into its accumulator, a
// fragment of C.
// Nothing is shared: every warp reads all of its 16 rows of A and 16 columns of B.
// wmma reads and writes whole fragments with rows on 16 bytes. Where the matrices do not consist of such, the
// fragments come from shared memory, where all threads put the block's tiles element by element and fill up
// with zeros; and a C beyond which tiles reach goes there.

#include <cuda_fp16.h>
#include <mma.h>

#ifndef NT
#define NT 1 // B is stored N x K (1) or K x N (0)
#endif
#ifndef ACC
#define ACC half // type of the accumulators and of C: half or float
#endif
#ifndef BM
#define BM 32 // block tile of C: BM x BN
#define BN 64
#define BK 16 // extent of the tiles of A and B along K
#define WM 16 // warp tile of C: WM x WN
#define WN 16
#endif

using namespace nvcuda;

constexpr int FRAGMENT = 16; // edge of the tiles that a warp multiplies at once
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
static_assert(WM == FRAGMENT && WN == FRAGMENT, "a warp must compute one tile");
static_assert(BM % WM == 0 && BN % WN == 0 && BK % FRAGMENT == 0, "tiles must consist of fragments");

#if NT
using LayoutB = wmma::col_major;
#else
using LayoutB = wmma::row_major;
#endif
using FragmentA = wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, half, LayoutB>;
using FragmentC = wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, ACC>;

// accumulator += a @ b over `extent` columns of a and rows of b, which start at a and b in rows of stride_a
// and stride_b.
static __device__ void multiply(FragmentC &accumulator, const half *a, int stride_a, const half *b,
                                int stride_b, int extent)
{
    for (int k = 0; k < extent; k += FRAGMENT) {
        FragmentA fragment_a;
        FragmentB fragment_b;
        wmma::load_matrix_sync(fragment_a, a + k, stride_a);
        wmma::load_matrix_sync(fragment_b, b + (NT ? k : k * stride_b), stride_b);
        wmma::mma_sync(accumulator, fragment_a, fragment_b, accumulator);
    }
}

// All threads copy the tile at (row, col) of a rows x cols matrix to shared memory, with zeros beyond the
// matrix.
template <int ROWS, int COLS>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                 int cols)
{
    for (int e = threadIdx.y * 32 + threadIdx.x; e < ROWS * COLS; e += THREADS) {
        const int r = row + e / COLS;
        const int c = col + e % COLS;
        tile[e] = r < rows && c < cols ? matrix[r * cols + c] : __float2half(0.0f);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_naive(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                 int K)
{
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;

    FragmentC accumulator;
    wmma::fill_fragment(accumulator, static_cast<ACC>(0.0f));

    const int row = block_row + warp_row;
    const int col = block_col + warp_col;
    const bool divided = M % BM == 0 && N % BN == 0; // C, by block tiles

    extern __shared__ __align__(128) unsigned char shared[];
    if (divided && K % BK == 0) {
        multiply(accumulator, A + row * K, K, B + (NT ? col * K : col), NT ? K : N, K);
    } else {
        half *const tile_a = reinterpret_cast<half *>(shared); // BM x BK
        half *const tile_b = tile_a + BM * BK;                 // BN x BK or BK x BN, as B is stored
        for (int k0 = 0; k0 < K; k0 += BK) {
            copy_tile<BM, BK>(tile_a, A, block_row, k0, M, K);
#if NT
            copy_tile<BN, BK>(tile_b, B, block_col, k0, N, K);
#else
            copy_tile<BK, BN>(tile_b, B, k0, block_col, K, N);
#endif
            __syncthreads();
            multiply(accumulator, tile_a + warp_row * BK, BK, tile_b + (NT ? warp_col * BK : warp_col),
                     NT ? BK : BN, BK);
            __syncthreads();
        }
    }
    if (divided) {
        wmma::store_matrix_sync(C + row * N + col, accumulator, N, wmma::mem_row_major);
    } else {
        ACC *const tile_c = reinterpret_cast<ACC *>(shared); // BM x BN, in the place of the others
        wmma::store_matrix_sync(tile_c + warp_row * BN + warp_col, accumulator, BN, wmma::mem_row_major);
        __syncthreads();
        for (int e = threadIdx.y * 32 + threadIdx.x; e < BM * BN; e += THREADS)
            if (block_row + e / BN < M && block_col + e % BN < N)
                C[(block_row + e / BN) * N + block_col + e % BN] = tile_c[e];
    }
}
