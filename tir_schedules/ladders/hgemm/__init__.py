"""The HGEMM ladder: GEMM of float16 matrices on tensor cores."""

from tir_schedules.model.ladder import Kind, Ladder
from tir_schedules.model.rung import Rung
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS, OPERANDS, RESULTS

OWN = "what the rung has"

SUMS = (
    {"dtype": "float16", "accumulate": "float16", "output": "float16"},
    {"dtype": "float16", "accumulate": "float32", "output": "float16"},
    {"dtype": "bfloat16", "accumulate": "float32", "output": "bfloat16"},
)
"""What programs multiply in: sums in float16, or in float32 with a C in the format of A and B."""


def offered(rung: Rung) -> dict[str, tuple[str, ...]]:
    """The values of each kind that a rung has: float16 and the format of the sums, if it names no others."""
    return {
        "accumulate": getattr(rung.config, "accumulators", ()),
        "dtype": rung.dtypes or OPERANDS[:1],
        "output": rung.outputs or ("",),
    }


LADDER = Ladder(
    "hgemm",
    (
        "wmma_naive",
        "wmma_shared",
        "wmma_padded",
        "wmma_async",
        "wmma_pipelined",
        "wmma_register_pipelined",
        "wmma_staged_epilogue",
        "wmma_swizzled_grid",
        "mma_ldmatrix",
        "mma_xor_swizzle",
        "mma_multistage",
        "wgmma",
        "wgmma_async",
        "tma",
        "warp_specialized",
        "persistent",
        "tma_store",
        "cluster",
        "tile_shapes",
        "repacked",
        "split_k",
        "stream_k",
    ),
    workload="tir_schedules.workloads.half_gemm:HalfGemm",
    extents=("M", "N", "K"),
    sizes="A is MxK, B is KxN",
    shape=(512, 512, 256),
    shapes={
        "emit": ((1024, 1024, 1024),),
        # Whole tiles alone: the ladder is long and runs in all kinds.
        "run": ((256, 256, 128),),
        "trace": ((256, 256, 128),),
        "bench": tuple((size,) * 3 for size in (1024, 2048, 4096, 8192)),
        "time": ((4096, 4096, 4096),),
        "largest": ((2048, 2048, 2048),),
    },
    kinds={
        "layout": Kind(LAYOUTS, "nt, B is stored NxK, or nn, B is stored KxN"),
        "accumulate": Kind(ACCUMULATORS, "accumulators in float16 or float32"),
        "dtype": Kind(OPERANDS, "A and B in float16 or bfloat16", OWN),
        "output": Kind(RESULTS, "C in float32, float16 or bfloat16", OWN, option="result"),
    },
    offered=offered,
    in_turn=[{**sums, "layout": layout} for sums in SUMS for layout in LAYOUTS],
    beside=("gemv", "unaligned"),
    models="tir_schedules.ladders.hgemm.models:MODELS",
    vendor="cuBLAS",
)
