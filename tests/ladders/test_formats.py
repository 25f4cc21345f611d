"""Formats of HGEMM: schedule and twin of a rung that takes all, and commands on rungs that do not."""

import argparse
import re
from pathlib import Path

import pytest

from tir_schedules.api import running
from tir_schedules.api.problems import taking
from tir_schedules.emit import emit_text
from tir_schedules.errors import BadInput
from tir_schedules.ladders.own import RUNGS, at_path
from tir_schedules.ladders.problems import RUN_SHAPES, Problem, jobs_of, sample_kinds, workload_of
from tir_schedules.ladders.registry import find, find_each, ladder
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import run
from tir_schedules.source import Source
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH, SHAPE = "sm_80", (33, 40, 56)
FORMATS = [
    ("float16", "float16"),
    ("float32", "float16"),
    ("float32", "float16", "float16"),
    ("float32", "bfloat16"),
    ("float32", "bfloat16", "bfloat16"),
]
"""Of the sums, of A and B, of C where it is another than that of the sums."""


@pytest.fixture
def rung():
    yield at_path(str(Path(__file__).with_name("formats.py")))[0]
    RUNGS.clear()


def test_a_rung_is_run_in_all_formats_that_it_says(rung):
    jobs = jobs_of([rung], {"hgemm": [Problem("hgemm", SHAPE)]}, {})
    assert [workload for _, workload in jobs] == [
        HalfGemm(*SHAPE, layout, *formats) for layout in ("nt", "nn") for formats in FORMATS
    ]
    halves = find("hgemm/wmma_naive")[0]
    jobs = jobs_of([halves], {"hgemm": [Problem("hgemm", SHAPE)]}, {})
    assert [str(workload).split(" ", 1)[1] for _, workload in jobs] == [
        f"{layout} {sums}" for layout in ("nt", "nn") for sums in ("float16", "float32")
    ]


@pytest.mark.parametrize(
    "asked, first",
    [
        ({}, "nt float16"),
        ({"accumulate": "float32"}, "nt float32"),
        ({"output": "float16"}, "nt float16"),
        ({"accumulate": "float32", "output": "float16"}, "nt float32 to float16"),
        ({"dtype": "bfloat16"}, "nt bfloat16 float32"),
        ({"output": "bfloat16", "layout": "nn"}, "nn bfloat16 float32 to bfloat16"),
    ],
)
def test_what_is_left_open_is_what_comes_first(rung, asked, first):
    assert str(workload_of(rung, Problem("hgemm", SHAPE, **asked))) == f"33x40x56 {first}"


def test_schedule_and_twin_agree_in_formats_of_bfloat16(rung):
    gemms = [HalfGemm(*SHAPE, "nt", *formats) for formats in FORMATS[-2:]]
    verdicts = list(run([(rung, gemm) for gemm in gemms], ARCH, CpuMachine()))
    assert [(verdict.word, verdict.identical) for verdict in verdicts] == [("pass", True)] * 2


ONCE, TWICE = "sum", "__uint_as_float((__float_as_uint(sum) + 0x1000) & 0xffffe000)"


@pytest.mark.parametrize("rounded, word", [(ONCE, "pass"), (TWICE, "fail")], ids=["once", "twice"])
def test_a_sum_that_is_rounded_twice_is_wrong(rung, rounded, word):
    """To bfloat16 by way of 11 bits, with the range of float32."""
    gemm = HalfGemm(*SHAPE, "nt", *FORMATS[-1])
    macros = "".join(f"#define {name} {value}\n" for name, value in gemm.macros.items())
    text = Path(rung.file).with_suffix(".cu").read_text().replace("OUT(sum)", f"OUT({rounded})")
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine(), Source(macros + text))
    assert verdict.word == word


def test_what_emit_prints_of_bfloat16_has_nothing_unused(rung):
    gemm = HalfGemm(*SHAPE, "nt", *FORMATS[-1])
    text = emit_text(rung, gemm, ARCH, "cuda", False)
    above = text.partition('extern "C"')[0]
    assert [line for line in above.splitlines() if line and not line.startswith("//")] == [
        "#include <cuda_bf16.h>"
    ]
    assert (
        re.search(r"\bnv_bfloat16\* __restrict__ C_ptr", text) and "const __nv_bfloat16 *B[40][56]" in above
    )


def test_a_whole_ladder_leaves_out_rungs_without_the_kinds_asked_for():
    asked = argparse.Namespace(mnk=None, layout=None, accumulate="float32", dtype=None, result=None)
    every = {rung.id: rung for rung in find_each(["hgemm"], True)}
    without = {name for name, rung in every.items() if "float32" not in rung.config.accumulators}
    assert "hgemm/mma_multistage:256x256" in without
    assert {
        rung.id for rung in taking(find_each(["hgemm"], True), ["hgemm"], asked)
    } == every.keys() - without
    named = find_each(list(without))
    assert taking(named, list(without), asked) == named


def jobs_on(family, *problems):
    return jobs_of(ladder(family), {family: problems or [Problem(family)]}, RUN_SHAPES)


def test_a_whole_ladder_has_each_kind_and_its_last_rungs_have_all():
    def kinds(jobs):
        return {str(workload).split(" ", 1)[1] for _, workload in jobs}

    every = jobs_on("hgemm")
    some = sample_kinds(every)
    assert kinds(some) == kinds(every) and 2 * len(some) < len(every)
    last = {rung.arch: rung.id for rung in ladder("hgemm")}.values()
    assert "hgemm/mma_multistage" in last
    for rung in ladder("hgemm"):
        has, had = ([job for job in jobs if job[0] == rung] for jobs in (some, every))
        if rung.id in last:
            assert has == had
        else:
            assert len(has) < len(had)
        for field in ("layout", "accumulate", "dtype", "output"):
            assert {getattr(work, field) for _, work in has} == {getattr(work, field) for _, work in had}
    assert [sample_kinds(jobs_on(family)) for family in ("sgemm", "reduce")] == [
        jobs_on("sgemm"), jobs_on("reduce"),
    ]  # fmt: skip
    two = sample_kinds(jobs_on("hgemm", Problem("hgemm", (8, 8, 8)), Problem("hgemm", (16, 8, 8))))
    assert {(rung.id, work.layout, work.m) for rung, work in two} == {
        (rung.id, layout, m) for rung in ladder("hgemm") for layout in ("nt", "nn") for m in (8, 16)
    }


@pytest.mark.parametrize(
    "names, less", [("hgemm", True), ("hgemm --accumulate float32", False), ("hgemm --configs", False),
                    ("hgemm/wmma_naive hgemm/tma", False), ("hgemm/tma hgemm", True)],
)  # fmt: skip
def test_a_ladder_that_is_named_runs_in_some_kinds(monkeypatch, tool, names, less):
    """All kinds where one of them, all configurations or rungs are asked for."""
    asked = []
    monkeypatch.setattr(running, "run_jobs", lambda jobs, *others: asked.extend(jobs) or [])
    code, _, told = tool("run", *names.split())
    kinds = {str(work).split(" ", 1)[1] for rung, work in asked if rung.id == "hgemm/wmma_naive"}
    assert code == 0 and ("to run all of its kinds" in told) == less
    assert len(kinds) == (2 if less or "float32" in names else 4)


def test_a_rung_that_takes_none_of_the_formats_names_those_that_do(monkeypatch, rung):
    from tir_schedules.ladders.hgemm import steps

    monkeypatch.setattr(steps, "package_rungs", lambda family: [rung])
    naive = find("hgemm/wmma_naive")[0]
    with pytest.raises(BadInput, match="bfloat16 to float32 by sums in float32 is for hgemm/formats$"):
        naive.declared(workload_of(naive, Problem("hgemm", SHAPE, dtype="bfloat16")))
