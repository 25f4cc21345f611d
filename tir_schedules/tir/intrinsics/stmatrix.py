"""stmatrix: the sums of a warpgroup to shared memory, in the format and layout that boxes are stored from.

A box has 64 rows of 128 bytes: 64 columns of 16 bits, or 32 of float32, which stmatrix does not know; lanes
then store their pairs themselves. Of a tile with an odd number of columns its rows have 64 or 32 bytes, under
the swizzle of as many. If A and B are swapped, the sums are those of C's transpose. stmatrix transposes them,
8 x 8 at a time. A box has some rows of C, and the 64 columns that are the rows of a wgmma.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves
from tir_schedules.tir.intrinsics.boxes import BOXES
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.wgmma import ROWS, SUM_BYTES, SUMS, THREADS, operands_of, share
from tir_schedules.tir.schedule import PrimFunc

PART = 16  # columns that are stored at once
PAIRS = {
    ("float32", "float16"): "__floats2half2_rn",
    ("float32", "bfloat16"): "__floats2bfloat162_rn",
    ("float16", "float16"): "__halves2half2",
}
"""Formats of sums and of C -> the function that makes two neighbours in the format of C of two sums."""

SYNC = """\
// __syncthreads for the threads of this warpgroup.
static __device__ inline void sync_own_warpgroup()
{
    sync_warpgroup(threadIdx.y + 1);
}
"""

HEAD = """\
// Stores 8 sums of a thread, 16 columns of its warp's 16 rows, in the box at an address. part: which 16
// columns.
static __device__ __forceinline__ void store_sums(unsigned box, int part, {sums} &first)
{{
    const {sums} *const sums = &first;
"""

MATRICES = """{pairs}
    const unsigned values[4] = {{{values}}};
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
    const unsigned piece = (part * 2 + threadIdx.x % 32 / 16) ^ {swizzle};
    store_matrices(box + row * {row_bytes} + piece * 16, values);
}}
"""

TRANSPOSED_HEAD = """\
// Stores 8 sums of a thread, 16 columns of its warp's 16 rows, in the box at an address, whose rows are these
// columns. part: which 16 columns.
static __device__ __forceinline__ void store_transposed(unsigned box, int part, {sums} &first)
{{
    const {sums} *const sums = &first;
"""

TRANSPOSED = """{pairs}
    const unsigned values[4] = {{{values}}};
    const unsigned row = part * 16 + threadIdx.x % 32 / 16 * 8 + threadIdx.x % 8;
    const unsigned piece = (threadIdx.x / 32 * 2 + threadIdx.x % 16 / 8) ^ row % 8;
    store_transposed_matrices(box + row * 128 + piece * 16, values);
}}
"""

TRANSPOSED_EIGHT = """\
// Stores 4 sums of a thread, 8 columns of its warp's 16 rows, in the box at an address, whose rows are these
// columns. first: the first of the 8 columns.
static __device__ __forceinline__ void store_eight_transposed(unsigned box, int first, {sums} &sum)
{{
    const {sums} *const sums = &sum;
{pairs}
    const unsigned values[2] = {{{values}}};
    const unsigned row = first + threadIdx.x % 8;
    const unsigned piece = (threadIdx.x / 32 * 2 + threadIdx.x % 16 / 8) ^ row % 8;
    store_transposed_matrices(box + row * 128 + piece * 16, values);
}}
"""

FLOATS = """    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const unsigned place = box + row * {row_bytes} + threadIdx.x % 2 * 8;
    const unsigned piece = part * 4 + threadIdx.x % 4 / 2;
{stores}
}}
"""
STORE_PAIR = """    asm volatile("st.shared.v2.f32 [%0], {{%1, %2}};" ::"r"(
                     place + {rows} + ((piece + {pieces}) ^ {swizzle}) * 16),
                 "f"(sums[{first}]), "f"(sums[{second}])
                 : "memory");"""


SWIZZLES = {128: "row % 8", 64: "row / 2 % 4", 32: "row / 4 % 2"}
"""Bytes of a row of a box -> what the number of its 16 bytes is combined with by XOR."""


def text_of(accumulate: str, result: str, row_bytes: int) -> str:
    """A device function that stores some sums of a thread. It has no directive, such as one to unroll a loop,
    because the text before the last directive is read with the headers, see compiler/front_end.py."""
    sums, swizzle = "float" if accumulate == "float32" else "half", SWIZZLES[row_bytes]
    if result == "float32":
        stores = [
            STORE_PAIR.format(
                rows=half * 8 * row_bytes, pieces=eight * 2, first=first, second=first + 1, swizzle=swizzle
            )
            for eight in range(2)
            for half in range(2)
            for first in [eight * 4 + half * 2]
        ]
        return (HEAD + FLOATS).format(sums=sums, stores="\n".join(stores), row_bytes=row_bytes)
    pairs, values = pairs_of(accumulate, result)
    return (HEAD + MATRICES).format(
        sums=sums, pairs=pairs, values=values, row_bytes=row_bytes, swizzle=swizzle
    )


def transposed_text_of(accumulate: str, result: str, columns: int = PART) -> str:
    """The same of sums that are transposed on their way, of 16 columns or of 8."""
    pairs, values = pairs_of(accumulate, result, columns // 4)
    sums = "float" if accumulate == "float32" else "half"
    text = TRANSPOSED_HEAD + TRANSPOSED if columns == PART else TRANSPOSED_EIGHT
    return text.format(sums=sums, pairs=pairs, values=values)


def complete_text(count: int, accumulate: str) -> str:
    """A device function behind which so many registers of sums are read. Without it the compiler put
    conversions of sums of 160x192, in boxes of 40 rows, before the wait for them, and ptxas serialized the
    products."""
    head, outputs = operands_of(count, accumulate)
    return f"""// Sums are read from here on.
static __device__ __forceinline__ void complete_sums{head.format("")}
    asm volatile("" : {outputs} : : "memory");
}}
"""


def pairs_of(accumulate: str, result: str, count: int = 4) -> tuple[str, str]:
    """Statements that make so many pairs of sums, and these as operands of stmatrix."""
    made = PAIRS[accumulate, result]
    pairs = [f"    const auto pair_{i} = {made}(sums[{2 * i}], sums[{2 * i + 1}]);" for i in range(count)]
    return "\n".join(pairs), ", ".join(f"reinterpret_cast<const unsigned &>(pair_{i})" for i in range(count))


def boxes_map(rows: int, columns: int, swap: bool = False) -> Callable[[Any, Any], list[Any]]:
    """The index map of C in shared memory: column and row of boxes, which have so many rows and columns; row
    and column in the box. swap: columns and rows of boxes are those of the sums, C's transpose."""

    def index_map(i: Any, j: Any) -> list[Any]:
        box = [i // rows, j // columns] if swap else [j // columns, i // rows]
        return [*box, i % rows, j % columns]

    return index_map


def sync_own_warpgroup() -> Any:
    """A barrier for the threads of a warpgroup."""
    return cuda_func_call("sync_own_warpgroup", source_code=SYNC)


@in_halves
def store(
    describes: bool, columns: int, places: int, accumulate: str, result: str, engine: bool = True
) -> PrimFunc:
    """64 rows and so many columns of sums to shared memory, in the format `result`: a box, ready to be stored
    from there. places: which boxes take in turns. engine: TMA stores them, else threads do. The
    box that was in this place has been stored before: at the end of a box a warpgroup waits until the copy
    engine has read the next place."""
    text = text_of(accumulate, result, columns * SUM_BYTES.get(result, 2))
    formats = accumulate, result
    return through_box(describes, (ROWS, columns), False, places, formats, engine, "store_sums", text)


@in_halves
def store_transposed(
    describes: bool, rows: int, places: int, accumulate: str, result: str, engine: bool = True
) -> PrimFunc:
    """64 rows and `rows` columns of sums to shared memory, as a box of so many rows and 64 columns."""
    text = transposed_text_of(accumulate, result)
    last = transposed_text_of(accumulate, result, rows % PART) if rows % PART else ""
    formats = accumulate, result
    return through_box(describes, (rows, ROWS), True, places, formats, engine, "store_transposed", text, last)


def through_box(
    describes: bool,
    box: tuple[int, int],
    transposed: bool,
    places: int,
    formats: tuple[str, str],
    engine: bool,
    name: str,
    text: str,
    last: str = "",
) -> PrimFunc:
    """A half of an intrinsic. box: its rows and columns. formats: of sums and of C. name, text: of the device
    function that stores a thread's sums of 16 columns of a wgmma. last: text of the one that stores those of
    8 columns that are left."""
    (rows, columns), (accumulate, result) = box, formats
    length = rows if transposed else columns  # columns of the wgmma
    sums = length // 2
    complete = complete_text(length * SUM_BYTES[accumulate] // 8, accumulate)

    def place_of_sum(i: Any, j: Any) -> tuple[Any, Any]:
        return share(j, i) if transposed else share(i, j)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != accumulate else value

    def wait(groups: int) -> Any:
        return call(f"wait_until_stores_have_read<{groups}>")

    @T.prim_func(s_tir=True)
    def half(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (1, THREADS, sums), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (1, 1, rows, columns), result, align=64, offset_factor=1, scope=BOXES)
        with T.sblock("root"):
            T.reads(C[0, 0:THREADS, 0:sums])
            T.writes(S[0, 0, 0:rows, 0:columns])
            if describes:
                for i, j in T.grid(rows, columns):
                    with T.sblock("store"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        thread, place = T.meta_var(place_of_sum(vi, vj))
                        T.reads(C[0, thread, place])
                        T.writes(S[0, 0, vi, vj])
                        S[0, 0, vi, vj] = cast(C[0, thread, place])
            else:
                address = T.meta_var(call("shared_address", T.address_of(S[0, 0, 0, 0]), returns="uint32"))
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    if places == 1:  # the only place is still being stored
                        if engine:
                            if thread == 0:
                                T.evaluate(wait(0))
                        T.evaluate(sync_own_warpgroup())
                    if length % PART > 0:
                        T.evaluate(cuda_func_call("complete_sums", C[0, thread, 0], source_code=complete))
                    for part in T.unroll(length // PART):
                        T.evaluate(
                            cuda_func_call(
                                name, address, part, C[0, thread, part * (PART // 2)], source_code=text
                            )
                        )
                    if length % PART > 0:
                        T.evaluate(
                            cuda_func_call(
                                "store_eight_transposed",
                                address,
                                length - 8,
                                C[0, thread, sums - 4],
                                source_code=last,
                            )
                        )
                    if engine:
                        T.evaluate(call("fence_async_proxy"))
                        if places > 1:
                            if thread == 0:
                                T.evaluate(wait(places - 2))
                    T.evaluate(sync_own_warpgroup())

    return half
