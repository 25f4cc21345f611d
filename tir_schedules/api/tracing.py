# pyright: strict
"""`trace`: a schedule primitive by primitive."""

from __future__ import annotations

import ast
import inspect
import linecache
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from tir_schedules.api.functions import Own, computed, is_bound, own_of, refusals, schedule_of
from tir_schedules.api.options import Asking, AskingAll, Scheduler, Shape, check_names
from tir_schedules.api.plans import Plan, plan_of_jobs
from tir_schedules.api.problems import job_of, options_of
from tir_schedules.api.requests import arguments_of, expected, values_of, whole_numbers
from tir_schedules.api.results import Result, framed
from tir_schedules.api.subjects import OWN, RUNG, Subject, as_rung, kind_of
from tir_schedules.check.expecting import truth_of
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import print_line, progress
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.insight.metrics.rungs import check_size
from tir_schedules.insight.times.timed import Timed, target_of, timed_or_refused
from tir_schedules.insight.trace.page import page
from tir_schedules.insight.trace.printing import as_json, print_trace
from tir_schedules.insight.trace.states import State
from tir_schedules.insight.trace.states import Trace as Recorded
from tir_schedules.insight.trace.states import trace as record
from tir_schedules.ladders.problems import TRACE_SHAPES
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import OneLaunch, Workload
from tir_schedules.workloads import element_type

if TYPE_CHECKING:
    from typing_extensions import Unpack

REMEDY = (
    "TVM keeps no function as it was before its schedule: say original=function with a Schedule, or give the"
    " PrimFunc and schedule=, a function of a Schedule"
)


INEXACT = "its regions are not exact"
"""What a rung is refused for, as others might be wrong for another shape. A function has one."""


@dataclass(frozen=True, repr=False)
class Trace(Result):
    """A schedule, state by state.

    - states: the function before the first step and after each step: its TensorIR, its CUDA once it is a
      kernel, registers and counters.
    - right: whether the finished kernel is right.
    - fault: why it is not, or empty.
    - refusal: why TVM refuses the schedule, or empty.
    - times: predicted microseconds by the number of a state, if they were asked for.
    """

    recorded: Recorded
    tir: bool = False
    cuda: bool = False
    times: Mapping[int, float] = field(default_factory=dict[int, float])

    @property
    def states(self) -> tuple[State, ...]:
        return self.recorded.states

    @property
    def right(self) -> bool:
        return self.recorded.right

    @property
    def ok(self) -> bool:
        return self.right

    @property
    def refusal(self) -> str:
        return self.recorded.refusal

    @property
    def fault(self) -> str:
        return self.recorded.fault

    def __repr__(self) -> str:
        right = "right" if self.right else "not right"
        return f"Trace({self.recorded.rung.id}, {len(self.states) - 1} steps, {right})"

    def showing(self, tir: bool = False, cuda: bool = False) -> Trace:
        """The same, whose text also has what each step changes in the TensorIR and in the CUDA."""
        return replace(self, tir=tir, cuda=cuda)

    def show(self) -> None:
        print_trace(self.recorded, self.tir, self.cuda, self.times)
        if self.times:
            print_line(
                "predicted: microseconds of the kernel on an H100, without the work of the host; the"
                " difference to the row before is what a step gains"
            )

    def to_json(self) -> Json:
        return as_json(self.recorded, self.times)

    def page(self) -> str:
        """Self-contained HTML, as `--output` of the verb writes it."""
        return page(self.recorded)

    def _repr_html_(self) -> str:
        return framed(self.page())


def trace(
    subject: Subject,
    *,
    arch: str = CPU_ARCH,
    original: Any = None,
    time: bool = False,
    **asked: Unpack[AskingAll],
) -> Trace:
    """A schedule step by step: TensorIR, CUDA, registers, wavefronts and sectors after each primitive.

    - subject: a rung by name or as an object; a PrimFunc of TVM, with `schedule=`, a function that is called
      with a Schedule of it; or a Schedule, with `original=`, the PrimFunc that it schedules. For a function
      of TVM the options arguments, expect, tolerance, sizes and kernel are those of `check`; if nothing is
      expected, the PrimFunc itself says what is right.
    - time: also predict how long each state takes, see `time`.

    Raises BadInput if a name does not exist or an option is not possible. What is wrong with a state is in
    the result.
    """
    arch = target_of().arch_for(arch) if time else arch
    check_arch(arch)
    given: dict[str, Any] = dict(asked)
    if kind_of(subject, "trace", RUNG, OWN) == RUNG:
        options = options_of(given, "trace", arch=arch)
        rung, workload = job_of(as_rung(subject), options, "trace", TRACE_SHAPES, arch)
        check_size(rung, workload)
    else:
        check_names(given, Asking, "trace")
        rung, workload = job_of_function(subject, original, given)
    with progress(None, "tracing") as step:
        found = record(rung, workload, arch, step)
    measured = found.states[-1].measured
    if isinstance(workload, OfFunction) and measured and measured.right and INEXACT in found.refusal:
        found = replace(found, refusal="")
    return Trace(found, times=times_of(found) if time else {})


def times_of(found: Recorded) -> dict[int, float]:
    """Predicted microseconds of the kernels of states that were executed to their end, except those that the
    model refuses."""
    known: dict[int, float] = {}
    with progress(len(found.states), "predicting") as step:
        for state in found.states:
            measured = state.measured
            if state.repeats and state.same in known:
                known[state.number] = known[state.same]
            elif measured and measured.metrics:
                kernel, workload = measured.binary.kernel, found.workload
                given = {**kernel.prepared(workload, workload.arguments()), **measured.buffers}
                outputs = [*workload.outputs, *measured.outside]
                timed = Timed(found.rung.id, "", (measured.binary,))
                timed = timed_or_refused(timed, target_of(), [given], outputs)
                if timed.microseconds:
                    known[state.number] = timed.microseconds
            step(str(state.number))
    return known


def plan_of_trace(subject: str, arch: str, shape: Shape) -> Plan:
    """What `trace` of a rung will do."""
    check_arch(arch)
    job = job_of(subject, options_of(shape, "trace", arch=arch), "trace", TRACE_SHAPES, arch)
    check_size(*job)
    return plan_of_jobs([job], arch, "emitted and counted after each primitive", twins=False)


def job_of_function(subject: Any, original: Any, asked: Mapping[str, Any]) -> tuple[Rung, Workload]:
    """A function and its schedule as what a trace is made of."""
    schedule: Any = asked.get("schedule")
    sizes: Any = asked.get("sizes") or {}
    if original is not None:
        schedule, subject = replayed(schedule_of(subject)), original
    if schedule is None:
        raise BadInput(REMEDY)
    own = own_of(subject, asked.get("kernel") or "", sizes, None, asked.get("arguments") or ())
    if is_bound(own.function):
        raise BadInput(f"{own.name} is scheduled already: {REMEDY}")

    def primitives(sch: Any, workload: Workload, config: Any) -> None:
        with refusals(own.name, "the schedule", schedule):
            schedule(sch)

    rung = Rung("own", own.name, "a function and its schedule", schedule=primitives, twinned=False)
    return rung, workload_of_function(own, asked)


def replayed(schedule: Any) -> Scheduler:
    """A function that makes the calls that a Schedule has kept."""
    lines = [ast.unparse(Positional(schedule).visit(ast.parse(line))) for line in schedule.trace.as_python()]
    text = "\n    ".join(["def trace(sch):", *(lines or ["pass"])]) + "\n"
    linecache.cache["sch.trace"] = (len(text), None, text.splitlines(keepends=True), "sch.trace")
    found: dict[str, Any] = {}
    exec(compile(text, "sch.trace", "exec"), found)
    return found["trace"]


class Positional(ast.NodeTransformer):
    """Calls of a Schedule's methods as people write them: TVM names every argument, also those that have
    their defaults, and the function."""

    def __init__(self, schedule: Any):
        self.schedule = schedule

    def visit_Call(self, node: ast.Call) -> ast.Call:
        assert isinstance(node.func, ast.Attribute), "each line calls a method"
        given = {one.arg: one.value for one in node.keywords if one.arg and one.arg != "func_name"}
        found = inspect.signature(getattr(self.schedule, node.func.attr)).bind(*node.args, **given)
        for name, one in found.signature.parameters.items():
            value = found.arguments.get(name)
            if isinstance(value, ast.expr) and ast.unparse(value) == repr(one.default):
                del found.arguments[name]
        node.args, node.keywords = [*found.args], [ast.keyword(*each) for each in found.kwargs.items()]
        return node


@dataclass(init=False, eq=False)
class OfFunction(OneLaunch):
    """The one set of arguments of a function, and what it should make of them. arrays: formats and shapes, by
    name."""

    arrays: dict[str, str]

    def __init__(
        self, own: Own, values: Mapping[str, Any], truths: Mapping[str, Any], allowed: Mapping[str, Any]
    ):
        self.arrays = {name: array.shown for name, array in own.arrays.items()}
        self.function, self.values, self.truths, self.allowed = (
            own.original or own.function,
            values,
            truths,
            allowed,
        )
        self.inputs: tuple[str, ...] = tuple(own.arrays)
        self.outputs = tuple(name for name, array in own.arrays.items() if array.written)
        self.parameters: dict[str, str] = {}
        self.flops, self.bytes = 0, sum(array.nbytes for array in values.values())

    def __str__(self) -> str:
        return ", ".join(f"{name} {shown}" for name, shown in self.arrays.items())

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> dict[str, Any]:
        return {name: value.copy() for name, value in self.values.items()}

    def truth(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self.truths)

    def tolerance(self, arguments: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
        return dict(self.allowed)

    def prim_func(self, name: str) -> Any:
        return self.function


def workload_of_function(own: Own, asked: Mapping[str, Any]) -> OfFunction:
    """Its arguments, of whole numbers where they are drawn, with what is expected of them."""
    given, ready = arguments_of(own, asked.get("arguments") or (), asked.get("outputs") or ())
    sizes: Any = asked.get("sizes") or {}
    arguments = whole_numbers(own, given, ready, sizes, asked.get("seed") or 0)
    values = values_of(arguments)
    numbers = {name: element_type(kind).type(values[name]) for name, kind in own.numbers.items()}
    expect: Any = asked.get("expect")
    truths: dict[str, Any] = {}
    allowed: dict[str, Any] = {}
    for one in expected(expect or computed(own, values)):
        if one.where or one.output not in own.arrays:
            raise BadInput(f"{one.what}: a trace takes whole arrays, of {', '.join(own.arrays)}")
        found = truth_of(one, values[one.output], {**sizes, **values}, asked.get("tolerance"))
        truths[one.output], allowed[one.output] = found.value, found.allowed
    return OfFunction(own, values | numbers, truths, allowed)
