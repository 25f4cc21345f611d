// HGEMM on tensor cores: fragments too are read ahead, into a second set of registers.
//
//   nvcc -arch=sm_80 -cubin wmma_register_pipelined.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES tiles of A and of B, or one of C if larger and the block tile does not
//     divide M and N
//
// As wmma_pipelined.cu, but while a warp multiplies the fragments of one k step (16 of K), it reads those of
// the next one.
// The last k step of a tile is multiplied behind the barrier, while the first fragments of the next tile are
// read, so that tensor cores have work while warps wait for shared memory. A turn is thus
//     all k steps but the last: read the next fragments, multiply; start the copies two tiles ahead; wait for
//       the copies of
//     the next tile; barrier; read its first fragments, multiply the last ones of this tile

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
#define STAGES 3  // tiles of A and B in shared memory
#endif

using namespace nvcuda;

constexpr int FRAGMENT = 16;           // edge of the tiles that a warp multiplies at once
constexpr int VECTOR = 8;              // halves in 16 bytes
constexpr int K_STEPS = BK / FRAGMENT; // of a tile
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STRIDE_A = BK + PADDING;             // elements from row to row of a tile in shared memory
constexpr int STRIDE_B = (NT ? BK : BN) + PADDING; // the tile of B is BN x BK or BK x BN, as B is stored
constexpr int STAGE = BM * STRIDE_A + (NT ? BN : BK) * STRIDE_B; // a tile of A and one of B
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(PADDING % VECTOR == 0, "rows must start on 16 bytes");
static_assert(STAGES >= 2, "one tile must be under way while another is read");
static_assert(K_STEPS % 2 == 0, "the first fragments of all tiles must go to the same set");
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

// Starts to copy VECTOR elements to shared memory: the first `inside` of them from global memory, the others
// are zeros.
static __device__ void copy_chunk(half *target, const half *__restrict__ source, int inside)
{
#if ALIGNED // all of them or none
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(target));
    const int bytes = inside > 0 ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address), "l"(source),
                 "r"(bytes)
                 : "memory");
#else
#pragma unroll
    for (int e = 0; e < VECTOR; ++e)
        target[e] = e < inside ? source[e] : __float2half(0.0f);
#endif
}

// All threads copy the tile at (row, col) of a rows x cols matrix to shared memory, every warp rows of its
// own, each lane a chunk of every STEP-th of them.
template <int ROWS, int COLS, int STRIDE>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                 int cols)
{
    constexpr int CHUNKS = COLS / VECTOR; // of a row
    constexpr int STEP = 32 / CHUNKS;
    constexpr int OWN = ROWS / (THREADS / 32); // rows of a warp
    static_assert(32 % CHUNKS == 0 && ROWS % (THREADS / 32 * STEP) == 0,
                  "warps must copy whole rows, as many each");
    const int r = threadIdx.y * OWN + threadIdx.x / CHUNKS;
    const int c = threadIdx.x % CHUNKS * VECTOR;
    const int source = (row + r) * cols + c + col;
#pragma unroll
    for (int i = 0; i < OWN; i += STEP)
        copy_chunk(tile + (r + i) * STRIDE + c, matrix + (source + i * cols),
                   i < rows - row - r ? cols - col - c : 0);
}

// Ends a group of copies.
static __device__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until the thread's copies have arrived, but for the latest PENDING groups.
template <int PENDING>
static __device__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_register_pipelined(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C,
                              int M, int N, int K)
{
    extern __shared__ __align__(128) unsigned char shared[];
    half *const stages = reinterpret_cast<half *>(shared);

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;

    const auto copy_tiles = [&](int stage, int k0) { // what lies beyond K becomes zeros
        half *const tile_a = stages + stage * STAGE;
        half *const tile_b = tile_a + BM * STRIDE_A;
        copy_tile<BM, BK, STRIDE_A>(tile_a, A, block_row, k0, M, K);
#if NT
        copy_tile<BN, BK, STRIDE_B>(tile_b, B, block_col, k0, N, K);
#else
        copy_tile<BK, BN, STRIDE_B>(tile_b, B, k0, block_col, K, N);
#endif
        commit_copies();
    };

    FragmentC accumulators[WM / FRAGMENT][WN / FRAGMENT];
#pragma unroll
    for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
        for (int j = 0; j < WN / FRAGMENT; ++j)
            wmma::fill_fragment(accumulators[i][j], static_cast<ACC>(0.0f));

    FragmentA a[2][WM / FRAGMENT];
    FragmentB b[2][WN / FRAGMENT];
    const auto read_fragments = [&](int set, int stage, int k) {
        const half *const warp_a = stages + stage * STAGE + warp_row * STRIDE_A;
        const half *const warp_b = stages + stage * STAGE + BM * STRIDE_A + warp_col * (NT ? STRIDE_B : 1);
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
            wmma::load_matrix_sync(a[set][i], warp_a + i * FRAGMENT * STRIDE_A + k, STRIDE_A);
#pragma unroll
        for (int j = 0; j < WN / FRAGMENT; ++j) {
            const int offset = NT ? j * FRAGMENT * STRIDE_B + k : k * STRIDE_B + j * FRAGMENT;
            wmma::load_matrix_sync(b[set][j], warp_b + offset, STRIDE_B);
        }
    };
    const auto multiply = [&](int set) {
#pragma unroll
        for (int i = 0; i < WM / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WN / FRAGMENT; ++j)
                wmma::mma_sync(accumulators[i][j], a[set][i], b[set][j], accumulators[i][j]);
    };

    for (int i = 0; i < STAGES - 1; ++i)
        copy_tiles(i, i * BK);
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    read_fragments(0, 0, 0);

    int stage = 0;           // where the tiles are that are multiplied
    int refill = STAGES - 1; // where those STAGES - 1 turns later are copied to
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int step = 0; step < K_STEPS - 1; ++step) {
            read_fragments((step + 1) % 2, stage, (step + 1) * FRAGMENT);
            multiply(step % 2);
        }
        copy_tiles(refill, k0 + (STAGES - 1) * BK);
        wait_for_copies<STAGES - 2>();
        __syncthreads(); // the next tiles have arrived from all threads; all warps have read these
        refill = stage;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        read_fragments(K_STEPS % 2, stage, 0);
        multiply((K_STEPS - 1) % 2);
    }

    wait_for_copies<0>(); // those beyond K
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
        __syncthreads(); // the tiles of A and B are no longer used
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
