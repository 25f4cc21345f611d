"""MetaSchedule's builder and runner for a search by its own rules: the candidates do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuners_candidates import Candidates
from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner

from tir_schedules.tuning.search.builder_runner import futures

if TYPE_CHECKING:
    from tvm.s_tir.meta_schedule.builder import BuilderInput
    from tvm.s_tir.meta_schedule.runner import RunnerFuture, RunnerInput


@derived_object
class Builder(PyBuilder):
    """What it hands on as the path of an artifact is the candidate's name."""

    def __init__(self, candidates: Candidates) -> None:
        super().__init__()
        self.candidates = candidates

    def build(self, build_inputs: list[BuilderInput]) -> list[BuilderResult]:
        with self.candidates.guarded():
            names = self.candidates.build([build_input.mod for build_input in build_inputs])
        return [BuilderResult(name, None if name else "refused") for name in names]


@derived_object
class Runner(PyRunner):
    """All are done when it returns."""

    def __init__(self, candidates: Candidates) -> None:
        super().__init__()
        self.candidates = candidates

    def run(self, runner_inputs: list[RunnerInput]) -> list[RunnerFuture]:
        with self.candidates.guarded():
            names = [str(runner_input.artifact_path) for runner_input in runner_inputs]
            done = futures([self.candidates.time(name) for name in names])
            self.candidates.progress(self.candidates)
        return done
