"""Every rung of the HGEMM ladder, schedule and twin, in every configuration and kind of GEMM, on shapes
chosen and drawn."""

import numpy as np
import pytest
import shape_cases
from drawing import drawn
from hypothesis import given
from hypothesis import strategies as st
from kinds import ARCH, CASES, EVERY, LADDER, ODD, RAGGED, RUNGS, SHARED, kinds_of, other_kinds, workload
from layers import every_pair, layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.verify import checks_of
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.half_gemm import HalfGemm

FEW_TILES = "256x256x128"
# Ragged along K alone; less than one tile; rows that 16-byte copies can take and rows they cannot, fewer
# tiles along K than stages.
OTHER = ["256x256x20", "1x1x1", "264x520x40", "129x127x65"]
# Ragged along one axis alone, or not at all with fewer tiles along K than stages; each for a rung that is not
# among the dearest.
ONE_EACH = [
    ("wmma_naive", "1x1x1", "nt"),
    ("wmma_shared", "256x130x32", "nn"),
    ("wmma_async", "250x128x96", "nt"),
    ("wmma_pipelined", "256x128x20", "nt"),
    ("mma_ldmatrix", "256x128x32", "nt"),
]
# All pairs of what two extents can be to a tile, spread over rungs and kinds: 7 and their number have no
# divisor in common.
PAIRWISE = [
    (*CASES[7 * number % len(CASES)], combination) for number, combination in enumerate(shape_cases.PAIRWISE)
]
TWO_KINDS = [(rung, kind) for rung in RUNGS for kind in other_kinds(rung)]
LARGER = ["512x384x320", "257x100x511", "1x300x1"]
IN_ALL_KINDS = every_pair([(rung, shape, *kind) for rung, kind in CASES for shape in LARGER])
extents = st.integers(1, 300)


def check(rung, gemm):
    """Right, and equal bit for bit where both twins add in the same order: that of mma_multistage begins with
    the ragged tile."""
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine())
    assert verdict.faults == ()
    assert verdict.identical or rung.name == "mma_multistage" and gemm.k % rung.config.bk


@layers("rung, gemm", SHARED, EVERY + [(rung, workload(FEW_TILES, kind)) for rung, kind in CASES])
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(rung, gemm):
    check(rung, gemm)


ROUNDED = [
    ("mma_multistage:64x64", "100x100x100", "nt"),
    ("mma_multistage:64x64", "72x136x72", "nn"),
    ("wmma_padded:32x64", "100x100x100", "nn"),
    ("wmma_padded", "256x128x40", "nt"),
]
MORE_ROUNDED = [
    (f"{name}{config}", shape, layout)
    for name, configs in (("mma_multistage", ("", ":128x128", ":64x64")), ("wmma_padded", ("", ":32x64")))
    for config in configs
    for shape in ("1x1x1", RAGGED, ODD, FEW_TILES)
    for layout in ("nt", "nn")
]


def rounding(shape, layout):
    return workload(shape, (layout, "float32", "float16", "float16"))


@layers("name, shape, layout", ROUNDED, MORE_ROUNDED)
def test_sums_in_float32_become_a_c_in_float16(name, shape, layout):
    (rung,) = find(f"hgemm/{name}")
    check(rung, rounding(shape, layout))


@pytest.mark.parametrize("name", ["mma_multistage:64x64", "wmma_padded:32x64"])
def test_a_c_that_is_cut_off_is_found(name):
    (rung,), gemm = find(f"hgemm/{name}"), rounding("40x72x33", "nt")
    source, cast = load_twin(rung, gemm, ARCH).source, "static_cast<Result>(from.of[i])"
    assert source.count(cast) == 1
    faulty = loaded(source.replace(cast, "__float2half_rz(from.of[i])"), rung, gemm, ARCH)
    assert outcome_of([faulty], gemm, CpuMachine()).faults


@layers(
    "rung, gemm",
    [
        (rung, workload(shape, (layout, "float16")))
        for name, shape, layout in ONE_EACH
        for rung in find(f"hgemm/{name}")
    ],
    [
        (rung, workload(shape, kind))
        for rung, shape, kind in every_pair(
            [(rung, shape, kind) for rung, kind in TWO_KINDS for shape in [*OTHER, RAGGED, ODD]]
        )
    ],
)
def test_other_shapes_are_right_and_equal_bit_for_bit(rung, gemm):
    check(rung, gemm)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rung, kind, combination", PAIRWISE, ids=lambda part: getattr(part, "id", None) or "-".join(part)
)
def test_every_two_kinds_of_extents(rung, kind, combination):
    check(rung, HalfGemm(*shape_cases.shape_of(rung, combination, kind), *kind))


@layers("rung", LADDER[::2], RUNGS)
def test_a_ragged_k_goes_with_whole_rows_and_columns(rung):
    """What the launch counts for C in shared memory is what the schedule takes, and enough for the twin."""
    for kind, k in zip(kinds_of(rung), (8, rung.config.bk + 1)):
        gemm = HalfGemm(rung.config.bm, rung.config.bn, k, *kind)
        assert lower(rung, gemm, ARCH).dynamic_shared == load_twin(rung, gemm, ARCH).dynamic_shared
        assert outcome_of([load_twin(rung, gemm, ARCH)], gemm, CpuMachine()).faults == ()


@pytest.mark.slow
@layers("rung, shape, layout, accumulate", IN_ALL_KINDS, [])
def test_every_shape_in_every_kind(rung, shape, layout, accumulate):
    check(rung, workload(shape, (layout, accumulate)))


def check_twin(rung, gemm):
    assert outcome_of([load_twin(rung, gemm, ARCH)], gemm, CpuMachine()).faults == ()


@layers("rung", LADDER, [])
@drawn(4)
@given(m=extents, n=extents, k=extents)
def test_twin_is_right_on_any_shape(rung, m, n, k):
    check_twin(rung, HalfGemm(m, n, k, *kinds_of(rung)[-1]))


@pytest.mark.slow
@layers("rung", RUNGS, [])
@drawn(12)
@given(m=extents, n=extents, k=extents, last=st.booleans())
def test_twin_is_right_on_many_shapes(rung, m, n, k, last):
    check_twin(rung, HalfGemm(m, n, k, *other_kinds(rung)[last]))


@pytest.mark.slow
@layers("rung", RUNGS, [])
@drawn(5)
@given(m=extents, n=extents, k=extents, last=st.booleans())
def test_schedule_is_right_on_any_shape(rung, m, n, k, last):
    check(rung, HalfGemm(m, n, k, *other_kinds(rung)[last]))


@layers("rung", find("hgemm/wmma_swizzled_grid"), LADDER)
def test_a_twin_can_be_compiled_for_one_shape(rung):
    """Then it reads no size from its arguments, as a schedule does not."""
    gemm = workload(RAGGED, kinds_of(rung)[0])
    sizes = "".join(f"#define SIZE_{name} {getattr(gemm, name.lower())}\n" for name in "MNK")
    kernel = load_source(sizes + load_twin(rung, gemm, ARCH).source, rung, gemm, ARCH)
    assert "ld.param.u64" in (ptx := compile_kernel(kernel).ptx) and "ld.param.u32" not in ptx
    assert outcome_of([kernel], gemm, CpuMachine()).faults == ()


def test_a_warp_tile_too_large_for_registers_is_refused():
    (rung,) = find("hgemm/mma_multistage:256x256")
    with pytest.raises(
        BadInput, match="128x64 do not fit into registers as float32; use --accumulate float16"
    ):
        list(run([(rung, HalfGemm(256, 256, 128, "nt", "float32"))], ARCH, CpuMachine()))


def test_float16_accumulators_are_told_from_float32_ones():
    """Either kind of data for float32 would show a kernel that adds up in float16."""
    for check in checks_of(HalfGemm(64, 64, 256, "nn", "float32")):
        a, b = (check.inputs[name].astype(np.float32) for name in "AB")
        sums = np.zeros((64, 64), np.float16)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(256):
                sums += (a[:, k : k + 1] * b[k]).astype(np.float16)
        assert check.mismatch({"C": sums.astype(np.float32)}).count > 64 * 64 / 2
