"""Shapes drawn by a seed."""

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.ladders.drawn_shapes import (
    HEAD_DIMS,
    KINDS,
    MLPS,
    draw,
    drawn_problems,
    note_on,
    numerics,
    within_bounds,
)
from tir_schedules.workloads.gemm import Gemm

MANY = [*draw(700, 5), *draw(700, 6)]


def of(kind):
    found = [drawn.shape for drawn in MANY if drawn.kind == kind]
    assert len(found) == 200
    return found


def test_the_same_seed_draws_the_same_and_more_of_them_begin_with_the_same():
    assert [(drawn.kind, drawn.shape) for drawn in draw(7, 101)] == [
        ("square", (160, 160, 160)),
        ("aligned", (5696, 576, 1600)),
        ("odd", (99, 103, 145)),
        ("thin", (2, 14824, 336)),
        ("long K", (230, 57, 42009)),
        ("attention", (908, 351, 128)),
        ("MLP", (15, 1024, 4096)),
    ]
    assert draw(30, 101)[:7] == draw(7, 101) and draw(7, 102) != draw(7, 101)


def test_shapes_are_within_bounds_and_differ():
    for seed in (5, 6):
        shapes = [drawn.shape for drawn in draw(700, seed)]
        assert len(set(shapes)) == 700 and all(map(within_bounds, shapes))
    assert within_bounds((8192, 8192, 8192)) and not within_bounds((8192, 8192, 8193))
    assert within_bounds((2**14, 1, 2**14)) and not within_bounds((2**14, 1, 2**14 + 1))


def test_kinds_are_what_they_say():
    assert {drawn.kind for drawn in MANY} == KINDS.keys()
    assert all(m == n == k for m, n, k in of("square"))
    assert all(extent % 8 == 0 for shape in of("aligned") for extent in shape)
    assert all(extent % 2 for shape in of("odd") for extent in shape)
    assert all(min(m, n) <= 64 < 512 <= max(m, n) for m, n, _ in of("thin"))
    assert all(max(m, n) <= 512 and k >= 8192 for m, n, k in of("long K"))
    assert all(n in HEAD_DIMS or k in HEAD_DIMS for _, n, k in of("attention"))
    assert all((n, k) in MLPS or (k, n) in MLPS for _, n, k in of("MLP"))


def test_extents_are_log_uniform_and_half_of_them_aligned():
    sizes = [shape[0] for shape in of("square")]
    small, large = (sum(low <= size < 4 * low for size in sizes) for low in (64, 1024))
    assert 30 < small < 80 and 30 < large < 80  # of 200, over three such spans and a half
    assert 80 < sum(size % 8 == 0 for size in sizes) < 140
    assert {few in (m, n) for few in (1, 64) for m, n, _ in of("thin")} == {True, False}


def test_each_shape_of_a_ladder_has_one_format_and_layout_in_turn():
    problems = drawn_problems("hgemm", 42, 3, {})
    assert [problem.shape for problem in problems] == [drawn.shape for drawn in draw(42, 3)]
    had = [(one.dtype, one.accumulate, one.output, one.layout) for one in problems]
    assert len(set(had[:6])) == 6 and had[:6] == had[6:12]
    pairs = {(drawn.kind, kind) for drawn, kind in zip(draw(42, 3), had)}
    assert len(pairs) == 42  # every kind in every format
    assert [problem.shape for problem in drawn_problems("sgemm", 42, 3, {})] == [
        one.shape for one in problems
    ]


def test_what_is_asked_for_is_the_same_in_all():
    asked = {"layout": "nt", "accumulate": "float32", "dtype": None, "output": "float16"}
    assert numerics("hgemm", asked) == [
        {"layout": "nt", "accumulate": "float32", "dtype": "float16", "output": "float16"}
    ]
    others = numerics("hgemm", {"output": "float32"})  # which is not among those in turn
    assert len(others) == 4 and {turn["output"] for turn in others} == {"float32"}
    with pytest.raises(BadInput, match="of bfloat16 matrices it can be float32"):
        numerics("hgemm", {"dtype": "bfloat16", "accumulate": "float16"})


def test_results_know_seed_and_kinds():
    note = note_on(8, 101, [Gemm(160, 160, 160), Gemm(2, 14824, 336), Gemm(1, 2, 3)])
    assert note == {"shapes": 8, "seed": 101, "kinds": {"160x160x160": "square", "2x14824x336": "thin"}}


@pytest.mark.parametrize("count, seed, message", [
    (0, 1, "--random takes a number of shapes from 1 to 1000, not 0"),
    (1001, 1, "not 1001"),
    (3, -1, "--seed takes a whole number from 0 to 4294967295, not -1"),
    (3, 2**32, "not 4294967296"),
])  # fmt: skip
def test_numbers_that_cannot_be_are_refused(count, seed, message):
    with pytest.raises(BadInput, match=message):
        draw(count, seed)


def test_ladders_of_other_extents_are_refused():
    with pytest.raises(BadInput, match="--random draws M, N and K; reduce has N"):
        drawn_problems("reduce", 3, 1, {})
