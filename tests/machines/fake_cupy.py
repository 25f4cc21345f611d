"""As much of CuPy as the GPU machine uses, with scripted errors, and a log of what it was asked to do."""

from types import SimpleNamespace

import numpy as np


class Array:
    """On the device: cannot be read without `get`."""

    def __init__(self, host):
        self.host = host.copy()
        self.data = SimpleNamespace(ptr=self.host.ctypes.data)

    def get(self):
        return self.host.copy()


class Device:
    def __init__(self, number, capability):
        self.id, self.compute_capability, self.pci_bus_id = number, capability, "0000:17:00.0"
        self.attributes = {
            "MaxSharedMemoryPerBlockOptin": 232448,
            "MultiProcessorCount": 132,
            "L2CacheSize": 60 << 20,
        }
        self.mem_info = (100, 200)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def synchronize(self):
        pass


class FakeCupy:
    """kernels: cubin -> function of the arguments as they are launched. errors: name of a call -> exception
    it raises."""

    def __init__(self, kernels=None, capability="90", count=1, errors=None):
        self.kernels, self.errors, self.log, self.capturing = kernels or {}, errors or {}, [], None
        fake = self

        class Module:
            def load(self, cubin):
                fake.step("load", cubin)
                self.cubin = cubin

            def get_function(self, entry):
                fake.step("get_function", entry)

                def launch(grid, block, arguments, shared_mem=0, stream=None):
                    fake.step("launch", grid, block, shared_mem)
                    if fake.capturing is not None:
                        fake.capturing.append((self.cubin, arguments))
                    else:
                        fake.kernels[self.cubin](
                            *[value.host if isinstance(value, Array) else value for value in arguments]
                        )

                class Function:
                    ptr = 5
                    __call__ = staticmethod(launch)

                return Function()

        class Event:
            def record(self, stream):
                fake.step("record")

            def synchronize(self):
                fake.step("synchronize")

        class Stream:
            def __init__(self, non_blocking):
                assert non_blocking

            def begin_capture(self):
                fake.capturing = []

            def end_capture(self):
                captured, fake.capturing = fake.capturing, None
                return SimpleNamespace(
                    upload=lambda stream: None, launch=lambda stream: fake.step("graph", len(captured))
                )

        self.cuda = SimpleNamespace(
            Device=lambda number: Device(number, capability),
            Event=Event,
            Stream=Stream,
            function=SimpleNamespace(Module=Module),
            driver=SimpleNamespace(
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
                funcSetAttribute=lambda *arguments: self.step("attribute", *arguments),
            ),
            runtime=SimpleNamespace(
                getDeviceCount=lambda: self.step("count") or count,
                getDeviceProperties=lambda number: {"name": b"NVIDIA H200"},
                driverGetVersion=lambda: 13000,
                runtimeGetVersion=lambda: 12090,
            ),
            get_elapsed_time=lambda start, stop: 1.5,
        )

    def step(self, *what):
        self.log.append(what)
        if what[0] in self.errors:
            raise self.errors[what[0]]

    def asarray(self, host):
        assert isinstance(host, np.ndarray)
        return Array(host)

    def get_default_memory_pool(self):
        return SimpleNamespace(free_all_blocks=lambda: self.step("free"))
