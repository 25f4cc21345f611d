"""--tuned of `run` and `bench`: rungs in the configuration that the best record has for exactly a workload
and a device."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterator, Sequence

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.problems import EMIT_SHAPES, Job, Problems, workload_of, workloads_of
from tir_schedules.ladders.registry import find_one
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.numerals import power

if TYPE_CHECKING:
    from tir_schedules.tuning.records.record import Record


@dataclass(frozen=True)
class RecordsFile:
    """A file of records: those of them that are for a place, and the others."""

    path: Path
    records: list[Record]
    others: list[Record]


@dataclass(frozen=True)
class Lookup:
    """What --tuned looks up. sources: in the order they are asked. machine, arch: where kernels are to run.

    On a GPU its own records count; on the CPU machine all for the architecture.
    """

    sources: list[RecordsFile]
    machine: Machine
    arch: str
    say: Callable[[str], None]

    def workloads(self, rung: Rung) -> list[Workload]:
        """Those that there are records of."""
        return list(
            dict.fromkeys(record.problem for source in self.sources for record in self.of(source, rung))
        )

    def of(self, source: RecordsFile, rung: Rung) -> Iterator[Record]:
        """The records of a rung that were timed."""
        return (record for record in source.records if record.rung == rung.base_id and not record.error)

    def rung(self, rung: Rung, workload: Workload) -> Rung:
        """The rung as the best record has it that is believed, and a line that says which; a line, too, for
        each that is refused.

        CheckFailed when all are, BadInput when there is none: it says how to tune.
        """
        from tir_schedules.tuning.measure.validation import validated
        from tir_schedules.tuning.records.record import MEASURED

        refused = None
        for source in self.sources:
            fit = [record for record in self.of(source, rung) if record.workload == asdict(workload)]
            for record in sorted(fit, key=lambda record: (record.kind != MEASURED, record.median)):
                try:
                    found = validated(record, self.machine)
                except CheckFailed as error:
                    refused = error
                    self.say(f"not used: {error}")
                    continue
                self.say(f"{rung.base_id} on {workload}: {origin(record, source.path)}")
                return found
        if refused:
            raise CheckFailed(f"no record of {rung.base_id} on {workload} holds any more: tune again")
        raise BadInput(f"{self.none_of(rung)} on {workload}: {advice(rung, workload, self.arch)}")

    def none_of(self, rung: Rung) -> str:
        place = self.machine.device_name if self.machine.name == "gpu" else self.arch
        files = " and ".join(str(source.path) for source in self.sources)
        others = {
            f"{r.device} ({r.arch})"
            for source in self.sources
            for r in source.others
            if r.rung == rung.base_id
        }
        there = f", only for {', '.join(sorted(others))}" if others else ""
        return f"no record of {rung.base_id} for {place}" + (f" in {files}" if files else "") + there


def origin(record: Record, path: Path) -> str:
    """Which record it is."""
    return (
        f"{record.kind} {record.median * 1e6:.4g} us on {record.device}, {record.date[:10]}, trial"
        f" {record.trial} of {path}"
    )


def advice(rung: Rung, workload: Workload, arch: str) -> str:
    """The command that makes a record."""
    ladder, one = ladder_of(rung.family), len(workload.shape) == 1
    size = f"--{ladder.option} {power(*workload.shape) if one else ','.join(map(str, workload.shape))}"
    chosen = [name for name, values in ladder.kinds_of(rung).items() if len(values) > 1]
    kinds = (f"--{ladder.kind_options[name]} {getattr(workload, name)}" for name in chosen)
    return f"`tir-schedules tune {rung.typed} {' '.join((size, *kinds))} --arch {arch}` makes them"


def open_tuned(file: str, machine: Machine, arch: str, say: Callable[[str], None]) -> Lookup:
    """What --tuned FILE asks for; without one: your own records, then those that are shipped. BadInput for a
    file that is not there."""
    from tir_schedules.tuning.records.database import SHIPPED, Database, latest, own_records, shipped
    from tir_schedules.tuning.records.record import device_of

    gpu = machine.name == "gpu"
    if file:
        if not Path(file).exists():
            raise BadInput(f"there is no file {file}; name one that `tune --records` wrote")
        paths = [Path(file)]
    else:
        paths = [own_records(), *([shipped(device_of(machine))] if gpu else sorted(SHIPPED.glob("*.jsonl")))]
    sources = []
    for path in filter(Path.exists, paths):
        parts: dict[bool, list[Record]] = {True: [], False: []}
        for record in latest(Database(path).records()):
            here = record.device == device_of(machine) if gpu else record.arch == arch_of(record, arch)
            parts[here].append(record)
        sources.append(RecordsFile(path, parts[True], parts[False]))
    return Lookup(sources, machine, arch, say)


def arch_of(record: Record, arch: str) -> str:
    """What the rung of a record is compiled for where others are for `arch`, if that can be known."""
    try:
        return find_one(record.rung, "--tuned").arch_for(arch)
    except BadInput:
        return arch


def tuned_jobs(
    rungs: Sequence[Rung],
    problems: Problems,
    file: str,
    machine: Machine,
    arch: str,
    beside: bool = False,
    whole: bool = True,
) -> list[Job]:
    """Tuned rungs and their workloads: those of problems with a shape, else all that there are records of.

    file: of records, see `open_tuned`. beside: each after the rung as it is without --tuned. whole: otherwise
    small workloads that take the same paths. BadInput for a rung that cannot be tuned or has no record.
    """
    from tir_schedules.console import print_error
    from tir_schedules.tuning.building.small_workload import small
    from tir_schedules.tuning.space.tunable import space_of

    for rung in rungs:
        if rung.variant:
            raise BadInput(f"--tuned chooses the configuration: name {rung.base_id}, not {rung.id}")
        space_of(rung.id)
    lookup = open_tuned(file, machine, arch, print_error)
    jobs = []
    for rung in rungs:
        asked = problems[rung.family]
        if any(problem.shape for problem in asked):
            workloads = [workload for problem in asked for workload in workloads_of(rung, problem)]
        else:
            known = lookup.workloads(rung)
            workloads = [workload for workload in known if any(p.includes(workload) for p in asked)]
        if not workloads:
            example = workload_of(rung, asked[0], EMIT_SHAPES)
            raise BadInput(f"{lookup.none_of(rung)}: {advice(rung, example, arch)}")
        for workload in workloads:
            jobs += [(rung, workload)] if beside else []
            found = lookup.rung(rung, workload)
            jobs.append((found, workload) if whole else small(found, workload))
    return jobs
