"""Timers that use servers: what travels arrives whole, and what a server refuses is refused here. The servers answer in this process."""
import json
from types import SimpleNamespace

import pytest

from tir_schedules.bench.sampling import Policy
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.choice import choose
from tir_schedules.tuning import answers, remote, running
from tir_schedules.tuning.building import built, emitted
from tir_schedules.tuning.spaces import space_of
from tir_schedules.workloads.gemm import Gemm

SHAPE = Gemm(64, 64, 64)


class Servers:
    """Two servers whose answers are made here; what went there and back has been bytes and JSON."""

    workers, arch, seen = 2, "sm_90", ()

    def __init__(self, name, device):
        self.name, self.device_name = name, device

    def answer(self, request, payload):
        self.seen = (json.loads(json.dumps(request)), bytes(payload))
        return json.loads(answers.answer(json.dumps(request), payload, self.name))


@pytest.fixture(scope="module")
def kernels():
    """A point of a space, emitted."""
    space = space_of("sgemm/multistage")
    return emitted(space.rung_at(next(space.points(SHAPE, "sm_90"))), SHAPE, "sm_90")


def test_a_server_without_a_gpu_predicts_what_is_predicted_here(kernels):
    servers = Servers("cpu", "CPU machine")
    timer = remote.timer_on(servers)
    assert (timer.kind, timer.device, timer.at_once) == ("predicted", "CPU machine", 2)
    assert timer.seconds(kernels) == running.Predicting().seconds(kernels)
    assert servers.seen[0]["what"] == "predict"
    assert timer.compared([kernels]) is None
    with pytest.raises(BadInput, match="no predictions for sm_87"):
        timer.check("sm_87")


def test_what_the_cpu_machine_objects_to_is_refused(kernels):
    from dataclasses import replace

    broken = replace(kernels.small_kernel, source=kernels.small_kernel.source.replace("__syncthreads();", ""))
    with pytest.raises(CheckFailed, match="uninitialized: reads shared memory"):
        remote.timer_on(Servers("cpu", "CPU machine")).seconds(replace(kernels, small_kernel=broken))


def test_a_gpu_server_is_sent_a_pack(kernels, monkeypatch):
    gpu = SimpleNamespace(name="gpu", arch="sm_90", device_name="NVIDIA H200")
    seen = []
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: gpu if name == "gpu" else choose(name))

    def timed_together(subjects, machine, policy):
        seen.append((subjects, machine, policy))
        return [CheckFailed("C[0, 0] is nan"), (2e-6, 3e-6)][-len(subjects) :]

    monkeypatch.setattr(running, "timed_together", timed_together)
    servers = Servers("gpu", "NVIDIA H200")
    timer = remote.timer_on(servers)
    assert (timer.kind, timer.device) == ("measured", "NVIDIA H200")
    assert timer.seconds(kernels) == (2e-6, 3e-6)
    refused, found = timer.compared([kernels, kernels])
    assert isinstance(refused, CheckFailed) and str(refused) == "C[0, 0] is nan" and found == (2e-6, 3e-6)
    (((subject,), machine, quick), (both, _, thorough)) = seen
    assert (quick, thorough, len(both)) == (running.POLICY, Policy(), 2)
    assert machine is gpu and subject.workload == SHAPE and subject.name == "sgemm/multistage:tuned"
    assert subject.binaries[0].cubin == built(kernels).binary.cubin and subject.binaries[0].kernel.grid == kernels.kernel.grid
    assert servers.answer({"what": "about"}, b"") == {"machine": "gpu", "arch": "sm_90", "device": "NVIDIA H200"}


def test_what_a_gpu_refuses_is_refused_here(kernels, monkeypatch):
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(running, "timed_together", lambda subjects, machine, policy: [CheckFailed("C[0, 0] is nan")])
    timer = remote.timer_on(Servers("gpu", "NVIDIA H200"))
    with pytest.raises(CheckFailed, match=r"^C\[0, 0\] is nan$"):
        timer.seconds(kernels)
    assert "is no pack" in json.loads(answers.answer('{"what": "time", "together": false}', b"junk", "gpu"))["error"]
    assert "JSONDecodeError" in json.loads(answers.answer("junk", b"", "gpu"))["error"]
