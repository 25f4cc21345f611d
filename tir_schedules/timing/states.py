"""What warps wait for, by the names that Nsight Compute has for the states of a warp, and how busy the parts
of an SM are."""

from __future__ import annotations

from collections import Counter
from typing import Mapping, Sequence

from tir_schedules.timing.abi import Pipes, Reason
from tir_schedules.timing.clocks import tensor_share
from tir_schedules.timing.gpus import QUARTERS, GpuTable
from tir_schedules.timing.listing import Instruction
from tir_schedules.timing.simulation import PIPES, Simulated, interval_of

SELECTED = "selected"
STATES = {
    "dependency": "wait",
    "short_board": "short scoreboard",
    "long_board": "long scoreboard",
    "barrier": "barrier",
    "queue": "MIO throttle",
    "pipe": "math pipe throttle",
    "banks": "dispatch stall",
    "fetch": "no instruction",
    "not_selected": "not selected",
    "products": "GMMA",
    "mbarrier": "mbarrier",
    "copies": "bulk copies",
    "cluster": "cluster barrier",
}
"""Reason -> Nsight Compute's name of the state. It has no name of its own for the last three."""

MEANINGS = {
    SELECTED: "an instruction is issued",
    "wait": "stall cycles that ptxas wrote, for results of fixed latency",
    "short scoreboard": "shared memory, a special function, a shuffle",
    "long scoreboard": "global memory",
    "barrier": "warps that are not there yet",
    "MIO throttle": "the queue for memory is full",
    "math pipe throttle": "the unit takes no instruction yet",
    "dispatch stall": "register banks",
    "no instruction": "the instruction cache",
    "not selected": "another warp issues",
    "GMMA": "products of the warpgroup",
    "mbarrier": "a phase: data that TMA brings, or other warps",
    "bulk copies": "TMA has not read yet what it is to store",
    "cluster barrier": "blocks of the cluster that are not there yet",
}

UNITS = {
    Pipes.PIPE_FMA: "fp32 units",
    Pipes.PIPE_FMA_HEAVY: "fp32 units",
    Pipes.PIPE_ALU: "integer units",
    Pipes.PIPE_HALF: "fp16 units",
    Pipes.PIPE_DOUBLE: "fp64 units",
    Pipes.PIPE_SPECIAL: "special functions",
    Pipes.PIPE_TENSOR: "tensor cores",
}
HALVES = {Pipes.PIPE_FMA: 2, Pipes.PIPE_FMA_HEAVY: 2}
"""How many instructions a pipe of a sub-core works on at once, where it is more than one."""

ISSUE, DATA = "issue slots", "shared memory and L1"
BEYOND = {"sm": "the SM's way to L2", "l2": "L2", "dram": "DRAM"}


def states_of(reasons: Mapping[str, int], issued: int) -> dict[str, int]:
    """Cycles of warps by state, those in which they issue first. reasons: cycles by Reason."""
    found = Counter({SELECTED: issued})
    for reason, cycles in reasons.items():
        found[STATES.get(reason, reason.replace("_", " "))] += cycles
    return dict(found)


def busy_of(
    done: Simulated, code: Sequence[Instruction], table: GpuTable, bound: str, read_bytes: float
) -> dict[str, float]:
    """The share of an SM's cycles in which a unit works, the busiest first. bound, read_bytes: what is behind
    L1, and what it delivers in a cycle."""
    cycles, taken = done.cycles, Counter[str]()
    for one, times in zip(code, done.issued.tolist()):
        pipe = PIPES.get(one.kind.pipe, Pipes.PIPE_CONTROL)
        if times and pipe in UNITS:
            taken[UNITS[pipe]] += times * interval_of(one, table) / HALVES.get(pipe, 1)
    shares = {name: amount / QUARTERS / cycles for name, amount in taken.items()}
    if products := tensor_share(code, done.issued, cycles, table):  # those of wgmma take no warp's pipe
        shares.setdefault(UNITS[Pipes.PIPE_TENSOR], products)
    shares[ISSUE] = done.issued.sum() / QUARTERS / cycles
    shares[DATA] = done.wavefronts / cycles
    shares[BEYOND.get(bound, bound)] = done.missed / read_bytes / cycles
    return {name: float(min(1, share)) for name, share in sorted(shares.items(), key=lambda one: -one[1])}


assert set(STATES) <= {one.name.lower() for one in Reason}
