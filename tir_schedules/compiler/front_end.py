"""From CUDA to PTX without reading all of CUDA's headers again: what nvcc does, with less text.

nvcc preprocesses a source together with cuda_runtime.h and hands two megabytes to its compiler proper, cicc.
Here the headers of a source are preprocessed once and kept in the cache, as declarations and macros. Each
further kernel that includes the same is preprocessed alone, and cicc gets of the headers what it leads to by
name. The commands are nvcc's own, as `nvcc --dryrun` tells them.

A kernel names a few dozen declarations of the headers. What those name in turn is kept with them, in their
order and at the lines where they stood; the rest is left out. Names are all that counts: of overloads, of a
template and its specialisations, and of operators on a type that is kept, all stay. So the compiler makes the
same of the kernel, to the byte.

This is for the schedules and twins of this package: tests hold that their PTX is nvcc's, to the byte. That
cannot be said of other kernels, as the text is pruned by names. nvcc itself compiles those. It also
compiles text that is unknown here, text that cicc complains about, and text where the kernel alone does not
decide the result.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple, Sequence

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import hash_of
from tir_schedules.compiler.inputs import environment, identity, reads_files
from tir_schedules.compiler.places import is_plain
from tir_schedules.compiler.source_text import file_name
from tir_schedules.compiler.toolchain import Toolchain, ask, toolkit_folder
from tir_schedules.model.kernel import Kernel

TVM_BEGINS = "#ifdef __CUDACC_RTC__"
"""How TVM's sources begin: with lines of their own for each compiler, among them those that include."""

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*\n", re.M)
DIRECTIVE = re.compile(r"^[ \t]*#(?![ \t]*pragma\b).*\n", re.M)
"""Not a pragma: those stand in functions only."""
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
UNKNOWN = re.compile(r"__COUNTER__|__INCLUDE_LEVEL__|push_macro|_Pragma")
"""What a text cannot have that is preprocessed apart from its headers."""

UNDETERMINED = '.pragma "used_bytes_mask'
"""How cicc marks an access of memory that it has widened beyond what is used. In some kernels it widens an
access or not, depending on addresses in its own memory, which depend on the length of the text and differ
from call to call."""

CODE = hash_of("compiler/front_end.py")
"""The code that decides what cicc gets to read."""

HEADERS, MACROS, PREPROCESSED = "declarations.json", "macros.h", "k.cpp1.ii"
SECONDS = 300

TEMPORARY = re.compile(r"^.*\btmpxft_\w+-\d+_(?=k\.)")
"""What stands before a file's name where it is nvcc's own, and is another with each call."""

PREPROCESSING = {"-include", "cuda_runtime.h", "k.cu", "-o"}
COMPILING = {"k.ptx", "--orig_src_file_name", "--orig_src_path_name", "--module_id_file_name"}
"""Words without which a command is not the one known here."""


class Commands(NamedTuple):
    """What nvcc runs for an architecture, each as words. The files are k.cu, k.cpp1.ii and k.ptx."""

    preprocess: tuple[str, ...]
    compile: tuple[str, ...]


class Headers(NamedTuple):
    """The declarations and macros of the headers that a source begins with. macros: a file's text."""

    declarations: Declarations
    macros: str


def compile_ptx(
    kernel: Kernel, toolchain: Toolchain, flags: Sequence[str], folder: Path, output: str
) -> bool:
    """Leave the kernel's PTX in the folder as nvcc would, and say so; False where nvcc is to do it."""
    if not kernel.own or os.environ.get("NVCC_CCBIN") or reads_files(kernel.source):
        return False
    end = end_of_headers(kernel.source)
    if end is None or UNKNOWN.search(kernel.source, end) or not is_plain(toolkit_folder(toolchain.nvcc)):
        return False
    commands = commands_of(toolchain.nvcc, kernel.arch, tuple(flags))
    if commands is None:
        return False
    opening = COMMENT.sub("", kernel.source[:end])
    headers = headers_of(commands, "\n".join(filter(str.strip, opening.splitlines())), identity(toolchain))
    return headers is not None and compile_rest(kernel, end, commands, headers, folder, output)


def end_of_headers(source: str) -> int | None:
    """Where in a source its headers are read. None when what comes before depends on the kernel.

    Functions of ours that have directives inside stand behind that place, as kernels do.
    """
    if source.lstrip().startswith(TVM_BEGINS):
        kernel = source.find("__global__")
        directives = [match.end() for match in DIRECTIVE.finditer(source, 0, kernel)]
        outside = [end for end in directives if source.count("{", 0, end) == source.count("}", 0, end)]
        return outside[-1] if kernel > 0 else None
    includes = [match.end() for match in INCLUDE.finditer(source)]
    end = includes[-1] if includes else 0
    return end if not INCLUDE.sub("", COMMENT.sub("", source[:end])).strip() else None


@lru_cache(maxsize=64)
def commands_of(nvcc: Path, arch: str, flags: tuple[str, ...]) -> Commands | None:
    """What nvcc runs to make PTX; None when it says so in another way than is known here."""
    told = ask(nvcc, "--dryrun", f"-arch={arch}", *flags, "-ptx", "k.cu", "-o", "k.ptx")
    lines = [line.removeprefix("#$ ") for line in told.splitlines() if line.startswith("#$ ")]
    variables = dict(re.findall(r"^#\$ (\w+)=(.*)$", told, re.M))
    steps = [shlex.split(line) for line in lines if not re.match(r"\w+=", line)]
    steps = [[TEMPORARY.sub("", word) for word in step] for step in steps]
    steps = [step for step in steps if step[0] != "ptxas"]  # for some architectures it looks over the PTX
    if len(steps) != 2 or "-E" not in steps[0] or "-o" not in steps[1]:
        return None
    steps[1][0] = steps[1][0].replace("$CICC_PATH", variables.get("CICC_PATH", "$CICC_PATH"))
    known = PREPROCESSING <= set(steps[0]) and COMPILING <= set(steps[1])
    return Commands(*map(tuple, steps)) if known else None


@lru_cache(maxsize=32)
def headers_of(commands: Commands, opening: str, compilers: str) -> Headers | None:
    """What the opening lines of a source bring with them; None when they do not compile alone.

    compilers: text that differs when any part of them does.
    """
    key = "\0".join([*commands.preprocess, opening, compilers, CODE])

    def build(folder: Path) -> None:
        (folder / "k.cu").write_text(opening + "\n", encoding="utf-8")
        text = run_preprocessor(commands.preprocess, folder)
        (folder / HEADERS).write_text(
            json.dumps([declaration_json(each) for each in split(text, commands)]),
            encoding="utf-8",
        )
        after = run_preprocessor((*commands.preprocess, "-dM"), folder).splitlines()
        (folder / "k.cu").write_text("")
        before = run_preprocessor((*without_headers(commands), "-dM"), folder).splitlines()
        (folder / MACROS).write_text(changed_macros(before, after), encoding="utf-8")
        for name in ("k.cu", "k.ii"):
            (folder / name).unlink()

    try:
        return default_cache().load("headers", key, build, read_headers)
    except Refused:
        return None


class Refused(Exception):
    """A step of the compiler failed; its text is what the step printed."""


def declaration_json(each: Declaration) -> list:
    """A declaration as JSON has it."""
    return [each.scopes, each.line, each.file, each.text, each.declares, each.mentions, each.always]


def read_headers(folder: Path) -> Headers:
    rows = json.loads((folder / HEADERS).read_text(encoding="utf-8"))
    found = [Declaration(tuple(scopes), *rest) for scopes, *rest in rows]
    return Headers(Declarations(found), (folder / MACROS).read_text(encoding="utf-8"))


def run_preprocessor(command: Sequence[str], folder: Path) -> str:
    """What a command makes of k.cu in the folder."""
    run(set_options(command, {"-o": "k.ii"}), folder)
    return (folder / "k.ii").read_text(encoding="utf-8", errors="surrogateescape")


def without_headers(commands: Commands) -> list[str]:
    """The preprocessor's command for a text that includes nothing."""
    command = list(commands.preprocess)
    at = command.index("-include")
    return command[:at] + command[at + 2 :]


def changed_macros(before: Sequence[str], after: Sequence[str]) -> str:
    """The lines that make the macros after of the macros before."""
    kept, names = set(before), {line.split()[1].partition("(")[0] for line in after}
    gone = [line.split()[1].partition("(")[0] for line in before]
    undone = [f"#undef {name}" for name in gone if name not in names]
    return "\n".join([*undone, *(line for line in after if line not in kept), ""])


def compile_rest(
    kernel: Kernel, end: int, commands: Commands, headers: Headers, folder: Path, output: str
) -> bool:
    """Compile what follows the headers in a source. False when that fails, whatever the reason."""
    name = file_name(kernel)
    work = folder / "front"
    work.mkdir()
    rest = "\n" * kernel.source.count("\n", 0, end) + kernel.source[end:]
    (work / name).write_text(rest, encoding="utf-8")
    (work / MACROS).write_text(headers.macros, encoding="utf-8")
    alone = [name if word == "k.cu" else word for word in (*without_headers(commands), "-imacros", MACROS)]
    try:
        run(set_options(alone, {"-o": "rest.ii"}), work)
        text = (work / "rest.ii").read_text(encoding="utf-8", errors="surrogateescape")
        whole = headers.declarations.needed(text) + text
        (work / PREPROCESSED).write_text(whole, encoding="utf-8", errors="surrogateescape")
        files = {
            "-o": output,
            "--orig_src_file_name": name,
            "--orig_src_path_name": str(work / name),
            "--module_id_file_name": "k.module_id",
        }
        run(set_options(commands.compile, files), work)
        if UNDETERMINED in (work / output).read_text(encoding="utf-8"):
            return False
        (work / output).replace(folder / output)
    except (Refused, OSError):
        return False
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return True


def set_options(command: Sequence[str], values: dict[str, str]) -> list[str]:
    """A command with other values for some of its options, and its input where it is written here."""
    words = [PREPROCESSED if word.endswith(PREPROCESSED) else word for word in command]
    for option, value in values.items():
        words[words.index(option) + 1] = value
    return words


def assemble(
    arch: str, toolchain: Toolchain, flags: Sequence[str], folder: Path, ptx: str, cubin: str
) -> str | None:
    """Have ptxas make a cubin of PTX in the folder, as nvcc does; its report. None where nvcc is to do it."""
    command = assembling(toolchain.nvcc, arch, tuple(flags))
    if command is None:
        return None
    words = [ptx if word == "k.ptx" else cubin if word == "k.cubin" else word for word in command]
    try:
        return run([*words, "-v"], folder)
    except Refused:
        return None


@lru_cache(maxsize=64)
def assembling(nvcc: Path, arch: str, flags: tuple[str, ...]) -> tuple[str, ...] | None:
    """What nvcc runs to make a cubin of PTX, with all that a wrapper of the user's adds; None when it is not
    one call of ptxas."""
    ptxas = toolkit_folder(nvcc) / "ptxas"
    if not (is_plain(ptxas) and ptxas.is_file()):
        return None
    told = ask(nvcc, "--dryrun", f"-arch={arch}", *flags, "-cubin", "k.ptx", "-o", "k.cubin")
    lines = [line.removeprefix("#$ ") for line in told.splitlines() if line.startswith("#$ ")]
    steps = [shlex.split(line) for line in lines if not re.match(r"\w+=", line)]
    if len(steps) != 1 or steps[0][0] != "ptxas" or not {"k.ptx", "k.cubin"} <= set(steps[0]):
        return None
    return (str(ptxas), *steps[0][1:])


def run(command: Sequence[str], folder: Path) -> str:
    """What a command prints. Refused when it fails."""
    variables = environment() | {"TMPDIR": str(folder)}
    try:
        result = processes.run(command, timeout=SECONDS, cwd=folder, env=variables)
    except (OSError, subprocess.TimeoutExpired):
        raise Refused from None
    if result.returncode:
        raise Refused(result.stdout + result.stderr)
    return result.stdout + result.stderr


MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"[ \d]*\n', re.M)
"""A line of the preprocessor: what follows stands at this line of this file."""

TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\\\s"]{0,16})\((?s:.*?)\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*\n|[{}();]',
    re.M,
)
SCOPE = re.compile(
    r'\s*(?:(?:inline\s+)?namespace\b[^;=(]*(?:\(\(.*\)\)\s*)?|extern\s*"C(?:\+\+)?"\s*)', re.S
)
WORD = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"(?:(?<![\w.])|(?<=\.\.\.))[A-Za-z_]\w*")
"""Not that of a member, which comes after a point: its class is kept as a whole."""

STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
LITERAL = re.compile(
    r'R"(?P<delimiter>[^()\\\s"]{0,16})\((?s:.*?)\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\''
)
ATTRIBUTES = re.compile(
    r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b(?:alignas|__asm__)\s*\([^()]*\)|\[\[[^][]*\]\]"
    r"|\bnoexcept\s*\((?:[^()]|\([^()]*\))*\)|\b__extension__\b"
)
CLASS = re.compile(
    r"(?:(?:extern|static|const|constexpr|inline|__inline__|typedef)\s+)*(struct|class|union|enum)\b(.*)",
    re.S,
)
AFTER_NAME = re.compile(r"<|(?<!:):(?!:)")
ARGUMENTS, COMPARISON = re.compile(r"<[^<>]*>"), re.compile(r"[<>=!]=")
BRACKETED = re.compile(r"\([^()]*\)|\{[^{}]*\}|\[[^][]*\]")
LAST_NAME = re.compile(r"((?:[A-Za-z_~]\w*\s*::\s*)*[A-Za-z_~]\w*)\s*$")
ENUMERATOR = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")
OPERATOR = re.compile(
    r"((?:[A-Za-z_]\w*\s*(?:<[^<>]*>)?\s*::\s*)*)\boperator\b([^(]*)(\((?:[^()]|\([^()]*\))*\))"
)
"""The class that has an operator, what it is called, and its parameters."""

PARAMETER = re.compile(r"(?:(?<=[\w>])(?<!\bconst)(?<!\btypename)\s+|(?<=[&*])\s*)\w+\s*(?=[,)=])")
"""The name of a parameter, which comes after its type."""

NAMESPACES = {"std", "cuda", "nvcuda", "wmma", "__gnu_cxx", "__debug", "__detail"}
"""Names that stand before others and mean nothing by themselves."""

NO_NAMES = NAMESPACES | set(
    "alignas alignof asm auto bool break case catch char class const constexpr continue decltype default"
    " delete do double else enum explicit extern false float for friend goto if inline int long mutable"
    " namespace new noexcept nullptr operator private protected public return short signed sizeof static"
    " static_assert struct switch template this throw true try typedef typename union unsigned using virtual"
    " void volatile while __attribute__ __inline__ __restrict__ __extension__ device host device_builtin"
    " cudart_builtin always_inline nothrow".split()
)


@dataclass(frozen=True)
class Declaration:
    """One declaration outside of functions and classes, or one directive.

    scopes: the namespaces and linkages around it, as they are opened. declares: the names by which others ask
    for it. mentions: all names in it. Both are separated by blanks: most are never asked for. always: whether
    it stays unasked.
    """

    scopes: tuple[str, ...]
    line: int
    file: str
    text: str
    declares: str
    mentions: str
    always: bool = False


class Declarations:
    """The declarations of a preprocessed text, in their order."""

    def __init__(self, all_of_them: Iterable[Declaration]):
        self.all = list(all_of_them)
        self.always = [number for number, declaration in enumerate(self.all) if declaration.always]
        self.by_name: dict[str, list[int]] = defaultdict(list)
        for number, declaration in enumerate(self.all):
            for name in declaration.declares.split():
                self.by_name[name].append(number)

    def needed(self, text: str) -> str:
        """The declarations that a text leads to, ready to stand before it."""
        names, kept = [*names_in(text)], set[int]()
        met = set(names)

        def keep(number: int) -> None:
            if number not in kept:
                kept.add(number)
                new = {*self.all[number].mentions.split()} - met
                met.update(new)
                names.extend(new)

        for number in self.always:
            keep(number)
        while names:
            for number in self.by_name.get(names.pop(), ()):
                keep(number)
        return "".join(declarations_text(self.all[number] for number in sorted(kept)))


def declarations_text(declarations: Iterable[Declaration]) -> Iterator[str]:
    """Declarations as text, each at its place, in its scopes."""
    opened: tuple[str, ...] = ()
    for declaration in declarations:
        if declaration.scopes != opened:
            yield "}\n" * len(opened) + "".join(f"{scope} {{\n" for scope in declaration.scopes)
            opened = declaration.scopes
        yield f'# {declaration.line} "{declaration.file}"\n{declaration.text}\n'
    yield "}\n" * len(opened)


_last: dict[object, tuple[str, list[tuple[int, Declaration]]]] = {}
"""What made a text -> the last text that it made, and its declarations with the places where they end."""


def split(text: str, made_by: object = None) -> list[Declaration]:
    """The declarations of a preprocessed text.

    made_by: what tells texts that begin alike from others, such as the commands of the preprocessor:
    cuda_runtime.h comes first in all of them. What the last of these texts had before the first difference is
    taken from there.
    """
    last, found = _last.get(made_by, ("", []))
    alike = common_length(last, text)
    found = [each for each in found if each[0] <= alike]
    start, scopes = (found[-1][0], found[-1][1].scopes) if found else (0, ())
    places = Places(text)
    found += [
        (end, declaration(text[start:end], scopes, *places(start)))
        for start, end, scopes in spans(text, start, scopes)
    ]
    _last[made_by] = text, found
    return [each for _, each in found]


def common_length(one: str, other: str) -> int:
    """The length of the text with which both begin."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def spans(
    text: str, start: int = 0, around: tuple[str, ...] = ()
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where each declaration of a preprocessed text begins and ends, and the scopes around it.

    start: where to begin, at the end of a declaration with these scopes around it.
    """
    scopes, depth = [*around], 0
    for token in TOKEN.finditer(text, start):
        first = token[0].lstrip()[0]
        end = token.end()
        if first == "#":
            if depth == 0 and not text[start : token.start()].strip():
                if "pragma" in token[0]:
                    yield token.start(), end, tuple(scopes)
                start = end
        elif first in "({":
            if first == "{" and depth == 0 and SCOPE.fullmatch(MARKER.sub("", text[start : token.start()])):
                scopes.append(MARKER.sub("", text[start : token.start()]).strip())
                start = end
            else:
                depth += 1
        elif first == "}" and depth == 0:
            if scopes:
                scopes.pop()
            start = end
        elif first in ")}":
            depth -= 1
            if first == "}" and depth == 0 and is_function(text[start:end]):
                yield start, end, tuple(scopes)
                start = end
        elif first == ";" and depth == 0:
            yield start, end, tuple(scopes)
            start = end


class Places:
    """File and line of each offset of a preprocessed text."""

    def __init__(self, text: str):
        self.text = text
        self.markers = [(m.end(), int(m[1]), m[2]) for m in MARKER.finditer(text)]
        self.ends = [end for end, _, _ in self.markers]

    def __call__(self, offset: int) -> tuple[int, str]:
        """The place of the first letter at or after the offset."""
        while self.text[offset : offset + 1].isspace():
            offset += 1
        end, line, file = self.markers[bisect_right(self.ends, offset) - 1]
        return line + self.text.count("\n", end, offset), file


def declaration(text: str, scopes: tuple[str, ...], line: int, file: str) -> Declaration:
    text = text.strip()
    return Declaration(scopes, line, file, text, *names_of(text))


@lru_cache(maxsize=None)  # sources share most of their headers
def names_of(text: str) -> tuple[str, str, bool]:
    """What a declaration declares, what it mentions, and whether it stays unasked."""
    plain = bare(text + "\n")
    if plain.startswith("#"):
        return "", "", True
    return " ".join(declared_names(plain)), " ".join(names_in(text)), False


def declared_names(text: str) -> set[str]:
    """The names by which a declaration is asked for; too many rather than too few."""
    head, brace, body = text.partition("{")
    if text.startswith(("static_assert", ";")):
        return set()
    if text.startswith("using"):
        return names_in(text.partition("=")[0])
    a_class = class_in(head)
    if a_class and (brace or "(" not in head):
        own = names_in(AFTER_NAME.split(a_class[2])[0])
        after = names_in(body.rpartition("}")[2])
        return (own | after | (set(ENUMERATOR.findall(body)) if a_class[1] == "enum" else set())) or names_in(
            text
        )
    an_operator = OPERATOR.search(head)
    if an_operator:
        owner, called, parameters = an_operator.groups()
        types = PARAMETER.sub(" ", without_arguments(parameters))
        return names_in(" ".join([without_arguments(owner), called, types])) or names_in(head)
    head = without_arguments(head)
    before, parenthesis, _ = head.partition("(")
    if text.startswith("typedef") and parenthesis:
        return names_in(head)
    if "=" in before or not parenthesis:
        return names_of_variables(text)
    function = LAST_NAME.search(before)
    return function and names_in(function[1]) or names_in(head)


def names_of_variables(text: str) -> set[str]:
    """The names of one variable or type, or of several, with the classes that have them."""
    text = without_arguments(without_repeated(BRACKETED, text))
    parts = [each.partition("=")[0].strip(" ;\n") for each in text.split(",")]
    found = [name[1] for part in parts if (name := LAST_NAME.search(part))]
    return names_in(" ".join(found) if len(found) == len(parts) else text)


@lru_cache(maxsize=None)
def is_function(text: str) -> bool:
    """Whether what ends in a brace is done: a function's body, not a class or the value of a variable."""
    head = bare(text.partition("{")[0])
    if "(" not in head or class_in(head):
        return False
    return "operator" in head or "=" not in without_arguments(head).partition("(")[0]


def class_in(head: str) -> re.Match | None:
    """The keyword of a class, and what follows it; a function that returns one ends in a parenthesis."""
    return None if head.rstrip().endswith(")") else CLASS.match(head)


def bare(text: str) -> str:
    """A declaration without places, strings, attributes and the parameters of its templates."""
    return without_template(ATTRIBUTES.sub(" ", STRING.sub('""', MARKER.sub("", text)))).strip()


def without_template(text: str) -> str:
    """A declaration without what comes before it in angle brackets: `template <...>`."""
    while True:
        opening = re.match(r"\s*template\s*<", text)
        if not opening:
            return text
        depth, end = 1, opening.end()
        while depth and end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        text = text[end:]


def without_arguments(text: str) -> str:
    """The text without what stands in angle brackets."""
    return without_repeated(ARGUMENTS, COMPARISON.sub(" ", text))


def without_repeated(pattern: re.Pattern[str], text: str) -> str:
    """The text without what a pattern matches, also where this is so only after another match has gone."""
    while True:
        less = pattern.sub(" ", text)
        if less == text:
            return text
        text = less


def names_in(text: str) -> set[str]:
    return set(NAME.findall(LITERAL.sub(" ", text))) - NO_NAMES
