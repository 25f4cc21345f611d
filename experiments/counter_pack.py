"""A pack of kernels whose accesses are counted on a GPU, with what the CPU machine counts; and how they are
launched."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Sequence, cast

import numpy as np
from counter_probes import Probe, probes
from unit_probes import unit_probes

from tir_schedules.compiler.lower import fitted
from tir_schedules.console import progress
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.insight.profile.cases import Case, cases_of, packed_case, predictions, save_cases
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.registry import FAMILIES, find
from tir_schedules.model.kernel import Binary, Resources
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.compiling import compile_jobs
from tir_schedules.subjects.packs import load_pack
from tir_schedules.subjects.results import about
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction
from tir_schedules.workloads.split_gemm import float_gemm

PROBES, UNITS = "probes", "sm_90a"
COUNTED = {
    "sgemm": [Gemm(256, 256, 256)],
    "reduce": [Reduction(1 << 16)],
    "hgemm": [HalfGemm(512, 512, 256, *kind) for kind in product(LAYOUTS, ACCUMULATORS)],
}
"""Small enough to profile every kernel, large enough for several blocks and tiles."""

RAGGED = {
    "sgemm": [Gemm(132, 100, 36), Gemm(129, 127, 65)],
    "reduce": [Reduction(20001)],
    "hgemm": [HalfGemm(136, 152, 72, "nn", "float32"), HalfGemm(129, 127, 65, "nt", "float16")],
}
"""Shapes that no tile divides, with rows that 16-byte accesses can take and that they cannot: for
compute-sanitizer alone."""


@dataclass(frozen=True)
class ProbeInputs:
    """A probe in place of a workload: one launch, with arguments as they are, and nobody knows what is
    right."""

    probe: Probe

    outputs, workspaces = ("Y",), ()

    def arguments(self) -> dict[str, np.ndarray]:
        return self.probe.arguments()

    def prepared(self, arguments, grid) -> dict[str, np.ndarray]:
        return arguments


def is_flawed(rung: Rung) -> bool:
    return rung.variant in rung.flawed


def jobs_of(names: Sequence[str]) -> list[tuple[Rung, Any]]:
    """Rungs and workloads; a ladder is all its configurations, the flawed ones too, which are not counted."""
    rungs = []
    for name in (name for name in names if name != PROBES):
        rungs += [
            variant
            for rung in find(name)
            for variant in (rung.variants(flawed=True) if name in FAMILIES else [rung])
        ]
    jobs = []
    for rung in {rung.id: rung for rung in rungs}.values():
        workloads = [*([] if is_flawed(rung) else COUNTED[rung.family]), *RAGGED[rung.family]]
        jobs += [(rung, made) for made in map(partial(multiplied, rung), workloads) if takes(rung, made)]
    return jobs


def multiplied(rung: Rung, workload: Any) -> Any:
    """The workload; of float32 matrices, by the products of the rung."""
    products = ladder_of(rung.family).kinds_of(rung).get("products")
    return float_gemm(workload.m, workload.n, workload.k, products[0]) if products else workload


def takes(rung: Rung, workload: Any) -> bool:
    """Whether the rung has sums of the workload's type, and its copies can take the rows."""
    try:
        fitted(rung, workload)
    except BadInput:
        return False
    return rung.family != "hgemm" or workload.accumulate in rung.config.accumulators


def pack(names: Sequence[str], arch: str, path: Path) -> tuple[int, list[dict[str, str]]]:
    """Compile rungs, twins and probes, predict their counters, write the pack; returns how many cases, and
    refused rows."""
    jobs = jobs_of(names)
    flawed = {rung.id for rung, _ in jobs if is_flawed(rung)}
    subjects, refused = compile_jobs(jobs, arch) if jobs else ([], [])
    subjects, cases = [subject for subject in subjects if subject.binaries], []
    with progress(len(subjects), "predicting") as step:
        for subject in subjects:
            shapes = {workload.shape for workload in COUNTED[subject.family]}
            counted = subject.name not in flawed and subject.workload.shape in shapes
            launches = metrics_of(subject.binaries, subject.workload) if counted else None
            cases.append(packed_case(launches, subject.name in flawed))
            step(subject.label)
    single = packed_probes(arch) if PROBES in names else {"binaries": {}, "predicted": {}}
    command = f"experiments/counters_on_gpu.py pack {path.name} {' '.join(names)} --arch {arch}"
    save_cases(subjects, cases, {**about(command), "arch": arch}, path, **{PROBES: single})
    return len(cases) + len(single["predicted"]), refused


def probes_for(arch: str) -> list[Probe]:
    """Of Hopper's units where that is what is compiled for, else of single accesses."""
    return unit_probes(arch) if arch == UNITS else probes(arch)


def packed_probes(arch: str) -> dict[str, Any]:
    """Cubins by label (probes of one access share theirs), and counters by name, as JSON can hold them."""
    from tir_schedules.compiler.nvcc import compile_kernels

    patterns = probes_for(arch)
    kernels = {probe.kernel.label: probe.kernel for probe in patterns}
    binaries = dict(zip(kernels, compile_kernels(kernels.values())))
    return {
        "binaries": {
            label: {"cubin": base64.b64encode(binary.cubin).decode(), "resources": asdict(binary.resources)}
            for label, binary in binaries.items()
        },
        "predicted": {
            probe.name: predictions(
                metrics_of([binaries[probe.kernel.label]], cast("Workload", ProbeInputs(probe)))
            )
            for probe in patterns
        },
    }


def load_all(path: Path) -> tuple[list[Case], dict[str, Any]]:
    """Cases of a pack, probes included, and what it says of where it was made. BadInput for a file that is
    none."""
    cases, source = cases_of(load_pack(path), path)
    try:
        return (
            cases + probe_cases(source.pop("counters").get(PROBES) or {"binaries": {}}, source["arch"]),
            source,
        )
    except KeyError as missing:
        raise BadInput(
            f"{path} was packed with other probes than there are now ({missing}): pack it again"
        ) from None


def probe_cases(packed: dict[str, Any], arch: str) -> list[Case]:
    """Probes of a pack. KeyError when these are not today's."""
    binaries, cases = packed["binaries"], []
    for probe in probes_for(arch) if binaries else ():
        binary = binaries[probe.kernel.label]
        launched = Binary(
            probe.kernel, "", base64.b64decode(binary["cubin"]), Resources(**binary["resources"])
        )
        facts = {"probe": probe.name, "offsets": probe.offsets.tolist(), "sources": probe.sources.tolist()}
        inputs = cast(Workload, ProbeInputs(probe))
        cases.append(Case("probe", inputs, (launched,), packed["predicted"][probe.name], False, facts))
    return cases
