// Tiles of matrices whose rows start at any address: asynchronous copies, fragments, products.
//
// Rows that are multiples of 8, 4 or 2 elements are copied in as many at a time. Others are copied
// 16 bytes at a time, too: their copies begin on the multiple of 16 bytes before the row, with the last
// elements of the row before, so these rows lie up to seven elements further in shared memory, see
// `elements_before`. Elements beyond the matrix become 0, because a copy takes only the bytes that are inside.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "addresses.cuh"
#include "ldmatrix.cuh"

// The thread of a block that is 32 wide.
static __device__ __forceinline__ int thread_of_block()
{
    return threadIdx.y * 32 + threadIdx.x;
}

// Elements between the multiple of 16 bytes before a row and the row.
static __device__ __forceinline__ int elements_before(int row, int columns)
{
    return static_cast<int>(static_cast<unsigned>(row) * static_cast<unsigned>(columns) % 8);
}

// Starts a copy of BYTES to shared memory, `inside` of them from the source; zeros follow them.
template <int BYTES>
static __device__ __forceinline__ void start_row_copy(unsigned target, const void *source, int inside)
{
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
                     "r"(inside)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(target), "l"(source),
                     "n"(BYTES), "r"(inside)
                     : "memory");
}

// Starts the copy of a tile of HEIGHT x WIDTH at (row, col) of a rows x cols matrix to rows of STRIDE
// elements. PIECE: elements of a copy, that cols are a multiple of: 8, 4, 2; 1 for any. row and col are
// multiples of 8.
template <int HEIGHT, int WIDTH, int STRIDE, int PIECE, int THREADS, typename T>
static __device__ __forceinline__ void start_rows(T *tile, const T *matrix, int row, int col, int rows,
                                                  int cols)
{
    constexpr int ELEMENTS = PIECE == 1 ? 8 : PIECE, PIECES = WIDTH / ELEMENTS + (PIECE == 1);
    constexpr int DOWN = THREADS / PIECES; // rows from a thread's piece to its next, where EVEN
    constexpr bool EVEN = THREADS % PIECES == 0;
    const int thread = thread_of_block();
    const unsigned to = shared_address(tile);
#pragma unroll
    for (int i = 0; i * THREADS < HEIGHT * PIECES; ++i) {
        const int at = thread + i * THREADS;
        const int r = EVEN ? thread / PIECES + i * DOWN : at / PIECES;
        const int c = EVEN ? thread % PIECES : at % PIECES;
        if (HEIGHT * PIECES % THREADS == 0 || at < HEIGHT * PIECES) {
            const int from = col + c * ELEMENTS - (PIECE == 1 ? elements_before(r, cols) : 0);
            const int left = row + r < rows ? min(max(cols - from, 0), ELEMENTS) : 0;
            const T *source = matrix + (left > 0 ? static_cast<long long>(row + r) * cols + from : 0);
            start_row_copy<2 * ELEMENTS>(to + 2 * (r * STRIDE + c * ELEMENTS), source, 2 * left);
        }
    }
}

// Ends a group of copies.
static __device__ __forceinline__ void end_row_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until the thread's copies have arrived, except for its latest PENDING groups.
template <int PENDING> static __device__ __forceinline__ void wait_for_rows()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Two elements as a register of a fragment.
template <typename T> static __device__ __forceinline__ unsigned pair_of(const T *first, const T *second)
{
    return *reinterpret_cast<const unsigned short *>(first) |
           static_cast<unsigned>(*reinterpret_cast<const unsigned short *>(second)) << 16;
}

// Neighbours as a register of a fragment. even: whether the first has an even place.
template <typename T> static __device__ __forceinline__ unsigned neighbours_at(const T *first, bool even)
{
    return even ? *reinterpret_cast<const unsigned *>(first) : pair_of(first, first + 1);
}

// A fragment of 16 x 16 of A in rows of STRIDE. If ODD, rows begin further, see `elements_before`: columns of
// the matrix say how far.
template <int STRIDE, bool ODD, typename T>
static __device__ __forceinline__ void read_of_a(unsigned (&value)[4], const T *tile, int row, int k, int columns)
{
    const int lane = threadIdx.x;
    if constexpr (ODD) {
        const int before = elements_before(lane / 4, columns); // as of every eighth row
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = row + lane / 4 + i % 2 * 8;
            const T *const place = tile + r * STRIDE + k + lane % 4 * 2 + i / 2 * 8;
            value[i] = neighbours_at(place + before, columns % 2 == 0);
        }
    } else {
        load_matrices<false>(value, shared_address(tile + (row + lane % 16) * STRIDE + k + lane / 16 * 8));
    }
}

// A fragment of 16 along K and 16 columns of B, for two products. BY_COLUMNS: a row of the tile is a column
// of B.
template <int STRIDE, bool BY_COLUMNS, bool ODD, typename T>
static __device__ __forceinline__ void read_of_b(unsigned (&value)[4], const T *tile, int k, int column, int columns)
{
    const int lane = threadIdx.x;
    if constexpr (ODD) {
        const int row = BY_COLUMNS ? lane / 4 : lane % 4 * 2; // of eight
        const int before = elements_before(row, columns), before_next = elements_before(row + 1, columns);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = column + lane / 4 + i / 2 * 8, at = k + lane % 4 * 2 + i % 2 * 8;
            if constexpr (BY_COLUMNS)
                value[i] = neighbours_at(tile + j * STRIDE + at + before, columns % 2 == 0);
            else
                value[i] = pair_of(tile + at * STRIDE + j + before, tile + (at + 1) * STRIDE + j + before_next);
        }
    } else if constexpr (BY_COLUMNS) {
        load_matrices<false>(
            value, shared_address(tile + (column + lane % 8 + lane / 16 * 8) * STRIDE + k + lane / 8 % 2 * 8));
    } else {
        load_matrices<true>(value, shared_address(tile + (k + lane % 16) * STRIDE + column + lane / 16 * 8));
    }
}

// sums += a @ b, 16 x 8 by 16 along K.
static __device__ __forceinline__ void add_product(float *sums, const unsigned (&a)[4], const unsigned *b,
                                                   const half *)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same of bfloat16.
static __device__ __forceinline__ void add_product(float *sums, const unsigned (&a)[4], const unsigned *b,
                                                   const __nv_bfloat16 *)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same with sums in float16.
static __device__ __forceinline__ void add_product(half *sums, const unsigned (&a)[4], const unsigned *b,
                                                   const half *)
{
    unsigned *const pairs = reinterpret_cast<unsigned *>(sums);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
                 " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(pairs[0]), "+r"(pairs[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Adds the products of a K tile to a warp's sums of HEIGHT x WIDTH, of each 16 x 8 a lane's four. Warps in
// turn have steps of 16 along K, this one from the step `first` on. at_a, at_b: where the tiles of A and B
// begin. row, column: of the warp's tile in that of the block. a_columns, b_columns: of the matrices as they
// are stored.
template <int HEIGHT, int WIDTH, int DEPTH, int DEEP, int A_STRIDE, bool A_ODD, int B_STRIDE, bool B_ODD,
          bool BY_COLUMNS, typename S, typename T>
static __device__ __forceinline__ void add_tiles(S *sums, const T *stages, int at_a, int at_b, int row,
                                                 int column, int first, int a_columns, int b_columns)
{
    const T *const tile_a = stages + at_a, *const tile_b = stages + at_b;
#pragma unroll
    for (int step = 0; step < DEPTH / 16; step += DEEP) {
        const int k = (step + first) * 16;
        unsigned a[HEIGHT / 16][4], b[WIDTH / 16][4];
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i)
            read_of_a<A_STRIDE, A_ODD>(a[i], tile_a, row + i * 16, k, a_columns);
#pragma unroll
        for (int j = 0; j < WIDTH / 16; ++j)
            read_of_b<B_STRIDE, BY_COLUMNS, B_ODD>(b[j], tile_b, k, column + j * 16, b_columns);
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH / 8; ++j)
                add_product(sums + (i * (WIDTH / 8) + j) * 4, a[i], &b[j / 2][j % 2 * 2], tile_a);
    }
}

// Adds up the sums of DEEP warps for the same HEIGHT x WIDTH, through shared memory of DEEP - 1 sums for
// each of WIDE such groups: the first has them then. Its sums come first, the others behind them in their
// order.
template <int COUNT, int DEEP, int WIDE, typename S>
static __device__ __forceinline__ void fold_warps(S *sums, void *memory, int wide, int deep)
{
    float *const shared = static_cast<float *>(memory);
    __syncthreads();
    if (deep > 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            shared[(((deep - 1) * WIDE + wide) * COUNT + i) * 32 + threadIdx.x] = static_cast<float>(sums[i]);
    }
    __syncthreads();
    if (deep == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            float total = static_cast<float>(sums[i]);
#pragma unroll
            for (int other = 0; other < DEEP - 1; ++other)
                total += shared[((other * WIDE + wide) * COUNT + i) * 32 + threadIdx.x];
            sums[i] = static_cast<S>(total);
        }
    }
}

// Writes a warp's sums of HEIGHT x WIDTH to (row, column) of a rows x columns matrix in rows of `pitch`,
// each rounded where that has another format; two neighbours at once where PAIRS.
template <int HEIGHT, int WIDTH, bool PAIRS, typename S, typename R>
static __device__ __forceinline__ void write_sums(R *matrix, const S *sums, int row, int column, int rows,
                                                  int columns, int pitch)
{
    struct alignas(2 * sizeof(R)) Pair {
        R first, second;
    };
    const int lane = threadIdx.x;
#pragma unroll
    for (int i = 0; i < HEIGHT / 16; ++i)
#pragma unroll
        for (int j = 0; j < WIDTH / 8; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int r = row + i * 16 + h * 8 + lane / 4, c = column + j * 8 + lane % 4 * 2;
                const S *const own = sums + (i * (WIDTH / 8) + j) * 4 + h * 2;
                const R first = static_cast<R>(own[0]), second = static_cast<R>(own[1]);
                R *const to = matrix + static_cast<long long>(r) * pitch + c;
                if (PAIRS && r < rows && c < columns)
                    *reinterpret_cast<Pair *>(to) = Pair{first, second};
                if (!PAIRS && r < rows && c < columns)
                    to[0] = first;
                if (!PAIRS && r < rows && c + 1 < columns)
                    to[1] = second;
            }
}
