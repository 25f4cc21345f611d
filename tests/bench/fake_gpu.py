"""A GPU that is none: arrays that behave like CuPy's, and a machine whose kernels are Python functions and
whose time is scripted."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.bench.clocks import Reading
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.gpu import first_line
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.subjects.subject import Candidate, Subject


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that, like CuPy's, numpy's functions take, and that refuses to meet an array of numpy's or to
    become one."""

    def __init__(self, host):
        self.host = np.asarray(host)

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a numpy array")

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return wrapped(getattr(ufunc, method)(*map(unwrapped, inputs), **keywords))

    def __array_function__(self, function, types, arguments, keywords):
        return wrapped(function(*map(unwrapped, arguments), **keywords))

    def __getitem__(self, index):
        return wrapped(self.host[indices(index)])

    def __setitem__(self, index, value):
        self.host[indices(index)] = unwrapped(value)

    def __float__(self):
        return float(self.host)

    def __int__(self):
        return int(self.host)

    def __bool__(self):
        return bool(self.host)

    def __matmul__(self, other):
        return wrapped(self.host @ unwrapped(other))

    def __getattr__(self, name):
        value = getattr(self.host, name)
        if callable(value):
            return lambda *arguments, **keywords: wrapped(value(*arguments, **keywords))
        return wrapped(value)


def unwrapped(value):
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("a numpy array among arrays of the device")
    return value.host if isinstance(value, DeviceArray) else value


def indices(index):
    return tuple(map(unwrapped, index)) if isinstance(index, tuple) else unwrapped(index)


def wrapped(value):
    if isinstance(value, tuple):
        return tuple(map(wrapped, value))
    return DeviceArray(value) if isinstance(value, (np.ndarray, np.generic)) else value


class Module:
    """What the project uses of the cupy module, for arrays."""

    class random:
        @staticmethod
        def default_rng(seed):
            rng = np.random.default_rng(seed)
            return SimpleNamespace(random=drawn(rng.random), integers=drawn(rng.integers))

    def __getattr__(self, name):
        return drawn(getattr(np, name))


def drawn(function):
    return lambda *arguments, **keywords: wrapped(function(*map(unwrapped, arguments), **keywords))


def subject(name, workload, form="schedule", family="sgemm"):
    """A subject whose kernel is the function of that name in FakeMachine.kernels."""
    kernel = Kernel(
        f"{name} ({form})", "", name, ("A", "B", "C"), (1, 1, 1), (32, 1, 1), "sm_90", dynamic_shared=100
    )
    return Subject(
        family, name, form, workload, (Binary(kernel, "", name.encode(), Resources(registers=40, shared=28)),)
    )


class FakeMachine:
    """kernels: entry -> function of the arguments. durations: entry -> seconds of a launch, or function of
    the launch's number.

    calls: what was done, in order: ("launch", entry) outside timing, ("sample", entry, launches).
    """

    name, xp, arch, l2_bytes, free_bytes = "gpu", Module(), "sm_90", 1 << 12, 1 << 12

    def __init__(self, kernels, durations=None, readings=()):
        self.kernels, self.durations = kernels, durations or {}
        self.now, self.launched, self.timed, self.freed, self.sticky = 0.0, [], [], 0, ""
        self.readings = list(readings)

    def load(self, binary):
        pass

    def overlaps(self, binary, arguments):
        return binary.kernel.early

    def enqueue(self, binary, arguments, stream, follows=False):
        stream.append((binary.kernel.entry, arguments))

    def copy(self, target, source, stream):
        stream.append(("copy", {}))

    def execute(self, stream):
        for entry, arguments in stream:
            count = self.launched.count(entry)
            self.launched.append(entry)
            self.kernels.get(entry, lambda arguments: None)(arguments)
            duration = self.durations.get(entry, 1e-3)
            self.now += duration(count) if callable(duration) else duration

    def seconds(self, call, before=None, during=None, around=None):
        first, second = [], []
        if before:
            before(first)
        call(second)
        self.execute(first)
        started = self.now
        self.execute(second)
        if during:
            during()
            self.timed.append(
                (
                    second[0][0],
                    len(second),
                    [id(arguments["C"]) for _, arguments in second if "C" in arguments],
                )
            )
        return self.now - started

    def elapsed(self, call):
        return self.seconds(call)

    def capture(self, call):
        recorded = []
        call(recorded)
        return lambda stream: stream.extend(recorded)

    def free_memory(self):
        self.freed += 1

    def describe(self):
        return {"name": "Fake GPU", "arch": self.arch, "multiprocessors": 10}

    def read(self):
        """As a Monitor does: the next reading, the last one again and again."""
        return self.readings.pop(0) if len(self.readings) > 1 else (self.readings or [None])[0]

    @contextmanager
    def explaining(self, label):
        if self.sticky:
            raise CheckFailed(f"{label}: not run; {self.sticky} left the GPU unusable")
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            raise CheckFailed(f"{label}: {first_line(error)}") from error


class FakeVendors:
    """Libraries that multiply on the fake machine. candidates: how many there are of cuBLASLt; the kernel of
    the first is "cuBLASLt 0"."""

    def __init__(self, candidates=0, notes=()):
        self.count, self.notes = candidates, list(notes)

    def candidates(self, subject):
        if subject.name != "cuBLASLt":
            return [subject]
        numbers = range(self.count)
        return [replace(subject, candidate=Candidate(i, self.count, 66, i, 3, 1, 0, 1024)) for i in numbers]

    def bind(self, subject, arguments):
        entry = f"{subject.name} {subject.candidate.index}" if subject.candidate else subject.name
        return BoundSubject(lambda stream: stream.append((entry, arguments)), {"C": arguments["C"]})

    def versions(self):
        return {"cublas": "1.2.3"}


def multiply(arguments):
    """A right kernel."""
    a, b, c = (arguments[name].host for name in "ABC")
    c[...] = (a.astype(np.float64) @ b.astype(np.float64)).astype(c.dtype)


def multiply_wrongly(arguments):
    """A kernel that leaves one element out."""
    before = arguments["C"].host[0, 0]
    multiply(arguments)
    arguments["C"].host[0, 0] = before


def reading(mhz, watts=300.0, throttled=()):
    return Reading(mhz, watts, throttled)
