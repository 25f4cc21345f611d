"""Each pass of this project: what it does, and what goes wrong without it."""

import re
from dataclasses import replace
from functools import lru_cache, partial

import pytest
from lowered import ARCH, OURS, SMALL, Without, asked, faults, named, source
from mutants import loaded
from tvm.error import InternalError

from tir_schedules.compiler.lower import emit, import_tvm, lower, scheduled
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import count_opcodes, disassemble, loop_with_most
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.errors import CheckFailed
from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of
from tir_schedules.tir.passes import pipeline
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction
from tir_schedules.workloads.split_gemm import SplitGemm, float_gemm

SHORT = HalfGemm(128, 64, 256)
DEEP = "hgemm/mma_multistage", HalfGemm(64, 64, 1024)
MULTIPLY = ["load_matrix_sync", "mma_sync"]
MMA = "mma.sync.aligned.m16n8k16"


def main_loop(text):
    """The body of the first loop in which fragments are multiplied."""
    loops = re.findall(r"\n  for \(.*?\n  }", text, re.S)
    return next(loop for loop in loops if "mma_sync" in loop or "mma_m16n8k16" in loop)


def events(text):
    """What happens in the text of a kernel, one after another; of what follows itself once."""
    of_interest = r"load_matrix_sync|mma_sync|ptx_cp_async_legacy|wait_group_\d\(|__syncthreads"
    found = re.findall(of_interest, text)
    return [event for event, before in zip(found, [None, *found]) if event != before]


WITH_PASSES = ("pipelined", "serpentine", "stream_k", "single_pass")


@pytest.mark.parametrize(
    "rung",
    [
        rung if rung in ladder(rung.family) else pytest.param(rung, marks=pytest.mark.slow)
        for rung in every_rung("sgemm", "reduce")
        if rung.min_arch < 80 and not rung.arch and rung.name not in WITH_PASSES
        if not getattr(rung.config, "diagonal", 0)
    ],
    ids=lambda rung: rung.id,
)
def test_with_none_of_ours_the_pipeline_is_that_of_tvm(rung, monkeypatch):
    workload = Gemm(132, 100, 36) if rung.family == "sgemm" else Reduction(70004, rung.dtypes[0])
    ours = lower(rung, workload, ARCH).source
    monkeypatch.setattr(pipeline, "pipeline", lambda asked: import_tvm().tirx.get_tir_pipeline("s_tir")[0])
    assert lower(rung, workload, ARCH).source == ours


class TestCopiesBeforeBarriers:
    rung = "hgemm/wmma_pipelined"

    def test_one_barrier_in_the_main_loop(self):
        text = source(self.rung)
        assert main_loop(text).count("__syncthreads()") == 1
        assert not faults(self.rung, text)

    def test_without_it_there_are_two(self):
        assert (
            main_loop(source(self.rung, without=["async_copies_before_barriers"])).count("__syncthreads()")
            == 2
        )


class TestCopiesAfterCompute:
    rung = "hgemm/wmma_register_pipelined"

    def test_mma_copy_wait_fragments_last_mma(self):
        text = source(self.rung, SHORT, **SMALL)
        copies = ["ptx_cp_async_legacy", "wait_group_1(", "__syncthreads"]
        assert events(main_loop(text))[:7] == [*MULTIPLY, *copies, *MULTIPLY]
        assert not faults(self.rung, text, SHORT, **SMALL)

    def test_without_it_a_stage_is_refilled_while_it_is_read(self):
        """One barrier is not enough for TVM's order: the copy follows the last reads of the stage, with none
        between."""
        without = ["move_copies_behind_compute", "sink_waits"]
        text = source(self.rung, SHORT, without=without, **SMALL)
        assert any("race" in fault for fault in faults(self.rung, text, SHORT, **SMALL))

    def test_the_order_said_to_tvm_itself_reads_what_has_not_arrived(self):
        rung = named(self.rung, **SMALL)

        def schedule(sch, gemm, config):
            rung.schedule(sch, gemm, config)
            for loop in sch.get_loops(sch.get_sblock("C_o_update")):
                if "software_pipeline_async_stages" in sch.get(loop).annotations:
                    sch.annotate(loop, "software_pipeline_order", [1, 2, 3, 0, 4])

        said, without = replace(rung, schedule=schedule), ["move_copies_behind_compute", "sink_waits"]
        text = emit(scheduled(said, SHORT, lambda sch: Without(sch, without)), rung.entry, ARCH).source
        assert faults(self.rung, text, SHORT, **SMALL)


class TestLateWaits:
    rung = "hgemm/wmma_register_pipelined"

    @pytest.mark.parametrize("stages", [3, 4])
    def test_the_last_tiles_are_multiplied_while_the_last_of_all_is_on_its_way(self, stages):
        """Article 001's drain: each wait stands before the fragments that need it, as deep as it can be."""
        text = source(self.rung, SHORT, **SMALL, stages=stages)
        waits = [[f"wait_group_{depth}(", "__syncthreads"] for depth in reversed(range(stages - 2))]
        drain = [*(event for wait in waits for event in (*MULTIPLY, *wait, *MULTIPLY)), *MULTIPLY]
        assert events(text)[-len(drain) :] == drain
        assert not faults(self.rung, text, SHORT, **SMALL, stages=stages)

    def test_without_it_a_tile_is_waited_for_a_phase_early(self):
        early = events(source(self.rung, SHORT, without=["sink_waits"], **SMALL))
        assert early[-8:] == ["wait_group_0(", "__syncthreads", *MULTIPLY, *MULTIPLY, *MULTIPLY]

    @pytest.mark.parametrize("first", [0, 1])
    def test_a_copy_has_the_time_of_two_tiles_where_copies_come_first(self, first):
        """In the main loop, too: copies, and only then work and a wait for those of the iteration before."""
        text = source(*DEEP, **SMALL, copies_first=first)
        iteration = text[text.index("for (int k_0_turn") :]
        copy_and_work = ["ptx_cp_async_legacy", MMA] if first else [MMA, "ptx_cp_async_legacy"]
        parts = [*copy_and_work, "wait_group_1(", "__syncthreads"]
        assert sorted(parts, key=iteration.index) == parts
        assert not faults(DEEP[0], text, DEEP[1], **SMALL, copies_first=first)

    def test_without_it_a_stage_is_refilled_while_it_is_read(self):
        text = source(*DEEP, without=["sink_waits"], **SMALL)
        assert any("race" in fault for fault in faults(DEEP[0], text, DEEP[1], **SMALL))


class TestOneBarrier:
    rung = "sgemm/pipelined"
    gemm = Gemm(128, 64, 64)
    tiles = {**SMALL, "wmiter": 1, "wniter": 2}

    def main_loop(self, text):
        """The loop over tiles: the first in which registers are read from global memory and stored to shared
        memory."""
        loops = re.findall(r"\n  for \(.*?\n  }", text, re.S)
        return next(
            loop for loop in loops if "A_ptr" in loop and "A_shared_ptr[" in loop and "__syncthreads" in loop
        )

    def test_one_barrier_per_tile(self):
        text = source(self.rung, self.gemm, **self.tiles)
        assert self.main_loop(text).count("__syncthreads()") == 1
        assert not faults(self.rung, text, self.gemm, **self.tiles)

    def test_without_it_there_are_two(self):
        assert (
            self.main_loop(source(self.rung, self.gemm, without=["eliminate_barriers"], **self.tiles)).count(
                "__syncthreads()"
            )
            == 2
        )

    def test_the_barrier_that_is_left_is_needed(self):
        text = source(self.rung, self.gemm, **self.tiles)
        loop = self.main_loop(text)
        assert faults(
            self.rung, text.replace(loop, loop.replace("__syncthreads();", "")), self.gemm, **self.tiles
        )

    def test_with_a_single_tile_in_shared_memory_it_would_be_wrong(self):
        """The pass takes two stages for granted: here the store would overwrite what others still read."""
        rung = named(self.rung, **self.tiles)

        def schedule(sch, gemm, config):
            rung.schedule(sch, gemm, config)
            for name in ("A_shared", "B_shared"):
                sch.unannotate(sch.get_sblock(name), "double_buffer_scope")

        single = emit(scheduled(replace(rung, schedule=schedule), self.gemm), rung.entry, ARCH).source
        assert any("race" in fault for fault in faults(self.rung, single, self.gemm, **self.tiles))


class TestUnrollDrain:
    rung = "hgemm/wmma_pipelined"

    def test_the_waits_of_the_last_tiles_are_ever_less_deep(self):
        depths = [
            int(depth)
            for depth in re.findall(r"^\s+tvm_builtin\w+_wait_group_(\d)\(\)", source(self.rung), re.M)
        ]
        assert depths == [1, 1, 0]

    @pytest.mark.parametrize(
        "name, k",
        [
            (name, k) if k in some else pytest.param(name, k, marks=pytest.mark.slow)
            for name, some in {
                "wmma_pipelined": (32, 64),
                "wmma_register_pipelined": (64, 96),
                "mma_multistage": (64, 128),
            }.items()
            for k in (32, 64, 96, 128)
        ],
    )
    def test_as_few_tiles_as_stages_and_fewer(self, name, k):
        gemm, rung = HalfGemm(64, 64, k), f"hgemm/{name}"
        assert not faults(rung, source(rung, gemm, **SMALL), gemm, **SMALL)

    @pytest.mark.slow
    @pytest.mark.parametrize("k", [32, 64, 96, 128], ids="K={}".format)
    def test_as_few_in_the_tiles_of_the_rungs(self, k):
        for name in (self.rung, "hgemm/wmma_register_pipelined", "hgemm/mma_multistage"):
            gemm = HalfGemm(256, 128, k)
            assert not faults(name, source(name, gemm), gemm)

    def test_without_it_there_is_no_cuda(self):
        with pytest.raises(ValueError, match="compile-time constants"):
            source(self.rung, without=["unroll_drain"])


class TestUnrollStages:
    rung = "hgemm/mma_multistage"

    def test_places_in_the_ring_are_constants(self):
        gemm = HalfGemm(64, 64, 1024)
        text = source(self.rung, gemm, **SMALL)
        assert "k_0_turn < 3" in text
        assert "k_0_round" in text and not re.search(r"k_0_round\w* [%&]", text)
        assert not faults(self.rung, text, gemm, **SMALL)

    def test_without_it_they_are_worked_out_anew(self):
        text = source(self.rung, HalfGemm(64, 64, 1024), without=["unroll_stages"], **SMALL)
        assert re.search(r"k_0\w* (\+ \d\) )?% 3", text)

    @pytest.mark.parametrize(
        "tiles", [3, 5, 9, *(pytest.param(tiles, marks=pytest.mark.slow) for tiles in (4, 7, 8, 10, 12))]
    )
    def test_turns_left_over(self, tiles):
        """Two tiles are copied ahead: iterations 1, 3 and 7 of the loop; the test above has 14."""
        gemm = HalfGemm(64, 64, 64 * tiles)
        assert not faults(self.rung, source(self.rung, gemm, **SMALL), gemm, **SMALL)

    @pytest.mark.slow
    @pytest.mark.parametrize("tiles", [3, 4, 5, 7, 8, 9, 10, 12])
    def test_turns_left_over_in_the_tiles_of_the_rung(self, tiles):
        gemm = HalfGemm(256, 128, 64 * tiles)
        assert not faults(self.rung, source(self.rung, gemm), gemm)


class TestSerpentine:
    rung = "hgemm/wmma_swizzled_grid"
    gemm = HalfGemm(768, 640, 32)  # 3 rows of blocks, 5 groups of one column

    def test_odd_groups_run_from_the_last_row(self):
        text = source(self.rung, self.gemm)
        assert re.search(r"blockIdx\.z\) [%&] \(?[12]\)?\)? == 1\) \? \(2 - \(\(int\)blockIdx\.y\)\)", text)
        assert not faults(self.rung, text, self.gemm)

    def test_without_it_rows_do_not_depend_on_the_group(self):
        assert not re.search(r"blockIdx\.z\) [%&]", source(self.rung, self.gemm, without=["serpentine_grid"]))

    def test_a_grid_of_one_group_stays(self):
        one = HalfGemm(512, 128, 32)
        assert source(self.rung, one) == source(self.rung, one, without=["serpentine_grid"])


class TestPartialGroup:
    rung = "hgemm/wmma_swizzled_grid"
    groups = {**SMALL, "partial_group": 1, "threadblock_swizzle": 2}
    gemm = HalfGemm(192, 320, 64)  # 3 rows of blocks, 5 columns: 2 groups of 2, and one that lacks a column
    LEAVE = re.compile(r"\n  if \([^\n]*blockIdx[^\n]*\) {\n    return;\n  }")

    @pytest.mark.parametrize(
        "gemm",
        [gemm, HalfGemm(70, 65, 72), pytest.param(HalfGemm(129, 575, 33, "nn"), marks=pytest.mark.slow)],
    )
    def test_blocks_beyond_the_last_column_leave(self, gemm):
        rung = named(self.rung, **self.groups)
        text = lower(rung, gemm, ARCH).source
        assert rung.launch(gemm, rung.config).grid[0] == 2
        assert len(self.LEAVE.findall(text)) == (gemm.n > 128)
        twin = load_twin(replace(rung, variant="changed"), gemm, ARCH)
        assert not faults(self.rung, text, gemm, **self.groups)
        assert outcome_of([twin], gemm, CpuMachine()).faults == ()

    def test_those_that_stay_write_beyond_the_matrix(self):
        text = self.LEAVE.sub("", source(self.rung, self.gemm, **self.groups))
        assert any("out of bounds" in fault for fault in faults(self.rung, text, self.gemm, **self.groups))

    def test_groups_that_divide_the_columns_are_as_without(self):
        even = HalfGemm(128, 256, 64)
        with_pass, without = (named(self.rung, **self.groups | {"partial_group": n}) for n in (1, 0))
        assert "return;" not in lower(with_pass, even, ARCH).source
        assert with_pass.launch(even, with_pass.config) == without.launch(even, without.config)


class TestWholeLines:
    rung = "hgemm/wmma_async"
    gemms = {"whole": SHORT, "ragged": HalfGemm(120, 64, 72)}

    @pytest.mark.parametrize("gemm", gemms.values(), ids=gemms)
    def test_the_hint_alone_is_added(self, gemm):
        def instructions(text):
            ptx = compile_kernel(loaded(text, named(self.rung, **SMALL), gemm, ARCH)).ptx
            kernel = ptx[ptx.index(".entry") : ptx.index(".section")].splitlines()
            return [line for line in kernel if not line.lstrip().startswith((".loc", ".file"))]

        hinted, plain = (
            instructions(source(self.rung, gemm, without, **SMALL)) for without in ([], ["prefetch_l2"])
        )
        copy = "cp.async.cg.shared.global"
        assert sum(copy in line for line in plain) > 2
        assert hinted == [line.replace(copy, f"{copy}.L2::128B") for line in plain]

    @pytest.mark.parametrize("gemm", gemms.values(), ids=gemms)
    def test_the_copies_are_right(self, gemm):
        assert not faults(self.rung, source(self.rung, gemm, **SMALL), gemm, **SMALL)


with_all = lru_cache(maxsize=None)(source)
STREAM_K = {"programs": 3, "worth": 1}
CASES = {
    "peel_last": ("sgemm/pipelined", Gemm(1020, 1020, 1020), {}),
    "unswitch": ("sgemm/pipelined", Gemm(1021, 1021, 1020), {}),
    "reverse_in_odd": ("sgemm/serpentine", Gemm(1024, 1024, 1024), {}),
    "unroll_stages": ("sgemm/multistage", Gemm(1024, 1024, 1024), {}),
    "keep_copies_first": ("hgemm/mma_multistage", HalfGemm(768, 640, 1024), {}),
    "swizzle_threadblocks": (
        "hgemm/wmma_swizzled_grid",
        HalfGemm(768, 640, 1024),
        {"partial_group": 1, "threadblock_swizzle": 2},
    ),
    "make_persistent": ("sgemm/stream_k", Gemm(1020, 1020, 1024), {}),
    "accumulate_shares": ("sgemm/stream_k", Gemm(1020, 1020, 1024), {}),
    "store_diagonally": ("sgemm/transposed", Gemm(128, 128, 64), {"diagonal": 1}),
    "wrap_edge_tiles": ("sgemm/pipelined", Gemm(1020, 1020, 1020), {}),
    "shift_edge_tiles": ("sgemm/pipelined", Gemm(1021, 1021, 1020), {}),
    "rotate_rows": ("sgemm/split_k:128x128", Gemm(512, 517, 16), {"splits": 1}),
    "synchronize_before": ("sgemm/bf16x6_mma:64x64", SplitGemm(64, 65, 64), {"splits": 1}),
    "continue_in_last_block": ("reduce/single_pass", Reduction(70004, "float32"), {}),
    "async_copies": ("sgemm/multistage", Gemm(1024, 1024, 1024), {}),
    "async_copies_before_barriers": ("sgemm/multistage", Gemm(1024, 1024, 1024), {}),
    "prefetch_l2": ("hgemm/wmma_async", HalfGemm(768, 640, 1024), {}),
    "move_copies_behind_compute": ("sgemm/multistage", Gemm(1024, 1024, 1024), {}),
    "move_copies_behind_waits": ("sgemm/bf16x6_mma", SplitGemm(1024, 1024, 1024), {}),
    "sink_waits": ("hgemm/wmma_register_pipelined", HalfGemm(768, 640, 1024), {}),
    "unroll_drain": ("sgemm/multistage", Gemm(1024, 1024, 1024), {}),
    "eliminate_barriers": ("sgemm/pipelined", Gemm(1020, 1020, 1020), {}),
    "serpentine_grid": ("hgemm/wmma_swizzled_grid", HalfGemm(768, 640, 1024), {}),
    "hoist_guards": ("sgemm/naive", Gemm(100, 100, 100), {}),
    "keep_buffers_apart": ("hgemm/wmma_shared", HalfGemm(768, 640, 1024), {}),
}
"""A primitive -> a rung that calls it, a workload where it matters, and fields of the configuration."""

HOPPER = {
    "relax_prologue_wait": "hgemm/wgmma_async",
    "pipeline_by_mbarriers": "hgemm/tma",
    "specialize_warps": "hgemm/warp_specialized",
    "set_warp_size": "hgemm/wgmma",
    "encode_tensor_maps": "hgemm/tma",
    "prefetch_boxes": "sgemm/tma",
    "overlap_launches": "hgemm/split_k",
}
"""Those of rungs for sm_90a alone; `overlap_launches` does nothing on others, see
compiler/test_dependent_launch.py."""


def test_every_primitive_is_here():
    assert {*CASES, *HOPPER} == set(OURS)


@pytest.mark.parametrize("name", CASES)
def test_a_primitive_is_part_of_what_a_rung_is_compiled_to(name):
    """A rung differs from itself without it, or is not compiled at all."""
    rung, workload, config = CASES[name]
    check_matters(rung, workload, name, config)


@pytest.mark.parametrize("name", HOPPER)
def test_one_of_hopper_is_part_of_it_too(name):
    gemm = Gemm(256, 256, 256) if HOPPER[name].startswith("sgemm") else HalfGemm(256, 256, 1024)
    check_matters(HOPPER[name], gemm, name, {}, "sm_90a")


def check_matters(rung, workload, name, config, arch=ARCH):
    assert name in asked(named(rung, **config), workload)
    try:
        without = source(rung, workload, [name], arch, **config)
    except (ValueError, InternalError, CheckFailed):
        return
    assert without != with_all(rung, workload, arch=arch, **config)


@pytest.mark.slow
@pytest.mark.parametrize("rung", [rung for rung in ladder("sgemm") + ladder("hgemm") if not rung.arch],
                         ids=lambda rung: rung.id)  # fmt: skip
def test_no_rung_calls_one_in_vain(rung):
    """Each primitive that its schedule calls matters for one of these shapes."""
    edges = (1024, 1024, 1024), (1020, 1020, 1020), (1021, 1021, 1020), (1020, 1020, 1024)
    products = getattr(rung.config, "products", "float32")
    make = HalfGemm if rung.family == "hgemm" else partial(float_gemm, products=products)
    config = {"stages": 4} if hasattr(rung.config, "stages") else {}
    config |= {"copies_first": 0} if hasattr(rung.config, "copies_first") else {}
    config |= {"threadblock_swizzle": 2} if hasattr(rung.config, "threadblock_swizzle") else {}
    matters = set()
    for shape in map(lambda extents: make(*extents), edges):
        for name in asked(named(rung.id, **config), shape):
            try:
                if source(rung.id, shape, [name], **config) != with_all(rung.id, shape, **config):
                    matters.add(name)
            except (ValueError, InternalError):
                matters.add(name)
    called = {name for extents in edges for name in asked(named(rung.id, **config), make(*extents))}
    assert called - matters <= {"overlap_launches"}


def test_between_mma_there_is_little_but_loads_and_copies():
    """The point of unroll_stages."""
    gemm = HalfGemm(1024, 1024, 1024)
    (rung,) = find("hgemm/mma_multistage")

    def others(text):
        binary = compile_kernel(load_source(text, rung, gemm, "sm_90"))
        counts = count_opcodes(loop_with_most(disassemble(binary), "HMMA"))
        return (sum(counts.values()) - counts["HMMA"] - counts["LDSM"] - counts["LDGSTS"]) / counts["HMMA"]

    assert others(source(rung.id, gemm)) < 0.5 < others(source(rung.id, gemm, without=["unroll_stages"]))


class TestWideOffsets:
    """TVM counts an asynchronous copy's offset in bytes, as an int."""

    @pytest.mark.parametrize(
        "name, gemm, factor",
        [
            ("sgemm/multistage", Gemm(1 << 20, 8, 512), "4ll"),
            ("sgemm/multistage", Gemm(1 << 20, 8, 511), "4"),
            ("hgemm/wmma_async", HalfGemm(8, 1 << 20, 1024), "2ll"),
            ("hgemm/mma_multistage", HalfGemm(1 << 20, 8, 1024), "2ll"),
            ("hgemm/mma_multistage", HalfGemm(1 << 20, 8, 1016), "2"),
        ],
    )
    def test_a_copy_from_2_gib_and_more(self, name, gemm, factor):
        assert set(re.findall(r"\+ src_off \* (\w+);", source(name, gemm))) == {factor}
