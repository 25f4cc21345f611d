"""Verdicts: what became of one kernel, and of a rung's two on one workload."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tir_schedules.files import Json, to_json
from tir_schedules.model.findings import Finding, Location
from tir_schedules.model.rung import Rung
from tir_schedules.model.verify import Mismatch
from tir_schedules.model.workload import Workload

PASS, FAIL, HAZARD, ERROR, DISAGREE = "pass", "fail", "hazards", "error", "twins disagree"
UNJUDGED, LOOSE = "no expected value", "loose"
WORST = (FAIL, ERROR, DISAGREE, HAZARD, LOOSE, UNJUDGED, PASS)
"""All verdicts, the worst first."""

RIGHT = (PASS, UNJUDGED, LOOSE)
"""Verdicts on a kernel that has no fault."""

CELLS = {PASS: "pass", FAIL: "FAIL", HAZARD: "HAZARD", ERROR: "ERROR", UNJUDGED: "no hazard", LOOSE: "loose"}
"""Verdicts on a kernel as a table has them. It passes when all values are right and nothing was found. If
there is no expected value and nothing was found, the verdict says that there is no expected value. It is
loose where rounding explains more than elements of its inputs change. It
fails when a value is wrong. A hazard is a finding with values that came out right. An error: it could not be
compiled or launched."""


@dataclass(frozen=True)
class WrongValue:
    """An output that is not what it should be. mismatch: which element, by how much. location: what stored
    it, or others; blame: the same in words."""

    kernel: str
    mismatch: Mismatch
    blame: str
    location: Location | None = None

    def __str__(self) -> str:
        at = f" {self.location}" if self.location else ""
        return f"{self.kernel}: {self.mismatch}; {self.blame}{at}"


def disagreement(mismatch: Mismatch) -> str:
    """Two kernels that are each near enough to the truth, but not to each other."""
    return (
        f"the twins disagree: {mismatch.element} is {number(mismatch.got)} in the schedule,"
        f" {number(mismatch.expected)} in the twin, {mismatch.allowed:.3g} apart would do; {mismatch.count}"
        f" of {mismatch.size}"
    )


def number(value: float) -> str:
    """All digits of a whole number, nine of another."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 2**53 else f"{value:.9g}"


@dataclass(frozen=True)
class Outcome:
    """One kernel on one workload, each field of faults empty when it is right.

    error: why it could not be compiled or launched. wrong: outputs that are not what they should be.
    findings: hazards that the machine saw; notes: what else it saw, which is not a fault.
    printed: by its printf calls, in the first check in which there are any.
    seconds: of all executions. outputs: by name, of each of the workload's checks in order, as far as they
    ran. judged: whether anything says what is right. loose: whether tolerances hide
    what elements of an input change. unshown: inputs that no run shows to matter, and why.
    unexecuted: source lines that no lane executed in any run.
    """

    kernel: str
    error: str = ""
    wrong: tuple[WrongValue, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    outputs: tuple[dict[str, np.ndarray], ...] = field(default=(), repr=False)
    printed: str = field(default="", repr=False)
    notes: tuple[Finding, ...] = ()
    judged: bool = True
    loose: bool = False
    unshown: tuple[str, ...] = ()
    unexecuted: tuple[Location, ...] = ()

    @property
    def word(self) -> str:
        """The verdict on it, a key of CELLS."""
        if self.error or self.wrong or self.findings:
            return ERROR if self.error else FAIL if self.wrong else HAZARD
        return UNJUDGED if not self.judged else LOOSE if self.loose else PASS

    @property
    def ok(self) -> bool:
        return self.word in RIGHT

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong with it, one text each."""
        return (*([self.error] if self.error else []), *map(str, self.findings), *map(str, self.wrong))

    def as_json(self) -> Json:
        told = {
            "kernel": self.kernel,
            "ok": self.ok,
            "verdict": self.word,
            "seconds": self.seconds,
            "faults": self.faults,
            "error": self.error or None,
            "wrong": list(map(str, self.wrong)),
            "findings": self.findings,
            "notes": self.notes,
            "judged": self.judged,
            "unshown": self.unshown,
            "unexecuted": self.unexecuted,
        }
        return to_json(told | ({"printed": self.printed} if self.printed else {}))


@dataclass(frozen=True)
class Verdict:
    """A rung on one workload: its schedule and its twin, and whether their outputs are the same bit for bit.

    twin is None where only one kernel ran (`--source`, `--tuned`); identical then too. disagreement: how
    outputs differ that are both right, when they differ by more than that explains.
    """

    rung: Rung
    workload: Workload
    schedule: Outcome
    twin: Outcome | None
    identical: bool | None
    disagreement: str = ""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (self.schedule, self.twin) if self.twin else (self.schedule,)

    @property
    def ok(self) -> bool:
        return self.word == PASS

    @property
    def word(self) -> str:
        """The verdict on the rung: the worst on its kernels, or that they disagree."""
        words = {outcome.word for outcome in self.outcomes} | ({DISAGREE} if self.disagreement else set())
        return next(word for word in WORST if word in words)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with either kernel or both, one text each."""
        told = tuple(fault for outcome in self.outcomes for fault in outcome.faults)
        return (*told, f"{self.rung.id}: {self.disagreement}") if self.disagreement else told

    @property
    def seconds(self) -> float:
        """Time both kernels took to execute."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def as_json(self) -> Json:
        kernels = {"schedule": self.schedule} | ({"twin": self.twin} if self.twin else {})
        told = {
            "rung": self.rung.id,
            "workload": self.workload,
            "ok": self.ok,
            "verdict": self.word,
            "identical": self.identical,
            "disagreement": self.disagreement or None,
            "kernels": kernels,
        }
        return to_json(told | ({"why": self.rung.why} if self.rung.why else {}))
