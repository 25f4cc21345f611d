"""Blocks share a tile of C along K; a second launch adds up their sums.

In `multistage` one block computes a tile of C, from the first k to the last. If C is small and K long, there
are fewer tiles than SMs: 64x64x16384 has four tiles of 32x32, so 128 of 132 SMs rest. Here K is cut into
parts, and a tile has a block for each part, along blockIdx.z:

    tiles of C        0  1  2  3                      0  1  2  3
    SMs           0   ################            0   #
                  1   ################            1   #
                  2   ################            2   #        parts of K, 32 for each tile
                  3   ################           ...
                  4   (rests)                   127   #
                                                      + the second launch

It also pays if the last wave (the last round of blocks) is nearly empty: without parts, 140 tiles take as
long as 264. The price is a second launch, and that partial sums are written and read once. So there is no
gain if the tiles fill whole waves anyway, or if K is short.

Sums of floats depend on their order. Atomic additions would need no second launch, but their order differs
from run to run. `split_k_sum` adds in a fixed order, whichever part was ready first. Rows of parts are padded
to multiples of 16 bytes, so that the second launch reads four elements at once.

Schedule primitives could make the parts from the plain product: they split k and apply rfactor over the
parts, and the sum of the parts becomes a separate block of TensorIR. But here one function becomes one
launch, and pad_einsum does not take a product that rfactor made. So the algorithm itself has the parts, with
padded edges, and leaves their sum to the second launch. From there on the schedule is that of `multistage`.

Tiles of 16 rows or columns are for thin matrices, which waste most of a larger tile. Tiles of 24, 32, 40, 48
and 56 rows are for a C with at most that many rows, because a tile of 32 would waste a quarter of its rows if
C has 24. Their four warps lie side by side, and each has all rows, so a thread has 6 to 14 rows of C: an
element of B that it reads serves so many FMA. 20x8192x32768 took 308 us with 24x256 on an H200, and 527 with
32x64. Tiles of 64x256 and 256x64 have the warps of 128x128 in one row or column. Tiles of 80 and 96 rows or
columns are for a C that tiles of 64 and 128 cover badly: 258x20480 takes three rows of 96x96, or five of
64x64. They are also for a C that would take little more than whole rounds of blocks with tiles of 64 and 128.
Tiles of 64x96 are for columns that tiles of 64 would waste. Tiles of 256x32 are for a C of 17 to 32 columns:
7384x21x3864 took 58.4 us on an H200, and 68.9 with 64x32.

If the number of floats in a row is not a multiple of 4, rows are read float by float. If copies go through
registers, the last tiles are shifted inwards to end with C, see the pass `shift_edge_tiles`. These shapes
have a lower rate, because there are four times as many loads. Two other ways were tried: copies of A and B
to whole tiles before the launch were slower, and cp.async of single floats has bank conflicts. If N is
even, cp.async copies two floats of B at a time.

A lane has four neighbours of a row of C. From registers a store of a warp touches eight rows, and of odd
rows it takes only 4 floats of each. So odd rows go through shared memory, if the tile is not too large.
From there a warp writes 32 neighbours of a row. In tiles of 96 columns or more, and of more than 40 rows,
rows are rotated, so that these are one line of memory, see the pass `rotate_rows`. Tiles of 128x128 and
64x256 write any C in this way: an SM has only eight warps then, and nothing hides stores to eight rows. On
an H200 2171x1896x464 took 88 us by 128x128, and takes 80. If C is lower than the tile, nvcc would spill
registers: 113x2048x8192 took 120 us.

On an H200 C through shared memory is worth 1 % at 4093, 4 % at 2047 and 14 % at 1023, whose K is short. The
remaining loss is 8 % at 4093 compared with `serpentine` at 4096.

Measured on an H200 at 4096: 52.4 TFLOPS, 1.01 times the 51.7 of `multistage`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.sgemm import multistage, pipelined, serpentine, shapes, warp_tiles
from tir_schedules.model.launch import Launch, ceil_div, check_parts
from tir_schedules.model.rung import Around, configs_as, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import place_in_b
from tir_schedules.workloads.gemm import Gemm

MOST_SUMS, WIDE = 128, 128
"""Sums of a lane, and columns of a tile, from which on C goes through shared memory with any rows."""


@dataclass(frozen=True)
class Config(multistage.Config):
    """splits: parts of K, where K has so many tiles; 0 for as many as the shape asks for.

    asynchronous: 1 when tiles are copied as in `multistage`, by cp.async; 0 when they come through registers
    as in `serpentine`, where stages and rows_first say nothing.
    """

    splits: int = 0
    asynchronous: int = 1


class Parted(shapes.Tile, Protocol):
    """What is asked of a configuration whose blocks take parts of K."""

    @property
    def splits(self) -> int: ...


def part_of_k(gemm: Gemm, config: Parted) -> int:
    """Extent of the parts along K: whole tiles, the last part may have less."""
    tiles = ceil_div(gemm.k, config.bk)
    return ceil_div(tiles, config.splits or shapes.splits(gemm, config)) * config.bk


def parts_of(gemm: Gemm, config: Parted) -> int:
    return ceil_div(gemm.k, part_of_k(gemm, config))


def pitch_of(gemm: Gemm, parts: int) -> int:
    """Elements of a row that a block writes: rows of parts are filled up to multiples of 16 bytes."""
    return gemm.part_pitch if parts > 1 else gemm.n


def writes_in_rows(gemm: Gemm, config: Config) -> bool:
    """Whether C goes through shared memory; a ring of tiles is not needed any more when it does. Rows of
    parts take 16 bytes at a time, but where the last tiles end with C, these start anywhere in a row."""
    if config.asynchronous and parts_of(gemm, config) > 1:
        return False
    beside = 0 if config.asynchronous else pipelined.tiles_bytes(config, config.padding)
    always = not config.asynchronous and few_warps(config) and gemm.m >= config.bm
    return warp_tiles.writes_in_rows(gemm, config, beside, always)


def few_warps(config: Config) -> bool:
    """Whether lanes have as many sums as registers hold, and tiles have many columns."""
    return config.lane_sums >= MOST_SUMS and config.bn >= WIDE


def launch(gemm: Gemm, config: Config) -> Launch:
    alone, parts = multistage.launch(gemm, config), parts_of(gemm, config)
    check_parts(f"sgemm/split_k for {gemm}", parts, gemm.m, pitch_of(gemm, parts))
    ring = alone.dynamic_shared if config.asynchronous else 0
    shared = max(ring, warp_tiles.rows_bytes(config)) if writes_in_rows(gemm, config) else ring
    return replace(alone, grid=(*alone.grid[:2], parts), dynamic_shared=shared, parts=parts)


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """The partial sums of C. Rows, columns and parts are padded to whole tiles, with zeros in A and B."""
    return partial_products_of(gemm, config, name)


def partial_products_of(gemm: Gemm, config: Parted, name: str, guarded: int = 0) -> PrimFunc:
    """The same of another rung's tiles. guarded: where the loops over C are those of whole tiles, with guards
    within, so many neighbours that stand or fall together; 0 where its loops end with C."""
    from tvm.script import tirx as T

    M, N, K = gemm.shape
    part, parts = part_of_k(gemm, config), parts_of(gemm, config)
    pitch = pitch_of(gemm, parts)
    rows, columns = ceil_div(M, config.bm) * config.bm, ceil_div(N, config.bn) * config.bn
    width = pitch if config.asynchronous else N
    whole, transposed, b_shape = guarded > 0, gemm.transposed, gemm.stored["B"]
    written = (parts, rows, columns) if whole else (parts, M, width)

    def within(i: Any, j: Any) -> Any:
        return T.And(i < M, j // guarded < width // guarded)

    @T.prim_func(s_tir=True)
    def partial_products(
        A: T.Buffer((M, K), "float32"),
        B: T.Buffer(b_shape, "float32"),
        C: T.Buffer((parts, M, pitch), "float32"),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        A_pad = T.sblock_alloc_buffer((parts, rows, part))
        B_pad = T.sblock_alloc_buffer((parts, *place_in_b(part, columns, transposed)))
        C_pad = T.sblock_alloc_buffer((parts, rows, columns))
        for p, i, k in T.grid(parts, rows, part):
            with T.sblock("A_pad"):
                vp, vi, vk = T.axis.remap("SSS", [p, i, k])
                A_pad[vp, vi, vk] = T.if_then_else(
                    vi < M and vp * part + vk < K, A[vi, vp * part + vk], T.float32(0)
                )
        if transposed:
            for p, j, k in T.grid(parts, columns, part):
                with T.sblock("B_pad"):
                    vp, vj, vk = T.axis.remap("SSS", [p, j, k])
                    B_pad[vp, vj, vk] = T.if_then_else(
                        vj < N and vp * part + vk < K, B[vj, vp * part + vk], T.float32(0)
                    )
        else:
            for p, k, j in T.grid(parts, part, columns):
                with T.sblock("B_pad"):
                    vp, vk, vj = T.axis.remap("SSS", [p, k, j])
                    B_pad[vp, vk, vj] = T.if_then_else(
                        vp * part + vk < K and vj < N, B[vp * part + vk, vj], T.float32(0)
                    )
        for p, i, j, k in T.grid(parts, rows, columns, part):
            with T.sblock("C"):
                vp, vi, vj, vk = T.axis.remap("SSSR", [p, i, j, k])
                with T.init():
                    C_pad[vp, vi, vj] = T.float32(0)
                row, column = T.meta_var(place_in_b(vk, vj, transposed))
                C_pad[vp, vi, vj] = C_pad[vp, vi, vj] + A_pad[vp, vi, vk] * B_pad[vp, row, column]
        for p, i, j in T.grid(*written):
            with T.sblock("C_pad"):
                vp, vi, vj = T.axis.remap("SSS", [p, i, j])
                if whole:
                    if T.tvm_thread_invariant(within(vi, vj)):
                        C[vp, vi, vj] = C_pad[vp, vi, vj]
                else:
                    C[vp, vi, vj] = C_pad[vp, vi, vj]

    return partial_products


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    copy_a, copy_b, write_back = (sch.get_sblock(name) for name in ("A_pad", "B_pad", "C_pad"))
    for copy in (copy_a, copy_b):
        sch.set_scope(copy, 0, multistage.SHARED if config.asynchronous else "shared")
    sch.set_scope(sch.get_sblock("C"), 0, "local")
    staged, in_rows = (copy_a, copy_b, write_back), writes_in_rows(gemm, config)
    if config.asynchronous:
        multistage.overlapped(sch, gemm, config, staged, in_rows, pitch_of(gemm, parts_of(gemm, config)))
    else:
        parts = pipelined.double_buffered(sch, gemm, config, config.padding, staged, in_rows)
        serpentine.reverse_rows(sch, config, parts)
        sch.keep_buffers_apart()
    sch.overlap_launches()


CONFIGS = {
    **configs_as(Config, multistage.CONFIGS),
    "16x128": Config(bm=16, bn=128, bk=16, wm=8, wn=64, wmiter=1, wniter=1, stages=6, rows_first=1),
    "56x128": Config(bm=56, bn=128, bk=16, wm=56, wn=32, wmiter=1, wniter=1, tm=14, rows_first=1),
    "24x256": Config(bm=24, wm=24, wniter=2, wmiter=1, tm=6, bk=16, rows_first=1),
    "32x256": Config(bm=32, wm=32, wniter=2, stages=6, rows_first=1),
    "48x256": Config(bm=48, wm=48, wniter=2, wmiter=3, bk=16, rows_first=1),
    "40x128": Config(bm=40, bn=128, bk=16, wm=40, wn=32, wmiter=1, wniter=1, tm=10, asynchronous=0),
    "64x256": Config(bm=64, asynchronous=0),
    "256x64": Config(bm=256, bn=64, wniter=2, tm=8, asynchronous=0),
    "128x128": Config(bm=128, bn=128, wm=64, wn=64, asynchronous=0),
    "128x64": Config(bm=128, bn=64, bk=16, wm=64, wn=32, wniter=2, asynchronous=0),
    "96x128": Config(bm=96, bn=128, bk=16, wm=48, wn=64, wmiter=3, wniter=2, asynchronous=0),
    "96x96": Config(bm=96, bn=96, bk=16, wm=48, wn=48, wmiter=3, wniter=3, tm=2, asynchronous=0),
    "96x64": Config(bm=96, bn=64, bk=16, wm=48, wn=32, wmiter=3, wniter=1, asynchronous=0),
    "80x128": Config(bm=80, bn=128, bk=16, wm=40, wn=64, wmiter=1, wniter=2, tm=10, asynchronous=0),
    "64x64": Config(bm=64, bn=64, bk=16, wm=32, wn=32, wmiter=1, wniter=2, asynchronous=0),
    "64x32": Config(bm=64, bn=32, bk=16, wm=32, wn=16, wmiter=1, wniter=1, asynchronous=0),
    "128x16": Config(bm=128, bn=16, bk=16, wm=32, wn=8, wmiter=1, wniter=1, tm=2, asynchronous=0),
    "256x32": Config(bm=256, bn=32, bk=16, wn=32, wniter=2, asynchronous=0),
    "64x96": Config(bm=64, bn=96, bk=16, wm=32, wn=48, wmiter=1, wniter=3, tm=4, asynchronous=0),
}

CHOICES = {name: config for name, config in CONFIGS.items() if name != "128x256"}


def choose(gemm: Gemm) -> str:
    """The configuration that the model of shapes.py says is fastest."""
    return shapes.fastest(gemm, CHOICES)


RUNG = multistage.RUNG.followed_by(
    "split_k",
    split_k_sum.SUMMARY,
    schedule,
    configs=CONFIGS,
    choose=choose,
    launch=launch,
    prim_func=prim_func,
    around=Around(then=split_k_sum.rung("sgemm")),
)

if __name__ == "__main__":
    run_as_script(RUNG)
