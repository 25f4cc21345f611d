"""From the engine's counts per access and per basic block to Counters, in all and per CUDA source line."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tir_schedules.machines.cpu.findings import Sources
from tir_schedules.machines.cpu.instructions import FORMS, form_of
from tir_schedules.machines.cpu.lane_code import HALVES, is_float
from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.machines.cpu.ptx import Instruction
from tir_schedules.model.counters import Access, Counters, LineCounters

MIX_BY_TYPE = ("fp16", "fp32", "fp64", "int")
MIX = tuple(dict.fromkeys([form.mix for form in FORMS.values() if form.mix] + list(MIX_BY_TYPE)))
"""Classes of instructions in the counters' mix."""


def instruction_class(instruction: Instruction) -> str:
    """One of MIX; arithmetic goes by its type."""
    known = form_of(instruction).mix
    if known:
        return known
    kind = instruction.types[-1] if instruction.types else ""
    if kind.removesuffix("x2") in HALVES:
        return "fp16"
    if is_float(kind):
        return "fp64" if kind == "f64" else "fp32"
    return "int"


def counters_of(
    lowered: LoweredKernel, sources: Sources, accesses: np.ndarray, blocks: np.ndarray
) -> Counters:
    """accesses: rows of COUNTER, one for each counted access. blocks: rows of BLOCK_COUNT."""
    by_line: dict[tuple[str, int], dict[str, Access]] = defaultdict(lambda: defaultdict(Access))
    total: dict[str, Access] = defaultdict(Access)
    for access, (requests, cost, ideal) in zip(lowered.counted, accesses.tolist()):
        if requests:
            place, counted = sources(access.instruction.line), Access(requests, cost, ideal)
            by_line[place.file, place.line][access.kind] += counted
            total[access.kind] += counted
    mix_by_line: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    mix: dict[str, int] = defaultdict(int)
    issued = executed = 0
    for block, (warps, threads) in zip(lowered.kernel.blocks, blocks.tolist()):
        if not warps:
            continue
        for instruction in block.all_instructions:
            kind, place = instruction_class(instruction), sources(instruction.line)
            mix[kind] += threads
            mix_by_line[place.file, place.line][kind] += threads
            issued, executed = issued + warps, executed + threads
    places = sorted(by_line.keys() | mix_by_line.keys())
    lines = tuple(LineCounters(*place, dict(by_line[place]), dict(mix_by_line[place])) for place in places)
    return Counters(dict(total), dict(mix), issued, executed, lines)
