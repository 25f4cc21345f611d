"""The space of reduce/vectorized.

No constraint is about registers: however many loads are unrolled, ptxas keeps about eight in flight,
and every block has room for these.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import vectorized
from tir_schedules.tuning.space.points import Constraint, Space
from tir_schedules.workloads.reduction import Reduction

NO_LIMIT = vectorized.Config.most_blocks
GRID = ("block", "unroll", "most_blocks")


def distinct(config: vectorized.Config, reduction: Reduction, arch: str) -> bool:
    """Whether most_blocks limits the grid, or is NO_LIMIT: values that do not limit it give one kernel."""
    return config.most_blocks == NO_LIMIT or vectorized.blocks_needed(reduction, config) > config.most_blocks


VECTORIZED: Space[vectorized.Config, Reduction] = Space(
    vectorized.RUNG,
    {
        "block": (128, 256, 512, 1024),
        "unroll": (1, 2, 4, 8, 16),
        "most_blocks": (
            *(128, 256, 512, 1024),
            vectorized.RESIDENT.most_blocks,
            *(1 << power for power in range(11, 17)),
            NO_LIMIT,
        ),
    },
    (
        Constraint(
            f"most_blocks does not limit the grid; {NO_LIMIT} means no limit",
            distinct,
            GRID,
            again=True,
        ),
    ),
)
