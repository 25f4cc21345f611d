# pyright: strict
"""What is asked of a kernel, from Python: its launch, arguments and expected values, for a file and for a
function of TVM's."""

from __future__ import annotations

from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.api.functions import Own, computed
from tir_schedules.api.options import Arguments, Extent
from tir_schedules.api.subjects import is_text, split_file
from tir_schedules.check.arguments import OUT, Argument, Given, make_argument, seed_of
from tir_schedules.check.building import Compiling
from tir_schedules.check.expecting import Expected, expectation
from tir_schedules.check.expressions import Asked, dim3, parse_launch
from tir_schedules.check.launches import is_launched
from tir_schedules.check.options import commented_checks, joined_sizes, parse_comment, requests_of
from tir_schedules.check.preparing import Request
from tir_schedules.check.types import format_of
from tir_schedules.check.usual import Usual
from tir_schedules.errors import BadInput, CheckFailed, nearest, shown
from tir_schedules.model.kernel import Kernel
from tir_schedules.source import Source, read_source


def requests_of_file(file: str | Path, arch: str, **asked: Any) -> list[Request]:
    """The checks of a path of CUDA or PTX, perhaps followed by a kernel, "mine.cu:sgemm", or of the text
    itself. Without grid and block, `// check:` comments or launches in the file give them, as for the
    command. asked: see Asking."""
    if is_text(file):
        source, kernel = Source(str(file), "kernel.cu", ""), ""
    else:
        place, kernel = split_file(str(file))
        source = read_source(Path(place))
    asked = {**asked, "kernel": asked.get("kernel") or kernel}
    check_sizes(asked.get("sizes") or {})
    commented = commented_checks(source.text, source.file)
    grid, block, launches = (asked.get(name) for name in ("grid", "block", "launches"))
    where = source, tuple(map(str, asked.get("includes") or ())), macros(asked.get("defines"))
    partly = not commented and not (grid and block) and is_launched(*where, asked["kernel"])
    if not launches and (partly or (not block and (commented or not grid))):
        return requests_of_comments(source, arch, asked)
    workload = Usual(*ladder_of(asked["usual"])) if asked.get("usual") else None
    sizes = joined_sizes(workload, asked.get("sizes") or {})
    outputs = names_of(asked.get("outputs"))
    given, ready = sort_arguments(asked.get("arguments") or (), outputs)
    given = as_outputs(given, ready, outputs)
    launches = [parse_launch(text, sizes) for text in launches or ()] or [
        Asked(asked["kernel"], extents(grid, "grid"), extents(block, "block"), asked.get("shared") or 0)
    ]
    request = Request(
        source, tuple(launches), sizes, tuple(given), ready, expected(asked.get("expect")), workload,
        asked.get("tolerance"), Compiling(
            arch, *where[1:], tuple(asked.get("flags") or ())
        ),
        asked.get("seed") or 0, bool(asked.get("finite")),
    )  # fmt: skip
    return [request]


def check_sizes(sizes: Mapping[str, Any]) -> None:
    """Raises BadInput for a size that is not a number."""
    for name, value in sizes.items():
        if not isinstance(value, (int, float)) and not hasattr(value, "__index__"):
            raise BadInput(f"{name} of sizes= is {shown(str(value))}; it takes a number")


def requests_of_comments(source: Source, arch: str, asked: Mapping[str, Any]) -> list[Request]:
    """What the comments of a file ask for. What a caller gives besides wins over them."""
    outputs = names_of(asked.get("outputs"))
    given, ready = sort_arguments(asked.get("arguments") or (), outputs)
    expect = {(one.output, one.where): one for one in expected(asked.get("expect"))}
    options = parse_comment((), source.file)
    options.kernel = asked["kernel"] or None
    options.grid = ",".join(map(str, extents(asked["grid"], "grid"))) if asked.get("grid") else None
    options.block = ",".join(map(str, extents(asked["block"], "block"))) if asked.get("block") else None
    options.shared = str(asked["shared"]) if asked.get("shared") else None
    sizes: Mapping[str, Any] = asked.get("sizes") or {}
    options.let = [f"{name}={value}" for name, value in sizes.items()]
    options.arg = [f"{one.name}={one.text}" if one.name else one.text for one in given]
    options.defines, options.includes = macros(asked.get("defines")), [*map(str, asked.get("includes") or ())]
    options.flags = asked.get("flags")
    options.tolerance, options.seed = asked.get("tolerance"), asked.get("seed") or 0
    options.finite = bool(asked.get("finite"))
    if asked.get("usual"):
        options.ladder, shape = ladder_of(asked["usual"])
        options.mnk, options.n = shape, shape[0]
    found: list[Request] = []
    for one in requests_of(options, source, arch):
        every = {(each.output, each.where): each for each in one.expect} | expect
        texts = as_outputs([each for each in one.given if each.name not in ready], ready, outputs)
        found.append(
            replace(
                one, given=tuple(texts), arguments=ready, expect=tuple(every.values()),
                usual=None if expect else one.usual,
            )
        )  # fmt: skip
    return found


def expected(expect: Any) -> tuple[Expected, ...]:
    """What is expected, from a dictionary of expressions and arrays. Raises BadInput if it is not one."""
    given: Any = expect or {}
    if not hasattr(given, "items"):
        raise BadInput(f"expect is {shown(str(expect))}; it takes a dictionary such as {{'C': 'A @ B'}}")
    return tuple(
        expectation(name, value if isinstance(value, str) else expected_array(name, value))
        for name, value in given.items()
    )


def expected_array(name: str, value: Any) -> np.ndarray:
    """The array that is expected. Raises BadInput if nothing can be compared with it."""
    if callable(value):
        raise BadInput(f"expect of {name} is a function; it takes an array, or an expression such as 'A @ B'")
    array = np.asarray(as_value(name, value))
    if array.dtype.kind in "OcMmSU":
        raise BadInput(
            f"expect of {name} is {shown(str(value))}; it takes an array of numbers, or an expression"
        )
    if array.size and np.all(array != array):
        raise BadInput(f"expect of {name} is NaN throughout, so that nothing can be compared with it")
    return array


def ladder_of(usual: Any) -> tuple[str, tuple[int, ...]]:
    """The ladder and the shape that `usual` names. Raises BadInput if `usual` is not a ladder and a shape."""
    extents_of = {"sgemm": 3, "hgemm": 3, "reduce": 1}
    try:
        name, shape = usual
        shape = tuple(map(index, shape))
        if not isinstance(usual, str) and extents_of[name] == len(shape) and min(shape) > 0:
            return name, shape
    except (TypeError, ValueError, KeyError):
        pass
    raise BadInput(f"usual= is {shown(str(usual))}; it takes a ladder and its shape, such as"
                   " ('sgemm', (256, 256, 64)) or ('reduce', (1000,))")  # fmt: skip


def macros(defines: Any) -> tuple[str, ...]:
    """`defines`, a dictionary of macros or texts as -D takes them, as the latter."""
    if hasattr(defines, "items"):
        return tuple(name if value is None else f"{name}={value}" for name, value in defines.items())
    return (defines,) if isinstance(defines, str) else tuple(defines or ())


def names_of(outputs: Any) -> tuple[str, ...]:
    return (outputs,) if isinstance(outputs, str) else tuple(outputs or ())


def as_outputs(given: Sequence[Given], ready: Mapping[str, Argument], outputs: Sequence[str]) -> list[Given]:
    """Texts of arguments, with :out behind those in outputs. Raises BadInput for an output that no argument
    is named after."""
    names = [*(one.name for one in given if one.name), *ready]
    for name in outputs:
        if name not in names:
            known = f"arguments have the names {', '.join(names)}" if names else "arguments go by their place"
            raise BadInput(
                f"outputs= names {name!r}{nearest(name, names)}: {known}; 'f32[N]:out' says it of a text"
            )
    return [
        replace(one, text=f"{one.text}:out") if one.name in outputs and ":out" not in one.text else one
        for one in given
    ]


def extents(value: Extent | None, what: str) -> tuple[int, int, int]:
    """Grid or block as (x, y, z), those left out 1."""
    given: Any = 1 if value is None else value
    values = [given] if hasattr(given, "__index__") else list(given)
    return dim3([int(one) for one in values], str(value), what)


def sort_arguments(arguments: Arguments, outputs: Sequence[str]) -> tuple[list[Given], dict[str, Argument]]:
    """Arguments that are texts, and those that are made already. By place they are texts or arrays alike."""
    given: list[Given] = []
    ready: dict[str, Argument] = {}
    pairs = arguments.items() if isinstance(arguments, Mapping) else [("", value) for value in arguments]
    for name, value in pairs:
        if isinstance(value, str):
            given.append(Given(name, value))
        elif not name:
            raise BadInput("arguments by their place are texts such as 'f32[N]'; give arrays by name")
        else:
            ready[name] = Argument(as_value(name, value), OUT if name in outputs else "", name)
    return given, ready


def as_value(name: str, value: Any) -> Any:
    """An array of numpy of what is one elsewhere, or nested lists; a number, or None, as it is."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if type(value).__module__ == "numpy" and not np.ndim(value):
        return value.item()
    try:
        array: Any = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except (TypeError, ValueError, RuntimeError):
        array = np.asarray(None)
    if array.dtype.kind == "O":
        raise BadInput(
            f"{name} is {shown(str(value))}: give an array of numpy, a number, None, or a text such as"
            " 'f32[64,64]'"
        )
    array = array if array.ndim else array.reshape(1)
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def request_of_function(own: Own, made: Kernel, arch: str, **asked: Any) -> Request:
    """The check of a function of TVM and its kernel. Arrays that are not given are drawn at random, and an
    array that is only written is unwritten before. Raises BadInput if an array has another shape or
    format."""
    if made.maps:
        raise BadInput(f"{own.name} takes tensor maps, made only for rungs: run(rung) verifies one")
    given, ready = arguments_of(own, asked.get("arguments") or (), asked.get("outputs") or ())
    launch = Asked(made.entry, made.grid, made.block, made.dynamic_shared, made.params)
    return Request(
        Source(made.source, made.file, ""), (launch,), asked.get("sizes") or {}, tuple(given), ready,
        expected(asked.get("expect")), None, asked.get("tolerance"), Compiling(arch), asked.get("seed") or 0,
        bool(asked.get("finite")),
    )  # fmt: skip


def arguments_of(
    own: Own, arguments: Arguments, outputs: Sequence[str]
) -> tuple[list[Given], dict[str, Argument]]:
    """The arguments of every parameter."""
    names = [*own.arrays, *own.numbers]
    outputs = names_of(outputs)
    if not isinstance(arguments, Mapping):
        if len(arguments) > len(names):
            raise BadInput(f"{own.name} takes {', '.join(names)}; {len(arguments)} arguments are given")
        arguments = dict(zip(own.parameters, arguments))
    for name in (*arguments, *outputs):
        if name not in names:
            raise BadInput(f"{own.name} has no parameter {name!r}{nearest(name, names)}; it takes"
                           f" {', '.join(names)}")  # fmt: skip
    lists: dict[str, Any] = {
        name: value for name, value in arguments.items() if isinstance(value, (list, tuple))
    }
    made = {
        name: as_value(name, lists[name]).astype(own.arrays[name].element)
        for name in lists
        if name in own.arrays
    }
    given, ready = sort_arguments({**arguments, **made}, outputs)
    given = as_outputs(given, ready, [name for name in outputs if name in arguments])
    for name, argument in ready.items():
        if name in own.arrays:
            ready[name] = replace(argument, value=fitting(own, name, argument.value))
    missing = [name for name in own.numbers if name not in arguments]
    if missing:
        name = missing[0]
        raise BadInput(
            f"nothing is given for {own.numbers[name]} {name} of {own.name}: say arguments={{{name!r}: 1}},"
            f" or sizes={{{name!r}: 1}} to compile it in"
        )
    for name, array in own.arrays.items():
        if name not in arguments:
            given.append(Given(name, replace(array, read=False).text if name in outputs else array.text))
    return given, ready


def fitting(own: Own, name: str, value: Any) -> Any:
    """An array that has the shape and the format of its buffer."""
    wanted, given = own.arrays[name], value
    if not isinstance(value, np.ndarray):
        raise BadInput(f"{name} of {own.name} is an array {wanted.shown}, not {shown(str(value))}")
    shape: tuple[int, ...] = given.shape
    found = f"{given.dtype}[{', '.join(map(str, shape))}]"
    format = format_of(given.dtype)
    if shape != (wanted.shape or (1,)) or format != wanted.format:
        convert = f": .astype({wanted.dtype!r})" if format != wanted.format and shape == wanted.shape else ""
        raise BadInput(f"{name} of {own.name} is an array {wanted.shown}, not {found}{convert}")
    return given


SMALL = 4
"""Whole numbers up to this are drawn for reals: their products and the sums of some thousand are exact."""


def with_reference(request: Request, own: Own) -> Request:
    """A request that expects what the function leaves as it was before its schedule. As it is where TVM does
    not compile the function for the host."""
    made = whole_numbers(own, request.given, request.arguments, request.sizes, request.seed)
    from tir_schedules.tir.passes.bound_checks import AccessOutside

    try:
        found = computed(own, values_of(made))
    except AccessOutside:
        raise
    except CheckFailed:
        return request
    return replace(request, given=(), arguments=made, expect=expected(found))


def values_of(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    return {name: one.value for name, one in arguments.items()}


def whole_numbers(
    own: Own,
    given: Sequence[Given],
    ready: Mapping[str, Argument],
    sizes: Mapping[str, Any],
    seed: int,
) -> dict[str, Argument]:
    """Arguments made. Where numbers are drawn, they are whole, so that sums are exact in any order."""
    made = dict(ready)
    for one in given:
        own_seed, array = seed_of(one.name, seed), own.arrays.get(one.name)
        argument = make_argument(one, sizes, array.format if array else "", Path("."), own_seed)
        drawn = argument.array
        if drawn is not None and argument.has_no_limit and drawn.dtype.kind not in "iu":
            small = np.random.default_rng(own_seed).integers(-SMALL, SMALL, drawn.shape, endpoint=True)
            argument = replace(argument, value=small.astype(drawn.dtype))
        made[one.name] = argument
    return made
