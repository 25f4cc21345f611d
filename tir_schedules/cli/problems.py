"""The options that say a problem: --mnk, --n, --shape, --sizes, --dtype, --layout, --accumulate,
--products, --emulated and --result."""

from __future__ import annotations

from tir_schedules.api.problems import SIZES
from tir_schedules.cli.options import Parser
from tir_schedules.errors import BadInput, shown
from tir_schedules.ladders.known import FAMILIES, ladder_of
from tir_schedules.ladders.problems import BENCH_SHAPES, KINDS, RUN_SHAPES, Shapes
from tir_schedules.numerals import integer_or_power, parse_length, parse_shape, power


def add_problem(verb: Parser, shapes: Shapes) -> None:
    """The options of a verb that takes one size. shapes: what it takes where none is given."""
    verb.add_argument(
        "--mnk",
        metavar="M,N,K",
        type=parse_shape,
        help=f"{sizes_of('mnk')} (default {defaults('mnk', shapes)})",
    )
    add_kinds(verb, several=False)
    help = f"{sizes_of('n')} (default {defaults('n', shapes)})"
    verb.add_argument("--n", metavar="N", type=parse_length, help=help)
    verb.add_argument("--shape", metavar="S,...", type=parse_extents, help=OTHERS)


def add_problems(verb: Parser, sizes: bool = False) -> None:
    """The options of a verb that takes several sizes. sizes: --sizes as well, as `bench` has it."""
    mnk = "whole and ragged tiles"
    lengths = ", ".join(str(length) for name in named_by("n") for (length,) in RUN_SHAPES[name])
    if sizes:
        mnk = lengths = "those of --sizes"
        known = (f"{name} {','.join(power(shape[0]) for shape in BENCH_SHAPES[name])}" for name in FAMILIES)
        square = f"M = N = K = S, or N = S for {' and '.join(named_by('n'))} (default {'; '.join(known)})"
        verb.add_argument("--sizes", metavar="S,...", type=parse_sizes, help=square)
    again = "may be repeated; default"
    help = f"{sizes_of('mnk')} ({again} {mnk})"
    verb.add_argument("--mnk", metavar="M,N,K", type=parse_shape, action="append", help=help)
    add_kinds(verb, several=True)
    help = f"{sizes_of('n')} ({again} {lengths})"
    verb.add_argument("--n", metavar="N", type=parse_length, action="append", help=help)
    verb.add_argument("--shape", metavar="S,...", type=parse_extents, action="append", help=OTHERS)


OTHERS = "ladders from elsewhere: the extents of a shape, where these are not M,N,K or N"


def named_by(option: str) -> list[str]:
    """The ladders whose shape an option says."""
    return [name for name in FAMILIES if SIZES[name] == option]


def sizes_of(option: str) -> str:
    """Whose shape an option says, and what it is."""
    names = named_by(option)
    return f"{', '.join(names)}: {ladder_of(names[0]).sizes}"


def defaults(option: str, shapes: Shapes) -> str:
    """What is taken where an option is not given; of each ladder where they differ."""
    found = {name: ",".join(map(str, shapes[name][0])) for name in named_by(option)}
    same = len(set(found.values())) == 1
    return (
        next(iter(found.values())) if same else ", ".join(f"{name} {shape}" for name, shape in found.items())
    )


def add_kinds(verb: Parser, several: bool) -> None:
    """--layout, --accumulate, --dtype, --products, --emulated and --result. several: whether a verb without
    them takes all there are."""
    helps: dict[str, list[str]] = {}
    left = {}
    for family in FAMILIES[::-1]:
        for name, kind in KINDS[family].items():
            default = kind.default or " and ".join(kind.values if several else kind.values[:1])
            colon = ": " if kind.default else " "
            help = f"{family}: {kind.help} (default{colon}{default})"
            helps.setdefault(kind.option or name, []).append(help)
            if kind.left:
                left[kind.option or name] = kind
    for option, told in helps.items():
        group = verb.add_mutually_exclusive_group()
        group.add_argument(f"--{option}", help="; ".join(told))
        if kind := left.get(option):
            group.add_argument(
                f"--{kind.left}", dest=option, action="store_const", const=kind.left, help=kind.left_help
            )


def parse_extents(text: str) -> tuple[int, ...]:
    """ "4096,128"; whether a ladder has as many extents is its problem's to say."""
    try:
        return tuple(map(integer_or_power, text.split(",")))
    except ValueError:
        raise BadInput(f"--shape takes extents such as 4096,128, not {shown(text)}") from None


def parse_sizes(text: str) -> tuple[int, ...]:
    """ "256,512" or "2^20,2^25" as integers, each once."""
    try:
        return tuple(dict.fromkeys(map(integer_or_power, text.split(","))))
    except ValueError:
        raise BadInput(f"--sizes takes sizes such as 256,512 or 2^20,2^25, not {shown(text)}") from None
