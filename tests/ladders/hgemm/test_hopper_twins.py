"""Twins on Hopper as nvcc and ptxas see them: sums in registers, products side by side, the instructions that
each is about. And executed, with so few blocks that each has several tiles."""

import re
from itertools import product

import pytest
from hopper_rungs import taken
from layers import every_pair, layers

from tir_schedules.compiler.nvcc import check_products, compile_kernel, compile_kernels
from tir_schedules.compiler.sass import disassemble
from tir_schedules.compiler.twin import load_twin
from tir_schedules.emit import emit_text
from tir_schedules.errors import CheckFailed
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Resources
from tir_schedules.run import outcome_of
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
TWINS = {
    "wgmma": "", "wgmma_async": "", "tma": "AB", "warp_specialized": "AB", "persistent": "AB",
    "tma_store": "ABC", "cluster": "ABC",
    "tile_shapes": "ABC", "repacked": "ABC", "split_k": "AB", "stream_k": "ABC",
}  # fmt: skip
"""Twin -> the matrices that it takes by tensor maps."""

OTHERS = [name for name in TWINS if name != "stream_k"]  # which test_hopper_stream_k.py has

PERSISTENT = ("persistent", "tma_store", "cluster", "tile_shapes", "repacked", "split_k", "stream_k")
IN_PAIRS = ("cluster", "tile_shapes")
KINDS = {
    "nt half": ("nt", "float16"),
    "nn float": ("nn", "float32"),
    "nt float to half": ("nt", "float32", "float16", "float16"),
    "nn bfloat16": ("nn", "float32", "bfloat16", "bfloat16"),
}
CASES = [
    ("wgmma", "nt half"),
    ("wgmma_async", "nn bfloat16"),
    ("tma", "nt half"),
    ("warp_specialized", "nn float"),
    ("persistent", "nt float to half"),
    ("tma_store", "nt float to half"),
    ("cluster", "nn bfloat16"),
    ("tile_shapes", "nt float to half"),
    ("repacked", "nn bfloat16"),
    ("split_k", "nt half"),
    ("stream_k", "nt float to half"),
]
"""Twins and kinds that are compiled once for all tests here."""

RAGGED, ODD = (300, 520, 328), (131, 261, 67)
"""Tiles beyond each edge of C, and more K tiles than stages; rows that start anywhere."""


def gemm(kind, shape=RAGGED):
    layout, accumulate, *others = KINDS[kind]
    dtype, output = (others or ("float16", ""))[:2]
    return HalfGemm(*shape, layout=layout, accumulate=accumulate, dtype=dtype, output=output)


def twin(name, kind, variant="128x256", shape=RAGGED):
    (rung,) = find(f"hgemm/{name}:{variant}")
    return load_twin(rung, gemm(kind, shape), ARCH)


def few(name, programs=2):
    """A configuration in which a block has several tiles, in stripes of two rows, and the whole of K, or a
    share of tiles."""
    if name == "stream_k":
        return "128x256,programs=4,group=2,worth=1"
    if name == "tile_shapes":
        return f"192x192,programs={programs},group=2"
    whole = ",splits=1" if name == "split_k" else ""
    return f"128x256,programs={programs},group=2{whole}" if name in PERSISTENT else "128x256"


def every_case():
    """Twin, kind, configuration: those that the rungs do not refuse."""
    for name, kind in product(OTHERS, KINDS):
        for variant in find(f"hgemm/{name}")[0].configs:
            if taken(find(f"hgemm/{name}:{variant}")[0], gemm(kind)):
                yield name, kind, variant


each_twin = pytest.mark.parametrize("name, kind", CASES, ids=[" ".join(case) for case in CASES])


@pytest.fixture(scope="module")
def binaries():
    kernels = [twin(name, kind, few(name)) for name, kind in CASES]
    return dict(zip(CASES, compile_kernels(kernels)))


@pytest.mark.slow  # test_hopper_emitted.py records those of another configuration
@each_twin
def test_each_has_the_instructions_it_is_about(binaries, name, kind):
    binary = binaries[name, kind]
    sass, roles = disassemble(binary), name not in ("wgmma", "wgmma_async", "tma")
    assert set(re.findall(r"HGMMA\.\w+", sass)) == {f"HGMMA.64x{96 if name == 'tile_shapes' else 256}x16"}
    assert ("UTMALDG" in sass) == bool(TWINS[name]) and ("UTMASTG" in sass) == ("C" in TWINS[name])
    assert ("MULTICAST" in sass) == (name in IN_PAIRS)
    assert ("LDGSTS" in sass) == (name == "wgmma_async") and ("STSM" in sass) == ("C" in TWINS[name])
    assert ("USETMAXREG" in sass) == roles and (binary.resources.registers == 168 or not roles)
    assert not binary.resources.spill_stores + binary.resources.stack


@layers("name, kind, variant", [], list(every_case()))
def test_sums_stay_in_registers_and_products_do_not_wait_for_each_other(name, kind, variant):
    """compile_kernel refuses the kernel otherwise."""
    assert "wgmma.mma_async" in compile_kernel(twin(name, kind, variant)).ptx


@each_twin
def test_each_is_right_at_edges_and_over_several_tiles(binaries, name, kind):
    kernel = binaries[name, kind].kernel
    assert outcome_of([kernel], gemm(kind), CpuMachine()).faults == ()


SHAPES, PROGRAMS = [RAGGED, (384, 512, 576), (1, 8, 8), (521, 776, 264)], [2, 6, 10]
TILES_AND_BLOCKS = [
    case
    for case in product(OTHERS, ["nt half", "nn bfloat16"], SHAPES, PROGRAMS)
    if case[0] in PERSISTENT or case[-1] == PROGRAMS[0]  # the others have a block for each tile
    if taken(find(f"hgemm/{case[0]}:{few(case[0])}")[0], gemm(*case[1:3]))
]


@layers("name, kind, shape, programs", [], every_pair(TILES_AND_BLOCKS))
def test_any_number_of_tiles_on_any_number_of_blocks(name, kind, shape, programs):
    kernel = twin(name, kind, few(name, programs), shape)
    assert outcome_of([kernel], gemm(kind, shape), CpuMachine(orders=2)).faults == ()


@layers(
    "name, kind",
    [("wgmma_async", "nt half")],
    [(name, kind) for name in ("wgmma", "wgmma_async") for kind in KINDS],
)
def test_rows_that_start_anywhere(name, kind):
    kernel = twin(name, kind, shape=ODD)
    assert outcome_of([kernel], gemm(kind, ODD), CpuMachine()).faults == ()


def test_columns_of_c_that_start_anywhere():
    shape = (131, 261, 72)
    kernel = twin("persistent", "nt float to half", few("persistent"), shape)
    assert outcome_of([kernel], gemm("nt float to half", shape), CpuMachine()).faults == ()


REMARK = (
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x"
)
IGNORED = "ptxas info    : (C7508) setmaxnreg ignored to maintain minimum register requirements."


@pytest.mark.parametrize("report, spilled, line", [
    (REMARK, 0, "ptxas says: Potential .* serialized"),
    (IGNORED, 0, "ptxas says: setmaxnreg ignored"),
    ("", 4, "8 bytes are spilled"),
])  # fmt: skip
def test_what_ptxas_spoils_is_one_line(report, spilled, line):
    kernel, fine = twin("wgmma", "nt half"), "ptxas info    : Used 168 registers"
    with pytest.raises(CheckFailed, match=rf"^hgemm/wgmma:128x256 \(twin\): .*{line}"):
        check_products(kernel, f"{fine}\n{report}\n{fine}", Resources(168, 0, 0, spilled, spilled))
    check_products(kernel, fine, Resources(168, 0))


def test_the_head_says_how_maps_are_made_and_clusters_launched():
    (rung,) = find("hgemm/cluster:128x256")
    text = emit_text(rung, gemm("nt float to half"), ARCH, "cuda", twin=True)
    head = text[: text.index("\n\n")]
    assert "nvcc -gencode arch=compute_90a,code=sm_90a -c hgemm_cluster.cu" in head
    assert "grid 12x1x1, block 128x3x1, in clusters of 2x1x1 as it declares, 229376 bytes" in head
    assert "takes:   CUtensorMap A_map, of const half *A[300][328]" in head
    assert "map:     B_map of B, made by" in head
    assert (
        "cuTensorMapEncodeTiled(&B_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, B, {328, 520}, {656}, {64, 128},"
        " {1, 1}, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,"
        " CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)"
    ) in head
