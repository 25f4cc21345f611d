"""Last tiles of C that end with it, in the emitted CUDA."""

from itertools import product

import pytest
from layers import layers
from lowered import ARCH, faults, source
from mutants import loaded
from test_wrap_edge_tiles import guards

from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of
from tir_schedules.workloads.gemm import Gemm

RUNGS = ("sgemm/pipelined", "sgemm/split_k:64x32,splits=1")


@pytest.mark.parametrize("name", RUNGS)
def test_all_rows_of_a_thread_stand_at_fixed_distances(name):
    gemm = Gemm(1021, 1021, 1024)
    before, text = source(name, gemm, ["shift_edge_tiles"]), source(name, gemm)
    assert " - 1021" in before and " - 1021" not in text
    assert "min((((int)blockIdx.y) * " in text and not guards(text)


SHAPES = [(131, 129, 65), (260, 33, 66), (129, 132, 31), (64, 193, 16)]


@layers("name, shape", [(RUNGS[0], SHAPES[0]), *product(RUNGS[1:], SHAPES)], [*product(RUNGS, SHAPES)])
def test_c_is_right(name, shape):
    assert not faults(name, source(name, Gemm(*shape)), Gemm(*shape))


def test_rows_that_two_tiles_share_are_written_by_one():
    """Both have the same values: the CPU machine notes who writes them again."""
    (rung,), gemm = find(RUNGS[1]), Gemm(131, 129, 65)
    text, guard = source(RUNGS[1], gemm), "if ((((int)blockIdx.y) * 64) <= "
    assert guard in text
    once, twice = (
        outcome_of([loaded(each, rung, gemm, ARCH)], gemm, CpuMachine())
        for each in (text, text.replace(guard, "if (0 <= "))
    )
    assert not once.faults and not once.notes and not twice.faults
    assert any("C_ptr[" in str(note) for note in twice.notes)


def test_rows_of_16_bytes_and_matrices_smaller_than_a_tile_are_not_shifted():
    assert "min(" not in source(RUNGS[0], Gemm(1020, 1020, 1020))
    assert "min((((int)blockIdx.y)" not in source(RUNGS[0], Gemm(100, 1021, 1021))
