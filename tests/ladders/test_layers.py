"""How cases are chosen."""

from itertools import combinations, product

from layers import every_pair


def pairs(cases):
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


def test_every_two_parts_are_together_in_few_cases():
    cases = list(product("abcdef", range(5), "xyz", (True, False)))
    chosen = every_pair(cases)
    assert pairs(chosen) == pairs(cases) and set(chosen) <= set(cases)
    assert 30 <= len(chosen) <= 35


def test_what_is_not_among_the_cases_is_not_asked_for():
    cases = [case for case in product("ab", range(3), "xy") if case[:2] != ("a", 1)]
    chosen = every_pair(cases)
    assert pairs(chosen) == pairs(cases) and set(chosen) <= set(cases)
    assert every_pair([]) == []
