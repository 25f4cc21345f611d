"""From CUDA to PTX without reading all of CUDA's headers again: what nvcc does, with less text.

nvcc preprocesses a source together with cuda_runtime.h and hands two megabytes to its compiler proper, cicc.
Here the headers of a source are preprocessed once and kept in the cache, as declarations and macros. Each
further kernel that includes the same is preprocessed alone, and cicc gets of the headers what it leads to
(see declarations.py). The commands are nvcc's own, as `nvcc --dryrun` tells them.

This is for the schedules and twins of this package: tests hold that their PTX is nvcc's, to the byte. That
cannot be said of other kernels, as the text is pruned by names. nvcc itself compiles those, and what is not
known here, what cicc complains about, and what it does not decide by the kernel alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Sequence

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import hash_of
from tir_schedules.compiler.declarations import Declaration, Declarations, split
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
"""How cicc marks an access of memory that it has widened beyond what is used. Of some kernels it widens one
or not, by where things lie in its own memory, which depends on the length of the text and differs from call
to call."""

CODE = hash_of("compiler/front_end.py", "compiler/declarations.py")
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


def compiled(kernel: Kernel, toolchain: Toolchain, flags: Sequence[str], folder: Path, output: str) -> bool:
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


@lru_cache(maxsize=16)
def headers_of(commands: Commands, opening: str, compilers: str) -> Headers | None:
    """What the opening lines of a source bring with them; None when they do not compile alone.

    compilers: text that differs when any part of them does.
    """
    key = "\0".join([*commands.preprocess, opening, compilers, CODE])

    def build(folder: Path) -> None:
        (folder / "k.cu").write_text(opening + "\n", encoding="utf-8")
        text = preprocessed(commands.preprocess, folder)
        (folder / HEADERS).write_text(json.dumps([stored(each) for each in split(text)]), encoding="utf-8")
        after = preprocessed((*commands.preprocess, "-dM"), folder).splitlines()
        (folder / "k.cu").write_text("")
        before = preprocessed((*without_headers(commands), "-dM"), folder).splitlines()
        (folder / MACROS).write_text(changed(before, after), encoding="utf-8")
        for name in ("k.cu", "k.ii"):
            (folder / name).unlink()

    try:
        return default_cache().load("headers", key, build, read_headers)
    except Refused:
        return None


class Refused(Exception):
    """A step of the compiler failed."""


def stored(each: Declaration) -> list:
    """A declaration as JSON has it."""
    return [each.scopes, each.line, each.file, each.text, each.declares, each.mentions, each.always]


def read_headers(folder: Path) -> Headers:
    rows = json.loads((folder / HEADERS).read_text(encoding="utf-8"))
    found = [Declaration(tuple(scopes), *rest) for scopes, *rest in rows]
    return Headers(Declarations(found), (folder / MACROS).read_text(encoding="utf-8"))


def preprocessed(command: Sequence[str], folder: Path) -> str:
    """What a command makes of k.cu in the folder."""
    run(with_values(command, {"-o": "k.ii"}), folder)
    return (folder / "k.ii").read_text(encoding="utf-8", errors="surrogateescape")


def without_headers(commands: Commands) -> list[str]:
    """The preprocessor's command for a text that includes nothing."""
    command = list(commands.preprocess)
    at = command.index("-include")
    return command[:at] + command[at + 2 :]


def changed(before: Sequence[str], after: Sequence[str]) -> str:
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
        run(with_values(alone, {"-o": "rest.ii"}), work)
        text = (work / "rest.ii").read_text(encoding="utf-8", errors="surrogateescape")
        whole = headers.declarations.needed(text) + text
        (work / PREPROCESSED).write_text(whole, encoding="utf-8", errors="surrogateescape")
        files = {
            "-o": output,
            "--orig_src_file_name": name,
            "--orig_src_path_name": str(work / name),
            "--module_id_file_name": "k.module_id",
        }
        run(with_values(commands.compile, files), work)
        if UNDETERMINED in (work / output).read_text(encoding="utf-8"):
            return False
        (work / output).replace(folder / output)
    except (Refused, OSError):
        return False
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return True


def with_values(command: Sequence[str], values: dict[str, str]) -> list[str]:
    """A command with other values for some of its options, and its input where it is written here."""
    words = [PREPROCESSED if word.endswith(PREPROCESSED) else word for word in command]
    for option, value in values.items():
        words[words.index(option) + 1] = value
    return words


def assembled(
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
        raise Refused
    return result.stdout + result.stderr
