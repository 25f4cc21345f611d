"""How much of a main loop's time is multiply-add, by a model of the ports of the register file.

A quarter of an SM with 128 fp32 lanes starts an FFMA in each cycle, if the operands are there. Its registers
are in two banks, those with even and those with odd numbers, and each bank gives one operand per cycle. An
FFMA takes three. What the FFMA right before it has left for it (`.reuse` in SASS) costs nothing. So an FFMA
takes as many cycles as the bank that it reads most from, and at least one. Any other instruction takes one
cycle and ends the reuse.

Nothing waits in the model. Whether anything has to is a second question: how many loads of shared memory are
needed before they can be there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Iterator, Sequence

from tir_schedules.compiler.sass import disassemble, loop_with_most
from tir_schedules.model.gpus import known_sm
from tir_schedules.model.kernel import Binary

FFMA, LOAD, IN_PTX = "FFMA", "LDS", "fma.rn.f32"
LANES = 128
"""fp32 multiply-adds per cycle of an SM to which the model applies: with fewer a warp's FFMA takes two."""

LATENCY = 32
"""Cycles, about, until a load of shared memory is there."""

REGISTER = re.compile(r"[-|]*R(\d+)(\.reuse)?\b")
NUMBER = re.compile(r"\bR(\d+)\b")
WIDTH = re.compile(r"\.(64|128)\b")


@dataclass(frozen=True)
class MainLoop:
    """The loop with most FFMA. ffma, others: its instructions. cycles: those that its FFMA take. loads: its
    loads of shared memory. hurried: those needed within LATENCY cycles."""

    ffma: int
    others: int
    cycles: int
    loads: int = 0
    hurried: int = 0

    @property
    def issue(self) -> float:
        """The share of FFMA among its instructions: no order of registers gets beyond that."""
        return self.ffma / (self.ffma + self.others)

    @property
    def predicted(self) -> float:
        """The share of the fp32 peak that the model predicts."""
        return self.ffma / (self.cycles + self.others)


def main_loop(binary: Binary) -> MainLoop | None:
    """The main loop of a kernel. None if no loop has an FFMA, or the model does not apply to the
    architecture. MissingTool without nvdisasm."""
    sm = known_sm(binary.kernel.arch)
    if not sm or sm.lanes != LANES or IN_PTX not in binary.ptx:
        return None
    return simulate_ports(loop_with_most(disassemble(binary), FFMA, innermost=True))


def simulate_ports(code: Sequence[str]) -> MainLoop | None:
    """The model on the instructions of a loop, without their predicates. None where none is an FFMA."""
    ffma = sum(is_ffma(instruction) for instruction in code)
    if not ffma:
        return None
    cycles = list(cycles_of(code))
    needed = list(until_needed(code, cycles))
    others = len(code) - ffma
    return MainLoop(ffma, others, sum(cycles) - others, len(needed), sum(n < LATENCY for n in needed))


def is_ffma(instruction: str) -> bool:
    return instruction.split()[0].partition(".")[0] == FFMA


def cycles_of(code: Sequence[str]) -> Iterator[int]:
    """Cycles of each instruction."""
    kept: dict[int, str] = {}  # by place among the operands
    for instruction in code:
        if not is_ffma(instruction):
            kept = {}
            yield 1
            continue
        operands = enumerate(instruction.split(",")[1:])
        found = {place: match for place, text in operands if (match := REGISTER.match(text.strip()))}
        read = {match[1] for place, match in found.items() if kept.get(place) != match[1]}
        odd = sum(int(number) % 2 for number in read)
        yield max(1, odd, len(read) - odd)
        kept = {place: match[1] for place, match in found.items() if match[2]}


def until_needed(code: Sequence[str], cycles: Sequence[int]) -> Iterator[int]:
    """For each load of shared memory, the cycles until an instruction reads its result, in this iteration of
    the loop or the next."""
    read = [set(map(int, NUMBER.findall(instruction.partition(",")[2]))) for instruction in code] * 2
    start = [0, *accumulate([*cycles, *cycles])]
    for place, instruction in enumerate(code):
        opcode, _, operands = instruction.partition(" ")
        first = REGISTER.match(operands.strip())
        if opcode.partition(".")[0] != LOAD or not first:
            continue
        width = WIDTH.search(opcode)
        brought = {int(first[1]) + number for number in range(int(width[1]) // 32 if width else 1)}
        for later in range(place + 1, place + 1 + len(code)):
            if read[later] & brought:
                yield start[later] - start[place]
                break
