"""What a streaming multiprocessor (SM) of each architecture has, and how many blocks of a kernel it holds at
once: the one home of these figures.

They are from the CUDA programming guide: compute capabilities, and arithmetic throughput for the lanes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tir_schedules.errors import BadInput

WARP = 32
MAX_THREADS = 1024  # of a block
MAX_BLOCK = (1024, 1024, 64)  # its extents
MAX_CLUSTER = 8  # blocks that every GPU with clusters takes
MAX_LOCAL = 512 << 10  # bytes of local memory of a thread
STATIC_SHARED = 48 << 10  # bytes of shared memory that a block has without asking for more
REGISTERS = 64 << 10  # of an SM, and the most a block may take
REGISTER_UNIT = 256  # a warp gets registers in portions of so many
QUARTERS = 4  # an SM has four parts with a quarter of the registers and warps each


@dataclass(frozen=True)
class StreamingMultiprocessor:
    """What an SM of one architecture holds.

    shared_kib: shared memory. reserved: bytes of it that each block costs besides its own. shared_unit: bytes
    in which it is given out. lanes: fp32 multiply-adds per cycle.
    """

    warps: int
    blocks: int
    shared_kib: int
    reserved: int = 1024
    shared_unit: int = 128
    lanes: int = 128

    @property
    def shared_limit(self) -> int:
        """Most shared memory of one block in bytes, static and dynamic together."""
        return (self.shared_kib << 10) - self.reserved


SMS = {
    "sm_75": StreamingMultiprocessor(32, 16, 64, reserved=0, shared_unit=256, lanes=64),
    "sm_80": StreamingMultiprocessor(64, 32, 164, lanes=64),
    "sm_86": StreamingMultiprocessor(48, 16, 100),
    "sm_87": StreamingMultiprocessor(48, 16, 164),
    "sm_89": StreamingMultiprocessor(48, 24, 100),
    "sm_90": StreamingMultiprocessor(64, 32, 228),
    "sm_100": StreamingMultiprocessor(64, 32, 228),
    "sm_103": StreamingMultiprocessor(64, 32, 228),
    "sm_110": StreamingMultiprocessor(48, 24, 228),
    "sm_120": StreamingMultiprocessor(48, 24, 100),
    "sm_121": StreamingMultiprocessor(48, 24, 100),
}


def known_sm(arch: str) -> StreamingMultiprocessor | None:
    """The figures of "sm_90", also for "sm_90a"; None if they are not known."""
    return SMS.get(re.sub(r"[a-z]$", "", arch))


def find_sm(arch: str) -> StreamingMultiprocessor:
    """The same; BadInput for an architecture whose figures are not known."""
    found = known_sm(arch)
    if not found:
        raise BadInput(f"the occupancy rules of {arch!r} are not known; those of {', '.join(SMS)} are")
    return found


def warps_by_registers(registers: int) -> int:
    """How many warps the registers of an SM serve. registers: per thread, at least 1."""
    return REGISTERS // QUARTERS // rounded_up(registers * WARP, REGISTER_UNIT) * QUARTERS


def rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that an SM holds at once.

    limits: how many blocks each resource alone would allow: "warps", "blocks", "registers", "shared".
    max_warps: of the architecture.
    """

    arch: str
    blocks: int
    warps: int
    max_warps: int
    limits: dict[str, int]

    @property
    def share(self) -> float:
        """Warps held, of those the architecture can hold, 0 to 1."""
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no more."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def as_json(self) -> dict[str, object]:
        return vars(self) | {"share": self.share, "limited_by": self.limited_by}


def occupancy(arch: str, block: tuple[int, ...], registers: int, shared: int) -> Occupancy:
    """By the rules of CUDA's occupancy calculator, with the largest possible shared memory.

    block: threads along each axis. registers: per thread. shared: bytes per block, static and dynamic. A
    kernel that cannot be launched has no blocks. BadInput for an architecture whose figures are not known.
    """
    limit = find_sm(arch)
    warps = rounded_up(prod(block), WARP) // WARP
    per_block = rounded_up(shared + limit.reserved, limit.shared_unit)
    limits = {
        "warps": limit.warps // warps if prod(block) <= MAX_THREADS else 0,
        "blocks": limit.blocks,
        "registers": (warps_by_registers(registers) if registers else limit.warps) // warps,
        "shared": (limit.shared_kib << 10) // per_block if per_block else limit.blocks,
    }
    blocks = min(limits.values())
    return Occupancy(arch, blocks, blocks * warps, limit.warps, limits)
