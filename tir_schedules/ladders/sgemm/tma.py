"""TMA copies K tiles as boxes, and threads transpose K tiles of A in shared memory.

One thread starts two copies for a K tile of 32 along K, a box of A and one of B. TMA (the Tensor Memory
Accelerator) computes the addresses, and elements beyond the matrices arrive as zeros. So no thread computes
addresses of elements or checks bounds. No register holds copied data. K tiles arrive in a ring of stages in
shared memory, and each stage has a barrier (mbarrier) that counts the bytes. Schedule primitives can express
neither the additional parameters of the kernel nor copies that run ahead: see the passes `tensor_maps` and
`tma_prefetch`.

TMA does not transpose, and the fragment of A for one k is part of a column of A. So all threads transpose
each K tile of A before it is multiplied. It lies in rows of 128 bytes, in which TMA permutes the pieces of 16
bytes (the swizzle), so these accesses have no bank conflicts. A barrier follows, and then the stage of the K
tile before is free. So there is one barrier for 32 of K, and `serpentine` has four.

Without the transposition a thread could read four k of a row of A in a float4. But then all factors from A of
one k are in registers of one bank, and those of the next k are in the other bank. So nvcc moves sums and
scatters the order of the FMA. This was tried: the rate was 49.3 TFLOPS at 4096.

There are fewer instructions besides the FMA than in `serpentine`, and fewer FMA that read three registers.
But this rung is not faster. The model of `inspect` predicts 84 % of the peak instead of 82. On an H200 this
rung has 51.6, 52.4 and 52.7 TFLOPS at 2048, 4096 and 8192, 1.02 times the best of cuBLAS. There `serpentine`
has 53.0, 53.9 and 54.1.

The model of `inspect` ignores two things: at which places loads from shared memory stand, and the instruction
cache. Both matter. So the loop over k is unrolled by eight, or by 32 if tiles are 64x128, which have a
quarter of the FMA for each k. The last K tile is multiplied after the loop.

Measured on an H200:

- Unrolled by 32 the loop over k had 45.9, 50.6 and 51.7 TFLOPS, and unrolled by two it had 50.2, 50.8 and
  51.1. With two K tiles in an iteration, 128 KiB of instructions, it had 24.5 at 4096. Tiles of 64x128 had
  37.2 at 1024 if unrolled by eight, and by 32 in another run 40.6.
- With a condition for the last K tile in the loop (nvcc does not move loads across it) it had 49.0, 49.5 and
  49.9 TFLOPS.
- With all 32 k unrolled, nvcc put 53 of 392 loads right before the FMA that need them. A trial by hand with a
  `__syncwarp()` for every second k (loads do not cross it) had 3 of 196, and 47.1, 53.0 and 54.0 TFLOPS.
- A producer warpgroup that copies and transposes had 47.8 and 49.9 TFLOPS at 4096, for two depths of the K
  tiles.

Rows that are not a multiple of 16 bytes do not fit into a tensor map, and several maps do not help. Rows 0,
4, 8, ... begin at multiples of 16 bytes from each other, so four maps would have all rows. But a box also has
to begin at a multiple of 16 bytes, or the kernel ends with an illegal instruction. This was tried on an H200.

Measured on an H200 at 4096: 52.3 TFLOPS, 0.96 times the 54.6 of `stream_k`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.ladders.sgemm import serpentine, stream_k, warp_tiles
from tir_schedules.ladders.sgemm.multistage import WAVE
from tir_schedules.ladders.sgemm.pipelined import ORDER
from tir_schedules.ladders.sgemm.steps import VECTOR
from tir_schedules.model.annotations import EXTENTS
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import Launch, TensorMap, ceil_div, promotion_of
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule, pipeline
from tir_schedules.workloads.gemm import Gemm

SHARED = "shared.dyn"
DEPTH = 32  # of a K tile: rows of A of 128 bytes, what the swizzle takes
TRANSPOSED_STAGES = 2  # K tiles of A laid out anew
FEWEST, MOST = 2, 8  # stages
FMAS = 1024
"""FMA of a thread in the unrolled loop over k. With four times as many the code does not fit into the
instruction cache."""
BARRIERS = 1024
"""Bytes of static shared memory: the barriers of stages, and what aligns boxes behind them."""

ARCH = "sm_90a"


@dataclass(frozen=True)
class Config(warp_tiles.WarpTiling):
    """bk is always 32. stages: stages for K tiles, as boxes."""

    bm: int = 128
    bn: int = 256
    bk: int = 32
    wm: int = 64
    wn: int = 64
    wmiter: int = 2
    wniter: int = 4
    stages: int = 3

    @property
    def box_bytes(self) -> int:
        """Bytes of a K tile of A and one of B."""
        return 4 * self.bk * (self.bm + self.bn)

    @property
    def unrolled(self) -> int:
        """By how much the loop over k is unrolled: an even number, for fragments of even k and of odd."""
        return max(2, min(self.bk, FMAS // self.lane_sums // 2 * 2))

    @property
    def shared_bytes(self) -> int:
        """Bytes of all stages, and of transposed K tiles of A."""
        return self.stages * self.box_bytes + TRANSPOSED_STAGES * 4 * self.bk * self.bm


def refuses(gemm: Gemm, config: Config) -> str:
    """Why a configuration cannot be, or empty."""
    for name, row in (("A", gemm.k), ("B", gemm.n)):
        if row % VECTOR:
            return (
                f"rows of {name} are {4 * row} bytes, and TMA takes rows of a multiple of 16: use"
                " sgemm/serpentine"
            )
    if config.bk != DEPTH:
        return f"bk is {DEPTH}: rows of 128 bytes, as the swizzle has them"
    if not FEWEST <= config.stages <= MOST:
        return f"stages is {config.stages}: the ring has {FEWEST} to {MOST} stages"
    if config.bn <= DEPTH:
        return f"bn is {config.bn}: it is more than {DEPTH}, or boxes of B have a swizzle as well"
    if config.bn > 256 or config.bm > 256:
        return "bm and bn are at most 256, the largest box"
    if config.bm % config.wm or config.bn % config.wn:
        return f"warp tiles of {config.wm}x{config.wn} do not divide the block tile, {config.bm}x{config.bn}"
    if not config.covered_by_quads():
        return warp_tiles.UNCOVERED_QUADS
    if config.threads % config.bm or DEPTH // VECTOR % (config.threads // config.bm):
        return (
            f"a block of {config.threads} threads cannot share the {config.bm} rows of a K tile of A evenly"
        )
    limit = find_sm(ARCH).shared_limit - BARRIERS
    if config.shared_bytes > limit:
        return f"it takes {config.shared_bytes} bytes of shared memory, and {ARCH} has {limit} for it"
    return ""


def launch(gemm: Gemm, config: Config) -> Launch:
    reason = refuses(gemm, config)
    if reason:
        raise BadInput(reason)
    maps = (
        TensorMap(
            "A_map",
            "A",
            "float32",
            (gemm.m, gemm.k),
            (4 * gemm.k,),
            (config.bm, config.bk),
            128,
            promotion_of(4 * gemm.k),
        ),
        TensorMap(
            "B_map",
            "B",
            "float32",
            (gemm.k, gemm.n),
            (4 * gemm.n,),
            (config.bk, config.bn),
            0,
            promotion_of(4 * gemm.n),
        ),
    )
    grid = ceil_div(gemm.n, config.bn), ceil_div(gemm.m, config.bm), 1
    return Launch(grid, (config.threads, 1, 1), config.shared_bytes, maps=maps)


def count_k_tiles(gemm: Gemm, config: Config) -> int:
    """At least two: of a single one TVM makes no loop, and gives buffers each other's place."""
    return max(2, ceil_div(gemm.k, config.bk))


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """The algorithm over whole tiles, as TMA shows A and B: zero beyond the matrices."""
    from tvm.script import tirx as T

    M, N = (ceil_div(*each) * each[1] for each in ((gemm.m, config.bm), (gemm.n, config.bn)))
    K, c_shape = count_k_tiles(gemm, config) * config.bk, (gemm.m, gemm.n)

    @T.prim_func(s_tir=True)
    def algorithm(
        A: T.Buffer((M, K), "float32"),
        B: T.Buffer((K, N), "float32"),
        C: T.Buffer((gemm.m, gemm.n), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        C_sums = T.sblock_alloc_buffer((M, N), "float32")
        for i, j, k in T.grid(M, N, K):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_sums[vi, vj] = T.float32(0)
                C_sums[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(*c_shape):
            with T.sblock("C_inside"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_sums[vi, vj]

    made: Any = algorithm
    extents = {"A": (gemm.m, gemm.k), "B": (gemm.k, gemm.n), "C": c_shape}
    return made.with_attr({"global_symbol": name, EXTENTS: extents})


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    from tir_schedules.tir.intrinsics import boxes, transpose

    parts = warp_tiles.split_up(sch, config, SHARED, order=ORDER)
    transposed, box_b = parts.copies
    box_a = sch.cache_read(transposed, 0, SHARED)
    depth = config.bk
    sch.transform_layout(box_a, ("write", 0), lambda i, k: (k // depth, i, k % depth))
    sch.transform_layout(transposed, ("write", 0), lambda k, i: (k // depth, k % depth, i))
    sch.transform_layout(box_b, ("write", 0), lambda k, j: (k // depth, k % depth, j))
    for copy in (transposed, box_b, box_a):
        sch.compute_at(copy, parts.k_tile)
    announced = config.box_bytes
    for copy, rows, columns, bytes_ in (
        (box_a, config.bm, depth, announced),
        (box_b, depth, config.bn, 0),
    ):
        row, _ = sch.get_loops(copy)[-2:]
        sch.tensorize(row, boxes.load(rows, "float32", True, True, bytes_, 1, columns, False))
    sch.tensorize(sch.get_loops(transposed)[-2], transpose.transpose(config.bm, config.threads))
    warp_tiles.finish(sch, gemm, parts, config)
    warp_tiles.double_buffer_fragments(sch, parts, config, config.unrolled)
    serpentine.reverse_rows(sch, config, parts)
    # Transpose the K tile; copies of a later one, if any; first fragments; products; those of the last k.
    later = count_k_tiles(gemm, config) >= config.stages
    order = [1, 2, 3, 0, 4] if later else [1, 2, 0, 3]
    pipeline(sch, parts.k_tile, [*[0] * (len(order) - 2), 1, 1], order)
    sch.annotate(parts.k_tile, "disable_unroll", True)  # else two iterations, for twice the code
    sch.prefetch_boxes(parts.k_tile, config.stages)
    sch.encode_tensor_maps()


CONFIGS = {
    "128x256": Config(),
    "128x128": Config(bn=128, stages=2),
    "64x128": Config(bm=64, bn=128, wm=32, wn=32, wmiter=1, wniter=2, stages=4),
}


def choose(gemm: Gemm) -> str:
    """128x256 where that makes about as many tiles as a large GPU has SMs, else 64x128."""
    return "128x256" if gemm.m * gemm.n >= WAVE * 128 * 256 else "64x128"


RUNG = stream_k.RUNG.followed_by(
    "tma",
    "TMA copies K tiles as boxes; threads transpose those of A in shared memory",
    schedule,
    configs=CONFIGS,
    choose=choose,
    shapes="any with rows of A and B of a multiple of 4; others are for sgemm/serpentine",
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    arch=ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
