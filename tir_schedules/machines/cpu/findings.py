"""What the engine recorded of a fault, told as a Finding."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tir_schedules.machines.cpu import unit_findings
from tir_schedules.machines.cpu.abi import FINDING_KINDS, NONE, Space
from tir_schedules.machines.cpu.extents import Extent
from tir_schedules.machines.cpu.faults import Fault, NamedBuffer, Sources
from tir_schedules.machines.cpu.functions import ARGUMENTS, RESULTS
from tir_schedules.machines.cpu.warpgroup_findings import (
    bad_descriptor,
    bad_tensor_map,
    divergent_aligned,
    too_many_registers,
    touched_registers,
    unfenced_registers,
)
from tir_schedules.model.findings import Finding
from tir_schedules.model.kernel import Kernel

PLAIN = ("line", "other_line", "warp", "lane", "other_warp", "count")


def findings(
    records: np.ndarray,
    kernel: Kernel,
    sources: Sources,
    buffers: Sequence[NamedBuffer],
    extents: Sequence[Extent],
    assertion: str = "",
) -> tuple[Finding, ...]:
    """Findings of the engine's records (dtype FINDING), most serious first. assertion: what the one that
    failed says."""
    found = []
    for record in records:
        kind, (x, y, z) = FINDING_KINDS[record["kind"]], (int(index) for index in record["block"])
        line, other, warp, lane, other_warp, count = (int(record[name]) for name in PLAIN)
        message, brief = (
            MESSAGES[kind](Fault(record, sources, buffers, extents, kernel.grid, short, assertion))
            for short in (False, True)
        )
        location, against = sources(line), sources(other) if other else None
        found.append(
            Finding(
                kind,
                message,
                kernel.label,
                location,
                (x, y, z),
                warp,
                lane,
                count,
                against,
                other_warp,
                brief,
            )
        )
    return tuple(sorted(found, key=lambda finding: FINDING_KINDS.index(finding.kind)))


MESSAGES = {
    "bad_tensor_map": lambda f: bad_tensor_map(f.record),
    "bad_descriptor": lambda f: bad_descriptor(f.record, f.other_place),
    "wgmma_registers": lambda f: touched_registers(f.record, f.act, f.other_place),
    "unfenced_wgmma": lambda f: unfenced_registers(f.record, f.other_place),
    "barrier_misuse": lambda f: unit_findings.barrier_misuse(f),
    "slot_in_use": lambda f: unit_findings.slot_in_use(f),
    "unfenced_proxy": lambda f: unit_findings.unfenced_proxy(f),
    "cluster_exit": lambda f: unit_findings.cluster_exit(f),
    "left_in_flight": lambda f: unit_findings.left_in_flight(f),
    "out_of_bounds": lambda f: f"{f.act} {f.bytes} of {f.where}, out of bounds{f.limits}",
    "misaligned": lambda f: misaligned(f),
    "uninitialized": lambda f: uninitialized(f),
    "race": lambda f: f"{f.clash} {missing(f)}",
    "lockstep": lambda f: f"{f.clash} {'' if f.short else 'with '}no __syncwarp between",
    "overlapping_writes": lambda f: (
        f"{f.act} {f.where}, which another thread has written{' at' if f.short else ','} {f.other}"
    ),
    "write_to_input": lambda f: f"{f.act} {f.where}, which is an input",
    "in_flight": lambda f: unit_findings.in_flight(f),
    "divergent_aligned": lambda f: divergent_aligned(f.record, f.other_place),
    "too_many_registers": lambda f: too_many_registers(f.record),
    "divergent_barrier": lambda f: divergent_barrier(f),
    "bad_free": lambda f: bad_free(f),
    "stack_overflow": lambda f: (
        f"the stack has {f.record['detail']} bytes, and {f.record['bytes']} more are needed; the launch was"
        " stopped (on a GPU, cudaDeviceSetLimit with cudaLimitStackSize gives it more)"
    ),
    "assertion": lambda f: f.assertion,
    "trap": lambda f: trap(f),
    "deadlock": lambda f: deadlock(f),
    "endless_loop": lambda f: (
        "this loop never ends: it comes back to where it was"
        if int(f.record["detail"])
        else "the instruction budget of a warp is used up; the launch was stopped"
    ),
    "same_value": lambda f: (
        f"{f.act} {f.where}, where {f.other} has stored the same value, and nothing orders the two"
    ),
}


def missing(fault: Fault) -> str:
    """What would order the two accesses of a race."""
    if fault.record["other_block"]:
        return "nothing orders the two blocks" if fault.short else "and nothing orders the two blocks"
    barrier = unit_findings.missing_barrier(fault) or "no __syncthreads between"
    return barrier if fault.short else f"with {barrier}"


def deadlock(fault: Fault) -> str:
    if int(fault.record["act"]):
        return unit_findings.deadlock(fault)
    number, arrived, expected, resident = (
        int(fault.record[name]) for name in ("detail", "extent", "extent_bytes", "bytes")
    )
    held = (
        f"; a GPU holds {resident} blocks of this kernel at once, and the others never begin"
        if resident
        else ""
    )
    if number == NONE:
        return f"waits in this loop for memory that nobody changes{held}"
    if not expected:
        return f"waits at this barrier, which the others never reach{held}"
    return f"waits at barrier {number} for {expected} threads, {arrived} have arrived, and no more will{held}"


UNSET = {
    RESULTS: "uses what a function returned without a value",
    ARGUMENTS: "uses an argument that was handed over without a value",
}
"""Of the areas that calls share."""


def bad_free(fault: Fault) -> str:
    if fault.of_heap == 2:
        return "frees what has been freed"
    if fault.of_heap:
        return f"frees {fault.where}, not its start"
    return f"frees {fault.where}, which malloc did not give"


def trap(fault: Fault) -> str:
    address = int(fault.record["bytes"]) | int(fault.record["extent_bytes"]) << 32
    called = f"calls a function at {address:#x}, where there is none"
    beyond = f"goes to entry {address} of a table of branches, which has less"
    what = ("a trap was executed", "a brkpt was executed, with no debugger to stop in", called, beyond)
    return f"{what[int(fault.record['detail'])]}; the launch was stopped"


def uninitialized(fault: Fault) -> str:
    line, space = int(fault.record["other_line"]), int(fault.record["space"])
    use, read = fault.sources(line), fault.sources(int(fault.record["line"]))
    used = f"; used at {use}" if line and (use.file, use.line) != (read.file, read.line) else ""
    followed = int(fault.record["detail"])
    if space == Space.GENERIC and followed:
        return f"takes the value of a lane outside its mask, which is undefined{used}"
    if space == Space.GENERIC:
        return "uses a variable that nothing has written"
    if space == Space.SHARED and line and not followed:
        return (
            f"{fault.act} {fault.where}, where a value that nothing has written was stored by {fault.other}"
        )
    if fault.variable_name in UNSET:
        return UNSET[fault.variable_name]
    return f"{fault.act} {fault.where}, which nothing has written{used}"


def misaligned(fault: Fault) -> str:
    stride = int(fault.record["detail"])
    if stride:
        return (
            f"{fault.act} a tile at {fault.where} whose rows are {stride} bytes apart, which is not a"
            " multiple of 16 bytes"
        )
    return f"{fault.act} {fault.bytes} of {fault.where}, which is not a multiple of {fault.bytes}"


def divergent_barrier(fault: Fault) -> str:
    if int(fault.record["detail"]):
        asked = f"waits at barrier {fault.record['extent']} for {fault.record['extent_bytes']} threads"
        return f"{asked}; there are barriers 0 to 15, for multiples of 32 threads"
    line, warp, lane = (int(fault.record[name]) for name in ("other_line", "other_warp", "other_lane"))
    there = fault.sources(line)
    return (
        f"warp {warp} lane {lane} waits at another barrier,"
        f" {there.place if fault.short and there.place else there}"
    )
