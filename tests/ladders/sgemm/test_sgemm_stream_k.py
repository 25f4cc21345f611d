"""Tiles that programs share along K: what each has of them, who waits for whom, and what the next launch
finds."""

import re

import numpy as np
import pytest
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.ladders.sgemm.stream_k import Config, Shares
from tir_schedules.machines.cpu import CpuMachine, invocation
from tir_schedules.machines.execution import execute
from tir_schedules.run import outcome_of, run
from tir_schedules.tuning.space.tunable import check_fields
from tir_schedules.workloads.gemm import Gemm

ARCH = "sm_90"
SMALL = "bm=32,bn=32,wm=16,wn=32,wmiter=1,wniter=1,worth=1"
SHAPE, ODD = Gemm(70, 100, 140), Gemm(70, 101, 141)
"""Twelve tiles of 32x32, ragged along M and N, of nine K pairs each, the last with less of K. ODD: rows are
no multiples of 16 bytes."""
MAKERS = (lower, load_twin)


def rung(programs):
    """With so many programs at most."""
    return find(f"sgemm/stream_k:{SMALL},programs={programs}")[0]


def shares(*shape, **fields):
    return Shares.of(Gemm(*shape), Config(**{"worth": 1, **fields}))


SHARED = [
    ((4096, 4096, 4096), {"worth": 12}, Shares(264, 1024, 232, 256)),
    ((8192, 8192, 8192), {"worth": 12}, Shares(264, 4096, 136, 512)),
    ((5400, 5400, 5400), {"worth": 12}, Shares(264, 1849, 265, 338)),  # not 264 parts of one tile
    ((2048, 2048, 2048), {"worth": 12}, Shares(256, 256, 0, 128)),  # 8 of 264 programs would have no tile
    ((2048, 2048, 2048), {"worth": 3}, Shares(264, 256, 256, 128)),
    ((2048, 2112 * 2, 64), {}, Shares(528, 528, 0, 4)),  # whole rounds alone
    ((256, 256, 256), {"programs": 3}, Shares(3, 4, 1, 16)),
    ((256, 256, 256), {"programs": 5}, Shares(5, 4, 4, 16)),
    ((256, 256, 256), {}, Shares(32, 4, 4, 16)),  # no tile has more than eight parts
    ((256, 256, 32), {}, Shares(8, 4, 4, 2)),  # nor more than K pairs
    ((256, 256, 16), {}, Shares(4, 4, 0, 1)),
    ((256, 256, 241), {}, Shares(32, 4, 4, 16)),  # the last K pair has one of K
    ((256, 256, 256), {"programs": 1}, Shares(4, 4, 0, 16)),
]


@pytest.mark.parametrize("shape, fields, expected", SHARED)
def test_what_is_left_of_whole_rounds_is_shared(shape, fields, expected):
    assert shares(*shape, **fields) == expected


def test_where_nothing_is_shared_it_is_serpentine():
    (own,), (other,) = find("sgemm/stream_k"), find("sgemm/serpentine")
    for gemm in (Gemm(256, 256, 64), Gemm(132, 100, 36)):
        one, two = lower(own, gemm, ARCH), lower(other, gemm, ARCH)
        assert one.source.replace("sgemm_stream_k", "sgemm_serpentine") == two.source and one.grid == two.grid


@pytest.mark.parametrize("field", ["programs=0", "worth=0", "programs=65537", "worth=4097"])
def test_of_nothing_there_is_no_share_and_numbers_are_those_of_the_twin(field):
    with pytest.raises(BadInput, match="programs must be 1 to 65536, and worth, .* 1 to 4096"):
        check_fields(find(f"sgemm/stream_k:{field}")[0], ARCH)


@pytest.mark.slow
def test_the_largest_numbers_are_the_twins_too():
    (own,) = find(f"sgemm/stream_k:{SMALL[: -len('worth=1')]}worth=4096,programs=65536")
    (verdict,) = run([(own, ODD)], ARCH, CpuMachine())
    assert verdict.faults == () and verdict.identical


QUICK = [
    (f"{SMALL},programs=5", SHAPE),  # two whole rounds, and two tiles for five programs
    (f"{SMALL},programs=23", ODD),  # fewer tiles than programs
    ("programs=3,worth=1", Gemm(132, 132, 48)),
]
MORE = [
    (f"{SMALL},programs=23", SHAPE),
    (f"{SMALL},programs=5", ODD),
    (f"{SMALL},programs=3", Gemm(5, 7, 45)),  # a matrix smaller than a tile
    (f"{SMALL},programs=5", Gemm(65, 33, 50)),  # A and B alone have odd rows, or
    (f"{SMALL},programs=5", Gemm(65, 33, 52)),
    (f"{SMALL},programs=5", Gemm(65, 36, 49)),
    (
        f"{SMALL},programs=108",
        Gemm(70, 101, 129),
    ),  # K pairs of one of K, and programs with such a K pair alone
    (f"{SMALL},programs=7", SHAPE),
    (f"{SMALL},programs=11", SHAPE),  # one tile is left for eleven, so that a round is shared, too
    (f"{SMALL},programs=96", Gemm(32, 32, 512)),
    (f"{SMALL},programs=3", Gemm(1, 100, 160)),
    (f"{SMALL},programs=2", Gemm(65, 4, 32)),  # a K pair for a program
    (f"{SMALL},programs=5,bk=16,padding=0", Gemm(70, 100, 160)),
    ("bm=64,bn=128,wm=32,wn=64,wmiter=1,wniter=4,worth=1,programs=5", Gemm(64, 512, 320)),
]


BOTH = (ARCH, "sm_80")  # which has no red of 16 bytes


@layers(
    "name, gemm, arch",
    [(*case, arch) for case, arch in zip(QUICK, BOTH)],
    [(*case, arch) for case in QUICK + MORE for arch in BOTH],
)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(name, gemm, arch):
    """So sums are added in the same order, whichever block is first."""
    (own,) = find(f"sgemm/stream_k:{name}")
    assert Shares.of(gemm, own.config).streamed
    (verdict,) = run([(own, gemm)], arch, CpuMachine(orders=3))
    assert verdict.faults == () and verdict.identical


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_sums_are_added_from_the_first_pair_on(make):
    """In float32 another order makes another sum: 2^24 + 1 is 2^24."""
    gemm = Gemm(1, 4, 64)
    given = gemm.arguments() | {"A": np.ones((1, 64), "float32"), "B": np.zeros((64, 4), "float32")}
    given["B"][[0, 16, 32, 48], 0] = 2.0**24, 1, -(2.0**24), 1
    for orders in (1, 2):
        binary = compile_kernel(make(rung(4), gemm, ARCH))
        assert binary.kernel.grid == (4, 1, 1)
        ((_, left),) = execute(CpuMachine(orders=orders), gemm, [binary], given)
        assert left["C"][0, 0] == 1


WAITS, LEAVES = "while (!__all_sync(0xffffffffu, left != 0));", "    if (leaves) {\n        __syncwarp();"
CLEARS = "@first st.relaxed.gpu.global.u32 [%0], 0;"
STORES = "if (piece.first == 0)\n            leave_sums"
FAULTS = {
    "the mark releases nothing": ("st.release.gpu", "st.relaxed.gpu"),
    "the mark is the block's": ("st.release.gpu", "st.release.cta"),
    "not all lanes have stored": (LEAVES, LEAVES.replace("__syncwarp();", "")),
    "nobody waits": (WAITS, "while (false);"),
    "the mark of another warp": ("(program - 1) * WARPS + threadIdx.x / 32", "(program - 1) * WARPS"),
    "the mark stays": (CLEARS, CLEARS.replace("0;", "1;")),
    "one of four is lost": ('"f"(sums[2]), "f"(sums[3])', '"f"(sums[2]), "f"(0.0f)'),
}
"""What is changed in added_sums.cuh, which schedule and twin have in common."""
OF_TWIN = {
    "what is beyond K": ("min((end - before) * K_PAIR, K)", "(end - before) * K_PAIR"),
    "a K pair too few": ("min((end - before) * K_PAIR, K)", "min((end - 1 - before) * K_PAIR, K)"),
    "sums are stored over others": (STORES, STORES.replace("==", ">=")),
    "tiles of the last program twice": ("extra = shared * k_pairs % programs", "extra = 0"),
    "a tile that is still read": ("        __syncthreads(); // all warps", "        // all warps"),
}


def outcome(make, *changes, **machine):
    """Of the kernel of SHAPE with some texts changed, in several orders. A tile has two parts or three."""
    source = make(rung(23), SHAPE, ARCH).source
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return outcome_of_text(source, SHAPE, **machine)


def outcome_of_text(source, gemm, **machine):
    changed = loaded(source, rung(23), gemm, ARCH)
    return outcome_of([changed], gemm, CpuMachine(**{"budget": 1 << 22, "orders": 3, "cores": 1, **machine}))


@pytest.fixture
def kept(monkeypatch):
    """Launches find marks as the launch before left them. What these were."""
    found, own = [], invocation.Invocation._variable

    def variable(launch, declared):
        row = own(launch, declared)
        if "streamed_marks" in declared.name:
            content = launch._kept[launch.variable_places[declared.name]]
            content[:] = found[-1] if found else content
            found.append(content)
        return row

    monkeypatch.setattr(invocation.Invocation, "_variable", variable)
    return found


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_the_next_launch_finds_no_marks(make, kept):
    """Which launches after it would take for sums of theirs."""
    assert outcome(make).faults == ()
    assert len(kept) > 3 and not any(marks.any() for marks in kept)


@layers(
    "make, fault",
    [(load_twin, "the mark releases nothing"), (lower, "nobody waits"), (load_twin, "a K pair too few")],
    [(load_twin, fault) for fault in (*FAULTS, *OF_TWIN)] + [(lower, fault) for fault in FAULTS],
)
def test_a_fault_of_what_programs_share_is_found(make, fault, kept):
    assert outcome(make, {**FAULTS, **OF_TWIN}[fault]).faults


@layers("place", [2], [0, 1, 3])
def test_copies_ask_for_what_is_beyond_k(place):
    """Of A and of B, in the first tiles of a program and in those of the last K pair."""
    source = lower(rung(23), ODD, ARCH).source
    guards = [*re.finditer(r"first_k_tile_ptr\[0\] \* 16\).* < (141|125)\)", source)]
    assert len(guards) == 4
    begin, end = guards[place].span(1)
    assert outcome_of_text(source[:begin] + "1000" + source[end:], ODD).faults


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_blocks_wait_for_blocks_that_began_before_them(make, monkeypatch):
    """So room for one is enough where blocks begin in their order. Else they stand still."""
    monkeypatch.setattr(invocation, "resident_blocks", lambda binary: 1)
    assert outcome(make, orders=1).faults == ()
    if make is load_twin:
        backwards = ("program = anew(blockIdx.x);", "program = gridDim.x - 1 - anew(blockIdx.x);")
        assert any("deadlock" in fault for fault in outcome(make, backwards, orders=1).faults)


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_a_warp_goes_on_together(make):
    """One lane that waits for the others costs a WARPSYNC in each iteration of the loop over K."""
    ptx = compile_kernel(make(rung(23), SHAPE, ARCH)).ptx
    assert re.search(r"ld\.acquire\.gpu\.global\.u32", ptx) and "vote.sync.all" in ptx
