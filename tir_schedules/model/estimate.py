"""What a model says of a rung without running it: how long it takes on a workload, and what that follows
from."""

from __future__ import annotations

from typing import Any, Callable, Protocol

from tir_schedules.model.rung import Rung


class Estimate(Protocol):
    """Of a rung in one configuration on one workload. Its text is a sentence with the figures that the time
    follows from, such as "128 tiles, 1 for an SM: 52.9 us"."""

    @property
    def microseconds(self) -> float: ...


Estimator = Callable[[Any, Rung], "Estimate | None"]
"""Of a workload and a rung, which is in its configuration for that; None where it has no figures of that."""
