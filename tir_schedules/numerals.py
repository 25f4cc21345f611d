"""Numbers on the command line: the digits 0 to 9, and nothing that Python would take besides them (1_000, +5,
spaces, other scripts)."""

from __future__ import annotations

import re
from typing import Callable

from tir_schedules.errors import BadInput, shown

INTEGER = re.compile(r"-?[0-9]{1,18}")
POWER = re.compile(r"([0-9]{1,18})\^([0-9]{1,2})")
PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)%")
LARGEST = 1 << 64
"""Sizes up to this are numbers; which of them can be had is the workload's to say."""


def integer(text: str) -> int:
    """ "1000" or "-4"; ValueError for anything else."""
    if not INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def integer_or_power(text: str) -> int:
    """ "1000000" or "2^20"; ValueError for anything else, and for powers that no size can be."""
    match = POWER.fullmatch(text)
    if not match:
        return integer(text)
    value = int(match[1]) ** int(match[2])
    if value > LARGEST:
        raise ValueError(text)
    return value


def percentage(text: str) -> float:
    """3.0 for "3%"; ValueError for anything else."""
    match = PERCENT.fullmatch(text)
    if not match:
        raise ValueError(text)
    return float(match[1])


def integers(text: str, count: int) -> tuple[int, ...]:
    """So many, between commas; ValueError for anything else."""
    values = tuple(map(integer, text.split(",")))
    if len(values) != count:
        raise ValueError(text)
    return values


def three_integers(text: str, takes: str) -> tuple[int, int, int]:
    """ "1024,512,256". BadInput for anything else. takes: how the message begins, with an example."""
    try:
        x, y, z = integers(text, 3)
    except ValueError:
        raise BadInput(f"{takes}, not {shown(text)}") from None
    return x, y, z


def parse_shape(text: str) -> tuple[int, int, int]:
    """ "1024,512,256" as three integers; whether they are sizes is the workload's to say."""
    return three_integers(text, "--mnk takes three integers M,N,K such as 1024,512,256")


def parse_length(text: str) -> int:
    """ "1000000", or a power such as 2^20."""
    try:
        return integer_or_power(text)
    except ValueError:
        raise BadInput(f"--n takes a number of elements such as 1000000 or 2^20, not {shown(text)}") from None


def integer_for(option: str, example: int) -> Callable[[str], int]:
    """The parser of an option that takes a whole number; which of them make sense is the verb's to say."""

    def parse(text: str) -> int:
        try:
            return integer(text)
        except ValueError:
            raise BadInput(f"{option} takes a whole number such as {example}, not {shown(text)}") from None

    return parse


def power(size: int) -> str:
    """A size as people write it: 2^20 from a million on, where it is a power of two."""
    return f"2^{size.bit_length() - 1}" if size >= 1 << 20 and size & (size - 1) == 0 else str(size)
