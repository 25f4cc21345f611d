"""What TVM makes of a product by rules of its own: dlight's default schedule, and the fastest that
MetaSchedule finds with its CUDA rules.

Both are lowered by TVM's own passes with TVM's own options, but for common subexpressions, which it would
make parameters of the kernel, and compiled as all kernels of this project are.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Sequence

from tir_schedules.compiler.lower import emit, last_line, target
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, TirSchedulesError, one_line
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import ceil_div
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.search.metaschedule import INTRINSICS, import_metaschedule, without_intrinsics

DLIGHT, METASCHEDULE = "dlight", "MetaSchedule"
SHARED_NAME = "tirx.index_map_m16n8k8.matrixC"
OPTIONS = {"tirx.UnrollLoop": {"explicit_unroll": True}}
DLIGHT_RULES = {"sgemm": ("Matmul", "Fallback"), "hgemm": ("MatmulTensorization", "Matmul", "Fallback")}
"""Family -> dlight's rules; the first that takes a product schedules it."""

RULES = {"sgemm": "cuda", "hgemm": "cuda-tensorcore"}
"""Family -> TVM's name of its schedule rules, postprocessors and mutators."""

TRIALS, BATCH = 64, 16
"""Candidates of a search; those that are chosen, built and timed together. The cost model is asked from the
second batch on."""

POPULATION = 512
"""Of TVM's evolutionary search, as by default."""

BUILD_S = 30
"""Seconds that nvcc has for a candidate, as in TVM's own builder."""

NOT_LOWERED, NOT_COMPILED, TOO_SLOW, WRONG, NOT_RUN = (
    "not lowered by TVM",
    "not compiled by nvcc",
    "too slow",
    "wrong",
    "not run",
)
KINDS = (NOT_LOWERED, NOT_COMPILED, TOO_SLOW, WRONG, NOT_RUN)
"""Why a candidate is refused."""


class TooSlow(CheckFailed):
    """A candidate takes longer than it is worth waiting for."""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def kernel_of(label: str, schedule: Any, arch: str) -> Kernel:
    """The kernel of a schedule. CheckFailed when TVM cannot lower it to one kernel."""
    entry = label.split()[0].lower()
    try:
        emitted = emit(schedule, entry, arch, OPTIONS)
    except TirSchedulesError:
        raise
    except Exception as error:  # errors of TVM's passes are of many types
        raise CheckFailed(f"{label}: {NOT_LOWERED}: {last_line(error)}") from error
    return Kernel(label, emitted.source, entry, emitted.params, arch=arch, **vars(emitted.launch))


def import_intrinsics() -> None:
    """TVM's own tensor intrinsics, half a minute. They register a function that ours register too, which does
    the same, and only once."""
    import tvm_ffi

    if INTRINSICS not in sys.modules:
        if tvm_ffi.get_global_func(SHARED_NAME, allow_missing=True):
            tvm_ffi.registry.remove_global_func(SHARED_NAME)
        importlib.import_module(INTRINSICS)


def dlight_kernel(family: str, workload: Any, arch: str) -> tuple[Kernel, str]:
    """The kernel of dlight's default schedule, and the name of the rule that made it. CheckFailed when no
    rule does."""
    import_tvm()
    rules = importlib.import_module("tvm.s_tir.dlight.gpu")
    if family == "hgemm":
        import_intrinsics()
    function, gpu = workload.prim_func(DLIGHT), target(arch)
    for name in DLIGHT_RULES[family]:
        rule = getattr(rules, name, None) or getattr(rules.matmul, name)
        try:
            with gpu:
                found = rule().apply(function, gpu, False)
        except Exception as error:
            raise CheckFailed(f"{DLIGHT}: its rule {name} fails: {last_line(error)}") from error
        if found is not None:
            return kernel_of(DLIGHT, found[0] if isinstance(found, list) else found, arch), name
    raise CheckFailed(f"{DLIGHT}: none of its rules {', '.join(DLIGHT_RULES[family])} takes {workload}")


@dataclass
class Search:
    """Candidates of one search.

    arch: "sm_90". timer: samples in seconds of a binary; TooSlow, or CheckFailed when it is wrong or does not
    run. budget: of candidates.
    progress: called after each batch. fastest: of those that were timed, with its median. refused: kind (see
    KINDS) and reason of each of the others. failure: what ended the search early, which TVM's loop turns into
    an error of its own.
    """

    arch: str
    timer: Callable[[Binary], Sequence[float]]
    budget: int
    progress: Callable[["Search"], None] = lambda search: None
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

    def refuse(self, kind: str, reason: Any) -> None:
        self.refused.append((kind, one_line(reason)))

    def build(self, modules: Sequence[Any]) -> list[str | None]:
        """Names of candidates that were built, None for those that were not. TVM lowers here, nvcc works in
        other threads."""
        pool = ThreadPoolExecutor(max_workers=processors())
        pending = [self.start(pool, module) for module in modules]
        wait([future for _, future in filter(None, pending)], BUILD_S * ceil_div(len(modules), processors()))
        names = [self.finish(*job) if job else None for job in pending]
        pool.shutdown(wait=False, cancel_futures=True)
        return names

    def start(self, pool: ThreadPoolExecutor, module: Any) -> tuple[Kernel, Future] | None:
        self.tried += 1
        try:
            kernel = kernel_of(
                f"{METASCHEDULE} trial {self.tried}", import_tvm().s_tir.Schedule(module), self.arch
            )
        except CheckFailed as error:
            self.refuse(NOT_LOWERED, error)
            return None
        return kernel, pool.submit(compile_kernel, kernel)

    def finish(self, kernel: Kernel, future: Future) -> str | None:
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
        except CheckFailed as error:
            kind = (
                TOO_SLOW
                if isinstance(error, TooSlow)
                else WRONG
                if "does not verify" in str(error)
                else NOT_RUN
            )
            self.refuse(kind, error)
            return None
        median = sorted(seconds)[len(seconds) // 2]
        if self.fastest is None or median < self.fastest[0]:
            self.fastest = median, binary
        return seconds

    def as_json(self) -> dict[str, Any]:
        """How many were tried and refused; of each kind one reason."""
        counts, reasons = Counter(kind for kind, _ in self.refused), dict(reversed(self.refused))
        refused = [
            {"kind": kind, "count": counts[kind], "reason": reasons[kind]} for kind in KINDS if counts[kind]
        ]
        return {"trials": self.tried, "refused": refused}


def search(family: str, workload: Any, found: Search) -> None:
    """Let MetaSchedule fill the budget of a Search: its own rules, evolutionary search and XGBModel.
    MissingTool without xgboost."""
    from tuners_callbacks import Builder, Runner

    meta_schedule, rules, cores = import_metaschedule(), RULES[family], processors()
    module = import_tvm().IRModule({"main": workload.prim_func(METASCHEDULE.lower())})
    if family == "hgemm":
        import_intrinsics()
    with without_intrinsics():
        context = meta_schedule.TuneContext(
            module, target=target(found.arch), task_name=str(workload), rand_state=1, num_threads=cores,
            space_generator=meta_schedule.space_generator.PostOrderApply(sch_rules=rules, postprocs=rules,
            mutator_probs=rules),
            search_strategy=meta_schedule.search_strategy.EvolutionarySearch(population_size=POPULATION),
        )  # fmt: skip
    callbacks = meta_schedule.measure_callback
    try:
        with tempfile.TemporaryDirectory() as folder:
            meta_schedule.tune.tune_tasks(
                tasks=[context], task_weights=[1.0], work_dir=folder, max_trials_global=found.budget,
                    num_trials_per_iter=BATCH,
                builder=Builder(found), runner=Runner(found), database="memory", task_scheduler="round-robin",
                cost_model=meta_schedule.cost_model.XGBModel(num_warmup_samples=BATCH, num_tuning_cores=cores,
                verbose_eval=0),
                measure_callbacks=[callbacks.AddToDatabase(), callbacks.UpdateCostModel()],
            )  # fmt: skip
    except Exception as error:
        raise found.failure or CheckFailed(
            f"{METASCHEDULE} fails on {workload}: {last_line(error)}"
        ) from error
