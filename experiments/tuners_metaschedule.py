"""MetaSchedule's search by its own rules: its CUDA rules, evolutionary search and XGBModel."""

from __future__ import annotations

import importlib
import tempfile

from tuners_candidates import Candidates, processors
from tuners_rules import METASCHEDULE

from tir_schedules.compiler.lower import last_line, target
from tir_schedules.errors import CheckFailed
from tir_schedules.model.workload import Workload
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.search.metaschedule import INTRINSICS, import_metaschedule, without_intrinsics

RULES = {"sgemm": "cuda", "hgemm": "cuda-tensorcore"}
"""Family -> TVM's name of its schedule rules, postprocessors and mutators."""

TRIALS, BATCH = 64, 16
"""Candidates of a search; those that are chosen, built and timed together. The cost model is asked from the
second batch on."""

POPULATION = 512
"""Of TVM's evolutionary search, as by default."""


def search(family: str, workload: Workload, found: Candidates) -> None:
    """Let MetaSchedule fill the budget of candidates. MissingTool without xgboost."""
    from tuners_callbacks import Builder, Runner

    meta_schedule, rules, cores = import_metaschedule(), RULES[family], processors()
    module = import_tvm().IRModule({"main": workload.prim_func(METASCHEDULE.lower())})
    if family == "hgemm":
        importlib.import_module(INTRINSICS)  # which takes half a minute
    with without_intrinsics():
        generator = meta_schedule.space_generator.PostOrderApply(
            sch_rules=rules, postprocs=rules, mutator_probs=rules
        )
        evolution = meta_schedule.search_strategy.EvolutionarySearch(population_size=POPULATION)
        context = meta_schedule.TuneContext(
            module,
            target=target(found.arch),
            space_generator=generator,
            search_strategy=evolution,
            task_name=str(workload),
            rand_state=1,
            num_threads=cores,
        )
    callbacks = meta_schedule.measure_callback
    model = meta_schedule.cost_model.XGBModel(
        num_warmup_samples=BATCH, num_tuning_cores=cores, verbose_eval=0
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            meta_schedule.tune.tune_tasks(
                tasks=[context],
                task_weights=[1.0],
                work_dir=folder,
                max_trials_global=found.budget,
                num_trials_per_iter=BATCH,
                builder=Builder(found),
                runner=Runner(found),
                database="memory",
                cost_model=model,
                task_scheduler="round-robin",
                measure_callbacks=[callbacks.AddToDatabase(), callbacks.UpdateCostModel()],
            )
    except Exception as error:
        reason = f"{METASCHEDULE} fails on {workload}: {last_line(error)}"
        raise found.failure or CheckFailed(reason) from error
