"""The kernels of a file as `inspect`, `layout` and `profile` show them: metrics of each launch with the names
that head them, requests to shared memory, and what Nsight Compute counts beside what is predicted."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from typing import Callable, Iterator, Mapping, Sequence

from tir_schedules.check.preparing import Prepared, Request, Step
from tir_schedules.check.session import (
    Checked,
    Written,
    fresh,
    launch_step,
    prepare_requests,
    run_prepared,
)
from tir_schedules.check.structs import other_names
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, CheckFailed, MissingTool, nearest, one_line, shown
from tir_schedules.faults import closing_words
from tir_schedules.files import Json
from tir_schedules.insight.banks.requests import (
    Pattern,
    array_at,
    arrays_of,
    group_requests,
    in_global,
    shared_variables,
)
from tir_schedules.insight.inspection.listing import listing, opcodes
from tir_schedules.insight.inspection.tables import SHORT_COLUMNS, rows_of, short_cells
from tir_schedules.insight.inspection.views import (
    COUNTED,
    IDEAL,
)
from tir_schedules.insight.inspection.views import PRINTERS as LAUNCH_PRINTERS
from tir_schedules.insight.metrics.counting import Metrics, occupancy_of
from tir_schedules.insight.profile.cases import entry_of, peculiarities, predictions
from tir_schedules.insight.profile.nsight import Entry, nsight_counters
from tir_schedules.insight.profile.results import Result, document
from tir_schedules.insight.threads.mapping import (
    Asked,
    Launched,
    ThreadMap,
    check_array,
    check_launch,
    numbers_of,
    thread_map,
    watched,
)
from tir_schedules.insight.threads.mapping import arrays_of as arrays_of_kernel
from tir_schedules.machines.choice import choose
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Watch
from tir_schedules.model.machine import Request as SharedRequest
from tir_schedules.subjects.results import about


@dataclass(frozen=True)
class View:
    """A check as others look at it. ready: its kernels and arguments, None where it does not compile.
    launches: metrics of each, empty where it was not run."""

    request: Request
    checked: Checked
    ready: Prepared | None = None
    launches: tuple[Metrics, ...] = ()

    @property
    def file(self) -> str:
        return self.request.source.file

    @property
    def named(self) -> dict[str, Metrics]:
        """Launches by the names of their kernels, with their number where one is launched again."""
        found: dict[str, Metrics] = {}
        for number, launch in enumerate(self.launches, 1):
            name = launch.binary.kernel.label
            found[f"{name}, launch {number}" if name in found else name] = launch
        return found

    def as_json(self, view: str | None = None) -> Json:
        """With the code where that is the view."""
        launches: list[Json] = []
        for launch in self.launches:
            found = launch.as_json()
            if view in ("sass", "ptx"):
                code = listing(launch.binary, view)
                found[view] = {"opcodes": opcodes(code), "lines": code}
            launches.append(found)
        return {"file": self.file, "kernel": self.checked.label, "check": self.checked.outcome.as_json(),
                "launches": launches}  # fmt: skip


def view_all(requests: Sequence[Request]) -> Iterator[View]:
    """Each request run by the CPU machine in one order of warps, counted and judged. BadInput for an
    architecture without figures."""
    machine = choose("cpu", 1)
    for request, ready in prepare_requests(requests, machine):
        checked = run_prepared(request, ready, machine)
        yield View(request, checked, ready if isinstance(ready, Prepared) else None, metrics(checked))


def ready_for(request: Request) -> Prepared | CheckFailed:
    """One request ready to run on the CPU machine, or why it is not."""
    ((_, ready),) = prepare_requests([request], choose("cpu", 1))
    return ready


def metrics(checked: Checked) -> tuple[Metrics, ...]:
    """Metrics of each launch that was counted."""
    return tuple(
        Metrics(step.binary, occupancy_of(step.binary), done.counters, done.findings)
        for step, done in zip(checked.steps, checked.executions)
        if done.counters is not None
    )


def check_known(views: Sequence[View]) -> None:
    """MissingTool where the only one has what the machine does not know."""
    if len(views) == 1 and views[0].checked.unsupported:
        raise MissingTool(views[0].checked.outcome.error)


def costliest(launches: Sequence[Metrics]) -> Metrics:
    """The one that executes most."""
    return max(launches, key=lambda launch: launch.counters.thread_instructions)


def print_view(view: View, what: str | None) -> None:
    """All launches of one check. what: a view of `inspect` in place of the table."""
    print_line(heading(view))
    if view.launches:
        PRINTERS[what](view.named)
    for line in remarks(view):
        print_line(line)


def heading(view: View) -> str:
    arch = view.launches[0].binary.kernel.arch if view.launches else view.request.options.arch
    return f"{view.checked.label} of {view.file}, compiled for {arch}"


def remarks(view: View) -> Iterator[str]:
    """What else there is to say: what is wrong, and how it was judged."""
    outcome = view.checked.outcome
    if outcome.error:
        yield outcome.error
    elif not outcome.ok:
        yield f"{closing_words([outcome.word])} `tir-schedules check {view.file}` shows why"


def print_table_of(launches: Mapping[str, Metrics]) -> None:
    """A column for each launch."""
    first = next(iter(launches.values()))
    columns = ("", *launches)
    rows = [*rows_of([*launches.values()], first.binary.kernel.arch)]
    print_table(columns, rows, prose={"": 24, **dict.fromkeys(launches, 16)})
    print_line()
    print_line(COUNTED)
    print_line(IDEAL)


def print_several(views: Sequence[View]) -> None:
    """A row for each launch."""
    several = len({view.file for view in views}) > 1
    rows = [
        (f"{view.file}: {name}" if several else name, *short_cells(launch))
        for view in views
        for name, launch in view.named.items()
    ]
    if rows:
        print_table(("kernel", *SHORT_COLUMNS[1:-1]), rows, prose={"kernel": 16})
    for view in views:
        for line in remarks(view):
            print_line(f"{view.checked.label}: {line}")


PRINTERS: dict[str | None, Callable[[Mapping[str, Metrics]], None]] = {
    None: print_table_of,
    **LAUNCH_PRINTERS,
}
"""View of `inspect` -> what prints it."""


VARIABLE = re.compile(r"^\s*(?:\.\w+ )*\.(?:global|const) .*?([\w$]+)(?:\[\d*\])?(?: = .*)?;", re.M)
"""A variable in PTX that outlives a launch: its symbol."""

LINE = re.compile(r"(?:(.*):)?(\d+)", re.S)
"""How a line is named: its number, or FILE:NUMBER."""


def watch_launches(
    ready: Prepared, block: Dim3, warp: int, only: int | None = None
) -> Iterator[tuple[int, Step, Execution]]:
    """The number of each launch, or of one alone, with what one warp of it asks of shared memory, on the
    first inputs. Only the warp's block is executed; what a later launch takes from it comes from a whole
    run."""
    check_launch(only, len(ready.steps))
    for number, (step, run) in enumerate(watchable(ready), 1):
        if only in (None, number):
            yield number, step, run(Watch(block, warp))


def watchable(ready: Prepared) -> Iterator[tuple[Step, Callable[[Watch], Execution]]]:
    """Each launch with what executes it on fresh arguments, the first inputs."""
    machine, trial = choose("cpu", 1), ready.trials.runs[0]
    arrays, written = fresh(trial), Written()
    for number, step in enumerate(ready.steps, 1):

        def run(watch: Watch, step: Step = step) -> Execution:
            own = {name: array.copy() for name, array in arrays.items()}
            return launch_step(step, trial, machine, own, {**written}, watch=watch)

        yield step, run
        if number < len(ready.steps):
            launch_step(step, trial, machine, arrays, written)


def arrays_of_file(ready: Prepared) -> list[str]:
    """Arrays in global memory that the launches take."""
    kernels = (step.binary.kernel for step in ready.steps)
    arrays = fresh(ready.trials.runs[0])
    return [name for kernel in kernels for name in arrays_of_kernel(kernel) if name in arrays]


def name_of(ready: Prepared, array: str) -> str:
    """The name of an array; of a struct's member also where `p` is called `v.p`."""
    parameters = [one for step in ready.steps for one in step.target.parameters]
    return other_names(parameters).get(array, array)


def map_of_file(ready: Prepared, asked: Asked, of: str) -> ThreadMap:
    """Who accesses an array in global memory."""
    asked = replace(asked, array=name_of(ready, asked.array))
    return thread_map(launches_of_file(ready, asked), asked, of)


def launches_of_file(ready: Prepared, asked: Asked) -> Iterator[Launched]:
    """The launches that are asked for and take an array. BadInput where there are none."""
    kernels, arrays = [step.binary.kernel for step in ready.steps], arrays_of_file(ready)
    if asked.array not in arrays and asked.array in variables_of(ready):
        raise BadInput(
            f"{asked.array} is a variable of the file, and layout shows arrays that a kernel is given:"
            f" {', '.join(dict.fromkeys(arrays)) or 'here it is given none'}"
        )
    check_array(asked.array, ready.label, arrays)
    array = fresh(ready.trials.runs[0])[asked.array]
    numbers = numbers_of(kernels, asked, last=False)
    for number, (step, run) in enumerate(watchable(ready), 1):
        if number in numbers:
            execution = watched(step.binary, asked, run)
            yield Launched(step.binary, array, execution, number, len(kernels), array.shape)


def variables_of(ready: Prepared) -> set[str]:
    """Names of `__device__` and `__constant__` variables."""
    return {source_name(name) for step in ready.steps for name in VARIABLE.findall(step.binary.ptx)}


def patterns_in(binary: Binary, requests: Sequence[SharedRequest]) -> list[Pattern]:
    """By array and line, in the order in which they first occur."""
    arrays, dynamic = arrays_of(binary), dynamic_name(binary)
    return group_requests(((one, "", array_at(arrays, one) or dynamic) for one in requests), by_line=True)


def dynamic_name(binary: Binary) -> str:
    """What the source calls its dynamic shared memory; empty where it has none, or several names for it."""
    names = {source_name(one.name) for one in shared_variables(binary) if one.extern}
    return names.pop() if len(names) == 1 else ""


def chosen(patterns: Sequence[Pattern], what: str, arrays: Sequence[str]) -> list[Pattern]:
    """The patterns of an array or a line. BadInput if there are none, with the names of those there are.
    arrays: names of arrays in global memory."""
    found = [pattern for pattern in patterns if what in (pattern.variable, pattern.name)]
    line = None if found else LINE.fullmatch(what)
    if line:
        found = [one for one in patterns if one.locations[0].line == int(line[2])]
    if found:
        return found
    names = list(dict.fromkeys(pattern.name for pattern in patterns))
    lines = sorted({one.locations[0].line for one in patterns})
    where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    raise BadInput(
        f"this warp touches no shared array or line {shown(what)}{nearest(what, [*names, *arrays])}; it"
        f" touches {', '.join(names)} in {where}{in_global(arrays)}"
    )


def profile_file(machine: GpuMachine, request: Request, words: Sequence[str], command: str) -> Result:
    """Count the launches of a check on this computer's GPU. words: those of the `check` that makes them.
    CheckFailed for a kernel that does not run there, or leaves what is wrong."""
    ready = ready_for(request)
    if isinstance(ready, CheckFailed):
        raise ready
    on_gpu = run_prepared(request, ready, machine)
    (view,) = view_all([request])
    for outcome in (on_gpu.outcome, view.checked.outcome):
        if outcome.error or outcome.wrong:
            raise CheckFailed(f"it is not counted: {one_line(outcome.faults[0])}")
    entries = entries_of(view)
    kernels = [step.binary.kernel.entry for step in ready.steps] * len(ready.trials.runs)
    check = [sys.executable, "-m", "tir_schedules", "check", *words, "--machine", "gpu"]
    for entry, measured in zip(entries, nsight_counters(check, kernels)):
        entry["measured"] = measured
    return document(command, {**about(command), "arch": request.options.arch}, entries)


def entries_of(view: View) -> list[Entry]:
    """One of each launch, with the predicted counters."""
    entries = []
    for number, (launch, predicted) in enumerate(zip(view.launches, predictions(view.launches))):
        facts = {name: value for name, value in peculiarities(launch.binary).items() if value}
        facts |= {"launch": number} if len(view.launches) > 1 else {}
        entries.append(entry_of(launch.binary, {**facts, "predicted": predicted}))
    return entries
