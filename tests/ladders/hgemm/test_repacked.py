"""Copies of matrices to rows of whole lines, alone and before the products of `hgemm/repacked`, and boxes of
C that threads copy."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hopper_rungs import ARCH
from layers import layers

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.emit import emit_text
from tir_schedules.errors import BadInput
from tir_schedules.ladders import fastest
from tir_schedules.ladders.hgemm.repack import RUNG as REPACK
from tir_schedules.ladders.hgemm.repack_both import RUNG as REPACK_BOTH
from tir_schedules.ladders.hgemm.tile_shapes import RUNG as TILE_SHAPES
from tir_schedules.ladders.registry import find, find_one
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of, run
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.repacking import Repacking, RepackingBoth

REPACKED = find_one("hgemm/repacked", "run")


@pytest.mark.parametrize("make", [lower, load_twin])
@pytest.mark.parametrize(
    "rung, copy",
    [(REPACK, Repacking(37, 265)), (REPACK, Repacking(1, 1)), (REPACK, Repacking(9, 64))]
    + [(REPACK_BOTH, RepackingBoth(37, 265, 9, 64)), (REPACK_BOTH, RepackingBoth(1, 1, 17, 521))],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_each_element_is_copied(rung, copy, make):
    """Zeros fill up rows."""
    binary, given = compile_kernel(make(rung, copy, ARCH)), copy.arguments()
    before = {name: given[name].copy() for name in copy.inputs}
    done = CpuMachine(orders=2).run(binary, given, copy.outputs)
    assert done.findings == () and "st.global.v4" in binary.ptx
    for name, expected in {**copy.truth(given), **before}.items():
        assert np.array_equal(given[name], expected)


OF_A, OF_B = ("A", "A_rows", "M", "K"), ("B", "B_rows", "N", "K")


@pytest.mark.parametrize(
    "variant, gemm, copied",
    [
        ("", HalfGemm(64, 72, 65, "nt"), [OF_A, OF_B]),
        ("", HalfGemm(64, 72, 65, "nn"), [OF_A]),
        ("", HalfGemm(64, 65, 72, "nn"), [("B", "B_rows", "K", "N")]),
        (":64x64", HalfGemm(65, 65, 72, "nt"), []),
        (":64x64", HalfGemm(65, 65, 65, "nt"), [OF_A, OF_B]),
    ],
)
def test_only_what_has_such_rows_is_copied(variant, gemm, copied):
    (rung,) = find(f"hgemm/repacked{variant}")
    kernels = launches(load_twin, rung, gemm, ARCH)
    (own,) = (kernel for kernel in kernels if kernel.entry == "hgemm_repacked")
    others = [kernel.params for kernel in kernels if kernel is not own]
    assert others == copied and kernels[-1] is own
    rows = {name for params in copied for name in params if name.endswith("_rows")}
    assert {tensor.of for tensor in own.maps if tensor.of.endswith("_rows")} == rows


@pytest.mark.parametrize("n, piece", [(65, "u16"), (66, "u32"), (68, "v2.u32"), (72, "")])
def test_threads_copy_boxes_of_rows_that_the_copy_engine_does_not_take(n, piece):
    """In the largest pieces that divide a row, 8 bytes at most."""
    (rung,) = find("hgemm/repacked:64x64")
    own = launches(lower, rung, HalfGemm(65, n, 72, "nt"), ARCH)[-1]
    assert {*re.findall(r"ld\.shared\.(u16|u32|v2\.u32)", compile_kernel(own).ptx)} == {piece} - {""}
    assert len(own.maps) == (2 if piece else 3)


def test_without_such_rows_it_is_tile_shapes():
    gemm = HalfGemm(200, 304, 72, "nn", "float32", "bfloat16", "bfloat16")
    for make in (lower, load_twin):
        (own,), (other,) = (launches(make, rung, gemm, ARCH) for rung in (REPACKED, TILE_SHAPES))
        assert own.maps == other.maps and own.grid == other.grid
    own, other = (lower(rung, gemm, ARCH).source for rung in (REPACKED, TILE_SHAPES))
    assert own.replace("hgemm_repacked", "hgemm_tile_shapes") == other and "griddepcontrol" in other


def test_the_products_are_of_the_copies():
    """Which a launch without those before it finds full of NaN, whatever was executed before: no kernel is
    right by what another has left."""
    gemm = HalfGemm(66, 72, 65, "nn")
    kernels = launches(load_twin, REPACKED, gemm, ARCH)
    assert outcome_of(kernels, gemm, CpuMachine()).faults == ()
    faults = outcome_of(kernels[1:], gemm, CpuMachine()).faults
    assert any("C[0, 0] is nan" in fault for fault in faults)


@pytest.mark.parametrize("twin", [False, True])
def test_other_launches_are_emitted_below(twin):
    """And what is emitted runs, in place of the rung's own kernel."""
    (rung,), gemm = find("hgemm/repacked:64x64"), HalfGemm(66, 65, 65, "nn")
    text = emit_text(rung, gemm, ARCH, "cuda", twin)
    for line in (
        "// before:  hgemm_repack_A below, with X = A, Y = A_rows, ROWS = M, COLUMNS = K\n",
        "// before:  hgemm_repack_B below, with X = B, Y = B_rows, ROWS = K, COLUMNS = N\n",
        "CUtensorMap A_map, of const half *A_rows[66][128]",
    ):
        assert line in text
    kernels = launches(partial(load_source, text), rung, gemm, ARCH)
    assert kernels[2].source == text and outcome_of(kernels, gemm, CpuMachine()).faults == ()


@pytest.mark.parametrize(
    "name, gemm, copied",
    [
        ("repacked:64x64,line=32", HalfGemm(70, 72, 136), ["A_rows", "B_rows"]),
        ("repacked:64x64,line=32", HalfGemm(70, 80, 136, "nn"), ["A_rows"]),
        ("repacked:64x64,line=128", HalfGemm(70, 72, 128, "nn"), ["B_rows"]),
        ("split_k:64x64,line=64,splits=2", HalfGemm(70, 72, 144), ["A_rows B_rows"]),
        ("split_k:64x64,line=16,splits=2", HalfGemm(70, 72, 136), []),
    ],
)
def test_rows_that_start_within_a_line_are_copied_by_choice(name, gemm, copied):
    """Copies are of whole lines, and products are of them."""
    (rung,) = find(f"hgemm/{name}")
    for make in (lower, load_twin):
        kernels = launches(make, rung, gemm, ARCH)
        first, own, machine = kernels[: len(copied)], kernels[len(copied)], CpuMachine()
        written = [[name for name in kernel.params if name.endswith("_rows")] for kernel in first]
        assert [" ".join(names) for names in written] == copied
        read = {tensor.of: tensor.pitches for tensor in own.maps}
        assert {*" ".join(copied).split()} == {of for of in read if of.endswith("_rows")}
        assert all(pitch % 128 == 0 for of, (pitch,) in read.items() if of.endswith("_rows"))
        assert outcome_of(kernels, gemm, machine).faults == ()
        if copied:
            assert any("C[0, 0] is nan" in fault for fault in outcome_of(kernels[1:], gemm, machine).faults)


def test_pairs_take_rows_that_start_within_a_line():
    """On an H200 128x256 took 270 us for 4096x4096x4072, and 214 with copies of A and B."""
    gemm = HalfGemm(4096, 4096, 4072, "nt", "float32", output="float16")
    alone, copies, pairs = (
        fastest.estimated(rung, gemm).estimate.microseconds
        for rung in (*find("hgemm/repacked:128x256"), *find("hgemm/repacked:128x256_lines"), REPACKED)
    )
    assert pairs < min(alone, copies) and REPACKED.fitted(gemm).config.blocks == 2
    (wrong,) = find("hgemm/repacked:line=24")
    with pytest.raises(BadInput, match="line is 24; it is one of 16, 32, 64, 128"):
        wrong.declared(HalfGemm(64, 64, 64))


def test_a_pack_knows_the_copies(tmp_path):
    """And a pack that has others is refused."""
    (rung,), gemm = find("hgemm/split_k:64x64,line=32,splits=2"), HalfGemm(65, 72, 136)
    binaries = tuple(map(compile_kernel, launches(lower, rung, gemm, ARCH)))
    save_pack([Subject("hgemm", rung.id, "schedule", gemm, binaries)], {}, tmp_path / "a.zip")
    (loaded,) = load_pack(tmp_path / "a.zip").subjects
    copies = (("A_rows", (65, 192)), ("B_rows", (72, 192)))
    assert [binary.kernel.workspaces for binary in loaded.binaries[:2]] == [copies] * 2
    wrong = replace(binaries[0], kernel=replace(binaries[0].kernel, workspaces=(("C", (1, 1)),)))
    save_pack([Subject("hgemm", rung.id, "schedule", gemm, (wrong,))], {}, tmp_path / "b.zip")
    with pytest.raises(BadInput, match="a workspace is A_rows or B_rows"):
        load_pack(tmp_path / "b.zip")


def test_an_a_that_is_too_large_in_whole_lines_is_refused():
    with pytest.raises(BadInput, match="a copy of A has 2560000000 elements"):
        REPACKED.fitted(HalfGemm(40_000_000, 8, 1)).declared(HalfGemm(40_000_000, 8, 1))


SWAPPED = "128x128,swap=1,programs=2,stages=3"
NT_MIXED, NN_BFLOAT = ("nt", "float32", "float16", "float16"), ("nn", "float32", "bfloat16", "bfloat16")
QUICK = [
    (f"{SWAPPED},bm=48,boxes=0", HalfGemm(67, 199, 131, *NT_MIXED)),  # swapped, from registers, copied before
    (f"{SWAPPED},bm=16,bn=64,consumers=1,boxes=1", HalfGemm(37, 131, 72, *NN_BFLOAT)),  # threads copy boxes
    (f"{SWAPPED},bm=16,boxes=0", HalfGemm(24, 64, 72, "nn")),  # one of two warpgroups has columns of C
    (f"{SWAPPED},bm=32,boxes=0,cluster_m=2", HalfGemm(40, 130, 72, "nt", "float32")),  # pairs; C in float32
    ("128x256,bm=64,bn=96,part_columns=1,boxes=0,programs=2,stages=3,cluster_n=2", HalfGemm(70, 201, 72)),
]
MORE = [
    (f"{SWAPPED},bm=16,boxes=0,cluster_n=2", HalfGemm(24, 392, 72, "nn", "float32")),
    (f"{SWAPPED},bm=80,boxes=0", HalfGemm(1, 1, 1, *NT_MIXED)),
    (f"{SWAPPED},bm=208,bn=64,consumers=1,boxes=1,line=32", HalfGemm(216, 135, 200)),
    ("192x192,part_columns=1,consumers=2,cluster_n=2,boxes=3", HalfGemm(391, 391, 391, *NT_MIXED)),
    ("192x192,part_columns=1,consumers=2,cluster_m=2,boxes=0", HalfGemm(391, 199, 131, "nt", *NN_BFLOAT[1:])),
    ("128x256,bn=144,boxes=1", HalfGemm(263, 151, 199, *NT_MIXED)),
    ("128x256,bn=16,boxes=0", HalfGemm(64, 33, 72, "nt", "float32")),
]
"""What tiles with a free side add to copies, and to a C that is written from registers."""


@layers("name, gemm", QUICK, MORE)
def test_free_tiles_are_right_and_equal_bit_for_bit(name, gemm):
    (rung,) = find(f"hgemm/repacked:{name}")
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine(orders=2))
    assert verdict.faults == () and verdict.identical


@pytest.mark.parametrize("m, n, swap", [(8, 2, 0), (2, 8, 1), (1, 8, 1)])
def test_two_columns_are_read_from_registers_after_the_wait(m, n, swap):
    (rung,) = find(f"hgemm/repacked:64x64_registers,swap={swap}")
    gemm = HalfGemm(m, n, 64, accumulate="float32", output="float16")
    assert not outcome_of(launches(lower, rung, gemm, ARCH), gemm, CpuMachine()).faults


@pytest.mark.parametrize("consumers", [0, 4])
def test_warpgroups_that_cannot_be_are_refused(consumers):
    (rung,), gemm = find(f"hgemm/repacked:consumers={consumers}"), HalfGemm(64, 64, 64)
    assert gemm.accumulate in rung.config.accumulators
    assert "for each of 1 to 3 consumers" in rung.refuses(gemm, rung.config)
