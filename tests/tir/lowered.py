"""A rung's CUDA with and without passes, and what the CPU machine says of it."""

from dataclasses import replace

from mutants import loaded

from tir_schedules.compiler.lower import emit, lower, scheduled
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
GEMM = HalfGemm(256, 256, 256)
SMALL = {"bm": 64, "bn": 64, "wm": 32, "wn": 32}
"""Tiles of which each warp has four fragments by four, in place of eight by eight: sooner compiled."""


def named(name, **config):
    """A rung, in another configuration if asked for."""
    (rung,) = find(name)
    return replace(rung, config=replace(rung.config, **config))


def source(name, gemm=GEMM, without=(), **config):
    """The CUDA of a rung, lowered without some of the passes it asks for."""
    rung = named(name, **config)
    if not without:
        return lower(rung, gemm, ARCH).source
    passes = [wanted for wanted in rung.passes if wanted not in without]
    return emit(scheduled(rung, gemm), rung.entry, ARCH, rung.pass_config, passes).source


def faults(name, text, gemm=GEMM, **config):
    """What the CPU machine says of CUDA in place of the rung's own."""
    rung = named(name, **config)
    return outcome_of([loaded(text, rung, gemm, ARCH)], gemm, CpuMachine()).faults
