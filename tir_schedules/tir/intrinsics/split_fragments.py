"""Products of tiles in the fragments of mma.m16n8k16: of float32, which are split into parts of bfloat16 in
registers, and of tiles that have parts of float16.

A warp multiplies a tile of A and one of B in shared memory, by mma or together with others by wgmma. The
instructions are device functions, see split_fragments.cuh, split_rows.cuh and part_fragments.cuh in
cuda_reference/sgemm; mma_products.cuh says which lane has which sums. These have TVM's scope "warp".
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.split_products import STEP, Pairs, sum_of_products
from tir_schedules.tir.intrinsics.wgmma import product_text
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads import place_in_b
from tir_schedules.workloads.split_gemm import FORMS

LANES = 32
SHARED, SUMS = "shared.dyn", "warp"
TOGETHER = "multiply_split_rows"


def place_of_sum(i: Any, j: Any, width: int, near: int) -> tuple[Any, Any]:
    """Which lane has the sum of a row and a column of a warp's tile, and in which place of its. near: sums of
    a lane that are neighbours in a row."""
    lane = i % 8 * 4 + j % (4 * near) // near
    return lane, i // 8 * (width // 4) + j // (4 * near) * near + j % near


def sums_map(height: int, width: int, near: int) -> Callable[[Any, Any, Any], list[Any]]:
    """The index map, for `transform_layout`, of all sums: part of K; row and column of tiles; lane; place."""

    def index_map(part: Any, i: Any, j: Any) -> list[Any]:
        return [part, i // height, j // width, *place_of_sum(i % height, j % width, width, near)]

    return index_map


def together_text(width: int, depth: int, a_row: int, b_row: int, warps: int, transposed: bool) -> str:
    """The device function of so many warps that multiply 16 rows of A each, as `multiply_split_rows` of
    split_rows.cuh. A template cannot make the text of a wgmma, which names each of its registers."""
    row, steps, product = 2 * depth, depth // 16, f"multiply_rows_64x{width}x16"
    part, pairs = width * row, FORMS["bf16x6"].products
    read = [f"    read_rows<{a_row}>(pairs[{step}], a + {step * 16});" for step in range(steps)]
    split = [f"    split_rows(parts[{step}], pairs[{step}]);" for step in range(steps)]
    products = [
        f"    {product}(partial[0], parts[{step}][{i}], further(tile, {j * part + step * STEP}),"
        f" {int(step > 0 or number > 0)});"
        for number, (i, j) in enumerate(pairs)
        for step in range(steps)
    ]
    lines = "\n".join
    return f"""{product_text(product, width, "bfloat16", "float32", begins=True, of_registers=True)}
// Adds the product of 16 rows of A for each warp and a tile of B to a warp's sums.
static __device__ __forceinline__ void {TOGETHER}(float &sums, const float *a, const float *b)
{{
    __shared__ __align__(1024) unsigned char columns[{FORMS["bf16x6"].parts * part}];
    float2 pairs[{steps}][4];
    a += threadIdx.x / 4 * {a_row} + threadIdx.x % 4 * 2;
{lines(read)}
    split_columns<{width}, {depth}, {b_row}, {warps}, {str(transposed).lower()}>(columns, b);
    unsigned parts[{steps}][3][4];
{lines(split)}
    __syncthreads();
    const unsigned long long tile = describe_rows<{row}>(shared_address(columns));
    float partial[{width // 2}];
    begin_products();
{lines(products)}
    commit_products();
    promote_products<{width}>(sums, partial);
}}
"""


@in_halves
def multiply(
    describes: bool,
    height: int,
    width: int,
    depth: int,
    a_row: int,
    b_row: int,
    near: int,
    transposed: bool,
    warps: int = 0,
) -> PrimFunc:
    """sums += A @ B: `height` rows of A, `width` columns of B, `depth` deep. a_row, b_row: floats of rows in
    shared memory. near: sums of a lane that are neighbours in a row. transposed: whether the tile of B is
    width x depth. warps: of a block, which multiply together, by wgmma, 16 rows each and the same columns;
    0 where each multiplies by mma."""
    places = height * width // LANES
    name = f"multiply_split_tiles<{height}, {width}, {depth}, {a_row}, {b_row}{', true' * transposed}>"
    text = ""
    if warps:
        name, text = TOGETHER, together_text(width, depth, a_row, b_row, warps, transposed)
    b_shape = place_in_b(depth, width, transposed)

    @T.prim_func(s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(
            a, (height, depth), "float32", align=8, offset_factor=1, scope=SHARED, strides=[a_row, 1]
        )
        B = T.match_buffer(
            b,
            b_shape,
            "float32",
            align=8 if transposed else 4,
            offset_factor=1,
            scope=SHARED,
            strides=[b_row, 1],
        )
        C = T.match_buffer(c, (LANES, places), "float32", align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:LANES, 0:places], A[0:height, 0:depth], B[0 : b_shape[0], 0 : b_shape[1]])
            T.writes(C[0:LANES, 0:places])
            if describes:
                for i, j, k in T.grid(height, width, depth):
                    with T.sblock("multiply"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        at = T.meta_var(place_of_sum(vi, vj, width, near))
                        row, column = T.meta_var(place_in_b(vk, vj, transposed))
                        T.reads(C[at], A[vi, vk], B[row, column])
                        T.writes(C[at])
                        C[at] = C[at] + A[vi, vk] * B[row, column]
            else:
                for lane in T.thread_binding(0, LANES, "threadIdx.x"):
                    T.evaluate(
                        cuda_func_call(
                            name,
                            C[lane, 0],
                            T.address_of(A[0, 0]),
                            T.address_of(B[0, 0]),
                            source_code=text,
                        )
                    )

    return half


@in_halves
def multiply_parts(describes: bool, height: int, width: int, depth: int, row: int, pairs: Pairs) -> PrimFunc:
    """The same of two parts of float16: a row of a tile has the first parts of its `depth` elements, and then
    the second ones. row: halves of a row in shared memory, of A and of B. The tile of B is in rows along K.
    pairs: parts of A and of B that are multiplied."""
    places = height * width // LANES
    name = f"multiply_part_tiles<{height}, {width}, {depth}, {row}>"

    def products(A: Any, B: Any, i: Any, j: Any, k: Any) -> Any:
        return sum_of_products(lambda p: A[i, p * depth + k], lambda p: B[j, p * depth + k], pairs)

    @T.prim_func(s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(
            a, (height, 2 * depth), "float16", align=16, offset_factor=1, scope=SHARED, strides=[row, 1]
        )
        B = T.match_buffer(
            b, (width, 2 * depth), "float16", align=16, offset_factor=1, scope=SHARED, strides=[row, 1]
        )
        C = T.match_buffer(c, (LANES, places), "float32", align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:LANES, 0:places], A[0:height, 0 : 2 * depth], B[0:width, 0 : 2 * depth])
            T.writes(C[0:LANES, 0:places])
            if describes:
                for i, j, k in T.grid(height, width, depth):
                    with T.sblock("multiply"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        at = T.meta_var(place_of_sum(vi, vj, width, 2))
                        C[at] = C[at] + products(A, B, vi, vj, vk)
            else:
                for lane in T.thread_binding(0, LANES, "threadIdx.x"):
                    T.evaluate(call(name, C[lane, 0], T.address_of(A[0, 0]), T.address_of(B[0, 0])))

    return half
