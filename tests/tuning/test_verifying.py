"""Verifying in another process: the same counters as in this one, and whatever goes wrong there is one line here."""
from dataclasses import replace

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.rung import find_one
from tir_schedules.tuning.verifying import verified, verified_apart
from tir_schedules.workloads.gemm import Gemm

SHAPE = Gemm(64, 64, 32)


@pytest.fixture(scope="module")
def kernel():
    return lower(find_one("sgemm/lane_quads", "run"), SHAPE, "sm_80")


def test_it_counts_there_what_it_counts_here(kernel):
    here, there = verified(kernel, SHAPE), verified_apart(kernel, SHAPE)
    assert there.counters == here.counters and there.occupancy == here.occupancy and there.binary == here.binary


def test_a_fault_that_is_found_there_is_raised_here(kernel):
    with pytest.raises(CheckFailed, match="__syncthreads|nothing has written"):
        verified_apart(replace(kernel, source=kernel.source.replace("__syncthreads();", "")), SHAPE)


def test_a_wrong_result_is_refused(kernel):
    wrong = replace(kernel, source=kernel.source.replace("0x0p+0f", "0x1p+0f"))
    with pytest.raises(CheckFailed):
        verified_apart(wrong, SHAPE)


def test_other_errors_keep_their_kind(kernel):
    with pytest.raises(BadInput, match="sm_1"):
        verified_apart(replace(kernel, arch="sm_1"), SHAPE)


def test_a_process_that_ends_without_an_answer_is_one_line(kernel):
    with pytest.raises(CheckFailed, match="ended without an answer: AttributeError") as error:
        verified_apart(kernel, "no workload")
    assert "\n" not in str(error.value)
