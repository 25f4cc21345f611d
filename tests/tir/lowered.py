"""A rung's CUDA with and without primitives of ours, and what the CPU machine says of it."""

from dataclasses import replace

from mutants import loaded

from tir_schedules.compiler.lower import emit, lower, scheduled
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.schedule import Schedule
from tir_schedules.run import outcome_of
from tir_schedules.tir.schedule import Listener
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
GEMM = HalfGemm(256, 256, 256)
SMALL = {"bm": 64, "bn": 64, "wm": 32, "wn": 32}
"""Tiles of which each warp has four fragments by four, in place of eight by eight: sooner compiled."""


def named(name, **config):
    """A rung, in another configuration if asked for."""
    (rung,) = find(name)
    return replace(rung, config=replace(rung.config, **config))


OURS = tuple(name for name in vars(Schedule) if not name.startswith("_"))
"""The primitives that this project adds to those of TVM."""


class Without(Listener):
    """A schedule in which some primitives do nothing."""

    def __init__(self, schedule, names):
        super().__init__(schedule)
        self.names = names

    def __getattr__(self, name):
        found = getattr(self.schedule, name)
        return (lambda *given, **named: None) if name in self.names else found


class Asked(Listener):
    """Keeps the names of the primitives of ours that are called."""

    def __init__(self, schedule):
        super().__init__(schedule)
        self.names = []

    def called(self, name, given, result, frame):
        self.names += [name] if name in OURS else []


def source(name, gemm=GEMM, without=(), arch=ARCH, **config):
    """The CUDA of a rung, whose schedule does not call some of the primitives that it has."""
    rung = named(name, **config)
    if not without:
        return lower(rung, gemm, arch).source
    assert set(without) <= set(OURS)
    return emit(scheduled(rung, gemm, lambda sch: Without(sch, without)), rung.entry, arch).source


def asked(rung, gemm):
    """The primitives of ours that a rung's schedule calls, each once."""
    listeners = []
    scheduled(rung, gemm, lambda sch: listeners.append(Asked(sch)) or listeners[0])
    return dict.fromkeys(listeners[0].names)


def faults(name, text, gemm=GEMM, **config):
    """What the CPU machine says of CUDA in place of the rung's own."""
    rung = named(name, **config)
    return outcome_of([loaded(text, rung, gemm, ARCH)], gemm, CpuMachine()).faults
