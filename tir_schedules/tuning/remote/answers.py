"""What an RPC server answers: a request in JSON and a payload of bytes come, JSON goes back, and nothing else
travels."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, Callable, cast

from tir_schedules.errors import BadInput, CheckFailed, TirSchedulesError, TooLarge, one_line
from tir_schedules.model.machine import Machine
from tir_schedules.processes import temporary_folder

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

Json = dict[str, Any]
"""A request, or an answer to one."""


def prepare() -> None:
    """Import what sessions need, once for all of them. A GPU is left alone: CUDA does not survive the fork
    into a session."""
    from tir_schedules.tuning.search.metaschedule import import_metaschedule

    import_metaschedule()
    importlib.import_module("tir_schedules.tuning.measure.evaluator")


def answer(request: str, payload: bytes, machine: str) -> str:
    """The answer to a request. machine: "cpu" or "gpu", what this server has.

    {"error": one line} for a candidate that is refused; with "fault": true where the error may be the
    server's.

    Requests: {"what": "about"} -> {"machine", "arch", "device"}; {"what": "time", "together"} -> {"each":
    [{"seconds": [...]} or {"error"}], "broken"}, for a GPU; payload: a bench pack of subjects; together:
    whether they are to be compared, and so timed as thoroughly as the benchmark does; broken: what left the
    GPU unusable for this session, empty when nothing did; {"what": "predict", "rung", "point", "workload",
    "arch"} -> {"seconds": [...], "source"}.
    """
    from tir_schedules.machines.choice import choose

    try:
        task = json.loads(request)
        if task.get("what") not in ANSWERS:
            raise BadInput(f"a server answers {', '.join(ANSWERS)}, not {task.get('what')!r}")
        return json.dumps(ANSWERS[task["what"]](task, payload, choose(machine)))
    except (CheckFailed, TooLarge) as error:
        return json.dumps({"error": str(error)})
    except TirSchedulesError as error:
        return json.dumps({"error": str(error), "fault": True})
    except Exception as error:  # whatever it is, the client must hear of it
        return json.dumps({"error": one_line(f"{type(error).__name__}: {error}"), "fault": True})


def about(task: Json, payload: bytes, machine: Machine) -> Json:
    """What this server measures on."""
    from tir_schedules.tuning.records.record import device_of

    arch = cast("GpuMachine", machine).arch if machine.name == "gpu" else ""
    return {"machine": machine.name, "arch": arch, "device": device_of(machine)}


def time(task: Json, payload: bytes, machine: Machine) -> Json:
    """Seconds of each subject of a bench pack on this GPU."""
    from tir_schedules.subjects.packs import load_pack
    from tir_schedules.tuning.measure.gpu_timing import policy_for, time_together

    with temporary_folder() as folder:
        path = folder / "subject.zip"
        path.write_bytes(payload)
        subjects = load_pack(path).subjects
    found = time_together(subjects, machine, policy_for(task["together"]))
    each = [{"error": str(one)} if isinstance(one, CheckFailed) else {"seconds": one} for one in found]
    return {"each": each, "broken": cast("GpuMachine", machine).broken}


def predict(task: Json, payload: bytes, machine: Machine) -> Json:
    """Build a candidate, verify it on a small workload, predict its seconds on the whole one."""
    from tir_schedules.ladders.known import workload_class
    from tir_schedules.ladders.registry import find
    from tir_schedules.tuning.building.candidate import build
    from tir_schedules.tuning.cost.predictor import predicted_seconds
    from tir_schedules.tuning.space.tunable import space_of

    (own,) = find(task["rung"])
    rung = space_of(own.id).rung_at(task["point"])
    candidate = build(rung, workload_class(rung.family)(**task["workload"]), task["arch"])
    return {"seconds": [predicted_seconds(candidate)], "source": candidate.source}


ANSWERS: dict[str, Callable[[Json, bytes, Machine], Json]] = {
    "about": about,
    "time": time,
    "predict": predict,
}
