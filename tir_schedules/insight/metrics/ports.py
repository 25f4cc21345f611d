"""How much of a main loop's time is multiply-add, by a model of the ports of the register file.

A quarter of an SM with 128 fp32 lanes starts an FFMA in each cycle, if the operands are there. Its registers
stand in two banks, those of even and those of odd numbers, and each bank gives one operand per cycle. An FFMA
takes three. What the FFMA right before it has left for it (`.reuse` in SASS) costs nothing. So an FFMA takes
as many cycles as the bank that it reads most from, and at least one. Any other instruction takes one cycle
and ends the reuse.

It is a model: nothing waits in it, neither for memory nor for results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

from tir_schedules.compiler.sass import disassemble, loop_with_most
from tir_schedules.model.gpus import known_sm
from tir_schedules.model.kernel import Binary

FFMA, IN_PTX = "FFMA", "fma.rn.f32"
LANES = 128
"""fp32 multiply-adds per cycle of an SM to which the model applies: with fewer a warp's FFMA takes two."""

REGISTER = re.compile(r"[-|]*R(\d+)(?:\.\w+)*?(\.reuse)?\b")


@dataclass(frozen=True)
class MainLoop:
    """The loop with most FFMA. ffma, others: its instructions. cycles: those that its FFMA take, by the
    model."""

    ffma: int
    others: int
    cycles: int

    @property
    def issue(self) -> float:
        """The share of FFMA among its instructions: no order of registers gets beyond that."""
        return self.ffma / (self.ffma + self.others)

    @property
    def predicted(self) -> float:
        """The share of the fp32 peak that the model predicts."""
        return self.ffma / (self.cycles + self.others)


def main_loop(binary: Binary) -> MainLoop | None:
    """That of a kernel. None where no loop has an FFMA, or the model does not apply to the architecture.

    MissingTool without nvdisasm.
    """
    sm = known_sm(binary.kernel.arch)
    if not sm or sm.lanes != LANES or IN_PTX not in binary.ptx:
        return None
    return by_ports(loop_with_most(disassemble(binary), FFMA))


def by_ports(code: Sequence[str]) -> MainLoop | None:
    """The model on the instructions of a loop, without their predicates. None where none is an FFMA."""
    ffma = cycles = 0
    kept: dict[int, str] = {}  # by place among the operands
    for instruction in code:
        opcode, _, rest = instruction.partition(" ")
        if opcode.partition(".")[0] != FFMA:
            kept = {}
            continue
        operands = {place: REGISTER.match(text.strip()) for place, text in enumerate(rest.split(",")[1:])}
        found = {place: match for place, match in operands.items() if match}
        read = {match[1] for place, match in found.items() if kept.get(place) != match[1]}
        odd = sum(int(number) % 2 for number in read)
        ffma, cycles = ffma + 1, cycles + max(1, odd, len(read) - odd)
        kept = {place: match[1] for place, match in found.items() if match[2]}
    return MainLoop(ffma, len(code) - ffma, cycles) if ffma else None
