"""The model that ranks candidates before they are built: MetaSchedule's XGBModel, and what it learns from."""

from __future__ import annotations

from math import ceil, prod
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

import numpy as np
from tvm.ir.utils import derived_object
from tvm.runtime import tensor
from tvm.s_tir.meta_schedule.cost_model.xgb_model import XGBConfig, XGBModel
from tvm.s_tir.meta_schedule.feature_extractor import PyFeatureExtractor

from tir_schedules.compiler.lower import refusals
from tir_schedules.insight.metrics.roofline import GPU_OF, gpu_for
from tir_schedules.model.gpus import known_sm, occupancy
from tir_schedules.model.launch import Launch
from tir_schedules.tuning.search.metaschedule import point_in
from tir_schedules.tuning.search.trials import Trials
from tir_schedules.tuning.space.points import Point, Value

if TYPE_CHECKING:
    from tvm.runtime import Tensor
    from tvm.s_tir.meta_schedule import FeatureExtractor, MeasureCandidate, TuneContext


@derived_object
class Features(PyFeatureExtractor):
    """A row for each candidate: the fields of its point, its launch, and how its blocks fill the GPU.

    MetaSchedule's own features describe each store of a schedule. With them the model ranked unseen points
    worse, see experiments/README.md, and each point that is ranked had to be scheduled.
    """

    def __init__(self, trials: Trials) -> None:
        super().__init__()
        self.trials = trials

    def extract_from(self, context: TuneContext, candidates: list[MeasureCandidate]) -> list[Tensor]:
        return [tensor(np.array([self.facts(point_in(one.sch.mod))], np.float32)) for one in candidates]

    def facts(self, point: Point) -> list[float]:
        """The launch where the rung declares it, and what follows from it where the architecture's figures
        are known."""
        space, fields = self.trials.space, [*map(number_of, point.values())]
        if space.rung.launch is None:
            return fields
        with refusals(space.rung, self.trials.workload):
            launch = space.rung.launch(self.trials.workload, space.config(point))
        return [
            *fields,
            prod(launch.grid),
            prod(launch.block),
            launch.dynamic_shared,
            *filling(launch, self.trials.arch),
        ]


def filling(launch: Launch, arch: str) -> list[float]:
    """Blocks and threads that an SM holds, as far as threads and shared memory decide. Then the number of
    waves and the share of them that is full, with so many blocks on each SM and with one."""
    if not known_sm(arch) or arch.rstrip("af") not in GPU_OF:
        return []
    held = max(1, occupancy(arch, launch.block, 0, launch.dynamic_shared).blocks)
    found: list[float] = [held, held * prod(launch.block)]
    for at_once in (held, 1):
        waves = prod(launch.grid) / (at_once * gpu_for(arch).multiprocessors)
        found += [ceil(waves), waves / ceil(waves)]
    return found


def number_of(value: Value) -> float:
    """A value of a field as a tree can divide it. Of a word it is only a mark."""
    return float(value) if not isinstance(value, str) else float(crc32(value.encode()))


class Trees(XGBConfig):
    """Each tree is grown from a part of the trials, and of the features: what few trials have in common by
    chance counts for less."""

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"subsample": 0.7, "colsample_bytree": 0.5}


def cost_model(trials: Trials) -> XGBModel:
    """MetaSchedule's XGBModel with features of ours.

    Its trees are shallower and learn more slowly than by default: they rank unseen points better after a
    dozen trials. XGBoost uses one thread: the others of a computer build candidates.
    """
    import xgboost

    xgboost.set_config(nthread=1)
    trees = Trees(max_depth=6, eta=0.1)
    features = cast("FeatureExtractor", Features(trials))  # derived_object hides its base
    return XGBModel(
        extractor=features, config=trees, num_warmup_samples=1, verbose_eval=0, num_tuning_cores=1
    )
