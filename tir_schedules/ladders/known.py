"""All ladders: those of this package, those of other installed packages, and those loaded by their path."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterator, Sequence, TypeVar

from tir_schedules.errors import BadInput, nearest, one_line
from tir_schedules.model.ladder import Ladder
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FAMILIES = ("sgemm", "reduce", "hgemm")
"""The ladders of this package. Only these are in recorded files."""

GROUP = "tir_schedules.ladders"
"""Entry points of installed packages: the name of a ladder -> the module that has its LADDER."""

LOADED: dict[str, Ladder] = {}
"""Ladders from elsewhere that this process uses, by their names."""

Fact = TypeVar("Fact")


class OfLadders(Mapping[str, Fact], Generic[Fact]):
    """Name of a ladder -> a fact of it, of any ladder there is. It goes through those of this package."""

    def __init__(self, fact: Callable[[Ladder], Fact]) -> None:
        self.fact = fact

    def __getitem__(self, name: str) -> Fact:
        try:
            return self.fact(ladder_of(name))
        except BadInput:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES)

    def __len__(self) -> int:
        return len(FAMILIES)


def ladder_names() -> tuple[str, ...]:
    """Names of the ladders of this package, of installed ones, and of loaded ones."""
    return tuple(dict.fromkeys((*FAMILIES, *installed(), *LOADED)))


def is_ladder(name: str) -> bool:
    return name in FAMILIES or name in LOADED or "/" not in name and name in installed()


def ladder_of(name: str) -> Ladder:
    """The ladder of that name. BadInput where there is none, or one from elsewhere does not load."""
    if isinstance(name, str):
        if name in LOADED:
            return LOADED[name]
        if name in FAMILIES:
            return package_ladder(name)
        if name in installed():
            return load_entry_point(installed()[name])
    hint = nearest(str(name), ladder_names())
    raise BadInput(f"there is no ladder {name!r}{hint}; there is {', '.join(ladder_names())}")


@cache
def package_ladder(name: str) -> Ladder:
    module = importlib.import_module(f"{GROUP}.{name}")
    return replace(module.LADDER, package=module.__name__)


@cache
def installed() -> dict[str, EntryPoint]:
    """Entry points of other packages; a name that is one of ours stays ours."""
    from importlib import metadata

    return {point.name: point for point in metadata.entry_points(group=GROUP) if point.name not in FAMILIES}


def load_entry_point(point: EntryPoint) -> Ladder:
    try:
        module = point.load()
    except Exception as error:
        raise BadInput(
            f"the ladder {point.name}, installed as {point.value}, does not load:"
            f" {type(error).__name__}: {one_line(error)}"
        ) from error
    return loaded(module, f"the entry point {point.name} = {point.value}")


def loaded(module: ModuleType, place: str) -> Ladder:
    """The LADDER of a module, which is known from now on. place: of the module, for messages. BadInput where
    it has none, or one that has the name of ours."""
    found: Any = getattr(module, "LADDER", None)
    if not isinstance(found, Ladder):
        raise BadInput(f"{place} has no ladder: LADDER = Ladder(...) of tir_schedules.model.ladder is one")
    ladder = replace(found, package=module.__name__)
    if ladder.name in FAMILIES:
        raise BadInput(f"{place}: there is a ladder {ladder.name!r} already: give this one another name")
    if not ladder.name.isidentifier():
        raise BadInput(f"{place}: a ladder's name is letters, digits and _, not {ladder.name!r}")
    LOADED[ladder.name] = ladder
    return ladder


def workload_class(family: str) -> Callable[..., Workload]:
    """The workload of a ladder, such as Gemm; imported when asked for."""
    return ladder_of(family).workload_class


def rung_names(family: str) -> tuple[str, ...]:
    """The names of a ladder's rungs, without its name, in the order they build on each other."""
    return ladder_of(family).rungs


def package_rungs(family: str) -> list[Rung]:
    """The rungs of a ladder of this package, each in its default configuration."""
    return modules_rungs(family, rung_names(family))


def rungs_beside(family: str) -> list[Rung]:
    """The rungs of this package that are beside a ladder; see Ladder.beside."""
    return modules_rungs(family, ladder_of(family).beside) if family in FAMILIES else []


def modules_rungs(family: str, names: Sequence[str]) -> list[Rung]:
    return [importlib.import_module(f"{GROUP}.{family}.{name}").RUNG for name in names]
