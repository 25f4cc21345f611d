"""The parameters of a `__global__` function, read from its CUDA source, and what a workload can give for
them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Iterator, Mapping, Sequence

from tir_schedules.errors import CheckFailed
from tir_schedules.model.launch import TensorMap

# comments, and literals that may hold what looks like one; a quote after a letter or digit separates digits
COMMENT_OR_LITERAL = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|\b(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])*\'',
    re.S,
)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|\balignas\s*\([^)]*\)", re.S)
QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict", "restrict", "register", "struct", "class",
    "typename",
              "__grid_constant__", "__const__"}  # fmt: skip
WIDTHS = {"float": "f4", "double": "f8", "half": "f2", "__half": "f2", "_Float16": "f2",
    "__nv_bfloat16": "b2", "nv_bfloat16": "b2",
          "bool": "i1", "int8_t": "i1", "uint8_t": "i1", "int16_t": "i2", "uint16_t": "i2", "int32_t": "i4",
          "uint32_t": "i4",
          "int64_t": "i8", "uint64_t": "i8", "size_t": "i8", "ptrdiff_t": "i8", "uint": "i4", "ushort": "i2",
          "uchar": "i1",
          "ulong": "i8"}  # fmt: skip
WORDS = {"signed", "unsigned", "int", "char", "short", "long"}
HALVES = ("f2", "b2")
CARRIERS = ("i2", "i4")  # halves are also read as their bits, one or two at a time
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
MAP, MAP_BYTES = "CUtensorMap", 128
DECLARED_MAP = f"const __grid_constant__ {MAP}"
"""A tensor map among the parameters: TMA reads it where CUDA puts it, so it cannot be a copy."""


@dataclass(frozen=True)
class Parameter:
    """One parameter as it is declared. name: empty when it has none. base: its type without pointer and
    qualifiers."""

    text: str
    name: str
    base: str
    pointer: bool
    reference: bool = False

    @property
    def width(self) -> str:
        """Kind and bytes of its base type, "f4" or "i8"; empty for a type that is not built in."""
        words = self.base.split()
        if words and all(word in WORDS for word in words):
            size = 1 if "char" in words else 2 if "short" in words else 8 if "long" in words else 4
            return f"i{size}"
        return WIDTHS.get(self.base, "")


@dataclass(frozen=True)
class Signature:
    """A kernel's definition. position: of its name in the text. raw: the text between the brackets, without
    comments."""

    position: int
    raw: str
    parameters: tuple[Parameter, ...]


@lru_cache(maxsize=4)  # a text is asked about more than once
def blank_literals(source: str) -> str:
    """The source with spaces for comments and for what literals hold; every other character stays at its
    place."""
    return COMMENT_OR_LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def definitions(source: str, entry: str) -> list[Signature]:
    """Every definition of a function of that name; a declaration, which ends in a semicolon, is none."""
    text, found = blank_literals(source), []
    for match in re.finditer(rf"(?<![\w.>:]){re.escape(entry)}\s*\(", text):
        end = closing(text, match.end() - 1)
        if end is None or not re.match(
            r"(?:\s|->\s*void|__attribute__\s*\(\(.*?\)\)|__launch_bounds__\s*\([^)]*\))*\{", text[end + 1 :]
        ):
            continue
        raw = text[match.end() : end]
        declared = [part for part in split(ATTRIBUTE.sub(" ", raw)) if part.strip()]
        if [part.strip() for part in declared] == ["void"]:
            declared = []
        found.append(Signature(match.start(), raw, tuple(map(declaration, declared))))
    return found


def closing(text: str, opening: int) -> int | None:
    """Where the bracket that opens there is closed."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if not depth:
            return position
    return None


def split(text: str) -> Iterator[str]:
    """Parts between the commas that stand in no bracket."""
    depth, start = 0, 0
    for position, letter in enumerate(text):
        depth += (letter in PAIRS) - (letter in PAIRS.values())
        if letter == "," and depth <= 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def declaration(text: str) -> Parameter:
    """A parameter's declaration: `const float *__restrict__ A`, `float X[]`, `int N = 4`."""
    shown = " ".join(text.split())
    declared = re.sub(r"(?<![=!<>])=(?!=).*", "", shown).strip()
    to_array = re.search(r"\(\s*[*&]\s*(?:const\s+|__restrict__\s+)*(\w+)\s*\)", declared)
    if to_array:
        return Parameter(shown, to_array[1], "", "*" in to_array[0], "&" in to_array[0])
    array = re.search(r"(?:\s*\[[^\]]*\])+$", declared)
    declared = declared[: array.start()] if array else declared
    words = [
        word for word in re.findall(r"[A-Za-z_][\w:]*(?:<.*>)?|[*&]+", declared) if word not in QUALIFIERS
    ]
    marks = [position for position, word in enumerate(words) if word[0] in "*&"]
    pointer, reference = array is not None or "*" in declared, "&" in declared
    after = words[marks[-1] + 1 :] if marks else words[1:]
    named = bool(after) and after[-1] not in WORDS and after[-1] not in WIDTHS
    name = after[-1] if named else ""
    base = words[: marks[0]] if marks else words[:-1] if named else words
    return Parameter(shown, name, " ".join(base).removeprefix("std::"), pointer, reference)


def argument_name(parameter: str) -> str:
    """The workload's name of a parameter as TVM prints it: "A_ptr" means "A"."""
    return parameter.removesuffix("_ptr").removesuffix("_handle")


def argument_names(
    signature: Signature,
    entry: str,
    takes: Mapping[str, str],
    outputs: tuple[str, ...],
    maps: Sequence[TensorMap] = (),
) -> tuple[str, ...]:
    """The workload's argument for each parameter, by name, in whatever case, or the name of a tensor map.

    takes: the workload's arguments and their C types, such as {"A": "const float*", "N": "int"}. maps: of the
    launch; an array that has one need not be among the parameters. CheckFailed when a parameter has no name,
    another name than these, or the wrong type, and when an output is missing.
    """
    described = {each.name: each.of for each in maps}
    takes = {**takes, **dict.fromkeys(described, DECLARED_MAP)}
    listed = ", ".join(f"{kind} {name}" for name, kind in takes.items())
    exact = {argument_name(parameter.name) for parameter in signature.parameters} & takes.keys()
    found: list[str] = []
    for number, parameter in enumerate(signature.parameters, 1):
        if not parameter.name:
            raise CheckFailed(
                f"parameter {number} of {entry}, `{parameter.text}`, has no name; it can take {listed}"
            )
        name = argument_name(parameter.name)
        if name not in takes:
            alike = [known for known in takes if known.lower() == name.lower() and known not in exact]
            if len(alike) != 1:
                raise CheckFailed(
                    f"{entry} has a parameter `{parameter.text}`, which is not one of these: {listed}"
                )
            name = alike[0]
        if name in found:
            raise CheckFailed(
                f"{entry} has two parameters for {name}, `{parameter.text}` is the second; it can take"
                f" {listed}"
            )
        check_type(parameter, entry, f"{takes[name]} {name}", takes[name])
        found.append(name)
    given = {described.get(name, name) for name in found}
    # What is left in a workspace a later launch takes from there.
    missing = [f"{takes[name]} {name}" for name in outputs if not given & {name, f"{name}_rows"}]
    if missing:
        has = "no parameters" if not found else f"no parameter {missing[0]}"
        raise CheckFailed(f"{entry} has {has}, so it cannot leave a result; it can take {listed}")
    return tuple(found)


def check_type(parameter: Parameter, entry: str, wanted: str, kind: str) -> None:
    """CheckFailed when a parameter is clearly not of the type it should be. Types that are not built in pass:
    nvcc's PTX tells."""

    def refuse() -> CheckFailed:
        return CheckFailed(f"{entry} has a parameter `{parameter.text}`; it should be {wanted}")

    if kind == DECLARED_MAP or parameter.base == MAP:
        if kind != DECLARED_MAP or not is_map(parameter):
            raise refuse()
        return
    pointer, expected = kind.endswith("*"), declaration(f"{kind} x").width
    if (
        parameter.reference
        or parameter.text.count("*") > 1
        or (parameter.width and parameter.pointer != pointer)
    ):
        raise refuse()
    if not parameter.width or parameter.width == expected:
        return
    if not (pointer and expected in HALVES and parameter.width in CARRIERS):
        raise refuse()


def is_map(parameter: Parameter) -> bool:
    """Whether a parameter is declared as a tensor map must be."""
    plain = not (parameter.pointer or parameter.reference)
    return plain and parameter.base == MAP and {"const", "__grid_constant__"} <= set(parameter.text.split())


def check_ptx(
    ptx: str, entry: str, names: tuple[str, ...], takes: Mapping[str, str], maps: Sequence[TensorMap] = ()
) -> None:
    """CheckFailed when the compiled kernel's parameters are not pointers, 32-bit numbers and tensor maps
    where they should be."""
    takes = {**takes, **dict.fromkeys((each.name for each in maps), DECLARED_MAP)}
    declared = re.search(rf"\.entry\s+{re.escape(entry)}\s*\((.*?)\)", ptx, re.S)
    kinds = (
        re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]\d+)[^,]*?(\[\d+\])?\s*(?:,|$)", declared[1])
        if declared
        else []
    )
    if len(kinds) != len(names):
        raise CheckFailed(
            f"{entry} has {len(kinds)} parameters, of which its source names {len(names)}: write each with"
            " its name"
        )
    for number, ((kind, array), name) in enumerate(zip(kinds, names), 1):
        takes_kind = takes[name.removesuffix("_rows")]
        wanted = ("u64", "b64", "s64") if takes_kind.endswith("*") else ("u32", "b32", "s32")
        wrong = array != f"[{MAP_BYTES}]" if takes_kind == DECLARED_MAP else array or kind not in wanted
        if wrong:
            what = "a struct" if array else f"{kind[1:]} bits of type {kind}"
            raise CheckFailed(
                f"parameter {number} of {entry}, for {name}, is {what}; it should be {takes_kind} {name}"
            )


def functions(source: str) -> list[str]:
    """Names of the `__global__` functions in a source, as far as its text shows them."""
    attribute = r"(?:__launch_bounds__|__maxnreg__)\s*\((?:[^()]|\([^()]*\))*\)"
    pattern = rf"__global__\b(?:\s|[\w:*&<>,]|{attribute})*?\b(?!__launch|__maxnreg)(\w+)\s*\("
    return list(dict.fromkeys(match[1] for match in re.finditer(pattern, blank_literals(source))))


def find_signature(
    source: str, entry: str, expand: Callable[[], str] | None = None, maps: Sequence[TensorMap] = ()
) -> Signature:
    """The definition of the kernel. expand: the source as the preprocessor leaves it, asked for where macros
    may matter. maps: of the launch; of several definitions the one that takes these is meant.

    CheckFailed when there is none, with the names of those there are.
    """
    found = definitions(source, entry)
    if len(found) > 1 and maps:
        wanted = {each.name for each in maps}
        found = [each for each in found if wanted == {p.name for p in each.parameters if is_map(p)}] or found
    if len(found) == 1 and not is_in_doubt(source, found[0]):
        return found[0]
    if expand and re.search(r"^\s*#", source, re.M):
        expanded = definitions(expand(), entry)
        found = expanded or ([] if found and len(found) > 1 else found)
    if found:
        return found[0]
    names = functions(source)
    if entry in names:
        wanted = f'extern "C" __global__ void {entry}(...) {{...}}'
        raise CheckFailed(f"no kernel found; {entry} is there, but not as {wanted}: is a bracket missing?")
    there = f"; it has {', '.join(names)}" if names else "; it has no __global__ function"
    raise CheckFailed(f'no kernel found; expected extern "C" __global__ void {entry}(...){there}')


def is_in_doubt(source: str, signature: Signature) -> bool:
    """Whether the preprocessor may change a signature."""
    macros = {"", *re.findall(r"^\s*#\s*define\s+(\w+)", blank_literals(source), re.M)}
    return "#" in signature.raw or any(parameter.name in macros for parameter in signature.parameters)
