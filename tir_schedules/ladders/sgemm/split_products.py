"""Schedule steps of the SGEMM rungs that multiply on Hopper's tensor cores, by products of parts.

Tiles, warp specialization and the persistent grid are those of HGEMM's rungs, see `ladders/hgemm/hopper.py`
and `specialization.py`. This module has the rest: K tiles with all parts of an element, their products, and
sums that are promoted.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.sgemm import NN_NT, split_parts, split_scaled
from tir_schedules.model.launch import Launch, TensorMap, ceil_div, check_parts
from tir_schedules.model.rung import Preparation
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.split_gemm import FORMS, LONGEST, Form, SplitGemm

ROW_BYTES = (64, 128)
"""Bytes of rows of a K tile; the swizzle has as many."""

SUM_REGISTERS = {1: 208, 2: 208, 3: 128}
"""Warpgroups that multiply -> registers of a thread for both sums, at most."""


@dataclass(frozen=True)
class Config(specialization.Persistent):
    """As Persistent. bk: of K, 32 or 64. promote: of K, after so much of it at most sums of tensor cores are
    added to those in float32; 0 where they are when all of it is done. turns: 1 where warpgroups that
    multiply take turns, K tile by K tile."""

    bm: int = 128
    bn: int = 128
    bk: int = 64
    stages: int = 2
    promote: int = 64
    turns: int = 1

    layouts: ClassVar[tuple[str, ...]] = NN_NT
    products: ClassVar[str] = "bf16x6"
    together: ClassVar[bool] = True
    """Whether a K tile has all parts of its elements, for all products; else those of one product."""

    @property
    def form(self) -> Form:
        return FORMS[self.products]

    @property
    def taking_turns(self) -> int:
        """Warpgroups that take turns, or 0."""
        return self.consumers if self.turns and self.consumers > 1 else 0

    @property
    def held(self) -> int:
        """Parts of an element that a K tile has."""
        return self.form.parts if self.together else 1

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Parts of A and of B in a K tile that are multiplied."""
        return self.form.products if self.together else ((0, 0),)

    @property
    def repeats(self) -> int:
        """K tiles for the same elements."""
        return 1 if self.together else len(self.form.products)

    def digits(self, operand: int) -> int:
        """Which part of A or B each product multiplies, as digits of a number."""
        base = self.form.parts
        return sum(pair[operand] * base**place for place, pair in enumerate(self.form.products))

    def column(self, operand: int, k_tile: Any, part: Any) -> Any:
        """Where in a row of parts, in K tiles of one part, a part stands that a K tile has. operand: 0 of A,
        1 of B. Numbers, or expressions of TIR."""
        if self.together:
            return k_tile * self.held + part
        # TVM finds what a block reads only through sums, products, // and %, so the power of a digit is made
        # from the bits of its place.
        base, place, power = self.form.parts, k_tile % self.repeats, 1
        for bit in range(self.repeats.bit_length()):
            power = power * (1 + (base**2**bit - 1) * (place // 2**bit % 2))
        return k_tile // self.repeats * base + self.digits(operand) // power % base

    @property
    def stage_bytes(self) -> int:
        """Bytes of a K tile."""
        return self.held * (self.bm + self.bn) * self.bk * self.form.size


def refuses(gemm: SplitGemm, config: Config) -> str:
    """Why a configuration cannot be, or empty."""
    depths = [bytes // config.form.size for bytes in ROW_BYTES]
    if config.bk not in depths:
        extents = " or ".join(map(str, depths))
        return f"bk is {config.bk}: rows of 64 or 128 bytes, as the swizzles have them, are {extents}"
    if config.form.promoted and (config.promote % config.bk or not 0 < config.promote <= LONGEST):
        return f"promote is {config.promote}: a multiple of bk, {LONGEST} at most"
    if not config.form.promoted and config.promote:
        return f"promote is {config.promote}: 0, or take sgemm/bf16x6, which promotes sums"
    if config.consumers not in SUM_REGISTERS or config.rows % hopper.ROWS or not config.rows:
        return f"bm must be a multiple of {hopper.ROWS} for each of 1 to {max(SUM_REGISTERS)} consumers"
    if config.bn % hopper.STEP or not 0 < config.bn <= 256 or config.bm > 256:
        return f"bn must be a multiple of {hopper.STEP}, and bm and bn at most 256"
    registers = 2 * config.registers("float32")
    if registers > SUM_REGISTERS[config.consumers]:
        return f"two sums of {config.rows}x{config.columns} do not fit into a warpgroup's registers"
    if getattr(config, "splits", 1) < 1:
        return "splits is 0: 1 or more blocks share a tile along K"
    if not 2 <= config.stages <= hopper.MOST_STAGES:
        return f"stages is {config.stages}: the ring has 2 to {hopper.MOST_STAGES} stages"
    return hopper.reason_against_order(config) or hopper.reason_against_shared(config.ring_bytes)


@dataclass(frozen=True)
class AlongK(Config):
    """As Config. splits: blocks that share a tile of C along K, at most; a second launch adds up what they
    leave."""

    splits: int = 1


SomeConfig = TypeVar("SomeConfig", bound=Config)


def groups_of(gemm: SplitGemm, config: Config) -> tuple[int, int]:
    """How often a block promotes sums, and after how many K tiles: as many each time, `promote` of K at
    most."""
    return grouped(ceil_div(ceil_div(gemm.k, config.bk), splits_of(gemm, config)), config)


def grouped(k_tiles: int, config: Config) -> tuple[int, int]:
    """The same of so many K tiles with all parts."""
    groups = ceil_div(k_tiles * config.bk, config.promote) if config.promote else 1
    return groups, ceil_div(k_tiles, groups) * config.repeats


def splits_of(gemm: SplitGemm, config: Config) -> int:
    """Blocks that share a tile along K. Each has as many K tiles, and the last has some of K."""
    k_tiles = ceil_div(gemm.k, config.bk)
    groups, each = grouped(ceil_div(k_tiles, getattr(config, "splits", 1)), config)
    return ceil_div(k_tiles, groups * each // config.repeats)


def divide_programs(gemm: SplitGemm, config: SomeConfig) -> SomeConfig:
    """The configuration of the programs that have a part of K: the parts share the SMs."""
    return replace(config, programs=max(1, config.programs // splits_of(gemm, config)))


def maps_of(gemm: SplitGemm, config: Config) -> tuple[TensorMap, ...]:
    """The tensor maps of the parts of A and B."""
    rows = ("A_parts", gemm.m, config.bm), ("B_parts", gemm.n, config.bn)
    return tuple(
        hopper.map_of(name, gemm.form.dtype, (extent, gemm.row), (box, config.bk))
        for name, extent, box in rows
    )


def before(gemm: SplitGemm, config: Config) -> list[Preparation]:
    launched = split_scaled if gemm.form.scaled else split_parts
    return [launched.splitting_of(gemm, config.bk)]


def launch(gemm: SplitGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    splits = splits_of(gemm, config)
    check_parts(f"sgemm/{config.products} for {gemm}", splits, gemm.m, gemm.part_pitch)
    grid = specialization.programs_of(gemm, divide_programs(gemm, config)), 1, splits
    block, maps = specialization.block_of(config), maps_of(gemm, config)
    return Launch(grid, block, config.ring_bytes, maps=maps, parts=splits)


def scaled(found: Any, of_a: Any, of_b: Any) -> Any:
    """A sum, multiplied by the powers of two that its row of A and column of B were divided by, the smaller
    one first: what overflows then does so in float32, too."""
    from tvm.script import tirx as T

    return found * T.min(of_a, of_b) * T.max(of_a, of_b)


def prim_func(gemm: SplitGemm, config: Config, name: str) -> PrimFunc:
    """The algorithm over whole tiles: blocks A_tiles and B_tiles, K tiles with parts of their elements;
    C_sums, which adds the products of parts; C. Rows of parts are as TMA shows them. If blocks share a tile
    along K, C has a matrix for each of them, with rows that are filled up to 16 bytes."""
    from tvm.script import tirx as T

    from tir_schedules.model.annotations import EXTENTS
    from tir_schedules.tir.intrinsics.split_products import sum_of_products

    form, depth, parts, column = gemm.form, config.bk, config.held, config.column
    splits, (groups, each) = splits_of(gemm, config), groups_of(gemm, config)
    M, N = (ceil_div(*tiles) * tiles[1] for tiles in ((gemm.m, config.bm), (gemm.n, config.bn)))
    k_tiles, m, n, dtype = groups * each, gemm.m, gemm.n, form.dtype
    row = splits * k_tiles // config.repeats * form.parts * depth
    height, pitch = (splits * m, gemm.part_pitch) if splits > 1 else (m, n)
    guarded = m == hopper.ROWS < M  # see hopper.tiled_gemm

    def product(A: Any, B: Any, i: Any, j: Any, t: Any, k: Any) -> Any:
        i, t = (i % M, i // M * k_tiles + t) if splits > 1 else (i, t)
        return sum_of_products(lambda p: A[t, p, i, k], lambda p: B[t, p, j, k], config.pairs)

    def result(sums: Any, i: Any, j: Any, scales: Any) -> Any:
        return scaled(sums[i, j], scales[0][i], scales[1][j]) if scales else sums[i, j]

    @T.macro
    def multiply_parts(A_parts, B_parts, C, scales):
        A_tiles = T.sblock_alloc_buffer((splits * k_tiles, parts, M, depth), dtype)
        B_tiles = T.sblock_alloc_buffer((splits * k_tiles, parts, N, depth), dtype)
        C_sums = T.sblock_alloc_buffer((splits * M, N), "float32")
        for t, p, i, k in T.grid(splits * k_tiles, parts, M, depth):
            with T.sblock("A_tiles"):
                vt, vp, vi, vk = T.axis.remap("SSSS", [t, p, i, k])
                A_tiles[vt, vp, vi, vk] = A_parts[vi, column(0, vt, vp) * depth + vk]
        for t, p, j, k in T.grid(splits * k_tiles, parts, N, depth):
            with T.sblock("B_tiles"):
                vt, vp, vj, vk = T.axis.remap("SSSS", [t, p, j, k])
                B_tiles[vt, vp, vj, vk] = B_parts[vj, column(1, vt, vp) * depth + vk]
        for i, j, t, k in T.grid(splits * M, N, k_tiles, depth):
            with T.sblock("C_sums"):
                vi, vj, vt, vk = T.axis.remap("SSRR", [i, j, t, k])
                with T.init():
                    C_sums[vi, vj] = T.float32(0)
                C_sums[vi, vj] += product(A_tiles, B_tiles, vi, vj, vt, vk)
        if splits > 1:
            for i, j in T.grid(splits * M, pitch):
                with T.sblock("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    if T.tvm_thread_invariant(vi % M < m):
                        C[vi // M * m + vi % M, vj] = C_sums[vi, vj]
        else:
            for i, j in T.grid(M if guarded else m, n):
                with T.sblock("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    if guarded:
                        if T.tvm_thread_invariant(vi < m):
                            C[vi, vj] = result(C_sums, vi, vj, scales)
                    else:
                        C[vi, vj] = result(C_sums, vi, vj, scales)

    if form.scaled:

        @T.prim_func(s_tir=True)
        def algorithm(
            A_parts: T.Buffer((M, row), dtype),
            A_scales: T.Buffer((m,), "float32"),
            B_parts: T.Buffer((N, row), dtype),
            B_scales: T.Buffer((n,), "float32"),
            C: T.Buffer((m, n), "float32"),
        ):
            T.func_attr({"tirx.noalias": True})
            multiply_parts(A_parts, B_parts, C, (A_scales, B_scales))

    else:

        @T.prim_func(s_tir=True)
        def algorithm(
            A_parts: T.Buffer((M, row), dtype),
            B_parts: T.Buffer((N, row), dtype),
            C: T.Buffer((height, pitch), "float32"),
        ):
            T.func_attr({"tirx.noalias": True})
            multiply_parts(A_parts, B_parts, C, ())

    made: Any = algorithm
    extents = {"A_parts": (m, gemm.row), "B_parts": (n, gemm.row)}
    if splits == 1:
        extents["C"] = m, n
    return made.with_attr({"global_symbol": name, EXTENTS: extents})


def schedule(sch: Schedule, gemm: SplitGemm, config: Config) -> None:
    from tir_schedules.tir.intrinsics import boxes, split_products
    from tir_schedules.tir.intrinsics.wgmma import SUMS

    form, sums, result = gemm.form, sch.get_sblock("C_sums"), sch.get_sblock("C")
    copies = sch.get_sblock("A_tiles"), sch.get_sblock("B_tiles")
    for copy in copies:
        sch.set_scope(copy, 0, hopper.SHARED)
    sch.set_warp_size(hopper.WARPGROUP)

    # Promotion: sums of a part of K are sums of their own, which are added up.
    *_, k_tile, _ = sch.get_loops(sums)
    splits, (groups, each) = splits_of(gemm, config), groups_of(gemm, config)
    group, _ = sch.split(k_tile, [groups, each])
    partial = sch.rfactor(group, 0)
    for block in (partial, sums):
        sch.set_scope(block, 0, SUMS)

    i, j, group = sch.get_loops(sums)
    if splits > 1:
        split, i = sch.split(i, [splits, None])
        sch.bind(split, "blockIdx.z")
    block_i, warpgroup, i = sch.split(i, [None, config.consumers, config.rows])
    block_j, j = sch.split(j, [None, config.bn])
    sch.reorder(block_i, block_j, warpgroup, group, i, j)
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    sch.bind(warpgroup, "threadIdx.y")
    sch.compute_at(partial, group)
    if each > 1:
        i, j, k_tile, k = sch.get_loops(partial)[-4:]
        sch.reorder(k_tile, i, j, k)
    else:  # compute_at makes no loop over a single K tile
        k_tile = sch.add_unit_loop(sch.get_loops(partial)[-3])

    for copy, rows in zip(copies, (config.bm, config.bn)):
        sch.compute_at(copy, k_tile, preserve_unit_loops=True)
        part, row, _ = sch.get_loops(copy)[-3:]
        sch.unroll(part)
        sch.tensorize(row, boxes.load(rows, form.dtype, True, False, 0, 1, config.bk))
    sch.encode_tensor_maps()
    sch.specialize_warps(k_tile, config.stages)
    tiles = hopper.Tiles(sums, copies, result, block_i, block_j, warpgroup, group)
    specialization.walk_tiles(sch, gemm, divide_programs(gemm, config), tiles)
    stored = replace(gemm, n=gemm.part_pitch, k=1) if splits > 1 else gemm
    hopper.store_from_registers(sch, stored, config, tiles)
    sch.transform_layout(
        partial,
        ("write", 0),
        split_products.partial_sums_map(config.columns),
        assume_injective_transform=True,
    )
    blocks = config.rows // hopper.ROWS
    zero = sch.decompose_reduction(sums, group)
    hopper.bind_sums_to_threads(sch, zero, config, 2)
    zero = sch.decompose_reduction(partial, k_tile)
    hopper.bind_sums_to_threads(sch, zero, config, 2)
    intrinsic = split_products.multiply(
        blocks, config.columns, form.dtype, config.bk, config.held, config.pairs, config.taking_turns
    )
    sch.tensorize(sch.get_loops(partial)[-3], intrinsic)
    sch.tensorize(sch.get_loops(sums)[-2], split_products.promote(blocks, config.columns))
    sch.overlap_launches()
