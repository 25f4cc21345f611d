"""Kernels that are launched for a profiler to watch, with what the CPU machine predicts: made here or
elsewhere, and packed.

    python -m tir_schedules.insight.profile.cases PACK.zip

launches each kernel of a pack that is to be counted once, in order; that is what `profile` runs under Nsight
Compute.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Sequence

from tir_schedules.compiler.sass import copies_under_p0, disassemble
from tir_schedules.errors import BadInput, CheckFailed, TirSchedulesError
from tir_schedules.insight.metrics.metrics import Metrics
from tir_schedules.machines.choice import choose
from tir_schedules.machines.execution import execute
from tir_schedules.model.kernel import Binary
from tir_schedules.model.verify import checks_of
from tir_schedules.subjects.packs import LAUNCH_FIELDS, Pack, load_pack, save_pack
from tir_schedules.subjects.subject import Subject


@dataclass(frozen=True)
class Case:
    """Something to launch.

    family: of its kernels' names. workload: has arguments, prepared and outputs, and a truth where it is
    known what is right.
    binaries: one per launch. predicted: for each launch counters by class of access; None when it is not to
    be counted.
    flawed: shown for what is wrong with it. facts: further keys of its entries in the result.
    copies_under_p0: of each launch, see compiler/sass.py; Nsight Compute misjudges those.
    """

    family: str
    workload: Any
    binaries: tuple[Binary, ...]
    predicted: list[dict[str, Any]] | None
    flawed: bool
    facts: dict[str, Any]
    copies_under_p0: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        return self.facts.get("probe") or f"{self.binaries[0].kernel.label} on {self.workload}"

    @property
    def known(self) -> bool:
        """Whether it is known what is right."""
        return hasattr(self.workload, "truth")


def predictions(launches: Sequence[Metrics]) -> list[dict[str, Any]]:
    """The CPU machine's counters of each launch by class of access, as JSON has them."""
    return [
        {name: asdict(access) for name, access in launch.counters.accesses.items()} for launch in launches
    ]


def packed_case(launches: Sequence[Metrics] | None, flawed: bool = False) -> dict[str, Any]:
    """What a pack says of a subject besides its kernels. launches: None when they are not to be counted."""
    if launches is None:
        return {"flawed": flawed, "predicted": None}
    under_p0 = [copies_under_p0(disassemble(launch.binary)) for launch in launches]
    return {"flawed": flawed, "predicted": predictions(launches), "copies_under_p0": under_p0}


def save_cases(
    subjects: Sequence[Subject],
    cases: Sequence[dict[str, Any]],
    source: dict[str, Any],
    path: Path,
    **more: Any,
) -> None:
    """Write a pack. cases: `packed_case` of each subject. source: where it was made, with "arch". more:
    further parts."""
    save_pack(subjects, {**source, "counters": {"cases": list(cases), **more}}, path)


def load_cases(path: Path) -> tuple[list[Case], dict[str, Any]]:
    """Cases of a pack, and what it says of where it was made. BadInput for a file that is none, and for a
    pack without predictions."""
    loaded = load_pack(path)
    cases, source = cases_of(loaded, path)
    source.pop("counters")
    return cases, source


def cases_of(loaded: Pack, path: Path) -> tuple[list[Case], dict[str, Any]]:
    """The same of a pack that is loaded; the parts it was saved with are still in "counters"."""
    source = dict(loaded.about)
    if not isinstance(source.get("counters"), dict):
        raise BadInput(
            f"{path} has kernels but no predicted counters: name a pack that `tir-schedules profile --pack`"
            " wrote"
        )
    cases = [
        Case(
            subject.family,
            subject.workload,
            subject.binaries,
            facts={"workload": asdict(subject.workload)},
            **case,
        )
        for subject, case in zip(loaded.subjects, source["counters"]["cases"])
    ]
    return cases, source


def verified(machine: Any, cases: Sequence[Case]) -> tuple[list[str], list[dict[str, Any]]]:
    """What is wrong with which case, one line each, and an entry for every launch of every case, which says
    so too."""
    wrong, entries = [], []
    for case in cases:
        try:
            mismatch = mismatch_of(machine, case)
        except CheckFailed as error:
            mismatch = str(error)
        wrong += [f"{case.label}: {mismatch}"] if mismatch else []
        verdict = {"right": not mismatch, "mismatch": mismatch} if case.known else {}
        entries += [entry | verdict for entry in entries_of(case)]
    return wrong, entries


def mismatch_of(machine: Any, case: Case) -> str | None:
    """What is wrong with the outputs of a case, or None."""
    if not case.known:
        execute(machine, case.workload, case.binaries, case.workload.arguments())
        return None
    for check in checks_of(case.workload):
        _, arguments = execute(machine, case.workload, case.binaries, check.arguments())[-1]
        mismatch = check.mismatch(arguments)
        if mismatch:
            return str(mismatch)
    return None


def entries_of(case: Case) -> list[dict[str, Any]]:
    """One entry of the result per launch, with the counters that were predicted."""
    entries = []
    for number, binary in enumerate(case.binaries):
        entry = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
        entry |= {"cubin": cubin_name(binary), "resources": asdict(binary.resources), **case.facts}
        entry |= {"launch": number} if len(case.binaries) > 1 else {}
        entry |= {"predicted": case.predicted[number]} if case.predicted else {}
        entries.append(
            entry | ({"copies_under_p0": case.copies_under_p0[number]} if any(case.copies_under_p0) else {})
        )
    return entries


def cubin_name(binary: Binary) -> str:
    """Name of a cubin in results, by its content."""
    return hashlib.sha256(binary.cubin).hexdigest()[:16] + ".cubin"


def launch_all(machine: Any, cases: Sequence[Case]) -> None:
    """Launch everything, each once."""
    for case in cases:
        execute(machine, case.workload, case.binaries, case.workload.arguments())


def main(path: str) -> int:
    """What the profiler watches."""
    try:
        launch_all(choose("gpu"), [case for case in load_cases(Path(path))[0] if case.predicted])
    except TirSchedulesError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
