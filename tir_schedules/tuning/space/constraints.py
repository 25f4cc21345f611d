"""What the spaces of GEMM rungs have in common: constraints of tiles, threads, registers, shared memory.

Each constraint was found by building points without it: TVM refuses them, emits a launch other than the
declared one, or the CPU machine finds races, writes out of bounds or wrong results. Those about registers
refuse what is far too much; ptxas has the last word.

Twins have stricter rules, which their static assertions tell: threads must share copies evenly, rows of
hgemm/mma_multistage are 32 or 64.
"""

from __future__ import annotations

from typing import Callable, Protocol, TypeVar

from tir_schedules.model.gpus import MAX_THREADS, REGISTERS, WARP, find_sm
from tir_schedules.model.rung import BlockTiled
from tir_schedules.tuning.space.points import Constraint
from tir_schedules.workloads.gemm import Gemm

MOST_REGISTERS = 255  # of a thread

BLOCK_AND_WARP = ("bm", "bn", "wm", "wn")


class WarpTiled(BlockTiled, Protocol):
    """A configuration with a block tile bm x bn and a warp tile wm x wn."""

    @property
    def wm(self) -> int: ...

    @property
    def wn(self) -> int: ...


class ThreadTiled(BlockTiled, Protocol):
    """A configuration with a block tile bm x bn and a thread tile tm x tn."""

    @property
    def tm(self) -> int: ...

    @property
    def tn(self) -> int: ...


class Staged(Protocol):
    """A configuration with a multistage buffer."""

    @property
    def stages(self) -> int: ...


Config = TypeVar("Config")
Shape = TypeVar("Shape")


def threads(config: WarpTiled) -> int:
    """Threads of a block."""
    return config.bm * config.bn * WARP // (config.wm * config.wn)


def whole_warps(config: WarpTiled, gemm: Gemm, arch: str) -> bool:
    return config.bm % config.wm == 0 and config.bn % config.wn == 0


def block_fits(config: WarpTiled, gemm: Gemm, arch: str) -> bool:
    return threads(config) <= MAX_THREADS


def registers_fit(config: WarpTiled, needed: int) -> bool:
    return needed <= min(MOST_REGISTERS, REGISTERS // threads(config))


def shared_fits(bytes_of: Callable[[Shape, Config], int]) -> Callable[[Config, Shape, str], bool]:
    """Whether an architecture has the dynamic shared memory that bytes_of(workload, config) says."""
    return lambda config, workload, arch: bytes_of(workload, config) <= find_sm(arch).shared_limit


def enough_stages(config: Staged, gemm: Gemm, arch: str) -> bool:
    return config.stages >= 3


def whole_threads(config: ThreadTiled, gemm: Gemm, arch: str) -> bool:
    return config.bm % config.tm == 0 and config.bn % config.tn == 0


THREAD_TILES = (Constraint("thread tiles must divide the block tile", whole_threads),)

WARP_TILES = (
    Constraint("warp tiles must divide the block tile", whole_warps, BLOCK_AND_WARP),
    Constraint(f"a block has at most {MAX_THREADS} threads", block_fits, BLOCK_AND_WARP),
)

ENOUGH_STAGES = Constraint(
    "stages must be 3 or more: with 2, the next tile overwrites one that is still read",
    enough_stages,
    ("stages",),
)
