"""Timers, as running.py has them, whose work is done by the servers of a tracker. What travels is in answers.py."""
from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tir_schedules.bench.pack import save_pack
from tir_schedules.errors import CheckFailed
from tir_schedules.tuning.building import Built, Emitted, built
from tir_schedules.tuning.records import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.rpc import RpcRunner
from tir_schedules.tuning.running import subject_of
from tir_schedules.tuning.spaces import space_of
from tir_schedules.tuning.tuned import name_of


def timer_on(servers: RpcRunner) -> Any:
    """The timer that uses the servers of a tracker, all at once."""
    return MeasuringThere(servers) if servers.name == "gpu" else PredictingThere(servers)


class MeasuringThere:
    """Builds here, measures on the servers' GPUs: a bench pack of one subject travels."""

    kind, built = MEASURED, staticmethod(built)

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once, self.device = servers, servers.workers, device_of(servers)

    def seconds(self, candidate: Built) -> tuple[float, ...]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "subject.zip"
            save_pack([subject_of(candidate)], {}, path)
            return asked(self.servers, {"what": "time"}, path.read_bytes())


@dataclass(frozen=True)
class BuiltThere:
    """A candidate that a server compiled and found right, and the cost it predicts."""

    emitted: Emitted
    seconds: tuple[float, ...]


class PredictingThere:
    """Emits here; servers compile, verify on their CPU machine and predict: the CUDA of both kernels travels."""

    kind, device = PREDICTED, device_of()

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once = servers, servers.workers

    def built(self, kernels: Emitted) -> BuiltThere:
        space = space_of(name_of(kernels.rung))
        rung = {"rung": space.rung.id, "point": space.point_of(kernels.rung.config)}
        request = {"what": "predict", **rung, "workload": asdict(kernels.workload), "small": asdict(kernels.small)}
        sources = json.dumps([asdict(kernels.kernel), asdict(kernels.small_kernel)]).encode()
        return BuiltThere(kernels, asked(self.servers, request, sources))

    def seconds(self, candidate: BuiltThere) -> tuple[float, ...]:
        return candidate.seconds


def asked(servers: RpcRunner, request: dict[str, Any], payload: bytes) -> tuple[float, ...]:
    """Seconds from a server. CheckFailed when it refuses the candidate."""
    answer = servers.answer(request, payload)
    if "error" in answer:
        raise CheckFailed(answer["error"])
    return tuple(answer["seconds"])
