"""The order of a thread's products in the emitted CUDA, with serpentine loops and without."""

import re
from dataclasses import replace
from itertools import pairwise, product

import pytest
from lowered import ARCH, SMALL, faults, named, source

from tir_schedules.compiler.lower import emit, scheduled
from tir_schedules.ladders.sgemm import pipelined
from tir_schedules.workloads.gemm import Gemm

RUNG = "sgemm/serpentine"
SHAPE = Gemm(128, 128, 64)
TILES = {**SMALL, "wmiter": 1, "wniter": 2}


def products_of(text):
    """What each FMA of the first nest of unrolled loops multiplies, in their order: places in the
    fragments of A and of B."""
    lines = [line.strip() for line in text.split("\n")]
    factors = re.compile(r"\+ \(A_\w+\[(.*)\] \* B_\w+\[(.*)\]\)\);")
    place, found = next((place, found) for place, line in enumerate(lines) if (found := factors.search(line)))
    loops = {}
    while lines[place - 2] == "#pragma unroll":
        place -= 2
        loop = re.match(r"for \(int (\w+) = 0; \w+ < (\d+);", lines[place + 1])
        loops = {loop[1]: range(int(loop[2])), **loops}
    step = dict.fromkeys(re.findall(r"\bax\w+", found[0]), 0)
    rounds = [step | dict(zip(loops, values)) for values in product(*loops.values())]
    return [tuple(eval(index, {}, values) for index in found.groups()) for values in rounds]


def meetings(text):
    """How many of them have a factor of the one before, and how many there are."""
    products = products_of(text)
    assert len(set(products)) == len(products)
    return sum(a == b or c == d for (a, c), (b, d) in pairwise(products)), len(products)


@pytest.mark.parametrize("wn, wmiter, wm", [(64, 2, 32), (32, 1, 32), (64, 3, 48)])
def test_neighbours_share_a_factor(wn, wmiter, wm):
    """Also where a loop's extent is not a power of two."""
    tiles = {**TILES, "wn": wn, "wmiter": wmiter, "wm": wm, "bm": 2 * wm}
    text = source(RUNG, SHAPE, **tiles)
    assert not faults(RUNG, text, SHAPE, **tiles)
    assert meetings(text) == (32 * wmiter - 1, 32 * wmiter)
    rows = [row for row, _ in products_of(text)]
    count = 4 * wmiter
    assert rows[count : 2 * count] == rows[:count][::-1]
    plain = products_of(source(RUNG, SHAPE, without=["reverse_in_odd"], **tiles))
    assert rows[:count] == [row for row, _ in plain[:count]]


def test_a_loop_turns_by_the_rounds_of_one_that_turns_itself():
    """Then neighbours differ in one loop's value, by one."""
    rung = named(RUNG, **(TILES | {"wn": 64, "wmiter": 2}))

    def schedule(sch, gemm, config):
        for loop in pipelined.double_buffered(sch, gemm, config, config.padding).fmas[1:]:
            sch.reverse_in_odd(loop)

    reversed_ = scheduled(replace(rung, schedule=schedule), SHAPE)
    products = products_of(emit(reversed_, rung.entry, ARCH).source)
    steps = {abs(row - now[0]) + abs(column - now[1]) for (row, column), now in pairwise(products)}
    assert steps == {1, 4}  # by one place, or by one sub-tile of four


def test_without_it_they_do_not_where_a_column_ends():
    text = source(RUNG, SHAPE, without=["reverse_in_odd"], **TILES)
    assert meetings(text) == (8 * 3, 32)
    assert text == source("sgemm/pipelined", SHAPE, **TILES).replace("pipelined", "serpentine")
