"""The evaluators that use the servers of a tracker. What travels is in answers.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import Sequence

from tir_schedules.errors import CheckFailed
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.processes import temporary_folder
from tir_schedules.subjects.packs import save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.candidate import Unbuilt
from tir_schedules.tuning.building.workers import Workers, builders_for
from tir_schedules.tuning.measure.evaluator import Evaluation, Evaluator, Measurer, Predictor
from tir_schedules.tuning.measure.gpu_timing import Timed, compile_subject, seconds_of, subject_of
from tir_schedules.tuning.records.record import device_of
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.tuning.remote.answers import Json
from tir_schedules.tuning.remote.client import Servers
from tir_schedules.tuning.space.tunable import space_of


def evaluator_on(servers: Servers) -> Evaluator:
    """The evaluator that uses the servers of a tracker, all at once."""
    return RemoteMeasurer(servers) if servers.name == "gpu" else RemotePredictor(servers)


class RemoteMeasurer(Measurer):
    """Builds here, measures on the servers' GPUs: a bench pack travels."""

    place = "server"

    def __init__(self, servers: Servers) -> None:
        self.servers, self.places, self.device = servers, servers.count, device_of(servers)
        self.spent, self.builders = Timesheet(), builders_for(servers.count)
        self.workers = Workers(self.builders, self.spent)

    def close(self) -> None:
        self.workers.close()
        self.servers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        candidate = self.workers.build(rung, workload, arch)
        (found,) = self.timed([subject_of(rung, workload, candidate.binaries)], together=False)
        return Evaluation(seconds_of(found), candidate.source)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        """By one of the servers."""
        return self.timed([compile_subject(rung, workload, arch) for rung in rungs], together=True)

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        with temporary_folder() as folder:
            path = folder / "subjects.zip"
            save_pack(subjects, {}, path)
            request = {"what": "time", "together": together}
            answer = ask_servers(self.servers, request, path.read_bytes(), self.spent)
        found = answer["each"]
        return [CheckFailed(one["error"]) if "error" in one else tuple(one["seconds"]) for one in found]


class RemotePredictor(Predictor):
    """Servers emit, compile, verify on their CPU machine and predict: a point travels."""

    place, builders = "server", 0

    def __init__(self, servers: Servers) -> None:
        self.servers, self.places, self.spent = servers, servers.count, Timesheet()

    def close(self) -> None:
        self.servers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        point = space_of(rung.base_id).point_of(rung.config)
        request = {
            "what": "predict",
            "rung": rung.file or rung.base_id,
            "point": point,
            "workload": asdict(workload),
            "arch": arch,
        }
        answer = ask_servers(self.servers, request, b"", self.spent)
        return Evaluation(tuple(answer["seconds"]), answer["source"])


def ask_servers(servers: Servers, request: Json, payload: bytes, spent: Timesheet) -> Json:
    """The answer of a server. CheckFailed when it refuses the candidate, Unbuilt when the fault may be its
    own."""
    answer = servers.answer(request, payload, spent)
    if "error" in answer:
        raise (Unbuilt if answer.get("fault") else CheckFailed)(answer["error"])
    return answer
