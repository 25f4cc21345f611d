"""Blocks share a tile of C along K; a second launch adds up their sums.

In `repacked` one block computes a tile of C, from the first K tile to the last. If C is small and K long,
there are fewer tiles than SMs: 96x96x65536 has four tiles of 64x64 with 1024 K tiles each, so 128 of 132 SMs
rest. Here K is cut into parts with equal numbers of K tiles, and each part has its own programs, along
blockIdx.z:

    tiles of C        0  1  2  3                      0  1  2  3
    SMs           0   ################            0   #
                  1   ################            1   #
                  2   ################            2   #        27 parts of K for each tile,
                  3   ################           ...             of 38 K tiles
                  4   (rests)                   107   #
                                                      + the second launch

The same holds for thin matrices: 17x4096x4096 has 32 tiles of 64x128, and with two parts 64 SMs read in place
of 32. The price is a second launch, and that parts of C are written and read once. If tiles fill whole waves
(rounds) anyway, or if K is short, there is no gain. Then there is one part, and the products are those of
`repacked`.

If C is small, the time of a launch matters. Rows of A and B that are not multiples of 16 bytes are copied
before, as in `repacked`, but one launch copies both, see `repack_both`. If B is stored N x K, tiles may have
as few as 16 columns: 328x102x346 has 12 tiles of 64x64 and 24 of 64x32. With A and B swapped, tiles may have
as few as 16 rows: a C of 5 rows takes tiles of 16x128 in place of 64x128.

An H200 computes 328x102x346 in 4.52 us by 24 tiles, and in 4.89 by 12.

The parts of C are float32 for every kind of sums. Sums in float16 are exact in float32, so they are added up
in float32 and rounded to float16 once. Sums in float32 are also rounded to a C in 16 bits only once, in the
second launch. The second launch adds in a fixed order, see `ladders/split_k_sum.py`. Atomic additions would
need no second launch, but their order differs from run to run.

Threads write the parts from registers, two neighbours at a time: a quad of lanes writes a sector of
float32. Rows of parts are padded to multiples of 16 bytes, so that the second launch reads four elements at
once. Elements of a part beyond K are 0, because TMA fills them with zeros.

`tile_choice` chooses the tile, with a free side as in `tile_shapes`, together with the number of parts. It
compares estimates of `tile_costs`. An estimate includes the rounds in which SMs take tiles, the K tiles of a
part, how fast so many SMs get A and B from memory, and the second launch.

In the emitted CUDA look for blockIdx.z, in the coordinate of K tiles and in the row of C.

Measured on an H200 at 4096 nt float16: 828 TFLOPS, 1.00 times the 828 of `repacked`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.hgemm import hopper, repack, repacked, specialization, tile_choice
from tir_schedules.ladders.hgemm.repack_both import repackings_of
from tir_schedules.model.launch import Launch, ceil_div, check_parts
from tir_schedules.model.rung import Around, Preparation, configs_as, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(repacked.Config):
    """As of `repacked`. boxes: 0 where C is written from registers, as parts of K always are. splits: parts
    of K, where K has so many K tiles; 0 for as many as the shape asks for."""

    boxes: int = 0
    splits: int = 0


def parts_of(gemm: HalfGemm, config: Config) -> int:
    """Parts of K; each has some of it."""
    k_tiles = ceil_div(gemm.k, hopper.DEPTH)
    return ceil_div(k_tiles, count_k_tiles(gemm, config))


def count_k_tiles(gemm: HalfGemm, config: Config) -> int:
    """The number of K tiles of a part of K."""
    parts = config.splits or (1 if config.boxes else tile_choice.parts_of(gemm, config))
    return ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts)


def refuses(gemm: HalfGemm, config: Config) -> str:
    if config.boxes and config.splits > 1:
        return (
            f"splits is {config.splits} and boxes {config.boxes}: parts of K are written from registers; use"
            " boxes=0, or splits=1"
        )
    return repacked.refuses(gemm, config) or reason_against_clusters(gemm, config)


def reason_against_clusters(gemm: HalfGemm, config: Config) -> str:
    """Why blocks of a cluster cannot write parts of K, or empty: TVM does not see that one without rows or
    columns of C writes nothing, where the first has exactly all of them."""
    sides = ("m", "rows", gemm.m, config.bm), ("n", "columns", gemm.part_pitch, config.bn)
    for side, what, extent, tile in sides:
        blocks = getattr(config, f"cluster_{side}")
        if blocks > 1 and extent == tile and parts_of(gemm, config) > 1:
            return f"cluster_{side} is {blocks}, and one tile has all {what} of C: use cluster_{side}=1"
    return ""


def before(gemm: HalfGemm, config: Config) -> list[Preparation]:
    return repackings_of(gemm, config.line)


def divide_programs(gemm: HalfGemm, config: Config) -> Config:
    """The configuration of the programs of a part: parts share the SMs."""
    return replace(config, programs=max(1, config.programs // parts_of(gemm, config)))


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    parts = parts_of(gemm, config)
    check_parts(f"hgemm/split_k for {gemm}", parts, gemm.m, gemm.part_pitch)
    alone = specialization.launch_programs(gemm, divide_programs(gemm, config))
    alone = repack.maps_of_copies(alone, gemm, config.line)
    return replace(alone, grid=(*alone.grid[:2], parts), parts=parts)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    """As hopper.tiled_gemm, for each part of K. Rows of sums are those of one part behind the other. C has
    those of M alone, and columns that fill its rows up to 16 bytes."""
    if parts_of(gemm, config) == 1:
        return repacked.prim_func(gemm, config, name)
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.model.annotations import CLUSTER, EXTENTS

    parts, part = parts_of(gemm, config), count_k_tiles(gemm, config) * hopper.DEPTH
    m, pitch, K = gemm.m, gemm.part_pitch, parts * part
    whole = (m, config.bm * config.cluster_m), (gemm.n, config.bn * config.cluster_n)
    M, N = (ceil_div(*each) * each[1] for each in whole)
    b_shape = (N, K) if gemm.transposed else (K, N)
    narrow, wide, zero = gemm.dtype, gemm.accumulate, FloatImm(gemm.accumulate, 0.0)
    tall, wide_side = (N, M) if config.swap else (M, N)
    c_loops = (m, parts * N) if config.swap else (parts * M, pitch)

    def product(A: Any, B: Any, i: Any, j: Any, k: Any) -> Any:
        return hopper.product_of(gemm, config, A, B, i, j, k)

    def place(i: Any, j: Any) -> tuple[Any, Any]:
        """Of a row and a column of all parts' tiles, where a part has them in C."""
        return (j // N * m + i, j % N) if config.swap else (i // M * m + i % M, j)

    def within(i: Any, j: Any) -> Any:
        """Whether the part has them."""
        return j % N < pitch if config.swap else i % M < m

    def sum_of(sums: Any, i: Any, j: Any) -> Any:
        return hopper.cast(sums[j, i] if config.swap else sums[i, j], "float32", wide)

    @T.prim_func(s_tir=True)
    def partial_products(
        A: T.Buffer((M, K), narrow), B: T.Buffer(b_shape, narrow), C: T.Buffer((parts * m, pitch), "float32")
    ):
        T.func_attr({"tirx.noalias": True})
        A_tiles = T.sblock_alloc_buffer((M, K), narrow)
        B_tiles = T.sblock_alloc_buffer(b_shape, narrow)
        C_sums = T.sblock_alloc_buffer((parts * tall, wide_side), wide)
        for i, j in T.grid(M, K):
            with T.sblock("A_tiles"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_tiles[vi, vj] = A[vi, vj]
        for i, j in T.grid(*b_shape):
            with T.sblock("B_tiles"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_tiles[vi, vj] = B[vi, vj]
        for p, i, j, k in T.grid(parts, tall, wide_side, part):
            with T.sblock("C_sums"):
                vp, vi, vj, vk = T.axis.remap("SSSR", [p, i, j, k])
                with T.init():
                    C_sums[vp * tall + vi, vj] = zero
                C_sums[vp * tall + vi, vj] += product(A_tiles, B_tiles, vi, vj, vp * part + vk)
        for i, j in T.grid(*c_loops):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                row, column = T.meta_var(place(vi, vj))
                if T.tvm_thread_invariant(within(vi, vj)):
                    C[row, column] = sum_of(C_sums, vi, vj)

    extents = {"A": (gemm.m, gemm.k), "B": gemm.stored["B"]}
    made: Any = partial_products
    made = made.with_attr({"global_symbol": name, EXTENTS: extents, CLUSTER: config.blocks})
    return repack.set_pitches(made, gemm, config.line)


def pad_to_parts(gemm: HalfGemm) -> HalfGemm:
    """One with as many rows and columns of C as its parts have. Its K says nothing: with that of the gemm B
    may have more elements than a gemm can have."""
    return replace(gemm, n=gemm.part_pitch, k=1)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    config = divide_programs(gemm, config)
    if parts_of(gemm, config) == 1:
        return repacked.schedule(sch, gemm, config)
    tiles = specialization.specialize_warps(sch, gemm, config)
    part = sch.get_loops(tiles.products)[0]
    sch.bind(part, "blockIdx.z")
    specialization.walk_tiles(sch, gemm, config, tiles)
    hopper.store_from_registers(sch, pad_to_parts(gemm), config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")
    sch.overlap_launches()


TILES = {
    name: each
    for name, each in repacked.THROUGH_BOXES.items()
    if "4_stages" not in name and "_lines" not in name
}
CONFIGS = configs_as(Config, TILES, boxes=0)
CONFIGS["128x256"] = replace(CONFIGS["128x256"], stages=4)
CONFIGS["64x32"] = replace(CONFIGS["64x64"], bn=32)
CONFIGS |= {
    f"{name}_whole": config for name, config in configs_as(Config, repacked.THROUGH_BOXES, splits=1).items()
}


@lru_cache(maxsize=1024)
def ranked(gemm: HalfGemm) -> list[Config]:
    """The forms that are estimated to be the fastest of their kinds, the fastest first."""
    return tile_choice.ranked(gemm, repacked.candidates(gemm, Config, True), before, parts_of)


def choose(gemm: HalfGemm) -> str | Config:
    """The form and the parts of K that are estimated to be the fastest; the first where all are refused."""
    return next(iter(ranked(gemm)), "128x256")


RUNG = repacked.RUNG.followed_by(
    "split_k",
    split_k_sum.SUMMARY,
    schedule,
    configs=CONFIGS,
    choose=choose,
    ranked=ranked,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    around=Around(before, then=split_k_sum.rung("hgemm")),
)

if __name__ == "__main__":
    run_as_script(RUNG)
