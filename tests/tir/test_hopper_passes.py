"""Passes about the K tiles of the rungs with Hopper's instructions: what the emitted CUDA has of them."""

import re

import pytest
from lowered import Without

from tir_schedules.compiler.lower import emit, lower, scheduled
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import run
from tir_schedules.tir.passes import pipeline
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
ASYNC = "hgemm/wgmma_async:128x128"
LONG, SHORT = HalfGemm(64, 64, 448), HalfGemm(64, 64, 256)  # K tiles: seven, one more than stages, and four


def depths(source):
    """Of the waits for groups of copies, one after another."""
    return [int(depth) for depth in re.findall(r"^\s+tvm_builtin\w+_wait_group_(\d)\(\)", source, re.M)]


class TestPrologueWait:
    def test_all_groups_but_the_first_are_left_in_flight(self):
        (rung,) = find(ASYNC)
        assert depths(lower(rung, LONG, ARCH).source) == [3, 3, 3, 2, 1, 0]
        (verdict,) = run([(rung, LONG)], ARCH, CpuMachine(orders=2))
        assert verdict.faults == () and verdict.identical

    def test_without_it_all_of_them_are_waited_for(self):
        (rung,) = find(ASYNC)
        eager = scheduled(rung, LONG, lambda sch: Without(sch, ["relax_prologue_wait"]))
        source = emit(eager, rung.entry, ARCH).source
        assert depths(source) == [0, 3, 3, 2, 1, 0]

    def test_fewer_k_tiles_than_stages_are_waited_for_at_once(self):
        """Not every iteration of the prologue commits a group then."""
        (rung,) = find(ASYNC)
        assert depths(lower(rung, SHORT, ARCH).source)[0] == 0


class TestPipelineState:
    @pytest.mark.parametrize("stages", [3, 5])
    def test_stages_wrap_around_and_nothing_is_divided(self, stages):
        (rung,) = find(f"hgemm/warp_specialized:128x128,stages={stages}")
        source = lower(rung, LONG, ARCH).source
        kernel = source[source.index("set_up_ring(ring_barrier(0)") :]
        assert kernel.count(f"if (stage_ptr[0] == {stages})") == 2  # of who copies and who multiplies
        assert not re.search(rf"[%/] ({stages}|{2 * stages})\b", kernel)


class TestPersistentKernel:
    def test_one_row_of_tiles_in_which_a_warpgroup_has_two_products(self):
        """TVM leaves the row out of some blocks' bindings, and refused the kernel."""
        (rung,) = find("hgemm/persistent:256x256")
        assert lower(rung, HalfGemm(200, 304, 72), ARCH).source


class TestStreamK:
    def test_without_it_copies_of_its_counters_are_left(self, monkeypatch):
        (rung,) = find("hgemm/stream_k:64x64,programs=3,worth=1")
        monkeypatch.setattr(pipeline, "UNSHARED", 6)  # as if no tile were shared
        with pytest.raises(Exception, match="tile_column is used before its definition"):
            emit(scheduled(rung, HalfGemm(200, 104, 520)), rung.entry, ARCH)


class TestDivideOnce:
    """Five rows of tiles in stripes of two: the last stripe has one row, so that the block has to divide."""

    uneven = "hgemm/tma_store:64x64,group=2,programs=2", HalfGemm(320, 128, 64, accumulate="float32")

    def test_a_tile_is_divided_once_by_the_producer_and_once_by_consumers(self):
        name, gemm = self.uneven
        kernel = lower(find(name)[0], gemm, ARCH).source.partition('extern "C" __global__')[2]
        assert kernel.count("quotient_of(") == kernel.count("remainder_of(") == 2
        assert len(re.findall(r"[%/] min\(|[%/] max\(", kernel)) == 0

    def test_even_stripes_divide_by_constants(self):
        name, gemm = self.uneven
        assert "quotient_of(" not in lower(find(name.replace("group=2", "group=5"))[0], gemm, ARCH).source

    def test_the_tiles_are_right(self):
        name, gemm = self.uneven
        (verdict,) = run([(find(name)[0], gemm)], ARCH, CpuMachine(orders=2))
        assert verdict.faults == () and verdict.identical
