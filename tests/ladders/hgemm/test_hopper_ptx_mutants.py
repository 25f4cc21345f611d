"""Schedules and twins on Hopper with one instruction changed: every wait, arrival, announcement of bytes,
fence, commit, phase, count, mask and stage. Each is found, at a line of the CUDA source, or listed as right.

By default one of each kind runs on two kernels; `-m slow` runs all kernels, and of a fault that has more than
three places the first, the middle one and the last. `hopper_mutant_table.py` runs all, and counts those that
leave right numbers.
"""

import pytest
from hopper_mutant_cases import CASES, MACHINES, case_of, numbered
from hopper_mutants import FAULTS

LAST_ROUND = "nothing is copied into the stages any more, and a later wait is for all products"
SAME_SUMS = "only what threads have written to sums needs a fence"
ONE_TILE = "no thread waits for the last stage of the only tile to be empty"
LAST_TILE = "no thread waits for the last stage of the last tile to be empty"
FIRST_TILE = "the first tile is not behind another one in the same shared memory"
LATER_GROUP = "a later commit has these in its group, and a wait for all groups follows"

EQUIVALENT = {
    ("wgmma", "schedule"): {
        "products: no fence": ([1, 2], SAME_SUMS),
        "barrier: none": ([0], "shared memory has not been used before"),
    },
    ("wgmma_async", "schedule"): {
        "products: no fence": ([1, 2, 3], SAME_SUMS),
        "products: no commit": ([2], LAST_ROUND),
        "products: no wait": ([1, 2], LAST_ROUND),
        "products: a group more": ([1, 2], LAST_ROUND),
    },
    ("tma", "schedule"): {
        "products: no fence": ([1, 2, 3], SAME_SUMS),
        "products: no commit": ([2], LAST_ROUND),
        "products: no wait": ([1, 2, 3], LAST_ROUND),
        "products: a group more": ([1, 2, 3], LAST_ROUND),
    },
    ("warp_specialized", "schedule"): {
        "arrive: none": ([1], ONE_TILE),
    },
    ("warp_specialized", "twin"): {
        "arrive: none": ([1], ONE_TILE),
    },
    ("tma_store", "schedule"): {
        "arrive: none": ([3], ONE_TILE),
        "store: no wait": ([0], FIRST_TILE),
        "store: a group more": ([0], FIRST_TILE),
        "barrier: none": ([1], FIRST_TILE),
        "barrier: of all warpgroups": ([0], FIRST_TILE),
    },
    ("tile_shapes", "schedule"): {
        "arrive: at this block": ([3], LAST_TILE),
        "store: no wait": ([0], FIRST_TILE),
        "store: a group more": ([0], FIRST_TILE),
        "barrier: none": ([0], FIRST_TILE),
        "barrier: of all warpgroups": ([0], FIRST_TILE),
    },
    ("repacked", "schedule"): {
        "arrive: none": ([3], LAST_TILE),
    },
    ("split_k", "schedule"): {
        "arrive: none": ([3], LAST_TILE),
    },
    ("persistent", "schedule"): {
        "arrive: none": ([3], LAST_TILE),
    },
    ("cluster", "schedule"): {
        "arrive: at this block": ([3], LAST_TILE),
        "store: no commit": ([2], LATER_GROUP),
        "store: no wait": ([0], FIRST_TILE),
        "store: a group more": ([0], FIRST_TILE),
    },
}
"""Kernel -> fault -> which of its places, counted in the text, and why it is right there: nvcc has unrolled a
loop, or the code is for cases that the shape does not have."""


def missed(case, wanted):
    """Those of the wanted mutants that are not found, by fault and place."""
    return [
        (mutant.name, number)
        for mutant, (what, number, places) in numbered(case.mutants())
        if wanted(what, number, places) and not case.finding(mutant)
    ]


def is_right(name, form, what, number):
    return number in EQUIVALENT.get((name, form), {}).get(what, ((), ""))[0]


BY_DEFAULT = {
    ("tma_store", "twin"): (
        "init: no fence", "wait: none", "arrive: none", "announce: 16 bytes less", "load: for this block",
        "products: no fence", "products: no wait", "proxy: no fence", "store: no wait", "store: no commit",
        "barrier: none", "registers: too many",
    ),
    ("cluster", "twin"): (
        "load: for other blocks", "cluster: none", "init: one arrival less", "wait: other parity",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name, form", BY_DEFAULT)
def test_a_fault_of_each_kind_is_found(name, form):
    case = case_of(name, form)
    assert case.executed(case.binary.ptx, MACHINES[0]) == ((), True)
    assert missed(case, lambda what, number, _: what in BY_DEFAULT[name, form] and not number) == []


def test_an_arrival_less_is_found_before_a_stage_is_used_again():
    """What the last of the arrivals tells is lost at once, although nothing is overwritten yet."""
    case = case_of("tma_store", "twin", k=64)
    assert case.executed(case.binary.ptx, MACHINES[0]) == ((), True)
    less = [mutant for mutant in case.mutants() if mutant.what == "init: one arrival less"]
    empty = [found for mutant in less if (found := case.finding(mutant)) and "phase before" in found.message]
    assert empty and {found.kind for found in empty} == {"barrier_misuse"}


@pytest.mark.slow
@pytest.mark.parametrize("name, form", CASES)
def test_every_fault_is_found(name, form):
    case = case_of(name, form)
    for machine in MACHINES:
        assert case.executed(case.binary.ptx, machine) == ((), True)

    def wanted(what, number, places):
        return not is_right(name, form, what, number) and number in (0, places // 2, places - 1)

    assert missed(case, wanted) == []


@pytest.mark.slow
@pytest.mark.parametrize("name, form", EQUIVALENT)
def test_what_is_listed_as_right_is_found_no_fault_with(name, form):
    case = case_of(name, form)
    found = missed(case, lambda what, number, _: is_right(name, form, what, number))
    assert len(found) == sum(len(places) for places, _ in EQUIVALENT[name, form].values())


@pytest.mark.slow
def test_every_fault_has_its_place():
    """Else one would not fit what nvcc writes."""
    met = {mutant.what for name, form in CASES for mutant in case_of(name, form).mutants()}
    assert met == {fault.what for fault in FAULTS}
