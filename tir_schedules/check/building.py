"""A file of the user's, compiled: CUDA by nvcc, with the instances of templates that are asked for, or PTX as
it is, with its variables set."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Sequence

import numpy as np

from tir_schedules.check.structs import with_members
from tir_schedules.check.target import (
    ENTRY,
    INSTANCE,
    Target,
    alone,
    base,
    chosen,
    demangle_name,
    instance_lines,
    instance_of,
    targets,
    template_of,
    type_of_parameter,
)
from tir_schedules.check.types import c_type, dtype_of
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.device_code import NoDeviceCode, compile_device_code
from tir_schedules.compiler.inputs import identity
from tir_schedules.compiler.nvcc import CUBIN, PTX, REPORT, Compiled, binary_of, flags_of, nvcc, read_build
from tir_schedules.compiler.signature import definitions, functions
from tir_schedules.compiler.source_text import is_ptx
from tir_schedules.compiler.toolchain import architectures, find_toolchain, number_of
from tir_schedules.errors import BadInput, CheckFailed, MissingTool, shown
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.source import Source

PTX_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.M)
NAME = re.compile(r"[\w:<>,()*&+\-/%. ]+")
OF_TOOLKIT = ("cublas", "curand")

DEFINE = re.compile(r"([A-Za-z_]\w*(?:\([\w, .]*\))?)(?:=([^\n]*))?")


@dataclass(frozen=True)
class Compiling:
    """How a file is compiled. arch: such as "sm_80". includes: folders. defines: macros as `-D` takes them,
    NAME or NAME=VALUE. flags: further ones of nvcc. fixed: whether the architecture has to be that one; else
    a newer one is taken where the file has instructions of that."""

    arch: str = "sm_80"
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    fixed: bool = False


@dataclass(frozen=True)
class Built:
    """A compiled file. kernel: its text, without a launch. instances: names that were asked for, and the
    demangled kernels that they mean. expanded: what the user wrote, after the preprocessor; "" for PTX.
    notes: what was left out to compile it, or added."""

    kernel: Kernel
    made: Compiled
    instances: dict[str, str]
    expanded: str = field(default="", repr=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def targets(self) -> list[Target]:
        return [
            replace(one, parameters=with_members(one.parameters, self.expanded))
            for one in targets(self.made.ptx, self.expanded)
        ]

    def target(self, asked: str) -> Target:
        """The kernel of that name, or the only one. BadInput where there is none."""
        if asked in self.instances:
            wanted = self.instances[asked]
            found = [
                one for one in self.targets if demangle_name(one.symbol) == wanted or one.symbol == wanted
            ]
            if found:
                return found[0]
        try:
            return chosen(self.targets, asked, self.expanded, self.kernel.file)
        except BadInput as error:
            raise BadInput("; ".join([str(error), *self.notes])) from None

    def binary(self, target: Target, launched: Kernel, ptx: str = "") -> Binary:
        """One of its kernels, ready to run. launched: with its launch. ptx: in place of its own, with the
        variables set."""
        own = alone(self.made.ptx, target.symbol)
        if ptx in ("", own):
            return binary_of(launched, self.made._replace(ptx=own))
        return binary_of(launched, assemble(replace(self.kernel, source=ptx)))


def build(source: Source, instances: Sequence[str], options: Compiling) -> Built:
    """Compile a file. instances: of templates, that some launch asks for.

    Host code is left out where it does not compile, see compiler/device_code.py. CheckFailed with the lines
    of nvcc or ptxas where device code does not compile; BadInput for an instance that its templates do not
    have, or a macro or flag that cannot be; MissingTool without nvcc, or without a header that device code
    needs.
    """
    for folder in options.includes:
        if not Path(folder).is_dir():
            raise BadInput(f"-I {shown(folder)} is not a folder: name one that has headers")
    asked = list(dict.fromkeys(name.strip() for name in instances if "<" in name))
    kernel = kernel_of(source, options)
    if "\0" in source.text:
        raise BadInput(f"cannot read {source.file}: it is a binary file; name CUDA source or PTX text")
    if is_ptx(source.text):
        kernel = replace(kernel, arch=arch_of(source.text, options.arch))
        return Built(kernel, assemble(kernel), {})
    if source.file.endswith(".ptx"):
        raise CheckFailed(f"{source.file}: PTX begins with .version, and this text does not")
    for name in asked:
        if not NAME.fullmatch(name):
            raise BadInput(f"--kernel {shown(name)} is not the name of a kernel")
    whole = replace(kernel, source=kernel.source + instance_lines(asked))
    try:
        code = compile_device_code(whole, options.fixed)
    except CheckFailed as error:
        raise explain_error(error, kernel, asked) from None
    entries = (demangle_name(match[1]) for match in ENTRY.finditer(code.compiled.ptx))
    meant = {asked[at]: text for at, text in filter(None, map(instance_of, entries))}
    told = [f"compiled with {' '.join(of_file(source))}, as the file says"] if of_file(source) else []
    return Built(replace(whole, arch=code.arch), code.compiled, meant, code.text, (*told, *code.notes))


def kernel_of(source: Source, options: Compiling) -> Kernel:
    """The text of a file with what it is compiled by, without a launch."""
    return Kernel(
        source.file or "kernel.cu", source.text, "", (), (1, 1, 1), (1, 1, 1), options.arch,
        folder=source.folder, file=source.file or "kernel.cu",
        includes=tuple(str(Path(folder).absolute()) for folder in options.includes),
        defines=tuple(map(define, options.defines)), flags=(*flags(options.flags), *of_file(source)),
    )  # fmt: skip


class Declared(Built):
    """A file that is not compiled: its kernels as its text declares them. What compiles them is not known."""

    def binary(self, target: Target, launched: Kernel, ptx: str = "") -> Binary:
        return Binary(launched, ptx, b"", Resources(0, 0))


OPEN = re.compile(r"^[ \t]*#[ \t]*(?:if|include[ \t]*\")|__constant__|__device__[^(){};]*[\[;=]", re.M)
"""What leaves it to the compiler which kernels a file has, and variables, which arguments may be for."""


def declared(source: Source, instances: Sequence[str], options: Compiling) -> Declared | None:
    """The kernels of a file, which is not compiled. None where only the compiler knows them: of templates, of
    parameters with types of the file's own, under `#if`; and of a Python file."""
    kernel, names = kernel_of(source, options), functions(source.text)
    if is_ptx(source.text):
        return Declared(kernel, Compiled(source.text, b"", ""), {})
    if not names or OPEN.search(source.text) or not {*instances} <= {"", *names}:
        return None
    entries: list[str] = []
    for name in names:
        written = definitions(source.text, name)
        parameters = [one for found in written for one in found.parameters]
        types = [c_type(type_of_parameter(one.text, one.name)) for one in parameters]
        if len(written) != 1 or not all(one.pointer or one.format for one in types):
            return None
        kinds = ("u64" if one.pointer else one.format.replace("i", "u") for one in types)
        listed = ", ".join(f".param .{kind} {name}_param_{at}" for at, kind in enumerate(kinds))
        entries.append(f".visible .entry {name}({listed})")
    return Declared(kernel, Compiled("\n".join(entries), b"", ""), {}, source.text)


NOT_FLAGS = {
    r"-?-(arch|gpu-architecture|gencode|generate-code|code)(=.*)?": "say --arch",
    r"-I.*|-?-include-path(=.*)?": "say -I FOLDER",
    r"-D|-?-define-macro(=.*)?": "say -D NAME=VALUE",
    r"-o|-c|-E|-ptx|-cubin|-fatbin|-M\w*|-run|-link|-lib|-dc|-dlink|-rdc.*|-?-dryrun|-?-keep.*|-?-clean.*"
    r"|-?-output.*|-?-compile|-?-preprocess|-?-run|-?-device-(c|link)|-?-relocatable.*|-?-shared|-?-cuda"
    r"|-?-(x|options-file|help|version|optix-ir|list-gpu-.*)|-h|-V": "check decides what nvcc makes",
}  # fmt: skip
"""Words that `--nvcc` does not take, and what to do instead."""

LIBRARIES = re.compile(r"-l\w+|-L.*")
"""What is linked to host code, which is never run."""


def flags(given: Sequence[str]) -> tuple[str, ...]:
    """Flags for nvcc, one a word. BadInput for what is none, or would make nvcc do something else."""
    try:
        words = [word for text in given for word in shlex.split(text)]
    except ValueError as error:
        raise BadInput(f"--nvcc {shown(' '.join(given))}: {error}") from None
    for word in words:
        if not word.startswith("-") and not (words.index(word) and words[words.index(word) - 1][0] == "-"):
            raise BadInput(f"--nvcc takes flags such as --use_fast_math, not {shown(word)}")
        for pattern, instead in NOT_FLAGS.items():
            if re.fullmatch(pattern, word):
                raise BadInput(f"--nvcc {shown(word)}: {instead}")
    return tuple(word for word in words if not LIBRARIES.fullmatch(word))


def of_file(source: Source) -> tuple[str, ...]:
    """The flags that a Python file passes with its CUDA, without those that `--nvcc` does not take."""
    patterns = (*NOT_FLAGS, LIBRARIES.pattern, r"(?!-).*")
    return tuple(word for word in source.flags if not any(re.fullmatch(one, word) for one in patterns))


def define(text: str) -> str:
    """ "NAME=VALUE" as it stands behind `#define`."""
    match = DEFINE.fullmatch(text)
    if not match:
        raise BadInput(f"-D takes NAME or NAME=VALUE, not {shown(text)}")
    return f"{match[1]} {1 if match[2] is None else match[2]}"


def explain_error(error: CheckFailed, kernel: Kernel, asked: Sequence[str]) -> Exception:
    """What nvcc says, as bad input where the user asked for what the file does not have."""
    lines = str(error).split("\n")
    faults = [line.strip() for line in lines if re.search(r"\berror: |left out: ", line)]
    ours = [line for line in faults if line.startswith(INSTANCE)]
    constants = next(filter(None, map(CONSTANT.search, faults)), None)
    if constants:
        return CheckFailed(f"{error}\n  {constants[1]} is one of CUDA's math_constants.h: include that")
    if not ours or len(ours) < len(faults):
        if isinstance(error, NoDeviceCode) and error.missing and any(map(UNKNOWN_NAME.search, faults)):
            names = ", ".join(error.missing)
            are = "which is not found" if len(error.missing) == 1 else "which are not found"
            needs = f"; without {'it' if len(error.missing) == 1 else 'them'}: {faults[0]}" if faults else ""
            remedy = remedy_for(error.missing, Path(kernel.folder or "."))
            return MissingTool(f"{kernel.file} includes {names}, {are}: {remedy}{needs}")
        return error
    number = re.match(rf"{INSTANCE}\((\d+)\): error: (.*)", ours[0])
    at = int(number[1]) - 2 if number else 0
    name = asked[at] if 0 <= at < len(asked) else asked[0]
    there = ", ".join(functions(kernel.source)) or "no __global__ function in the file itself"
    reason = "" if not number or INSTANCE in number[2] else f" ({number[2]})"
    takes = template_of(kernel.source, base(name))
    if takes:
        return BadInput(
            f"{kernel.file}: {name!r} is not an instance of {base(name)}, which takes <{takes}>{reason}"
        )
    return BadInput(
        f"{kernel.file}: {name!r} is not an instance of one of its kernels{reason}; it has {there}"
    )


UNKNOWN_NAME = re.compile(
    r"undefined|incomplete type|not a (?:template|class)|no member|storage class|left out"
)
"""In an error of nvcc: a header may be the reason."""

CONSTANT = re.compile(r'identifier "(CUDART_\w+)" is undefined')
"""A name of a header of CUDA itself, so that no header that is missing is to blame."""

SEARCHED_ABOVE, SEARCHED_FOLDERS = 4, 2000
"""How far a header is looked for: folders above a file, and folders in all."""


def remedy_for(headers: Sequence[str], folder: Path) -> str:
    """What to do about headers that are not found: the folders to name, where they lie near the file."""
    near = dict.fromkeys(found for name in headers if (found := folder_with(name, folder)))
    if near:
        return "say " + " ".join(f"-I {shlex.quote(os.path.relpath(path))}" for path in near)
    own = any(name.startswith(OF_TOOLKIT) for name in headers)
    return "pip install 'tir_schedules[gpu]'" if own else "name the folder by -I"


def folder_with(header: str, folder: Path) -> Path | None:
    """The folder from which a header is found, in or below the folders above a file's; None where there is
    none near."""
    seen = 0
    above = [folder.absolute(), *folder.absolute().parents][: SEARCHED_ABOVE + 1]
    for root in above[:-1] if len(above) > 1 and above[-1] == Path("/") else above:
        for place, folders, _ in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            seen += 1
            if (Path(place) / header).is_file():
                return Path(place)
            if seen > SEARCHED_FOLDERS:
                return None
    return None


def arch_of(ptx: str, asked: str) -> str:
    """The architecture that PTX is for; the one asked for where it names none, or one too old for nvcc, as
    PTX goes for newer ones too."""
    target = PTX_TARGET.search(ptx)
    old = target and number_of(target[1]) < number_of(architectures()[0])
    return target[1] if target and not old else asked


def assemble(kernel: Kernel) -> Compiled:
    """PTX with its cubin and resources. CheckFailed with the lines of ptxas where it refuses the PTX."""
    toolchain, ptx = find_toolchain(), kernel.source

    def make(folder: Path) -> None:
        (folder / PTX).write_text(ptx, encoding="utf-8")
        report = nvcc(
            kernel, toolchain, folder, *flags_of(kernel), "-Xptxas", "-v", "-cubin", PTX, "-o", CUBIN
        )
        (folder / REPORT).write_text(report, encoding="utf-8")

    key = "\0".join(["by ptxas", ptx, kernel.arch, *flags_of(kernel), identity(toolchain)])
    return default_cache().load("kernel", key, make, read_build)


VARIABLE = (
    r"^([ \t]*(?:\.visible |\.extern |\.weak )*\.(?:const|global)\b[^;=\n]*?\s)({})((?:\[(\d*)\])?)[^;]*;"
)
SIZE_IN_PTX = re.compile(r"\.[bsuf](\d+)\s*$")


def variable_in(ptx: str, name: str) -> re.Match[str] | None:
    """The declaration of a `__constant__` or `__device__` variable."""
    return re.search(VARIABLE.format(re.escape(name)), ptx, re.M)


def variable_form(built: Built, name: str) -> str:
    """How a variable is given as an argument, such as "i32[1]"."""
    match = variable_in(built.made.ptx, name)
    assert match is not None, name
    element = SIZE_IN_PTX.search(match[1])
    size = (int(element[1]) // 8 if element else 1) * int(match[4] or 1)
    written = re.search(rf"__(?:device|constant)__([\w\s]*?)\b{re.escape(name)}\b", built.expanded)
    words = re.sub(r"__\w+__|\bstatic\b|\bvolatile\b", " ", written[1] if written else "")
    format = c_type(words).format or "u8"
    return f"{format}[{size // dtype_of(format).itemsize}]"


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
