"""Guards of C's rows in front of the loops over columns."""

import re

import pytest
from lowered import source

from tir_schedules.workloads.gemm import Gemm

AROUND_COLUMNS = re.compile(r"if \([^\n]*blockIdx\.y[^\n]*\{\n(?:#pragma unroll\n| )*for ")
AT_ONCE = re.compile(r"if \([^\n]*blockIdx\.y[^\n]* && ")


@pytest.mark.parametrize("name", ("sgemm/serpentine:32x64", "sgemm/pipelined:32x64"))
def test_rows_are_asked_for_once(name):
    gemm = Gemm(133, 139, 101)
    before, text = source(name, gemm, ["unswitch"]), source(name, gemm)
    assert AT_ONCE.search(before) and not AROUND_COLUMNS.search(before)
    assert AROUND_COLUMNS.search(text) and not AT_ONCE.search(text)
