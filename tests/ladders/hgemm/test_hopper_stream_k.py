"""Tiles that programs share K tile by K tile: what each has of them, the order that parts need, what the next
launch finds, and who waits for whom."""

import re

import pytest
from hopper_rungs import ARCH, KINDS
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.hgemm import stream_k
from tir_schedules.ladders.hgemm.stream_k import CONFIGS, Config, Shares
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine, invocation
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.half_gemm import HalfGemm

SMALL = "64x64,stages=3,worth=1,group=2"
KIND = ("nt", "float32", "bfloat16", "bfloat16")
SHAPE = HalfGemm(200, 104, 520, *KIND)
"""Eight tiles of 64x64, each of nine K tiles, ragged along M, N and K."""
MAKERS = (lower, load_twin)


def rung(programs):
    """With so many programs at most."""
    return find(f"hgemm/stream_k:{SMALL},programs={programs}")[0]


def shares(gemm, **fields):
    return Shares.of(gemm, Config(**{**vars(CONFIGS["64x64"]), "worth": 1, **fields}))


SHARED = [
    (SHAPE, 3, Shares(3, 8, 5, 9)),  # a round of whole tiles, and five shared
    (SHAPE, 5, Shares(5, 8, 8, 9)),
    (SHAPE, 13, Shares(13, 8, 8, 9)),  # more programs than tiles
    (SHAPE, 132, Shares(24, 8, 8, 9)),  # four parts save less than another part costs
    (HalfGemm(64, 64, 64 * 200, *KIND), 132, Shares(8, 1, 1, 200)),  # no tile has more than eight parts
    (HalfGemm(1, 8, 1000, *KIND), 5, Shares(4, 1, 1, 16)),
    (SHAPE, 1, Shares(1, 8, 0, 9)),
    (SHAPE, 4, Shares(4, 8, 0, 9)),  # whole rounds alone
    (HalfGemm(1, 8, 8, *KIND), 5, Shares(1, 1, 0, 1)),  # K shorter than a K tile
    (HalfGemm(200, 104, 8, *KIND), 5, Shares(5, 8, 0, 1)),
    (HalfGemm(200, 104, 8, *KIND), 13, Shares(8, 8, 0, 1)),
]


@pytest.mark.parametrize("gemm, programs, expected", SHARED)
def test_what_is_left_of_whole_rounds_is_shared(gemm, programs, expected):
    assert shares(gemm, programs=programs) == expected
    assert expected.busiest <= -(-expected.tiles // programs) * expected.k_tiles


def test_who_saves_too_little_does_not_share():
    large = HalfGemm(1536, 1536, 1536, *KIND)
    found = Shares.of(large, CONFIGS["128x128"])
    assert found == Shares(132, 144, 144, 24) and (found.busiest, found.others) == (27, 1)
    first = [program * 144 * 24 / 132 for program in range(132)]
    assert sum(k_tile % 24 != 0 for k_tile in first) == 120  # parts left, as the docstring says
    assert [Shares.of(large, Config(bn=128, worth=worth)).streamed for worth in (21, 22)] == [144, 0]
    assert [shares(SHAPE, programs=13, worth=worth).streamed for worth in (3, 4)] == [8, 0]


def test_the_tile_is_the_one_that_is_estimated_to_be_done_first():
    whole, few = HalfGemm(2048, 66 * 128, 2048, *KIND), HalfGemm(320, 640, 5440, *KIND)
    assert Shares.of(whole, CONFIGS[stream_k.choose(whole)]).streamed == 0  # four whole rounds
    assert stream_k.choose(few) == "64x64" and Shares.of(few, CONFIGS["64x64"]) == Shares(100, 50, 50, 85)


def test_where_nothing_is_shared_it_is_tma_store():
    own, other = (find(f"hgemm/{name}:128x128")[0] for name in ("stream_k", "tma_store"))
    own, other = (lower(rung, HalfGemm(256, 256, 128), ARCH).source for rung in (own, other))
    overlap = [line for line in own.splitlines(keepends=True) if "griddepcontrol" in line]
    assert len(overlap) == 2 and "griddepcontrol" not in other
    assert own.replace("hgemm_stream_k", "hgemm_tma_store").replace("".join(overlap), "") == other


QUICK = [
    ("64x64,stages=3,group=2,worth=3,programs=3", HalfGemm(200, 104, 520, "nt", "float32")),  # just worth it
    (f"{SMALL},programs=13", HalfGemm(200, 104, 520, "nn")),
]
MORE = [
    (f"{SMALL},programs=4", HalfGemm(136, 104, 136, *KINDS[2])),
    (f"{SMALL},programs=48", HalfGemm(200, 104, 520, *KINDS[3])),
    (f"{SMALL},programs=5", HalfGemm(1, 8, 1000, *KINDS[4])),
    ("256x256,programs=2,worth=1", HalfGemm(200, 520, 200, *KINDS[0])),
    ("128x256,programs=3,worth=1", HalfGemm(136, 264, 200, *KINDS[2])),
    ("128x128,programs=2,worth=1", HalfGemm(264, 72, 200, *KINDS[1])),
    ("64x128,programs=5,worth=1", HalfGemm(200, 264, 136, *KINDS[4])),
    ("192x192,programs=3,worth=1", HalfGemm(200, 264, 200, *KINDS[2])),
]
"""Fewer and more programs than tiles; a tile more than a round; many parts; one tile, one row and one column
of them; and tiles of other configurations."""


@layers("name, gemm", QUICK, MORE)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(name, gemm):
    """So parts are added in the same order, whichever block is first."""
    (own,) = find(f"hgemm/stream_k:{name}")
    (verdict,) = run([(own, gemm)], ARCH, CpuMachine(orders=3))
    assert verdict.faults == () and verdict.identical
    assert Shares.of(gemm, own.config).streamed


PLACE = "const part = place_of_parts<PLACES, WARPS, PIECES>() + warp"
TAKEN = "const part =\n        place_of_parts<PLACES, WARPS, PIECES>() + warp"
LEFT = "    __syncwarp();\n    if (threadIdx.x % 32 == 0)\n        asm"
SEEN = "    }\n    __syncwarp();\n    const uint4"
CLEARED = '        asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(mark) : "memory");\n'
FAULTS = {
    "the mark releases nothing": ("st.release.gpu", "st.relaxed.gpu"),
    "the mark is the block's": ("st.release.gpu", "st.release.cta"),
    "the mark is acquired by the block": ("ld.acquire.gpu", "ld.acquire.cta"),
    "not all lanes have stored": (LEFT, LEFT.replace("__syncwarp();", "")),
    "lanes do not wait": (SEEN, SEEN.replace("__syncwarp();", "")),
    "nobody waits": ("while (left == 0);", "while (false);"),
    "one place for all": (PLACE, f"{PLACE} % WARPS"),
    "the place of another program": (TAKEN, f"{TAKEN} % (PLACES * WARPS - WARPS)"),
    "the sums of another warp": (TAKEN, f"{TAKEN} * 0 + (warp ^ 1)"),
    "the last part is left out": ("other < programs &&", "other < programs - 1 &&"),
    "a part of the next tile": ("each, extra) < end", "each, extra) <= end"),
    "a part twice": ("Sum>(sums, other);", "Sum>(sums, program + 1);"),
    "the mark stays": (CLEARED, ""),
}
"""What is changed in streamed_parts.cuh, which schedule and twin have in common."""


def outcome(make, *changes, **machine):
    """Of the kernel of SHAPE with some texts changed, in several orders. A tile has two parts or three."""
    source = make(rung(23), SHAPE, ARCH).source
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    changed = loaded(source, rung(23), SHAPE, ARCH)
    return outcome_of([changed], SHAPE, CpuMachine(**{"budget": 1 << 22, "orders": 3, "cores": 1, **machine}))


@pytest.fixture
def kept(monkeypatch):
    """Launches find marks as the launch before left them, and NaN in the place of parts. What marks were."""
    found, own = [], invocation.Invocation._variable

    def variable(launch, declared):
        row = own(launch, declared)
        content = launch._kept[launch.variable_places[declared.name]]
        if "streamed_parts" in declared.name:
            content[:] = 0xFF
        elif "streamed_marks" in declared.name:
            content[:] = found[-1] if found else content
            found.append(content)
        return row

    monkeypatch.setattr(invocation.Invocation, "_variable", variable)
    return found


@layers("make", [load_twin], MAKERS)
def test_the_next_launch_finds_no_marks(make, kept):
    """Which launches after it would take for parts of theirs."""
    assert outcome(make).faults == ()
    assert len(kept) > 3 and not any(marks.any() for marks in kept)
    kept.clear()
    assert outcome(make, FAULTS["the mark stays"]).faults and kept[0].any()


@layers(
    "make, fault",
    [(load_twin, "the mark releases nothing"), (load_twin, "the place of another program")],
    [(load_twin, fault) for fault in FAULTS] + [(lower, fault) for fault in (*FAULTS,)[::6]],
)
def test_a_fault_of_what_programs_share_is_found(make, fault, kept):
    assert outcome(make, FAULTS[fault]).faults


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_a_mark_is_acquired(make):
    """Which the machine cannot tell from a relaxed one: a __syncwarp stands behind it."""
    ptx = compile_kernel(make(rung(23), SHAPE, ARCH)).ptx
    marks = re.findall(r"(?:ld|st)\.(?:acquire|release|relaxed)\.\w+\.global\.u32", ptx)
    assert {*marks} == {"ld.acquire.gpu.global.u32", "st.release.gpu.global.u32", "st.relaxed.gpu.global.u32"}


@pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])
def test_blocks_wait_for_blocks_that_began_before_them(make, monkeypatch):
    """So room for one is enough where blocks begin in their order. Else they stand still."""
    monkeypatch.setattr(invocation, "resident_blocks", lambda binary: 1)
    assert outcome(make, orders=1).faults == ()
    if make is load_twin:
        forwards = ("program = programs - 1 - blockIdx.x", "program = blockIdx.x")
        assert any("deadlock" in fault for fault in outcome(make, forwards, orders=1).faults)
