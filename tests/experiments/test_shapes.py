"""The script that tries every combination of shapes."""

import os
from collections import Counter
from itertools import combinations

import pytest
import shapes
from shape_cases import ALL, KINDS, PAIRWISE, Case, cases, cases_of, sizes_along, smallest_config, tile_along

from tir_schedules.ladders.problems import Problem, workloads_of
from tir_schedules.ladders.registry import FAMILIES, every_rung
from tir_schedules.workloads.gemm import Gemm

RUNGS = every_rung("sgemm", "hgemm")


def test_all_combinations_of_every_rung_in_every_kind():
    found = cases(FAMILIES, ALL)
    assert len(set(map(str, found))) == len(found)
    per_row = Counter(case.row for case in found if not case.rung.startswith("reduce"))
    works = [
        (rung.id, work) for rung in RUNGS for work in workloads_of(rung, Problem(rung.family, (64, 64, 64)))
    ]
    kinds = {(name, getattr(work, "layout", ""), getattr(work, "accumulate", "")) for name, work in works}
    assert set(per_row.values()) == {125} and len(per_row) == len(kinds)
    assert {case.row for case in found if case.rung.startswith("reduce")} == {
        (rung.id, dtype) for rung in every_rung("reduce") for dtype in rung.dtypes
    }
    assert "reduce/unrolled_warp:article" not in {case.rung for case in found}
    assert max(case.workload.flops for case in found) < 2e8  # the CPU machine's seconds


def test_pairwise_has_every_two_extents_in_every_two_kinds():
    for one, other in combinations(range(3), 2):
        assert len({(each[one], each[other]) for each in PAIRWISE}) == len(KINDS) ** 2 == len(PAIRWISE)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)
def test_sizes_are_of_their_kind(rung):
    config, unit = smallest_config(rung), 8 if rung.family == "hgemm" else 4
    for axis in "mnk":
        tile, sizes = tile_along(axis, config), sizes_along(axis, rung)
        assert tuple(sizes) == KINDS and all(sizes.values())
        assert all(size % tile == 0 for size in sizes["whole"])
        assert all(size > tile and size % tile and size % unit == 0 for size in sizes["ragged"])
        assert all(1 < size < tile and size % unit == 0 for size in sizes["smaller"])
        assert sizes["one"] == [1] and all(size > 1 and size % unit for size in sizes["odd"])


def test_a_further_turn_has_other_sizes():
    first, second = (cases_of(RUNGS[-1], PAIRWISE, turn) for turn in (0, 1))
    assert all(a.workload != b.workload for a, b in zip(first, second) if a.combination != ("one",) * 3)


@pytest.fixture
def call(calling):
    return calling(shapes.main)


@pytest.fixture
def fake(monkeypatch):
    """Results without processes; those of a rung can be chosen. Gives the cases that were asked for."""
    asked, marks = [], {}

    def all_verified(wanted, arch, jobs):
        for case in wanted:
            asked.append(case)
            mark = marks.get(case.rung, shapes.RIGHT)
            yield case, [(mark, "" if mark == shapes.RIGHT else "because"), (shapes.RIGHT, "")], 2.0

    monkeypatch.setattr(shapes, "all_verified", all_verified)
    return asked, marks


def test_shards_have_every_case_once_and_are_shown_together(call, fake, tmp_path):
    asked, _ = fake
    files = [tmp_path / f"{number}.json" for number in (1, 2, 3)]
    for number, file in enumerate(files, 1):
        assert call("sgemm/naive", "reduce", "--shard", f"{number}/3", "-o", file)[0] == 0
    assert sorted(map(str, asked)) == sorted(map(str, cases(["sgemm/naive", "reduce"], ALL)))
    code, out, _ = call("--from", *files)
    kernels = 2 * len(asked)
    closing = f"{len(asked)} cases, {kernels} right, 0 refused, 0 wrong kernels, {kernels} seconds"
    assert code == 0 and closing in out
    code, _, err = call("--from", files[0], files[0])
    assert code == 2 and "in more than one file" in err


def test_an_interrupted_run_goes_on(call, fake, tmp_path, monkeypatch):
    asked, marks = fake
    file, whole, marks["sgemm/coalesced"] = tmp_path / "found.json", shapes.all_verified, "wrong"

    def interrupted(wanted, arch, jobs):
        for number, result in enumerate(whole(wanted, arch, jobs)):
            yield result
            if number == 29:
                raise KeyboardInterrupt

    monkeypatch.setattr(shapes, "all_verified", interrupted)
    names = ("sgemm/naive", "sgemm/coalesced", "--combinations", "pairwise", "-o", file)
    assert call(*names)[0] == 130
    monkeypatch.setattr(shapes, "all_verified", whole)
    code, out, _ = call(*names, "--resume")
    assert len(asked) == len(set(asked)) == 50
    assert code == 1 and "50 cases, 75 right, 0 refused, 25 wrong kernels" in out
    assert out.count("because") == 25
    recorded = shapes.load(file)
    assert recorded["counts"] == {"right": 75, "refused": 0, "wrong": 25} and "git_revision" in recorded


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (("--combinations", "whole-whole"), "--combinations takes all, pairwise, or some of whole, ragged"),
        (("--shard", "0/4"), "--shard takes I/N"),
        (("--shard", "5/4"), "--shard takes I/N"),
        (("--jobs", "0"), "--jobs is 0"),
        (("--resume",), "--output"),
        (("sgemm/nothing",), "there is no rung 'sgemm/nothing'"),
        (("--from", "nothing.json"), "cannot read nothing.json"),
        (("-o", "nowhere/found.json"), "cannot write nowhere/found.json"),
    ],
)
def test_bad_input_is_one_line(call, fake, arguments, complaint):
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and complaint in err


def test_a_file_of_something_else_is_refused(call, tmp_path):
    for text in ("", "[]", "{}", '{"shapes": 0}', '{"shapes": "1"}'):
        (tmp_path / "file.json").write_text(text)
        code, _, err = call("--from", tmp_path / "file.json")
        assert code == 2 and "is not a result of this script" in err


def deadly(case, arch):
    """What a process is asked to do: one case ends it."""
    if case.workload.m == 3:
        os._exit(1)
    return [(shapes.RIGHT, "")] * 2, 1.0


def test_a_case_that_ends_its_process_is_wrong_and_no_other_is_lost(monkeypatch):
    monkeypatch.setattr(shapes, "verified", deadly)
    wanted = [Case("sgemm/naive", ("odd",) * 3, Gemm(m, 1, 1)) for m in range(1, 5)]
    found = {case: [mark for mark, _ in marks] for case, marks, _ in shapes.all_verified(wanted, "sm_80", 2)}
    assert found == {case: ["wrong" if case.workload.m == 3 else "right"] * 2 for case in wanted}


def test_right_refused_and_wrong(monkeypatch):
    """Of both twins, as a process finds it."""
    right = Case("sgemm/naive", ("one",) * 3, Gemm(1, 1, 1))
    refused = Case("sgemm/naive", ("one", "whole", "one"), Gemm(1, 3000000, 1))
    marks = {case: [mark for mark, _ in shapes.verified(case, "sm_80")[0]] for case in (right, refused)}
    assert marks == {right: ["right"] * 2, refused: ["refused"] * 2}
    monkeypatch.setattr("tir_schedules.compiler.lower.lower", lambda *given: 1 / 0)
    assert shapes.verified(right, "sm_80")[0] == [
        ("wrong", "ZeroDivisionError: division by zero"),
        ("right", ""),
    ]
