"""The database of tuning records: what is added is there, and what is damaged, changed or stale is refused
with its reason."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from made_records import add_many, filled, record

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find_one
from tir_schedules.tuning.records import journal, records
from tir_schedules.tuning.records.records import (
    Database,
    Record,
    believed,
    best,
    latest,
    shipped,
    shipped_records,
    source_hash,
    why_stale,
)
from tir_schedules.tuning.space.small import small
from tir_schedules.tuning.space.spaces import TUNABLE, space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_records_come_back_as_they_were(path):
    made = [
        record(),
        record(1, seconds=(), error="a race\non line 3: é"),
        record(2, metaschedule=[["a", {"b": None}], 1.5]),
    ]
    database = Database(path)
    assert database.records() == []
    for one in made:
        database.append(one)
    assert database.records() == made == Database(path).records()
    assert database.torn == ""
    entry = json.loads(path.read_text().splitlines()[2])
    assert entry.pop("checksum") == journal.checksum(entry)


def test_two_databases_see_what_the_other_adds(path):
    one, other = Database(path), Database(path)
    one.append(record(0))
    other.append(record(1))
    assert [r.trial for r in one.records()] == [r.trial for r in other.records()] == [0, 1]


def test_processes_that_append_at_the_same_time_lose_nothing(path):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    writers = [context.Process(target=add_many, args=(path, first, together)) for first in (0, 50)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    trials = [r.trial for r in Database(path).records()]
    assert sorted(trials) == list(range(100))
    assert [t for t in trials if t < 50] == list(range(50))


@pytest.mark.parametrize("fields, reason", [
    ({"kind": "guessed"}, "kind is 'guessed'"),
    ({"seconds": (0.0,)}, "not positive"),
    ({"seconds": (float("nan"),)}, "not positive"),
    ({"seconds": ()}, "either seconds or an error"),
    ({"error": "wrong"}, "either seconds or an error"),
    ({"family": "hgemm"}, "rung is 'sgemm/pipelined' and its family 'hgemm'"),
    ({"workload": {"m": 1, "n": 1}}, "workload"),
    ({"workload": {"m": 0, "n": 1, "k": 1}}, "M is 0"),
    ({"point": "bm"}, "point is 'bm'"),
])  # fmt: skip
def test_a_record_that_cannot_be_is_not_made(fields, reason):
    with pytest.raises(ValueError, match=reason):
        record(**fields)


@pytest.mark.parametrize("old, new, reason", [
    (b'"seconds":[0.5', b'"seconds":[0.4', "it does not fit its checksum"),
    (b'"trial":1', b'"trial":11', "it does not fit its checksum"),
    (b'"checksum":"', b'"checksum":"0', "it does not fit its checksum"),
    (b'"checksum"', b'"checksam"', "it has no checksum"),
    (b'"seconds":[', b'"seconds":', "it is not JSON"),
])  # fmt: skip
def test_a_line_that_was_changed_is_refused(path, old, new, reason):
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(old, new)
    path.write_bytes(b"".join(lines))
    with pytest.raises(CheckFailed) as error:
        Database(path)
    assert str(error.value).startswith(f"{path}, line 2: {reason}") and "\n" not in str(error.value)


@pytest.mark.parametrize("change, reason", [
    ({"seconds": ["fast"]}, "its seconds are"),
    ({"more": 1}, "it is no record: more is missing or too much"),
    ({"workload": {}}, "its workload is"),
    ({"workload": {"m": 256.5, "n": 256, "k": 64}}, "workload.m: 256.5 is not an integer"),
    ({"workload": {"m": True, "n": 256, "k": 64}}, "workload.m: true is not an integer"),
    ({"mo\x1bre" + "x" * 9999: 1}, r"it is no record: mo\\x1brexxx"),
    ({"trial": True}, "trial: true is not an integer"),
    ({"trial": -1}, "trial: -1"),
    ({"seconds": [True]}, r"seconds\[0\]: true is no number"),
    ({"versions": {"nvcc": 13}}, "versions.nvcc: 13 is no text"),
    ({"device": "a\x1bc"}, "device: 'a.x1bc' has control characters"),
    ({"point": {"bm": [1]}}, "point.bm: a list is no single value"),
])  # fmt: skip
def test_a_line_with_a_good_checksum_that_is_no_record_is_refused(path, change, reason):
    filled(path)
    journal.append(path, {**asdict(record()), **change})
    with pytest.raises(CheckFailed, match=f"line 4: {reason}") as error:
        Database(path)
    assert error.value.exit_code == 2 and len(str(error.value)) < 1000


@pytest.mark.parametrize("make, reason", [
    (lambda path: path.mkdir(), "cannot write .*file in a folder that exists"),
    (lambda path: path.write_text("# notes\n"), "no file of tuning records"),
    (lambda path: path.write_text("{}"), "no file of tuning records"),
    (lambda path: path.write_bytes(bytes(64)), "no file of tuning records"),
    (lambda path: path.write_bytes(b"\xff\xfe\n"), "no file of tuning records"),
    (lambda path: os.mkfifo(path), "no regular file"),
    (lambda path: path.symlink_to(path), "symbolic link"),
])  # fmt: skip
def test_what_is_no_database_is_refused_in_one_line_and_left_alone(path, make, reason):
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(BadInput, match=reason) as error:
        Database(path)
    assert "\n" not in str(error.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_file_in_no_folder_is_refused_before_anything_is_tried(path):
    with pytest.raises(BadInput, match="folder that exists"):
        Database(path / "records.jsonl")


def test_the_best_is_the_fastest_of_what_is_asked_for_and_measured_before_predicted():
    big = Gemm(512, 256, 64)
    found = [
        record(0, seconds=(3.0, 1.0, 1.1)), record(1, seconds=(1.2, 1.2, 1.2)), record(2, seconds=(),
            error="wrong"),
        record(3, big, seconds=(0.1,)), record(4, device="NVIDIA L4", seconds=(0.2,)), record(5,
            kind="predicted", seconds=(0.001,)),
    ]  # fmt: skip
    here = {"rung": "sgemm/pipelined", "device": "NVIDIA H200"}
    assert best(found, **here, workload=asdict(Gemm(256, 256, 64))).trial == 0
    assert best(found, **here, workload=asdict(big)).trial == 3
    assert best(found, **here, workload=asdict(Gemm(512, 512, 64))) is None
    assert best(found, rung="sgemm/multistage") is None
    assert best(found, **here | {"device": "NVIDIA L4"}, workload=asdict(big)) is None
    assert best([record(error="wrong", seconds=())]) is None
    assert best([record(7, kind="predicted")]).trial == 7


def test_a_later_record_of_a_point_takes_the_place_of_the_first():
    again = record(0, seconds=(2.0,))
    assert latest([record(0, seconds=(1.0,)), record(1, seconds=(1.5,)), again]) == [
        again,
        record(1, seconds=(1.5,)),
    ]
    assert best([record(0, seconds=(1.0,)), record(1, seconds=(1.5,)), again]).trial == 1


def test_shipped_records_are_those_of_the_gpu(path, monkeypatch):
    monkeypatch.setattr(records, "SHIPPED", path.parent)
    assert shipped("NVIDIA H200") == path.parent / "nvidia_h200.jsonl"
    assert shipped_records("NVIDIA H200") == []
    Database(shipped("NVIDIA H200")).append(record())
    assert shipped_records("NVIDIA H200") == [record()]
    assert shipped_records("NVIDIA L4") == []


def test_records_that_are_shipped_hold_today():
    """The CUDA that each schedule emits is what was measured, by the same compilers."""
    found = shipped_records("NVIDIA H200")
    shapes = {rung: {r.problem for r in found if r.rung == rung} for rung in {r.rung for r in found}}
    assert all(len(each) >= 5 for each in shapes.values()) and set(shapes) == set(TUNABLE)
    assert all(
        r.kind == "measured" and len(r.revision) == 40 and r.versions["nvcc"] and r.date for r in found
    )
    assert [why_stale(r, "NVIDIA H200") for r in found] == [""] * len(found)


def test_records_of_a_package_that_ships_none():
    assert shipped_records("a GPU that nobody has") == []


# what a record is about, made again

SHAPE = Gemm(
    128, 128, 32
)  # as small as it gets: `small` leaves it as it is, so that one compilation serves all tests
TILE = {"bm": 64, "bn": 64, "wm": 32, "wn": 32, "wmiter": 1, "wniter": 2, "tm": 4, "tn": 4}


def fresh(workload=SHAPE, tile=TILE, **changes) -> Record:
    """A record of sgemm/pipelined as a search would make it now."""
    from tir_schedules.compiler.lower import lower

    space = space_of("sgemm/pipelined")
    point = {**space.point_of(space.rung.config), **tile}
    source = source_hash(lower(space.rung_at(point), workload, "sm_90").source)
    return replace(
        record(0, workload, point=point, source=source, versions=records.versions_now()), **changes
    )


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


def test_a_refused_candidate_is_not_believed(sound):
    with pytest.raises(CheckFailed, match="was refused: a race"):
        believed(replace(sound, error="a race", seconds=()))


def test_a_sound_record_is_believed_and_its_kernel_verified(sound):
    belief = believed(sound)
    assert belief.outcome.ok and belief.seconds == () and belief.rung.id == "sgemm/pipelined:tuned"


def test_a_kernel_that_is_wrong_is_not_believed(sound, monkeypatch):
    from tir_schedules.compiler import lower as lowering

    space, lower = space_of(sound.rung), lowering.lower

    def without_barriers(rung, workload, arch):
        kernel = lower(rung, workload, arch)
        return replace(kernel, source=kernel.source.replace("__syncthreads();", ""))

    monkeypatch.setattr(lowering, "lower", without_barriers)
    source = without_barriers(space.rung_at(sound.point), SHAPE, "sm_90").source
    with pytest.raises(CheckFailed, match="is wrong on 128x128x32: .*race: .*no __syncthreads"):
        believed(replace(sound, source=source_hash(source)))


def timed_as(monkeypatch, *seconds, refused: str = ""):
    """A GPU on which everything takes these seconds, or is refused."""
    from tir_schedules.tuning.measure import running

    def timed(subject, machine, policy):
        assert subject.binaries and machine is gpu
        if refused:
            raise CheckFailed(refused)
        return seconds

    gpu = SimpleNamespace(name="gpu", device_name="NVIDIA H200")
    monkeypatch.setattr(running, "timed", timed)
    return gpu


def test_a_time_that_is_the_recorded_one_is_believed(sound, monkeypatch):
    gpu = timed_as(monkeypatch, 105e-6, 104e-6, 300e-6)
    assert believed(replace(sound, seconds=(1e-4,)), gpu).seconds == (105e-6, 104e-6, 300e-6)


@pytest.mark.parametrize("us", [112, 80])
def test_a_time_that_is_another_is_refused(sound, monkeypatch, us):
    gpu = timed_as(monkeypatch, us * 1e-6)
    with pytest.raises(CheckFailed, match=f"takes {us} us here, not 100 us as recorded"):
        believed(replace(sound, seconds=(1e-4,)), gpu)


def test_what_the_benchmark_refuses_is_refused(sound, monkeypatch):
    gpu = timed_as(monkeypatch, refused="C[0, 0] is nan")
    with pytest.raises(CheckFailed, match=r"C\[0, 0\] is nan"):
        believed(sound, gpu)


@pytest.fixture(scope="module")
def sum_record() -> Record:
    """Of reduce/vectorized as a search would make it now: two launches."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.run import launches

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
        "versions": records.versions_now(),
    }
    return record(0, reduction, **made)


def test_a_sum_is_believed_with_all_its_launches(sum_record, monkeypatch):
    from tir_schedules.tuning.measure import running

    assert believed(sum_record).outcome.ok and why_stale(sum_record) == ""
    gpu = SimpleNamespace(name="gpu", device_name="NVIDIA H200")
    timed = []
    monkeypatch.setattr(running, "timed", lambda subject, *_: timed.append(subject) or sum_record.seconds)
    assert believed(sum_record, gpu).seconds == sum_record.seconds
    assert [binary.kernel.grid[0] for binary in timed[0].binaries] == [64, 1]


@pytest.mark.parametrize("launch", [64, 1])
def test_other_cuda_of_any_launch_makes_a_sum_stale(sum_record, monkeypatch, launch):
    from tir_schedules.compiler import lower as lowering

    lower = lowering.lower

    def changed(rung, workload, arch):
        kernel = lower(rung, workload, arch)
        return replace(kernel, source=kernel.source + "//") if kernel.grid[0] == launch else kernel

    monkeypatch.setattr(lowering, "lower", changed)
    assert "emits other CUDA today" in why_stale(sum_record)


def test_the_hash_of_one_launch_is_that_of_its_source():
    assert source_hash("a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert len({source_hash(*sources) for sources in (("a", "b"), ("ab",), ("b", "a"), ("a",))}) == 4


@pytest.mark.gpu
def test_a_record_is_timed_again_on_a_gpu(tmp_path):
    from tir_schedules.machines.gpu import GpuMachine

    machine = GpuMachine()
    sound = fresh(Gemm(2048, 2048, 2048), {}, device=machine.device_name, seconds=(1.0,))
    with pytest.raises(CheckFailed, match="not 1e\\+06 us as recorded") as error:
        believed(sound, machine)
    took = float(str(error.value).split(" takes ")[1].split(" us")[0]) / 1e6
    assert believed(replace(sound, seconds=(took,)), machine).seconds


@pytest.mark.parametrize("workload, expected", [
    (Gemm(4096, 4096, 4096), (256, 384, 32)),  # 512 tiles along K are an even number, as 4 are
    (Gemm(1000, 130, 65), (232, 130, 17)),  # 9 tiles, as 3
    (Gemm(100, 90, 7), (100, 90, 7)),
])  # fmt: skip
def test_a_small_workload_has_the_same_ragged_ends(workload, expected):
    rung = find_one("sgemm/pipelined", "tune")
    assert small(rung, workload) == (rung, Gemm(*expected))


@pytest.mark.parametrize("columns, expected", [(64, 6), (48, 6), (63, 3), (16, 2), (4, 2), (20, 6), (1, 1)])
def test_a_small_product_keeps_its_kind_and_whether_there_are_stripes(columns, expected):
    """The stripes of mma_multistage are of 16 columns of blocks at most, as many as divide the number of
    all."""
    rung = find_one("hgemm/mma_multistage", "tune")
    whole = HalfGemm(8192, 128 * columns, 8192, "nn", "float32")
    reduced, found = small(rung, whole)
    assert reduced == rung
    assert found == HalfGemm(512, 128 * expected, 64 * 5, "nn", "float32")
    several = [rung.launch(product, rung.config).grid[2] > 1 for product in (whole, found)]
    assert several[0] == several[1]
