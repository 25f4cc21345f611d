"""fp32 matrix multiplication, from one thread per element past warp tiling to overlapped copies.

The rungs up to `vectorized` follow article 003 ("choiBLAMS"), those up to `warp_tiling` article 000 ("Warp
Tiling").
"""

from tir_schedules.model.ladder import Kind, Ladder
from tir_schedules.model.rung import Rung
from tir_schedules.workloads import EMULATED, LAYOUTS, PRODUCTS

NN_NT = LAYOUTS[::-1]
"""The layouts of B, in the order of this ladder: most of its rungs take the first alone."""


def offered(rung: Rung) -> dict[str, tuple[str, ...]]:
    """What a rung multiplies, and how B is stored: float32 in nn, where it says nothing else."""
    return {
        "products": (getattr(rung.config, "products", PRODUCTS[0]),),
        "layout": getattr(rung.config, "layouts", NN_NT[:1]),
    }


LADDER = Ladder(
    "sgemm",
    (
        "naive",
        "coalesced",
        "shared_tile",
        "thread_tile_1d",
        "thread_tile_2d",
        "vectorized",
        "transposed",
        "warp_tiling",
        "lane_quads",
        "pipelined",
        "serpentine",
        "multistage",
        "split_k",
        "stream_k",
        "tma",
        "tf32",
        "split_bf16",
        "promoted",
        "bf16x6",
        "fp16x3",
        "bf16x6_mma",
        "fp16x3_mma",
        "bf16x6_fused",
    ),
    workload="tir_schedules.workloads.split_gemm:float_gemm",
    extents=("M", "N", "K"),
    sizes="A is MxK, B is KxN",
    shape=(256, 256, 256),
    shapes={
        "emit": ((1024, 1024, 1024),),
        # Every tile whole; ragged with rows that 16-byte accesses can take; ragged with rows they cannot.
        "run": ((256, 256, 256), (132, 100, 36), (129, 127, 65)),
        "trace": ((256, 128, 128),),
        "bench": tuple((size,) * 3 for size in (256, 512, 1024, 2048, 4096, 8192)),
        "time": ((4096, 4096, 4096),),
        "largest": ((1024, 1024, 1024),),
    },
    kinds={
        "products": Kind(
            PRODUCTS,
            "products of float32, or of parts on tensor cores (sgemm/fastest: float32, or what is asked)",
            "what the rung has",
            left=EMULATED,
            left_help="sgemm/fastest: float32 or bf16x6, which is as accurate, by which is faster",
        ),
        "layout": Kind(NN_NT, "nn, B is stored KxN, or nt, B is stored NxK (products of parts and gemv)"),
    },
    offered=offered,
    in_turn=({"products": PRODUCTS[0], "layout": NN_NT[0]},),
    beside=("gemv",),
    models="tir_schedules.ladders.sgemm.models:MODELS",
    vendor="cuBLAS",
    limit="fp32 peak",
)
