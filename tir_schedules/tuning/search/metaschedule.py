"""TVM's MetaSchedule, imported when it is needed, and a point of a space as its candidate."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterator, cast

from tir_schedules.compiler.lower import algorithm, target
from tir_schedules.errors import MissingTool
from tir_schedules.model.workload import Workload
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.building.candidate import parsed_once
from tir_schedules.tuning.space.points import Point, Space, key

if TYPE_CHECKING:
    from tvm import IRModule
    from tvm.s_tir import Schedule
    from tvm.s_tir.meta_schedule import MeasureCandidate, SearchStrategy, TuneContext

POINT = "tir_schedules.point"
"""Annotation of a candidate's root block: the point it is at."""

INTRINSICS = "tvm.s_tir.tensor_intrin"


def import_metaschedule() -> ModuleType:
    """The module tvm.s_tir.meta_schedule. MissingTool without xgboost, which its cost model needs."""
    try:
        importlib.import_module("xgboost")
    except ImportError:
        raise MissingTool("tuning needs xgboost: pip install 'tir_schedules[tune]'") from None
    import_tvm()
    with without_intrinsics():
        from tvm.s_tir import meta_schedule
    logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.ERROR)
    return meta_schedule


@contextmanager
def without_intrinsics() -> Iterator[None]:
    """Keep TVM's own tensor intrinsics from being imported: they take half a minute, and the project has its
    own."""
    hide = INTRINSICS not in sys.modules
    if hide:
        sys.modules[INTRINSICS] = ModuleType(INTRINSICS)
    try:
        yield
    finally:
        if hide:
            del sys.modules[INTRINSICS]


def tune_context(
    space: Space, workload: Workload, arch: str, strategy: SearchStrategy | None, seed: int
) -> TuneContext:
    """The task of finding the best point for a workload. seed: at least 0."""
    meta_schedule = import_metaschedule()
    module = import_tvm().IRModule({"main": algorithm(space.rung, workload)})
    nothing = meta_schedule.space_generator.ScheduleFn(
        lambda schedule: None, sch_rules=[], postprocs=[], mutator_probs={}
    )
    with without_intrinsics():
        return meta_schedule.TuneContext(
            module,
            target=target(arch),
            space_generator=nothing,
            search_strategy=strategy,
            task_name=f"{space.rung.id} {workload}",
            rand_state=seed + 1,
            num_threads=1,
        )


def at_point(module: IRModule, point: Point) -> Schedule:
    """A schedule of the module that only says which point it is at."""
    schedule = import_tvm().s_tir.Schedule(module)
    schedule.annotate(schedule.get_sblock("root"), POINT, key(point))
    return schedule


@lru_cache(maxsize=8)
def unscheduled(space: Space, workload: Workload) -> IRModule:
    return import_tvm().IRModule({"main": algorithm(parsed_once(space.rung), workload)})


def candidate(space: Space, point: Point, workload: Workload) -> MeasureCandidate:
    """A point as MetaSchedule takes it: the algorithm, which is scheduled only when the point is built. The
    cost model needs no schedule, and a search ranks many more points than it builds."""
    meta_schedule, module = import_metaschedule(), unscheduled(space, workload)
    arguments = meta_schedule.arg_info.ArgInfo.from_entry_func(module)
    return meta_schedule.MeasureCandidate(at_point(module, point), arguments)


def point_in(module: IRModule) -> Point:
    """The point that a candidate's module is at."""
    return json.loads(str(module["main"].body.block.annotations[POINT]))


def tuning_record(space: Space, point: Point, workload: Workload, context: TuneContext) -> list[Any]:
    """A result as MetaSchedule writes it into its own database, TuningRecord.as_json.

    Its seconds are still to come: see `set_seconds`. It is of the algorithm at the point, which has
    arguments of its own where the rung's algorithm depends on its configuration. Its trace is the annotation
    that names the point: that of the schedule does not survive TVM's JSON, for want of index maps in
    transform_block_layout. Not for several threads.
    """
    tvm, database = import_tvm(), import_metaschedule().database
    rung = space.rung_at(point)
    module = (
        tvm.IRModule({"main": algorithm(rung, workload)}) if rung.prim_func else cast("IRModule", context.mod)
    )
    arguments = import_metaschedule().arg_info.ArgInfo.from_entry_func(module)
    record = database.TuningRecord(
        at_point(module, point).trace, database.Workload(module), [1.0], context.target, arguments
    )
    return record.as_json()
