"""Which argument goes to which parameter of a kernel, and whether it can."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import Argument, Given
from tir_schedules.check.expressions import number
from tir_schedules.check.target import Parameter, Target
from tir_schedules.check.types import dtype_of, fits, format_of
from tir_schedules.errors import BadInput, nearest, shown

FLOATS = ("f16", "bf16", "f32", "f64")
VARIABLE = (
    r"^([ \t]*(?:\.visible |\.extern |\.weak )*\.(?:const|global)\b[^;=\n]*?\s)({})((?:\[(\d*)\])?)[^;]*;"
)
SIZE_IN_PTX = re.compile(r"\.[bsuf](\d+)\s*$")


@dataclass(frozen=True)
class Bound:
    """What a parameter takes: the name of an argument, or a number in place."""

    parameter: Parameter
    name: str
    value: Any = None


def bound(target: Target, given: Sequence[Given], sizes: Mapping[str, Any]) -> list[Bound]:
    """Arguments by the parameters' names, numbers of `--let` by theirs, the rest by their place.

    BadInput, with the signature, where a parameter is left without one or one without a parameter.
    """
    named = {one.name for one in given if one.name}
    placed = [at for at, one in enumerate(given) if not one.name]
    found = []
    for parameter in target.parameters:
        if parameter.name in named:
            found.append(Bound(parameter, parameter.name))
        elif parameter.name in sizes and not parameter.type.pointer:
            found.append(Bound(parameter, "", sizes[parameter.name]))
        elif placed:
            found.append(Bound(parameter, f"#{placed.pop(0)}"))
        else:
            form = (
                f"{parameter.name}=f32[N]" if parameter.type.pointer is not False else f"{parameter.name}=1"
            )
            raise BadInput(
                f"nothing is given for `{parameter.text}` of {target.signature}: say --arg '{form}'"
            )
    if placed:
        raise BadInput(
            f"{target.signature} takes {len(target.parameters)} arguments; {len(placed)} are too many"
        )
    return found


def arguments_of_launch(
    target: Target, texts: Sequence[str], known: set[str], sizes: Mapping[str, Any]
) -> list[Bound]:
    """Arguments as `--launch` has them: names of what `--arg` gives, or numbers."""
    if len(texts) != len(target.parameters):
        raise BadInput(
            f"--launch gives {len(texts)} arguments; {target.signature} takes {len(target.parameters)}"
        )
    found = []
    for parameter, text in zip(target.parameters, texts):
        if text in known:
            found.append(Bound(parameter, text))
        elif text in ("null", "nullptr"):
            found.append(Bound(parameter, "", 0))
        elif parameter.type.pointer and text.isidentifier():
            raise BadInput(
                f"--launch: there is no argument {text!r}{nearest(text, known)} for `{parameter.text}` of"
                f" {target.signature}: say --arg '{text}=f32[N]'"
            )
        else:
            found.append(Bound(parameter, "", number(text, sizes, f"--launch, {parameter.name} =")))
    return found


def value_for(parameter: Parameter, argument: Argument, target: Target) -> Any:
    """What a machine is given for a parameter: an array, a number of its type, or bytes. BadInput, with the
    signature, for what is not of its type."""

    def refused(what: str) -> BadInput:
        return BadInput(f"`{parameter.text}` of {target.signature} {what}")

    array, type_ = argument.array, parameter.type
    if type_.pointer or (type_.pointer is None and (array is not None or argument.value is None)):
        if parameter.bytes != 8:
            raise refused(f"has {parameter.bytes} bytes, not those of a pointer")
        if type_.depth > 1 and array is not None and "(" not in type_.text:
            raise refused("points to pointers, which cannot be given")
        if argument.value is None or (array is None and argument.value == 0):
            return np.uint64(0)
        if array is None:
            raise refused(
                f"is a pointer; {shown(argument.value)} is given: say an array such as f32[N], or null"
            )
        if not fits(type_, format_of(array.dtype)):
            raise refused(f"points to {type_.format}; an array of {format_of(array.dtype)} is given")
        return array
    if parameter.by_value and type_.format not in FLOATS:
        if array is None or array.nbytes != parameter.bytes:
            raise refused(
                f"is a struct of {parameter.bytes} bytes: give an array of so many, such as"
                f" u8[{parameter.bytes}]"
            )
        return np.void(array.tobytes())
    if array is not None and array.size != 1 or argument.value is None:
        raise refused(f"is a number; {'an array' if array is not None else 'null'} is given")
    return scalar(parameter, array.item() if array is not None else argument.value, refused)


def scalar(parameter: Parameter, value: Any, refused: Any) -> Any:
    """A number in the parameter's format."""
    format = parameter.type.format or parameter.type.ptx
    if format in FLOATS:
        made = np.asarray(value, dtype_of(format))
        return np.void(made.tobytes()) if parameter.by_value else made[()]
    if isinstance(value, float) and not value.is_integer():
        raise refused(f"is a whole number; {value} is given")
    bits, whole = 8 * parameter.bytes, int(value)
    if not -(1 << (bits - 1)) <= whole < 1 << bits:
        raise refused(f"has {bits} bits, which {whole} does not fit into")
    return np.array([whole & ((1 << bits) - 1)], f"u{parameter.bytes}").view(f"i{parameter.bytes}")[0]


def variable_in(ptx: str, name: str) -> re.Match[str] | None:
    """The declaration of a `__constant__` or `__device__` variable."""
    return re.search(VARIABLE.format(re.escape(name)), ptx, re.M)


def set_variable(ptx: str, name: str, array: np.ndarray) -> str:
    """PTX in which a variable begins with what an array holds. BadInput where that is too much."""
    match = variable_in(ptx, name)
    assert match is not None, name
    element = SIZE_IN_PTX.search(match[1])
    width = int(element[1]) // 8 if element else 1
    size = width * int(match[4] or 1)
    if array.nbytes > size:
        raise BadInput(f"the variable {name} has {size} bytes; {array.nbytes} are given")
    content = array.tobytes() + b"\0" * (size - array.nbytes)
    values = ", ".join(
        str(int.from_bytes(content[at : at + width], "little")) for at in range(0, size, width)
    )
    value = f"{{{values}}}" if match[3] else values
    return f"{ptx[: match.start()]}{match[1]}{name}{match[3]} = {value};{ptx[match.end() :]}"
