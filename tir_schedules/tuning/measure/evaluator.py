"""What a candidate costs: its evaluator measures seconds on a GPU, or predicts them without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Sequence

from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.cost.predictor import stand_in
from tir_schedules.tuning.measure.gpu_timing import Timed
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.records.timesheet import Timesheet


@dataclass(frozen=True)
class Evaluation:
    """seconds: samples, or one prediction. source: hash of the CUDA they are of."""

    seconds: tuple[float, ...]
    source: str


class Evaluator(Protocol):
    """kind, device: as records have them. spent: where the time of candidates went.

    builders: processes that build here. places: GPUs, or servers, that take one candidate each at a time, 0
    where builders do all; `place` is what they are called.
    """

    @property
    def kind(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def spent(self) -> Timesheet: ...

    @property
    def builders(self) -> int: ...

    @property
    def places(self) -> int: ...

    @property
    def place(self) -> str: ...

    def check(self, arch: str) -> None:
        """BadInput for an architecture that it cannot evaluate."""
        ...

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        """Build, verify and evaluate a candidate. CheckFailed when it is refused."""
        ...

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed] | None:
        """Time several candidates in turns, in one run of the benchmark.

        None from an evaluator for which that would tell nothing new.
        """
        ...

    def close(self) -> None:
        """End its processes."""
        ...


class Predictor:
    """What evaluators that predict have in common, here and on servers."""

    kind, device = PREDICTED, device_of()

    def check(self, arch: str) -> None:
        stand_in(arch)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> None:
        """Predictions would be the same again."""


class Measurer:
    """What evaluators that measure have in common, here and on servers."""

    kind = MEASURED

    def check(self, arch: str) -> None:
        """All that the compiler takes."""
