"""Kernels for a profiler to watch, with what the CPU machine predicts, in packs.

    python -m tir_schedules.insight.profile.cases PACK.zip

launches once, in order, each kernel of a pack that is to be counted: `profile` runs it under Nsight Compute.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Mapping, Sequence, cast

from tir_schedules.compiler.sass import copies_under_p0, disassemble
from tir_schedules.errors import BadInput, CheckFailed, TirSchedulesError
from tir_schedules.files import Json
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.insight.profile.nsight import Entry
from tir_schedules.machines.choice import choose
from tir_schedules.machines.execution import execute
from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Machine
from tir_schedules.model.verify import checks_of
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.packs import LAUNCH_FIELDS, Pack, load_pack, save_pack
from tir_schedules.subjects.subject import Subject

ACQUIRING = "ld.acquire"
"""How a block reads what it waits for."""

PECULIARITIES = ("copies_under_p0", "waits")
"""Fields of `Case` that entries of results have where they are not 0."""

Predicted = dict[str, dict[str, int]]
"""Class of access -> its counters, as JSON has them."""


@dataclass(frozen=True)
class Case:
    """Something to launch.

    family: of its kernels' names. workload: a probe's is not a whole Workload, it has no truth. binaries: one
    per launch. predicted: counters of each launch by class of access; None when it is not to be counted.
    flawed: wrong by intent. facts: further keys of its entries in the result. copies_under_p0: of each
    launch, see compiler/sass.py; Nsight Compute misjudges those. waits: of each launch, whether its blocks
    wait for one another.
    """

    family: str
    workload: Workload
    binaries: tuple[Binary, ...]
    predicted: Sequence[Predicted] | None
    flawed: bool
    facts: Json
    copies_under_p0: Sequence[int] = ()
    waits: Sequence[int] = ()

    @property
    def label(self) -> str:
        return self.facts.get("probe") or f"{self.binaries[0].kernel.label} on {self.workload}"

    @property
    def known(self) -> bool:
        """Whether the right outputs are known."""
        return hasattr(self.workload, "truth")


def predictions(launches: Sequence[Metrics]) -> list[Predicted]:
    """The CPU machine's counters of each launch."""
    return [
        {name: asdict(access) for name, access in launch.counters.accesses.items()} for launch in launches
    ]


def packed_case(launches: Sequence[Metrics] | None, flawed: bool = False) -> dict[str, object]:
    """What a pack has of a subject besides its kernels. launches: None when they are not to be counted."""
    if launches is None:
        return {"flawed": flawed, "predicted": None}
    found = [peculiarities(launch.binary) for launch in launches]
    lists = {name: [one[name] for one in found] for name in PECULIARITIES}
    return {"flawed": flawed, "predicted": predictions(launches), **lists}


def peculiarities(binary: Binary) -> dict[str, int]:
    """What lets a profiler count otherwise than the CPU machine, see `Case`."""
    under_p0 = copies_under_p0(disassemble(binary)) if binary.cubin else 0
    return {"copies_under_p0": under_p0, "waits": int(ACQUIRING in binary.ptx)}


def save_cases(
    subjects: Sequence[Subject],
    cases: Sequence[Mapping[str, object]],
    source: Mapping[str, object],
    path: Path,
    **more: object,
) -> None:
    """Write a pack. cases: `packed_case` of each subject. source: where it was made, with "arch"."""
    save_pack(subjects, {**source, "counters": {"cases": list(cases), **more}}, path)


def load_cases(path: Path) -> tuple[list[Case], Json]:
    """Cases of a pack, and where it was made. BadInput for a file that is not a pack, or has no
    predictions."""
    loaded = load_pack(path)
    cases, source = cases_of(loaded, path)
    source.pop("counters")
    return cases, source


def cases_of(loaded: Pack, path: Path) -> tuple[list[Case], Json]:
    """The same of a loaded pack, whose further parts are still in "counters"."""
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


def verify_cases(machine: Machine, cases: Sequence[Case]) -> tuple[list[str], list[Entry]]:
    """A line for each wrong case, and an entry for every launch of every case, with its verdict."""
    wrong: list[str] = []
    entries: list[Entry] = []
    for case in cases:
        try:
            mismatch = mismatch_of(machine, case)
        except CheckFailed as error:
            mismatch = str(error)
        wrong += [f"{case.label}: {mismatch}"] if mismatch else []
        verdict = {"right": not mismatch, "mismatch": mismatch} if case.known else {}
        entries += [cast(Entry, {**entry, **verdict}) for entry in entries_of(case)]
    return wrong, entries


def mismatch_of(machine: Machine, case: Case) -> str | None:
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


def entries_of(case: Case) -> list[Entry]:
    """One entry of the result per launch, with the predicted counters."""
    entries: list[Entry] = []
    for number, binary in enumerate(case.binaries):
        facts = {**case.facts, "launch": number} if len(case.binaries) > 1 else dict(case.facts)
        facts |= {"predicted": case.predicted[number]} if case.predicted else {}
        facts |= {name: given[number] for name in PECULIARITIES if any(given := getattr(case, name))}
        entries.append(entry_of(binary, facts))
    return entries


def entry_of(binary: Binary, facts: Mapping[str, object]) -> Entry:
    """facts: what is known besides the kernel and its launch."""
    launch = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
    kernel = {"cubin": cubin_name(binary), "resources": asdict(binary.resources)}
    return cast(Entry, {**launch, **kernel, **facts})


def cubin_name(binary: Binary) -> str:
    """Name of a cubin in results, which follows from its content."""
    return hashlib.sha256(binary.cubin).hexdigest()[:16] + ".cubin"


def launch_all(machine: Machine, cases: Sequence[Case]) -> None:
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
