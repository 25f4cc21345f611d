"""An inspection as the cells of tables: one rung in full, schedule beside twin, or two rows for each rung."""

from __future__ import annotations

from typing import Callable, Iterator, Mapping, Sequence

from tir_schedules.errors import MissingTool
from tir_schedules.insight.inspection.twins import Inspection
from tir_schedules.insight.metrics.counting import (
    COPIES,
    GLOBAL_LOADS,
    GLOBAL_STORES,
    LOADS,
    STORES,
    Metrics,
    conflicts,
)
from tir_schedules.insight.metrics.formats import (
    MIX,
    count_of,
    decimal,
    number,
    pair,
    per_request,
    percent,
    ratio,
    times_ideal,
)
from tir_schedules.insight.metrics.ports import MainLoop, main_loop
from tir_schedules.insight.metrics.roofline import Roofline
from tir_schedules.insight.metrics.rungs import FORMS
from tir_schedules.model.counters import Access

Row = tuple[str, ...]
Show = Callable[[Metrics], str]
"""How a cell is written."""


def full_table(inspection: Inspection) -> Iterator[Row]:
    """Rows of name, schedule, twin: of the rung's own launch."""
    found = [inspection.own(form) if form in inspection.kernels else None for form in FORMS]
    return rows_of(found, inspection.arch)


def rows_of(launches: Sequence[Metrics | None], arch: str) -> Iterator[Row]:
    """Rows of a name and a cell for each launch; a heading has a name alone. A row that all lack is left
    out."""
    for heading, rows in sections(arch):
        cells = [(name, *(show(one) if one else "-" for one in launches)) for name, show in rows]
        shown = [row for row in cells if any(cell != "-" for cell in row[1:])]
        if shown:
            yield (f"[bold]{heading}[/bold]", *[""] * len(launches))
            yield from ((f"  {name}", *values) for name, *values in shown)


def sections(arch: str) -> list[tuple[str, Sequence[tuple[str, Show]]]]:
    """Heading -> rows: their names and how their cells are written."""
    of_shared = {
        "conflicts": lambda access: count_of(conflicts(access), access),
        "wavefronts per request": lambda access: ratio(access.cost, access.requests),
    }
    of_memory = {"sectors per request (ideal)": per_request}
    shared = [row for name in SHARED_ROWS.items() for row in access_rows(*name, "wavefronts", of_shared)]
    memory = [row for name in GLOBAL_ROWS.items() for row in access_rows(*name, "sectors", of_memory)]
    mix = [(name, share_of(classes)) for name, classes in MIX.items()]
    return [
        ("launch", LAUNCH),
        ("resources, by ptxas", RESOURCES),
        (f"occupancy of {arch}, by CUDA's rules", OCCUPANCY),
        ("shared memory, counted", shared),
        ("global memory, counted", memory),
        ("instructions of PTX, counted", INSTRUCTIONS),
        ("instruction mix, share of thread instructions", mix),
        ("main loop of SASS, by a model: see metrics/ports.py", PORTS),
        ("checked by the CPU machine", FINDINGS),
    ]


LAUNCH: list[tuple[str, Show]] = [
    ("grid", lambda one: "x".join(map(str, one.binary.kernel.grid))),
    ("block", lambda one: "x".join(map(str, one.binary.kernel.block))),
]
RESOURCES: list[tuple[str, Show]] = [
    ("registers per thread", lambda one: number(one.binary.resources.registers)),
    ("static shared bytes", lambda one: number(one.binary.resources.shared)),
    ("dynamic shared bytes", lambda one: number(one.binary.kernel.dynamic_shared)),
    ("stack bytes", lambda one: number(one.binary.resources.stack)),
    ("spill stores, bytes", lambda one: number(one.binary.resources.spill_stores)),
    ("spill loads, bytes", lambda one: number(one.binary.resources.spill_loads)),
    ("barriers", lambda one: number(one.binary.resources.barriers)),
]
OCCUPANCY: list[tuple[str, Show]] = [
    ("blocks per SM", lambda one: number(one.occupancy.blocks)),
    (
        "warps per SM",
        lambda one: f"{one.occupancy.warps} of {one.occupancy.max_warps}, {percent(one.occupancy.share)}",
    ),
    ("limited by", lambda one: ", ".join(one.occupancy.limited_by)),
    (
        "blocks by each limit",
        lambda one: ", ".join(f"{name} {blocks}" for name, blocks in one.occupancy.limits.items()),
    ),
]
INSTRUCTIONS: list[tuple[str, Show]] = [
    ("issued, all warps", lambda one: number(one.counters.warp_instructions)),
    ("issued, per warp", lambda one: decimal(one.counters.warp_instructions / one.warps)),
    ("active lanes", lambda one: decimal(one.counters.thread_instructions / one.counters.warp_instructions)),
]
PORTS: list[tuple[str, Show]] = [
    ("FFMA, of instructions", lambda one: of_main_loop(one, lambda loop: percent(loop.issue))),
    ("FFMA, of cycles", lambda one: of_main_loop(one, lambda loop: percent(loop.predicted))),
    ("LDS, needed at once", lambda one: of_main_loop(one, lambda loop: f"{loop.hurried} of {loop.loads}")),
]
FINDINGS: list[tuple[str, Show]] = [
    ("findings", lambda one: number(len(one.findings)) if one.findings else "none"),
]
SHARED_ROWS = {
    "loads": LOADS,
    "stores": STORES,
    "cp.async": COPIES,
    "atomics": ("shared_atomic",),
    "wgmma (a model)": ("wgmma",),
}
GLOBAL_ROWS = {"loads": GLOBAL_LOADS, "stores": GLOBAL_STORES}


def access_rows(
    name: str, classes: Row, unit: str, more: Mapping[str, Callable[[Access], str]]
) -> list[tuple[str, Show]]:
    """Rows of some classes of access. more: rows besides requests and cost."""
    cells = {"requests": lambda access: count_of(access.requests, access), f"{unit} (ideal)": pair, **more}
    return [
        (f"{name}: {what}", lambda one, show=show: show(one.access(*classes))) for what, show in cells.items()
    ]


def share_of(classes: Row) -> Show:
    def show(one: Metrics) -> str:
        part = sum(one.counters.mix.get(name, 0) for name in classes)
        return percent(part / one.counters.thread_instructions) if part else "-"

    return show


def of_main_loop(one: Metrics, show: Callable[[MainLoop], str]) -> str:
    """What the model of register ports gives, "-" where it gives nothing."""
    try:
        loop = main_loop(one.binary)
    except MissingTool:
        return "-"
    return show(loop) if loop else "-"


def intensity(at: Roofline, flop_per_byte: float) -> str:
    """ "0.25 flop/byte: memory": an arithmetic intensity and what limits there."""
    return f"{decimal(flop_per_byte)} flop/byte: {at.limit(flop_per_byte)}"


ROOFLINE: dict[str, Callable[[Roofline], str]] = {
    "flops": lambda at: number(at.flops),
    "compulsory bytes": lambda at: number(at.compulsory_bytes),
    "bytes through L1, 32 per sector": lambda at: number(at.moved_bytes),
    "arithmetic intensity, compulsory": lambda at: intensity(at, at.intensity),
    "arithmetic intensity, through L1": lambda at: intensity(at, at.moved_intensity),
}


def roofline_rows(inspection: Inspection) -> list[Row]:
    """Where schedule and twin stand, all launches together."""
    stands = {form: inspection.roofline(form) for form in inspection.kernels}
    cells = [
        (f"  {name}", *(show(stands[form]) if form in stands else "-" for form in FORMS))
        for name, show in ROOFLINE.items()
    ]
    return [(f"[bold]roofline of {inspection.gpu.name} at this size[/bold]", "", ""), *cells]


SHORT_COLUMNS = (
    "rung",
    "registers",
    "shared bytes",
    "warps / SM",
    "load wavefronts",
    "store wavefronts",
    "cp.async wavefronts",
    "sectors / load",
    "sectors / store",
    "instructions / warp",
    "flop/byte",
)


def short_rows(inspection: Inspection) -> Iterator[Row]:
    """A row for the schedule and one for the twin: of the rung's own launch, except for the arithmetic
    intensity, which is of all."""
    for form in FORMS:
        name = inspection.name if form == FORMS[0] else "  twin"
        if form in inspection.refused:
            yield (name, "refused", *[""] * (len(SHORT_COLUMNS) - 2))
            continue
        if form not in inspection.kernels:  # a rung from elsewhere may have no twin
            yield (name, *["-"] * (len(SHORT_COLUMNS) - 1))
            continue
        one = inspection.own(form)
        yield (name, *short_cells(one), decimal(inspection.roofline(form).moved_intensity))


def short_cells(one: Metrics) -> Iterator[str]:
    """The cells of SHORT_COLUMNS that a launch has: all but the name and the last."""
    yield from (
        number(one.binary.resources.registers),
        number(one.binary.shared_bytes),
        str(one.occupancy.warps),
    )
    yield from (times_ideal(one.access(*classes)) for classes in (LOADS, STORES, COPIES))
    for classes in (GLOBAL_LOADS, GLOBAL_STORES):
        access = one.access(*classes)
        yield ratio(access.cost, access.requests)
    yield decimal(one.counters.warp_instructions / one.warps)
