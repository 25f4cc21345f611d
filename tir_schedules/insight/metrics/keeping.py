"""Metrics of kernels that were counted before, kept in the cache by all that they depend on: the code and its
lines, the launches, the inputs, and the sources of the machine and of the workload."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from pathlib import Path
from typing import Sequence

from tir_schedules.compiler.cache import default_cache
from tir_schedules.insight.metrics.counting import Metrics, execute_and_count, occupancy_of
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Workload
from tir_schedules.timing.keeping import parts_of

FILE = "counters.pickle"


def kept_metrics(binaries: Sequence[Binary], workload: Workload) -> list[Metrics]:
    """What `metrics_of` returns, from the cache where the same was counted before. What is raised is not
    kept."""
    held = [occupancy_of(binary) for binary in binaries]
    arguments, content = workload.arguments(), hashlib.sha256()
    content.update(Path(inspect.getfile(type(workload))).read_bytes())
    for place, binary in enumerate(binaries):
        for text in (binary.kernel.source, str(binary.kernel.places)):
            content.update(hashlib.sha256(text.encode()).digest())
        for part in parts_of(binary, {} if place else arguments, ((), workload)):
            content.update(hashlib.sha256(part).digest())

    def build(folder: Path) -> None:
        counted = [
            (one.counters, one.findings) for one in execute_and_count(binaries, workload, arguments)[0]
        ]
        (folder / FILE).write_bytes(pickle.dumps(counted))

    counted = default_cache().load(
        "count", content.hexdigest(), build, lambda folder: pickle.loads((folder / FILE).read_bytes())
    )
    return [Metrics(binary, resident, *found) for binary, resident, found in zip(binaries, held, counted)]
