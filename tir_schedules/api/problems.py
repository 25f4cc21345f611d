# pyright: strict
"""Shapes and kinds of problems as a user names them, by the options of the command: `mnk`, `n`, `shape`,
`sizes`, `dtype`, `layout`, `accumulate`, `products` and `result`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Iterable, Mapping, Sequence, TypeGuard

from tir_schedules.api.options import Shape, check_names
from tir_schedules.errors import BadInput, shown
from tir_schedules.ladders.drawn_shapes import drawn_problems
from tir_schedules.ladders.known import FAMILIES, OfLadders, ladder_of
from tir_schedules.ladders.problems import (
    Job,
    Problem,
    Problems,
    Shapes,
    square_shapes,
    takes,
    workload_of,
    workloads_of,
)
from tir_schedules.ladders.registry import find_each, find_one
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.rung import Rung

Options = Any
"""An object with a field for each option."""

SIZES = OfLadders(lambda ladder: ladder.option)
"""Ladder -> the option for its shape."""

OPTIONS = OfLadders(lambda ladder: (ladder.option, *ladder.kind_options.values()))
"""Ladder -> the options that say what it is run on."""

OF_PROBLEMS = ("accumulate", "dtype", "layout", "mnk", "n", "products", "result", "shape")
"""All of them, whatever ladders there are."""


def options_of(given: Mapping[str, Any], verb: str, several: bool = False, **others: Any) -> Options:
    """The options of a shape as an object, each of several shapes in a list where a verb takes `several`.
    others: further options. Raises BadInput if an option does not exist or a shape has another form."""
    check_names(given, Shape, verb)
    found: dict[str, Any] = {name: given.get(name) for name in (*OF_PROBLEMS, "workload")}
    for name in ("mnk", "shape"):
        if found[name] is not None:
            found[name] = shapes_of(found[name], name, several)
    if found["n"] is not None:
        lengths = [found["n"]] if is_whole(found["n"]) else found["n"]
        if not all(map(is_whole, lengths)) or not several and len(lengths) != 1:
            raise BadInput(f"--n takes a number of elements such as 1000000, not {shown(str(found['n']))}")
        found["n"] = [*map(int, lengths)] if several else int(lengths[0])
    return SimpleNamespace(**found, **others)


def shape_of(options: Options) -> Shape:
    """The shape in the options of a command."""
    found: Any = {name: getattr(options, name) for name in OF_PROBLEMS}
    return found


def is_whole(value: Any) -> bool:
    return hasattr(value, "__index__")


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (tuple, list))


def shapes_of(value: Any, name: str, several: bool) -> Any:
    """(M, N, K), or a list of them, as a verb takes it."""
    many: list[Any] = [value]
    if is_list(value) and not all(map(is_whole, value)):
        many = [*value]
    right = all(is_list(one) and all(map(is_whole, one)) for one in many)
    if not right or name == "mnk" and any(len(one) != 3 for one in many) or not several and len(many) != 1:
        form = {"mnk": "three integers M,N,K such as 1024,512,256", "shape": "extents such as 4096,128"}
        raise BadInput(f"--{name} takes {form[name]}, not {shown(str(value))}")
    found: list[Any] = [tuple(map(int, one)) for one in many]
    return found if several else found[0]


def rungs_of(subjects: Sequence[str | Rung], configs: bool = False) -> list[Rung]:
    """The rungs that are named or given, each once."""
    found: list[Rung] = []
    for one in subjects:
        if isinstance(one, Rung):
            found += one.variants() if configs else [one]
        else:
            found += find_each([one], configs)
    return list({(rung.id, rung.file): rung for rung in found}.values())


def job_of(subject: str | Rung, options: Options, verb: str, shapes: Shapes, arch: str) -> Job:
    """The one rung that is named, and what it is run on."""
    from tir_schedules.subjects.compiling import settle_jobs

    rung = subject if isinstance(subject, Rung) else find_one(subject, verb)
    check_options([rung], options)
    workload = options.workload or workload_of(rung, problem_of(rung.family, options), shapes)
    (job,) = settle_jobs([(rung, workload)], arch)
    return job


def check_options(rungs: Sequence[Rung], options: Options) -> None:
    """Raises BadInput if no rung takes an option that is given, or if fields of a configuration break the
    rung's constraints."""
    for rung in rungs:
        if "=" in rung.variant and not rung.file:
            from tir_schedules.tuning.space.tunable import check_fields

            check_fields(rung, options.arch or CPU_ARCH)
    families = sorted({rung.family for rung in rungs})
    taken = [name for family in families for name in OPTIONS[family]]
    for name in OF_PROBLEMS:
        if getattr(options, name) is not None and name not in taken:
            owners = " and ".join(family for family in FAMILIES if name in OPTIONS[family])
            takes = " and ".join(f"--{other}" for other in taken)
            raise BadInput(
                f"--{name} is for {owners or 'ladders from elsewhere'}; {rungs[0].id} takes {takes}"
            )


def check_drawing(options: Options) -> None:
    """Raises BadInput for shapes that are drawn and said, and for a seed of none."""
    names = "sizes", "mnk", "n", "shape", "workload"
    said = [name for name in names if getattr(options, name, None) is not None]
    if options.random is not None and said:
        raise BadInput(f"--random and --{said[0]} both say sizes: leave one out")
    if options.random is None and options.seed is not None:
        raise BadInput("--seed goes with --random: say how many shapes are to be drawn")


def problem_of(ladder: str, options: Options) -> Problem:
    """The one problem of a verb that takes one size; its shape is open where none is given."""
    size = getattr(options, SIZES[ladder])
    return Problem(ladder, () if size is None else as_shape(size), **kinds_of(ladder, options))


def problems_of(rungs: Sequence[Rung], options: Options) -> Problems:
    """The problems of a verb that takes several sizes, by ladder; with an open shape where none is given."""
    return {rung.family: of_ladder(rung.family, options) for rung in rungs}


def of_ladder(ladder: str, options: Options) -> list[Problem]:
    drawn: int | None = getattr(options, "random", None)
    if drawn is not None:
        return drawn_problems(ladder, drawn, options.seed or 0, kinds_of(ladder, options))
    given: Iterable[int | tuple[int, ...]] = getattr(options, SIZES[ladder]) or ()
    shapes = [*map(as_shape, given)] or square_shapes(ladder, getattr(options, "sizes", None) or ())
    return [Problem(ladder, shape, **kinds_of(ladder, options)) for shape in shapes or [()]]


def as_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """A shape, of what --n gives, too."""
    return (size,) if isinstance(size, int) else size


def kinds_of(ladder: str, options: Options) -> dict[str, str | None]:
    asked = ladder_of(ladder).kind_options.items()
    return {name: getattr(options, option) or None for name, option in asked}


def taking(rungs: Sequence[Rung], names: Sequence[str], options: Options) -> list[Rung]:
    """The rungs without those of a ladder, named as a whole, that do not take the kinds asked for. Where none
    takes them, all, for each says why. names: ladders and rungs, as a command is given them."""
    left = {rung.family for rung in rungs if takes_kinds(rung, options)}
    return [
        rung
        for rung in rungs
        if rung.family not in names or rung.family not in left or takes_kinds(rung, options)
    ]


def takes_kinds(rung: Rung, options: Options) -> bool:
    """Whether a rung takes the kinds asked for, at the shape that its ladder takes where none is named."""
    kinds = kinds_of(rung.family, options)
    if not any(kinds.values()):
        return True
    asked = Problem(rung.family, ladder_of(rung.family).shape, **kinds)
    try:
        return any(takes(rung, workload) for workload in workloads_of(rung, asked))
    except BadInput:
        return False
