"""The options that say a problem: --mnk, --n, --sizes, --dtype, --layout and --accumulate."""

from __future__ import annotations

from typing import Sequence

from tir_schedules.cli.options import Options, Parser
from tir_schedules.errors import BadInput, shown
from tir_schedules.ladders.problems import BENCH_SIZES, RUN_SHAPES, Problems, of_sizes
from tir_schedules.model.problem import EXTENTS, KINDS, Problem, Shapes
from tir_schedules.model.rung import Rung
from tir_schedules.numerals import integer_or_power, integers, power

SIZES = {ladder: "n" if len(extents) == 1 else "mnk" for ladder, extents in EXTENTS.items()}
"""Ladder -> the option for its shape."""

OPTIONS = {ladder: (SIZES[ladder], *kinds) for ladder, kinds in KINDS.items()}
"""Ladder -> the options that say what it is run on."""


def add_problem(verb: Parser, shapes: Shapes) -> None:
    """The options of a verb that takes one size. shapes: what it takes where none is given."""
    gemms = {ladder: ",".join(map(str, shapes[ladder][0])) for ladder, size in SIZES.items() if size == "mnk"}
    same = len(set(gemms.values())) == 1
    mnk = gemms["sgemm"] if same else ", ".join(f"{ladder} {shape}" for ladder, shape in gemms.items())
    ((length,),) = shapes["reduce"]
    verb.add_argument("--mnk", metavar="M,N,K", type=parse_shape, help=f"{MNK} (default {mnk})")
    add_kinds(verb, "")
    verb.add_argument("--n", metavar="N", type=parse_length, help=f"{N} (default {length})")


def add_problems(verb: Parser, sizes: bool = False) -> None:
    """The options of a verb that takes several sizes. sizes: --sizes as well, as `bench` has it."""
    mnk, lengths = "whole and ragged tiles", ", ".join(str(length) for (length,) in RUN_SHAPES["reduce"])
    if sizes:
        mnk = lengths = "those of --sizes"
        known = (f"{ladder} {','.join(map(power, sizes))}" for ladder, sizes in BENCH_SIZES.items())
        square = f"M = N = K = S, or N = S for reduce (default {'; '.join(known)})"
        verb.add_argument("--sizes", metavar="S,...", type=parse_sizes, help=square)
    again = "may be repeated; default"
    help = f"{MNK} ({again} {mnk})"
    verb.add_argument("--mnk", metavar="M,N,K", type=parse_shape, action="append", help=help)
    add_kinds(verb, " and {}")
    help = f"{N} ({again} {lengths})"
    verb.add_argument("--n", metavar="N", type=parse_length, action="append", help=help)


MNK = "sgemm, hgemm: A is MxK, B is KxN"
N = "reduce: elements"


def add_kinds(verb: Parser, others: str) -> None:
    """--layout, --accumulate and --dtype. others: what is added to a default, with the other value in it."""
    layout = "hgemm: nt, B is stored NxK, or nn, B is stored KxN"
    verb.add_argument("--layout", help=f"{layout} (default nt{others.format('nn')})")
    accumulate = "hgemm: accumulators and C in float16 or float32"
    verb.add_argument("--accumulate", help=f"{accumulate} (default float16{others.format('float32')})")
    verb.add_argument("--dtype", help="reduce: int32 or float32 (default: what the rung is for)")


def parse_shape(text: str) -> tuple[int, int, int]:
    """ "1024,512,256" as three integers; whether they are sizes is the workload's to say."""
    try:
        m, n, k = integers(text, 3)
    except ValueError:
        raise BadInput(f"--mnk takes three integers M,N,K such as 1024,512,256, not {shown(text)}") from None
    return m, n, k


def parse_length(text: str) -> int:
    """ "1000000", or a power such as 2^20."""
    try:
        return integer_or_power(text)
    except ValueError:
        raise BadInput(f"--n takes a number of elements such as 1000000 or 2^20, not {shown(text)}") from None


def parse_sizes(text: str) -> tuple[int, ...]:
    """ "256,512" or "2^20,2^25" as integers, each once."""
    try:
        return tuple(dict.fromkeys(map(integer_or_power, text.split(","))))
    except ValueError:
        raise BadInput(f"--sizes takes sizes such as 256,512 or 2^20,2^25, not {shown(text)}") from None


def check_options(rungs: Sequence[Rung], options: Options) -> None:
    """BadInput when an option is given that no rung takes."""
    families = sorted({rung.family for rung in rungs})
    taken = [name for family in families for name in OPTIONS[family]]
    for name in sorted({name for names in OPTIONS.values() for name in names}):
        if getattr(options, name) is not None and name not in taken:
            owners = " and ".join(family for family, names in OPTIONS.items() if name in names)
            takes = " and ".join(f"--{other}" for other in taken)
            raise BadInput(f"--{name} is for {owners}; {rungs[0].id} takes {takes}")


def problem_of(ladder: str, options: Options) -> Problem:
    """The one problem of a verb that takes one size; its shape is open where none is given."""
    size = getattr(options, SIZES[ladder])
    shape = () if size is None else (size,) if SIZES[ladder] == "n" else size
    return Problem(ladder, shape, **kinds_of(ladder, options))


def problems_of(rungs: Sequence[Rung], options: Options) -> Problems:
    """The problems of a verb that takes several sizes, by ladder; with an open shape where none is given."""
    return {rung.family: of_ladder(rung.family, options) for rung in rungs}


def of_ladder(ladder: str, options: Options) -> list[Problem]:
    given = getattr(options, SIZES[ladder]) or ()
    shapes = [(size,) for size in given] if SIZES[ladder] == "n" else list(given)
    shapes = shapes or of_sizes(ladder, getattr(options, "sizes", None) or ())
    return [Problem(ladder, shape, **kinds_of(ladder, options)) for shape in shapes or [()]]


def kinds_of(ladder: str, options: Options) -> dict[str, str | None]:
    return {name: getattr(options, name) or None for name in KINDS[ladder]}
