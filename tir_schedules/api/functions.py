"""A function of TVM's, scheduled by anybody: found in what a user has, given its sizes, and made a kernel.

TVM changes a function in place while it is scheduled or lowered, also one that somebody else still holds. So
everything here works on copies.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import inspect
import mmap
import os
import re
import signal
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

import numpy as np

from tir_schedules.api.options import Scheduler
from tir_schedules.check.expressions import wholes
from tir_schedules.check.types import format_of
from tir_schedules.compiler.lint import Lines, ScheduleMistake
from tir_schedules.compiler.lower import OF_TVM, check_parameters, emit, has_threads, last_line
from tir_schedules.compiler.signature import argument_name
from tir_schedules.emit import extents_text, without_unused
from tir_schedules.errors import BadInput, CheckFailed, TirSchedulesError, nearest, one_line, place_in
from tir_schedules.insight.trace.states import short_reason
from tir_schedules.model.kernel import Kernel
from tir_schedules.tir.schedule import open_schedule
from tir_schedules.tir.tvm import import_tvm, nodes_in
from tir_schedules.workloads import element_type

if TYPE_CHECKING:
    from tvm import IRModule
    from tvm.s_tir import Schedule
    from tvm.tirx import PrimFunc

    Function = Schedule | IRModule | PrimFunc
    """What a user of TVM has."""

OUTSIDE = "main"
"""No kernel can have this name in CUDA."""

BIND = (
    'bind them, sch.bind(loop, "blockIdx.x") and sch.bind(loop, "threadIdx.x"), or write'
    " T.thread_binding in the function"
)


@dataclass(frozen=True)
class Array:
    """A parameter that is an array. format: as `--arg` has it, such as "f32". read, written: by the
    function, as its blocks say."""

    name: str
    shape: tuple[int, ...]
    format: str
    dtype: str
    read: bool
    written: bool

    @property
    def element(self) -> Any:
        """Its type for numpy."""
        return element_type(self.dtype)

    @property
    def shown(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def text(self) -> str:
        """The text of `--arg` for it: an array of random numbers, or an unwritten array if it is only
        written."""
        out, fill = self.written and not self.read, ":0..1" if self.dtype == "bool" else ""
        return f"{self.format}[{','.join(map(str, self.shape or (1,)))}]{':out' if out else fill}"


@dataclass(frozen=True)
class Own:
    """A function of the user's own, with its sizes. module: has it alone. original: the function before the
    schedule, where that is known. schedule: what schedules that."""

    name: str
    module: Any = field(repr=False)
    arrays: Mapping[str, Array]
    numbers: Mapping[str, str]
    original: Any = field(default=None, repr=False)
    schedule: Scheduler | None = field(default=None, repr=False)

    @property
    def entry(self) -> str:
        """The kernel's name."""
        return f"{self.name}_kernel" if self.name == OUTSIDE else self.name

    @property
    def function(self) -> Any:
        ((_, function),) = self.module.functions_items()
        return function

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters, in their order."""
        return tuple(argument_name(one.name) for one in self.function.params)

    @property
    def tir(self) -> str:
        return re.sub(r"\A(#.*\n|\n)*", "", self.function.script())


def is_tvm(subject: object) -> bool:
    """Whether it is of TVM, which is not imported to find out."""
    return any(kind.__module__.partition(".")[0] == "tvm" for kind in type(subject).__mro__)


def own_of(
    subject: object,
    kernel: str,
    sizes: Mapping[str, int | float],
    schedule: Scheduler | None = None,
    arguments: Any = (),
) -> Own:
    """The function that a user means. kernel: its name, where a module has several. sizes: values for its
    symbolic extents and numbers, which are compiled in; those of extents follow from arrays among its
    `arguments`, too. schedule: what schedules it first.

    Raises BadInput if the object is not a function or has an open shape, and CheckFailed if the schedule
    fails.
    """
    import_tvm()
    name, function = function_in(subject, kernel)
    function = with_sizes(function, name, {**sizes_in(function, arguments), **sizes})
    original = function if schedule else None
    if schedule:
        with refusals(name, "the schedule", schedule):
            function = scheduled(function, schedule)
    return Own(name, module_of(function, name), arrays_of(function, name), numbers_of(function, name),
               original, schedule)  # fmt: skip


def schedule_of(subject: Any) -> Schedule:
    """The object as it is. Raises BadInput if it is not a Schedule."""
    import_tvm()
    from tvm.s_tir import Schedule

    if not isinstance(subject, Schedule):
        raise BadInput(f"original= goes with a Schedule, not with a {type(subject).__name__}")
    return subject


def copied(node: Any) -> Any:
    """A node that shares nothing with another."""
    tvm = import_tvm()
    return tvm.ir.load_json(tvm.ir.save_json(node))


def module_of(function: PrimFunc, name: str) -> IRModule:
    """A module with a copy of one function, which has a name that CUDA takes."""
    tvm = import_tvm()
    named = copied(function).with_attr("global_symbol", name).without_attr("target")
    return tvm.IRModule({name: named})


def scheduled(function: PrimFunc, schedule: Scheduler) -> PrimFunc:
    """A function after a schedule."""
    sch: Any = open_schedule(copied(function))
    schedule(sch)
    return sch.mod["main"]


def function_in(subject: Any, kernel: str) -> tuple[str, PrimFunc]:
    """The function that is meant, and its name."""
    tvm = import_tvm()
    from tvm.s_tir import Schedule
    from tvm.tirx import PrimFunc

    if isinstance(subject, PrimFunc):
        return name_of(subject, "main"), subject
    module = subject.mod if isinstance(subject, Schedule) else subject
    if not isinstance(module, tvm.IRModule):
        raise BadInput(
            f"a {type(subject).__name__} of TVM's is not a kernel: give a PrimFunc of TensorIR, an IRModule"
            " with one, or a Schedule of it"
        )
    found = {
        variable.name_hint: function
        for variable, function in module.functions_items()
        if isinstance(function, PrimFunc)
    }
    if not found:
        raise BadInput("the module has no PrimFunc of TensorIR, which a kernel is made of")
    if kernel:
        if kernel not in found:
            raise BadInput(f"the module has no function {kernel!r}{nearest(kernel, found)}; it has"
                           f" {', '.join(found)}")  # fmt: skip
        return name_of(found[kernel], kernel), found[kernel]
    working = getattr(subject, "func_working_on", None) if isinstance(subject, Schedule) else None
    bound = [name for name in found if is_bound(found[name])] or [*found]
    if working is not None and working.name_hint in found and (len(bound) > 1 or len(found) == 1):
        bound = [working.name_hint]
    if len(bound) > 1:
        raise BadInput(f"the module has {len(found)} functions: name one, kernel={bound[0]!r};"
                       f" it has {', '.join(found)}")  # fmt: skip
    return name_of(found[bound[0]], bound[0]), found[bound[0]]


def name_of(function: PrimFunc, otherwise: str) -> str:
    """By its global symbol."""
    return str((function.attrs or {}).get("global_symbol", otherwise))


def is_bound(function: PrimFunc) -> bool:
    """Whether something in it runs on blocks or threads of a GPU."""
    attributes = nodes_in(function.body, import_tvm().tirx.AttrStmt)
    return any(one.attr_key == "thread_extent" for one in attributes) or has_threads(function)


def sizes_in(function: Any, arguments: Any) -> dict[str, int]:
    """Symbolic extents that arrays among the arguments have."""
    found: dict[str, int] = {}
    if not isinstance(arguments, Mapping):
        arguments = dict(zip((argument_name(one.name) for one in function.params), arguments))
    for one in filter(is_array, function.params):
        shape = getattr(arguments.get(argument_name(one.name)), "shape", ())
        if len(shape) == len(one.shape):
            pairs = zip(one.shape, shape)
            found |= {extent.name: int(size) for extent, size in pairs if hasattr(extent, "name")}
    return found


def with_sizes(function: Any, name: str, sizes: Mapping[str, Any]) -> PrimFunc:
    """The function with sizes for what it leaves open: symbolic extents, and numbers among its parameters."""
    tvm = import_tvm()
    function = copied(function)
    numbers = {one.name: one for one in function.params if not is_array(one)}
    given = {
        one: constant(one, sizes[key], f"{name}: sizes={{{key!r}: ...}}")
        for key, one in numbers.items()
        if key in sizes
    }
    if given:
        function = function.specialize(given)
    known, left = {}, {}
    for one in filter(is_array, function.params):
        extents = [extent_of(extent, sizes) for extent in one.shape]
        if any(isinstance(extent, str) for extent in extents):
            left[one.name] = next(extent for extent in extents if isinstance(extent, str))
        elif not all(is_whole(extent) for extent in one.shape):
            dtype = str(one.dtype)
            known[one] = tvm.tirx.decl_buffer(extents, dtype, one.name, strides=None, scope="global")
    if left:
        array, extent = next(iter(left.items()))
        raise BadInput(f"the shape of {array} of {name} has {extent}: say what it is, such as"
                       f" sizes={{{extent!r}: 1024}}")  # fmt: skip
    return function.specialize(known) if known else function


def is_array(parameter: Any) -> bool:
    return hasattr(parameter, "shape")


def is_whole(extent: Any) -> bool:
    """Whether an extent is a number."""
    return hasattr(extent, "value") or isinstance(extent, int)


def extent_of(extent: Any, sizes: Mapping[str, Any]) -> int | str:
    """An extent as a number, or what is left open in it."""
    if is_whole(extent):
        return int(extent)
    for variable in nodes_in(extent, import_tvm().tirx.Var):
        if variable.name not in sizes:
            return str(variable.name)
    return wholes(str(extent), sizes, "sizes=")[0]


def constant(variable: Any, value: Any, what: str) -> Any:
    """A number of the type of a parameter."""
    tvm = import_tvm()
    kind = str(variable.ty)
    if isinstance(value, (bool, int, float, np.number)):
        return tvm.tirx.const(float(value) if "float" in kind else int(value), kind)
    raise BadInput(f"{what}: it takes a number, not {value!r}")


def arrays_of(function: Any, name: str) -> dict[str, Array]:
    """Parameters that are arrays, by name. Raises BadInput if a format or a layout is not known."""
    read, written = accesses(function)
    found = {}
    for one in filter(is_array, function.params):
        dtype = str(one.dtype)
        try:
            format = format_of(element_type("uint8" if dtype == "bool" else dtype))
        except TypeError:
            format = ""
        if not format:
            raise BadInput(
                f"{name}: {one.name} is an array of {dtype}, which arrays of numpy are not; kernels take"
                " float16, bfloat16, float32, float64, bool and integers"
            )
        if len(one.strides) or extent_of(one.elem_offset, {}) != 0:
            raise BadInput(
                f"{name}: {one.name} has strides or an offset of its own; arrays are given whole, with rows"
                " one behind another"
            )
        shape = tuple(map(int, one.shape))
        known = argument_name(one.name)
        found[known] = Array(known, shape, format, dtype, one.name in read, one.name in written)
    return found


def numbers_of(function: Any, name: str) -> dict[str, str]:
    """Parameters that are numbers, and their types. Raises BadInput if one is a pointer without a buffer."""
    found = {one.name: str(one.ty) for one in function.params if not is_array(one)}
    for parameter, kind in found.items():
        if "handle" in kind or "Pointer" in kind:
            raise BadInput(f"{name}: {parameter} is a pointer whose elements have no known type: use"
                           " T.match_buffer, or T.Buffer in the signature")  # fmt: skip
    return found


def accesses(function: Any) -> tuple[set[str], set[str]]:
    """Names of buffers that are read, and of those that are written: as blocks declare, which leave out that
    a reduction reads its own sum; else by each load and store."""
    tvm = import_tvm()
    blocks = nodes_in(function.body, tvm.s_tir.SBlock)
    read = {region.source.name for block in blocks for region in block.reads}
    written = {region.source.name for block in blocks for region in block.writes}
    if not written:
        read |= {load.source.name for load in nodes_in(function.body, tvm.ir.TensorLoad)}
        written |= {store.buffer.name for store in nodes_in(function.body, tvm.tirx.BufferStore)}
    return read, written


@contextmanager
def refusals(name: str, what: str, schedule: Scheduler | None = None) -> Iterator[None]:
    """TVM's errors, and those of a schedule, in one line; after the line of the schedule that they came
    by."""
    try:
        yield
    except TirSchedulesError:
        raise
    except Exception as error:  # TVM turns its errors into Python's, of many classes
        file = file_of(schedule)
        place = f"{place_in(error, file)}: " if file else ""
        if "tvm" in type(error).__module__ or OF_TVM in str(error):
            reason = short_reason(last_line(error))
            raise CheckFailed(f"{place}{name}: TVM refuses {what}: {reason}") from error
        raise CheckFailed(
            f"{place}{name}: {what} fails: {type(error).__name__}: {one_line(error)}"
        ) from error


def file_of(schedule: Any) -> str:
    """Where a schedule is written, also under decorators or as a partial or an object that can be called; ""
    where Python does not say."""
    while isinstance(schedule, partial):
        schedule = schedule.func
    plain = inspect.unwrap(schedule) if schedule else None
    code = getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)
    return code.co_filename if code else ""


def kernel_of(own: Own, arch: str) -> Kernel:
    """The CUDA kernel that TVM makes of it, under a comment that says its launch.

    Raises BadInput if nothing is bound to threads, and CheckFailed if TVM refuses it or does not make one
    kernel of it.
    """
    if not is_bound(own.function):
        raise BadInput(f"{own.name} has no loops on blocks and threads: {BIND}")
    schedule = open_schedule(copied(own.function))
    with refusals(own.name, "the function"):
        try:
            emitted = emit(schedule, own.entry, arch)
            check_parameters(schedule, emitted)
        except ScheduleMistake as mistake:
            place = lines(own).place(mistake.names, mistake.subject)
            raise CheckFailed(f"{own.name}: {place}{mistake}") from mistake
    launch = emitted.launch
    head = (
        f"// {own.entry}, made by TVM for {arch}\n"
        f"// launch:  grid {extents_text(launch.grid)}, block {extents_text(launch.block)},"
        f" {launch.dynamic_shared} bytes of dynamic shared memory\n\n"
    )
    return Kernel(
        own.entry, head + without_unused(emitted.source), own.entry, emitted.params, arch=arch,
        file=f"{own.name}.cu", **vars(launch),
    )  # fmt: skip


def lines(own: Own) -> Lines:
    """The calls of the schedule with their lines; without any where the schedule was made elsewhere."""
    found = Lines(open_schedule(copied(own.function if own.original is None else own.original)))
    if own.original is not None and own.schedule is not None:
        own.schedule(found)
    return found


def computed(own: Own, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What the function leaves in the arrays that it writes, as it was before its schedule, executed by the
    host's processor. values: of all its parameters; they are not changed.

    Raises AccessOutside if it reads or writes outside of a buffer, CheckFailed if TVM does not compile it for
    the host.
    """
    tvm = import_tvm()
    from tir_schedules.tir.passes.bound_checks import check_bounds

    given = {name: tvm.runtime.tensor(values[name].reshape(own.arrays[name].shape)) if name in own.arrays
             else values[name] for name in own.parameters}  # fmt: skip
    written = [name for name, array in own.arrays.items() if array.written]
    with refusals(own.name, "the function without its schedule"):
        function = check_bounds(own.original or own.function, f"{own.name} itself, without its schedule,")
        built = tvm.compile(module_of(function, own.name), target="llvm")
        return in_child(own.name, lambda: built[own.name](*given.values()), {n: given[n] for n in written})


def in_child(name: str, call: Callable[[], object], tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What a call leaves in tensors. It runs in a child of this process, which a function that divides by
    zero ends. Raises CheckFailed if that happens."""
    shared = {each: np.empty_like(tensor.numpy()) for each, tensor in tensors.items()}
    places = {each: mmap.mmap(-1, max(1, array.nbytes)) for each, array in shared.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which TVM has
        child = os.fork()
    if not child:
        try:
            call()
            for each, tensor in tensors.items():
                places[each][: shared[each].nbytes] = tensor.numpy().tobytes()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        ended = signal.Signals(os.WTERMSIG(status)).name
        raise CheckFailed(f"{name} itself, without its schedule, ends the process that runs it ({ended})")
    if status:
        call()  # raises here what it raised there
    return {
        each: np.frombuffer(places[each], array.dtype, array.size).reshape(array.shape).copy()
        for each, array in shared.items()
    }
