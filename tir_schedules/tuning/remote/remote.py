"""Timers, as running.py has them, whose work is done by the servers of a tracker. What travels is in
answers.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Sequence

from tir_schedules.errors import CheckFailed
from tir_schedules.model.rung import Rung
from tir_schedules.processes import temporary_folder
from tir_schedules.subjects.packs import save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.measure.building import Unbuilt
from tir_schedules.tuning.measure.running import Cost, Predictions, Timed, compiled, subject_of, sure
from tir_schedules.tuning.measure.workers import Workers, at_once
from tir_schedules.tuning.records.records import MEASURED, device_of
from tir_schedules.tuning.remote.rpc import RpcRunner
from tir_schedules.tuning.space.spaces import space_of


def timer_on(servers: RpcRunner) -> Any:
    """The timer that uses the servers of a tracker, all at once."""
    return MeasuringThere(servers) if servers.name == "gpu" else PredictingThere(servers)


class MeasuringThere:
    """Builds here, measures on the servers' GPUs: a bench pack travels."""

    kind = MEASURED

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once, self.device = servers, at_once(servers.workers), device_of(servers)
        self.workers = Workers()

    def close(self) -> None:
        self.workers.close()
        self.servers.close()

    def check(self, arch: str) -> None:
        """All that the compiler takes."""

    def cost(self, rung: Rung, workload: Any, arch: str) -> Cost:
        built = self.workers.built(rung, workload, arch)
        (found,) = self.timed([subject_of(rung, workload, built.binaries)], together=False)
        return Cost(sure(found), built.source)

    def compared(self, rungs: Sequence[Rung], workload: Any, arch: str) -> list[Timed]:
        """By one of the servers."""
        return self.timed([compiled(rung, workload, arch) for rung in rungs], together=True)

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        with temporary_folder() as folder:
            path = folder / "subjects.zip"
            save_pack(subjects, {}, path)
            answer = asked(self.servers, {"what": "time", "together": together}, path.read_bytes())
        return [
            CheckFailed(each["error"]) if "error" in each else tuple(each["seconds"])
            for each in answer["each"]
        ]


class PredictingThere(Predictions):
    """Servers emit, compile, verify on their CPU machine and predict: a point travels."""

    def __init__(self, servers: RpcRunner):
        self.servers, self.at_once, self.close = servers, servers.workers, servers.close

    def cost(self, rung: Rung, workload: Any, arch: str) -> Cost:
        point = space_of(rung.base_id).point_of(rung.config)
        request = {
            "what": "predict",
            "rung": rung.base_id,
            "point": point,
            "workload": asdict(workload),
            "arch": arch,
        }
        answer = asked(self.servers, request, b"")
        return Cost(tuple(answer["seconds"]), answer["source"])


def asked(servers: RpcRunner, request: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """The answer of a server. CheckFailed when it refuses the candidate, Unbuilt when the fault may be its
    own."""
    answer = servers.answer(request, payload)
    if "error" in answer:
        raise (Unbuilt if answer.get("fault") else CheckFailed)(answer["error"])
    return answer
