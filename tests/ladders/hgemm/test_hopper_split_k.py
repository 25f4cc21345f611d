"""Parts of K that programs share on Hopper: what each leaves, in which order a second launch adds them up,
and which shapes have how many."""

import runpy
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hopper_rungs import ARCH
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.emit import Section, emit_text, numbered, one_below_another
from tir_schedules.errors import BadInput, TooLarge
from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.hgemm import repacked, split_k
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.execution import execute
from tir_schedules.run import launches, outcome_of, run
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.partial_sums import PartialSums

(RUNG,) = find("hgemm/split_k:64x64,splits=4")
SHAPE = HalfGemm(67, 50, 328, "nt", "float32", "bfloat16", "bfloat16")
"""Six K tiles of 64: parts of two, so three of them, the last of which ends within a K tile."""
MAKERS = pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
THIRTY = runpy.run_path(str(Path(__file__).parents[3] / "experiments" / "many_shapes.py"))["shapes"]()


def done_by(kernels, gemm, given):
    """The arguments of each launch after it."""
    binaries = list(map(compile_kernel, kernels))
    return [arguments for _, arguments in execute(CpuMachine(), gemm, binaries, given)]


@MAKERS
def test_each_part_of_k_leaves_its_product_in_floats_and_their_sum_is_c(make):
    kernels = launches(make, RUNG, SHAPE, ARCH)
    assert [kernel.entry for kernel in kernels] == ["hgemm_split_k", "hgemm_split_k_sum"]
    assert [kernel.results for kernel in kernels] == [(2, 1, 3), (28, 1, 1)]
    given = SHAPE.arguments(kind="exact")
    first, second = done_by(kernels, SHAPE, given)
    a, b, ends = given["A"].astype(float), given["B"].astype(float), [0, 128, 256, 328]
    assert first["C"].shape == (3, 67, 52) and first["C"].dtype == "float32"
    for part, (start, end) in enumerate(zip(ends, ends[1:])):
        assert np.array_equal(first["C"][part, :, :50], a[:, start:end] @ b[:, start:end].T)
    assert second["C"].dtype == "bfloat16" and np.array_equal(second["C"].astype(float), a @ b.T)


@MAKERS
def test_sums_in_float16_are_added_up_in_float32(make):
    """In float16 2048 + 1 is 2048."""
    gemm = HalfGemm(1, 1, 192, "nt", "float16")
    given = gemm.arguments()
    given["A"][:], given["B"][:] = 1, 0
    given["B"][0, [0, 64, 128]] = 2048, 1, 1
    assert done_by(launches(make, RUNG, gemm, ARCH), gemm, given)[-1]["C"] == 2050


LARGE = PartialSums(130, 257, 9)


@MAKERS
@pytest.mark.parametrize(
    "sums", [PartialSums(50, 11, 3, "float16"), PartialSums(8, 3, 11), replace(LARGE, m=126), LARGE], ids=str
)
def test_warps_add_every_eighth_part_of_a_small_c_and_threads_all_of_a_large_one(make, sums):
    """To the last bit, in float32; with another order bits differ."""
    given = sums.arguments()
    parts = np.random.default_rng(1).standard_normal(given["S"].shape, "float32")
    given["S"][:] = parts
    kernel = make(split_k_sum.rung("hgemm"), sums, ARCH)
    (done,) = done_by([kernel], sums, given)
    warps = 1 if sums.m * sums.pitch >= 4 * 8192 else min(8, sums.parts)
    assert kernel.block == ((32, warps, 1) if warps > 1 else (128, 1, 1))
    found = [sum(parts[warp::warps], np.float32(0)) for warp in range(warps)]
    expected = sum(found, np.float32(0))[:, : sums.n]
    assert np.array_equal(done["C"], expected.astype(sums.result))
    assert not np.array_equal(expected, sum(parts[::-1], np.float32(0))[:, : sums.n])


HEADER = Path(str(resources.files("cuda_reference"))) / "split_k_sum.cuh"
INCLUDED = f'#include "../{HEADER.name}"'
FAULTS = [
    (0, "blockIdx.z * k_tiles * BK", "blockIdx.z * k_tiles * BK + (blockIdx.z == 1 ? BK : 0)"),
    (0, "(N + 3) / 4 * 4", "N"),
    (0, "blockIdx.z) * M * pitch", "blockIdx.z) * (M - 1) * pitch"),
    (0, "true>(tile, part, row, col, M, pitch)", "true>(tile, part, row, col, M + 1, pitch)"),
    (1, "part < parts", "part < parts - 1"),
    (1, "if (column + i < N)", ""),
    (1, "if (piece < pieces)", ""),
    (1, "        __syncthreads();\n", ""),
    (1, "warp < blockDim.y", "warp < blockDim.y - 1"),
    (1, "threadIdx.y > 0 || piece >= pieces", "threadIdx.y > 0"),
]


@layers("number, text, instead", FAULTS[::2], FAULTS)
def test_a_fault_of_either_launch_is_found(number, text, instead):
    kernels = launches(load_twin, RUNG, SHAPE, ARCH)
    work = SHAPE.rest(kernels[0].results) if number else SHAPE
    rung = RUNG.then if number else RUNG
    source = kernels[number].source.replace(INCLUDED, HEADER.read_text())
    assert source.count(text) == 1
    kernels[number] = loaded(source.replace(text, instead), rung, work, ARCH)
    assert outcome_of(kernels, SHAPE, CpuMachine()).faults


def test_of_one_part_it_is_repacked():
    """But for the copies of A and B, which are one launch."""
    for shape in [(1024, 1024, 512), (1023, 1023, 65), (511, 513, 65)]:
        gemm = HalfGemm(*shape, "nt", "float32", output="float16")
        own, other = (launches(load_twin, each, gemm, ARCH) for each in (split_k.RUNG, repacked.RUNG))
        before = 1 if gemm.misaligned else 0
        assert [each.entry for each in own[:before]] == ["hgemm_repack_both"] * before
        same = [each.entry.replace("split_k", "repacked") for each in own[before:]]
        assert same == [each.entry for each in other[2 * before :]]
        own, other = (lower(each, gemm, ARCH) for each in (split_k.RUNG, repacked.RUNG))
        assert own.source.replace("hgemm_split_k", "hgemm_repacked") == other.source


@pytest.mark.parametrize(
    "shape, tile, parts",
    [
        ((64, 64, 16384), (16, 64), range(20, 34)),
        ((96, 96, 65536), (64, 48), range(25, 40)),
        ((1, 4096, 4096), (16, 128), range(2, 5)),
        ((209, 43, 1928), (64, 48), range(4, 20)),
        ((513, 63, 87), (64, 32), [1]),
        ((8192, 64, 8192), (128, 64), [1]),
        ((2048, 2048, 2048), (128, 256), [1]),
        ((2048, 2112, 2048), (176, 192), [1]),
    ],
)
def test_a_small_c_has_parts_for_all_sms_and_others_have_one(shape, tile, parts):
    gemm = HalfGemm(*shape, "nt", "float32", output="float16")
    rung = split_k.RUNG.fitted(gemm)
    launch = rung.declared(gemm)
    assert (rung.config.bm, rung.config.bn) == tile and launch.parts in parts
    assert launch.grid[0] * launch.parts <= 132


def test_parts_are_as_many_as_k_tiles_allow_and_none_is_empty():
    for k_tiles in range(1, 30):
        for splits in range(1, 40):
            gemm, config = HalfGemm(64, 64, 64 * k_tiles), split_k.Config(splits=splits)
            parts, deep = split_k.parts_of(gemm, config), split_k.count_k_tiles(gemm, config)
            assert parts <= splits and (parts - 1) * deep < k_tiles <= parts * deep


def test_what_cannot_be_is_refused_in_one_line():
    (rung,) = find("hgemm/split_k:64x64,boxes=2,splits=3")
    with pytest.raises(BadInput, match=r"^hgemm/split_k.*parts of K are written from registers; use boxes=0"):
        lower(rung, SHAPE, ARCH)


@pytest.mark.parametrize("family, workload", [("sgemm", Gemm), ("hgemm", HalfGemm)])
def test_parts_have_indices_of_32_bits(family, workload):
    (rung,), gemm = find(f"{family}/split_k:64x64,splits=64"), workload(8192, 4096, 8192)
    with pytest.raises(TooLarge, match=rf"^{family}/split_k for .*: 64 parts of 8192x4096 have 2\*\*31"):
        rung.declared(gemm)
    (fewer,) = find(f"{family}/split_k:64x64,splits=63")
    assert fewer.declared(gemm).parts < 64


def test_a_long_k_leaves_room_for_the_columns_that_fill_rows_up():
    gemm = HalfGemm(33, 33, 60_000_000)  # of 36 columns B would have 2**31 elements and more
    assert split_k.pad_to_parts(gemm).n == 36 == gemm.part_pitch


def test_one_launch_copies_both_matrices_or_the_one_that_needs_it():
    for shape, names in [
        ((66, 72, 131, "nt"), ("A", "A_rows", "B", "B_rows", "M", "K", "N", "K")),
        ((66, 65, 131, "nn"), ("A", "A_rows", "B", "B_rows", "M", "K", "K", "N")),
        ((66, 65, 136, "nn"), ("B", "B_rows", "K", "N")),
        ((66, 65, 136, "nt"), ()),
    ]:
        gemm = HalfGemm(*shape)
        kernels = launches(load_twin, split_k.RUNG, gemm, ARCH)
        own = next(kernel for kernel in kernels if kernel.entry == "hgemm_split_k")
        assert [kernel.params for kernel in kernels[: kernels.index(own)]] == [names] * bool(names)
        copied = {name for name in names if name.endswith("_rows")}
        assert {tensor.of for tensor in own.maps if tensor.of.endswith("_rows")} == copied


@pytest.mark.parametrize("twin", [False, True])
def test_all_launches_are_emitted(twin):
    gemm = HalfGemm(66, 65, 131, "nn", "float32", output="float16")
    (rung,) = find("hgemm/split_k:64x64,splits=3")
    text = emit_text(rung, gemm, ARCH, "cuda", twin)
    for line in (
        "float *C[3][66][68]\n",
        "// before:  hgemm_repack_both_A below, with X = A, Y = A_rows, ROWS = M, COLUMNS = K, X_2 = B, ",
        "// after:   its 3 results are left, for a launch on 3 partial sums of 66x65\n",
        "const float *S[3][66][68]\n",
        "half *C[66][65]\n",
    ):
        assert line in text
    kernels = launches(partial(load_source, text), rung, gemm, ARCH)
    assert outcome_of(kernels, gemm, CpuMachine()).faults == ()


KINDS = [
    ("nt", "float32", "float16", "float16"),
    ("nn", "float16"),
    ("nn", "float32", "bfloat16", "bfloat16"),
    ("nt", "float32", "bfloat16"),
]


def stand_ins():
    """Smaller products with the tile and the parts of each of the thirty shapes, and as odd extents."""
    for number, shape in enumerate(THIRTY):
        gemm = HalfGemm(*shape, "nt", "float32", output="float16")
        rung = split_k.RUNG.fitted(gemm)
        splits = rung.declared(gemm).parts
        name = f"{rung.variant},splits={splits}" if splits > 1 else rung.variant
        small = [
            min(extent, most + extent % 8) for extent, most in zip(shape, (384, 384, max(520, 64 * splits)))
        ]
        taken = [HalfGemm(*small, *kind) for kind in KINDS]
        (rung,) = find(f"hgemm/split_k:{name}")
        taken = [gemm for gemm in taken if not split_k.refuses(gemm, rung.config)]
        yield name, taken[number % len(taken)]


SWAPPED = "128x128,swap=1,stages=3,programs=8"
QUICK = [
    ("64x64,splits=2", HalfGemm(1, 200, 260, "nt", "float32")),
    ("64x128,splits=9", HalfGemm(17, 131, 577, "nn")),
    (f"{SWAPPED},bm=16,splits=3", HalfGemm(17, 131, 328, *KINDS[0])),
    (f"{SWAPPED},bm=16,splits=2,cluster_n=2", HalfGemm(5, 267, 200, *KINDS[1])),
]
MORE = [
    (f"{SWAPPED},bm=16,splits=2,cluster_m=2", HalfGemm(37, 131, 200, *KINDS[2])),
    (f"{SWAPPED},bm=16,splits=4", HalfGemm(64, 64, 520, *KINDS[0])),
    (f"{SWAPPED},bm=32,splits=1", HalfGemm(33, 131, 131, *KINDS[0])),
    ("128x256,bn=80,splits=2", HalfGemm(130, 161, 200, *KINDS[0])),
    (
        "192x192_whole,part_columns=1,consumers=2,boxes=0,splits=2,cluster_m=2",
        HalfGemm(200, 200, 200, *KINDS[3]),
    ),
]


@layers("name, gemm", QUICK, [*MORE, *stand_ins()])
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(name, gemm):
    (rung,) = find(f"hgemm/split_k:{name}")
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine(orders=2))
    assert verdict.faults == () and verdict.identical


def test_narrow_tiles_are_for_a_b_whose_columns_are_rows():
    (narrow,), (boxed,) = find("hgemm/split_k:64x32"), find("hgemm/split_k:64x64_whole,bn=32")
    for rung in narrow, boxed:
        with pytest.raises(BadInput, match="bn must be a multiple of 64 where B is stored KxN"):
            rung.declared(HalfGemm(64, 64, 64, "nn"))
    assert narrow.declared(HalfGemm(328, 102, 346, "nt")).grid == (24, 1, 1)
    assert find("hgemm/split_k")[0].choose(HalfGemm(328, 102, 346, "nn")) != "64x32"


def test_values_of_one_kernel_do_not_hold_for_the_next_in_a_file():
    texts = [
        "#ifndef N\n#define N 1\n#define MARK\n#endif\n",
        "#ifndef N\n#define N 2\n#define MARK\n#endif\n",
        "N",
    ]
    sections = one_below_another([Section(None, numbered(text)) for text in texts])
    text = "\n".join(line for one in sections for _, line in one.lines)
    assert text == f"{texts[0]}\n#undef N\n\n{texts[1]}\nN"
