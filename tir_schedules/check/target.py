"""The kernels of a compiled file: their names as C++ has them, their parameters, the one that is asked for,
and what they compute with.

`_Z5sgemmILi128EEvPKfPf` is `sgemm<128>(float const*, float*)`. libstdc++ reads the names; it comes with g++,
which the CPU machine needs anyway.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Callable, Iterable, Sequence

from tir_schedules.check.types import Arithmetic, CType, c_type
from tir_schedules.compiler.signature import blank_literals, definitions, functions, split
from tir_schedules.compiler.source_text import closing_brace
from tir_schedules.errors import BadInput, MissingTool, nearest

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


def demangle_name(name: str) -> str:
    """A symbol as C++ has it; one that is not C++'s stays."""
    text = demangler()(name.encode()) if name.startswith("_Z") else None
    return text.decode("utf-8", "replace") if text else name


def split_signature(text: str) -> tuple[str, tuple[str, ...] | None]:
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


ENTRY = re.compile(r"^[ \t]*(?:\.visible |\.weak )?\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?", re.M)
PARAM = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]+\d+)\s*(.*?)([\w$]+)(?:\[(\d+)\])?\s*(?:,|$)", re.S
)
LIBRARY = re.compile(r"(?:void )?(?:thrust|cub)::")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LISTED = 8


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel. name: as its source has it, else as its PTX has. bytes: its size.
    by_value: whether it is a struct or the like, which PTX has as bytes. members: of a struct, where they are
    known; else why they are not, in `unknown`, and in `has_pointers` whether some are pointers. of, offset,
    whole: of a member the struct's name, its place there, and the struct's size. path: of a member its name
    after those of the structs around it, "p.inner.x". count: of an array its numbers."""

    name: str
    type: CType
    bytes: int
    by_value: bool = False
    members: tuple[Parameter, ...] | None = None
    of: str = ""
    offset: int = 0
    whole: int = 0
    path: str = ""
    count: int = 0
    unknown: str = ""
    has_pointers: bool = False

    @property
    def text(self) -> str:
        inside = f" {{{', '.join(member.text for member in self.members)}}}" if self.members else ""
        extent = f"[{self.count}]" if self.count and not self.type.elements else ""
        return f"{self.type.text} {self.name}{extent}".strip() + inside


@dataclass(frozen=True)
class Target:
    """A kernel of a compiled file. symbol: its name in PTX. shown: as C++ has it, without parameters."""

    symbol: str
    shown: str
    parameters: tuple[Parameter, ...]

    @property
    def signature(self) -> str:
        return f"{self.shown}({', '.join(parameter.text for parameter in self.parameters)})"

    def answers(self, asked: str) -> bool:
        """Whether it is what a user calls so: by its symbol, or by its name with or without namespaces, the
        arguments of its template, and its parameters."""
        asked, shown = plain(asked), plain(self.shown)
        full = plain(without_return_type(demangle_name(self.symbol)))
        names = {plain(self.symbol), shown, shown.partition("<")[0], full}
        return asked in names or any(name.endswith(f"::{asked}") for name in names)


def without_return_type(text: str) -> str:
    """A demangled function without the type that it returns."""
    name, types = split_signature(text)
    return name if types is None else f"{name}({','.join(types)})"


def targets(ptx: str, source: str = "") -> list[Target]:
    """Every kernel in PTX text, in its order. source: the CUDA that it was compiled from."""
    found = {}
    for match in ENTRY.finditer(ptx):
        symbol, declared = match[1], match[2] or ""
        text = demangle_name(symbol)
        if not instance_of(text):
            shown, types = split_signature(text)
            found[symbol] = Target(symbol, shown, parameters(declared, base(shown), types, source))
    return list(found.values())


def parameters(declared: str, name: str, types: tuple[str, ...] | None, source: str) -> tuple[Parameter, ...]:
    """declared: the parameters in PTX. types: those of C++ where the symbol tells them."""
    in_ptx = PARAM.findall(declared)
    written = [one.parameters for one in definitions(source, name) if len(one.parameters) == len(in_ptx)]
    in_source = written[0] if written else ()
    found = []
    for at, (kind, marks, _, extent) in enumerate(in_ptx):
        size = int(kind.lstrip(LETTERS)) // 8 * int(extent or 1)
        source_name = in_source[at].name if in_source else ""
        text = types[at] if types and len(types) == len(in_ptx) else in_source[at].text if in_source else ""
        if not types and source_name:
            text = type_of_parameter(text, source_name)
        type_ = replace(c_type(text), ptx=kind)
        if not types and not type_.pointer and not type_.format and size == 8 and not (extent and text):
            type_ = replace(type_, pointer=True if ".ptr" in marks else None)  # of an alias, or of none
        found.append(Parameter(source_name or f"param_{at}", type_, size, bool(extent)))
    return tuple(found)


def type_of_parameter(text: str, name: str) -> str:
    """A parameter as its source declares it, as a type alone."""
    text = re.sub(rf"\b{re.escape(name)}\b(?=\s*(?:\[|=|\)|$))", "", text, count=1).partition("=")[0]
    return re.sub(r"\[[^\]]*\]", "*", text, count=1).strip()


def chosen(found: Sequence[Target], asked: str, source: str, file: str) -> Target:
    """The kernel that a user asks for, or the only one. BadInput, which lists what there is, for none or
    several."""
    those = [target for target in found if target.answers(asked)] if asked else written_in(found, source)
    own = not source or asked or functions(source)
    if those and not own and all(LIBRARY.match(target.shown) for target in those):
        raise BadInput(
            f"{file} has no __global__ function of its own: its kernels are those of Thrust and CUB"
        )
    if len(those) == 1:
        return those[0]
    if those:
        which = f"{asked!r} may be" if asked else "name one by --kernel:"
        raise BadInput(f"{file} has {len(those)} kernels; {which} {list_signatures(those)}")
    made = [INSTANCE, *(base(one.shown) for one in found)]
    others = [name for name in functions(source) if name not in made]
    templates = [name for name in others if template_of(source, name)]
    there = [*(one.shown for one in found), *(f"the template {name}" for name in templates)]
    has = f"it has {', '.join(there[:LISTED])}" if there else "it has no __global__ function"
    more = f" and {len(there) - LISTED} more" if len(there) > LISTED else ""
    if asked in templates or (not asked and templates):
        name = asked or templates[0]
        raise BadInput(
            f"{file}: {name} is a template: name an instance with its arguments, --kernel '{name}<...>'"
        )
    if asked in others or (not found and not asked and others):
        name = asked or others[0]
        raise BadInput(f"{file} declares {name} and does not define it: name the file that does")
    if not there:
        raise BadInput(f"{file}: {has}; name a file with a kernel")
    hint = nearest(asked, [one.shown for one in found])
    raise BadInput(f"{file} has no kernel {asked!r}{hint}: {has}{more}")


def template_of(source: str, name: str) -> str:
    """The parameters of a template of kernels, "int BM, int BN"; "" where there is none of the name."""
    text = re.sub(r"\s+", " ", blank_literals(source))
    found = re.findall(
        rf"template ?<([^;{{}}]*?)>[^;{{}}<]*\b__global__\b[^;{{}}]*?\b{re.escape(name)} ?\(", text
    )
    return found[0].rpartition("template")[2].strip(" <") if found else ""


def written_in(found: Sequence[Target], source: str) -> list[Target]:
    """The kernels that the user wrote, without those of headers such as CUB's; all kernels if the user wrote
    none."""
    names = set(functions(source))
    return [target for target in found if base(target.shown) in names] or list(found)


def list_signatures(found: Sequence[Target]) -> str:
    """Their signatures, for a line."""
    shown = [target.signature for target in found[:LISTED]]
    return "; ".join(shown) + (f"; and {len(found) - LISTED} more" if len(found) > LISTED else "")


EFFECT = re.compile(
    r"\b(?:st|atom|red|call|cp|sust|stmatrix|trap)[.\s;]|\bld\.(?!param)|\bwmma\.(?:load|store)\."
)
"""An instruction that reads or writes memory other than parameters, or calls what may."""


def has_effect(ptx: str, symbol: str) -> bool:
    """Whether a kernel touches memory at all, as it was compiled."""
    text = alone(ptx, symbol)
    found = next((match for match in ENTRY.finditer(text) if match[1] == symbol), None)
    opening = text.find("{", found.end()) if found else -1
    return opening < 0 or bool(EFFECT.search(text, opening, closing_brace(text, opening)))


def alone(ptx: str, symbol: str) -> str:
    """PTX without its other kernels, whose lines are empty: it is read in a part of the time, and every line
    keeps its number."""
    parts, last = [], 0
    for match in ENTRY.finditer(ptx):
        opening = ptx.find("{", match.end())
        if match[1] == symbol or opening < 0 or ";" in ptx[match.end() : opening]:
            continue
        end = closing_brace(ptx, opening) + 1
        parts += [ptx[last : match.start()], "\n" * ptx.count("\n", match.start(), end)]
        last = end
    return "".join([*parts, ptx[last:]])


# ---- what a kernel computes with, by the opcodes of its PTX ---
OPCODE = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%?\w+\s+)?([a-z][\w.:]*)", re.M)
NARROWED = re.compile(r"\bcvt\.(?:rn|rz)[\w.]*\.b?f16\.f32\s+(%\w+)")
WIDENED = re.compile(r"\bcvt\.f32\.b?f16\s+%\w+,\s*(%\w+)")
"""Registers that a float32 is rounded to, and those that one is made of."""

ATOMIC = ("atom", "red")
ADDS = ("add", "sub", "fma", *ATOMIC)
CHAIN = 5
"""So many additions of halves, each of the one before, are a sum."""

ASSIGNED = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%?\w+\s+)?([a-z][\w.:]*)\s+([^;]*)(?=;)", re.M)
REGISTER = re.compile(r"%\w+")
MULTIPLIES = ("mul", "ex2", "tanh")
PRODUCTS = re.compile(r"\bmul(?:\.\w+)*\.f32\s+(%\w+)")
POWERS = re.compile(r"\bex2\.approx(?:\.ftz)?\.f32\s+%\w+,\s*(%\w+)")
"""Registers that a product is put in, and those that a power is taken of."""

TENSOR = ("mma", "wmma", "wgmma")
HALVES = {"f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16"}


def arithmetic_of(texts: Iterable[str]) -> Arithmetic:
    """What kernels compute with, which decides how far off right values may be. A kernel with fp16 arrays
    that has no fp16 arithmetic converts to float32 first: its sums have the rounding errors of float32.

    texts: PTX of the kernels, each with the functions that it may call.
    """
    texts = list(texts)
    opcodes = {opcode for text in texts for opcode in OPCODE.findall(text)}
    multiplied, added, cut = set[str](), set[str](), set[str]()
    tensor = tf32 = flushes = angles = False
    for opcode in opcodes:
        name, *parts = opcode.split(".")
        halves = [HALVES[part] for part in parts if part in HALVES]
        flushes |= "ftz" in parts
        angles |= name in ("sin", "cos") and "approx" in parts
        if name in TENSOR and ("mma" in parts or "mma_async" in parts or name == "mma"):
            sums = next((part for part in parts if part in ("f16", "f32", "f64", "s32")), "")
            cut |= {"f16"} if sums == "f16" else set()
            tensor |= sums == "f32"
            tf32 |= "tf32" in parts
        elif halves and name in ADDS + MULTIPLIES:
            multiplied |= set(halves)
            added |= set(halves) if name in ATOMIC else set()
    if multiplied:
        added |= {one for text in texts for one in summed_halves(text)}
    narrowed = len(texts) > 1 or any(map(is_narrowed, texts))
    return Arithmetic(
        frozenset(multiplied), frozenset(added), frozenset(cut), tensor, narrowed, tf32, flushes, angles,
        powers=any(map(has_fast_powers, texts)),
    )  # fmt: skip


def has_fast_powers(text: str) -> bool:
    """Whether ex2.approx takes a product, as in `__expf`; expf reduces its range first, by fma."""
    return not set(PRODUCTS.findall(text)).isdisjoint(POWERS.findall(text))


def is_narrowed(text: str) -> bool:
    """Whether a value may be rounded to 16 bits and used again: by way of shared memory, or in a register."""
    return "st.shared" in text or not set(NARROWED.findall(text)).isdisjoint(WIDENED.findall(text))


def summed_halves(text: str) -> set[str]:
    """Formats of 16 bits in which a kernel adds up: in a loop, or more than a few numbers one after another.
    A bias, or a residual, is added once."""
    graph: dict[str, set[str]] = {}
    adding: list[tuple[str, str, list[str]]] = []
    for opcode, operands in ASSIGNED.findall(text):
        registers = REGISTER.findall(operands)
        if not registers or opcode.startswith(("st", "bra", "setp", "red")):
            continue
        name, *parts = opcode.split(".")
        count = operands.partition("}")[0].count("%") if operands.startswith("{") else 1
        results, sources = registers[:count], registers[count:]
        for result in results:
            graph.setdefault(result, set()).update(sources)
        if name in ADDS and (formats := [HALVES[part] for part in parts if part in HALVES]):
            adding.append((formats[0], results[0], sources))
    results = {result for _, result, _ in adding}
    return {format for format, result, sources in adding if chain(graph, results, result, sources) >= CHAIN}


def chain(graph: dict[str, set[str]], adding: set[str], result: str, sources: list[str]) -> int:
    """How many additions a result is made by, one after another; CHAIN where it is made of itself."""
    found, pending, seen = {result}, set(sources), set[str]()
    while pending:
        if result in pending:
            return CHAIN
        found |= pending & adding
        seen |= pending
        pending = {source for one in pending for source in graph.get(one, ())} - seen
    return len(found)
