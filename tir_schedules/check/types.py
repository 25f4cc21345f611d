"""C++ types of a kernel's parameters, and the formats of numbers: which arrays a pointer may point to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads import element_type

FLOATS = ("f16", "bf16", "f32", "f64")
FORMATS = (*FLOATS, "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
"""Names of formats, as `--arg` takes them."""

NUMPY_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
"""Formats that a C of hgemm can have."""

UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
"""Unit roundoff of a format: whole numbers up to 1 / UNITS[format] are exact."""

LARGEST = {"f16": 2.0**15, "bf16": 2.0**127, "f32": 2.0**127, "f64": 2.0**1023}
"""The largest power of two of a format."""

DENORMAL = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1060}
"""A denormal number of a format."""

NAMES = {
    "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "_Float16": "f16", "half_t": "f16",
    "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "__bf16": "bf16",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8", "int8_t": "i8", "uint8_t": "u8",
    "short": "i16", "unsigned short": "u16", "int16_t": "i16", "uint16_t": "u16",
    "int": "i32", "unsigned int": "u32", "unsigned": "u32", "int32_t": "i32", "uint32_t": "u32",
    "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
    "int64_t": "i64", "uint64_t": "u64", "size_t": "u64", "uint": "u32", "uchar": "u8", "ushort": "u16",
}  # fmt: skip
"""C++ types -> formats."""

HALVES, CARRIERS = ("f16", "bf16"), ("u16", "u32")
"""Halves are also read as their bits, one or two at a time."""

QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|std::)\b|std::")


@dataclass(frozen=True)
class CType:
    """A type as C++ writes it. pointer: None where it is not known. format: that of a number or of what is
    pointed to; "" for a type that is not built in. const: whether what is pointed to is. ptx: the type in
    PTX, where that is all there is."""

    text: str
    pointer: bool | None = False
    format: str = ""
    const: bool = False
    depth: int = 0
    ptx: str = ""


def c_type(text: str) -> CType:
    """ "float const*", "const float *__restrict__", "float (*) [32]" or "unsigned int"."""
    shown = " ".join(text.split())
    marks = shown.count("*") + shown.count("&")
    head = re.split(r"[*&(]", shown)[0]
    words = QUALIFIERS.sub(" ", head).split()
    number = [word for word in words if word in ("unsigned", "signed", "long", "short", "int", "char")]
    if number and len(number) == len(words) and len(words) > 1:  # in any order, with or without int
        sign = ["unsigned"] * ("unsigned" in words) + ["signed"] * ("signed" in words and "char" in words)
        rest = [word for word in words if word not in ("unsigned", "signed", "int")]
        words = [*sign, *(rest or ["int"])]
    base = " ".join(words)
    return CType(shown, bool(marks), NAMES.get(base, ""), bool(re.search(r"\bconst\b", head)), marks)


def dtype_of(format: str) -> Any:
    """numpy's dtype of a format. BadInput for one there is not."""
    if format == "bf16":
        return element_type("bfloat16")
    if format not in FORMATS:
        raise BadInput(f"{format!r} is no format of numbers; there are {', '.join(FORMATS)}")
    return np.dtype(f"{format[0]}{int(format[1:]) // 8}")


def format_of(dtype: Any) -> str:
    """The format of a dtype; "" for another."""
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind == "b":
        return "u8"
    return f"{dtype.kind}{dtype.itemsize * 8}" if dtype.kind in "fiu" and dtype.itemsize <= 8 else ""


def fits(type_: CType, format: str) -> bool:
    """Whether an array of a format may be given for a pointer. Signed and unsigned integers may stand for
    each other; vectors, structs and void take any format, as kernels copy by them."""
    wanted = type_.format
    if not wanted or not format or wanted == format:
        return True
    if wanted in CARRIERS and format in HALVES:
        return True
    return wanted[0] in "iu" and format[0] in "iu" and wanted[1:] == format[1:]
