"""A pack of kernels whose accesses are counted on a GPU, with what the CPU machine counts; and how they are launched."""
from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Sequence

import numpy as np
from counter_probes import Probe, probes

from tir_schedules.bench import session
from tir_schedules.bench.pack import LAUNCH_FIELDS, load_pack, save_pack
from tir_schedules.bench.results import about
from tir_schedules.console import progress
from tir_schedules.errors import BadInput
from tir_schedules.kernel import Binary, Resources
from tir_schedules.rung import FAMILIES, Rung, find
from tir_schedules.verify import compare_with_truth
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

PROBES = "probes"
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
"""Shapes that no tile divides, with rows that 16-byte accesses can take and that they cannot: for compute-sanitizer alone."""


@dataclass(frozen=True)
class Case:
    """Something to launch.

    family: of its kernels' names; "probe" for a probe. workload: has arguments, prepared and outputs. binaries: one per launch.
    predicted: for each launch counters by class of access; None when it is not to be counted. flawed: shown for what is wrong with it.
    facts: further keys of its entries in the result.
    """

    family: str
    workload: Any
    binaries: tuple[Binary, ...]
    predicted: list[dict[str, Any]] | None
    flawed: bool
    facts: dict[str, Any]

    @property
    def label(self) -> str:
        return self.facts.get("probe") or f"{self.binaries[0].kernel.label} on {self.workload}"


@dataclass(frozen=True)
class ProbeInputs:
    """A probe in place of a workload: one launch, with arguments as they are."""

    probe: Probe

    outputs = ("Y",)

    def arguments(self) -> dict[str, np.ndarray]:
        return self.probe.arguments()

    def prepared(self, arguments, grid) -> dict[str, np.ndarray]:
        return arguments


def execute(machine: Any, workload: Any, binaries: Sequence[Binary], **options: Any) -> tuple[list[Any], dict[str, Any]]:
    """Launch all kernels of a workload, each once; returns the machine's Executions and the last launch's arguments."""
    arguments, executions = workload.arguments(), []
    for binary in binaries:
        arguments = workload.prepared(arguments, binary.kernel.grid)
        executions.append(machine.run(binary, arguments, workload.outputs, **options))
    return executions, arguments


def mismatch_of(machine: Any, case: Case) -> str | None:
    """What is wrong with the outputs of a case, or None; of a probe nobody knows what is right."""
    _, arguments = execute(machine, case.workload, case.binaries)
    if case.family == "probe":
        return None
    mismatch = compare_with_truth(case.workload, case.workload.arguments(), {name: arguments[name] for name in case.workload.outputs})
    return mismatch and str(mismatch)


def predicted(machine: Any, workload: Any, binaries: Sequence[Binary]) -> list[dict[str, Any]]:
    """The CPU machine's counters of each launch, by class of access."""
    executions, _ = execute(machine, workload, binaries, count=True)
    return [{name: asdict(access) for name, access in one.counters.accesses.items()} for one in executions]


def is_flawed(rung: Rung) -> bool:
    return rung.variant in rung.flawed


def jobs_of(names: Sequence[str]) -> list[tuple[Rung, Any]]:
    """Rungs and workloads; a ladder is all its configurations, the flawed ones too, which are not counted."""
    rungs = []
    for name in (name for name in names if name != PROBES):
        rungs += [variant for rung in find(name) for variant in (rung.variants(flawed=True) if name in FAMILIES else [rung])]
    jobs = []
    for rung in {rung.id: rung for rung in rungs}.values():
        workloads = [*([] if is_flawed(rung) else COUNTED[rung.family]), *RAGGED[rung.family]]
        jobs += [(rung, workload) for workload in workloads if takes(rung, workload)]
    return jobs


def takes(rung: Rung, workload: Any) -> bool:
    return rung.family != "hgemm" or workload.accumulate in rung.config.accumulators


def pack(names: Sequence[str], arch: str, path: Path) -> tuple[int, list[dict[str, str]]]:
    """Compile rungs, twins and probes, predict their counters, write the pack; returns how many cases, and refused rows."""
    from tir_schedules.machines.cpu import CpuMachine

    machine, jobs = CpuMachine(), jobs_of(names)
    flawed = {rung.id for rung, _ in jobs if is_flawed(rung)}
    subjects, refused = session.compiled(jobs, arch) if jobs else ([], [])
    subjects, cases = [subject for subject in subjects if subject.binaries], []
    with progress(len(subjects), "predicting") as step:
        for subject in subjects:
            counted = subject.name not in flawed and subject.workload in COUNTED[subject.family]
            counters = predicted(machine, subject.workload, subject.binaries) if counted else None
            cases.append({"flawed": subject.name in flawed, "predicted": counters})
            step(subject.label)
    single = packed_probes(machine, arch) if PROBES in names else {"binaries": {}, "predicted": {}}
    command = f"experiments/counters_on_gpu.py pack {path.name} {' '.join(names)} --arch {arch}"
    save_pack(subjects, {**about(command), "arch": arch, "counters": {"cases": cases, PROBES: single}}, path)
    return len(cases) + len(single["predicted"]), refused


def packed_probes(machine: Any, arch: str) -> dict[str, Any]:
    """Cubins by label (probes of one access share theirs), and counters by name, as JSON can hold them."""
    from tir_schedules.compiler.nvcc import compile_kernels

    patterns = probes(arch)
    kernels = {probe.kernel.label: probe.kernel for probe in patterns}
    binaries = dict(zip(kernels, compile_kernels(kernels.values())))
    return {
        "binaries": {
            label: {"cubin": base64.b64encode(binary.cubin).decode(), "resources": asdict(binary.resources)}
            for label, binary in binaries.items()
        },
        "predicted": {probe.name: predicted(machine, ProbeInputs(probe), [binaries[probe.kernel.label]]) for probe in patterns},
    }


def load_cases(path: Path) -> tuple[list[Case], dict[str, Any]]:
    """Cases of a pack, and what it says of where it was made. BadInput for a file that is none, and for a pack without predictions."""
    loaded = load_pack(path)
    source = dict(loaded.about)
    counters = source.pop("counters", None)
    if counters is None:
        raise BadInput(f"{path} has kernels but no predicted counters: name a pack that `counters_on_gpu.py pack` wrote")
    cases = [
        Case(subject.family, subject.workload, subject.binaries, facts={"workload": asdict(subject.workload)}, **case)
        for subject, case in zip(loaded.subjects, counters["cases"])
    ]
    try:
        return cases + probe_cases(counters[PROBES], source["arch"]), source
    except KeyError as missing:
        raise BadInput(f"{path} was packed with other probes than there are now ({missing}): pack it again") from None


def probe_cases(packed: dict[str, Any], arch: str) -> list[Case]:
    """Probes of a pack. KeyError when these are not today's."""
    binaries, cases = packed["binaries"], []
    for probe in probes(arch) if binaries else ():
        binary = binaries[probe.kernel.label]
        launched = Binary(probe.kernel, "", base64.b64decode(binary["cubin"]), Resources(**binary["resources"]))
        facts = {"probe": probe.name, "offsets": probe.offsets.tolist(), "sources": probe.sources.tolist()}
        cases.append(Case("probe", ProbeInputs(probe), (launched,), packed["predicted"][probe.name], False, facts))
    return cases


def entries_of(case: Case) -> list[dict[str, Any]]:
    """One entry of the result per launch, with the counters that were predicted."""
    entries = []
    for number, binary in enumerate(case.binaries):
        entry = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
        entry |= {"cubin": cubin_name(binary), "resources": asdict(binary.resources), **case.facts}
        entry |= {"launch": number} if len(case.binaries) > 1 else {}
        entries.append(entry | ({"predicted": case.predicted[number]} if case.predicted else {}))
    return entries


def cubin_name(binary: Binary) -> str:
    """Name of a cubin in results, by its content."""
    return hashlib.sha256(binary.cubin).hexdigest()[:16] + ".cubin"
