"""Several GPUs of one computer, without any: which of them, and what becomes of a process that ends."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from tir_schedules.bench.sampling import Policy
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.ladders.registry import find
from tir_schedules.machines import gpu
from tir_schedules.tuning.building.candidate import Unbuilt
from tir_schedules.tuning.building.pool import Ended, Late, Lost, Place, Useless
from tir_schedules.tuning.measure import evaluator as evaluators
from tir_schedules.tuning.measure import gpu_timing, gpus
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.workloads.reduction import Reduction

NAMES = ("NVIDIA H200", "NVIDIA T4", "NVIDIA H200")


def machine_of(names, monkeypatch, visible=None):
    """A GpuMachine as far as it knows the GPUs of its computer."""
    runtime = SimpleNamespace(
        getDeviceCount=lambda: len(names), getDeviceProperties=lambda number: {"name": names[number].encode()}
    )
    made = object.__new__(gpu.GpuMachine)
    made.cupy, made.device = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)), SimpleNamespace(id=0)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    return made


def test_all_gpus_like_the_first_measure(monkeypatch):
    assert machine_of(NAMES, monkeypatch).alike() == ["0", "2"]
    assert machine_of(NAMES, monkeypatch, "4,5,GPU-7").alike() == ["4", "GPU-7"]
    evaluator = evaluators.evaluator_for(machine_of(NAMES, monkeypatch))
    assert isinstance(evaluator, evaluators.SeveralGpus) and evaluator.places == 2
    assert [place.environment for place in evaluator.gpus.all] == [
        {"CUDA_VISIBLE_DEVICES": "0"},
        {"CUDA_VISIBLE_DEVICES": "2"},
    ]
    evaluator.close()
    assert isinstance(evaluators.evaluator_for(machine_of(NAMES[:2], monkeypatch)), evaluators.OneGpu)


@pytest.mark.parametrize(
    "answers, expected",
    [
        ([[(1e-6,)]], [(1e-6,)]),
        ([Ended("exit code 1"), [(1e-6,)]], [(1e-6,)]),
        ([Ended("exit code 1")] * 2, "^the GPU's process ended \\(exit code 1\\), 2 times$"),
        (
            [Ended("exit code 1"), Lost("GPU 0 cannot be used, and there is no other")],
            "^GPU 0 .*there is no other",
        ),
        ([Late("not done after 120 s")], "^not done after 120 s$"),
        ([Unbuilt("no room")], "^no room$"),
    ],
)
def test_a_process_that_ends_is_tried_once_more(answers, expected):
    def ask(request):
        found = answers.pop(0)
        if isinstance(found, (Ended, Lost)):
            raise found
        return found

    several = gpus.Gpus([Place({})], Timesheet())
    several.ask = ask
    if isinstance(expected, str):
        with pytest.raises((CheckFailed, Lost), match=expected):
            several.timed([], together=False)
    else:
        assert several.timed([], together=False) == expected
    assert not answers


def test_what_goes_wrong_in_a_process_is_its_answer(monkeypatch):
    there, seen = SimpleNamespace(broken=""), []

    def timed_together(subjects, machine, policy):
        seen.append(policy)
        if subjects == ["odd"]:
            raise RuntimeError("device\nlost")
        if subjects == ["bad"]:
            machine.broken = "a kernel (illegal address)"
            raise CheckFailed("illegal address")
        return [(1e-6,) for _ in subjects]

    monkeypatch.setattr(gpus, "time_together", timed_together)
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: there)
    session, other = gpus.Session(), gpus.Session()
    assert isinstance(other.answer((["odd"], False)), Unbuilt) and other.lost, "so that it begins anew"
    seen.clear()
    assert session.answer((["one"], False)) == [(1e-6,)] and not session.lost
    assert session.answer((["one", "two"], True)) == [(1e-6,)] * 2
    assert seen == [gpu_timing.POLICY, Policy()]
    refused = session.answer((["bad"], False))
    assert type(refused) is CheckFailed and session.lost

    def missing(name):
        raise MissingTool("CUDA shows no GPU")

    monkeypatch.setattr("tir_schedules.machines.choice.choose", missing)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    found = gpus.Session().answer((["one"], False))
    assert isinstance(found, Useless) and str(found) == "GPU 2 cannot be used: CUDA shows no GPU"
    assert type(pickle.loads(pickle.dumps(found))) is Useless


def test_what_is_asked_of_a_process_can_be_sent():
    rung, sums = find("reduce/vectorized")[0], Reduction(4096)
    subject = gpu_timing.subject_of(rung, sums, [compile_kernel(lower(rung, sums, "sm_80"))])
    assert pickle.loads(pickle.dumps(([subject], True))) == ([subject], True)


def test_searches_take_turns_on_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    with ThreadPoolExecutor(2) as threads, gpu_timing.turn_on("0000:19:00.0"):
        with gpu_timing.turn_on("0000:1A:00.0"):
            other = threads.submit(lambda: gpu_timing.turn_on("0000:19:00.0").__enter__())
            assert not wait([other], timeout=0.5).done
    other.result(60)
