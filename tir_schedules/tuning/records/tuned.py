"""--tuned of `run` and `bench`: rungs in the configuration that the best record has for exactly a workload
and a device."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from tir_schedules.cli.problems import EMIT_LENGTH, OPTIONS, power
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.model.rung import Rung

if TYPE_CHECKING:
    from tir_schedules.tuning.records.records import Record

HELP = (
    "in the configuration of the best record of exactly this shape and GPU, in FILE, else in your own"
    " records, else in those shipped"
)


def add_option(verb: Any) -> None:
    """--tuned [FILE], empty without a FILE."""
    verb.add_argument("--tuned", metavar="FILE", nargs="?", const="", help=HELP)


def own_records() -> Path:
    """Where `tune` keeps records unless told otherwise."""
    import platformdirs

    return Path(platformdirs.user_data_dir("tir_schedules")) / "records.jsonl"


@dataclass(frozen=True)
class Source:
    """A file of records: those of them that are for a place, and the others."""

    path: Path
    records: list["Record"]
    others: list["Record"]


@dataclass(frozen=True)
class Lookup:
    """What --tuned looks up. sources: in the order they are asked. machine, arch: where kernels are to run.

    On a GPU its own records count; on the CPU machine all for the architecture.
    """

    sources: list[Source]
    machine: Any
    arch: str
    say: Callable[[str], None]

    def workloads(self, rung: Rung) -> list[Any]:
        """Those that there are records of."""
        return list(
            dict.fromkeys(record.problem for source in self.sources for record in self.of(source, rung))
        )

    def of(self, source: Source, rung: Rung) -> Iterator["Record"]:
        """The records of a rung that were timed."""
        return (record for record in source.records if record.rung == rung.base_id and not record.error)

    def rung(self, rung: Rung, workload: Any) -> Rung:
        """The rung as the best record has it that is believed, and a line that says which; a line, too, for
        each that is refused.

        CheckFailed when all are, BadInput when there is none: it says how to tune.
        """
        from tir_schedules.tuning.records.records import MEASURED, believed

        refused = None
        for source in self.sources:
            fit = [record for record in self.of(source, rung) if record.workload == asdict(workload)]
            for record in sorted(fit, key=lambda record: (record.kind != MEASURED, record.median)):
                try:
                    belief = believed(record, self.machine)
                except CheckFailed as error:
                    refused = error
                    self.say(f"not used: {error}")
                    continue
                self.say(f"{rung.base_id} on {workload}: {origin(record, source.path)}")
                return belief.rung
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


def origin(record: "Record", path: Path) -> str:
    """Which record it is."""
    return (
        f"{record.kind} {record.median * 1e6:.4g} us on {record.device}, {record.date[:10]}, trial"
        f" {record.trial} of {path}"
    )


def advice(rung: Rung, workload: Any, arch: str) -> str:
    """The command that makes a record."""
    known = asdict(workload)
    values = known | {"mnk": ",".join(str(known.get(name)) for name in "mnk"), "n": power(workload.n)}
    shape = " ".join(f"--{name} {values[name]}" for name in OPTIONS[rung.family])
    return f"`tir-schedules tune {rung.base_id} {shape} --arch {arch}` makes them"


def open_tuned(file: str, machine: Any, arch: str, say: Callable[[str], None]) -> Lookup:
    """What --tuned FILE asks for; without one: your own records, then those that are shipped. BadInput for a
    file that is not there."""
    from tir_schedules.tuning.records.records import SHIPPED, Database, device_of, latest, shipped

    gpu = machine.name == "gpu"
    if file:
        if not Path(file).exists():
            raise BadInput(f"there is no file {file}; name one that `tune --records` wrote")
        paths = [Path(file)]
    else:
        paths = [own_records(), *([shipped(device_of(machine))] if gpu else sorted(SHIPPED.glob("*.jsonl")))]
    sources = []
    for path in filter(Path.exists, paths):
        parts: dict[bool, list["Record"]] = {True: [], False: []}
        database = Database(path)
        if database.torn:
            say(database.torn)
        for record in latest(database.records()):
            parts[record.device == device_of(machine) if gpu else record.arch == arch].append(record)
        sources.append(Source(path, parts[True], parts[False]))
    return Lookup(sources, machine, arch, say)


def tuned_jobs(
    rungs: Sequence[Rung],
    options: Any,
    machine: Any,
    arch: str,
    workloads_of: Callable[[Rung, Any], list[Any]],
    beside: bool = False,
    whole: bool = True,
) -> list[tuple[Rung, Any]]:
    """Tuned rungs and their workloads: those the options ask for, else all that there are records of.

    workloads_of: as in problems. beside: each after the rung as it is without --tuned. whole: otherwise small
    workloads that take the same paths. BadInput for a rung that cannot be tuned or has no record.
    """
    from tir_schedules.console import print_error
    from tir_schedules.tuning.space.small import small
    from tir_schedules.tuning.space.spaces import space_of

    for rung in rungs:
        if rung.variant:
            raise BadInput(f"--tuned chooses the configuration: name {rung.base_id}, not {rung.id}")
        space_of(rung.id)
    lookup = open_tuned(options.tuned, machine, arch, print_error)
    jobs = []
    for rung in rungs:
        asked = bool(getattr(options, OPTIONS[rung.family][0]) or getattr(options, "sizes", None))
        recorded = lookup.workloads(rung)
        workloads = (
            workloads_of(rung, options) if asked else [w for w in recorded if of_kind(rung, w, options)]
        )
        if not workloads:
            first, *_ = workloads_of(
                rung, Namespace(**{**vars(options), "mnk": [(1024, 1024, 1024)], "n": [EMIT_LENGTH]})
            )
            raise BadInput(f"{lookup.none_of(rung)}: {advice(rung, first, arch)}")
        for workload in workloads:
            jobs += [(rung, workload)] if beside else []
            found = lookup.rung(rung, workload)
            jobs.append((found, workload) if whole else small(found, workload))
    return jobs


def of_kind(rung: Rung, workload: Any, options: Any) -> bool:
    """Whether a workload is what the options ask for that say more of the rung's family than a size, if any
    do."""
    return all(getattr(options, name) in (None, getattr(workload, name)) for name in OPTIONS[rung.family][1:])
