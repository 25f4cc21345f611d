"""What every machine offers: it executes compiled kernels."""

from __future__ import annotations

from typing import Protocol, Sequence

from tir_schedules.model.execution import Execution
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Arguments


class Machine(Protocol):
    """The CPU machine or a GPU. name: "cpu" or "gpu"."""

    @property
    def name(self) -> str: ...

    def run(
        self, binary: Binary, arguments: Arguments, outputs: Sequence[str], *, count: bool = False
    ) -> Execution:
        """Launch a kernel once.

        arguments: by name; arrays are numpy's and C-contiguous. outputs: names of the arrays the kernel may
        write, in place. count: also count accesses and instructions. CheckFailed for a launch that CUDA
        refuses or ends.
        """
        ...
