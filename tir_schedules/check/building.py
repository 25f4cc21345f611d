"""A file of the user's, compiled: CUDA by nvcc, with the instances of templates that are asked for, or PTX as
it is, with its variables set."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Sequence

import numpy as np

from tir_schedules.check.target import (
    ENTRY,
    INSTANCE,
    Target,
    alone,
    chosen,
    demangle_name,
    instance_lines,
    instance_of,
    targets,
    type_of_parameter,
)
from tir_schedules.check.types import c_type
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.inputs import identity
from tir_schedules.compiler.nvcc import (
    CUBIN,
    FLAGS,
    PTX,
    REPORT,
    Compiled,
    binary_of,
    compile_source,
    nvcc,
    read_build,
)
from tir_schedules.compiler.signature import definitions, functions
from tir_schedules.compiler.source_text import is_ptx
from tir_schedules.compiler.toolchain import architectures, find_toolchain, number_of
from tir_schedules.errors import BadInput, CheckFailed, MissingTool, shown
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.source import Source

PTX_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.M)
NAME = re.compile(r"[\w:<>,()*&+\-/%. ]+")
NO_HEADER = re.compile(r"fatal error: (\S+): No such file|cannot open source file \"([^\"]+)\"")
OF_TOOLKIT = ("cublas", "curand")
STAND_INS = Path(__file__).parent / "headers"
"""Headers of libraries that only host code calls, which is never run."""

DEFINE = re.compile(r"([A-Za-z_]\w*(?:\([\w, .]*\))?)(?:=([^\n]*))?")


@dataclass(frozen=True)
class Compiling:
    """How a file is compiled. arch: such as "sm_80". includes: folders. defines: macros as `-D` takes them,
    NAME or NAME=VALUE."""

    arch: str = "sm_80"
    includes: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """A compiled file. kernel: its text, without a launch. instances: names that were asked for, and the
    demangled kernels that they mean."""

    kernel: Kernel
    made: Compiled
    instances: dict[str, str]

    @cached_property
    def targets(self) -> list[Target]:
        return targets(self.made.ptx, self.source)

    @property
    def source(self) -> str:
        """CUDA text; empty for PTX."""
        return "" if is_ptx(self.kernel.source) else self.kernel.source

    def target(self, asked: str) -> Target:
        """The kernel of that name, or the only one. BadInput where there is none."""
        if asked in self.instances:
            wanted = self.instances[asked]
            found = [
                one for one in self.targets if demangle_name(one.symbol) == wanted or one.symbol == wanted
            ]
            if found:
                return found[0]
        return chosen(self.targets, asked, self.source, self.kernel.file)

    def binary(self, target: Target, launched: Kernel, ptx: str = "") -> Binary:
        """One of its kernels, ready to run. launched: with its launch. ptx: in place of its own."""
        return binary_of(launched, self.made._replace(ptx=ptx or alone(self.made.ptx, target.symbol)))


def build(source: Source, instances: Sequence[str], options: Compiling) -> Built:
    """Compile a file. instances: of templates, that some launch asks for.

    CheckFailed with the lines of nvcc or ptxas where it does not compile; BadInput for an instance that its
    templates do not have, or a malformed macro; MissingTool without nvcc, or without a header that it
    includes.
    """
    for folder in options.includes:
        if not Path(folder).is_dir():
            raise BadInput(f"-I {shown(folder)} is no folder: name one that has headers")
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
            raise BadInput(f"--kernel {shown(name)} is no name of a kernel")
    whole = replace(kernel, source=kernel.source + instance_lines(asked))
    try:
        whole, made = compile_anyhow(whole)
    except CheckFailed as error:
        raise explain_error(error, kernel, asked) from None
    found = filter(None, (instance_of(demangle_name(match[1])) for match in ENTRY.finditer(made.ptx)))
    return Built(whole, made, {asked[at]: text for at, text in found})


def kernel_of(source: Source, options: Compiling) -> Kernel:
    """The text of a file with what it is compiled by, without a launch."""
    return Kernel(
        source.file or "kernel.cu", source.text, "", (), (1, 1, 1), (1, 1, 1), options.arch,
        folder=source.folder, file=source.file or "kernel.cu",
        includes=tuple(str(Path(folder).absolute()) for folder in options.includes),
        defines=tuple(map(define, options.defines)),
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
    return Declared(kernel, Compiled("\n".join(entries), b"", ""), {})


def compile_anyhow(kernel: Kernel) -> tuple[Kernel, Compiled]:
    """A file with what it compiles to; where it includes a library of the host's that is not installed, with
    headers that stand in for that."""
    try:
        return kernel, compile_source(kernel)
    except CheckFailed as error:
        header = NO_HEADER.search(str(error))
        if not header or not (STAND_INS / (header[1] or header[2])).is_file():
            raise
    again = replace(kernel, includes=(*kernel.includes, str(STAND_INS)))
    return again, compile_source(again)


def define(text: str) -> str:
    """ "NAME=VALUE" as it stands behind `#define`."""
    match = DEFINE.fullmatch(text)
    if not match:
        raise BadInput(f"-D takes NAME or NAME=VALUE, not {shown(text)}")
    return f"{match[1]} {1 if match[2] is None else match[2]}"


def explain_error(error: CheckFailed, kernel: Kernel, asked: Sequence[str]) -> Exception:
    """What nvcc says, as bad input where the user asked for what the file does not have."""
    lines = str(error).split("\n")
    header = NO_HEADER.search(str(error))
    if header:
        name = header[1] or header[2]
        own = name.startswith(OF_TOOLKIT)
        remedy = "pip install 'tir_schedules[gpu]'" if own else "name its folder by -I"
        return MissingTool(f"{kernel.file} includes {name}, which is not found: {remedy}, or leave it out")
    faults = [line.strip() for line in lines if re.search(r"\berror: ", line)]
    ours = [line for line in faults if line.startswith(INSTANCE)]
    if not ours or len(ours) < len(faults):
        return error
    number = re.match(rf"{INSTANCE}\((\d+)\): error: (.*)", ours[0])
    at = int(number[1]) - 2 if number else 0
    name = asked[at] if 0 <= at < len(asked) else asked[0]
    there = ", ".join(functions(kernel.source)) or "no __global__ function"
    reason = "" if not number or INSTANCE in number[2] else f" ({number[2]})"
    return BadInput(f"{kernel.file}: {name!r} is no instance of one of its kernels{reason}; it has {there}")


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
        report = nvcc(kernel, toolchain, folder, *FLAGS, "-Xptxas", "-v", "-cubin", PTX, "-o", CUBIN)
        (folder / REPORT).write_text(report, encoding="utf-8")

    key = "\0".join(["by ptxas", ptx, kernel.arch, *FLAGS, identity(toolchain)])
    return default_cache().load("kernel", key, make, read_build)


VARIABLE = (
    r"^([ \t]*(?:\.visible |\.extern |\.weak )*\.(?:const|global)\b[^;=\n]*?\s)({})((?:\[(\d*)\])?)[^;]*;"
)
SIZE_IN_PTX = re.compile(r"\.[bsuf](\d+)\s*$")


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
