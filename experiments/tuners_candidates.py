"""The candidates of MetaSchedule's search by its own rules: built and timed, or refused and counted."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from tuners_rules import METASCHEDULE, NOT_LOWERED, kernel_of

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, one_line
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import ceil_div
from tir_schedules.tir.tvm import import_tvm

if TYPE_CHECKING:
    from tvm import IRModule

BUILD_S = 30
"""Seconds that nvcc has for a candidate, as in TVM's own builder."""

NOT_COMPILED, TOO_SLOW, WRONG, NOT_RUN = "not compiled by nvcc", "too slow", "wrong", "not run"
KINDS = (NOT_LOWERED, NOT_COMPILED, TOO_SLOW, WRONG, NOT_RUN)
"""Why a candidate is refused."""


class TooSlow(CheckFailed):
    """A candidate takes longer than it is worth waiting for."""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass
class Candidates:
    """Those of one search.

    arch: "sm_90". timer: samples in seconds of a binary; TooSlow, or CheckFailed when it is wrong or does not
    run. budget: how many there are to be. progress: called after each batch. fastest: of those that were
    timed, with its median. refused: kind (see KINDS) and reason of each of the others. failure: what ended
    the search early, which TVM's loop turns into an error of its own.
    """

    arch: str
    timer: Callable[[Binary], Sequence[float]]
    budget: int
    progress: Callable[["Candidates"], None] = lambda candidates: None
    tried: int = 0
    fastest: tuple[float, Binary] | None = None
    refused: list[tuple[str, str]] = field(default_factory=list)
    built: dict[str, Binary] = field(default_factory=dict)
    failure: BaseException | None = None

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Remembers what goes wrong, Ctrl-C among it."""
        try:
            yield
        except BaseException as error:
            self.failure = error
            raise

    def refuse(self, kind: str, reason: object) -> None:
        self.refused.append((kind, one_line(reason)))

    def build(self, modules: Sequence[IRModule]) -> list[str | None]:
        """Names of candidates that were built, None for those that were not. TVM lowers here, nvcc works in
        other threads."""
        pool = ThreadPoolExecutor(max_workers=processors())
        pending = [self.start(pool, module) for module in modules]
        wait([future for _, future in filter(None, pending)], BUILD_S * ceil_div(len(modules), processors()))
        names = [self.finish(*job) if job else None for job in pending]
        pool.shutdown(wait=False, cancel_futures=True)
        return names

    def start(self, pool: ThreadPoolExecutor, module: IRModule) -> tuple[Kernel, Future[Binary]] | None:
        self.tried += 1
        try:
            kernel = kernel_of(
                f"{METASCHEDULE} trial {self.tried}", import_tvm().s_tir.Schedule(module), self.arch
            )
        except CheckFailed as error:
            self.refuse(NOT_LOWERED, error)
            return None
        return kernel, pool.submit(compile_kernel, kernel)

    def finish(self, kernel: Kernel, future: Future[Binary]) -> str | None:
        try:
            if not future.done():
                raise CheckFailed(f"{kernel.label}: nvcc takes longer than {BUILD_S} s")
            self.built[kernel.label] = future.result()
        except CheckFailed as error:
            self.refuse(NOT_COMPILED, error)
            return None
        return kernel.label

    def time(self, name: str) -> Sequence[float] | None:
        """Samples in seconds of a candidate that was built; None when it is refused."""
        binary = self.built.pop(name)
        try:
            seconds = self.timer(binary)
        except TooSlow as error:
            self.refuse(TOO_SLOW, error)
            return None
        except CheckFailed as error:
            self.refuse(WRONG if "does not verify" in str(error) else NOT_RUN, error)
            return None
        median = sorted(seconds)[len(seconds) // 2]
        if self.fastest is None or median < self.fastest[0]:
            self.fastest = median, binary
        return seconds

    def as_json(self) -> dict[str, Any]:
        """How many were tried and refused; of each kind one reason."""
        counts, reasons = Counter(kind for kind, _ in self.refused), dict(reversed(self.refused))
        kinds = [kind for kind in KINDS if counts[kind]]
        refused = [{"kind": kind, "count": counts[kind], "reason": reasons[kind]} for kind in kinds]
        return {"trials": self.tried, "refused": refused}
