"""How often something is timed, and when that is enough. Nothing here knows what is timed."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

CONFIDENCE = 0.9375
"""Confidence of the interval around a median: that of the least and the greatest of five samples."""

LONG_S = 0.1
"""A launch that takes this long is a sample by itself."""

FEWEST = 3
"""Samples of what takes long, or of what has used up its time."""


@dataclass(frozen=True)
class Policy:
    """How to sample.

    settle_s: most seconds that one workload's subjects are run before anything counts. pause_s: idle seconds
    before a sample, so that the GPU stays below its power limit. sample_ms: least length of a sample.
    min_samples, max_samples, precision: a subject is done when its median is known to that share, or has
    max_samples. budget_s: seconds after which three samples are enough.
    sustained: no pauses, the GPU runs back to back. cold: single launches are timed, too.
    """

    settle_s: float = 3.0
    pause_s: float = 0.03
    sample_ms: float = 2.0
    min_samples: int = 5
    max_samples: int = 31
    precision: float = 0.005
    budget_s: float = 3.0
    sustained: bool = False
    cold: bool = False

    @property
    def pause(self) -> float:
        """Seconds to wait before a sample."""
        return 0.0 if self.sustained else self.pause_s


@dataclass
class Trial:
    """One subject being timed.

    call: enqueues `launches` of them. once: seconds of one, as far as known beforehand. samples: seconds of
    one product each. readings: of the GPU's clocks, taken meanwhile. clocks: of the SMs in each sample, in
    MHz, where they were counted. spent: seconds it took so far. kept: what must stay in memory. overlaps:
    whether it begins before the launch ahead of it has ended. failed: it could not be timed. single: seconds
    of single launches by what was timed, see measure.Cold.
    """

    subject: Any
    call: Callable[[Any], None]
    launches: int = 1
    once: float = 0.0
    samples: list[float] = field(default_factory=list)
    readings: list[Any] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)
    spent: float = 0.0
    kept: Any = None
    overlaps: bool = False
    failed: bool = False
    single: dict[str, list[float]] = field(default_factory=dict)

    @property
    def long(self) -> bool:
        """Whether a launch is a sample by itself."""
        return self.once >= LONG_S

    def let_go(self) -> None:
        """Give up what it holds on the GPU: it is timed no more."""
        self.call, self.kept = nothing, None


def nothing(stream: Any) -> None:
    """Enqueues nothing."""


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Two samples between which the true median lies with at least CONFIDENCE, whatever the distribution.

    For fewer than five samples the least and the greatest, which promise less.
    """
    ordered, n = sorted(samples), len(samples)
    low = 0
    while low + 1 <= (n - 1) // 2 and chance_outside(n, low + 1) <= 1 - CONFIDENCE:
        low += 1
    return ordered[low], ordered[n - 1 - low]


def chance_outside(n: int, low: int) -> float:
    """Chance that a median is not between the samples number `low` and n - 1 - low of n in order: too few
    fell on one side of it."""
    return 2 * sum(math.comb(n, i) for i in range(low + 1)) / 2**n


def half_width(samples: Sequence[float]) -> float:
    """Half of `median_interval`, as a share of the median."""
    low, high = median_interval(samples)
    return (high - low) / 2 / statistics.median(samples)


def microseconds(samples: Sequence[float]) -> list[float]:
    """Seconds as results have them."""
    return [round(seconds * 1e6, 3) for seconds in samples]


def spread(samples: Sequence[float]) -> float:
    """Distance of the quartiles, as a share of the median; 0 for a single sample."""
    if len(samples) < 2:
        return 0.0
    first, middle, third = statistics.quantiles(samples, n=4, method="inclusive")
    return (third - first) / middle


def enough(trial: Trial, policy: Policy) -> bool:
    """Whether a trial needs no further sample."""
    count = len(trial.samples)
    if trial.failed:
        return True
    if trial.long or trial.spent >= policy.budget_s:
        return count >= FEWEST
    if count < policy.min_samples:
        return False
    return count >= policy.max_samples or half_width(trial.samples) <= policy.precision


def settle(trials: Sequence[Trial], policy: Policy, take: Callable[[Trial], None]) -> int:
    """Run trials in turns until two successive rounds agree, or `settle_s` is used up; forget the samples,
    return the rounds.

    take: adds to a trial's `samples` and `spent`, or sets `failed`. Rounds agree when half of the trials
    changed by no more than the precision. Long trials take no part.
    """
    rounds, settled = 0, False
    short = [trial for trial in trials if not trial.long]
    while short and not settled and sum(trial.spent for trial in short) < policy.settle_s:
        for trial in short:
            take(trial)
        rounds += 1
        short = [trial for trial in short if not trial.failed]
        changes = [abs(trial.samples[-1] / trial.samples[-2] - 1) for trial in short if rounds > 1]
        settled = bool(changes) and statistics.median(changes) <= policy.precision
    for trial in trials:
        trial.samples, trial.readings, trial.clocks, trial.spent = [], [], [], 0.0
    return rounds


def sample_in_turns(trials: Sequence[Trial], policy: Policy, take: Callable[[Trial], None]) -> None:
    """Let every trial take a sample per round until it has enough; `take` adds to `samples` and `spent`, or
    sets `failed`."""
    active = [trial for trial in trials if not trial.failed]
    while active:
        for trial in active:
            take(trial)
        active = [trial for trial in active if not enough(trial, policy)]
