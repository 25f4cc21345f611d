"""What TVM made of a schedule is kept, and asked for again under the same circumstances alone."""

import subprocess
import sys
from dataclasses import replace

import pytest

from tir_schedules.compiler import emitted
from tir_schedules.compiler.emitted import Emitted, kept
from tir_schedules.compiler.lower import lower
from tir_schedules.ladders.registry import find
from tir_schedules.model.launch import Launch
from tir_schedules.workloads.gemm import Gemm

NAIVE, GEMM = find("sgemm/naive")[0], Gemm(64, 64, 64)


@pytest.fixture
def made(monkeypatch, tmp_path):
    """made(rung, workload, arch): which lowering answers, numbered from 1."""
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    lowerings = []

    def make():
        lowerings.append(1)
        return Emitted(str(len(lowerings)), ("A",), Launch((1, 2, 3), (32, 1, 1), 16))

    return lambda rung=NAIVE, workload=GEMM, arch="sm_80": int(kept(rung, workload, arch, make).source)


def test_the_same_is_lowered_once(made, tmp_path):
    assert made() == made() == 1
    found = kept(NAIVE, GEMM, "sm_80", lambda: pytest.fail("lowers again"))
    assert found == Emitted("1", ("A",), Launch((1, 2, 3), (32, 1, 1), 16))


def test_what_lowering_depends_on_makes_another_entry(made, monkeypatch):
    asked = [
        (NAIVE, GEMM, "sm_80"),
        (NAIVE, GEMM, "sm_90"),
        (NAIVE, Gemm(64, 64, 65), "sm_80"),
        (find("sgemm/coalesced")[0], GEMM, "sm_80"),
        (replace(NAIVE, passes=("whole_lines",)), GEMM, "sm_80"),
        (replace(NAIVE, pass_config={"tirx.vectorize": False}), GEMM, "sm_80"),
        *((rung, GEMM, "sm_80") for rung in find("sgemm/multistage")[0].variants()[:3]),
    ]
    assert [made(*each) for each in asked] == list(range(1, len(asked) + 1))
    monkeypatch.setattr(emitted, "CODE", "other code")
    assert made(*asked[0]) == len(asked) + 1


@pytest.mark.parametrize("name", ["schedule", "launch"])
def test_a_rung_of_others_is_lowered_anew(made, name):
    own = replace(NAIVE, **{name: lambda *given: None})
    assert [made(own), made(own)] == [1, 2]


def test_a_workload_of_others_is_lowered_anew(made):
    class Own(Gemm):
        pass

    assert [made(workload=Own(64, 64, 64)), made(workload=Own(64, 64, 64))] == [1, 2]


def test_a_replaced_function_of_ours_counts(made, monkeypatch):
    assert made() == 1
    monkeypatch.setattr("tir_schedules.tir.schedule.bind_grid", lambda *given: None, raising=False)
    assert made() == 2


def test_what_is_kept_needs_no_tvm():
    kernel = lower(NAIVE, GEMM, "sm_80")
    script = (
        "import sys; from tir_schedules.compiler.lower import lower;"
        " from tir_schedules.ladders.registry import find; from tir_schedules.workloads.gemm import Gemm;"
        " print(lower(find('sgemm/naive')[0], Gemm(64, 64, 64), 'sm_80'), 'tvm' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == f"{kernel} False\n"
