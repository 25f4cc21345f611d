"""The rungs beside the ladders, sgemm/gemv and hgemm/gemv: schedule and twin on rows and columns, what is
read, and faults that must be found."""

import json
from functools import partial
from itertools import product

import pytest
from drawing import drawn
from hypothesis import given
from hypothesis import strategies as st
from layers import layers
from mutants import differs, loaded, mutants, one_of_each_kind

from tir_schedules.cli.main import main
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_fixed_twin, load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.fastest import estimated
from tir_schedules.ladders.registry import find, find_one, ladder
from tir_schedules.ladders.sgemm import gemv
from tir_schedules.ladders.sgemm.gemv import plan_of
from tir_schedules.ladders.waves import SMS
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.launch import ceil_div
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
(SGEMM,), (HGEMM,) = find("sgemm/gemv"), find("hgemm/gemv")
VARIANTS = {rung.family: rung.variants() for rung in (SGEMM, HGEMM)}
# One element; rows of four to a thread, in several turns; a row with parts of K; odd rows; columns; odd
# columns; columns with parts of K.
SHAPES = [(1, 1, 1), (1100, 1, 64), (2, 1, 20003), (97, 1, 101), (1, 300, 516), (1, 97, 101), (1, 6, 9001)]
# Less than a load; a thread to a row; one row of many parts; thousands of columns; rows that start on 8
# bytes; parts of K whose blocks leave 128 sums, and 32 of odd columns.
FURTHER = [
    (1, 200, 3000),
    (1, 131, 1500),
    (1, 7, 1),
    (3000, 1, 3),
    (1, 1, 65536),
    (1, 2048, 40),
    (1, 1001, 333),
    (50, 1, 1002),
    (1, 50, 1003),
]
# Several columns or rows: in whole loads and parts of K; an odd number of them, odd rows; as many as the rung
# takes; more columns than rows; a C smaller than the sums of a thread.
FEW = [(150, 2, 4096), (97, 3, 101), (40, 8, 520), (2, 300, 516), (3, 97, 101), (4, 1030, 64), (3, 2, 20003)]
KINDS = [
    ("nt", "float16"),
    ("nn", "float16"),
    ("nt", "float32"),
    ("nn", "float32", "float16", "float16"),
    ("nn", "float32", "bfloat16", "bfloat16"),
    ("nt", "float32", "bfloat16"),
]
# With room for more vectors than there are, and for as many along a short K.
ROOMY = find("hgemm/gemv:vectors=6,tm=8") + find("hgemm/gemv:vectors=3,block=128,loads=16")
HALVES = [(HGEMM, HalfGemm(*shape, *KINDS[place % 6])) for place, shape in enumerate(SHAPES)]
# Both of them: aligned rows or columns in several turns, odd ones of the other, and parts of K.
BY_DEFAULT = [
    *((SGEMM, Gemm(*FEW[place])) for place in (1, 3)),
    *((SGEMM, Gemm(*SHAPES[place])) for place in (1, 5, 6)),
    (SGEMM, Gemm(*FURTHER[0])),
    (SGEMM, Gemm(*SHAPES[5], layout="nt")),
    *HALVES[2:4],
    (HGEMM, HalfGemm(*FEW[1], *KINDS[1])),
    (HGEMM, HalfGemm(*FEW[6], *KINDS[4])),
    (ROOMY[0], HalfGemm(97, 3, 104, "nn")),
]
EVERY = [
    *HALVES,
    *(
        (rung, Gemm(*shape, layout=layout))
        for rung in VARIANTS["sgemm"]
        for shape in SHAPES + FURTHER
        for layout in ("nn", "nt")
    ),
    *((SGEMM, Gemm(*shape, layout=layout)) for shape in FEW for layout in ("nn", "nt")),
    *(
        (HGEMM, HalfGemm(*shape, *KINDS[(place + turn) % 6]))
        for turn in (0, 1, 4)
        for place, shape in enumerate(FEW)
    ),
    *((rung, gemm) for rung in ROOMY for gemm in (HalfGemm(97, 3, 104, "nn"), HalfGemm(3, 97, 101, "nn"))),
    (find("hgemm/gemv:vectors=16,block=512")[0], HalfGemm(12, 99, 260, "nn")),
    (find("hgemm/gemv:vectors=16,tm=2")[0], HalfGemm(99, 13, 260, "nn", *KINDS[4][1:])),
    *(
        (rung, HalfGemm(*shape, *KINDS[(place + turn) % 6]))
        for turn, rung in enumerate(VARIANTS["hgemm"])
        for place, shape in enumerate(SHAPES + FURTHER)
    ),
    *((HGEMM, HalfGemm(*shape, *kind)) for shape, kind in product(SHAPES[2:6], KINDS)),
]
COUNTED = {"rows": Gemm(1536, 1, 1024), "columns": Gemm(1, 16896, 128)}


@layers("rung, gemm", BY_DEFAULT, EVERY)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(rung, gemm):
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine())
    assert verdict.faults == () and verdict.identical


@drawn(2)
@given(
    one=st.integers(1, 2000), k=st.integers(1, 3000), column=st.booleans(), kind=st.sampled_from(KINDS),
    few=st.integers(2, 4),
)  # fmt: skip
def test_the_twin_is_right_on_any_shape(one, k, column, kind, few):
    shape = (one, 1, k) if column else (1, one, k)
    several = (one, few, k) if column else (few, one, k)
    for rung, gemm in (
        (SGEMM, Gemm(*shape, layout=kind[0])),
        (SGEMM, Gemm(*several, layout=kind[0])),
        (HGEMM, HalfGemm(*shape, *kind)),
        (HGEMM, HalfGemm(*several, *kind)),
    ):
        assert outcome_of([load_twin(rung, gemm, ARCH)], gemm, CpuMachine()).faults == ()


def test_the_last_block_is_right_in_any_order_and_in_the_next_launch():
    """Each check of a workload is a launch, and all find the variables as the one before has left them."""
    for make in (lower, load_twin, load_fixed_twin):
        gemm = Gemm(1, 6, 9001)
        kernel = make(SGEMM, gemm, ARCH)
        assert kernel.grid[1] > 1
        assert outcome_of([kernel], gemm, CpuMachine(orders=4)).faults == ()


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
@pytest.mark.parametrize("name", COUNTED)
def test_the_matrix_is_read_once_in_whole_sectors(name, make):
    gemm = COUNTED[name]
    binary = compile_kernel(make(SGEMM, gemm, ARCH))
    counted = CpuMachine().run(binary, gemm.arguments(), ("C",), count=True).counters
    loads, plan = counted.accesses["global_load"], plan_of(gemm, SGEMM.fitted(gemm).config)
    matrix = 4 * gemm.k * gemm.m * gemm.n
    requests = matrix // 512  # of 16 bytes for each lane
    # Lanes of a warp have 512 bytes of the vector, for four rows, or its element for their row.
    vector, sectors = (requests // plan.values, 16) if name == "rows" else (requests, 1)
    assert (loads.requests, loads.cost) == (requests + vector, matrix // 32 + vector * sectors)


@pytest.mark.parametrize("shape", [(97, 1, 101), (1, 97, 101)], ids=["rows", "columns"])
def test_guards_and_barriers_are_not_to_be_missed(shape):
    """One of each kind; those that are compiled to nothing for this shape are left out."""
    gemm = Gemm(*shape)
    source, kinds = lower(SGEMM, gemm, ARCH).source, {}
    for mutant in one_of_each_kind(mutants(source), partial(differs, SGEMM, source, gemm, ARCH)):
        kernel = loaded(mutant.source, SGEMM, gemm, ARCH)
        kinds[mutant.kind] = outcome_of([kernel], gemm, CpuMachine(budget=1 << 20)).faults
    assert kinds.keys() >= {"no barrier", "no guard"}
    assert kinds["no barrier"] and kinds["no guard"]


@pytest.mark.parametrize("shape", [(10192, 1, 7912), (1, 3333, 2001), (3, 70, 129)])
def test_no_load_of_the_matrix_stands_under_a_condition(shape):
    """Where K ends within an iteration, too: the next load would wait for it."""
    rung, gemm = find("sgemm/gemv")[0], Gemm(*shape)
    lines = lower(rung.fitted(gemm), gemm, "sm_90a").source.splitlines()
    loads = [line for line in lines if "A_ptr +" in line or "B_ptr +" in line or "_ptr[(" in line]
    assert loads and not [
        line for line in loads if "condval" in line and ("A_ptr" in line or "B_ptr" in line)
    ]


def test_a_shape_of_rows_and_columns_is_for_another_rung(capsys):
    for rung, gemm, takes in (
        (SGEMM, Gemm(9, 9, 4), "C is 9x9, and this rung takes 8 rows or columns at most: use sgemm/split_k"),
        (
            HGEMM,
            HalfGemm(9, 9, 4),
            "C is 9x9, and this rung takes 8 rows or columns at most: use hgemm/repacked",
        ),
        (
            find("hgemm/gemv:4x2")[0],
            HalfGemm(2, 3, 4),
            "C is 2x3, and this rung takes one row or one column: use hgemm/repacked",
        ),
    ):
        with pytest.raises(BadInput, match=takes):
            lower(rung, gemm, ARCH)
    for layout, m, n in product(("nn", "nt"), (2, 53, 900), (2, 64, 4097)):  # a choice comes before a refusal
        assert HGEMM.fitted(HalfGemm(m, n, 264, layout)).refuses(HalfGemm(m, n, 264, layout), HGEMM.config)
    assert main(["run", "sgemm/gemv", "--mnk", "9,9,4"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("field, value", [("block", 100), ("tm", 3), ("loads", 5), ("vectors", 17)])
def test_other_configurations_are_refused(field, value):
    (rung,) = find(f"sgemm/gemv:{field}={value}")
    with pytest.raises(BadInput, match=f"{field} is {value}: it can be "):
        lower(rung, Gemm(8, 1, 8), ARCH)
    (rung,) = find("sgemm/gemv:block=1024,vectors=16")
    with pytest.raises(BadInput, match="sums of 1024 threads and 16 vectors exceed 48 KiB"):
        lower(rung, Gemm(8, 1, 8), ARCH)


def test_blocks_for_all_sms():
    """As few threads to a row as leave two blocks for each SM, and parts of K so that columns have enough."""
    columns = (1, 4096, 4096), (1, 5120, 13824), (1, 777, 777)
    plans = {
        shape: plan_of(Gemm(*shape), SGEMM.fitted(Gemm(*shape)).config)
        for shape in [(3072, 1, 3072), (16384, 1, 4096), (1, 1, 1000003), (100000, 1, 3), *columns]
    }
    found = {shape: (plan.lanes, plan.tiles, plan.parts) for shape, plan in plans.items()}
    assert found == {
        (3072, 1, 3072): (128, 384, 1),
        (16384, 1, 4096): (32, 512, 1),
        (1, 1, 1000003): (256, 1, 245),
        (100000, 1, 3): (1, 98, 1),
        (1, 4096, 4096): (32, 32, 4),
        (1, 5120, 13824): (32, 40, 3),
        (1, 777, 777): (32, 25, 13),
    }
    assert all(plan.parts == 1 or plan.sums <= plan.block for plan in plans.values())
    assert all(
        plan.tiles * plan.parts * plan.sums <= gemv.PLACES or plan.parts == 1 for plan in plans.values()
    )


@pytest.mark.parametrize("n, k", [(5120, 13824), (3072, 12288), (1000, 99999), (65536, 1024), (16, 10**6)])
def test_the_busiest_sm_reads_little_more_than_its_share(n, k):
    """320 blocks of 1024 threads are two rounds of 264: the second has 56."""
    plan = plan_of(Gemm(1, n, k), find_one("sgemm/gemv:columns", "test").config)
    blocks = plan.tiles * plan.parts
    read = ceil_div(blocks, SMS) * plan.iterations * plan.step * plan.lines
    assert read < 1.2 * n * k / SMS


def test_they_stand_beside_the_ladder(capsys):
    assert "gemv" not in {rung.name for family in ("sgemm", "hgemm") for rung in ladder(family)}
    assert main(["list", "sgemm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["id"] == "sgemm/gemv"


@pytest.mark.parametrize("k, name", [(4096, "1x16"), (4088, "1x8"), (2280, "1x8"), (2048, "1x8")])
def test_a_lane_needs_all_loads_that_are_under_way_at_least_once(k, name):
    """A warp loads 512 pieces of 16 bytes by 16 loads. At K = 2280 a lane needs nine of them. An H200 took
    33.2 us for 12984 rows by 16 loads, and cuBLAS 19.3."""
    assert HGEMM.fitted(HalfGemm(1, 12984, k, "nt", "float16")).variant == name


@pytest.mark.parametrize("shape, measured", [
    ((3, 1296, 9848), 42.1),
    ((3, 2560, 10240), 47.1),
    ((3, 4096, 1024), 8.2),
    ((2, 6144, 24576), 136.5),  # enough blocks for all of memory's bandwidth
], ids=str)  # fmt: skip
def test_few_blocks_read_columns_for_several_vectors_more_slowly(shape, measured):
    """What an H200 took."""
    estimate = estimated(SGEMM, Gemm(*shape)).estimate
    assert estimate.microseconds == pytest.approx(measured, rel=0.1)
