"""From a request to kernels ready to run with their arguments: what `check` runs, and what `inspect` and the
like can take."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import groupby
from numbers import Real
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

import numpy as np

from tir_schedules.check.arguments import IN, OUT, Argument, Given, make_argument, seed_of
from tir_schedules.check.building import (
    Built,
    Compiling,
    build,
    declared,
    kernel_of,
    set_variable,
    variable_form,
    variable_in,
)
from tir_schedules.check.expecting import WORD, Expected
from tir_schedules.check.expressions import Asked, number
from tir_schedules.check.functions import FUNCTIONS
from tir_schedules.check.maps import FORM, make_map, map_in, takes_map
from tir_schedules.check.structs import ACCESSOR, accessor_members, other_names
from tir_schedules.check.target import Parameter, Target, alone, arithmetic_of, has_effect
from tir_schedules.check.trials import Question, Trial, Trials, finite_trials, special_trials
from tir_schedules.check.types import FLOATS, Arithmetic, dtype_of, fits, format_of
from tir_schedules.check.usual import Usual, set_tolerance, usual_trials
from tir_schedules.check.words import name_parameters
from tir_schedules.compiler.signature import MAP
from tir_schedules.errors import BadInput, CheckFailed, nearest, shown
from tir_schedules.machines.cpu.context import WORKSPACE_WORDS
from tir_schedules.model.attributes import check_block
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Struct, TensorMap, check_grid
from tir_schedules.model.machine import Machine
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome

MOST_THREADS = 1 << 28
"""Most threads of a launch: some minutes of the CPU machine."""

COOPERATIVE = re.compile(rf"%({'|'.join(WORKSPACE_WORDS)})\b")
"""Where `grid.sync()` finds the workspace that a cooperative launch lends. Other launches lend none, and it
traps (CUDA's `cooperative_groups.h`)."""

DEFAULT_SHARED = 48 << 10
"""Bytes of shared memory that CUDA gives a block of a kernel whose attribute is not set."""


@dataclass(frozen=True)
class Request:
    """What is checked. launches: in order. arguments: as they are written, or made already, by name. expect:
    what outputs should be; usual: or a workload of the ladders that says so. tolerance: see `truth_of`.
    finite: whether to leave out NaN, infinity and the like.
    triton: of a Python file: constexprs, and what Triton is asked for, such as num_warps. place: where in a
    file it is asked for, such as "my.cu:12"; "" for a command. named_by: the option that names its kernel."""

    source: Source
    launches: tuple[Asked, ...]
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    given: tuple[Given, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    expect: tuple[Expected, ...] = ()
    usual: Usual | None = None
    tolerance: float | None = None
    options: Compiling = Compiling()
    seed: int = 0
    finite: bool = False
    triton: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    named_by: str = "--kernel"

    def locate_error(self, error: BadInput) -> BadInput:
        """An error with the file and line where it is asked for, if that is in a file, and with the option
        that names this kernel."""
        text = str(error).replace("--kernel", self.named_by)
        return BadInput(f"{self.place}: {text}" if self.place else text)


@dataclass(frozen=True)
class Step:
    """One launch, ready to run. values: what each of the kernel's parameters is given, by the names in
    `binary.kernel.params`, except for arrays, which are in the trial. read: where the source launches it."""

    target: Target
    binary: Binary
    bounds: tuple[Bound, ...]
    values: Mapping[str, Any]
    read: str = ""

    def outputs(self, trial: Trial) -> list[str]:
        """Names of arrays that the kernel may write, as far as its parameters and the user tell."""
        described = {one.name: one.of for one in self.binary.kernel.maps}
        names = [
            described.get(name, name)
            for one, name in zip(self.bounds, self.binary.kernel.params)
            if name not in self.values and (name in described or not one.parameter.type.const)
        ]
        return [name for name in dict.fromkeys(names) if trial.arguments[name].role != IN]


@dataclass(frozen=True)
class Prepared:
    """A request ready to run. adjust: what its outcome becomes, of a compiler that has faults of its own.
    notes: what was left out to compile it, and the like."""

    request: Request
    label: str
    steps: tuple[Step, ...]
    trials: Trials
    adjust: Callable[[Outcome, Machine], Outcome] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()


def prepare(request: Request, built: Built | None = None) -> Prepared:
    """Kernels compiled and their arguments made. built: the file, where it has been compiled already.

    BadInput for what is asked for and cannot be; CheckFailed where the file does not compile or CUDA would
    refuse a launch.
    """
    tolerance = request.tolerance
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and 0 <= tolerance < float("inf")):
        told = tolerance if is_number else shown(str(tolerance))
        raise BadInput(f"--tolerance is {told}; it takes a number from 0 on, such as 1e-3")
    built = built or build(request.source, [asked.kernel for asked in request.launches], request.options)
    chosen = [built.target(asked.kernel) for asked in request.launches]
    every = [one for target in chosen for one in target.parameters]
    named = (each.name for one in every for each in (one, *(one.members or ())))
    request = name_parameters(request, named, other_names(every))
    request = sizes_in_source(request, chosen)
    make = trials_of_ladder if request.usual else trials_of_arguments
    ready = make(request, built, chosen)
    steps = tuple(
        step(built, target, asked, bounds, ready)
        for target, asked, bounds in zip(chosen, request.launches, ready.bounds)
    )
    check_outputs(steps, ready.trials.runs[0])
    label = ", ".join(dict.fromkeys(target.shown for target in chosen))
    idle = [one.shown for one in chosen if not has_effect(built.made.ptx, one.symbol)]
    told = [
        f"{name} as compiled reads and writes no memory: nvcc leaves out what has no effect, such as stores"
        " to shared memory that nothing reads"
        for name in dict.fromkeys(idle)
    ]
    return Prepared(request, label, steps, ready.trials, notes=(*built.notes, *told))


def check_plan(request: Request) -> None:
    """BadInput and CheckFailed as `prepare` raises them, as far as the text of a file tells without a
    compiler: of its launches, and where its kernels are known also of arguments and expected values."""
    for asked in request.launches:
        label = asked.kernel or request.source.file
        check_launch(label, asked)
        check_block(replace(kernel_of(request.source, request.options), label=label, block=asked.block))
    built = declared(request.source, [asked.kernel for asked in request.launches], request.options)
    if built:
        tolerance = request.tolerance if request.tolerance is not None else 0.0
        prepare(replace(request, tolerance=tolerance, finite=True), built)  # with one set of inputs


def check_outputs(steps: Sequence[Step], trial: Trial) -> None:
    """BadInput for an array in which nothing is, and which no launch may write before one reads it."""
    stored: set[str] = set()
    for one in steps:
        outputs = one.outputs(trial)
        for at, name in zip(one.bounds, one.binary.kernel.params):
            empty = name in trial.arguments and trial.arguments[name].role == OUT
            if empty and name not in outputs and name not in stored:
                raise BadInput(
                    f"`{at.parameter.text}` of {one.target.signature} is an input, and :out says that nothing"
                    f" is in {name}: leave it out"
                )
        stored.update(outputs)


class Ready(NamedTuple):
    """bounds: of each launch. arguments: by name. variables: of the file, that are set. trials: what it is
    run on."""

    bounds: list[list[Bound]]
    arguments: dict[str, Argument]
    variables: dict[str, Argument]
    trials: Trials


def trials_of_ladder(request: Request, built: Built, chosen: Sequence[Target]) -> Ready:
    """What a ladder gives a kernel."""
    assert request.usual is not None
    if len(chosen) != 1 or request.launches[0].arguments is not None:
        raise BadInput(
            "--as is for one launch, by --kernel, --grid and --block: else say what is right by --expect"
        )
    target = chosen[0]
    arithmetic = arithmetic_of([alone(built.made.ptx, target.symbol)])
    numbers, drawn = usual_trials(
        request.usual, target, request.launches[0], request.given, request.sizes, arithmetic
    )
    drawn = set_tolerance(drawn, request.tolerance)
    trials = Trials(tuple(Trial(arrays, truths, kind) for kind, arrays, truths in drawn))
    arguments = {**numbers, **trials.runs[0].arguments}
    bounds = []
    for parameter in target.parameters:
        if parameter.name not in arguments and parameter.name in request.sizes:
            arguments[parameter.name] = Argument(request.sizes[parameter.name])
        bounds.append(Bound(parameter, parameter.name))
    check_unused(request, arguments, [bounds], chosen)
    return Ready([bounds], arguments, {}, trials)


def trials_of_arguments(request: Request, built: Built, chosen: Sequence[Target]) -> Ready:
    """What the user gives, and what outputs should be."""
    bounds, found = all_bound(request, chosen)
    check_variables(request, built, found)
    variables = {
        name: found.pop(name)
        for name in [*found]
        if not used(name, bounds) and variable_in(built.made.ptx, name) is not None
    }
    check_unused(request, found, bounds, chosen)
    arrays = {name: argument for name, argument in found.items() if argument.array is not None}
    by_value = {
        one.name
        for many in bounds
        for one in many
        if one.parameter.type.pointer is False and not ACCESSOR.fullmatch(one.parameter.type.text)
    }
    given = {**found, **variables}
    arithmetic = arithmetic_of(alone(built.made.ptx, target.symbol) for target in chosen)
    trials = all_trials(question_of(request, given, arrays, arithmetic, by_value), arrays)
    return Ready(bounds, found, variables, trials)


def check_variables(request: Request, built: Built, found: Mapping[str, Argument]) -> None:
    """BadInput for a variable of the file that is expected, or in what is expected, and is not given."""
    texts = [one.value for one in request.expect if isinstance(one.value, str)]
    outputs = [one.output for one in request.expect]
    words = outputs + [word for text in texts for word in WORD.findall(text)]
    for name in dict.fromkeys(words):
        known = name in found or name in request.sizes or name in FUNCTIONS
        if not known and variable_in(built.made.ptx, name) is not None:
            form = variable_form(built, name)
            start = ":zeros" if name in outputs else ""
            raise BadInput(f"{name} is a variable of the file: say --arg '{name}={form}{start}'")


def sizes_in_source(request: Request, chosen: Sequence[Target]) -> Request:
    """A request in which numbers that the source passes its kernels are sizes by the parameters' names, where
    the user gives none of that name."""
    found: dict[str, set[int | float]] = {}
    for target, asked in zip(chosen, request.launches):
        for one, text in zip(target.parameters, asked.values):
            if text and not text.isidentifier() and not one.type.pointer:
                found.setdefault(one.name, set()).add(number(text, {}, "the launch"))
    given = {one.name for one in request.given} | request.arguments.keys()
    sizes = {name: values.pop() for name, values in found.items() if len(values) == 1 and name not in given}
    return replace(request, sizes={**sizes, **request.sizes})


def question_of(
    request: Request,
    given: Mapping[str, Argument],
    arrays: Mapping[str, Argument],
    arithmetic: Arithmetic,
    fixed: Iterable[str] = (),
) -> Question:
    """What a request asks of a kernel. given: all that expressions may name."""
    others = {
        name: one.value
        for name, one in given.items()
        if name not in arrays and one.value is not None and not isinstance(one.value, TensorMap)
    }
    return Question(
        request.expect, {**request.sizes, **others}, request.tolerance, arithmetic, request.seed,
        frozenset(fixed), request.finite,
    )  # fmt: skip


def all_trials(question: Question, arrays: Mapping[str, Argument]) -> Trials:
    """What a kernel is run on."""
    found = finite_trials(question, arrays)
    if question.finite:
        return found
    return replace(found, runs=(*found.runs, *special_trials(question, found.runs)))


def all_bound(request: Request, chosen: Sequence[Target]) -> tuple[list[list[Bound]], dict[str, Argument]]:
    """Parameters and arguments of every launch. Arrays whose format is left out have that of the first
    pointer that takes them."""
    known = {one.name for one in request.given if one.name} | set(request.arguments)
    given = [*request.given, *(Given(name, "") for name in request.arguments)]
    bounds = []
    for target, asked in zip(chosen, request.launches):
        if asked.arguments is None:
            bounds.append(bound(target, given, request.sizes, asked.values))
        else:
            bounds.append(arguments_of_launch(target, asked.arguments, known, scalars(request)))
    formats: dict[str, str] = {}
    for one in (each for many in bounds for each in many):
        if one.name and (one.parameter.type.pointer is not False or one.parameter.count):
            formats.setdefault(one.name, one.parameter.type.format or one.parameter.type.elements)
    found = dict(request.arguments)
    folder = Path(request.source.folder or ".")
    maps = [one for one in request.given if one.name and map_in(one, known)]
    for at, one in enumerate(request.given):
        name = one.name or f"#{at}"
        seed = seed_of(name, request.seed)
        if one not in maps:
            found[name] = make_argument(one, {**request.sizes}, formats.get(name, ""), folder, seed)
    for one in maps:
        found[one.name] = make_map(one, found, request.sizes)
    return rename_by_place(bounds, found)


def scalars(request: Request) -> dict[str, Any]:
    """Sizes, and the numbers among arguments that are made already."""
    values = {
        name: one.value
        for name, one in request.arguments.items()
        if one.array is None and one.value is not None
    }
    return {**request.sizes, **values}


def rename_by_place(
    bounds: list[list[Bound]], found: dict[str, Argument]
) -> tuple[list[list[Bound]], dict[str, Argument]]:
    """Arguments that go by their place get the names of the parameters they go to."""
    names = {one.name: one.parameter.name for many in bounds for one in many if one.name.startswith("#")}
    renamed = [[replace(one, name=names.get(one.name, one.name)) for one in many] for many in bounds]
    return renamed, {names.get(name, name): argument for name, argument in found.items()}


def used(name: str, bounds: Sequence[Sequence[Bound]]) -> bool:
    return any(one.name == name for many in bounds for one in many)


def check_unused(
    request: Request,
    found: Mapping[str, Argument],
    bounds: Sequence[Sequence[Bound]],
    chosen: Sequence[Target],
) -> None:
    """BadInput for an argument that nothing takes."""
    spoken = {
        word for one in request.expect if isinstance(one.value, str) for word in WORD.findall(one.value)
    }
    spoken |= {one.value.of for one in found.values() if isinstance(one.value, TensorMap)}
    for name in found:
        if not used(name, bounds) and name not in spoken:
            signatures = "; ".join(dict.fromkeys(target.signature for target in chosen))
            raise BadInput(f"nothing takes the argument {name!r}: {signatures}")


def step(built: Built, target: Target, asked: Asked, bounds: Sequence[Bound], ready: Ready) -> Step:
    """A launch with its kernel compiled and its numbers in their formats."""
    params, values, maps = [], {}, []
    bounds = [each for one in bounds for each in with_extents(one, ready)]
    for at, one in enumerate(bounds):
        argument = ready.arguments[one.name] if one.name else Argument(one.value)
        value = value_for(one.parameter, argument, target)
        if isinstance(value, np.ndarray):
            params.append(one.name)
        elif isinstance(value, TensorMap):
            params.append(one.parameter.name)
            maps.append(replace(value, name=one.parameter.name))
        else:
            params.append(f"{one.parameter.name}@{at}")
            values[params[-1]] = value
    check_launch(target.shown, asked)
    kernel = replace(
        built.kernel, label=target.shown, entry=target.symbol, params=tuple(params), grid=asked.grid,
        block=asked.block, dynamic_shared=asked.shared, maps=tuple(maps), structs=structs_of(bounds),
    )  # fmt: skip
    ptx = alone(built.made.ptx, target.symbol)
    for name, argument in ready.variables.items():
        if argument.array is None:
            raise BadInput(f"--arg {name}= is for a variable: give an array, such as f32[1]:{argument.text}")
        ptx = set_variable(ptx, name, argument.array)
    binary = built.binary(target, kernel, ptx)
    if not asked.raised and asked.shared + binary.resources.shared > DEFAULT_SHARED:
        raise CheckFailed(
            f"{target.shown}: {asked.shared} bytes of dynamic shared memory; CUDA refuses more than"
            f" {DEFAULT_SHARED - binary.resources.shared} unless host code calls cudaFuncSetAttribute(kernel,"
            f" cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), and no line of {built.kernel.file} does"
        )
    if not asked.cooperative and COOPERATIVE.search(ptx):
        raise CheckFailed(
            f"{target.shown}: it synchronizes the grid, and {built.kernel.file} launches it as <<<>>> does:"
            " grid.sync() ends such a kernel. Call cudaLaunchCooperativeKernel"
        )
    return Step(target, binary, tuple(bounds), values, asked.read)


def with_extents(one: Bound, ready: Ready) -> list[Bound]:
    """A parameter, and of PyTorch's accessor for an array what its members are given."""
    array = ready.arguments[one.name].array if one.name in ready.arguments else None
    members = accessor_members(one.parameter, array.shape) if array is not None else None
    if members is None:
        return [one]
    return [Bound(each, one.name if number is None else "", number) for each, number in members]


def structs_of(bounds: Sequence[Bound]) -> tuple[Struct, ...]:
    """The structs whose members are given."""
    found = []
    for of, several in groupby(enumerate(bounds), lambda one: one[1].parameter.of):
        members = list(several)
        if of:
            first, one = members[0]
            offsets = tuple(each.parameter.offset for _, each in members)
            found.append(Struct(first, offsets, one.parameter.whole))
    return tuple(found)


def check_launch(label: str, asked: Asked) -> None:
    """BadInput for a grid that CUDA does not have, or that takes too long."""
    check_grid(label, asked.grid)
    blocks, threads = int(np.prod(asked.grid)), int(np.prod(asked.block))
    if blocks * threads > MOST_THREADS:
        raise BadInput(
            f"{label}: a grid of {blocks} blocks of {threads} threads is too large; {MOST_THREADS}"
            " threads are the most that are executed: take smaller sizes"
        )


# ---- which argument goes to which parameter, and whether it can ---
@dataclass(frozen=True)
class Bound:
    """What a parameter takes: the name of an argument, or a number in place."""

    parameter: Parameter
    name: str
    value: Any = None


def bound(
    target: Target, given: Sequence[Given], sizes: Mapping[str, Any], values: Sequence[str] = ()
) -> list[Bound]:
    """Arguments by the parameters' names, numbers of `--let` by theirs, the rest by their place, or as the
    source's own launch has them. values: of Asked.

    BadInput, with the signature, where a parameter is left without one or one without a parameter.
    """
    named = {one.name for one in given if one.name}
    placed = [at for at, one in enumerate(given) if not one.name]
    told = [sourced(one, text, named) for one, text in zip(target.parameters, values)]
    told = told if len(told) == len(target.parameters) else [None] * len(target.parameters)
    every = [
        pair
        for one, other in zip(target.parameters, told)
        for pair in [(each, None) for each in given_apart(one, named)] or [(one, other)]
    ]
    found: list[Bound] = []
    missing: list[Parameter] = []
    for parameter, other in every:
        left = len(every) - len(found) - len(missing)
        if parameter.name in named:
            found.append(Bound(parameter, parameter.name))
        elif parameter.name in sizes and not parameter.type.pointer:
            found.append(Bound(parameter, "", sizes[parameter.name]))
        elif other and len(placed) < left:
            found.append(other)
        elif placed:
            found.append(Bound(parameter, f"#{placed.pop(0)}"))
        elif parameter.members == ():
            found.append(Bound(parameter, "", 0))
        else:
            check_pointers(parameter, target)
            missing.append(parameter)
    if missing:
        texts = [f"`{one.text}`{f' ({one.unknown})' if one.unknown else ''}" for one in missing]
        them = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
        forms = " ".join(f"--arg '{form_of(one)}'" for one in missing)
        raise BadInput(f"nothing is given for {them} of {target.signature}: say {forms}")
    if placed:
        raise BadInput(
            f"{target.signature} takes {len(target.parameters)} arguments; {len(placed)} are too many"
        )
    return found


def form_of(parameter: Parameter) -> str:
    """What `--arg` may give a parameter, such as "n=1"."""
    if takes_map(parameter.type.text, parameter.bytes):
        return f"{parameter.name}=A[64,64] swizzle 128' of an --arg 'A=f32[M,N]"
    if dimensions := ACCESSOR.fullmatch(parameter.type.text):
        return f"{parameter.name}=f32[{', '.join('NMKLIJ'[: int(dimensions[2])])}]"
    if parameter.count:
        return f"{parameter.name}={parameter.type.format or parameter.type.elements}[{parameter.count}]"
    if parameter.by_value and not parameter.type.format:
        return f"{parameter.name}=u8[{parameter.bytes}]"
    return f"{parameter.name}={'1' if parameter.type.pointer is False else an_array(parameter)}"


def an_array(parameter: Parameter) -> str:
    """An array that a pointer may be given, such as "i32[N]"."""
    return f"{parameter.type.format or parameter.type.elements or 'f32'}[N]"


def check_pointers(parameter: Parameter, target: Target) -> None:
    """BadInput for a struct with pointers whose members cannot be given."""
    if parameter.has_pointers:
        raise BadInput(
            f"`{parameter.text}` of {target.signature} has pointers, which cannot be given as bytes, and"
            f" {parameter.unknown}: let the kernel take it as a parameter of its own"
        )


def given_apart(parameter: Parameter, named: set[str]) -> tuple[Parameter, ...]:
    """The members of a struct, where they are known and the struct is not given as bytes."""
    return parameter.members or () if parameter.name not in named else ()


def sourced(parameter: Parameter, text: str, named: set[str]) -> Bound | None:
    """What the source's own launch gives a parameter, if the user gives an array of that name, or it is a
    number."""
    if parameter.type.pointer:
        return Bound(parameter, text) if text in named else None
    return Bound(parameter, "", number(text, {}, "the launch")) if text and not text.isidentifier() else None


def arguments_of_launch(
    target: Target, texts: Sequence[str], known: set[str], sizes: Mapping[str, Any]
) -> list[Bound]:
    """Arguments as `--launch` has them: names of what `--arg` gives, or numbers."""
    if len(texts) != len(target.parameters):
        raise BadInput(
            f"--launch gives {len(texts)} arguments; {target.signature} takes {len(target.parameters)}"
        )
    found = []
    for parameter, text in zip(target.parameters, texts):
        if text in known:
            found.append(Bound(parameter, text))
        elif text in ("null", "nullptr"):
            found.append(Bound(parameter, "", 0))
        elif parameter.type.pointer and text.isidentifier():
            raise BadInput(
                f"--launch: there is no argument {text!r}{nearest(text, known)} for `{parameter.text}` of"
                f" {target.signature}: say --arg '{text}={an_array(parameter)}'"
            )
        else:
            found.append(Bound(parameter, "", number(text, sizes, f"--launch, {parameter.name} =")))
    return found


def value_for(parameter: Parameter, argument: Argument, target: Target) -> Any:
    """What a machine is given for a parameter: an array, a number of its type, or bytes. BadInput, with the
    signature, for a value of another type."""

    def refused(what: str) -> BadInput:
        short = replace(parameter, members=None)
        return BadInput(f"`{short.text}` of {target.signature} {what}")

    array, type_ = argument.array, parameter.type
    if isinstance(argument.value, TensorMap):
        if not takes_map(type_.text, parameter.bytes):
            raise refused(f"is not a tensor map; {shown(argument.text)} is given")
        return argument.value
    if MAP in type_.text:
        raise refused(f"is a tensor map; {shown(argument.text)} is given: say one {FORM}")
    in_bytes = parameter.by_value and array is not None and array.dtype == np.uint8 and array.nbytes == 8
    has_array = type_.pointer is None and not in_bytes and (array is not None or argument.value is None)
    if type_.pointer or has_array:
        if parameter.bytes != 8:
            raise refused(f"has {parameter.bytes} bytes, not those of a pointer")
        if type_.depth > 1 and array is not None and "(" not in type_.text:
            raise refused("points to pointers, which cannot be given")
        if argument.value is None or (array is None and argument.value == 0):
            return np.uint64(0)
        if array is None:
            raise refused(
                f"is a pointer; {shown(argument.value)} is given: say an array such as"
                f" {an_array(parameter)}, or null"
            )
        if not fits(type_, format_of(array.dtype)):
            raise refused(f"points to {type_.format}; an array of {format_of(array.dtype)} is given")
        return array
    if parameter.members == () and argument.value == 0:
        return np.void(bytes(parameter.bytes))
    if parameter.count:
        format = type_.format or type_.elements
        if (
            array is None
            or array.size != parameter.count
            or not fits(replace(type_, format=format), format_of(array.dtype))
        ):
            raise refused(f"is an array: give {format}[{parameter.count}]")
        return np.void(array.tobytes())
    if array is not None and (dimensions := ACCESSOR.fullmatch(type_.text)):
        raise refused(f"has {dimensions[2]} dimensions; an array of {array.ndim} is given")
    if parameter.by_value and type_.format not in FLOATS:
        check_pointers(parameter, target)
        pointers = [one.name for one in parameter.members or () if one.type.pointer]
        if pointers:
            raise refused(
                f"has pointers, which cannot be given as bytes: give its members, {pointers[0]}=f32[N]"
            )
        if array is None or array.nbytes != parameter.bytes:
            raise refused(
                f"is a struct of {parameter.bytes} bytes: give an array of so many, such as"
                f" u8[{parameter.bytes}]"
            )
        return np.void(array.tobytes())
    if array is not None and array.size != 1 or argument.value is None:
        raise refused(f"is a number; {'an array' if array is not None else 'null'} is given")
    return scalar(parameter, array.item() if array is not None else argument.value, refused)


def scalar(parameter: Parameter, value: Any, refused: Any) -> Any:
    """A number in the parameter's format."""
    format = parameter.type.format or parameter.type.ptx
    if format in FLOATS:
        made = np.asarray(value, dtype_of(format))
        return np.void(made.tobytes()) if parameter.by_value else made[()]
    if isinstance(value, float) and not value.is_integer():
        raise refused(f"is a whole number; {value} is given")
    bits, whole = 8 * parameter.bytes, int(value)
    if not -(1 << (bits - 1)) <= whole < 1 << bits:
        raise refused(f"has {bits} bits, which {whole} does not fit into")
    return np.array([whole & ((1 << bits) - 1)], f"u{parameter.bytes}").view(f"i{parameter.bytes}")[0]
