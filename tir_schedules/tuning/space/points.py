"""A space: the configurations of a rung that a search may try, each of them a point."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Callable, Generic, Iterator, TypeVar

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.model.rung import Rung

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

VARIANT = "tuned"
"""Name of the variant that a rung is in at a point."""

Value = int | str
Point = dict[str, Value]
"""Values of some fields of a rung's Config."""

Config = TypeVar("Config", bound="DataclassInstance")
Shape = TypeVar("Shape")
Checked = TypeVar("Checked", contravariant=True)
On = TypeVar("On", contravariant=True)


@dataclass(frozen=True)
class Constraint(Generic[Checked, On]):
    """What a configuration must fulfil to be built at all.

    holds: of a configuration, a workload and an architecture ("sm_80"). reason: one line for the user, why
    one is refused for which it does not hold.
    reads: the fields of the space that `holds` looks at, all when empty. points() leaves out a branch as soon
    as these are chosen. again: whether it only leaves out what is the same kernel as another point.
    """

    reason: str
    holds: Callable[[Checked, On, str], bool] = field(repr=False)
    reads: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True, eq=False)
class Space(Generic[Config, Shape]):
    """The points of a rung. A point has fields in the order of `fields`; all others are as in rung.config.

    fields: the values of each. constraints: which combinations are valid. `refusal` and `config`
    take any point, all other methods a valid one.
    """

    rung: Rung
    fields: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint[Config, Shape], ...]

    def config(self, point: Point) -> Config:
        """The rung's configuration at a point. BadInput for fields that are not those of the space."""
        if set(point) != set(self.fields):
            raise BadInput(
                f"a point of {self.rung.id} has {', '.join(self.fields)}, not {', '.join(point) or 'nothing'}"
            )
        return replace(self.rung.config, **point)

    def rung_at(self, point: Point) -> Rung:
        """The rung in the configuration of a point, as its variant "tuned".

        Without its twin, which does not take every point, and without its choice among configurations,
        which the point takes the place of.
        """
        return replace(self.rung, config=self.config(point), variant=VARIANT, twinned=False, choose=None)

    def point_of(self, config: Config) -> Point:
        """Where a configuration of the rung is."""
        return {name: getattr(config, name) for name in self.fields}

    def by_hand(self) -> list[Point]:
        """Where the rung's own configurations are, valid or not."""
        return [self.point_of(variant.config) for variant in self.rung.variants()]

    def refusal(self, point: Point, workload: Shape, arch: str) -> str:
        """Why a point is not valid: the first reason; empty when it is."""
        config = self.config(point)
        foreign = (
            f"{name} can be {', '.join(map(str, values))}"
            for name, values in self.fields.items()
            if point[name] not in values
        )
        broken = (
            constraint.reason
            for constraint in self.constraints
            if not constraint.holds(config, workload, arch)
        )
        return next(foreign, "") or next(broken, "")

    def points(self, workload: Shape, arch: str) -> Iterator[Point]:
        """All valid points, always in the same order."""
        return map(self._point, self._valid(workload, arch))

    def size(self, workload: Shape, arch: str) -> int:
        """How many valid points there are."""
        return len(self._valid(workload, arch))

    def sample(self, rng: random.Random, workload: Shape, arch: str) -> Point:
        """A valid point, each as likely as any other. BadInput when there is none."""
        return self._draw(rng, self._valid(workload, arch))

    def mutate(self, point: Point, rng: random.Random, workload: Shape, arch: str) -> Point:
        """A valid point with another value in one field, and in as few others as this value demands.

        The same point where the space has no other.
        """
        valid, place = self._valid(workload, arch), self._place(point)
        changes = [(f, v) for f in range(valid.shape[1]) for v in np.unique(valid[:, f]) if v != place[f]]
        if not changes:
            return dict(point)
        changed, value = rng.choice(changes)
        there = valid[valid[:, changed] == value]
        distance = (there != place).sum(axis=1)
        return self._draw(rng, there[distance == distance.min()])

    def crossover(self, a: Point, b: Point, rng: random.Random, workload: Shape, arch: str) -> Point:
        """A valid point that has each field from one of two points; a third one where there is one."""
        valid, places = self._valid(workload, arch), (self._place(a), self._place(b))
        same = [valid == place for place in places]
        children = valid[(same[0] | same[1]).all(axis=1)]
        new = children[(children != places[0]).any(axis=1) & (children != places[1]).any(axis=1)]
        return self._draw(rng, new if len(new) else children)

    def _place(self, point: Point) -> np.ndarray:
        """Number of each field's value."""
        return np.array([values.index(point[name]) for name, values in self.fields.items()], np.int8)

    def _point(self, place: np.ndarray) -> Point:
        return {name: values[number] for (name, values), number in zip(self.fields.items(), place)}

    def _draw(self, rng: random.Random, places: np.ndarray) -> Point:
        return self._point(places[rng.randrange(len(places))])

    @lru_cache(maxsize=8)
    def _valid(self, workload: Shape, arch: str) -> np.ndarray:
        """The places of all valid points, a row for each, as int8."""
        self.rung.check_arch(arch)
        names = list(self.fields)
        due = [[c for c in self.constraints if last_read(c, names) == depth] for depth in range(len(names))]
        found: list[tuple[int, ...]] = []

        def descend(config: Config, place: tuple[int, ...]) -> None:
            depth = len(place)
            if depth == len(names):
                found.append(place)
                return
            for number, value in enumerate(self.fields[names[depth]]):
                chosen = replace(config, **{names[depth]: value})
                if all(constraint.holds(chosen, workload, arch) for constraint in due[depth]):
                    descend(chosen, (*place, number))

        descend(self.rung.config, ())
        if not found:
            raise BadInput(f"no configuration of {self.rung.id} fits {workload} on {arch}")
        return np.array(found, np.int8)


def last_read(constraint: Constraint, names: list[str]) -> int:
    """The place among the fields of the last one that a constraint reads."""
    return max((names.index(name) for name in constraint.reads), default=len(names) - 1)


def key(point: Point) -> str:
    """A point as JSON in canonical form: the same text for equal points."""
    return json.dumps(point, sort_keys=True, separators=(",", ":"))
