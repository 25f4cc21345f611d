"""experiments/many_shapes.py: drawn shapes, and which configurations are packed beside what is chosen."""

import json
import zipfile

import many_shapes
import pytest

from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"


@pytest.fixture
def script(calling):
    return calling(many_shapes.main)


def test_without_a_number_the_thirty_are_options_of_bench(script):
    code, out, err = script()
    assert (
        (code, err) == (0, "") and out.startswith("--mnk 256,256,256 --mnk 512") and out.count("--mnk") == 30
    )


def test_drawn_shapes_are_shown(script):
    code, out, _ = script("hgemm/fastest", "--random", 3, "--seed", 101)
    assert code == 0 and out.split("\n")[1].split() == ["square", "160x160x160", "nt", "float16"]
    code, out, _ = script("--random", 3, "--seed", 101)
    assert code == 0 and out.split("\n")[3].split() == ["odd", "99x103x145"]


@pytest.mark.parametrize("words, message", [
    ("sgemm", "--random N is missing: say how many shapes are to be drawn"),
    ("--seed 1", "--random N is missing"),
    ("sgem --random 2", "there is no ladder 'sgem'; shapes are drawn for sgemm and hgemm"),
    ("reduce --random 2", "--random draws M, N and K; reduce has N"),
    ("sgemm --random 0", "--random takes a number of shapes from 1 to 1000, not 0"),
    ("sgemm --random two", "--random takes a whole number such as 24, not 'two'"),
    ("sgemm --random 2 --configs", "--configs goes with --pack"),
    ("sgemm --random 2 --pack a.zip", "name its architecture"),
    ("sgemm --random 2 --pack a.tar --arch sm_90a", "the name of a pack must end with .zip"),
    ("--random 2 --pack a.zip --arch sm_90a", "--pack takes a ladder: sgemm or hgemm"),
])  # fmt: skip
def test_what_cannot_be_is_said_in_one_line(script, words, message):
    code, out, err = script(*words.split())
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_the_first_and_a_few_drawn_of_the_others_are_timed():
    workload = HalfGemm(1536, 1536, 1536, "nt", "float32", output="float16")
    ranked = many_shapes.ranked("hgemm", workload, ARCH)
    some = many_shapes.by_rule("hgemm", workload, ARCH, 7)
    assert some[:12] == ranked[:12] and len(some) == 16 == len(set(map(str, some)))
    assert many_shapes.by_rule("hgemm", workload, ARCH, 7) == some
    assert many_shapes.by_rule("hgemm", workload, ARCH, 8) != some


def test_what_is_estimated_to_be_far_slower_is_not_drawn(monkeypatch):
    monkeypatch.setattr(many_shapes, "BESIDE", 1000)
    workload = Gemm(1000, 3000, 500)
    ranked, some = (
        many_shapes.ranked("sgemm", workload, ARCH),
        many_shapes.by_rule("sgemm", workload, ARCH, 7),
    )
    most = 3 * ranked[0].estimate.microseconds
    assert 12 < len(some) == sum(one.estimate.microseconds <= most for one in ranked) < len(ranked)


def test_a_pack_says_what_was_drawn_and_chosen(script, tmp_path, monkeypatch):
    monkeypatch.setattr(many_shapes, "FIRST", 1)
    monkeypatch.setattr(many_shapes, "BESIDE", 1)
    path = tmp_path / "a.zip"
    code, out, _ = script(
        "sgemm", "--random", 1, "--seed", 101, "--configs", "--pack", path, "--arch", "sm_90"
    )
    assert code == 0 and "packed 2 schedules, 3 kernels for sm_90" in out
    manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
    note = manifest["about"]["drawn"]
    assert note["kinds"] == {"160x160x160": "square"} and (note["seed"], note["shapes"]) == (101, 1)
    chosen = note["chosen"]["160x160x160"]
    names = [one["name"] for one in manifest["subjects"] if one["form"] == "schedule"]
    assert names[0] == chosen and note["estimated"]["160x160x160"].keys() == set(names) and len(names) == 2
    assert note["rule"] == many_shapes.RULE and manifest["about"]["git_revision"]
    assert {one["form"] for one in manifest["subjects"]} == {"schedule", "vendor"}
