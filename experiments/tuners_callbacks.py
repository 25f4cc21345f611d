"""MetaSchedule's builder and runner for a search by its own rules: what they are asked for,
`tuners_rules.Search` does."""

from __future__ import annotations

from typing import Any, Sequence

from tuners_rules import Search
from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner

from tir_schedules.tuning.search.pipeline import Done


@derived_object
class Builder(PyBuilder):
    """What it hands on as the path of an artifact is the candidate's name."""

    def __init__(self, search: Search):
        super().__init__()
        self.search = search

    def build(self, build_inputs: Sequence[Any]) -> list[BuilderResult]:
        with self.search.guarded():
            names = self.search.build([build_input.mod for build_input in build_inputs])
        return [BuilderResult(name, None if name else "refused") for name in names]


@derived_object
class Runner(PyRunner):
    """All are done when it returns."""

    def __init__(self, search: Search):
        super().__init__()
        self.search = search

    def run(self, runner_inputs: Sequence[Any]) -> list[Done]:
        with self.search.guarded():
            done = [Done(self.search.time(str(runner_input.artifact_path))) for runner_input in runner_inputs]
            self.search.progress(self.search)
        return done
