"""The model that ranks candidates before they are built: MetaSchedule's XGBModel, and what it learns from."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast
from zlib import crc32

import numpy as np
from tvm.ir.utils import derived_object
from tvm.runtime import tensor
from tvm.s_tir.meta_schedule.cost_model.xgb_model import XGBConfig, XGBModel
from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature, PyFeatureExtractor

from tir_schedules.compiler.lower import refusals
from tir_schedules.tuning.search.metaschedule import point_in
from tir_schedules.tuning.search.trials import Trials
from tir_schedules.tuning.space.points import Point, Value, key

if TYPE_CHECKING:
    from tvm.runtime import Tensor
    from tvm.s_tir.meta_schedule import FeatureExtractor, MeasureCandidate, TuneContext


@derived_object
class Features(PyFeatureExtractor):
    """MetaSchedule's features of each store of a candidate, and two that they leave out: point and launch."""

    def __init__(self, trials: Trials) -> None:
        super().__init__()
        self.trials = trials
        self.stores = PerStoreFeature()
        self.known: dict[str, Tensor] = {}

    def extract_from(self, context: TuneContext, candidates: list[MeasureCandidate]) -> list[Tensor]:
        names = [key(point_in(one.sch.mod)) for one in candidates]
        new = {name: one for name, one in zip(names, candidates) if name not in self.known}
        with refusals(self.trials.space.rung, self.trials.workload):
            extracted = self.stores.extract_from(context, list(new.values())) if new else []
        for (name, one), found in zip(new.items(), extracted):
            rows = found.numpy()
            facts = np.tile(np.array(self.facts(point_in(one.sch.mod)), np.float32), (len(rows), 1))
            self.known[name] = tensor(np.hstack([rows.astype(np.float32), facts]))
        return [self.known[name] for name in names]

    def facts(self, point: Point) -> list[float]:
        """Fields of the point; blocks, threads of a block, and dynamic shared memory where they are
        declared."""
        declare = self.trials.space.rung.launch
        if declare is None:
            return [*map(number_of, point.values())]
        launch = declare(self.trials.workload, self.trials.space.config(point))
        return [
            *map(number_of, point.values()),
            float(prod(launch.grid)),
            float(prod(launch.block)),
            float(launch.dynamic_shared),
        ]


def number_of(value: Value) -> float:
    """A value of a field as a tree can divide it. Of a word it is only a mark."""
    return float(value) if not isinstance(value, str) else float(crc32(value.encode()))


def cost_model(trials: Trials) -> XGBModel:
    """MetaSchedule's XGBModel with features of ours.

    Its trees are shallower and learn more slowly than by default: they rank unseen points better after a
    dozen trials. XGBoost uses one thread: the others of a computer build candidates.
    """
    import xgboost

    xgboost.set_config(nthread=1)
    trees = XGBConfig(max_depth=6, eta=0.1)
    features = cast("FeatureExtractor", Features(trials))  # derived_object hides its base
    return XGBModel(
        extractor=features, config=trees, num_warmup_samples=1, verbose_eval=0, num_tuning_cores=1
    )
