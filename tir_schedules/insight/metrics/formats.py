"""How tables and pages write counters: numbers, shares, ratios, and the classes of the instruction mix."""

from __future__ import annotations

from typing import Sequence

from tir_schedules.insight.metrics.counting import conflicts
from tir_schedules.model.counters import Access, Counters
from tir_schedules.model.findings import Finding

MIX = {
    "fp arithmetic": ("fp32", "fp16", "fp64", "special"),
    "tensor cores": ("mma", "wgmma"),
    "integers, addresses": ("int",),
    "memory": ("load", "store", "cp_async", "atomic"),
    "boxes, bulk copies": ("tma",),
    "moves, conversions": ("move", "convert"),
    "shuffles": ("shuffle",),
    "branches, barriers": ("control", "barrier"),
    "mbarriers": ("mbarrier",),
}
"""What is shown of the instruction mix -> classes of instruction (`mix` of a Row, machines/cpu/table.py)."""


def mix_shares(counters: Counters) -> dict[str, float]:
    """Shares of a launch's thread instructions, those that there are."""
    counts = {name: sum(counters.mix.get(part, 0) for part in parts) for name, parts in MIX.items()}
    return {name: count / counters.thread_instructions for name, count in counts.items() if count}


def number(value: int) -> str:
    return f"{value:,}"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def list_findings(findings: Sequence[Finding]) -> str:
    """ "2 findings of the CPU machine, the first: race at mine.cu:4"."""
    first, found = findings[0], plural(len(findings), "finding")
    place = first.location.place or f"PTX line {first.location.ptx_line}"
    return f"{found} of the CPU machine{', the first' * (len(findings) > 1)}: {first.title} at {place}"


def decimal(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def ratio(value: int, of: int) -> str:
    return decimal(value / of) if of else "-"


def count_of(value: int, access: Access) -> str:
    """A count of accesses, "-" where there are no such accesses."""
    return number(value) if access.requests else "-"


def pair(access: Access) -> str:
    """ "12,288 (4,096)": cost and ideal; "-" where there are no such accesses."""
    return f"{access.cost:,} ({access.ideal:,})" if access.requests else "-"


def times_ideal(access: Access) -> str:
    """ "12,288 3x": the cost, and how many times the ideal it is where that is more than once."""
    times = f" {decimal(access.cost / access.ideal)}x" if conflicts(access) else ""
    return count_of(access.cost, access) + times


def per_request(access: Access) -> str:
    """ "4 (2)": cost and ideal of one request; "-" where there are no such accesses."""
    if not access.requests:
        return "-"
    return f"{decimal(access.cost / access.requests)} ({decimal(access.ideal / access.requests)})"
