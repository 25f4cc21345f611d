"""From a rung's schedule to a `Kernel`: TVM lowers the scheduled PrimFunc and prints CUDA, we read back how
to launch it."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, cast

from tir_schedules.compiler.dependent_launch import add_dependent_launch, fits_beside
from tir_schedules.compiler.emitted import Emitted, is_ours, load_or_make
from tir_schedules.compiler.lint import (
    Lines,
    ScheduleMistake,
    bound_loops,
    check_peeled,
    check_threads,
    explain_parameter,
)
from tir_schedules.compiler.signature import argument_name
from tir_schedules.errors import (
    BadInput,
    CheckFailed,
    TirSchedulesError,
    TooLarge,
    one_line,
    place_in,
    raised_in,
)
from tir_schedules.model import annotations
from tir_schedules.model.gpus import MAX_THREADS, WARP
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import Dim3, Launch, check_grid
from tir_schedules.model.rung import Rung
from tir_schedules.tir.passes import Unfit
from tir_schedules.tir.schedule import Schedule, open_schedule
from tir_schedules.tir.tvm import import_tvm, nodes_in

if TYPE_CHECKING:
    from tvm import IRModule
    from tvm.s_tir import Schedule as TvmSchedule
    from tvm.tirx import PrimFunc

# Common subexpressions are hoisted to the host and become extra kernel parameters; nvcc finds them by itself.
# An unrolled loop is printed once, with `#pragma unroll`, not once per iteration.
PASS_CONFIG = {"tirx.disable_cse_tir": True, "tirx.UnrollLoop": {"explicit_unroll": False}}

NAME_OF_NODE = re.compile(r'for (\w+) in |with T\.sblock\("([^"]+)"\)')
"""A loop or a block as TVM prints it."""

OF_TVM, TOO_LARGE = "Check failed", "exceeds range of int32"
"""Parts of TVM's error messages, and its message on an overflow of a 32-bit index."""


def lower(rung: Rung, workload: Any, arch: str) -> Kernel:
    """The CUDA kernel that `rung` makes of `workload` for `arch` ("sm_80"), or for its own, see
    `Rung.arch_for`. In a command, and wherever TIR_SCHEDULES_KEEP is set, it comes from the cache where it
    was made before.

    CheckFailed when the schedule is not sound (see `check_regions`), does not end in exactly one kernel, or
    launches differently from what the rung declares, where it declares something.
    """
    rung, workload = rung.settled(workload, arch)
    rung = fitted(rung, workload)
    arch = rung.arch_for(arch)
    declared = declared_launch(rung, workload)
    overlaps = fits_beside(declared)

    def made() -> Emitted:
        schedule = scheduled(rung, workload)
        with refusals(rung, workload):
            try:
                emitted = emit(schedule, rung.entry, arch, overlaps)
                if rung.file:
                    check_parameters(schedule, emitted)
            except ScheduleMistake as mistake:
                place = recorded_lines(rung, workload).place(mistake.names, mistake.subject)
                raise CheckFailed(f"{rung.id}: {place}{mistake}") from mistake
        if declared and emitted.launch != replace(declared, parts=1, workspaces=()):
            raise CheckFailed(
                f"{rung.id}: for {workload} it launches {emitted.launch}, but the rung declares {declared}"
            )
        return emitted

    emitted = load_or_make(rung, workload, arch, made)
    return Kernel(
        f"{rung.id} (tir)", emitted.source, rung.entry, rung.given(workload, emitted.params), arch=arch,
        own=is_ours(rung), **vars(declared or emitted.launch),
    )  # fmt: skip


def recorded_lines(rung: Rung, workload: Any) -> Lines:
    """The lines of the calls of a rung's schedule, which runs again."""
    made: list[Lines] = []
    scheduled(rung, workload, lambda schedule: made.append(Lines(schedule)) or made[0])
    return made[0]


def check_parameters(schedule: Schedule, emitted: Emitted) -> None:
    """ScheduleMistake for a kernel with a parameter that its function does not have: what lies outside of the
    kernel has to be handed over in global memory."""
    ((_, function),) = schedule.mod.functions_items()
    known = {argument_name(parameter.name) for parameter in function.params}
    known |= {tensor.name for tensor in emitted.launch.maps}
    for name in emitted.params:
        if name not in known:
            raise explain_parameter(name, schedule.mod)


def fitted(rung: Rung, workload: Any) -> Rung:
    """The rung in the configuration it takes for the workload. BadInput where it refuses that."""
    with refusals(rung, workload):
        rung = rung.fitted(workload)
        reason = rung.refuses(workload, rung.config) if rung.refuses else ""
    if reason:
        raise BadInput(f"{rung.id} cannot be built for {workload}: {reason}")
    return rung


def declared_launch(rung: Rung, workload: Any) -> Launch | None:
    """The launch that a rung declares, if it does. TooLarge for a grid, BadInput for a block that CUDA
    does not have."""
    if rung.launch is None:
        return None
    with refusals(rung, workload):
        launch = rung.launch(workload, rung.config)
        if not isinstance(cast(Any, launch), Launch):
            raise CheckFailed(
                f"{rung.id}: launch returns {launch!r}, not a Launch(grid, block) of"
                " tir_schedules.model.launch"
            )
    check_grid(f"{rung.id} for {workload}", launch.grid)
    if not 1 <= prod(launch.block) <= MAX_THREADS:
        raise BadInput(
            f"{rung.id}: a block of {'x'.join(map(str, launch.block))} threads cannot be; CUDA allows 1 to"
            f" {MAX_THREADS} of them"
        )
    return launch


def launch_for(rung: Rung, workload: Any, arch: str) -> Launch:
    """How a rung's kernels are launched: as it declares, else as its schedule is."""
    declared = declared_launch(rung, workload)
    if declared:
        return declared
    kernel = lower(rung, workload, arch)
    return Launch(**{name: getattr(kernel, name) for name in Launch.__dataclass_fields__})


def scheduled(
    rung: Rung, workload: Any, around: Callable[[Schedule], Any] = lambda schedule: schedule
) -> Schedule:
    """The rung's schedule of the workload, checked by `check_regions` unless threads were in the algorithm
    from the start.

    TooLarge for a workload that other tiles might take, CheckFailed for a schedule that is not sound.

    around: makes of the Schedule what the rung calls its primitives on, such as a `Listener`.
    """
    rung = fitted(rung, workload)
    declared_launch(rung, workload)
    with refusals(rung, workload):
        function = algorithm(rung, workload)
        schedule = open_schedule(function)
        rung.schedule(around(schedule), workload, rung.config)
        if not has_threads(function):
            check_regions(schedule.mod, rung.id)
    return schedule


@contextmanager
def refusals(rung: Rung, workload: Any) -> Iterator[None]:
    """TVM's errors, which it turns into Python's of many classes, in one line; and those of code of the
    user's, or of values that no constraint foresaw."""
    try:
        yield
    except TirSchedulesError:
        raise
    except (Exception, SystemExit) as error:
        of_tvm = OF_TVM in str(error) or "tvm" in type(error).__module__
        if rung.file and not of_tvm and TOO_LARGE not in str(error):
            raise CheckFailed(f"{rung.id}: {raised_in(error, rung.file)}") from error
        if "=" in rung.variant and not of_tvm and TOO_LARGE not in str(error):
            reason = f"{type(error).__name__}: {one_line(error)}"
            if isinstance(error, ZeroDivisionError):
                reason = "a field that others are divided by is 0"
            raise BadInput(f"{rung.id} cannot be built for {workload}: {reason}") from error
        if isinstance(error, ValueError) and OF_TVM not in str(error):
            raise
        if TOO_LARGE in str(error):
            raise TooLarge(
                f"{rung.id}: {workload} is too large: TVM's indices have 32 bits, tiles beyond its edges"
                " included"
            ) from error
        place = f" ({place_in(error, rung.file)})" if rung.file else ""
        raise CheckFailed(
            f"{rung.id}: TVM refuses the schedule for {workload}{place}: {last_line(error)}"
        ) from error


def algorithm(rung: Rung, workload: Any) -> "PrimFunc":
    """What the rung schedules: its own form of the algorithm in its configuration, or that of the
    workload."""
    return (
        rung.prim_func(workload, rung.config, rung.entry)
        if rung.prim_func
        else workload.prim_func(rung.entry)
    )


def has_threads(function: "PrimFunc") -> bool:
    """Whether the function says what each thread does."""
    return bool(bound_loops(function))


def check_regions(module: "IRModule", name: str) -> None:
    """CheckFailed when a block reads what its producers did not write for it, or writes beyond what it owns.

    TVM computes a buffer's region as a bounding box. Where the true region has holes, compute_at yields code
    that compiles, passes TVM's own verifiers and overwrites other threads' results. A fresh Schedule knows:
    such blocks lack `region_cover`, `stage_pipeline` or `affine_binding`.
    """
    tvm = import_tvm()
    for function in module.functions.values():
        fresh = tvm.s_tir.Schedule(without_output_guards(function))
        for block in nodes_in(fresh.mod["main"].body, tvm.s_tir.SBlock):
            place: Any = fresh.state.get_sref(block)
            flags = fresh.state._get_cached_flags(place)
            for flag in ("affine_binding", "region_cover", "stage_pipeline"):
                if flag == "affine_binding" and not block.iter_vars:  # part of an intrinsic
                    continue
                if not getattr(flags, flag):
                    raise CheckFailed(
                        f"{name}: block {block.name_hint!r} lost {flag}: its regions are not exact"
                    )


def without_output_guards(function: "PrimFunc") -> "PrimFunc":
    """The function with the guards gone from blocks that write its outputs, so that these blocks read more,
    never less.

    TVM cannot show that a guarded block reads only what was produced when the guard involves block indices;
    what covers the unguarded reads covers the guarded ones.
    """
    tvm = import_tvm()
    import tvm_ffi

    def unguarded(realize: Any) -> Any:
        written = [region.source for region in realize.block.writes]
        if not written or not all(any(buffer.same_as(p) for p in function.params) for buffer in written):
            return realize
        return tvm.s_tir.SBlockRealize(realize.iter_values, tvm.tirx.const(True, "bool"), realize.block)

    return function.with_body(tvm_ffi.structural_map(function.body, (tvm.s_tir.SBlockRealize, unguarded)))


def emit(
    schedule: "TvmSchedule",
    entry: str,
    arch: str,
    overlaps: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Emitted:
    """Lower a schedule and print its CUDA source, with `entry` as the name of its one kernel.

    overlaps: whether the kernel begins while the launch before still runs, where its schedule asks for that.
    options: of TVM's lowering, besides those that the schedule asks for.
    """
    tvm = import_tvm()
    from tvm.tirx.build import codegen_build, split_host_device_mods

    from tir_schedules.tir.intrinsics.mma import shares_known
    from tir_schedules.tir.passes.hopper_text import cluster_of, hopper_text
    from tir_schedules.tir.passes.pipeline import annotations_of, options_of, pipeline, restructured
    from tir_schedules.tir.passes.wide_offsets import wide_offsets

    check_threads(schedule.mod)
    check_peeled(schedule.mod)
    asked = annotations_of(schedule.mod)
    config = {**PASS_CONFIG, **options_of(asked), **(options or {})}
    with tvm.transform.PassContext(config=config), shares_known():
        warp_size = int(asked.get(annotations.WARP_SIZE, WARP))
        module = tvm.tirx.transform.BindTarget(target(arch, warp_size))(schedule.mod)
        parts: Any = tvm.tirx.get_tir_pipeline("s_tir")
        finalize_device = parts[2]
        try:
            module = restructured(module, asked)
        except Unfit as unfit:
            raise ScheduleMistake(f"{unfit.primitive} does not fit: {unfit}", (unfit.primitive,)) from unfit
        host, devices = split_host_device_mods(pipeline(asked)(module))
        kernels = [(device, finalize_device()(part)) for device, part in devices.items()]
        count = sum(len(part.functions) for _, part in kernels)
        if count != 1:
            remedy = f"it ends in {count}" if count else "bind its loops to blockIdx and threadIdx"
            raise CheckFailed(f"{entry}: the schedule must end in one CUDA kernel; {remedy}")
        device, kernel = kernels[0]
        ((variable, function),) = kernel.functions.items()
        named = tvm.IRModule({variable: function.with_attr("global_symbol", entry)})
        with source_only():
            source = codegen_build(named, device).inspect_source()
    source = hopper_text(wide_offsets(source, schedule.mod), schedule.mod)
    if overlaps and annotations.DEPENDENT_LAUNCH in asked:
        source = add_dependent_launch(source, entry, arch)
    params = tuple(argument_name(parameter.name) for parameter in function.params)
    return Emitted(source, params, replace(launch_of(host), cluster=(cluster_of(schedule.mod), 1, 1)))


@contextmanager
def source_only() -> Iterator[None]:
    """TVM prints CUDA and leaves it at that. If the CUDA runtime is installed, TVM would also compile the
    printed code by NVRTC or nvcc, with other options, and fail without cuda-bindings or a GPU."""
    name = "TVM_COMPILE_FORCE_FALLBACK"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def launch_of(host: "IRModule") -> Launch:
    """Grid, block and dynamic shared memory from the host function's one kernel call, and the tensor maps
    that it makes before."""
    tvm = import_tvm()
    from tir_schedules.tir.passes.tensor_maps import described, is_encoding

    calls = [call for function in host.functions.values() for call in nodes_in(function.body, tvm.ir.Call)]
    maps = [described(call) for call in calls if is_encoding(call)]
    (launch,) = (call for call in calls if getattr(call.op, "name", "") == "tirx.call_ffi_kernel")
    names = [str(tag) for tag in launch.attrs.launch_params]
    tags = {name: int(value) for name, value in zip(names, list(launch.args)[-len(names) :])}

    def dim3(prefix: str) -> Dim3:
        x, y, z = (tags.get(f"{prefix}.{axis}", 1) for axis in "xyz")
        return x, y, z

    shared = tags.get("tirx.use_dyn_shared_memory", 0)
    return Launch(dim3("blockIdx"), dim3("threadIdx"), shared, maps=tuple(sorted(maps, key=lambda m: m.name)))


def target(arch: str, warp_size: int = WARP) -> Any:
    """TVM's description of an NVIDIA GPU of that architecture, hosted by llvm. warp_size: see
    `Schedule.set_warp_size`."""
    tvm = import_tvm()
    limits = {
        "max_threads_per_block": MAX_THREADS,
        "thread_warp_size": warp_size,
        "max_shared_memory_per_block": 48 << 10,
    }
    return tvm.target.Target({"kind": "cuda", "arch": arch, **limits}).with_host(tvm.target.Target("llvm"))


def last_line(error: BaseException) -> str:
    """The last non-empty line of a TVM error, which names the cause below its C++ trace. What it calls
    tirx.For#0 or s_tir.SBlock#0 in there has the name of the loop or block."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = re.sub(r"^(Error message: |ScheduleError: )+", "", lines[-1]) if lines else type(error).__name__
    for mark, node in zip(lines, lines[1:]):
        name = NAME_OF_NODE.match(node)
        if mark.startswith("# ") and "#" in mark[2:] and name:
            last = re.sub(rf"{re.escape(mark[2:])}\b", name[1] or name[2], last)
    return last
