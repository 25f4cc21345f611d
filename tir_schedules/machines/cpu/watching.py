"""The requests of one warp to shared memory, one by one."""

from __future__ import annotations

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.findings import Sources
from tir_schedules.machines.cpu.lowering import CountedAccess
from tir_schedules.model.execution import Request, Watch
from tir_schedules.model.kernel import Kernel


class Watched:
    """Room for the requests of a launch. BadInput for a block or a warp the launch does not have."""

    def __init__(self, watch: Watch, kernel: Kernel):
        warps = -(-kernel.threads // 32)
        if not all(0 <= index < extent for index, extent in zip(watch.block, kernel.grid)):
            raise BadInput(f"there is no block {spelled(watch.block)}; the grid is {spelled(kernel.grid)}")
        if not 0 <= watch.warp < warps:
            raise BadInput(f"there is no warp {watch.warp}; a block has {warps}, counted from 0")
        self.records = np.empty(watch.limit, abi.REQUEST)
        self.arguments = abi.Watch(self.records.ctypes.data, watch.block, watch.warp, watch.limit)

    @property
    def met(self) -> int:
        """How many requests there were, kept or not."""
        return self.arguments.met

    def requests(self, counted: list[CountedAccess], sources: Sources) -> tuple[Request, ...]:
        """What was kept, in order."""
        records = self.records[: self.arguments.held]
        figures = zip(*(records[name].tolist() for name in ("counter", "mask", "width", "cost", "ideal")))
        locations = {
            number: sources(counted[number].line) for number in np.unique(records["counter"]).tolist()
        }
        return tuple(
            Request(
                locations[number],
                counted[number].kind,
                width,
                mask,
                cost,
                ideal,
                tuple(addresses),
                in_fours(values),
            )
            for (number, mask, width, cost, ideal), addresses, values in zip(
                figures, records["address"].tolist(), records["value"]
            )
        )


def in_fours(values: np.ndarray) -> tuple[bytes, ...]:
    """Words as 4 bytes each."""
    content = values.tobytes()
    return tuple(content[at : at + 4] for at in range(0, len(content), 4))


def spelled(index: tuple[int, ...]) -> str:
    return ",".join(map(str, index))
