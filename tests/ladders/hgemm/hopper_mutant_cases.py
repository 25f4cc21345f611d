"""Which kernels with asynchronous units mutants are made of, and how these are executed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Iterator

from hopper_mutants import Mutant, hopper_mutants

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.execution import execute
from tir_schedules.model.findings import Finding
from tir_schedules.model.kernel import Binary
from tir_schedules.model.verify import shared_checks
from tir_schedules.run import launches
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
MAKERS = {"schedule": lower, "twin": load_twin}
MACHINES = [
    CpuMachine(order, budget=1 << 22, seed=seed, cores=1, copies=copies)
    for order, copies, seed in (
        ("forward", "late", 0), ("reverse", "early", 0), ("forward", "early", 0), ("reverse", "late", 0),
        ("random", "late", 1), ("random", "late", 2),
    )
]  # fmt: skip
"""Orders of warps and copies, in which a mutant is executed until something is found."""

ONE_TILE, TWO_TILES = (128, 64, 1024), (256, 64, 1024)
"""16 K tiles: each stage is used five times."""

RUNGS = {
    "wgmma": ("128x128,bn=64", (128, 64, 192)),
    "wgmma_async": ("128x128,bn=64,stages=4", ONE_TILE),
    "tma": ("128x128,bn=64,stages=4", ONE_TILE),
    "warp_specialized": ("128x128,bn=64,stages=3", ONE_TILE),
    "persistent": ("128x128,bn=64,programs=1,stages=3,group=2", TWO_TILES),
    "tma_store": ("128x128,bn=64,programs=1,stages=3,group=2", TWO_TILES),
    "cluster": ("128x128,programs=2,stages=3,group=2", (256, 256, 1024)),
    "tile_shapes": ("16x128,cluster_m=2,programs=2,stages=3", (64, 128, 1024)),
    "repacked": ("128x128,bn=64,programs=1,stages=3,group=2,boxes=0", TWO_TILES),
    "split_k": ("128x128,bn=64,programs=2,stages=3,group=2,splits=2", (256, 64, 2048)),
    "stream_k": ("128x128,bn=64,programs=2,stages=3,group=2,worth=1", (384, 64, 704)),
}
"""Rung -> configuration and shape: several tiles for each program where the rung has them."""

CASES = [(name, form) for name in RUNGS for form in MAKERS]


@dataclass(frozen=True)
class Case:
    gemm: HalfGemm
    binary: Binary
    sums: tuple[Binary, ...] = ()

    def mutants(self) -> Iterator[Mutant]:
        return hopper_mutants(self.binary.ptx)

    def executed(self, ptx: str, machine: CpuMachine) -> tuple[tuple[Finding, ...], bool]:
        """What is found, and whether the numbers are right."""
        check = shared_checks(self.gemm)[0]
        kernels = [replace(self.binary, ptx=ptx), *self.sums]
        done = execute(machine, self.gemm, kernels, check.arguments())
        outputs = {name: done[-1][1][name] for name in self.gemm.outputs}
        return done[0][0].findings, check.mismatch(outputs) is None

    def finding(self, mutant: Mutant) -> Finding | None:
        """The first one with a line of CUDA, in the orders of MACHINES."""
        for machine in MACHINES:
            for finding in self.executed(mutant.ptx, machine)[0]:
                if finding.location.place:
                    return finding
        return None

    def right(self, mutant: Mutant) -> bool:
        """Whether the numbers are right in all orders."""
        return all(self.executed(mutant.ptx, machine)[1] for machine in MACHINES)


def case_of(name: str, form: str, k: int = 0) -> Case:
    """k: another than the shape has."""
    variant, shape = RUNGS[name]
    shape = (*shape[:2], k or shape[2])
    gemm = HalfGemm(*shape, layout="nt", accumulate="float32", output="float16")
    kernels = launches(MAKERS[form], find(f"hgemm/{name}:{variant}")[0], gemm, ARCH)
    own, *others = map(compile_kernel, kernels)
    return Case(gemm, own, tuple(others))


def numbered(mutants: Iterator[Mutant]) -> Iterator[tuple[Mutant, tuple[str, int, int]]]:
    """Each with the fault, which place of that fault it is, from 0 on, and how many there are."""
    every = list(mutants)
    places, seen = Counter(mutant.what for mutant in every), Counter()
    for mutant in every:
        yield mutant, (mutant.what, seen[mutant.what], places[mutant.what])
        seen[mutant.what] += 1
