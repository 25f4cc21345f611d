"""From a Triton kernel and its arguments to what the machines launch: Triton compiles it, for exactly these
arguments, as a launch would.

Triton makes other code for a number that 16 divides, drops one that is 1, and adds pointers to memory of its
own behind the kernel's parameters.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
import warnings
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np

from tir_schedules import processes
from tir_schedules.check.triton.functions import innermost
from tir_schedules.check.triton.library import INSTALL, the_triton
from tir_schedules.compiler.nvcc import check_launch
from tir_schedules.compiler.places import scratch
from tir_schedules.compiler.source_text import file_name, shown_name
from tir_schedules.errors import (
    BadInput,
    CheckFailed,
    MissingTool,
    TirSchedulesError,
    nearest,
    one_line,
    shown,
)
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import Dim3

Grid = Union[int, Sequence[int], Callable[[dict[str, Any]], Any]]
"""Programs along x, y and z, or what makes them of all arguments, such as a lambda over `meta`."""

SCRATCH = ("memory of Triton's own", "memory of Triton's profiler")
"""What Triton hands to a kernel behind its parameters."""

MOST_STAGES = 32
"""More tiles at a time than any kernel has."""

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug")
SCALARS = {
    "u1": np.int8, "i1": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip
"""What a number of a Triton type is handed over as."""

ARCH = re.compile(r"sm_(\d{2,3})[af]?")
FILE_DIRECTIVE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"\n]*)"', re.M)
INLINED = re.compile(r"// begin inline asm\n.*?// end inline asm", re.S)
LOC = re.compile(r"^\s*\.loc\s[^\n]*", re.M)
REPORTED = {"registers": "REG", "stack": "STACK", "shared": "SHARED"}


@dataclass(frozen=True)
class Launch:
    """A compiled kernel and its arguments, as a machine's `run` takes them.

    arguments: of the compiled kernel, by name. given: all that a launch was given, constexprs and what Triton
    compiled in among them. scratch: names of memory that Triton hands over. choice: which of the
    configurations of `@triton.autotune` it is; empty where there are none or others are asked for.
    """

    binary: Binary
    arguments: dict[str, Any] = field(repr=False)
    given: dict[str, Any] = field(repr=False)
    scratch: tuple[str, ...] = ()
    choice: str = ""

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays that it was given, in the kernel's order."""
        return tuple(name for name, value in self.given.items() if isinstance(value, np.ndarray))


class Pointer:
    """What Triton looks at of a tensor. Buffers of the machines begin at multiples of 16, as those of CUDA
    do."""

    def __init__(self, array: np.ndarray):
        self.dtype, self.shape = array.dtype.name, array.shape

    @staticmethod
    def data_ptr() -> int:
        return 0

    @staticmethod
    def ptr_range() -> int:
        return 0


def compile_triton(
    kernel: Any, grid: Grid, arguments: Mapping[str, Any], *, arch: str = CPU_ARCH, file: str = ""
) -> Launch:
    """Compile a Triton kernel for its arguments.

    arguments: by name: arrays of numpy, numbers, constexprs, and Triton's options (num_warps, num_stages,
    ...). file: what messages call the kernel's file. With `@triton.autotune` the first configuration is
    taken, except for values that are given.

    BadInput for arguments that the kernel does not take; CheckFailed when Triton does not compile it, or for
    a launch that CUDA refuses; MissingTool when there is no Triton.
    """
    triton, function = the_triton(), innermost(kernel)
    number = number_of(arch)
    arguments, choice = add_configuration(kernel, dict(arguments))
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    arguments = {k: v for k, v in arguments.items() if k not in options or k in function.arg_names}
    check_options(options)
    check_arguments(function, arguments)
    source = source_of(function, file)
    seen = {name: to_triton(value) for name, value in arguments.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*FP_FUSION")
        try:
            bound, made_of, parsed = triton.bind(function, number, seen, options)
            compiled = triton.compile(made_of, number, parsed)
        except triton.CompilationError as error:
            raise CheckFailed(complaint(error, function, source)) from None
        except TirSchedulesError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {one_line(error)}"
            raise CheckFailed(
                f"{function.__name__}: Triton does not compile it for {arch}: {what[:400]}"
            ) from None
    given = {name: arguments.get(name, value) for name, value in bound.items()}
    metadata = compiled.metadata
    blocks = extents(grid, given)
    values = {
        name: to_number(name, given[name], made_of.signature[name])
        for name in function.arg_names
        if made_of.signature[name] != "constexpr"
    }
    hidden = parameters_of(compiled.asm["ptx"]) - len(values)
    scratch_memory = own_memory(metadata, hidden, blocks)
    values |= scratch_memory
    made = Kernel(
        label=function.__name__,
        source=source.text,
        entry=metadata.name,
        params=tuple(values),
        grid=blocks,
        block=(32 * metadata.num_warps, 1, 1),
        arch=arch,
        dynamic_shared=metadata.shared,
        folder=str(Path(source.path).parent),
        file=source.file,
    )
    resources = resources_of(compiled.asm["cubin"], made)
    check_launch(made, resources)
    ptx = align_lines(name_files(compiled.asm["ptx"], source.path, made))
    binary = Binary(made, ptx, compiled.asm["cubin"], resources)
    written = tuple(name for name, value in scratch_memory.items() if isinstance(value, np.ndarray))
    return Launch(binary, values, given, written, choice)


# ---- what is given ---
def number_of(arch: str) -> int:
    match = ARCH.fullmatch(arch)
    if not match or int(match[1]) < 75:
        raise BadInput(f"{shown(arch)} is not an architecture that Triton compiles for: did you mean sm_80?")
    return int(match[1])


def check_options(options: Mapping[str, Any]) -> None:
    """BadInput for numbers of which Triton makes something else, or nothing."""
    warps, stages = options.get("num_warps"), options.get("num_stages")
    if warps is not None and (not isinstance(warps, int) or not 1 <= warps <= 32 or warps & (warps - 1)):
        raise BadInput(f"num_warps is {shown(warps)}; it can be 1, 2, 4, 8, 16 or 32")
    if stages is not None and (not isinstance(stages, int) or not 0 <= stages <= MOST_STAGES):
        raise BadInput(f"num_stages is {shown(stages)}; it can be 0 to {MOST_STAGES}")


def add_configuration(kernel: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments with those that decorators of the kernel add, and which of several configurations that
    is."""
    triton, choice = the_triton(), ""
    while not isinstance(kernel, triton.JITFunction):
        if isinstance(kernel, triton.Autotuner):
            first = first_configuration(kernel)
            if all(arguments.get(name, value) == value for name, value in first.items()):
                choice = f"configuration 1 of {len(kernel.configs)}"
            arguments = {**first, **arguments}
        else:
            for name, rule in kernel.values.items():
                if name not in arguments:
                    arguments[name] = call_rule(rule, dict(arguments), f"the heuristic of {name}")
        kernel = kernel.fn
    return arguments, choice


def first_configuration(kernel: Any) -> dict[str, Any]:
    """What the first configuration of `@triton.autotune` sets; nothing of another kernel."""
    triton = the_triton()
    while isinstance(kernel, triton.Heuristics):
        kernel = kernel.fn
    return dict(kernel.configs[0].all_kwargs()) if isinstance(kernel, triton.Autotuner) else {}


def call_rule(rule: Callable[[dict[str, Any]], Any], arguments: dict[str, Any], what: str) -> Any:
    """What a function of the user's makes of the arguments."""
    try:
        return rule(arguments)
    except Exception as error:
        missing = f": it is not given {error}" if isinstance(error, KeyError) else f" ({one_line(error)})"
        raise BadInput(f"{what} fails{missing}; give what it asks for") from None


def check_arguments(function: Any, arguments: Mapping[str, Any]) -> None:
    """BadInput where they are not those of the function's signature."""
    takes = f"{function.__name__} takes ({', '.join(spelled(one) for one in function.params)})"
    unknown = [name for name in arguments if name not in function.arg_names]
    if unknown:
        hint = nearest(unknown[0], [*function.arg_names, *OPTIONS])
        raise BadInput(f"{takes}, and no {unknown[0]}{hint}")
    missing = [one.name for one in function.params if one.name not in arguments and not one.has_default]
    if missing:
        raise BadInput(f"{takes}; {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given")
    for one in function.params:
        if one.name in arguments:
            check_value(one, arguments[one.name], takes)


def check_value(parameter: Any, value: Any, takes: str) -> None:
    """BadInput for what a parameter cannot be given. takes: how the message begins."""
    name, kinds = parameter.name, (bool, int, float, np.generic, type(None))
    if parameter.is_constexpr:
        if isinstance(value, np.ndarray):
            raise BadInput(f"{takes}; {name} is a constexpr, and an array is given")
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "c" or value.dtype.hasobject or value.dtype.names:
            raise BadInput(f"{takes}; {name} is an array of {value.dtype.name}: give integers or reals")
        if not value.flags.c_contiguous:
            raise BadInput(f"{name} is not C-contiguous: give np.ascontiguousarray({name})")
    elif not isinstance(value, kinds):
        what = "a tuple" if isinstance(value, tuple) else shown(value)
        raise BadInput(f"{takes}; {name} is {what}: give an array or a number")


def spelled(parameter: Any) -> str:
    return f"{parameter.name}: constexpr" if parameter.is_constexpr else parameter.name


def to_triton(value: Any) -> Any:
    """An argument as Triton's compiler looks at it."""
    if isinstance(value, np.ndarray):
        return Pointer(value)
    return value.item() if isinstance(value, np.generic) else value


def to_number(name: str, value: Any, kind: Any) -> Any:
    """An argument as the machines take it. kind: its type in Triton's signature."""
    if isinstance(value, np.ndarray):
        return value
    if kind not in SCALARS:
        raise BadInput(
            f"{name} is {shown(value)}, which Triton hands over as {kind}: give an array or a number"
        )
    return SCALARS[kind](value)


def extents(grid: Grid, given: dict[str, Any]) -> Dim3:
    """The grid that is launched."""
    found = call_rule(grid, dict(given), "the grid") if callable(grid) else grid
    whole = (found,) if isinstance(found, (int, np.integer)) else tuple(found)
    if not 1 <= len(whole) <= 3 or not all(isinstance(one, (int, np.integer)) for one in whole):
        raise BadInput(f"the grid is {shown(found)}; it has one to three whole numbers, such as (4, 4)")
    x, y, z = (*map(int, whole), 1, 1)[:3]
    return x, y, z


# ---- the Python file ---
@dataclass(frozen=True)
class PythonFile:
    """Where a kernel is written. path: as Python has it; file: as messages have it; text: its lines."""

    path: str
    file: str
    text: str


def source_of(function: Any, file: str) -> PythonFile:
    """The file of a function; of a notebook's cell what Python keeps of it."""
    path = function.fn.__code__.co_filename
    text = "".join(linecache.getlines(path))
    near = os.path.relpath(path) if os.path.isabs(path) and os.path.exists(path) else path
    return PythonFile(path, file or (path if near.startswith("..") else near), text)


def complaint(error: Any, function: Any, source: PythonFile) -> str:
    """What Triton's compiler says, in one line."""
    while type(error.__cause__) is type(error):
        error = error.__cause__
    line = ""
    if error.src == function.src and hasattr(error.node, "lineno"):
        line = f":{first_line(function) + error.node.lineno - 1}"
    why = error.error_message or error.__cause__ or "it does not say why"
    return f"{function.__name__}: Triton does not compile {source.file}{line}: {one_line(why)[:400]}"


def first_line(function: Any) -> int:
    """The line of its `def`, because Triton leaves decorators out of what it compiles."""
    texts, number = inspect.getsourcelines(function.fn)
    above = (at for at, text in enumerate(texts) if re.match(r"\s*def\s", text))
    return number + next(above, 0)


# ---- what Triton made ---
def own_memory(metadata: Any, parameters: int, grid: Dim3) -> dict[str, Any]:
    """What Triton hands over behind a kernel's own parameters: memory for all blocks, or null pointers."""
    sizes = (metadata.global_scratch_size, getattr(metadata, "profile_scratch_size", 0))
    return {
        name: np.zeros(prod(grid) * size, np.uint8) if size else np.uint64(0)
        for name, size in zip(SCRATCH[:parameters], sizes)
    }


def parameters_of(ptx: str) -> int:
    """How many parameters the kernel has."""
    heading = ptx[ptx.index(".entry") :]
    return heading[: heading.index(")")].count(".param")


def name_files(ptx: str, path: str, kernel: Kernel) -> str:
    """The PTX with the kernel's file named as messages name it, files beside it from there, and others by the
    last parts of their paths."""

    def renamed(directive: re.Match) -> str:
        opening, name = directive.groups()
        if os.path.realpath(name) == os.path.realpath(path) or name == path:
            return f'{opening}{file_name(kernel)}"'
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.dirname(os.path.abspath(name)) == folder:
            return f'{opening}{os.path.basename(name)}"'
        return f'{opening}{"/".join(Path(name).parts[-3:])}"'

    return FILE_DIRECTIVE.sub(renamed, ptx)


def align_lines(ptx: str) -> str:
    """The PTX with all of an inline assembly on the line of its first instruction: LLVM counts on for the
    others, and names lines that have nothing to do with it."""

    def on_first(block: re.Match) -> str:
        first = LOC.search(block[0])
        return LOC.sub(lambda _: first[0], block[0]) if first else block[0]

    return INLINED.sub(on_first, ptx)


def resources_of(cubin: bytes, kernel: Kernel) -> Resources:
    """Registers and memory of the kernel, as Triton's own cuobjdump reads them from the cubin."""
    program = the_triton().cuobjdump
    with scratch() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        try:
            result = processes.run([program, "-res-usage", str(path)])
        except OSError as error:
            raise MissingTool(f"{program} does not run ({error.strerror}): {INSTALL}") from None
    section = result.stdout.partition(f"Function {kernel.entry}:")[2]
    found = {name: re.search(rf"\b{word}:(\d+)", section) for name, word in REPORTED.items()}
    if not found["registers"]:
        raise MissingTool(f"{shown_name(kernel)}: {program} does not read what Triton compiled: {INSTALL}")
    return Resources(**{name: int(match[1]) if match else 0 for name, match in found.items()})
