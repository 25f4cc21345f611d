"""Which cases of a ladder's tests run by default, and which with `-m slow`."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Sequence

import pytest


def layers(names: str, default: Sequence[Any], every: Sequence[Any]):
    """As pytest.mark.parametrize(names, ...): the cases of `default`; those that only `every` has are slow.

    A case is a tuple, or the value of a single parameter.
    """
    beyond = [case for case in every if case not in default]
    slow = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in beyond
    ]
    return pytest.mark.parametrize(names, [*default, *slow], ids=named)


def every_pair(cases: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Of cases with as many parts each so few that every two parts that one of them has are together in one.

    Each next case is the first of those with most pairs that no case had before.
    """
    pairs = [set(combinations(enumerate(map(named, case)), 2)) for case in cases]
    left, chosen = set().union(*pairs), []
    while left:
        place = max(range(len(cases)), key=lambda place: len(pairs[place] & left))
        chosen.append(cases[place])
        left -= pairs[place]
    return chosen


def named(value: Any) -> str:
    """A parameter in the name of a test: a rung's id, or the value itself."""
    return getattr(value, "id", None) or getattr(value, "__name__", None) or str(value)
