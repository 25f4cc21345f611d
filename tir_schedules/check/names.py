"""Names of a compiled file's kernels as C++ has them: `_Z5sgemmILi128EEvPKfPf` is
`sgemm<128>(float const*, float*)`.

libstdc++ reads the names; it comes with g++, which the CPU machine needs anyway.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Callable, Sequence

from tir_schedules.compiler.signature import split
from tir_schedules.errors import MissingTool

INSTANCE = "tir_schedules_instance"
"""The template whose argument is a kernel that a file is asked to make, and the name of that line's file."""

MARKS = re.compile(r"\s+")


@lru_cache(maxsize=1)
def demangler() -> Callable[[bytes], bytes | None]:
    """A function of libstdc++. MissingTool where there is none."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        raise MissingTool("libstdc++.so.6 is missing, which comes with g++: `apt install g++`") from None
    read, free = library.__cxa_demangle, ctypes.CDLL(None).free
    read.restype, free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    read.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

    def demangle(name: bytes) -> bytes | None:
        status = ctypes.c_int()
        place = read(name, None, None, ctypes.byref(status))
        if not place:
            return None
        text = ctypes.string_at(place)
        free(place)
        return text

    return demangle


def demangled(name: str) -> str:
    """A symbol as C++ has it; one that is not C++'s stays."""
    text = demangler()(name.encode()) if name.startswith("_Z") else None
    return text.decode("utf-8", "replace") if text else name


def parted(text: str) -> tuple[str, tuple[str, ...] | None]:
    """ "void ns::f<2>(int, float*)" as its name, "ns::f<2>", and its parameters' types; None for those where
    the name has none, as of `extern "C"`."""
    if not text.endswith(")"):
        return text, None
    depth, opening = 0, len(text)
    while True:
        opening -= 1
        depth += (text[opening] == ")") - (text[opening] == "(")
        if not depth:
            break
    types = [part.strip() for part in split(text[opening + 1 : -1])]
    name = text[:opening].replace("(anonymous namespace)::", "")
    return name.removeprefix("void "), tuple(kind for kind in types if kind not in ("", "void"))


def plain(name: str) -> str:
    """A name without its spaces, by which names are compared."""
    return MARKS.sub("", name)


def base(name: str) -> str:
    """A name without its arguments as a template and without namespaces: "f" of "ns::f<2>"."""
    return name.partition("<")[0].rpartition("::")[2].strip()


def instance_lines(names: Sequence[str]) -> str:
    """Lines below a file that have its templates made for these arguments, and tell their symbols."""
    wanted = "".join(
        f"template __global__ void {INSTANCE}<{at}, (&{name})>();\n" for at, name in enumerate(names)
    )
    head = f"template <int, auto *> __global__ void {INSTANCE}() {{}}"
    return f'\n#line 1 "{INSTANCE}"\n{head}\n{wanted}' if names else ""


def instance_of(text: str) -> tuple[int, str] | None:
    """The number and the kernel, demangled, that an instance of INSTANCE was made for; None for another
    function."""
    match = re.fullmatch(rf"void {INSTANCE}<(\d+), &(.*)>\(\)", text)
    if not match:
        return None
    kernel = match[2]
    return int(match[1]), kernel[1:-1] if kernel.startswith("(") else kernel
