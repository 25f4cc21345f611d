"""Tensor maps as arguments: `tma='A[64,64] swizzle 128'` is a map of the array A. Its copies take boxes of 64
x 64 elements."""

from __future__ import annotations

import re
from typing import Any, Mapping

import numpy as np

from tir_schedules.check.arguments import Argument, Given
from tir_schedules.check.expressions import whole, wholes
from tir_schedules.check.types import FORMATS
from tir_schedules.compiler.signature import MAP, MAP_BYTES
from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.machines.tensor_map import faults_of
from tir_schedules.model.launch import TensorMap

TEXT = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([^\]]*)\]\s*(.*)", re.S)
WORDS = re.compile(r"(swizzle|strides|shape|fill|interleave)\s+(\[[^\]]*\]|[\w*/+-]+)\s*")
UNSIGNED = {"int8": "uint8", "int16": "uint16", "bool": "uint8"}
"""Elements that a map has as bits."""

FORM = "such as 'A[64,64] swizzle 128': an array of another --arg, a box, and a swizzle of 32, 64 or 128"


def map_in(one: Given, names: Mapping[str, Any] | set[str]) -> re.Match[str] | None:
    """The text of an argument as a tensor map's; None for another. names: of arguments."""
    found = TEXT.fullmatch(one.text)
    if not found or found[1] in FORMATS:
        return None
    return found if found[1] in names or WORDS.match(found[3]) else None


def make_map(one: Given, arguments: Mapping[str, Argument], sizes: Mapping[str, Any]) -> Argument:
    """The map, of an array among the arguments. BadInput for what is none, and where CUDA would refuse it."""
    match = map_in(one, set(arguments))
    assert match is not None
    what = f"--arg {one.name}="
    array = arguments[match[1]].array if match[1] in arguments else None
    if array is None:
        hint = nearest(match[1], arguments)
        raise BadInput(
            f"{what} {shown(one.text)}: there is no array {match[1]!r}{hint}: say --arg '{match[1]}=f32[M,N]'"
        )
    said = words_of(match[3], what, one.text)
    if said.get("interleave", "none") != "none" or said.get("fill", "zero") not in ("zero", "zeros", "none"):
        raise BadInput(
            f"{what} {shown(one.text)}: the machine has only maps without interleave that fill with zeros"
        )
    box = wholes(match[2], sizes, what)
    shape = listed(said["shape"], sizes, what) if "shape" in said else array.shape
    pitches = tuple(int(np.prod(shape[at:], dtype=object)) * array.itemsize for at in range(1, len(shape)))
    pitches = listed(said["strides"], sizes, what) if "strides" in said else pitches
    name = said.get("swizzle", "none")
    swizzle = 0 if name == "none" else whole(name, sizes, what)
    element = str(array.dtype.name)
    element = UNSIGNED.get(element, element)
    made = TensorMap(one.name, match[1], element, tuple(shape), pitches, box, swizzle)
    for count, wanted, name in ((len(box), len(shape), "box"), (len(pitches) + 1, len(shape), "strides")):
        if count != wanted:
            fewer = " (bytes, all but the last)" if name == "strides" else ""
            extents = f"{match[1]} has {wanted} extents"
            raise BadInput(f"{what} {shown(one.text)}: {extents}, and {name}{fewer} stands for {count}")
    for fault in faults_of(made):
        raise BadInput(f"{what} {shown(one.text)}: {fault}")
    last = sum((extent - 1) * pitch for extent, pitch in zip(shape, (*pitches, array.itemsize)))
    if last + array.itemsize > array.nbytes:
        reached = f"it reaches up to byte {last + array.itemsize}"
        raise BadInput(f"{what} {shown(one.text)}: {reached} of {match[1]}, which has {array.nbytes}")
    return Argument(made, text=one.text)


def words_of(text: str, what: str, whole_text: str) -> dict[str, str]:
    """What stands behind the box, by word."""
    found, rest = {}, text.strip()
    while rest:
        match = WORDS.match(rest)
        if not match:
            raise BadInput(f"{what} {shown(whole_text)}: {shown(rest)} is not taken; a map is {FORM}")
        found[match[1]], rest = match[2], rest[match.end() :]
    return found


def listed(text: str, sizes: Mapping[str, Any], what: str) -> tuple[int, ...]:
    inner = text.strip("[] ")
    return wholes(inner, sizes, what) if inner else ()


def takes_map(text: str, bytes: int) -> bool:
    """Whether a parameter may be a tensor map, or point to one. text: its type, "" where it is not known."""
    return MAP in text or (not text and bytes == MAP_BYTES)
