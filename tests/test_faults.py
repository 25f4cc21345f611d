"""Faults in words: races first, each kind and pair of lines once, at most two lines of a terminal; hazards
are not wrong values."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest

from tir_schedules.faults import SHOWN, closing, paragraphs
from tir_schedules.ladders.registry import find
from tir_schedules.model.findings import KINDS, Finding, Location
from tir_schedules.model.verify import Mismatch
from tir_schedules.run import judge_pair
from tir_schedules.verdicts import Outcome, Verdict, WrongValue
from tir_schedules.workloads.gemm import Gemm

RUNG = find("sgemm/naive")[0]
GEMM = Gemm(2, 2, 2)
TEXT = (
    "C_ptr[((((((int)blockIdx.x) * 2048) + (((int)threadIdx.y) * 64)) + (((int)blockIdx.y) * 32)) +"
    " ((int)threadIdx.x))] = x;"
)
MISMATCH = Mismatch("C", (0, 1), 3.25, 4.0, 0.75, 1e-06, 2, 4, "should be")


def finding(kind="race", line=31, other=25, file="broken.cu", count=1):
    at, against = Location(7, file, line, TEXT), Location(5, file, other, TEXT) if other else None
    brief = (
        f"reads shared memory that {file}:{other} writes, no __syncthreads between"
        if other
        else "reads shared memory"
    )
    return Finding(kind, "long", "broken.cu", at, (0, 0, 0), 1, 2, count, against, 0, brief)


def wrong(file="broken.cu"):
    return WrongValue("broken.cu", MISMATCH, "stored by", Location(9, file, 40, TEXT))


def verdict(schedule, twin=None, workload=GEMM):
    return Verdict(RUNG, workload, schedule, twin, None)


def told(*outcomes, width=80):
    return list(paragraphs([verdict(outcome) for outcome in outcomes], width))


def test_a_race_comes_first_and_names_both_lines_and_how_many_there_were():
    many = tuple(finding("uninitialized", 100 + line, 0) for line in range(20))
    lines = told(Outcome("broken.cu", findings=(*many, finding(count=32))))
    race = (
        "race: broken.cu:31 reads shared memory that broken.cu:25 writes, no __syncthreads between (block"
        " 0,0,0 warps 1 and 0; and 31 more"
    )
    assert lines[0].startswith(race)
    assert (
        len(lines) == SHOWN + 1
        and lines[-1] == "broken.cu: and 13 more like these at other lines; --json has them all"
    )


def test_a_group_is_a_kind_and_a_pair_of_lines():
    one = told(Outcome("broken.cu", findings=(finding(), finding(line=25, other=31), finding())))
    assert len(one) == 1 and "and 2 more of the same" in one[0]
    assert len(told(Outcome("broken.cu", findings=(finding(), finding(other=26), finding("lockstep"))))) == 3


def test_no_kind_is_crowded_out():
    races = tuple(finding(line=line, other=line + 1) for line in range(0, 60, 2))
    lines = told(
        Outcome(
            "broken.cu",
            findings=(*races, finding("misaligned", 5, 0), finding("endless_loop", 6, 0)),
            wrong=(wrong(),),
        )
    )
    assert [line.split(":")[0] for line in lines] == ["race"] * 5 + [
        "misaligned",
        "endless_loop",
        "wrong value, stored by broken.cu",
        "broken.cu",
    ]


def test_other_workloads_add_to_the_same_group():
    outcomes = (Outcome("broken.cu", findings=(finding(count=2),), wrong=(wrong(),)) for _ in range(2))
    verdicts = [verdict(outcome, workload=Gemm(size, 2, 2)) for size, outcome in zip((2, 3), outcomes)]
    race, value = paragraphs(verdicts)
    assert (
        "2x2x2" in race
        and "and 3 more of the same" in race
        and "2x2x2" in value
        and "and 1 more of the same" in value
    )


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "file", ["x.cu", "hgemm_wmma_register_pipelined_twin.cu", "/tmp/some/" + "folder/" * 20 + "my kernel.cu"]
)
def test_nothing_takes_more_than_two_lines(file, width):
    kinds = tuple(
        finding(kind, other=25 if kind in ("race", "lockstep") else 0, file=file, count=10**6)
        for kind in KINDS
    )
    lines = told(Outcome(file, findings=kinds, wrong=(wrong(file),)), width=width)
    assert len(lines) == len(KINDS) + 1
    for line in lines:
        assert len(textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False)) <= 2, line
        assert file.rpartition("/")[2] + ":" in line and ":31" in line or ":40" in line


def test_an_error_is_told_once_and_whole():
    text = "broken.cu: nvcc does not compile it:\n  broken.cu(3): error: " + "x" * 300
    assert told(Outcome("broken.cu", text), Outcome("broken.cu", text)) == [text]


def test_hazards_wrong_values_and_failures_are_counted_apart():
    right, hazard, bad, none = (
        Outcome("k"),
        Outcome("k", findings=(finding(),)),
        Outcome("k", wrong=(wrong(),)),
        Outcome("k", "error"),
    )
    assert [outcome.word for outcome in (right, hazard, bad, none)] == ["pass", "hazards", "fail", "error"]
    assert [outcome.ok for outcome in (right, hazard, bad, none)] == [True, False, False, False]
    both = Outcome("k", findings=(finding(),), wrong=(wrong(),))
    assert both.word == "fail" and set(both.as_json()) >= {
        "ok",
        "verdict",
        "faults",
        "findings",
        "wrong",
        "error",
    }
    assert len(both.faults) == 2
    verdicts = [
        verdict(right, right),
        verdict(right, hazard),
        verdict(hazard, bad),
        verdict(none),
        verdict(right),
    ]
    assert closing(verdicts) == "2 of 5 verified, 1 failed, 1 with errors, 1 with hazards,"
    assert closing([verdict(right)]) == "1 of 1 verified"


def outcome(value, wrong=()):
    return Outcome("k", wrong=wrong, outputs=({"C": np.full((2, 2), value, np.float32)},))


def test_a_disagreement_of_two_right_kernels_is_a_line_of_its_own():
    judged = judge_pair(RUNG, GEMM, [outcome(1), outcome(2)])
    assert not judged.ok and judged.schedule.ok and judged.twin.ok and judged.word == "twins disagree"
    (line,) = paragraphs([judged])
    assert line.startswith(
        "sgemm/naive on 2x2x2: the twins disagree: C[0, 0] is 1 in the schedule, 2 in the twin"
    )
    assert (
        closing([judged]) == "0 of 1 verified, 1 whose twins disagree,"
        and judged.as_json()["disagreement"]
        and judged.faults
    )


def test_twins_are_identical_when_they_are_so_for_every_kind_of_inputs():
    ones, twos = ({"C": np.full((2, 2), value, np.float32)} for value in (1, 2))
    for others, identical in (((ones, ones), True), ((ones, twos), False), ((twos, ones), False)):
        judged = judge_pair(RUNG, GEMM, [Outcome("k", outputs=(ones, ones)), Outcome("k", outputs=others)])
        assert judged.identical is identical


def test_a_wrong_twin_is_no_fault_of_the_schedule():
    judged = judge_pair(RUNG, GEMM, [outcome(1), outcome(2, (wrong(),))])
    assert (
        judged.schedule.ok
        and judged.schedule.faults == ()
        and not judged.disagreement
        and judged.word == "fail"
    )


@pytest.mark.parametrize("kind", ["race", "order_dependent"])
@pytest.mark.parametrize("line", [0, 7])
def test_a_place_in_ptx_alone_ends_in_one_mark(kind, line):
    """A line is left out where it is not known."""
    one = replace(finding(kind, other=0), location=Location(line, "", 0, ""), brief="y[32] differs")
    known = ", PTX line 7" if line else ""
    mark = ":" if kind == "order_dependent" else "," if line else ""
    assert told(Outcome("k", findings=(one,)))[0].startswith(f"{kind}: broken.cu{known}{mark} y[32] differs")


def test_the_place_of_an_assertion_is_told_once():
    one = replace(finding("assertion", 31, 0), brief="broken.cu:31: void k(): Assertion `x` failed.")
    text = told(Outcome("k", findings=(one,)))[0]
    assert text.startswith("assertion: broken.cu:31: void k(): Assertion") and text.count("broken.cu:31") == 1
