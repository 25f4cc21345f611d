"""What every machine offers: it executes compiled kernels."""

from __future__ import annotations

from typing import Protocol, Sequence

from tir_schedules.model.execution import Execution
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Arguments


class Device(Protocol):
    """What executes, is measured or is predicted: a machine, or the servers of a tracker.

    name: "cpu" or "gpu". device_name: the GPU's own name, or "CPU machine".
    """

    @property
    def name(self) -> str: ...

    @property
    def device_name(self) -> str: ...


class Machine(Device, Protocol):
    """The CPU machine or a GPU."""

    def run(
        self, binary: Binary, arguments: Arguments, outputs: Sequence[str], *, count: bool = False
    ) -> Execution:
        """Launch a kernel once.

        arguments: by name; arrays are numpy's and C-contiguous. outputs: names of the arrays the kernel may
        write, in place. count: also count accesses and instructions. CheckFailed for a launch that CUDA
        refuses or ends.
        """
        ...
