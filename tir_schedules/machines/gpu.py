"""The GPU machine: launches cubins through CuPy, and times what is enqueued on its stream.

It launches the very cubin of a Binary. What goes wrong there for a thread (races, reads of memory that
nothing wrote) it does not see; the CPU machine does.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from math import prod
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.machines.driver import declared_cluster, encoded, launch_early
from tir_schedules.machines.tensor_map import check_tensor_map
from tir_schedules.model.gpus import STATIC_SHARED
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import TensorMap, join_structs
from tir_schedules.model.machine import Execution
from tir_schedules.model.workload import Arguments

INSTALL = "pip install 'tir_schedules[gpu]'"
STICKY = (
    "illegaladdress", "misalignedaddress", "launchfail", "illegalinstruction", "hardwarestack",
    "invalidpc", "assert", "invalidaddressspace", "launchtimeout", "uncorrectable",
)  # fmt: skip
"""CUDA errors after which every further call of the process fails."""

NO_CODE = ("nobinaryforgpu", "nokernelimage")
Call = Callable[[Any], None]
"""What enqueues work on the CUDA stream it is given."""


class GpuMachine:
    """Runs Binaries on the first GPU that CUDA shows. Safe to use from several threads, which take turns.

    xp: the array module whose arrays `enqueue` takes. Raises MissingTool without CuPy or without a GPU.
    """

    name = "gpu"

    def __init__(self) -> None:
        self.cupy = self.xp = import_cupy()
        self.device = self.cupy.cuda.Device(first_device(self.cupy))
        self.lock, self.broken = threading.RLock(), ""
        self.functions: dict[tuple[bytes, str, int], Any] = {}
        with self.explaining("the GPU"), self.device:
            self.stream = self.cupy.cuda.Stream(non_blocking=True)

    @property
    def arch(self) -> str:
        """The GPU's architecture, such as "sm_90"."""
        return f"sm_{self.device.compute_capability}"

    @property
    def device_name(self) -> str:
        """As the driver has it, such as "NVIDIA H200"."""
        return self.cupy.cuda.runtime.getDeviceProperties(self.device.id)["name"].decode()

    def alike(self) -> list[str]:
        """What CUDA_VISIBLE_DEVICES has to be to see one GPU alone, for each that has this one's name."""
        name_of = self.cupy.cuda.runtime.getDeviceProperties
        names = [name_of(number)["name"].decode() for number in range(len(visible(self.cupy)))]
        return [each for each, name in zip(visible(self.cupy), names) if name == self.device_name]

    def attribute(self, name: str) -> int:
        """One of CUDA's device attributes, such as "MultiProcessorCount"."""
        return int(self.device.attributes[name])

    @cached_property
    def resident_threads(self) -> int:
        """Threads that the GPU holds at a time."""
        return self.multiprocessors * self.attribute("MaxThreadsPerMultiProcessor")

    @cached_property
    def multiprocessors(self) -> int:
        return self.attribute("MultiProcessorCount")

    @property
    def l2_bytes(self) -> int:
        return self.attribute("L2CacheSize")

    @property
    def free_bytes(self) -> int:
        """Memory that may still be had."""
        self.free_memory()
        return int(self.device.mem_info[0])

    def run(
        self, binary: Binary, arguments: Arguments, outputs: Sequence[str], *, count: bool = False
    ) -> Execution:
        """Launch the kernel once; `seconds` is the time it took on the GPU.

        arguments: by name; arrays are numpy's. outputs: names of the arrays that get what the kernel left, in
        place. CheckFailed with one line when CUDA refuses or ends the launch; BadInput for count, which only
        the CPU machine can.
        """
        kernel = binary.kernel
        if count:
            raise BadInput(f"{kernel.label}: accesses cannot be counted on a GPU; use --machine cpu")
        with self.lock, self.explaining(kernel.label), self.device:
            given = {name: argument(kernel, arguments, name) for name in kernel.taken}
            there = {
                name: self.cupy.asarray(value) if isinstance(value, np.ndarray) else value
                for name, value in given.items()
            }
            seconds = self.seconds(lambda stream: self.enqueue(binary, there, stream))
            for name, value in given.items():
                if name in outputs and isinstance(value, np.ndarray):
                    value[...] = there[name].get()
        return Execution((), seconds)

    def enqueue(self, binary: Binary, arguments: dict[str, Any], stream: Any, follows: bool = False) -> None:
        """Launch on a stream, with arrays that are on the GPU. Every launch goes through here.

        A kernel begins while the launch before it still runs if its code waits for that and all of its blocks
        can be there to wait. follows: whether the launch before is of the same work. If it is not, see
        `overlaps`, too.
        """
        kernel = binary.kernel
        values = packed(kernel, arguments)
        early = kernel.early if follows else self.overlaps(binary, arguments)
        if early and prod(kernel.grid) * kernel.threads <= self.resident_threads:
            binary = binary if follows else binary.filling_sm
            launch_early(self.load(binary).ptr, binary.kernel, values, stream.ptr)
        else:
            function = self.load(binary)
            function(kernel.grid, kernel.block, values, shared_mem=kernel.dynamic_shared, stream=stream)

    def overlaps(self, binary: Binary, arguments: dict[str, Any]) -> bool:
        """Whether a kernel begins early if the launch before it is of other work.

        Each block must have an SM to itself, because blocks come to SMs that have room: some would get two
        and others would be idle. SGEMM at 2984x136x640 took 33.8 us on an H200 in place of 23.8. So blocks
        that are no more than SMs get as much shared memory as leaves no room for a second one. Nor must they
        read unevenly: where they began early 96 blocks read 302 MB in 90 us, and 128 in 71.
        """
        return binary.overlaps(self.multiprocessors, binary.kernel.footprint(arguments))

    def load(self, binary: Binary) -> Any:
        """The kernel's function on the GPU, loaded once per cubin."""
        kernel = binary.kernel
        # Bytes keep their hash: this is called for every launch.
        key = (binary.cubin, kernel.entry, kernel.dynamic_shared)
        if key not in self.functions:
            self.functions[key] = self.loaded(binary)
        return self.functions[key]

    def loaded(self, binary: Binary) -> Any:
        """The same, loaded now. CheckFailed when the GPU cannot run it."""
        kernel = binary.kernel
        shared = binary.resources.shared + kernel.dynamic_shared
        limit = self.attribute("MaxSharedMemoryPerBlockOptin")
        if shared > limit:
            has = f"{self.device_name} has {limit}"
            raise CheckFailed(f"{kernel.label}: {shared} bytes of shared memory per block; {has}")
        if not runs_on(kernel.arch, self.arch):
            gpu = f"{self.device_name} ({self.arch})"
            raise CheckFailed(f"{kernel.label}: compiled for {kernel.arch}, which {gpu} does not run")
        module = self.cupy.cuda.function.Module()
        module.load(binary.cubin)
        function = module.get_function(kernel.entry)
        if prod(kernel.cluster) > 1 and declared_cluster(function.ptr) != kernel.cluster:
            raise CheckFailed(
                f"{kernel.label}: a GPU launches it in clusters only as it declares: write"
                f" __cluster_dims__({', '.join(map(str, kernel.cluster))}) at the kernel"
            )
        if shared > STATIC_SHARED and kernel.dynamic_shared:
            driver = self.cupy.cuda.driver
            most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(function.ptr, most, kernel.dynamic_shared)
        return function

    def seconds(
        self,
        call: Call,
        before: Call | None = None,
        during: Callable[[], None] | None = None,
        around: tuple[Call, Call] | None = None,
    ) -> float:
        """Time on the GPU of what `call` enqueues.

        before: enqueues work that keeps the GPU busy while `call` is still being enqueued, so that the time
        holds no waiting for this computer. during: called on this computer while the GPU works. around:
        enqueue what is done right before and right after, which is not timed.
        """
        event = self.cupy.cuda.Event
        self.synchronize()
        start, stop = event(), event()
        if before:
            before(self.stream)
        if around:
            around[0](self.stream)
        start.record(self.stream)
        call(self.stream)
        stop.record(self.stream)
        if around:
            around[1](self.stream)
        if during:
            during()
        stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, stop) / 1000

    def elapsed(self, call: Call) -> float:
        """Seconds on this computer from the call until the GPU has done what it enqueues."""
        self.synchronize()
        started = time.perf_counter()
        call(self.stream)
        self.synchronize()
        return time.perf_counter() - started

    def capture(self, call: Call) -> Call:
        """A CUDA graph of what `call` enqueues: this computer enqueues it in hardly any time."""
        stream = self.cupy.cuda.Stream(non_blocking=True)
        self.synchronize()
        stream.begin_capture()
        try:
            call(stream)
        except BaseException:
            with suppress(RuntimeError):  # whatever CUDA then says of it
                stream.end_capture()
            raise
        graph = stream.end_capture()
        graph.upload(self.stream)
        return graph.launch

    def address(self, array: Any) -> int:
        """Where an array on the GPU begins."""
        return int(array.data.ptr)

    @property
    def bus_id(self) -> str:
        """PCI address, such as "0000:17:00.0", by which NVML knows this GPU too."""
        return self.device.pci_bus_id

    def copy(self, target: Any, source: Any, stream: Any) -> None:
        """Enqueue a copy between arrays on the GPU."""
        target.data.copy_from_device_async(source.data, source.nbytes, stream)

    def synchronize(self) -> None:
        """Wait for all work on the GPU."""
        self.device.synchronize()

    def free_memory(self) -> None:
        """Give memory of dropped arrays back, so that others can have it."""
        self.cupy.get_default_memory_pool().free_all_blocks()

    def describe(self) -> dict[str, Any]:
        """Facts of the GPU that results depend on."""
        runtime = self.cupy.cuda.runtime
        return {
            "name": self.device_name,
            "arch": self.arch,
            "multiprocessors": self.multiprocessors,
            "l2_bytes": self.l2_bytes,
            "memory_bytes": int(self.device.mem_info[1]),
            "cuda_driver": release(runtime.driverGetVersion()),
            "cuda_runtime": release(runtime.runtimeGetVersion()),
        }

    @contextmanager
    def explaining(self, label: str) -> Iterator[None]:
        """Turn what CUDA and CuPy raise into CheckFailed with one line; label: what was going on, such as a
        kernel's label."""
        if self.broken:
            raise CheckFailed(f"{label}: not run; {self.broken} left the GPU unusable for this process")
        try:
            yield
        except (RuntimeError, MemoryError) as error:  # what all of CUDA's errors are in CuPy
            raise self.failure(label, error) from error

    def failure(self, label: str, error: Exception) -> CheckFailed:
        code, _, message = first_line(error).partition(": ")
        short = re.sub(r"^cudaError|^CUDA_ERROR|_", "", code).lower()
        if short.startswith(NO_CODE):
            return CheckFailed(
                f"{label}: its code does not run on {self.device_name}; compile it for --arch {self.arch}"
            )
        if short.startswith(STICKY):
            self.broken = f"{label} ({code})"
            hint = "--machine cpu names the line; this process can use the GPU no more"
            return CheckFailed(f"{label}: {message} ({code}); {hint}")
        return CheckFailed(f"{label}: {first_line(error)}")


def import_cupy() -> Any:
    """The cupy module. MissingTool when it is not installed or does not load."""
    try:
        import cupy  # pyright: ignore[reportMissingImports] (optional)
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise MissingTool(f"CuPy does not load ({first_line(error)}): {INSTALL}") from error
        raise MissingTool(f"a GPU is used through CuPy, which is not installed: {INSTALL}") from None
    except Exception as error:
        raise MissingTool(f"CuPy does not load ({first_line(error)}): {INSTALL}") from error
    return cupy


def visible(cupy: Any) -> list[str]:
    """What CUDA_VISIBLE_DEVICES has to be to see one GPU alone, for each that CUDA shows."""
    count, names = cupy.cuda.runtime.getDeviceCount(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return names.split(",")[:count] if names else [*map(str, range(count))]


def first_device(cupy: Any) -> int:
    """Number of the GPU to use. MissingTool when CUDA shows no GPU."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise MissingTool(
            f"CUDA shows no GPU ({first_line(error)}): install NVIDIA's driver, or use --machine cpu"
        ) from None
    if not count:
        raise MissingTool("CUDA shows no GPU: install NVIDIA's driver, or use --machine cpu")
    return 0


def argument(kernel: Kernel, arguments: dict[str, Any], name: str) -> Any:
    """The argument for one of the kernel's parameters. CheckFailed when there is none of that name."""
    if name not in arguments:
        raise CheckFailed(f"{kernel.label}: the kernel asks for {name!r}; there is {', '.join(arguments)}")
    return arguments[name]


def packed(kernel: Kernel, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments in the kernel's order: arrays as they are, whole numbers as int, others as float, tensor maps
    encoded for their arrays."""
    scalars = {int: np.int32, float: np.float32}
    maps = {tensor.name: tensor for tensor in kernel.maps}
    values = [
        map_of(kernel, maps[name], arguments) if name in maps else argument(kernel, arguments, name)
        for name in kernel.params
    ]
    for struct in kernel.structs:
        for at in range(struct.first, struct.first + len(struct.offsets)):
            values[at] = member_of(values[at])
    joined = join_structs(kernel.structs, values)
    values = [np.void(one) if isinstance(one, bytes) else one for one in joined]
    return tuple(scalars[type(value)](value) if type(value) in scalars else value for value in values)


def member_of(value: Any) -> Any:
    """A number, or the address of an array on the GPU."""
    return value if isinstance(value, np.generic) else int(value.data.ptr)


def map_of(kernel: Kernel, tensor: TensorMap, arguments: dict[str, Any]) -> np.ndarray:
    """A tensor map of an array on the GPU. CheckFailed where there can be none."""
    array = argument(kernel, arguments, tensor.of)
    check_tensor_map(kernel.label, tensor, array.data.ptr)
    return encoded(tensor, array.data.ptr)


def runs_on(arch: str, gpu: str) -> bool:
    """Whether a GPU of architecture `gpu` ("sm_90") runs code compiled for `arch`.

    It runs code of its own major version that is not for a newer minor one; code for "sm_90a" runs on sm_90
    alone.
    """
    match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
    major, minor = int(gpu[3:-1]), int(gpu[-1])
    if not match or int(match[1]) != major:
        return False
    return int(match[2]) == minor if match[3] == "a" else int(match[2]) <= minor


def release(version: int) -> str:
    """13000 as "13.0"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def first_line(error: BaseException) -> str:
    """The first non-empty line of an error's text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
