"""Points of a made-up space: which are valid, and how a search draws, changes and crosses them."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung
from tir_schedules.tuning.space.points import Constraint, Space, key

ARCH = "sm_80"


@dataclass(frozen=True)
class Config:
    a: int = 2
    b: int = 2
    c: int = 0
    fixed: int = 7


RUNG = Rung(
    "sgemm",
    "made_up",
    "",
    "",
    Config(),
    schedule=lambda *_: None,
    launch=lambda *_: Launch((1, 1, 1), (1, 1, 1)),
    min_arch=80,
)
SMALL = Constraint(
    "a * b must not exceed the workload",
    lambda config, workload, arch: config.a * config.b <= workload,
    ("a", "b"),
)
ODD = Constraint(
    "c must be even when a is 1", lambda config, workload, arch: config.a != 1 or config.c % 2 == 0
)
SPACE = Space(RUNG, {"a": (1, 2, 4), "b": (1, 2, 4), "c": (0, 1, 2)}, (SMALL, ODD))
VALID = [
    {"a": a, "b": b, "c": c}
    for a in (1, 2, 4)
    for b in (1, 2, 4)
    for c in (0, 1, 2)
    if a * b <= 4 and (a != 1 or c % 2 == 0)
]


@pytest.fixture
def rng():
    return random.Random(0)


def changed(a, b):
    return [name for name in a if a[name] != b[name]]


def test_points_are_all_valid_ones_in_order_and_as_many_as_size_says():
    assert list(SPACE.points(4, ARCH)) == VALID
    assert SPACE.size(4, ARCH) == len(VALID)


def test_a_refusal_is_the_first_reason_and_empty_for_valid_points():
    assert [SPACE.refusal(point, 4, ARCH) for point in VALID] == [""] * len(VALID)
    assert SPACE.refusal({"a": 4, "b": 4, "c": 0}, 4, ARCH) == SMALL.reason
    assert SPACE.refusal({"a": 1, "b": 1, "c": 1}, 4, ARCH) == ODD.reason
    assert SPACE.refusal({"a": 1, "b": 1, "c": 5}, 4, ARCH) == "c can be 0, 1, 2"


@pytest.mark.parametrize("point", [{}, {"a": 1}, {"a": 1, "b": 1, "c": 0, "d": 0}])
def test_other_fields_than_those_of_the_space_are_bad_input(point):
    with pytest.raises(BadInput, match="a point of sgemm/made_up has a, b, c, not"):
        SPACE.refusal(point, 4, ARCH)


def test_the_rung_at_a_point_has_its_configuration_and_is_called_tuned():
    rung = SPACE.rung_at({"a": 4, "b": 1, "c": 2})
    assert rung.config == Config(4, 1, 2, 7) and rung.id == "sgemm/made_up:tuned"
    assert rung.fitted(4) is rung
    assert SPACE.point_of(rung.config) == {"a": 4, "b": 1, "c": 2}


def test_samples_are_uniform_over_valid_points(rng):
    drawn = Counter(key(SPACE.sample(rng, 4, ARCH)) for _ in range(200 * len(VALID)))
    assert set(drawn) == {key(point) for point in VALID}
    assert min(drawn.values()) > 140 and max(drawn.values()) < 260


def test_the_same_seed_draws_the_same_points():
    draws = [[SPACE.sample(rng, 4, ARCH) for _ in range(9)] for rng in (random.Random(3), random.Random(3))]
    assert draws[0] == draws[1]


def test_a_mutation_changes_one_field_where_it_can_and_reaches_every_value(rng):
    start = {"a": 2, "b": 2, "c": 1}
    children = [SPACE.mutate(start, rng, 4, ARCH) for _ in range(300)]
    assert all(not SPACE.refusal(child, 4, ARCH) for child in children)
    assert {child["a"] for child in children} == {1, 2, 4} and {child["c"] for child in children} == {0, 1, 2}
    for child in children:
        fewest = [
            min(len(changed(start, p)) for p in VALID if p[name] == child[name])
            for name in changed(start, child)
        ]
        assert len(changed(start, child)) in fewest


def test_where_no_single_change_is_valid_more_fields_change(rng):
    both = Constraint("a and b must be equal", lambda config, workload, arch: config.a == config.b)
    space = Space(RUNG, {"a": (1, 2), "b": (1, 2)}, (both,))
    assert space.mutate({"a": 1, "b": 1}, rng, 4, ARCH) == {"a": 2, "b": 2}


def test_the_only_point_of_a_space_stays(rng):
    space = Space(
        RUNG, {"a": (1, 2)}, (Constraint("a must be 1", lambda config, workload, arch: config.a == 1),)
    )
    assert space.mutate({"a": 1}, rng, 4, ARCH) == {"a": 1}


def test_a_child_has_each_field_from_one_parent_and_is_new_where_it_can(rng):
    a, b = {"a": 1, "b": 4, "c": 0}, {"a": 2, "b": 1, "c": 1}
    children = [SPACE.crossover(a, b, rng, 4, ARCH) for _ in range(100)]
    for child in children:
        assert not SPACE.refusal(child, 4, ARCH) and child not in (a, b)
        assert all(child[name] in (a[name], b[name]) for name in child)
    assert len({key(child) for child in children}) == 2  # of the six that mix them
    assert SPACE.crossover(a, a, rng, 4, ARCH) == a


def test_a_space_with_nothing_valid_and_an_old_architecture_are_bad_input(rng):
    with pytest.raises(BadInput, match="no configuration of sgemm/made_up fits 0 on sm_80"):
        SPACE.sample(rng, 0, ARCH)
    with pytest.raises(BadInput, match="needs sm_80 or later"):
        SPACE.sample(rng, 4, "sm_75")


def test_keys_are_equal_for_equal_points_only():
    assert key({"b": 1, "a": 2}) == key({"a": 2, "b": 1}) == '{"a":2,"b":1}' != key({"a": 1, "b": 2})
