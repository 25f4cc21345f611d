"""Timers, as running.py has them, whose work is done by the servers of a tracker. What travels is in answers.py."""
from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Sequence

from tir_schedules.bench.pack import save_pack
from tir_schedules.bench.subjects import Subject
from tir_schedules.errors import CheckFailed
from tir_schedules.tuning.building import Emitted, built
from tir_schedules.tuning.prediction import stand_in
from tir_schedules.tuning.records import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.rpc import RpcRunner
from tir_schedules.tuning.running import CORES, Timed, compiled, subject_of, sure
from tir_schedules.tuning.spaces import space_of
from tir_schedules.tuning.tuned import name_of


def timer_on(servers: RpcRunner) -> Any:
    """The timer that uses the servers of a tracker, all at once."""
    return MeasuringThere(servers) if servers.name == "gpu" else PredictingThere(servers)


class MeasuringThere:
    """Builds here, measures on the servers' GPUs: a bench pack travels."""

    kind = MEASURED

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once, self.device = servers, max(CORES, servers.workers), device_of(servers)

    def check(self, arch: str) -> None:
        """All that the compiler takes."""

    def seconds(self, kernels: Emitted) -> tuple[float, ...]:
        (found,) = self.timed([subject_of(kernels, built(kernels).binary)], together=False)
        return sure(found)

    def compared(self, candidates: Sequence[Emitted]) -> list[Timed]:
        """By one of the servers."""
        return self.timed(list(map(compiled, candidates)), together=True)

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "subjects.zip"
            save_pack(subjects, {}, path)
            answer = asked(self.servers, {"what": "time", "together": together}, path.read_bytes())
        return [CheckFailed(each["error"]) if "error" in each else tuple(each["seconds"]) for each in answer["each"]]


class PredictingThere:
    """Emits here; servers compile, verify on their CPU machine and predict: the CUDA of both kernels travels."""

    kind, device = PREDICTED, device_of()

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once = servers, servers.workers

    def check(self, arch: str) -> None:
        stand_in(arch)

    def seconds(self, kernels: Emitted) -> tuple[float, ...]:
        space = space_of(name_of(kernels.rung))
        rung = {"rung": space.rung.id, "point": space.point_of(kernels.rung.config)}
        request = {"what": "predict", **rung, "workload": asdict(kernels.workload), "small": asdict(kernels.small)}
        sources = json.dumps([asdict(kernels.kernel), asdict(kernels.small_kernel)]).encode()
        return tuple(asked(self.servers, request, sources)["seconds"])

    def compared(self, candidates: Sequence[Emitted]) -> None:
        return None


def asked(servers: RpcRunner, request: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """The answer of a server. CheckFailed when it refuses the candidate."""
    answer = servers.answer(request, payload)
    if "error" in answer:
        raise CheckFailed(answer["error"])
    return answer
