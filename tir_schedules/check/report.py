"""A check's results, printed or as JSON; and source lines that no lane executed, with sizes at which some
lane does."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Iterator, Sequence

from rich.markup import escape

from tir_schedules.check.preparing import Prepared, Step, prepare
from tir_schedules.check.session import Checked, Places, launch_all, unreached_by
from tir_schedules.console import (
    print_left_out,
    print_line,
    print_paragraph,
    print_table,
    print_whole,
    terminal_width,
)
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.faults import WIDTH, closing_outcomes, kernel_paragraphs
from tir_schedules.files import Json, to_json
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.attributes import spelled
from tir_schedules.model.counters import Access, Counters
from tir_schedules.model.findings import Location
from tir_schedules.model.machine import Machine
from tir_schedules.verdicts import CELLS, Outcome

CLASSES = {
    "shared_load": "loads", "shared_store": "stores", "ldmatrix": "ldmatrix", "shared_atomic": "atomics",
    "shared_cp_async": "cp.async", "global_load": "loads", "global_store": "stores",
    "global_atomic": "atomics", "global_cp_async": "cp.async", "wgmma": "wgmma", "tma_load": "TMA loads",
    "tma_store": "TMA stores",
}  # fmt: skip
SHOWN = 3
"""Lines that are named of those that lose most."""


def print_all(results: Sequence[Checked], machine: Machine) -> None:
    """A table, what kernels printed, what is wrong with them, and what their accesses cost."""
    columns = ("kernel", "grid", "block", "verdict", "seconds")
    print_left_out(
        print_table(columns, [row(one) for one in results], prose={"kernel": 16}, spare=("seconds",), keys=0)
    )
    for one in results:
        if one.outcome.printed:
            print_line(f"{one.label} prints:")
            print_whole(one.outcome.printed.removesuffix("\n"))
    width = min(WIDTH, terminal_width() or WIDTH)
    by_kernel: dict[str, list[tuple[str, Outcome]]] = {}
    for one in results:
        by_kernel.setdefault(one.label, []).append(("", one.outcome))
    for paragraph in kernel_paragraphs(by_kernel, width):
        print_paragraph(paragraph)
    for told in dict.fromkeys(note for one in results if one.prepared for note in one.prepared.notes):
        print_paragraph(f"note: {told}")
    for one in results:
        read = (step.read for step in one.steps)
        for told in filter(None, (*read, *one.outcome.unshown, describe_unexecuted(one))):
            print_paragraph(f"note: {one.label}: {told}")
    print_costs(results)
    print_line(f"{closing_outcomes([one.outcome for one in results])} on {machine.device_name}")


def row(one: Checked) -> tuple[str, ...]:
    kernels = [step.binary.kernel for step in one.steps]
    grid, block = ("; ".join(spelled(extent) for extent in extents) for extents in (
        [kernel.grid for kernel in kernels], [kernel.block for kernel in kernels]))  # fmt: skip
    return escape(one.label), grid, block, CELLS[one.outcome.word], f"{one.outcome.seconds:.2f}"


def print_costs(results: Sequence[Checked]) -> None:
    """A table of accesses; of a single launch also the lines that cost most above what would do."""
    pairs = [pair for one in results for pair in zip(one.steps, one.executions)]
    rows = [
        (escape(step.target.shown), *cells)
        for step, execution in pairs
        if execution.counters
        for cells in cost_rows(execution.counters)
    ]
    columns = ("kernel", "memory", "access", "requests", "cost", "ideal", "per request", "unit")
    cut = 0 if len(pairs) > 1 else 1
    if rows:
        print_table(columns[cut:], [row[cut:] for row in rows], prose={"kernel": 16})
    if len(pairs) == 1 and pairs[0][1].counters:
        for line in costly(pairs[0][1].counters):
            print_line(line)


def cost_rows(counters: Counters) -> Iterator[tuple[str, ...]]:
    for memory, name, unit, access in access_rows(counters):
        numbers = (access.requests, access.cost, access.ideal)
        yield memory, name, *map(str, numbers), f"{access.cost / access.requests:.2f}", unit


def access_rows(counters: Counters) -> Iterator[tuple[str, str, str, Access]]:
    """Memory, access, unit of its cost, and what accesses of a class cost."""
    for kind, name in CLASSES.items():
        access = counters.accesses.get(kind)
        if access and access.requests:
            memory, unit = where(kind)
            yield memory, name, unit, access


def where(kind: str) -> tuple[str, str]:
    return ("global", "sectors") if kind.startswith(("global", "tma")) else ("shared", "wavefronts")


def costly(counters: Counters) -> Iterator[str]:
    """`my.cu:12: shared loads take 4096 wavefronts where 1024 would do`."""
    found: list[tuple[int, str, str, Access]] = []
    for line in counters.lines:
        for kind, access in line.accesses.items():
            if access.cost > access.ideal:
                found.append((access.cost - access.ideal, f"{line.file}:{line.line}", kind, access))
    for _, place, kind, access in sorted(found, key=lambda one: -one[0])[:SHOWN]:
        memory, unit = where(kind)
        name = CLASSES.get(kind, kind)
        yield f"{place}: {memory} {name} take {access.cost} {unit} where {access.ideal} would do"


def as_json(one: Checked) -> Json:
    """A check, with a description of each launch, the figures of ptxas, and its cost."""
    launches = [
        launch_json(step, done.counters if done else None)
        for step, done in zip_longest(one.steps, one.executions)
    ]
    notes = {"compiled": [*one.prepared.notes]} if one.prepared and one.prepared.notes else {}
    return one.outcome.as_json() | {"launches": to_json(launches)} | notes


def launch_json(step: Step, counters: Counters | None) -> Json:
    kernel, resources = step.binary.kernel, step.binary.resources
    return {
        "kernel": step.target.shown,
        "symbol": step.target.symbol,
        **{name: getattr(kernel, name) for name in ("grid", "block", "dynamic_shared", "arch")},
        **({"read": step.read} if step.read else {}),
        "registers": resources.registers,
        "static_shared": resources.shared,
        "accesses": counters and counters.accesses,
        "mix": counters and counters.mix,
    }


TRIED = 4
"""Sizes that are made smaller by 1, to see which lines are executed then."""

BUDGET = 1 << 20
"""Instructions a warp may execute meanwhile."""

UNEXECUTED_SHOWN = 8


def describe_unexecuted(checked: Checked) -> str:
    """Lines that no lane executed, the first with its text, and a size that reaches one; "" where there are
    none."""
    lines = checked.outcome.unexecuted
    if not lines:
        return ""
    first, others = lines[0], [str(line.line) for line in lines[1:UNEXECUTED_SHOWN]]
    also = f", nor line{'s' * (len(others) > 1)} {', '.join(others)}" if others else ""
    more = f" and {len(lines) - UNEXECUTED_SHOWN} more" if len(lines) > UNEXECUTED_SHOWN else ""
    size = reaching_size(checked.prepared, lines) if checked.prepared else ""
    reached = f"; --let {size} reaches {'some of them' if others else 'it'}" if size else ""
    text = first.text.strip().rstrip(";") if reached else first.text.strip()
    return f"no lane executes {first.place}{also}{more}: {text}{reached}"


def reaching_size(prepared: Prepared, lines: Sequence[Location]) -> str:
    """`n=999`, with which a lane executes the most of these lines; "" where none is found."""
    request = prepared.request
    places: Places = {(line.file, line.line): line for line in lines}
    sizes = [(name, value) for name, value in request.sizes.items() if isinstance(value, int) and value > 1]
    left = {}
    for name, value in sizes[:TRIED] if not (request.usual or request.triton) else ():
        smaller = replace(request, sizes={**request.sizes, name: value - 1}, tolerance=1.0, finite=True)
        try:
            again = prepare(smaller)
            done, *_ = launch_all(again.steps, again.trials.runs[0], CpuMachine(budget=BUDGET), True)
        except (BadInput, CheckFailed):
            continue
        left[f"{name}={value - 1}"] = len(unreached_by(done).keys() & places.keys())
    best = min(left, key=lambda size: left[size], default="")
    return best if best and left[best] < len(places) else ""
