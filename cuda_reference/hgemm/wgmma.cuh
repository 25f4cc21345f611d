// wgmma: a warpgroup, four warps, multiplies 64 rows of A by 8 to 256 columns of B, 16 deep, straight from
// shared memory. The threads go on while the tensor cores work; the sums are in their registers.
//
// Operands are K tiles: 64 deep, in rows of 128 bytes under the swizzle of 128 bytes, at a multiple of 1024
// bytes. In place of pointers wgmma takes descriptors, of 64 bits:
//   0 to 13    address / 16
//   16 to 29   bytes / 16 from 64 columns to the next 64, where rows are along k
//   32 to 45   bytes / 16 from 8 rows to the next 8
//   62, 63     1: a swizzle of 128 bytes
// The swizzle is a matter of addresses, so a descriptor may start within a row: 16 deep along a row are 32
// bytes. The other way, where rows are along k, they are 16 rows.
//
// Sums of floats: register 4 * j + 2 * h + e of lane l of warp w has row 16 * w + 8 * h + l / 4, column 8 * j
// + l % 4 * 2 + e. Those of halves: both e in one register, 2 * j + h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

constexpr int K_TILE = 64;      // extent along K
constexpr int ROW_BYTES = 128;  // of a row in shared memory
constexpr int PATTERN = 1024;   // bytes of 8 rows, after which the swizzle repeats

// The descriptor of the K tile at an address. ACROSS: bytes from 64 columns to the next.
template <int ACROSS = 16> static __device__ inline unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | static_cast<unsigned long long>(ACROSS / 16) << 16 |
           static_cast<unsigned long long>(PATTERN / 16) << 32 | 1ull << 62;
}

// Before the first wgmma of a group: what this thread did with the registers of the sums comes first.
static __device__ inline void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Ends a group of wgmma.
static __device__ inline void commit_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for all groups but the latest PENDING.
template <int PENDING> static __device__ inline void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// The names of the first operands of an asm statement, and the operands.
#define TEN(tens)                                                                                           \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens    \
    "7, %" #tens "8, %" #tens "9, "
#define NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NAMES_16 TEN() "%10, %11, %12, %13, %14, %15"
#define NAMES_32 TEN() TEN(1) TEN(2) "%30, %31"
#define NAMES_48 TEN() TEN(1) TEN(2) TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47"
#define NAMES_64 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60, %61, %62, %63"
#define NAMES_96 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) "%90, %91, %92, %93, %94, %95"
#define NAMES_128                                                                                           \
    TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)                    \
    "%120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_4(kind, i) kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3])
#define SUMS_8(kind, i) SUMS_4(kind, i), SUMS_4(kind, i + 4)
#define SUMS_16(kind, i) SUMS_8(kind, i), SUMS_8(kind, i + 8)
#define SUMS_32(kind, i) SUMS_16(kind, i), SUMS_16(kind, i + 16)
#define SUMS_48(kind, i) SUMS_32(kind, i), SUMS_16(kind, i + 32)
#define SUMS_64(kind, i) SUMS_32(kind, i), SUMS_32(kind, i + 32)
#define SUMS_96(kind, i) SUMS_64(kind, i), SUMS_32(kind, i + 64)
#define SUMS_128(kind, i) SUMS_64(kind, i), SUMS_64(kind, i + 64)

// d = a @ b, or d += a @ b if `add`. A, B, ADD, ALONG_K: the names of the operands behind the COUNT sums.
#define WGMMA(COLUMNS, TYPES, COUNT, kind, A, B, ADD, ALONG_K)                                              \
    asm volatile("{\n"                                                                                      \
                 ".reg .pred kept;\n"                                                                       \
                 "setp.ne.b32 kept, " ADD ", 0;\n"                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16." TYPES " {" NAMES_##COUNT "}, " A ", " B \
                 ", kept, 1, 1, 0, " ALONG_K ";\n"                                                          \
                 "}"                                                                                        \
                 : SUMS_##COUNT(kind, 0)                                                                    \
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(B_ALONG_K)))

// One wgmma, for each number of columns and type of sums. Element: of A and B. B_ALONG_K: whether rows of the
// K tile of B are along k, not along its columns.
#define SUMS_OF_FLOATS(COLUMNS, COUNT, A, B, ADD, ALONG_K)                                                  \
    template <typename Element, bool B_ALONG_K>                                                             \
    static __device__ __forceinline__ void wgmma_k16(float (&d)[COUNT], unsigned long long a,          \
                                                          unsigned long long b, bool add)                   \
    {                                                                                                       \
        if constexpr (std::is_same_v<Element, half>)                                                        \
            WGMMA(COLUMNS, "f32.f16.f16", COUNT, "+f", A, B, ADD, ALONG_K);                                 \
        else                                                                                                \
            WGMMA(COLUMNS, "f32.bf16.bf16", COUNT, "+f", A, B, ADD, ALONG_K);                               \
    }
#define SUMS_OF_HALVES(COLUMNS, COUNT, A, B, ADD, ALONG_K)                                                  \
    template <typename Element, bool B_ALONG_K>                                                             \
    static __device__ __forceinline__ void wgmma_k16(unsigned (&d)[COUNT], unsigned long long a,       \
                                                          unsigned long long b, bool add)                   \
    {                                                                                                       \
        static_assert(std::is_same_v<Element, half>, "sums of products of bfloat16 are floats");            \
        WGMMA(COLUMNS, "f16.f16.f16", COUNT, "+r", A, B, ADD, ALONG_K);                                     \
    }
SUMS_OF_FLOATS(256, 128, "%128", "%129", "%130", "%131")
SUMS_OF_FLOATS(192, 96, "%96", "%97", "%98", "%99")
SUMS_OF_FLOATS(128, 64, "%64", "%65", "%66", "%67")
SUMS_OF_FLOATS(64, 32, "%32", "%33", "%34", "%35")
SUMS_OF_FLOATS(32, 16, "%16", "%17", "%18", "%19")
SUMS_OF_HALVES(256, 64, "%64", "%65", "%66", "%67")
SUMS_OF_HALVES(192, 48, "%48", "%49", "%50", "%51")
SUMS_OF_HALVES(128, 32, "%32", "%33", "%34", "%35")
SUMS_OF_HALVES(64, 16, "%16", "%17", "%18", "%19")
SUMS_OF_HALVES(32, 8, "%8", "%9", "%10", "%11")
