"""Occupancy: how many blocks of a kernel a streaming multiprocessor (SM) holds at once, by CUDA's rules."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tir_schedules.model.gpus import MAX_THREADS, WARP, find_sm, rounded_up, warps_by_registers


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
        names = {"arch": self.arch, "blocks": self.blocks, "warps": self.warps, "max_warps": self.max_warps}
        return names | {"share": self.share, "limits": self.limits, "limited_by": self.limited_by}


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
