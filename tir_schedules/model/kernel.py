"""What flows through the project: a `Kernel` is CUDA source ready to launch, a `Binary` is that kernel
compiled.

A scheduled kernel and its hand-written twin are both Kernels; from here on both are treated alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Mapping

from tir_schedules.model.gpus import find_sm, known_sm, occupancy
from tir_schedules.model.launch import Dim3, Struct, TensorMap, check_grid

if TYPE_CHECKING:
    from tir_schedules.model.workload import Arguments, Workload

FIXED_TWIN = "twin, sizes fixed"
"""The form of a twin that is compiled for one shape, as schedules are; a "twin" takes sizes at run time."""


@dataclass(frozen=True)
class Kernel:
    """One CUDA `__global__` function and its launch.

    label: how messages name it, "sgemm/naive (tir)" or "sgemm/naive (twin)".
    source: CUDA C++ that nvcc compiles with nothing on the command line but the architecture.
    entry: name of the `extern "C" __global__` function in `source`.
    params: names of the workload's arguments in the order the function takes them, such as ("A", "B", "C",
    "M", "N", "K"), or of one of `maps`.
    grid, block: launch dimensions (x, y, z). dynamic_shared: bytes of `extern __shared__` memory.
    arch: the architecture it is meant for, such as "sm_80".
    folder: where the files are that `source` includes by name, `#include "..."`; "" when there are none.
    file: what messages call the file that `source` was read from, such as "broken.cu"; empty when it comes
    from this project.
    includes: further folders in which it finds what it includes. defines: macros that it is compiled with, as
    they stand behind `#define`. flags: further ones for nvcc.
    cluster: blocks of a cluster (x, y, z). maps: the tensor maps among its parameters. structs: those whose
    members are among them. parts, workspaces: see Launch; a launch before another has the workspaces of that.
    early: whether its code waits for the launch before it, so that it may begin while that still runs, see
    compiler/dependent_launch.py.
    own: whether `source` is what a rung of this package makes, or its twin: the kernels for which
    compiler/front_end.py is tested.
    places: file and line where a reader finds each line of `source`, line 0 for one that is in no file: of a
    twin in the files that it was put together from, of a schedule in what `tir-schedules emit` prints. Empty
    where the source is itself what a reader has.

    TooLarge for a grid that CUDA does not launch.
    """

    label: str
    source: str
    entry: str
    params: tuple[str, ...]
    grid: Dim3
    block: Dim3
    arch: str
    dynamic_shared: int = 0
    folder: str = ""
    file: str = ""
    own: bool = field(default=False, compare=False)
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    cluster: Dim3 = (1, 1, 1)
    maps: tuple[TensorMap, ...] = ()
    structs: tuple[Struct, ...] = ()
    parts: int = 1
    workspaces: tuple[tuple[str, tuple[int, ...]], ...] = ()
    early: bool = field(default=False, compare=False)
    places: tuple[tuple[str, int], ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self):
        check_grid(self.label, self.grid)

    @property
    def threads(self) -> int:
        """Threads per block."""
        x, y, z = self.block
        return x * y * z

    @property
    def taken(self) -> tuple[str, ...]:
        """Names of the arguments that it takes; of an array, be it by its tensor map."""
        described = {tensor.name: tensor.of for tensor in self.maps}
        return tuple(dict.fromkeys(described.get(name, name) for name in self.params))

    def footprint(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of the arrays that it takes. Each launch of a workload is given the arrays of all of them."""
        given: list[Any] = [arguments.get(name) for name in self.taken]
        return sum(value.nbytes for value in given if getattr(value, "ndim", 0))

    @property
    def results(self) -> Dim3:
        """The grid as a workload is told of it, which knows what a launch leaves: z is 1 unless each block
        along it leaves a part."""
        x, y, _ = self.grid
        return x, y, self.parts

    def prepared(self, workload: Workload, arguments: Arguments) -> Arguments:
        """Arguments of its launch: those of the workload, and workspaces, which hold NaN until they are
        filled."""
        import numpy as np  # here: commands that make no arrays start without it

        given = workload.prepared(arguments, self.results)
        made = {
            name: np.full_like(given[name.removesuffix("_rows")], np.nan, shape=shape)
            for name, shape in self.workspaces
            if name not in given or given[name].shape != shape
        }
        return given | made if made else given


SOON_READ = 16 << 20
"""Bytes that are read in a few microseconds, so that it does not matter which SMs read them."""


def reads_unevenly(blocks: int, multiprocessors: int, footprint: int) -> bool:
    """Whether blocks are more than half of the SMs, but fewer than seven eighths, and read much: so many
    bytes. Two SMs share a way to L2. If the blocks come to SMs that are free, both SMs of some pairs have
    one, and other pairs have no block."""
    return multiprocessors // 2 < blocks < 7 * multiprocessors // 8 and footprint > SOON_READ


@dataclass(frozen=True)
class Resources:
    """What ptxas reports: registers per thread; static shared, stack, spill and constant bytes; barriers."""

    registers: int
    shared: int
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class Binary:
    """A compiled Kernel: PTX text, the cubin assembled from exactly that PTX, and its resources."""

    kernel: Kernel
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    resources: Resources

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.resources.shared + self.kernel.dynamic_shared

    def overlaps(self, multiprocessors: int, footprint: int) -> bool:
        """Whether it begins before any launch ahead of it has ended, on a GPU with so many SMs: it waits for
        that by itself, and its blocks come to SMs as they should, see `GpuMachine.overlaps`. footprint: bytes
        of its arrays."""
        blocks, cluster = prod(self.kernel.grid), prod(self.kernel.cluster)
        if not self.kernel.early or blocks > multiprocessors and not self.fills_sm:
            return False
        return cluster > 1 or not reads_unevenly(blocks, multiprocessors, footprint)

    @property
    def fills_sm(self) -> bool:
        """Whether an SM has room for one block only."""
        kernel = self.kernel
        if not known_sm(kernel.arch):
            return False
        return occupancy(kernel.arch, kernel.block, self.resources.registers, self.shared_bytes).blocks == 1

    @property
    def filling_sm(self) -> "Binary":
        """The same with as much more dynamic shared memory as leaves an SM room for one block only, unless it
        asks how much it has."""
        if self.fills_sm or not known_sm(self.kernel.arch) or "smem_size" in self.ptx:
            return self
        half = (find_sm(self.kernel.arch).shared_kib << 10) // 2
        return replace(self, kernel=replace(self.kernel, dynamic_shared=half))
