"""What a search found: a record of every candidate, the file that keeps them, and whether a record may be
believed today.

A file is trusted to be what some search wrote, never to be true of this computer. So a record is refused when
what it is about has
changed: the kernel's source, the compilers, the GPU. And before its kernel is used it is built, verified and
timed anew.
"""

from __future__ import annotations

import hashlib
import math
import re
import statistics
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable

from tir_schedules.console import print_error
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import fault_of
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.model.rung import Rung
from tir_schedules.provenance import software_versions
from tir_schedules.subjects.results import nvcc_version
from tir_schedules.tuning.records import journal
from tir_schedules.tuning.space.small import small
from tir_schedules.workloads import workload_class

if TYPE_CHECKING:
    from tir_schedules.model.kernel import Kernel
    from tir_schedules.verdicts import Outcome

MEASURED, PREDICTED = "measured", "predicted"
CPU_DEVICE = "CPU machine"
SHIPPED = Path(__file__).parent / "shipped"
DECISIVE = {MEASURED: ("apache-tvm", "nvcc"), PREDICTED: ("apache-tvm", "nvcc", "tir_schedules")}
"""Kind -> what must have today the version it had: what makes the kernel, and for a prediction what makes the
prediction."""
AGREEMENT = 0.1
"""How far, as a share, a time measured anew may be from the one recorded."""


@dataclass(frozen=True)
class Record:
    """One candidate that was tried.

    rung: id without a variant, "sgemm/pipelined". point: fields of the rung's Config and their values.
    workload: its fields.
    arch: "sm_90". device: "NVIDIA H200", or CPU_DEVICE. kind: MEASURED or PREDICTED. seconds: every sample,
    none where the candidate was refused. error: why it was refused, empty when it was built, verified and
    timed. source: `source_hash` of the emitted CUDA, empty where there was none. versions, revision: of
    software and of this project. date: UTC, ISO 8601. trial: from 0, in the order of the search.
    metaschedule: TVM's TuningRecord.as_json. Values are those of JSON. ValueError where they are not what is
    said here.
    """

    rung: str
    point: dict[str, Any]
    workload: dict[str, Any]
    family: str
    arch: str
    device: str
    kind: str
    seconds: tuple[float, ...]
    error: str
    source: str
    versions: dict[str, str]
    revision: str
    date: str
    trial: int
    metaschedule: Any = None

    def __post_init__(self) -> None:
        for name, kinds in FIELD_KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise ValueError(f"its {name} is {getattr(self, name)!r}")
        object.__setattr__(self, "seconds", tuple(self.seconds))
        if self.family not in FAMILIES or self.rung.split("/")[0] != self.family:
            raise ValueError(f"its rung is {self.rung!r} and its family {self.family!r}")
        if self.kind not in DECISIVE:
            raise ValueError(f"its kind is {self.kind!r}, not {MEASURED} or {PREDICTED}")
        if not all(isinstance(second, (int, float)) and 0 < second < math.inf for second in self.seconds):
            raise ValueError(f"its seconds are {list(self.seconds)}, not positive numbers")
        if bool(self.seconds) == bool(self.error):
            raise ValueError("it must have either seconds or an error")
        problem_of(self.family, self.workload)

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.point.items())
        return f"trial {self.trial} of {self.rung} on {self.problem} ({values})"

    @property
    def task(self) -> dict[str, Any]:
        """What records of one search have in common, as task_of has it."""
        return {name: getattr(self, name) for name in TASK}

    @property
    def problem(self) -> Any:
        """The workload itself, such as a Gemm."""
        return problem_of(self.family, self.workload)

    @property
    def median(self) -> float:
        """Seconds; infinite for a refused candidate, which so is the slowest."""
        return statistics.median(self.seconds) if self.seconds else math.inf


FIELD_KINDS = {
    **dict.fromkeys(("rung", "family", "arch", "device", "kind", "error", "source", "revision", "date"), str),
    **dict.fromkeys(("point", "workload", "versions"), dict), "seconds": (list, tuple), "trial": int,
}  # fmt: skip


TASK = ("rung", "workload", "family", "arch", "device", "kind")


def task_of(rung: Rung, workload: Any, arch: str, device: str, kind: str) -> dict[str, Any]:
    """What records of one search have in common."""
    return dict(zip(TASK, (rung.base_id, asdict(workload), rung.family, arch, device, kind)))


def problem_of(family: str, workload: dict[str, Any]) -> Any:
    """The workload that has these fields. ValueError when there is none."""
    try:
        return workload_class(family)(**workload)
    except (TypeError, BadInput) as error:
        raise ValueError(f"its workload is {workload}: {error}") from None


class Database:
    """The records in a file, one JSON object per line (see journal.py). Several processes may append to it at
    the same time.

    Opening reads all of it and changes nothing. torn: what is said of a last line that a killed writer left
    unfinished; empty when none is. A file that does not exist is an empty database; the first record makes
    it. say: told what `append` moved out of the way. BadInput for a path that cannot be one, or a file of
    another kind; Damaged, naming the line and why, for a line that is no record, or was changed.
    """

    def __init__(self, path: Path, say: Callable[[str], None] = print_error) -> None:
        self.path, self.say, self.torn = Path(path), say, ""
        self.records()

    def append(self, record: Record) -> None:
        """Add a record; it is on the disk when this returns."""
        done = journal.append(self.path, asdict(record))
        if done:
            self.say(done)

    def records(self) -> list[Record]:
        """All records that are in the file now, in the order they were added."""
        found, self.torn = journal.load(self.path)
        return [self._record(number, entry) for number, entry in enumerate(found, 1)]

    def _record(self, number: int, entry: dict[str, Any]) -> Record:
        from tir_schedules.subjects import schemas

        try:
            names = {field.name for field in fields(Record)}
            if entry.keys() != names:
                raise ValueError(
                    f"it is no record: {', '.join(sorted(entry.keys() ^ names))} is missing or too much"
                )
            record = Record(**entry)
            fault = fault_of(entry, schemas.Record)
            if fault:
                raise ValueError(fault)
            return record
        except ValueError as error:
            raise journal.bad_line(self.path, number, error) from None


def latest(records: Iterable[Record]) -> list[Record]:
    """Without those that a later one takes the place of: the fastest of a search are timed anew at its
    end."""
    found: dict[str, Record] = {}
    for record in records:
        found[journal.canonical([record.task, record.point])] = record
    return list(found.values())


def best(records: Iterable[Record], **where: Any) -> Record | None:
    """The one with the least median time among those whose fields have the values asked for; None when all
    were refused.

    Times are not compared with predictions: as soon as one is measured, only what is measured counts.
    """
    timed = (record for record in latest(records) if not record.error)
    fit = [record for record in timed if all(getattr(record, name) == value for name, value in where.items())]
    measured = [record for record in fit if record.kind == MEASURED]
    return min(measured or fit, key=lambda record: record.median, default=None)


def shipped(device: str) -> Path:
    """The file of records that come with the package for a GPU, "NVIDIA H200", whether there is one or
    not."""
    return SHIPPED / f"{re.sub(r'[^a-z0-9]+', '_', device.lower()).strip('_')}.jsonl"


def shipped_records(device: str) -> list[Record]:
    """What is in it; nothing for a GPU without."""
    path = shipped(device)
    return Database(path).records() if path.exists() else []


def source_hash(*sources: str) -> str:
    """SHA-256, in hex, of CUDA source, that of each launch."""
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def versions_now() -> dict[str, str]:
    """Versions of software as records have them."""
    return {**software_versions(), **nvcc_version()}


def device_of(machine: Any = None) -> str:
    """How records name what a machine runs on: the GPU's own name, or CPU_DEVICE."""
    return machine.device_name if machine is not None and machine.name == "gpu" else CPU_DEVICE


@dataclass(frozen=True)
class Rebuilt:
    """The rung in the configuration of a record, and the kernels that its schedule emits today, one for each
    launch."""

    rung: Rung
    kernels: tuple["Kernel", ...]


def rebuilt(record: Record, device: str | None = None) -> Rebuilt:
    """What a record is about, made again. device: where it is to be used, not compared when None.

    CheckFailed with the reason when it was refused, or is stale: made on another device, with other versions,
    of a point that the space does not have any more, or of a schedule that emits something else now.
    """
    from tir_schedules.compiler.lower import lower
    from tir_schedules.run import launches
    from tir_schedules.tuning.space.spaces import space_of

    if record.error:
        raise CheckFailed(f"{record} was refused: {record.error}")
    reason = changed(record, device)
    if reason:
        raise stale(record, reason)
    try:
        space = space_of(record.rung)
        reason = space.refusal(record.point, record.problem, record.arch)
        if reason:
            raise stale(record, reason)
        rung = space.rung_at(record.point)
        kernels = tuple(launches(lower, rung, record.problem, record.arch))
    except BadInput as error:
        raise stale(record, error) from None
    now = source_hash(*(kernel.source for kernel in kernels))
    if now != record.source:
        raise stale(
            record,
            f"its schedule emits other CUDA today (SHA-256 {now[:12]}, it had"
            f" {record.source[:12] or 'none'})",
        )
    return Rebuilt(rung, kernels)


def changed(record: Record, device: str | None) -> str:
    """The device or the version that is not the record's any more; empty when all are."""
    if device is not None and record.device != device:
        return f"it was {record.kind} on {record.device}, this is {device}"
    today = versions_now()
    for name in DECISIVE[record.kind]:
        was, now = record.versions.get(name, "unknown"), today.get(name, "missing")
        if was != now:
            return f"{name} was {was}, it is {now} here"
    return ""


def stale(record: Record, reason: Any) -> CheckFailed:
    return CheckFailed(f"{record} is stale: {reason}; tune again")


def why_stale(record: Record, device: str | None = None) -> str:
    """Why a record does not hold here and now, in one line; empty when it does. Emits the kernel, but neither
    compiles nor runs it."""
    try:
        rebuilt(record, device)
    except CheckFailed as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Belief:
    """A record that was found to hold. rung: in its configuration. outcome: of its kernel on `workload`, a
    small one, on the CPU machine.

    seconds: samples of its time on the record's own workload, measured anew; none without a GPU.
    """

    record: Record
    rung: Rung
    workload: Any
    outcome: "Outcome"
    seconds: tuple[float, ...] = ()


def believed(record: Record, machine: Any = None) -> Belief:
    """Build a record's kernel anew, verify it on the CPU machine on a small workload, and time it again on a
    GPU.

    machine: where it is to be used; without a GPU nothing is timed. CheckFailed with the reason when it does
    not hold: it is stale (see `rebuilt`), computes the wrong thing, or its time differs by more than
    AGREEMENT.
    """
    from tir_schedules.compiler.lower import lower
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.run import launches, outcome_of

    gpu = machine if machine is not None and machine.name == "gpu" else None
    again = rebuilt(record, device_of(gpu) if gpu else None)
    reduced, workload = small(again.rung, record.problem)
    outcome = outcome_of(launches(lower, reduced, workload, record.arch), workload, CpuMachine())
    if not outcome.ok:
        raise CheckFailed(f"{record} is wrong on {workload}: {outcome.faults[0]}")
    belief = Belief(record, again.rung, workload, outcome)
    return replace(belief, seconds=timed_again(record, again, gpu)) if gpu else belief


def timed_again(record: Record, again: Rebuilt, machine: Any) -> tuple[float, ...]:
    """Samples in seconds, from the benchmark. CheckFailed when it refuses the kernel, or the time is not the
    recorded one."""
    from tir_schedules.bench.sampling import Policy
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.tuning.measure import running

    subject = running.subject_of(
        again.rung, record.problem, [compile_kernel(kernel) for kernel in again.kernels]
    )
    try:
        seconds = running.timed(subject, machine, Policy())
    except CheckFailed as error:
        raise CheckFailed(f"{record}: {error}") from None
    now = statistics.median(seconds)
    if abs(now / record.median - 1) > AGREEMENT:
        raise CheckFailed(
            f"{record} takes {now * 1e6:.4g} us here, not {record.median * 1e6:.4g} us as recorded; tune"
            " again"
        )
    return seconds
