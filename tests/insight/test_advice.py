"""Advice is a promise: who follows it gets the counters that it names. Nothing is said of what is good."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from tir_schedules.cli.main import main
from tir_schedules.insight.advice.conflicts import Layout, find_declaration
from tir_schedules.insight.advice.subject import transpose_threads, without_second_bound

FILE = Path(__file__).parent / "advice_kernels.cu"
GOOD = (
    "transpose_padded", "transpose_swizzled", "rows", "by_vector", "read_once", "gathered",
    "most_work", "sound",
)  # fmt: skip
"""Kernels of which nothing is to be said."""


@pytest.fixture(scope="module")
def told():
    """Kernel -> what `check --advice` says of it."""
    with redirect_stdout(StringIO()) as out:
        main(["check", str(FILE), "--advice", "--json"])
    return {one["kernel"]: one for one in json.loads(out.getvalue())}


def advice(told, kernel, kind):
    (found,) = [one for one in told[kernel]["advice"][0] if one["kind"] == kind]
    return found


def cost(told, kernel, *kinds):
    accesses = told[kernel]["launches"][0]["accesses"]
    return sum(accesses[kind]["cost"] for kind in kinds if kind in accesses)


def shared(told, kernel):
    return cost(told, kernel, "shared_load", "shared_store")


def test_all_kernels_are_right(told):
    assert [name for name, one in told.items() if not one["ok"]] == []
    assert len(told) == FILE.read_text().count("__global__")


@pytest.mark.parametrize("kernel", GOOD)
def test_nothing_is_said_of_what_is_good(told, kernel):
    assert told[kernel]["advice"] == [[]]


def test_nothing_is_said_of_vectors_without_conflicts(told):
    assert "bank conflicts" not in {one["kind"] for one in told["vectors_swizzled"]["advice"][0]}


@pytest.mark.parametrize("kernel", ("transpose", "transpose_flat"))
def test_a_padded_tile_costs_what_was_promised(told, kernel):
    found = advice(told, kernel, "bank conflicts")
    padding = next(one for one in found["layouts"] if one["layout"] == "padding")
    assert (padding["row"], padding["pitch"], padding["more_bytes"]) == (128, 132, 128)
    assert found["before"] == shared(told, kernel) == 8448
    assert padding["wavefronts"] == found["ideal"] == shared(told, "transpose_padded") == 512
    assert found["saved"] == 8448 - 512


def test_what_a_declaration_allows_is_tried(told):
    assert advice(told, "transpose", "bank conflicts")["tried"] == (
        "tried tile[32][33]: right, 512 wavefronts in place of 8,448"
    )
    assert advice(told, "transpose_flat", "bank conflicts")["tried"] == ""


def test_what_is_tried_and_wrong_is_not_claimed(told):
    """The addresses alone cannot tell: the replay stands."""
    found = advice(told, "by_pointer", "bank conflicts")
    assert found["tried"] == "" and found["layouts"][0]["wavefronts"] == 512


def test_a_swizzled_tile_costs_what_was_promised(told):
    found = advice(told, "transpose_flat", "bank conflicts")
    swizzle = next(one for one in found["layouts"] if one["layout"] == "swizzle")
    assert (swizzle["row"], swizzle["piece"], swizzle["alike"], swizzle["more_bytes"]) == (128, 4, 1, 0)
    assert swizzle["wavefronts"] == shared(told, "transpose_swizzled")


def test_padding_keeps_vectors_aligned_and_counts_what_it_takes(told):
    """A pad of 1 would take all conflicts away, if rows could begin anywhere."""
    found = advice(told, "vectors", "bank conflicts")
    swizzle, padding = found["layouts"]
    assert (padding["pitch"], padding["more_bytes"], padding["blocks_per_sm"]) == (144, 1024, 16)
    assert "16 blocks per SM, not 18" in found["remedies"][1]
    assert (swizzle["piece"], swizzle["alike"]) == (16, 2)
    assert swizzle["wavefronts"] == shared(told, "vectors_swizzled") < padding["wavefronts"]
    assert found["tried"].startswith(f"tried tile[64][36]: right, {padding['wavefronts']} wavefronts")


def test_threads_in_another_order_take_the_sectors_that_were_promised(told):
    found, kinds = advice(told, "columns", "thread order"), ("global_load", "global_store")
    assert found["before"] == cost(told, "columns", *kinds) == 4096
    assert found["after"] == cost(told, "rows", *kinds) == 512
    assert "neighbouring lanes are 128 bytes apart" in found["reason"]
    assert found["tried"] == "tried: right, 512 sectors in place of 4,096"


def test_wider_accesses_take_what_was_promised(told):
    for kind in ("global_load", "global_store"):
        verb = kind.removeprefix("global_")
        (found,) = [one for one in told["by_four"]["advice"][0] if f"global {verb}s" in one["reason"]]
        wide = told["by_vector"]["launches"][0]["accesses"][kind]
        assert found["kind"] == "wider accesses" and found["width_after"] == 16
        assert (found["requests_after"], found["after"]) == (wide["requests"], wide["cost"])
        assert found["before"] == cost(told, "by_four", kind)


def test_accesses_that_are_not_aligned_are_not_to_be_wider(told):
    assert {one["kind"] for one in told["from_odd"]["advice"][0]} == {"sectors"}


def test_what_is_read_again_could_be_read_once(told):
    found = advice(told, "read_again", "read again")
    assert (found["bytes"], found["different_bytes"]) == (5 * 512, 512)
    assert found["different_sectors"] * found["blocks"] == cost(told, "read_once", "global_load")
    assert not found["remedies"] and not found["tried"], "it is numbers alone"


def test_lanes_that_rest(told):
    found = advice(told, "resting", "resting lanes")
    assert found["before"] == 4 * found["full"] and "8.0 of 32 lanes" in found["reason"]
    line = FILE.read_text().split("\n")[found["line"] - 1]
    assert "__sinf" in line


def test_spills_are_tried_without_the_second_launch_bound(told):
    found = advice(told, "spilling", "spills")
    assert found["stores"] > 0 and "tried: right, 0 bytes spilled, " in found["tried"]


def test_the_next_step_of_occupancy(told):
    found = advice(told, "large", "occupancy")
    assert (found["now"], found["blocks"], found["shared"]) == (3, 4, 40960)
    (after,) = told["small"]["advice"][0]
    assert told["small"]["launches"][0]["static_shared"] == 40960 and after["now"] == 4


def test_what_saves_most_is_first(told):
    for one in told.values():
        saved = [each["saved"] for each in one["advice"][0]]
        assert saved == sorted(saved, reverse=True)


def test_advice_is_printed(tool):
    code, out, _ = tool("check", str(FILE), "--kernel", "transpose", "--advice")
    assert code == 0
    assert "advice_kernels.cu:13: tile: 8,448 wavefronts where 512 would do: loads on line 13 take 32" in out
    assert "pad rows of 32 floats by 1: 512 wavefronts (loads on line 13: 32 -> 1 per request); 128" in out
    assert "tried tile[32][33]: right" in out
    assert "advice: nothing to gain" in tool("check", str(FILE), "--kernel", "sound", "--advice")[1]


def test_what_a_block_does_that_waits_for_others_is_not_known(told):
    (found,) = [one for one in told["waits"]["advice"][0] if one["kind"] == "not known"]
    assert "without other blocks it does not end" in found["reason"]


def test_numbers_of_a_ragged_launch_are_of_a_block(told):
    """The first block has four warps, the last one has one that stores; what is tried is of all."""
    found = advice(told, "ragged", "bank conflicts")
    assert "(in block 0,0,0)" in found["reason"] and found["before"] == 32 * 4
    assert found["tried"] == f"tried t[128][33]: right, 5 wavefronts in place of {32 * 5}"


def test_without_the_option_nothing_is_advised(tool):
    _, out, _ = tool("check", str(FILE), "--kernel", "transpose", "--json")
    assert "advice" not in json.loads(out)[0]


def inspected(tool, rung):
    code, out, _ = tool("inspect", rung, "--advice", "--json")
    assert code == 0
    return json.loads(out)["kernels"]


def shared_of(kernel):
    accesses = kernel["counters"]["accesses"]
    return sum(one["cost"] for kind, one in accesses.items() if kind.startswith(("shared", "ldmatrix")))


def test_the_ladder_follows_the_advice_on_tiles_of_wmma(tool):
    """wmma takes rows at one distance: the padding that it can follow is that of the next rung."""
    before, after = (inspected(tool, f"hgemm/{name}") for name in ("wmma_shared", "wmma_padded"))
    for form in ("schedule", "twin"):
        found = [one for one in before[form]["advice"] if one["kind"] == "bank conflicts"]
        layouts = [one["layouts"][0] for one in found]
        assert [(one["row"], one["pitch"]) for one in layouts] == [(64, 80)] * 2
        assert sum(one["before"] for one in found) == shared_of(before[form])
        assert sum(one["wavefronts"] for one in layouts) == shared_of(after[form])


def test_the_ladder_follows_the_advice_on_threads(tool):
    before, after = (inspected(tool, f"sgemm/{name}")["twin"] for name in ("naive", "coalesced"))
    (found,) = [one for one in before["advice"] if one["kind"] == "thread order"]
    sectors = sum(one["cost"] for kind, one in after["counters"]["accesses"].items() if "global" in kind)
    assert found["after"] == sectors and found["tried"].startswith("tried: right")


@pytest.mark.parametrize("rung", ("hgemm/mma_multistage", "sgemm/shared_tile"))
def test_nothing_is_said_of_tiles_without_conflicts(tool, rung):
    for kernel in inspected(tool, rung).values():
        assert [one for one in kernel["advice"] if one["kind"] != "occupancy"] == []


def test_layouts():
    offsets = np.array([0, 4, 128, 132, 256])
    assert Layout(128, 132).places(offsets).tolist() == [0, 4, 132, 136, 264]
    assert Layout(128, 128, 4).places(offsets).tolist() == [0, 4, 132, 128, 264]
    assert Layout(128, 132).more(4096) == 128 and Layout(128, 128, 4).more(4096) == 0


def test_declarations():
    source = "__shared__ __align__(16) float a[2][8], b[TS][TS + 1];\n__shared__ half a[4];\na"
    assert find_declaration(source, "a", 1).extents == ("2", "8")
    assert find_declaration(source, "a", 3).type == "half"
    assert find_declaration(source, "b", 1).row(4) is None
    assert find_declaration("#define TS 32\n" + source, "b", 3).row(32 * 33 * 4) == 33 * 4
    assert find_declaration(source, "c", 3) is None


def test_changes_of_a_source():
    assert transpose_threads("threadIdx.x + blockDim.y", (8, 4, 1), 8) == (
        "threadIdx.y + blockDim.x",
        (4, 8, 1),
    )
    assert transpose_threads("threadIdx.x", (64, 1, 1), 8) == (
        "(threadIdx.x % 8 * 8 + threadIdx.x / 8)",
        (64, 1, 1),
    )
    assert transpose_threads("blockIdx.x", (64, 1, 1), 8) is None
    assert without_second_bound("__launch_bounds__(N / 2, 2) k") == "__launch_bounds__(N / 2) k"
    assert without_second_bound("__launch_bounds__(N) k") is None


# ---- products of warpgroups ---
@pytest.fixture(scope="module")
def of_hopper():
    """Kernel -> what is said of it, by kind."""
    with redirect_stdout(StringIO()) as out:
        main(["check", str(FILE.with_name("advice_hopper.cu")), "--arch", "sm_90a", "--advice", "--json"])
    told = json.loads(out.getvalue())
    assert all(one["ok"] for one in told)
    return {one["kernel"]: {each["kind"]: each for each in one["advice"][0]} for one in told}


def test_products_that_nothing_overlaps(of_hopper):
    told = of_hopper["product<2, 0>"]["products in flight"]
    assert (told["alone"], told["groups"]) == (11, 12) and "wgmma.wait_group 1" in told["remedies"][0]
    assert "products in flight" not in of_hopper["product<2, 1>"]


def test_a_ring_of_few_slots(of_hopper):
    told = of_hopper["product<2, 1>"]["ring"]
    assert (told["slots"], told["slot_bytes"], told["most"]) == (2, 59392, 3)


def test_one_block_per_sm_and_a_thread_that_copies_for_all_are_no_fault(of_hopper):
    assert of_hopper["product<3, 1>"] == {}
