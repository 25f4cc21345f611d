"""Times subjects on a GPU, all of a workload in turns, and only what computes the right thing before and
after; beside them, what the GPU can do at best.

A sample is a CUDA graph of several launches over rotating buffers, between two events, while the same graph
just before it keeps the GPU busy until all is enqueued. Each sample follows a pause: without it a GPU reaches
its power limit and lowers its clock, by a fifth on an H200, and subjects would be compared at different
clocks.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any, Callable, Collection, Sequence, TypeVar

from tir_schedules.bench.binding import CACHES, BoundSubject, Vendor, bind, judged_by, timing_buffers, verify
from tir_schedules.bench.clocks import Cycles, Monitor, NoMonitor, open_monitor, summary
from tir_schedules.bench.sampling import (
    FEWEST,
    LONG_S,
    Policy,
    Trial,
    microseconds,
    sample_in_turns,
    settle,
    spread,
)
from tir_schedules.bench.vendor import Vendors
from tir_schedules.errors import TirSchedulesError
from tir_schedules.files import Json
from tir_schedules.machines.gpu import Call, GpuMachine
from tir_schedules.model.gpus import known_sm
from tir_schedules.model.verify import Check
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Row, Subject, rate_of

__all__ = ["Measurement", "Policy", "measure"]

BEFORE, AFTER = 0, 1
"""First seeds of the inputs that subjects are verified with."""

MOST_LAUNCHES = 4096


T = TypeVar("T")


@dataclass
class Measurement:
    """rows: of subjects that were timed. refused: of those that do not verify or do not run. limits: of the
    GPU. device: its facts. notes: what else must be known."""

    rows: list[Json] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)
    limits: list[Json] = field(default_factory=list)
    device: Json = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def measure(
    machine: GpuMachine,
    subjects: Sequence[Subject],
    policy: Policy = Policy(),
    progress: Callable[[str], None] = lambda what: None,
    cub: bytes | None = None,
    vendors: Vendor | None = None,
    monitor: Monitor | NoMonitor | None = None,
) -> Measurement:
    """Verify, time and verify again every subject; nothing is timed that does not verify.

    machine: a GpuMachine. progress: called with a line for each step. cub: the library that vendor.build_cub
    made; without it, it is built here when needed. vendors, monitor: in place of the libraries and of NVML.
    """
    vendors, monitor = vendors or Vendors(machine, cub), monitor or open_monitor(machine.bus_id)
    bench = Bench(machine, policy, progress, vendors, monitor, Cycles(machine))
    found = Measurement(device=machine.describe())
    progress("copy bandwidth")
    with machine.explaining("copy bandwidth"):
        found.limits.append(copy_bandwidth(machine, policy))
    machine.free_memory()
    for group in group_by_workload(subjects):
        rows, refused = bench.measure_workload(group)
        found.rows += rows
        found.refused += refused
    found.device |= bench.vendors.versions()
    found.notes += bench.vendors.notes
    clocks = [clock for row in found.rows for clock in row.get("sm_mhz", ())]
    peak = fp32_peak(found.device, max(clocks, default=None))
    found.limits += [peak] if peak else []
    return found


def group_by_workload(subjects: Sequence[Subject]) -> list[list[Subject]]:
    """Subjects of one workload together, workloads in the order they are first met."""
    groups: dict[tuple[str, Workload], list[Subject]] = {}
    for subject in subjects:
        groups.setdefault((subject.family, subject.workload), []).append(subject)
    return list(groups.values())


@dataclass
class Bench:
    """What measuring takes. monitor: reads clocks (see clocks.Monitor). cycles: counts them."""

    machine: GpuMachine
    policy: Policy
    progress: Callable[[str], None]
    vendors: Vendor
    monitor: Monitor | NoMonitor
    cycles: Cycles

    def measure_workload(self, subjects: Sequence[Subject]) -> tuple[list[Json], list[Json]]:
        """Rows and refused rows of subjects that share a workload."""
        self.name = f"{subjects[0].family} {subjects[0].workload}"
        self.choice = Choice()
        self.choice.subjects = [each for subject in subjects for each in self.candidates(subject)]
        checked = self.verify_subjects(list(self.choice.subjects), BEFORE, "verifying")
        trials = self.time_subjects(checked)
        again = self.verify_subjects([trial.subject for trial in trials], AFTER, "verifying again")
        rows = [
            row_of(trial) | self.choice.detail(trial.subject) for trial in trials if trial.subject in again
        ]
        return rows, self.choice.refused_rows(again)

    def candidates(self, subject: Subject) -> list[Subject]:
        """A subject, or each candidate of a library that leaves the choice to its callers."""
        return self.attempt([subject], lambda: self.vendors.candidates(subject)) or []

    def verify_subjects(self, subjects: list[Subject], seed: int, what: str) -> dict[Subject, float]:
        """The subjects that compute the right thing with the inputs of every check, and the seconds each
        took."""
        seconds = dict.fromkeys(subjects, 0.0)
        for kind, number in subjects[0].workload.draws(seed) if subjects else ():
            self.machine.free_memory()
            left = list(seconds)
            workload, xp = subjects[0].workload, self.machine.xp
            check = self.attempt(left, lambda: Check.of(workload, kind, number, xp)) if left else None
            for subject in left:
                self.progress(f"{self.name}: {what} {subject.label} with {kind} inputs")
                took = check and self.check_subject(subject, check)
                if took is None:
                    del seconds[subject]
                else:
                    seconds[subject] = took
            check = None
        return seconds

    def check_subject(self, subject: Subject, check: Check) -> float | None:
        """The seconds a subject took, 0 if the check is not for it; None where it is refused."""
        own = judged_by(subject, check)
        if own is None:
            return 0.0
        return self.attempt([subject], lambda: verify(self.machine, self.vendors, subject, own))

    def time_subjects(self, checked: dict[Subject, float]) -> list[Trial]:
        """Trials of the subjects, with all their samples. They no longer hold memory of the GPU."""
        subjects = list(checked)
        self.machine.free_memory()
        if not subjects:
            return []
        buffers = self.attempt(subjects, lambda: timing_buffers(self.machine, subjects[0].workload)) or []
        trials = []
        for subject in subjects if buffers else ():
            trial = self.attempt([subject], lambda: self.prepare_trial(subject, buffers, checked[subject]))
            trials += [trial] if trial else []
        self.progress(f"{self.name}: timing")
        trials = self.choice.fastest(trials, self.sample)
        settle(trials, self.policy, self.sample)
        sample_in_turns(trials, self.policy, self.sample)
        if self.policy.cold:
            self.progress(f"{self.name}: timing single launches")
            self.sample_single(trials)
        for trial in trials:
            trial.let_go()
        return [trial for trial in trials if not trial.failed]

    def prepare_trial(self, subject: Subject, buffers: list[Arguments], once: float) -> Trial:
        """A trial of enough launches to fill a sample. once: seconds of one, loading included."""
        bound = [bind(self.machine, self.vendors, subject, arguments) for arguments in buffers]
        if once < 10 * LONG_S:
            once = min(self.machine.seconds(one.enqueue) for one in bound[:2])
        if once >= LONG_S:
            return Trial(subject, bound[0].enqueue, once=once, kept=bound, overlaps=bound[0].overlaps)
        graph, launches = None, 0
        # The first guess of what a launch takes includes waiting.
        while graph is None or self.launches(once, len(bound)) > 1.25 * launches:
            launches = self.launches(once, len(bound))
            graph = self.machine.capture(rotate_buffers(bound, launches))
            once = self.machine.seconds(graph, before=graph) / launches
        return Trial(subject, graph, launches, once, kept=bound, overlaps=bound[0].overlaps)

    def launches(self, once: float, sets: int) -> int:
        """Launches that fill a sample, or use every set of buffers where that is more and does not take
        long."""
        filled = math.ceil(self.policy.sample_ms / 1000 / max(once, 1e-7))
        return min(MOST_LAUNCHES, max(filled, sets if once * sets < LONG_S else 1))

    def time_once(self, trial: Trial) -> float:
        """Seconds of one launch."""
        time.sleep(self.policy.pause)
        before = None if trial.long else trial.call
        seconds = self.machine.seconds(
            trial.call, before, lambda: trial.readings.append(self.monitor.read()), self.cycles.points
        )
        clock = self.cycles.mhz()
        trial.clocks += [clock] if clock else []
        trial.spent += self.policy.pause + seconds * (2 if before else 1)
        return seconds / trial.launches

    def sample(self, trial: Trial) -> None:
        """Add a sample to a trial, or refuse its subject."""
        seconds = self.attempt([trial.subject], lambda: self.time_once(trial))
        if seconds is None:
            trial.failed = True
        else:
            trial.samples.append(seconds)

    def sample_single(self, trials: Sequence[Trial]) -> None:
        """Let every trial take samples of single launches, in turns."""
        with self.machine.explaining(self.name):
            cold = Cold(self.machine)
        for trial in [*trials] * SINGLE_SAMPLES:
            if not trial.failed:
                trial.failed = not self.attempt([trial.subject], lambda: cold.take(trial))

    def attempt(self, subjects: Sequence[Subject], action: Callable[[], T]) -> T | None:
        """What the action returns; None when it fails, for which the subjects are refused."""
        name = subjects[0].label if len(subjects) == 1 else self.name
        try:
            with self.machine.explaining(name):
                return action()
        except TirSchedulesError as error:
            self.choice.refused |= dict.fromkeys(subjects, strip_name(str(error), name))
            return None


def rotate_buffers(bound: Sequence[BoundSubject], launches: int) -> Call:
    """Enqueues `launches` of them, one set of buffers after another."""

    def enqueue(stream: Any) -> None:
        for one in islice(cycle(bound), launches):
            one.enqueue(stream)

    return enqueue


def strip_name(text: str, name: str) -> str:
    """A message without the name in front that its row has anyway."""
    return text.removeprefix(f"{name}: ")


def row_of(trial: Trial) -> Json:
    """A trial as results have it."""
    subject, workload = trial.subject, trial.subject.workload
    samples = microseconds(trial.samples)
    median = statistics.median(samples)
    rate, unit = rate_of(subject.family, workload, median)
    return {
        **subject.identity(),
        "samples_us": samples,
        "median_us": round(median, 3),
        "spread": round(spread(samples), 5),
        "rate": float(f"{rate:.5g}"),
        "unit": unit,
        "launches_per_sample": trial.launches,
        **{f"{what}_us": microseconds(seconds) for what, seconds in trial.single.items()},
        **({"clock_mhz": round(statistics.median(trial.clocks), 1)} if trial.clocks else {}),
        **summary(trial.readings),
        **resources_of(subject),
        **({"overlaps": True} if trial.overlaps else {}),
        "verified": True,
    }


def resources_of(subject: Subject) -> Json:
    """Registers per thread and bytes of shared memory per block, the most of any launch; nothing for a
    library."""
    if not subject.binaries:
        return {}
    return {
        "registers": max(binary.resources.registers for binary in subject.binaries),
        "shared_bytes": max(binary.shared_bytes for binary in subject.binaries),
        "arch": subject.binaries[0].kernel.arch,
    }


@dataclass
class Choice:
    """What is known of the subjects of a workload: which of a library's candidates is the fastest, what is
    recorded of the others, and why one was refused.

    Candidates are subjects like any other until one of them is chosen: verified with the same inputs, timed
    with the same buffers.

    subjects: all, each of a library's candidates among them. refused: why one was. samples: of candidates,
    microseconds.
    """

    subjects: Sequence[Subject] = ()
    refused: dict[Subject, str] = field(default_factory=dict)
    samples: dict[Subject, list[float]] = field(default_factory=dict)

    def fastest(self, trials: Sequence[Trial], take: Callable[[Trial], None]) -> list[Trial]:
        """The trials, of a library's candidates only the one with the least median.

        take: adds a sample to a trial, or sets `failed`.
        """
        tried = [trial for trial in trials if trial.subject.candidate]
        for _ in range(FEWEST):
            for trial in tried:
                if not trial.failed:
                    take(trial)
        able = [trial for trial in tried if not trial.failed]
        best = min(able, key=lambda trial: statistics.median(trial.samples), default=None)
        for trial in tried:
            self.samples[trial.subject] = microseconds(trial.samples)
            if trial is not best:
                trial.let_go()
        return [trial for trial in trials if not trial.subject.candidate or trial is best]

    def detail(self, subject: Subject) -> Json:
        """What the row of a chosen candidate says of all; nothing for another subject."""
        if not subject.candidate:
            return {}
        candidates = [one for one in self.subjects if without_candidate(one) == without_candidate(subject)]
        return {
            "vendor_detail": {
                "chosen": candidates.index(subject),
                "candidates": [*map(self.facts, candidates)],
            }
        }

    def facts(self, subject: Subject) -> Json:
        """Facts of a candidate: the library's description, and the result."""
        assert subject.candidate
        samples = {"samples_us": self.samples[subject]} if self.samples.get(subject) else {}
        refused = {"refused": self.refused[subject]} if subject in self.refused else {}
        return {**subject.candidate.facts, **samples, **refused}

    def refused_rows(self, timed: Collection[Subject]) -> list[Row]:
        """Rows of all that was refused: of a library, where no candidate was timed, the row of the last."""
        libraries = {without_candidate(subject) for subject in timed}
        reasons = {
            without_candidate(subject): f"{subject.candidate}: {reason}" if subject.candidate else reason
            for subject, reason in self.refused.items()
        }
        return [subject.refused(reason) for subject, reason in reasons.items() if subject not in libraries]


def without_candidate(subject: Subject) -> Subject:
    """The subject that a library's candidates have in common."""
    return replace(subject, candidate=None)


SINGLE_SAMPLES = 9
IDLE_S = 0.1
"""Seconds for which the GPU does nothing before a first launch."""

OVERWRITES = 4
"""So many times the L2 cache is overwritten. It takes longer than this computer takes to enqueue a launch."""


class Cold:
    """Times single launches where nothing is ready for them, as programs meet them that launch small work now
    and then: the data are not in the L2 cache, and the GPU was idle.

    Rates of `bench` are of many launches in a row. What a subject launches, more than one kernel for a sum,
    is one CUDA graph here, too, so that all are called in the same way, whoever wrote them. It holds two
    arrays that together are CACHES times as large as the L2 cache.
    """

    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine
        self.source = machine.xp.zeros(CACHES * machine.l2_bytes // 2, "uint8")
        self.target = machine.xp.empty_like(self.source)
        self.calls: dict[Subject, Call] = {}

    def take(self, trial: Trial) -> bool:
        """Add to each of a trial's `single`, in seconds; True.

        cold: on the GPU, right after other work, the data not in the L2 cache. first: on this computer, from
        the call until all is done, after IDLE_S, so with all that a launch waits for.
        """
        if trial.subject not in self.calls:
            self.calls[trial.subject] = self.machine.capture(trial.kept[0].enqueue)
        call = self.calls[trial.subject]
        trial.single.setdefault("cold", []).append(self.machine.seconds(call, before=self.overwrite))
        self.machine.seconds(self.overwrite)
        time.sleep(IDLE_S)
        trial.single.setdefault("first", []).append(self.machine.elapsed(call))
        return True

    def overwrite(self, stream: Any) -> None:
        """Enqueue what leaves nothing of earlier work in the L2 cache."""
        for _ in range(OVERWRITES):
            self.machine.copy(self.target, self.source, stream)


COPIED = 2 << 30
"""Bytes of the array that is copied, unless that is more than a quarter of the memory."""

COPY_SAMPLES = 9


def copy_bandwidth(machine: GpuMachine, policy: Policy) -> Json:
    """The row of a copy from device memory to device memory: bytes read and bytes written."""
    count = max(1, min(COPIED, machine.free_bytes // 4) // 4)
    source = machine.xp.arange(count, dtype="int32")
    target = machine.xp.empty_like(source)

    def copy(stream: Any) -> None:
        machine.copy(target, source, stream)

    samples = []
    for _ in range(COPY_SAMPLES + 1):
        time.sleep(policy.pause)
        samples.append(round(machine.seconds(copy, before=copy) * 1e6, 3))
    rate = 2 * source.nbytes / statistics.median(samples[1:]) / 1e3
    return {
        "name": "copy bandwidth",
        "rate": round(rate, 1),
        "unit": "GB/s",
        "samples_us": samples[1:],
        "bytes": 2 * source.nbytes,
    }


def fp32_peak(device: Json, sm_mhz: int | None) -> Json | None:
    """The row of fp32 multiply-adds on all lanes at the clock seen; None for an unknown clock or
    architecture.

    device: has "arch" and "multiprocessors". What tensor cores can do does not follow from such facts.
    """
    sm = known_sm(device["arch"])
    if not (sm and sm_mhz):
        return None
    count, lanes = device["multiprocessors"], sm.lanes
    how = f"{count} SMs x {lanes} lanes x 2 operations x {sm_mhz} MHz"
    return {
        "name": "fp32 peak",
        "rate": round(count * lanes * 2 * sm_mhz / 1e6, 2),
        "unit": "TFLOPS",
        "sm_mhz": sm_mhz,
        "how": how,
    }
