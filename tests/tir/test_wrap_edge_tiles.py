"""Copies of ragged tiles that read the last row again, in the emitted CUDA."""

import re
from itertools import cycle, product

import pytest
from layers import layers
from lowered import faults, source

from tir_schedules.workloads.gemm import Gemm

RUNGS = ("sgemm/pipelined", "sgemm/multistage:64x128", "sgemm/split_k:64x32,splits=1")


def guards(text):
    """Conditions of the copies from A and B."""
    lines = [
        line for line in text.splitlines() if re.search(r"\b[AB]_ptr\b", line) and "__global__" not in line
    ]
    assert lines
    return [line for line in lines if "condval" in line or "_pred_" in line]


@pytest.mark.parametrize(
    "name, gemm",
    [*((name, Gemm(1020, 1020, 1024)) for name in RUNGS), (RUNGS[1], Gemm(1021, 1021, 1024))],
    ids=str,
)
def test_rows_and_columns_have_no_guards(name, gemm):
    plain, wrapped = source(name, gemm, ["wrap_edge_tiles"]), source(name, gemm)
    assert guards(plain) and not guards(wrapped)
    assert " - 102" in wrapped and " - 102" not in plain


def test_along_k_zeros_are_copied_in_the_last_tile_alone():
    text = source("sgemm/multistage:64x128", Gemm(1021, 1021, 1023))
    assert len(guards(text)) == 2
    loop = text.index("_round")
    assert all(text.index(line) > loop for line in guards(text))
    assert "1021" not in "".join(line.rsplit(", ", 1)[1] for line in guards(text))


@layers("name, columns", [*zip(RUNGS, cycle((66, 68)))], [*product(RUNGS, (66, 68))])
def test_c_is_right(name, columns):
    gemm = Gemm(70, columns, 80)
    assert not faults(name, source(name, gemm), gemm)


def test_rows_that_start_again_too_late_are_read_beyond_a():
    name, gemm = "sgemm/multistage:64x128", Gemm(70, 66, 80)
    text = source(name, gemm)
    assert text.count(" - 70)") > 1
    assert faults(name, text.replace(" - 70)", " - 20)"), gemm)


def test_a_matrix_far_smaller_than_the_tile_keeps_its_guards():
    text = source("sgemm/multistage:64x128", Gemm(1024, 60, 1024))
    assert all("B_ptr" in line for line in guards(text))
