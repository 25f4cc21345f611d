"""The copy engine (TMA) brings slabs as boxes."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.ladders.sgemm import serpentine, warp_tiles
from tir_schedules.ladders.sgemm.multistage import WAVE
from tir_schedules.ladders.sgemm.pipelined import ORDER
from tir_schedules.model.launch import Launch, TensorMap, ceil_div
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.passes import AHEAD, EXTENTS
from tir_schedules.tir.schedule import PrimFunc, Schedule, pipeline
from tir_schedules.workloads.gemm import Gemm

SHARED = "shared.dyn"
DEPTH = 32  # of a slab: rows of A of 128 bytes, what the swizzle takes
ARCH = "sm_90"
TURNED = 2  # slabs of A laid out anew


@dataclass(frozen=True)
class Config(warp_tiles.WarpTiling):
    """stages: slots for slabs, as boxes."""

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
        """Of a slab of A and one of B."""
        return 4 * self.bk * (self.bm + self.bn)

    @property
    def shared_bytes(self) -> int:
        return self.stages * self.box_bytes + TURNED * 4 * self.bk * self.bm


def refuses(gemm: Gemm, config: Config) -> str:
    for name, row in (("A", gemm.k), ("B", gemm.n)):
        if row % 4:
            return (
                f"rows of {name} are {4 * row} bytes, and the copy engine takes rows of a multiple of 16: use"
                " sgemm/serpentine"
            )
    return ""


def launch(gemm: Gemm, config: Config) -> Launch:
    reason = refuses(gemm, config)
    if reason:
        raise BadInput(reason)
    maps = (
        TensorMap("A_map", "A", "float32", (gemm.m, gemm.k), (4 * gemm.k,), (config.bm, config.bk), 128, 256),
        TensorMap("B_map", "B", "float32", (gemm.k, gemm.n), (4 * gemm.n,), (config.bk, config.bn), 0, 256),
    )
    grid = ceil_div(gemm.n, config.bn), ceil_div(gemm.m, config.bm), 1
    return Launch(grid, (config.threads, 1, 1), config.shared_bytes, maps=maps)


def slabs_of(gemm: Gemm, config: Config) -> int:
    """At least two: of a single one TVM makes no loop, and gives buffers each other's place."""
    return max(2, ceil_div(gemm.k, config.bk))


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """The algorithm over whole tiles, as the copy engine shows A and B: zero beyond the matrices."""
    from tvm.script import tirx as T

    M, N = (ceil_div(*each) * each[1] for each in ((gemm.m, config.bm), (gemm.n, config.bn)))
    K = slabs_of(gemm, config) * config.bk

    @T.prim_func(s_tir=True)
    def algorithm(
        A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((gemm.m, gemm.n), "float32")
    ):
        T.func_attr({"tirx.noalias": True})
        C_sums = T.sblock_alloc_buffer((M, N), "float32")
        for i, j, k in T.grid(M, N, K):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_sums[vi, vj] = T.float32(0)
                C_sums[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(gemm.m, gemm.n):
            with T.sblock("C_inside"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_sums[vi, vj]

    made: Any = algorithm
    extents = {"A": (gemm.m, gemm.k), "B": (gemm.k, gemm.n), "C": (gemm.m, gemm.n)}
    return made.with_attr({"global_symbol": name, EXTENTS: extents})


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    from tir_schedules.tir.intrinsics import boxes, turned

    parts = warp_tiles.split_up(sch, config, SHARED, quads=True, order=ORDER)
    turn, box_b = parts.copies
    box_a = sch.cache_read(turn, 0, SHARED)
    depth = config.bk
    sch.transform_layout(box_a, ("write", 0), lambda i, k: (k // depth, i, k % depth))
    sch.transform_layout(turn, ("write", 0), lambda k, i: (k // depth, k % depth, i))
    sch.transform_layout(box_b, ("write", 0), lambda k, j: (k // depth, k % depth, j))
    for copy in (turn, box_b, box_a):
        sch.compute_at(copy, parts.k_tile)
    announced = config.box_bytes
    for copy, rows, columns, bytes_ in (
        (box_a, config.bm, depth, announced),
        (box_b, depth, config.bn, 0),
    ):
        row, _ = sch.get_loops(copy)[-2:]
        sch.tensorize(row, boxes.load(rows, "float32", True, True, bytes_, 1, columns, False))
    sch.tensorize(sch.get_loops(turn)[-2], turned.turn(config.bm, config.threads))
    warp_tiles.finish(sch, gemm, parts)
    warp_tiles.double_buffer_fragments(sch, parts, config)
    serpentine.turn_rows(sch, parts, config)
    # Statements: the slab is turned; copies of a later one, if any; first fragments; products; the last k's.
    later = slabs_of(gemm, config) >= config.stages
    order = [1, 2, 3, 0, 4] if later else [1, 2, 0, 3]
    pipeline(sch, parts.k_tile, [*[0] * (len(order) - 2), 1, 1], order)
    sch.annotate(parts.k_tile, "disable_unroll", True)  # else two turns, whose instructions no cache holds
    sch.annotate(parts.k_tile, AHEAD, config.stages)


CONFIGS = {
    "128x256": Config(),
    "128x128": Config(bn=128, stages=2),
    "64x128": Config(bm=64, bn=128, wm=32, wn=32, wmiter=1, wniter=2, stages=4),
}


def choose(gemm: Gemm) -> str:
    """128x256 where C has about as many such tiles as a large GPU has SMs, else 64x128."""
    return "128x256" if gemm.m * gemm.n >= WAVE * 128 * 256 else "64x128"


RUNG = Rung(
    family="sgemm",
    name="tma",
    summary="the copy engine (TMA) brings slabs as boxes; threads turn those of A in shared memory",
    article="beyond 000",
    config=CONFIGS["128x256"],
    configs=CONFIGS,
    choose=choose,
    shapes="any with rows of A and B of a multiple of 4; others are for sgemm/serpentine",
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    arch="sm_90a",
    passes=("boxes_ahead", "tensor_maps", "turning_products"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
