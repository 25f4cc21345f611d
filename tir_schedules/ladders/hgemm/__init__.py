"""The HGEMM ladder: GEMM of float16 matrices on tensor cores."""

from tir_schedules.model.ladder import Kind, Ladder
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS

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
    ),
    workload="tir_schedules.workloads.half_gemm:HalfGemm",
    extents=("M", "N", "K"),
    sizes="A is MxK, B is KxN",
    shape=(512, 512, 256),
    shapes={
        "emit": ((1024, 1024, 1024),),
        # Whole tiles alone: the ladder is long and runs in four kinds.
        "run": ((256, 256, 128),),
        "trace": ((256, 256, 128),),
        "bench": tuple((size,) * 3 for size in (1024, 2048, 4096, 8192)),
        "largest": ((2048, 2048, 2048),),
    },
    kinds={
        "layout": Kind(LAYOUTS, "nt, B is stored NxK, or nn, B is stored KxN"),
        "accumulate": Kind(ACCUMULATORS, "accumulators and C in float16 or float32"),
    },
    offered=lambda rung: {"accumulate": getattr(rung.config, "accumulators", ())},
    vendor="cuBLAS",
)
