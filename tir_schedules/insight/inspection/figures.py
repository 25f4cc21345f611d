"""An inspection as the cells of tables: one rung in full, schedule beside twin, or a rung per row."""

from __future__ import annotations

from typing import Callable, Iterator

from tir_schedules.insight.inspection.inspection import FORMS, Inspection
from tir_schedules.insight.metrics.metrics import (
    COPIES,
    GLOBAL_LOADS,
    GLOBAL_STORES,
    LOADS,
    STORES,
    Metrics,
    conflicts,
)
from tir_schedules.model.counters import Access

Row = tuple[str, ...]

MIX = {
    "fp arithmetic": ("fp32", "fp16", "fp64", "special"),
    "tensor cores": ("mma",),
    "integers, addresses": ("int",),
    "memory": ("load", "store", "cp_async", "atomic"),
    "moves, conversions": ("move", "convert"),
    "shuffles": ("shuffle",),
    "branches, barriers": ("control", "barrier"),
}
"""What is shown of the instruction mix -> classes of instruction (machines/cpu/classify.py)."""


def full_table(inspection: Inspection) -> Iterator[Row]:
    """Rows of name, schedule, twin; a heading has a name alone. What neither kernel has gets no row, such as
    atomics."""
    for heading, rows in sections(inspection):
        cells = [(name, *(cell_of(inspection, form, show) for form in FORMS)) for name, show in rows]
        shown = [row for row in cells if any(cell != "-" for cell in row[1:])]
        if shown:
            yield (f"[bold]{heading}[/bold]", "", "")
            yield from ((f"  {name}", *values) for name, *values in shown)


def cell_of(inspection: Inspection, form: str, show: Callable[[Metrics], str]) -> str:
    launches = inspection.kernels.get(form)
    return show(launches[0]) if launches else "-"


def sections(inspection: Inspection) -> list[tuple[str, list[tuple[str, Callable[[Metrics], str]]]]]:
    """Heading -> figures: what they are called and how they are written."""
    return [
        ("launch", [
            ("grid", lambda one: "x".join(map(str, one.binary.kernel.grid))),
            ("block", lambda one: "x".join(map(str, one.binary.kernel.block))),
        ]),
        ("resources, by ptxas", RESOURCES),
        (f"occupancy of {inspection.arch}, by CUDA's rules", OCCUPANCY),
        ("shared memory, counted", [row for name, classes in SHARED_ROWS.items() for row in shared_rows(name,
        classes)]),
        ("global memory, counted", [row for name, classes in GLOBAL_ROWS.items() for row in global_rows(name,
        classes)]),
        ("instructions of PTX, counted", INSTRUCTIONS),
        ("instruction mix, share of thread instructions", [(name, share_of(classes)) for name,
        classes in MIX.items()]),
        ("checked by the CPU machine", [("findings",
        lambda one: number(len(one.findings)) if one.findings else "none")]),
    ]  # fmt: skip


RESOURCES = [
    ("registers per thread", lambda one: number(one.binary.resources.registers)),
    ("static shared bytes", lambda one: number(one.binary.resources.shared)),
    ("dynamic shared bytes", lambda one: number(one.binary.kernel.dynamic_shared)),
    ("stack bytes", lambda one: number(one.binary.resources.stack)),
    ("bytes spilled", lambda one: number(one.binary.resources.spill_stores)),
    ("bytes read back", lambda one: number(one.binary.resources.spill_loads)),
    ("barriers", lambda one: number(one.binary.resources.barriers)),
]
OCCUPANCY = [
    ("blocks per multiprocessor", lambda one: number(one.occupancy.blocks)),
    (
        "warps per multiprocessor",
        lambda one: f"{one.occupancy.warps} of {one.occupancy.max_warps}, {percent(one.occupancy.share)}",
    ),
    ("limited by", lambda one: ", ".join(one.occupancy.limited_by)),
    (
        "blocks each would allow",
        lambda one: ", ".join(f"{name} {blocks}" for name, blocks in one.occupancy.limits.items()),
    ),
]
INSTRUCTIONS = [
    ("issued, of all warps", lambda one: number(one.counters.warp_instructions)),
    ("issued, per warp", lambda one: decimal(one.counters.warp_instructions / one.warps)),
    ("lanes active", lambda one: decimal(one.counters.thread_instructions / one.counters.warp_instructions)),
]
SHARED_ROWS = {"loads": LOADS, "stores": STORES, "cp.async": COPIES, "atomics": ("shared_atomic",)}
GLOBAL_ROWS = {"loads": GLOBAL_LOADS, "stores": GLOBAL_STORES}


def shared_rows(name: str, classes: Row) -> list[tuple[str, Callable[[Metrics], str]]]:
    return [
        (f"{name}: requests", lambda one: count_of(one.access(*classes).requests, one.access(*classes))),
        (f"{name}: wavefronts (ideal)", lambda one: pair(one.access(*classes))),
        (f"{name}: conflicts", lambda one: count_of(conflicts(one.access(*classes)), one.access(*classes))),
        (
            f"{name}: wavefronts per request",
            lambda one: ratio(one.access(*classes).cost, one.access(*classes).requests),
        ),
    ]


def global_rows(name: str, classes: Row) -> list[tuple[str, Callable[[Metrics], str]]]:
    return [
        (f"{name}: requests", lambda one: count_of(one.access(*classes).requests, one.access(*classes))),
        (f"{name}: sectors (packed)", lambda one: pair(one.access(*classes))),
        (f"{name}: sectors per request (packed)", lambda one: per_request(one.access(*classes))),
    ]


def share_of(classes: Row) -> Callable[[Metrics], str]:
    def show(one: Metrics) -> str:
        part = sum(one.counters.mix.get(name, 0) for name in classes)
        return percent(part / one.counters.thread_instructions) if part else "-"

    return show


def roofline_rows(inspection: Inspection) -> list[Row]:
    """Where schedule and twin stand, of all launches together."""
    stands = {form: inspection.roofline(form) for form in inspection.kernels}
    rows = {
        "flops": lambda at: number(at.flops),
        "least bytes, every element once": lambda at: number(at.least_bytes),
        "bytes through L1, 32 per sector": lambda at: number(at.moved_bytes),
        "flops per least byte": lambda at: f"{decimal(at.intensity)}: {at.limit(at.intensity)}",
        "flops per byte through L1": lambda at: (
            f"{decimal(at.moved_intensity)}: {at.limit(at.moved_intensity)}"
        ),
    }
    cells = [
        (f"  {name}", *(show(stands[form]) if form in stands else "-" for form in FORMS))
        for name, show in rows.items()
    ]
    return [(f"[bold]roofline of {inspection.gpu.name} at this size[/bold]", "", ""), *cells]


SHORT_COLUMNS = (
    "rung", "registers", "shared bytes", "warps", "wavefronts of loads", "of stores", "of cp.async",
    "sectors / load", "sectors / store", "instructions / warp", "flops / byte",
)  # fmt: skip


def short_rows(inspection: Inspection) -> Iterator[Row]:
    """A row for the schedule and one for the twin. Of the first launch, but for flops per byte through L1,
    which is of all."""
    for form in FORMS:
        name = inspection.name if form == FORMS[0] else "  twin"
        if form in inspection.refused:
            yield (name, "refused", *[""] * (len(SHORT_COLUMNS) - 2))
            continue
        one = inspection.kernels[form][0]
        cells = [number(one.binary.resources.registers), number(one.shared_bytes), str(one.occupancy.warps)]
        cells += [times_ideal(one.access(*classes)) for classes in (LOADS, STORES, COPIES)]
        cells += [
            ratio(one.access(*classes).cost, one.access(*classes).requests)
            for classes in (GLOBAL_LOADS, GLOBAL_STORES)
        ]
        cells += [
            decimal(one.counters.warp_instructions / one.warps),
            decimal(inspection.roofline(form).moved_intensity),
        ]
        yield (name, *cells)


def number(value: int) -> str:
    return f"{value:,}"


def decimal(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def ratio(value: int, of: int) -> str:
    return decimal(value / of) if of else "-"


def count_of(value: int, access: Access) -> str:
    """A figure of accesses, "-" where there are no such accesses."""
    return number(value) if access.requests else "-"


def pair(access: Access) -> str:
    """ "12,288 (4,096)": what it costs and what it could; "-" where there are no such accesses."""
    return f"{access.cost:,} ({access.ideal:,})" if access.requests else "-"


def times_ideal(access: Access) -> str:
    """ "12,288 3x": what it costs, and how many times what it could where that is more."""
    times = f" {decimal(access.cost / access.ideal)}x" if conflicts(access) else ""
    return count_of(access.cost, access) + times


def per_request(access: Access) -> str:
    return (
        f"{decimal(access.cost / access.requests)} ({decimal(access.ideal / access.requests)})"
        if access.requests
        else "-"
    )
