"""As much of CuPy as scripts use that launch in processes of their own. Its GPU is the CPU machine, and what
it loads is PTX; with CUPY_HANGS it launches nothing, and for kernels of that name it waits for ever."""

import os
import time
from types import SimpleNamespace

import numpy as np

HANGS = os.environ.get("CUPY_HANGS", "")
CHANGED = os.environ.get("CUPY_CHANGES", "")
"""A kernel of which one bit of the last array comes out changed."""


class Array:
    def __init__(self, host):
        self.host, self.shape, self.dtype = host, host.shape, host.dtype

    def get(self):
        return self.host.copy()


class Device:
    id, compute_capability, mem_info = 0, "80", (100, 200)
    attributes = {"MaxSharedMemoryPerBlockOptin": 232448, "MultiProcessorCount": 132, "L2CacheSize": 60 << 20}

    def __init__(self, number):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def synchronize(self):
        pass


class Module:
    def load(self, cubin):
        self.text = cubin.decode(errors="replace")

    def get_function(self, entry):
        return lambda *launch: run(self.text, entry, *launch)


def by_value(value):
    return value.tobytes() if value.dtype.kind == "V" else value.item()


def run(text, entry, grid, block, given, dynamic_shared, stream, cooperative):
    if HANGS:
        time.sleep(600 if entry == HANGS else 0)
        return
    from instructions import compile_together

    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.model.kernel import Binary, Kernel, Resources

    compile_together()

    names = [f"A{k}" for k in range(len(given))]
    arguments = {
        n: value.host if isinstance(value, Array) else by_value(value) for n, value in zip(names, given)
    }
    kernel = Kernel(entry, "", entry, tuple(names), grid, block, "sm_80", dynamic_shared)
    outputs = [name for name, value in arguments.items() if isinstance(value, np.ndarray)]
    CpuMachine().run(Binary(kernel, text, b"", Resources(0, 0)), arguments, outputs)
    if entry == CHANGED:
        arguments[outputs[-1]].reshape(-1).view(np.uint8)[0] ^= 1


def empty(shape, dtype):
    return Array(np.zeros(shape, dtype))


def asarray(host):
    return Array(host.copy())


cuda = SimpleNamespace(
    Device=Device,
    Stream=lambda non_blocking: None,
    set_allocator=lambda allocator: None,
    function=SimpleNamespace(Module=Module),
    runtime=SimpleNamespace(
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda number: {"name": b"made up"},
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000,
    ),
)
