"""Parts of K that blocks share: what each leaves, and the launch that adds them up."""

import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.emit import emit_text
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.execution import execute
from tir_schedules.model.kernel import Kernel
from tir_schedules.run import launches, outcome_of
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm

ARCH = "sm_80"
(RUNG,) = find("sgemm/split_k:32x32,splits=4")
SHAPE = Gemm(40, 36, 200)
"""13 tiles of 16 along K: three parts of four, and one of one."""


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_each_part_of_k_leaves_its_product_and_their_sum_is_c(make):
    kernels = launches(make, RUNG, SHAPE, ARCH)
    assert [kernel.entry for kernel in kernels] == ["sgemm_split_k", "sgemm_split_k_sum"]
    assert [kernel.results for kernel in kernels] == [(2, 2, 4), (12, 1, 1)]
    given = SHAPE.arguments(kind="exact")
    (_, first), (_, second) = execute(CpuMachine(), SHAPE, list(map(compile_kernel, kernels)), given)
    a, b, ends = given["A"].astype(float), given["B"].astype(float), [0, 64, 128, 192, 200]
    for part, (start, end) in enumerate(zip(ends, ends[1:])):
        assert np.array_equal(first["C"][part], a[:, start:end] @ b[start:end])
    assert second["S"] is first["C"] and np.array_equal(second["C"], a @ b)


def test_where_k_has_one_part_nothing_is_left_to_add_up():
    (kernel,) = launches(lower, replace(RUNG, config=replace(RUNG.config, splits=1)), SHAPE, ARCH)
    assert kernel.grid == (2, 2, 1) and kernel.results == (2, 2, 1)


def test_sums_are_added_from_the_first_part_on():
    """In float32 another order makes another sum: 2^24 + 1 is 2^24."""
    given = Gemm(1, 1, 64).arguments()
    given |= {"A": np.ones((1, 64), "float32"), "B": np.zeros((64, 1), "float32")}
    given["B"][[0, 16, 32, 48], 0] = 2.0**24, 1, -(2.0**24), 1
    for make in (lower, load_twin):
        kernels = launches(make, RUNG, Gemm(1, 1, 64), ARCH)
        done = execute(CpuMachine(), Gemm(1, 1, 64), list(map(compile_kernel, kernels)), given)
        assert done[-1][1]["C"] == 1


def test_blocks_along_z_leave_parts_only_where_the_launch_says_so():
    """Elsewhere z can be anything, such as groups of a threadblock swizzle."""
    kernel = Kernel("mine", "", "mine", (), (2, 2, 4), (32, 1, 1), ARCH)
    assert kernel.results == (2, 2, 1) and SHAPE.rest(kernel.results) is None
    given = SHAPE.arguments()
    assert SHAPE.prepared(given, kernel.results) is given


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
@pytest.mark.parametrize("name", ["64x64", "32x32"])
def test_c_is_written_in_rows_where_its_rows_start_anywhere(make, name):
    """32 neighbours touch five sectors at most; a lane's own elements, one by one, touch one each."""
    (rung,), gemm = find(f"sgemm/split_k:{name},splits=1"), Gemm(70, 131, 20)
    (kernel,) = launches(make, rung, gemm, ARCH)
    stores = metrics_of([compile_kernel(kernel)], gemm)[0].counters.accesses["global_store"]
    assert stores.cost <= 5 * stores.requests
    assert rung.declared(replace(gemm, n=132)).dynamic_shared < kernel.dynamic_shared or name == "32x32"


SCALARIZED = re.compile(r"for \(int \w+_s(_\d+)? = 0;")
"""A loop that a schedule vectorizes, and that TVM ran element by element after all."""


@pytest.mark.parametrize("rung", [*RUNG.variants()][1:], ids=lambda rung: rung.variant)
def test_rows_of_whole_vectors_are_copied_and_stored_in_vectors(rung):
    """Also in tiles of 96 columns, where neither K nor the columns of C are multiples of a tile's; and where
    tiles are shifted by a multiple of 8 columns."""
    for shape in ((199, 516, 903), (192, 480, 908), (177, 248, 99)):
        assert not SCALARIZED.search(lower(rung, Gemm(*shape), ARCH).source)


def test_a_part_that_is_left_out_of_the_sum_is_found():
    kernels = launches(load_twin, RUNG, SHAPE, ARCH)
    text = kernels[1].source.replace("M, N, PARTS)", "M, N, PARTS - 1)")
    assert text != kernels[1].source
    broken = load_source(text, RUNG.then, SHAPE.rest(kernels[0].results), ARCH)
    faults = outcome_of([kernels[0], broken], SHAPE, CpuMachine()).faults
    assert faults and "split_k_sum" in faults[0]


@pytest.mark.parametrize("twin", [False, True], ids=["schedule", "twin"])
def test_both_kernels_are_emitted_into_one_file_that_compiles(twin):
    text = emit_text(RUNG, SHAPE, ARCH, "cuda", twin)
    assert "// after:   its 4 results are left, for a launch on 4 partial sums of 40x36" in text
    assert re.findall(r"// launch:  (\w+), grid (\S+),", text) == [
        ("sgemm_split_k", "2x2x4"),
        ("sgemm_split_k_sum", "12x1x1"),
    ]
    ptx = compile_kernel(Kernel("both", text, "sgemm_split_k", (), (2, 2, 4), (128, 1, 1), ARCH)).ptx
    assert ".entry sgemm_split_k(" in ptx and ".entry sgemm_split_k_sum(" in ptx


def test_a_pack_knows_the_parts(tmp_path):
    binaries = tuple(map(compile_kernel, launches(lower, RUNG, SHAPE, ARCH)))
    subject = Subject("sgemm", RUNG.id, "schedule", SHAPE, binaries)
    save_pack([subject], {}, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as pack:
        (entry,) = json.loads(pack.read("manifest.json"))["subjects"]
    assert [launch["kernel"].get("parts") for launch in entry["launches"]] == [4, None]
    (loaded,) = load_pack(tmp_path / "a.zip").subjects
    assert [binary.kernel.results for binary in loaded.binaries] == [(2, 2, 4), (12, 1, 1)]
