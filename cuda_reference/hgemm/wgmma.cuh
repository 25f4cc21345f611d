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
#define NAMES_4 "%0, %1, %2, %3"
#define NAMES_8 NAMES_4 ", %4, %5, %6, %7"
#define NAMES_12 NAMES_8 ", %8, %9, %10, %11"
#define NAMES_16 NAMES_12 ", %12, %13, %14, %15"
#define NAMES_20 NAMES_16 ", %16, %17, %18, %19"
#define NAMES_24 NAMES_20 ", %20, %21, %22, %23"
#define NAMES_28 NAMES_24 ", %24, %25, %26, %27"
#define NAMES_32 NAMES_28 ", %28, %29, %30, %31"
#define NAMES_36 NAMES_32 ", %32, %33, %34, %35"
#define NAMES_40 NAMES_36 ", %36, %37, %38, %39"
#define NAMES_44 NAMES_40 ", %40, %41, %42, %43"
#define NAMES_48 NAMES_44 ", %44, %45, %46, %47"
#define NAMES_52 NAMES_48 ", %48, %49, %50, %51"
#define NAMES_56 NAMES_52 ", %52, %53, %54, %55"
#define NAMES_60 NAMES_56 ", %56, %57, %58, %59"
#define NAMES_64 NAMES_60 ", %60, %61, %62, %63"
#define NAMES_68 NAMES_64 ", %64, %65, %66, %67"
#define NAMES_72 NAMES_68 ", %68, %69, %70, %71"
#define NAMES_76 NAMES_72 ", %72, %73, %74, %75"
#define NAMES_80 NAMES_76 ", %76, %77, %78, %79"
#define NAMES_84 NAMES_80 ", %80, %81, %82, %83"
#define NAMES_88 NAMES_84 ", %84, %85, %86, %87"
#define NAMES_92 NAMES_88 ", %88, %89, %90, %91"
#define NAMES_96 NAMES_92 ", %92, %93, %94, %95"
#define NAMES_100 NAMES_96 ", %96, %97, %98, %99"
#define NAMES_104 NAMES_100 ", %100, %101, %102, %103"
#define NAMES_108 NAMES_104 ", %104, %105, %106, %107"
#define NAMES_112 NAMES_108 ", %108, %109, %110, %111"
#define NAMES_116 NAMES_112 ", %112, %113, %114, %115"
#define NAMES_120 NAMES_116 ", %116, %117, %118, %119"
#define NAMES_124 NAMES_120 ", %120, %121, %122, %123"
#define NAMES_128 NAMES_124 ", %124, %125, %126, %127"
#define NAMES_2 "%0, %1"
#define NAMES_6 NAMES_4 ", %4, %5"
#define NAMES_10 NAMES_8 ", %8, %9"
#define NAMES_14 NAMES_12 ", %12, %13"
#define NAMES_18 NAMES_16 ", %16, %17"
#define NAMES_22 NAMES_20 ", %20, %21"
#define NAMES_26 NAMES_24 ", %24, %25"
#define NAMES_30 NAMES_28 ", %28, %29"
#define NAMES_34 NAMES_32 ", %32, %33"
#define NAMES_38 NAMES_36 ", %36, %37"
#define NAMES_42 NAMES_40 ", %40, %41"
#define NAMES_46 NAMES_44 ", %44, %45"
#define NAMES_50 NAMES_48 ", %48, %49"
#define NAMES_54 NAMES_52 ", %52, %53"
#define NAMES_58 NAMES_56 ", %56, %57"
#define NAMES_62 NAMES_60 ", %60, %61"
#define SUMS_4(kind) kind(d[0]), kind(d[1]), kind(d[2]), kind(d[3])
#define SUMS_8(kind) SUMS_4(kind), kind(d[4]), kind(d[5]), kind(d[6]), kind(d[7])
#define SUMS_12(kind) SUMS_8(kind), kind(d[8]), kind(d[9]), kind(d[10]), kind(d[11])
#define SUMS_16(kind) SUMS_12(kind), kind(d[12]), kind(d[13]), kind(d[14]), kind(d[15])
#define SUMS_20(kind) SUMS_16(kind), kind(d[16]), kind(d[17]), kind(d[18]), kind(d[19])
#define SUMS_24(kind) SUMS_20(kind), kind(d[20]), kind(d[21]), kind(d[22]), kind(d[23])
#define SUMS_28(kind) SUMS_24(kind), kind(d[24]), kind(d[25]), kind(d[26]), kind(d[27])
#define SUMS_32(kind) SUMS_28(kind), kind(d[28]), kind(d[29]), kind(d[30]), kind(d[31])
#define SUMS_36(kind) SUMS_32(kind), kind(d[32]), kind(d[33]), kind(d[34]), kind(d[35])
#define SUMS_40(kind) SUMS_36(kind), kind(d[36]), kind(d[37]), kind(d[38]), kind(d[39])
#define SUMS_44(kind) SUMS_40(kind), kind(d[40]), kind(d[41]), kind(d[42]), kind(d[43])
#define SUMS_48(kind) SUMS_44(kind), kind(d[44]), kind(d[45]), kind(d[46]), kind(d[47])
#define SUMS_52(kind) SUMS_48(kind), kind(d[48]), kind(d[49]), kind(d[50]), kind(d[51])
#define SUMS_56(kind) SUMS_52(kind), kind(d[52]), kind(d[53]), kind(d[54]), kind(d[55])
#define SUMS_60(kind) SUMS_56(kind), kind(d[56]), kind(d[57]), kind(d[58]), kind(d[59])
#define SUMS_64(kind) SUMS_60(kind), kind(d[60]), kind(d[61]), kind(d[62]), kind(d[63])
#define SUMS_68(kind) SUMS_64(kind), kind(d[64]), kind(d[65]), kind(d[66]), kind(d[67])
#define SUMS_72(kind) SUMS_68(kind), kind(d[68]), kind(d[69]), kind(d[70]), kind(d[71])
#define SUMS_76(kind) SUMS_72(kind), kind(d[72]), kind(d[73]), kind(d[74]), kind(d[75])
#define SUMS_80(kind) SUMS_76(kind), kind(d[76]), kind(d[77]), kind(d[78]), kind(d[79])
#define SUMS_84(kind) SUMS_80(kind), kind(d[80]), kind(d[81]), kind(d[82]), kind(d[83])
#define SUMS_88(kind) SUMS_84(kind), kind(d[84]), kind(d[85]), kind(d[86]), kind(d[87])
#define SUMS_92(kind) SUMS_88(kind), kind(d[88]), kind(d[89]), kind(d[90]), kind(d[91])
#define SUMS_96(kind) SUMS_92(kind), kind(d[92]), kind(d[93]), kind(d[94]), kind(d[95])
#define SUMS_100(kind) SUMS_96(kind), kind(d[96]), kind(d[97]), kind(d[98]), kind(d[99])
#define SUMS_104(kind) SUMS_100(kind), kind(d[100]), kind(d[101]), kind(d[102]), kind(d[103])
#define SUMS_108(kind) SUMS_104(kind), kind(d[104]), kind(d[105]), kind(d[106]), kind(d[107])
#define SUMS_112(kind) SUMS_108(kind), kind(d[108]), kind(d[109]), kind(d[110]), kind(d[111])
#define SUMS_116(kind) SUMS_112(kind), kind(d[112]), kind(d[113]), kind(d[114]), kind(d[115])
#define SUMS_120(kind) SUMS_116(kind), kind(d[116]), kind(d[117]), kind(d[118]), kind(d[119])
#define SUMS_124(kind) SUMS_120(kind), kind(d[120]), kind(d[121]), kind(d[122]), kind(d[123])
#define SUMS_128(kind) SUMS_124(kind), kind(d[124]), kind(d[125]), kind(d[126]), kind(d[127])
#define SUMS_2(kind) kind(d[0]), kind(d[1])
#define SUMS_6(kind) SUMS_4(kind), kind(d[4]), kind(d[5])
#define SUMS_10(kind) SUMS_8(kind), kind(d[8]), kind(d[9])
#define SUMS_14(kind) SUMS_12(kind), kind(d[12]), kind(d[13])
#define SUMS_18(kind) SUMS_16(kind), kind(d[16]), kind(d[17])
#define SUMS_22(kind) SUMS_20(kind), kind(d[20]), kind(d[21])
#define SUMS_26(kind) SUMS_24(kind), kind(d[24]), kind(d[25])
#define SUMS_30(kind) SUMS_28(kind), kind(d[28]), kind(d[29])
#define SUMS_34(kind) SUMS_32(kind), kind(d[32]), kind(d[33])
#define SUMS_38(kind) SUMS_36(kind), kind(d[36]), kind(d[37])
#define SUMS_42(kind) SUMS_40(kind), kind(d[40]), kind(d[41])
#define SUMS_46(kind) SUMS_44(kind), kind(d[44]), kind(d[45])
#define SUMS_50(kind) SUMS_48(kind), kind(d[48]), kind(d[49])
#define SUMS_54(kind) SUMS_52(kind), kind(d[52]), kind(d[53])
#define SUMS_58(kind) SUMS_56(kind), kind(d[56]), kind(d[57])
#define SUMS_62(kind) SUMS_60(kind), kind(d[60]), kind(d[61])

// d = a @ b, or d += a @ b if `add`. A, B, ADD, A_K, B_K: the names of the operands behind the COUNT sums.
#define WGMMA(COLUMNS, TYPES, COUNT, kind, A, B, ADD, A_K, B_K)                                             \
    asm volatile("{\n"                                                                                      \
                 ".reg .pred kept;\n"                                                                       \
                 "setp.ne.b32 kept, " ADD ", 0;\n"                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16." TYPES " {" NAMES_##COUNT "}, " A ", " B \
                 ", kept, 1, 1, " A_K ", " B_K ";\n"                                                        \
                 "}"                                                                                        \
                 : SUMS_##COUNT(kind)                                                                       \
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(A_ALONG_K)),            \
                   "n"(static_cast<int>(B_ALONG_K)))

// The same of tf32, which lie in rows along k.
#define WGMMA_TF32(COLUMNS, COUNT, kind, A, B, ADD)                                                         \
    asm volatile("{\n"                                                                                      \
                 ".reg .pred kept;\n"                                                                       \
                 "setp.ne.b32 kept, " ADD ", 0;\n"                                                          \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k8.f32.tf32.tf32 {" NAMES_##COUNT "}, " A ", " B \
                 ", kept, 1, 1;\n"                                                                          \
                 "}"                                                                                        \
                 : SUMS_##COUNT(kind)                                                                       \
                 : "l"(a), "l"(b), "r"(static_cast<int>(add)))

// The same of bfloat16 whose rows of A are in registers, as an mma.m16n8k16 has them.
#define WGMMA_ROWS(COLUMNS, COUNT, A_0, A_1, A_2, A_3, B, KEPT)                                             \
    asm volatile("{\n"                                                                                      \
                 ".reg .pred kept;\n"                                                                       \
                 "setp.ne.b32 kept, " KEPT ", 0;\n"                                                         \
                 "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32.bf16.bf16 {" NAMES_##COUNT "}, {" A_0 ", " A_1  \
                 ", " A_2 ", " A_3 "}, " B ", kept, 1, 1, 0;\n"                                               \
                 "}"                                                                                        \
                 : SUMS_##COUNT("+f")                                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// One wgmma, for each number of columns and type of sums. Element: of A and B. A_ALONG_K, B_ALONG_K: whether
// the K tile of A, or of B, has a row for each k, in place of one for each row of A or column of B.
#define SUMS_OF_FLOATS(COLUMNS, COUNT, A, B, ADD, A_K, B_K)                                                 \
    template <typename Element, bool A_ALONG_K, bool B_ALONG_K>                                             \
    static __device__ __forceinline__ void wgmma_k16(float (&d)[COUNT], unsigned long long a,          \
                                                          unsigned long long b, bool add)                   \
    {                                                                                                       \
        if constexpr (std::is_same_v<Element, half>)                                                        \
            WGMMA(COLUMNS, "f32.f16.f16", COUNT, "+f", A, B, ADD, A_K, B_K);                                \
        else if constexpr (std::is_same_v<Element, float>)                                                  \
            WGMMA_TF32(COLUMNS, COUNT, "+f", A, B, ADD);                                                    \
        else                                                                                                \
            WGMMA(COLUMNS, "f32.bf16.bf16", COUNT, "+f", A, B, ADD, A_K, B_K);                              \
    }                                                                                                       \
    static __device__ __forceinline__ void wgmma_rows_k16(float (&d)[COUNT], const unsigned (&a)[4],        \
                                                          unsigned long long b, bool add)                   \
    {                                                                                                       \
        if (add)                                                                                            \
            WGMMA_ROWS(COLUMNS, COUNT, A, B, ADD, A_K, B_K, "1");                                           \
        else                                                                                                \
            WGMMA_ROWS(COLUMNS, COUNT, A, B, ADD, A_K, B_K, "0");                                           \
    }
#define SUMS_OF_HALVES(COLUMNS, COUNT, A, B, ADD, A_K, B_K)                                                 \
    template <typename Element, bool A_ALONG_K, bool B_ALONG_K>                                             \
    static __device__ __forceinline__ void wgmma_k16(unsigned (&d)[COUNT], unsigned long long a,       \
                                                          unsigned long long b, bool add)                   \
    {                                                                                                       \
        static_assert(std::is_same_v<Element, half>, "sums of products of bfloat16 are floats");            \
        WGMMA(COLUMNS, "f16.f16.f16", COUNT, "+r", A, B, ADD, A_K, B_K);                                    \
    }
SUMS_OF_FLOATS(256, 128, "%128", "%129", "%130", "%131", "%132")
SUMS_OF_FLOATS(248, 124, "%124", "%125", "%126", "%127", "%128")
SUMS_OF_FLOATS(240, 120, "%120", "%121", "%122", "%123", "%124")
SUMS_OF_FLOATS(232, 116, "%116", "%117", "%118", "%119", "%120")
SUMS_OF_FLOATS(224, 112, "%112", "%113", "%114", "%115", "%116")
SUMS_OF_FLOATS(216, 108, "%108", "%109", "%110", "%111", "%112")
SUMS_OF_FLOATS(208, 104, "%104", "%105", "%106", "%107", "%108")
SUMS_OF_FLOATS(200, 100, "%100", "%101", "%102", "%103", "%104")
SUMS_OF_FLOATS(192, 96, "%96", "%97", "%98", "%99", "%100")
SUMS_OF_FLOATS(184, 92, "%92", "%93", "%94", "%95", "%96")
SUMS_OF_FLOATS(176, 88, "%88", "%89", "%90", "%91", "%92")
SUMS_OF_FLOATS(168, 84, "%84", "%85", "%86", "%87", "%88")
SUMS_OF_FLOATS(160, 80, "%80", "%81", "%82", "%83", "%84")
SUMS_OF_FLOATS(152, 76, "%76", "%77", "%78", "%79", "%80")
SUMS_OF_FLOATS(144, 72, "%72", "%73", "%74", "%75", "%76")
SUMS_OF_FLOATS(136, 68, "%68", "%69", "%70", "%71", "%72")
SUMS_OF_FLOATS(128, 64, "%64", "%65", "%66", "%67", "%68")
SUMS_OF_FLOATS(120, 60, "%60", "%61", "%62", "%63", "%64")
SUMS_OF_FLOATS(112, 56, "%56", "%57", "%58", "%59", "%60")
SUMS_OF_FLOATS(104, 52, "%52", "%53", "%54", "%55", "%56")
SUMS_OF_FLOATS(96, 48, "%48", "%49", "%50", "%51", "%52")
SUMS_OF_FLOATS(88, 44, "%44", "%45", "%46", "%47", "%48")
SUMS_OF_FLOATS(80, 40, "%40", "%41", "%42", "%43", "%44")
SUMS_OF_FLOATS(72, 36, "%36", "%37", "%38", "%39", "%40")
SUMS_OF_FLOATS(64, 32, "%32", "%33", "%34", "%35", "%36")
SUMS_OF_FLOATS(56, 28, "%28", "%29", "%30", "%31", "%32")
SUMS_OF_FLOATS(48, 24, "%24", "%25", "%26", "%27", "%28")
SUMS_OF_FLOATS(40, 20, "%20", "%21", "%22", "%23", "%24")
SUMS_OF_FLOATS(32, 16, "%16", "%17", "%18", "%19", "%20")
SUMS_OF_FLOATS(24, 12, "%12", "%13", "%14", "%15", "%16")
SUMS_OF_FLOATS(16, 8, "%8", "%9", "%10", "%11", "%12")
SUMS_OF_FLOATS(8, 4, "%4", "%5", "%6", "%7", "%8")
SUMS_OF_HALVES(256, 64, "%64", "%65", "%66", "%67", "%68")
SUMS_OF_HALVES(248, 62, "%62", "%63", "%64", "%65", "%66")
SUMS_OF_HALVES(240, 60, "%60", "%61", "%62", "%63", "%64")
SUMS_OF_HALVES(232, 58, "%58", "%59", "%60", "%61", "%62")
SUMS_OF_HALVES(224, 56, "%56", "%57", "%58", "%59", "%60")
SUMS_OF_HALVES(216, 54, "%54", "%55", "%56", "%57", "%58")
SUMS_OF_HALVES(208, 52, "%52", "%53", "%54", "%55", "%56")
SUMS_OF_HALVES(200, 50, "%50", "%51", "%52", "%53", "%54")
SUMS_OF_HALVES(192, 48, "%48", "%49", "%50", "%51", "%52")
SUMS_OF_HALVES(184, 46, "%46", "%47", "%48", "%49", "%50")
SUMS_OF_HALVES(176, 44, "%44", "%45", "%46", "%47", "%48")
SUMS_OF_HALVES(168, 42, "%42", "%43", "%44", "%45", "%46")
SUMS_OF_HALVES(160, 40, "%40", "%41", "%42", "%43", "%44")
SUMS_OF_HALVES(152, 38, "%38", "%39", "%40", "%41", "%42")
SUMS_OF_HALVES(144, 36, "%36", "%37", "%38", "%39", "%40")
SUMS_OF_HALVES(136, 34, "%34", "%35", "%36", "%37", "%38")
SUMS_OF_HALVES(128, 32, "%32", "%33", "%34", "%35", "%36")
SUMS_OF_HALVES(120, 30, "%30", "%31", "%32", "%33", "%34")
SUMS_OF_HALVES(112, 28, "%28", "%29", "%30", "%31", "%32")
SUMS_OF_HALVES(104, 26, "%26", "%27", "%28", "%29", "%30")
SUMS_OF_HALVES(96, 24, "%24", "%25", "%26", "%27", "%28")
SUMS_OF_HALVES(88, 22, "%22", "%23", "%24", "%25", "%26")
SUMS_OF_HALVES(80, 20, "%20", "%21", "%22", "%23", "%24")
SUMS_OF_HALVES(72, 18, "%18", "%19", "%20", "%21", "%22")
SUMS_OF_HALVES(64, 16, "%16", "%17", "%18", "%19", "%20")
SUMS_OF_HALVES(56, 14, "%14", "%15", "%16", "%17", "%18")
SUMS_OF_HALVES(48, 12, "%12", "%13", "%14", "%15", "%16")
SUMS_OF_HALVES(40, 10, "%10", "%11", "%12", "%13", "%14")
SUMS_OF_HALVES(32, 8, "%8", "%9", "%10", "%11", "%12")
SUMS_OF_HALVES(24, 6, "%6", "%7", "%8", "%9", "%10")
SUMS_OF_HALVES(16, 4, "%4", "%5", "%6", "%7", "%8")
SUMS_OF_HALVES(8, 2, "%2", "%3", "%4", "%5", "%6")
