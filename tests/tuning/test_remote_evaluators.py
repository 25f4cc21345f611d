"""Evaluators that use servers: what travels arrives whole, and what a server refuses is refused here. The
servers answer in this process."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tir_schedules.bench.sampling import Policy
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.machines.choice import choose
from tir_schedules.tuning.building import workers
from tir_schedules.tuning.building.candidate import Unbuilt, build
from tir_schedules.tuning.measure import evaluator as local
from tir_schedules.tuning.measure import gpu_timing
from tir_schedules.tuning.measure.evaluator import LocalPredictor
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.tuning.remote import answers, evaluators
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

SHAPE, ARCH = Gemm(64, 64, 64), "sm_90"


class Servers:
    """Two servers whose answers are made here; what went there and back has been bytes and JSON."""

    count, arch, seen = 2, "sm_90", ()

    def __init__(self, name, device):
        self.name, self.device_name = name, device

    def close(self):
        pass

    def answer(self, request, payload, spent=None):
        self.seen = (json.loads(json.dumps(request)), bytes(payload))
        return json.loads(answers.answer(json.dumps(request), payload, self.name))


SPACE = space_of("sgemm/multistage")
RUNG = SPACE.rung_at(SPACE.point_of(SPACE.rung.configs["32x32"]))


@pytest.fixture(scope="module", autouse=True)
def one_process_builds():
    """In place of one for each evaluator, which takes seconds to start."""
    pool = workers.Workers(1, Timesheet())
    shared = SimpleNamespace(build=pool.build, close=lambda: None)
    with pytest.MonkeyPatch.context() as patch:
        for module in (evaluators, local):
            patch.setattr(module, "Workers", lambda count, spent: shared)
        yield
    pool.close()


@pytest.fixture
def evaluator_on():
    """Evaluators that are closed in the end."""
    made = []

    def make(servers):
        made.append(evaluators.evaluator_on(servers))
        return made[-1]

    yield make
    for evaluator in made:
        evaluator.close()


def test_a_server_without_a_gpu_predicts_what_is_predicted_here(evaluator_on):
    servers = Servers("cpu", "CPU machine")
    evaluator, here = evaluator_on(servers), LocalPredictor()
    assert (evaluator.kind, evaluator.device, evaluator.places) == ("predicted", "CPU machine", 2)
    assert evaluator.evaluate(RUNG, SHAPE, ARCH) == here.evaluate(RUNG, SHAPE, ARCH)
    here.close()
    assert servers.seen[0]["what"] == "predict"
    assert evaluator.compare([RUNG], SHAPE, ARCH) is None
    with pytest.raises(BadInput, match="no predictions for sm_87"):
        evaluator.check("sm_87")


def test_what_a_server_refuses_is_refused_here(evaluator_on):
    lost = replace(
        RUNG, config=replace(RUNG.config, bm=32, bn=256, wm=16, wn=16, wmiter=1, wniter=1, tm=2, tn=4, bk=8)
    )
    with pytest.raises(CheckFailed, match="region_cover"):
        evaluator_on(Servers("cpu", "CPU machine")).evaluate(lost, Gemm(512, 512, 512), ARCH)


def test_a_gpu_server_is_sent_a_pack(evaluator_on, monkeypatch):
    gpu = SimpleNamespace(name="gpu", arch=ARCH, device_name="NVIDIA H200", broken="")
    seen = []

    def timed_together(subjects, machine, policy):
        seen.append((subjects, machine, policy))
        return [CheckFailed("C[0, 0] is nan"), (2e-6, 3e-6)][-len(subjects) :]

    monkeypatch.setattr(
        "tir_schedules.machines.choice.choose", lambda name: gpu if name == "gpu" else choose(name)
    )
    monkeypatch.setattr(gpu_timing, "time_together", timed_together)
    servers = Servers("gpu", "NVIDIA H200")
    evaluator = evaluator_on(servers)
    assert (evaluator.kind, evaluator.device) == ("measured", "NVIDIA H200")
    cost = evaluator.evaluate(RUNG, SHAPE, ARCH)
    assert cost.seconds == (2e-6, 3e-6)
    refused, found = evaluator.compare([RUNG, RUNG], SHAPE, ARCH)
    assert isinstance(refused, CheckFailed) and str(refused) == "C[0, 0] is nan" and found == (2e-6, 3e-6)
    ((subject,), machine, quick), (both, _, thorough) = seen
    assert (quick, thorough, len(both)) == (gpu_timing.POLICY, Policy(), 2)
    assert machine is gpu and subject.workload == SHAPE and subject.name == "sgemm/multistage:tuned"
    here = build(RUNG, SHAPE, ARCH)
    assert cost.source == here.source
    assert (
        subject.binaries[0].cubin == here.binaries[0].cubin
        and subject.binaries[0].kernel.grid == here.kernels[0].grid
    )
    assert servers.answer({"what": "about"}, b"") == {"machine": "gpu", "arch": ARCH, "device": "NVIDIA H200"}


SUMS = space_of("reduce/vectorized")
SUM, REDUCTION = (
    SUMS.rung_at({"block": 128, "unroll": 2, "most_blocks": 131072}),
    Reduction(1 << 16, "float32"),
)


def test_a_sum_is_predicted_by_a_server_as_it_is_here(evaluator_on):
    here = LocalPredictor()
    assert evaluator_on(Servers("cpu", "CPU machine")).evaluate(SUM, REDUCTION, ARCH) == here.evaluate(
        SUM, REDUCTION, ARCH
    )
    here.close()


def test_a_gpu_server_is_sent_all_launches_of_a_sum(evaluator_on, monkeypatch):
    gpu, seen = SimpleNamespace(name="gpu", arch=ARCH, device_name="NVIDIA H200", broken=""), []
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: gpu)
    monkeypatch.setattr(
        gpu_timing, "time_together", lambda subjects, *_: seen.extend(subjects) or [(2e-6,)] * len(subjects)
    )
    evaluator = evaluator_on(Servers("gpu", "NVIDIA H200"))
    assert evaluator.evaluate(SUM, REDUCTION, ARCH).seconds == (2e-6,) and evaluator.compare(
        [SUM], REDUCTION, ARCH
    ) == [(2e-6,)]
    assert [[binary.kernel.grid[0] for binary in subject.binaries] for subject in seen] == [[64, 1]] * 2
    assert seen[0].workload == REDUCTION


def test_what_a_gpu_refuses_is_refused_here(evaluator_on, monkeypatch):
    monkeypatch.setattr(
        "tir_schedules.machines.choice.choose", lambda name: SimpleNamespace(name=name, broken="")
    )
    monkeypatch.setattr(
        gpu_timing, "time_together", lambda subjects, machine, policy: [CheckFailed("C[0, 0] is nan")]
    )
    with pytest.raises(CheckFailed, match=r"^C\[0, 0\] is nan$"):
        evaluator_on(Servers("gpu", "NVIDIA H200")).evaluate(RUNG, SHAPE, ARCH)


def test_what_a_server_cannot_do_says_nothing_of_the_candidate(evaluator_on, monkeypatch):
    def missing(name):
        raise MissingTool("nvcc is gone")

    monkeypatch.setattr("tir_schedules.machines.choice.choose", missing)
    with pytest.raises(Unbuilt, match="^nvcc is gone$"):
        evaluator_on(Servers("cpu", "CPU machine")).evaluate(RUNG, SHAPE, ARCH)
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: SimpleNamespace(name=name))
    assert (
        "is no pack"
        in json.loads(answers.answer('{"what": "time", "together": false}', b"junk", "gpu"))["error"]
    )
    assert "JSONDecodeError" in json.loads(answers.answer("junk", b"", "gpu"))["error"]
