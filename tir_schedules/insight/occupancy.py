"""How many blocks of a kernel a multiprocessor holds at once, by CUDA's rules (programming guide, compute capabilities)."""
from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from tir_schedules.errors import BadInput

WARP = 32
REGISTERS = 64 << 10  # of a multiprocessor
REGISTER_UNIT = 256  # registers are given to a warp in such portions
QUARTERS = 4  # a multiprocessor has four parts with a quarter of the registers and warps each


@dataclass(frozen=True)
class Multiprocessor:
    """What one architecture's multiprocessor holds. shared_kib: shared memory; reserved: bytes of it that each block costs besides its own;
    shared_unit: bytes in which it is given out."""

    warps: int
    blocks: int
    shared_kib: int
    reserved: int = 1024
    shared_unit: int = 128


MULTIPROCESSORS = {
    "sm_75": Multiprocessor(32, 16, 64, reserved=0, shared_unit=256),
    "sm_80": Multiprocessor(64, 32, 164),
    "sm_86": Multiprocessor(48, 16, 100),
    "sm_87": Multiprocessor(48, 16, 164),
    "sm_89": Multiprocessor(48, 24, 100),
    "sm_90": Multiprocessor(64, 32, 228),
    "sm_100": Multiprocessor(64, 32, 228),
    "sm_103": Multiprocessor(64, 32, 228),
    "sm_120": Multiprocessor(48, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that a multiprocessor holds at once.

    limits: how many blocks each resource alone would allow: "warps", "blocks", "registers", "shared". max_warps: of the architecture.
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

    def as_json(self) -> dict[str, Any]:
        names = {"arch": self.arch, "blocks": self.blocks, "warps": self.warps, "max_warps": self.max_warps}
        return names | {"share": self.share, "limits": self.limits, "limited_by": self.limited_by}


def find_multiprocessor(arch: str) -> Multiprocessor:
    """BadInput for an architecture whose figures are not known."""
    name = re.sub(r"[a-z]$", "", arch)
    if name not in MULTIPROCESSORS:
        raise BadInput(f"the occupancy rules of {arch!r} are not known; those of {', '.join(MULTIPROCESSORS)} are")
    return MULTIPROCESSORS[name]


def occupancy(arch: str, block: tuple[int, ...], registers: int, shared: int) -> Occupancy:
    """block: threads along each axis. registers: per thread. shared: bytes per block, static and dynamic together."""
    limit = find_multiprocessor(arch)
    warps = rounded_up(prod(block), WARP) // WARP
    per_warp = rounded_up(registers * WARP, REGISTER_UNIT)
    warps_by_registers = REGISTERS // QUARTERS // per_warp * QUARTERS if registers else limit.warps
    per_block = rounded_up(shared + limit.reserved, limit.shared_unit)
    limits = {
        "warps": limit.warps // warps,
        "blocks": limit.blocks,
        "registers": warps_by_registers // warps,
        "shared": (limit.shared_kib << 10) // per_block if per_block else limit.blocks,
    }
    blocks = min(limits.values())
    return Occupancy(arch, blocks, blocks * warps, limit.warps, limits)


def rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
