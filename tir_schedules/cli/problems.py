"""Which workloads a command is about: its options --mnk, --n, --dtype, --layout and --accumulate, or those of
default."""

from __future__ import annotations

from argparse import Namespace
from itertools import product
from typing import Any, Sequence

from tir_schedules.cli.options import Options
from tir_schedules.errors import BadInput, shown
from tir_schedules.model.rung import Rung
from tir_schedules.numerals import integer_or_power, integers
from tir_schedules.workloads import LAYOUTS, workload_class

OPTIONS = {"sgemm": ("mnk",), "reduce": ("n", "dtype"), "hgemm": ("mnk", "layout", "accumulate")}
"""Family -> the options that say what it is run on."""

EMIT_SHAPE = (1024, 1024, 1024)
EMIT_LENGTH = 1 << 25

Shapes = dict[str, tuple[int, ...]]
"""Family -> M, N, K, or N alone."""

# Whole tiles, small enough for the CPU machine to count in seconds, large enough for several blocks.
SMALL_SHAPES = {"sgemm": (256, 256, 256), "hgemm": (512, 512, 256), "reduce": (1 << 16,)}

# Every tile whole; ragged with rows that 16-byte accesses can take; ragged with rows that they cannot. The
# HGEMM ladder, which is long and runs in four kinds, has whole tiles alone.
RUN_SHAPES = {"sgemm": ((256, 256, 256), (132, 100, 36), (129, 127, 65)), "hgemm": ((256, 256, 128),)}
# Whole blocks in every launch; ragged, and divisible by 4 or not.
RUN_LENGTHS = (1 << 18, 70004, 4099)

# Extents of square matrices, and lengths: from what fits into caches to what does not.
BENCH_SIZES = {
    "sgemm": (256, 512, 1024, 2048, 4096, 8192),
    "hgemm": (1024, 2048, 4096, 8192),
    "reduce": (1 << 20, 1 << 25, 1 << 28),
}


def add_options(
    verb: Any, emit: bool, bench: bool = False, small: bool = False, shapes: Shapes = SMALL_SHAPES
) -> None:
    """The options, for a verb that takes one size, such as `emit`, or for one that takes several; `bench` has
    --sizes as well.

    small: for a verb about `small_workload_of`, with the same shapes.
    """
    several: dict[str, Any] = {} if emit else {"action": "append"}
    again = "" if emit else "may be repeated; "
    shape = (
        ",".join(map(str, EMIT_SHAPE)) if emit else "those of --sizes" if bench else "whole and ragged tiles"
    )
    length = EMIT_LENGTH if emit else "those of --sizes" if bench else " ".join(map(str, RUN_LENGTHS))
    kind = "" if emit else ", all of them"
    if small:
        products = {
            family: ",".join(map(str, extents)) for family, extents in shapes.items() if len(extents) == 3
        }
        shape, (length,) = (
            ", ".join(f"{family} {extents}" for family, extents in products.items()),
            shapes["reduce"],
        )
    if bench:
        defaults = "; ".join(
            f"{family} {','.join(map(power, sizes))}" for family, sizes in BENCH_SIZES.items()
        )
        verb.add_argument(
            "--sizes",
            metavar="S,...",
            type=parse_sizes,
            help=f"M = N = K = S, or N = S for reduce (default {defaults})",
        )
    verb.add_argument(
        "--mnk",
        metavar="M,N,K",
        type=parse_shape,
        help=f"sgemm, hgemm: A is MxK, B is KxN ({again}default {shape})",
        **several,
    )
    verb.add_argument(
        "--layout",
        help=f"hgemm: nt, B is stored NxK, or nn, B is stored KxN (default nt{kind and ' and nn'})",
    )
    verb.add_argument(
        "--accumulate",
        help=f"hgemm: sums and C in float16 or float32 (default float16{kind and ' and float32'})",
    )
    verb.add_argument(
        "--n", metavar="N", type=parse_length, help=f"reduce: elements ({again}default {length})", **several
    )
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


def power(size: int) -> str:
    """A size as people write it: 2^20 from a million on, where it is a power of two."""
    return f"2^{size.bit_length() - 1}" if size >= 1 << 20 and size & (size - 1) == 0 else str(size)


def check_options(rungs: Sequence[Rung], options: Options) -> None:
    """BadInput when an option is given that no rung takes."""
    families = sorted({rung.family for rung in rungs})
    taken = [name for family in families for name in OPTIONS[family]]
    for name in sorted({name for names in OPTIONS.values() for name in names}):
        if getattr(options, name) is not None and name not in taken:
            owners = " and ".join(family for family, names in OPTIONS.items() if name in names)
            takes = " and ".join(f"--{other}" for other in taken)
            raise BadInput(f"--{name} is for {owners}; {rungs[0].id} takes {takes}")


def workload_of(rung: Rung, options: Options) -> Any:
    """The one workload that `emit` is about."""
    make = workload_class(rung.family)
    if rung.family == "reduce":
        return make(EMIT_LENGTH if options.n is None else options.n, options.dtype or rung.dtypes[0])
    kind = (
        (options.layout or LAYOUTS[0], options.accumulate or rung.config.accumulators[0])
        if rung.family == "hgemm"
        else ()
    )
    return make(*(options.mnk or EMIT_SHAPE), *kind)


def small_workload_of(rung: Rung, options: Options, shapes: Shapes = SMALL_SHAPES) -> Any:
    """The one workload that verbs are about which count on the CPU machine. shapes: default sizes by
    family."""
    (length,) = shapes["reduce"]
    given = {"mnk": options.mnk or shapes.get(rung.family), "n": length if options.n is None else options.n}
    return workload_of(rung, Namespace(**{**vars(options), **given}))


def workloads_of(rung: Rung, options: Options) -> list[Any]:
    """The workloads that `run` is about: those of the options, else of default sizes, and every kind of
    half-precision product."""
    make = workload_class(rung.family)
    if rung.family == "reduce":
        types = [options.dtype] if options.dtype else rung.dtypes
        return [make(n, dtype) for n in options.n or RUN_LENGTHS for dtype in types]
    if rung.family == "sgemm":
        return [make(*shape) for shape in options.mnk or RUN_SHAPES["sgemm"]]
    layouts = [options.layout] if options.layout else LAYOUTS
    kinds = list(product(layouts, [options.accumulate] if options.accumulate else rung.config.accumulators))
    return [make(*shape, *kind) for shape in options.mnk or RUN_SHAPES["hgemm"] for kind in kinds]


def timed_workloads_of(rung: Rung, options: Options) -> list[Any]:
    """The workloads that `bench` is about: those of --mnk and --n, else of --sizes or of default sizes, of
    the kinds `run` takes."""
    sizes = options.sizes or BENCH_SIZES[rung.family]
    given = {"mnk": options.mnk or [(size, size, size) for size in sizes], "n": options.n or sizes}
    return workloads_of(rung, Namespace(**{**vars(options), **given}))
