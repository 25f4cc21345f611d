"""The fastest of a library's candidates, what is recorded of the others, and when none is left.

Candidates are subjects like any other until one of them is chosen: verified with the same inputs, timed with
the same buffers.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from typing import Callable, Collection, Sequence

from tir_schedules.bench.sampling import FEWEST, Trial, in_micros
from tir_schedules.files import Json
from tir_schedules.subjects.subject import Row, Subject


@dataclass
class Choice:
    """What is known of the subjects of a workload.

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
            self.samples[trial.subject] = in_micros(trial.samples)
            if trial is not best:
                trial.let_go()
        return [trial for trial in trials if not trial.subject.candidate or trial is best]

    def detail(self, subject: Subject) -> Json:
        """What the row of a chosen candidate says of all; nothing for another subject."""
        if not subject.candidate:
            return {}
        candidates = [one for one in self.subjects if of_library(one) == of_library(subject)]
        return {
            "vendor_detail": {
                "chosen": candidates.index(subject),
                "candidates": [*map(self.facts, candidates)],
            }
        }

    def facts(self, subject: Subject) -> Json:
        """Of a candidate: what the library says of it, and what came of it."""
        assert subject.candidate
        samples = {"samples_us": self.samples[subject]} if self.samples.get(subject) else {}
        refused = {"refused": self.refused[subject]} if subject in self.refused else {}
        return {**subject.candidate.facts, **samples, **refused}

    def refused_rows(self, timed: Collection[Subject]) -> list[Row]:
        """Of all that was refused; of a library's candidates only where none is among the timed, for the
        reason of the last."""
        libraries = {of_library(subject) for subject in timed}
        reasons = {
            of_library(subject): f"{subject.candidate}: {reason}" if subject.candidate else reason
            for subject, reason in self.refused.items()
        }
        return [subject.refused(reason) for subject, reason in reasons.items() if subject not in libraries]


def of_library(subject: Subject) -> Subject:
    """A candidate's subject without its candidate."""
    return replace(subject, candidate=None)
