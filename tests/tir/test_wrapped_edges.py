"""Copies of ragged tiles that read the last row again, in the emitted CUDA."""

import re

import pytest
from lowered import faults, source

from tir_schedules.workloads.gemm import Gemm

RUNGS = ("sgemm/pipelined", "sgemm/multistage:64x128", "sgemm/split_k:64x32,splits=1")
SMALL = Gemm(70, 66, 80)


def guards(text):
    """Conditions of the copies from A and B."""
    lines = [
        line for line in text.splitlines() if re.search(r"\b[AB]_ptr\b", line) and "__global__" not in line
    ]
    assert lines
    return [line for line in lines if "condval" in line or "_pred_" in line]


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("gemm", [Gemm(1020, 1020, 1024), Gemm(1021, 1021, 1024)], ids=["wide", "odd"])
def test_rows_and_columns_have_no_guards(name, gemm):
    plain, clamped = source(name, gemm, ["wrapped_edges"]), source(name, gemm)
    assert guards(plain) and not guards(clamped)
    assert "min(" in clamped and "min(" not in plain


def test_along_k_zeros_are_copied_in_the_last_tile_alone():
    text = source("sgemm/multistage:64x128", Gemm(1021, 1021, 1023))
    assert len(guards(text)) == 2
    loop = text.index("_round")
    assert all(text.index(line) > loop for line in guards(text))
    assert "1021" not in "".join(line.rsplit(", ", 1)[1] for line in guards(text))


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("columns", [66, 68])
def test_c_is_right(name, columns):
    gemm = Gemm(70, columns, 80)
    assert not faults(name, source(name, gemm), gemm)


def test_without_the_clamp_the_machine_sees_reads_beyond_a():
    name = "sgemm/multistage:64x128"
    text = source(name, SMALL)
    assert text.count(", 69)") > 1
    assert faults(name, text.replace(", 69)", ", 79)"), SMALL)
