# pyright: strict
"""Errors in the words of Python: messages name options as the command has them, `--mnk 64,64,64`."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from typing import Any, Callable, TypeVar

from tir_schedules.errors import BadInput, TirSchedulesError, printable, shown

Called = TypeVar("Called", bound=Callable[..., Any])

NAMES = {"arg": "arguments", "let": "sizes", "as": "usual", "launch": "launches", "nvcc": "flags",
         "json": "to_json()", "show": "`tir-schedules tune --show`"}  # fmt: skip
"""Options of the command -> those of the functions, where these have another name."""


QUOTE = "'"
COMPILER = {"I": "includes", "D": "defines"}


def reworded(message: str) -> str:
    """A message as a caller of the library understands it."""

    def given(match: re.Match[str]) -> str:
        value = match[3] if match[3] == "..." else repr(match[3])
        return f'{NAMES.get(match[1], match[1])}={{"{match[2]}": {value}}}'

    def option(match: re.Match[str]) -> str:
        name = NAMES.get(match[1], match[1].replace("-", "_"))
        return name if name.endswith((")", "`")) else f"{name}="

    def with_value(match: re.Match[str]) -> str:
        value = f"({match[2].replace(',', ', ')})" if "," in match[2] else match[2]
        return f"{option(match)}{value}"

    def of_compiler(match: re.Match[str]) -> str:
        name, value = COMPILER[match[1]], match[2] or ""
        return f"{name}= {value}".strip() if value in ("", "takes") else f'{name}=["{value.strip(QUOTE)}"]'

    message = re.sub(r"--(arg|expect|let) '?([A-Za-z_]\w*)=([^\s',;:][^\s',;]*)'?", given, message)
    message = re.sub(r"(?<![\w-])-([ID])(?![\w-])(?: ('[^']*'|[^\s,;:]+))?", of_compiler, message)
    message = re.sub(r"--expect (\w+(?:\[[^\]]*\])?)= ('[^']*'|\"[^\"]*\")", r'expect={"\1": \2}', message)
    message = re.sub(r"--(?:expect) (\w+(?:\[[^\]]*\])?)=(?:\.\.\.|(?=[ :]))", r'expect={"\1": ...}', message)
    message = re.sub(r"--([a-z][a-z-]*) (cpu|gpu|auto|sm_\w+)\b", r'\1="\2"', message)
    message = re.sub(r"--([a-z][a-z-]*)[ =]((?:\d|[A-Z])[\w,]*\b)", with_value, message)
    message = message.replace("`tir-schedules list` shows all", "ladders() has all")
    message = re.sub(r"; see `tir-schedules[^`]*--help`", "", message)
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)(?![\w-])=?", option, message)


HINTS = re.compile(r"--(?:finite|tolerance|machine cpu)\b")
"""Options that faults name, beside lines of code that may have -- too."""


def reworded_hints(fault: str) -> str:
    """A fault, with its hints in the words of Python."""
    return HINTS.sub(lambda match: reworded(match[0]), fault)


def in_python(function: Called) -> Called:
    """A function of the library whose errors name options as Python has them, and whose signature has every
    option."""

    shown_signature = signature(function)

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            for name, value in named.items():
                if name in shown_signature.parameters and name not in SHAPES:
                    kind = str(shown_signature.parameters[name].annotation)
                    check_kind(name, value, kind)
                    if kind in TEXTS and isinstance(value, (str, Path)):
                        named[name] = [value]
            return function(*given, **named)
        except TirSchedulesError as error:
            error.args = (printable(reworded(str(error)), "\n\t"), *error.args[1:])
            raise

    vars(called)["__signature__"] = shown_signature
    return called  # pyright: ignore[reportReturnType]


KINDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("str", lambda value: isinstance(value, str), "a text"),
    ("int", lambda value: hasattr(value, "__index__"), "a whole number"),
    ("bool", lambda value: isinstance(value, bool), "True or False"),
    ("Mapping", lambda value: hasattr(value, "items"), "a dictionary"),
    ("Arguments", lambda value: hasattr(value, "items") or is_several(value), "a dictionary or a list"),
    (
        "Extent",
        lambda value: hasattr(value, "__index__") or is_several(value),
        "a whole number or a list of them",
    ),
    ("Sequence", lambda value: isinstance(value, (str, Path)) or is_several(value), "a list"),
)
"""Beginning of an annotation -> whether a value is of that kind, and what it takes."""


TEXTS = ("Sequence[str]", "Sequence[str | Path]")
"""Annotations of parameters that take a list, or one text in its place."""

SHAPES = ("mnk", "n", "shape")
"""What `problems` checks itself, with an example in the message."""


def is_several(value: object) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)


def check_kind(name: str, value: object, annotation: str) -> None:
    """Raises BadInput if an argument is not of the kind that its annotation begins with. Unions of several
    kinds are left to the function."""
    kind = re.sub(r"\[.*\]", "", annotation).removesuffix(" | None")
    if value is None:
        return
    for beginning, fits, takes in KINDS:
        if kind == beginning and not fits(value):
            raise BadInput(f"{name} is {shown(str(value))}; it takes {takes}")


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """With the options that a TypedDict lists in place of `**`."""
    found = inspect.signature(function)
    parameters: list[inspect.Parameter] = []
    for one in found.parameters.values():
        packed = re.fullmatch(r"Unpack\[(\w+)\]", str(one.annotation))
        options: dict[str, Any] = {}
        if packed:
            options = getattr(inspect.getmodule(function), packed[1]).__annotations__
        if not packed:
            parameters.append(one)
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in options.items()
        ]
    return found.replace(parameters=parameters)
