"""The lines of `tir-schedules list --instructions`, which each family of instructions has beside its rows."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """Opcodes that the machine treats alike; `tir-schedules list --instructions` prints it. A family has them
    in LINES; of a row that has none there catalogue.py makes one.

    opcodes: separated by spaces; {,.sat} stands for nothing or .sat. precision: "exact", the bits of a GPU,
    except for a NaN of 32 or 64 bits; "modelled", right within a rule; or "refused". note: what an
    exact result was held against; the rule; what would be right instead. since: the oldest GPU that has it,
    90 for sm_90; 0: all that nvcc knows.
    """

    opcodes: str
    precision: str
    note: str
    since: int = 0


INTEGERS, FRACTIONS, COPIES = "Python's integers", "rational arithmetic", "the bytes themselves"
BY_HAND = "cases written by hand"


def exact(opcodes: str, held_against: str = INTEGERS, since: int = 0) -> Line:
    return Line(opcodes, "exact", held_against, since)


def modelled(opcodes: str, rule: str, since: int = 0) -> Line:
    return Line(opcodes, "modelled", rule, since)


def refusal(opcodes: str, remedy: str, since: int = 0) -> Line:
    return Line(opcodes, "refused", remedy, since)
