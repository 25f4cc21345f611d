"""Whether a record holds today: what makes it stale, and what building, verifying and timing it finds."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from made_records import record

from tir_schedules.compiler.lower import lower
from tir_schedules.errors import CheckFailed
from tir_schedules.run import launches
from tir_schedules.tuning.measure import validation
from tir_schedules.tuning.measure.validation import rebuild, validated
from tir_schedules.tuning.records.database import shipped_records
from tir_schedules.tuning.records.record import Record, source_hash, versions_now
from tir_schedules.tuning.space.tunable import TUNABLE, space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

SHAPE = Gemm(128, 128, 32)
"""As small as it gets: `small` leaves it as it is, so that one compilation serves all tests."""
TILE = {"bm": 64, "bn": 64, "wm": 32, "wn": 32, "wmiter": 1, "wniter": 2, "tm": 4, "tn": 4}


def test_records_that_are_shipped_hold_today():
    """The CUDA that each schedule emits is what was measured, by the same compilers."""
    found = shipped_records("NVIDIA H200")
    shapes = {rung: {r.problem for r in found if r.rung == rung} for rung in {r.rung for r in found}}
    assert all(len(each) >= 5 for each in shapes.values()) and set(shapes) <= set(TUNABLE)
    assert all(
        r.kind == "measured" and len(r.revision) == 40 and r.versions["nvcc"] and r.date for r in found
    )
    assert [why_stale(r, "NVIDIA H200") for r in found] == [""] * len(found)


def why_stale(found, device=None):
    """Why a record does not hold any more; empty when it does."""
    try:
        rebuild(found, device)
    except CheckFailed as error:
        return str(error)
    return ""


def fresh(workload=SHAPE, tile=TILE, **changes) -> Record:
    """A record of sgemm/pipelined as a search would make it now."""
    space = space_of("sgemm/pipelined")
    point = {**space.point_of(space.rung.config), **tile}
    source = source_hash(lower(space.rung_at(point), workload, "sm_90").source)
    return replace(record(0, workload, point=point, source=source, versions=versions_now()), **changes)


@pytest.fixture(scope="module")
def sound() -> Record:
    return fresh()


def test_a_record_that_nothing_has_changed_for_is_not_stale(sound):
    assert why_stale(sound) == why_stale(sound, "NVIDIA H200") == ""


def test_another_device_makes_it_stale(sound):
    assert "stale: it was measured on NVIDIA H200, this is NVIDIA L4; tune again" in why_stale(
        sound, "NVIDIA L4"
    )


def test_other_versions_make_it_stale(sound):
    for name in ("apache-tvm", "nvcc"):
        assert f"stale: {name} was 0.1, it is" in why_stale(
            replace(sound, versions={**sound.versions, name: "0.1"})
        )
    assert "nvcc was unknown" in why_stale(
        replace(sound, versions={"apache-tvm": sound.versions["apache-tvm"]})
    )


def test_the_project_s_version_matters_to_predictions_alone(sound):
    older = replace(sound, versions={**sound.versions, "tir_schedules": "0.0.1"})
    assert why_stale(older) == ""
    assert "tir_schedules was 0.0.1" in why_stale(replace(older, kind="predicted"))


def test_other_cuda_makes_it_stale(sound):
    assert "emits other CUDA today" in why_stale(replace(sound, source="0" * 64))
    assert "emits other CUDA today" in why_stale(replace(sound, workload=asdict(Gemm(128, 128, 64))))


def test_a_point_outside_the_space_is_refused_with_the_reason_of_the_constraint(sound):
    space = space_of(sound.rung)
    point = {**sound.point, "bm": 64, "wm": 128}
    reason = space.refusal(point, SHAPE, "sm_90")
    assert reason and f"stale: {reason}; tune again" in why_stale(replace(sound, point=point))
    assert "bm can be" in why_stale(replace(sound, point={**sound.point, "bm": 65}))
    assert "a point of sgemm/pipelined has" in why_stale(replace(sound, point={"bm": 64}))
    assert "sgemm/naive" in why_stale(replace(sound, rung="sgemm/naive"))


def test_a_refused_candidate_is_not_validated(sound):
    with pytest.raises(CheckFailed, match="was refused: a race"):
        validated(replace(sound, error="a race", seconds=()))


def test_a_sound_record_is_valid_and_its_kernel_verified(sound):
    assert validated(sound).id == "sgemm/pipelined:tuned"


def test_a_kernel_that_is_wrong_is_not_validated(sound, monkeypatch):
    space = space_of(sound.rung)

    def without_barriers(rung, workload, arch):
        kernel = lower(rung, workload, arch)
        return replace(kernel, source=kernel.source.replace("__syncthreads();", ""))

    monkeypatch.setattr(validation, "lower", without_barriers)
    source = without_barriers(space.rung_at(sound.point), SHAPE, "sm_90").source
    with pytest.raises(CheckFailed, match="is wrong on 128x128x32: .*race: .*no __syncthreads"):
        validated(replace(sound, source=source_hash(source)))


def timing_name(monkeypatch, *seconds, refused: str = ""):
    """A GPU on which everything takes these seconds, or is refused."""

    def timed(subject, machine, policy):
        assert subject.binaries and machine is gpu
        if refused:
            raise CheckFailed(refused)
        return seconds

    gpu = SimpleNamespace(name="gpu", device_name="NVIDIA H200")
    monkeypatch.setattr(validation, "time_subject", timed)
    return gpu


def test_a_time_that_is_the_recorded_one_is_validated(sound, monkeypatch):
    gpu = timing_name(monkeypatch, 105e-6, 104e-6, 300e-6)
    assert validated(replace(sound, seconds=(1e-4,)), gpu).config == validated(sound).config


@pytest.mark.parametrize("us", [112, 80])
def test_a_time_that_is_another_is_refused(sound, monkeypatch, us):
    gpu = timing_name(monkeypatch, us * 1e-6)
    with pytest.raises(CheckFailed, match=f"takes {us} us here, not 100 us as recorded"):
        validated(replace(sound, seconds=(1e-4,)), gpu)


def test_what_the_benchmark_refuses_is_refused(sound, monkeypatch):
    gpu = timing_name(monkeypatch, refused="C[0, 0] is nan")
    with pytest.raises(CheckFailed, match=r"C\[0, 0\] is nan"):
        validated(sound, gpu)


@pytest.fixture(scope="module")
def reduction_record() -> Record:
    """Of reduce/vectorized as a search would make it now: two launches."""
    space, reduction = space_of("reduce/vectorized"), Reduction(1 << 16, "float32")
    point = {"block": 128, "unroll": 2, "most_blocks": 131072}
    source = source_hash(
        *(kernel.source for kernel in launches(lower, space.rung_at(point), reduction, "sm_90"))
    )
    made = {
        "rung": space.rung.id,
        "family": "reduce",
        "point": point,
        "source": source,
        "versions": versions_now(),
    }
    return record(0, reduction, **made)


def test_a_reduction_is_valid_with_all_its_launches(reduction_record, monkeypatch):
    assert validated(reduction_record) and why_stale(reduction_record) == ""
    gpu = SimpleNamespace(name="gpu", device_name="NVIDIA H200")
    timed = []
    monkeypatch.setattr(
        validation, "time_subject", lambda subject, *_: timed.append(subject) or reduction_record.seconds
    )
    assert validated(reduction_record, gpu)
    assert [binary.kernel.grid[0] for binary in timed[0].binaries] == [64, 1]


@pytest.mark.parametrize("launch", [64, 1])
def test_other_cuda_of_any_launch_makes_a_reduction_stale(reduction_record, monkeypatch, launch):
    def changed(rung, workload, arch):
        kernel = lower(rung, workload, arch)
        return replace(kernel, source=kernel.source + "//") if kernel.grid[0] == launch else kernel

    monkeypatch.setattr(validation, "lower", changed)
    assert "emits other CUDA today" in why_stale(reduction_record)


def test_the_hash_of_one_launch_is_that_of_its_source():
    assert source_hash("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert len({source_hash(*sources) for sources in (("a", "b"), ("ab",), ("b", "a"), ("a",))}) == 4


@pytest.mark.gpu
def test_a_record_is_timed_again_on_a_gpu(tmp_path):
    from tir_schedules.machines.gpu import GpuMachine

    machine = GpuMachine()
    sound = fresh(Gemm(2048, 2048, 2048), {}, device=machine.device_name, seconds=(1.0,))
    with pytest.raises(CheckFailed, match="not 1e\\+06 us as recorded") as error:
        validated(sound, machine)
    took = float(str(error.value).split(" takes ")[1].split(" us")[0]) / 1e6
    assert validated(replace(sound, seconds=(took,)), machine)
