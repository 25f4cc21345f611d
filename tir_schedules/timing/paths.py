"""What each warp of a block executes of the SASS, from the basic blocks of PTX that the CPU machine executed.

A walk through the SASS, guided by the PTX. Instructions with an effect (accesses, barriers, products) keep
their PTX line, whatever ptxas unrolls, reorders or predicates. They are the landmarks. At a branch the walk
goes where the next landmarks are those that the warp met next in the PTX. A body that ptxas unrolled has
each landmark several times, and is entered while that many turns are left.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median_low
from typing import Sequence

import numpy as np

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Steps, Watch
from tir_schedules.model.workload import Arguments
from tir_schedules.timing.listing import Instruction, listing
from tir_schedules.timing.pipes import Pipe

LANDMARKS = {
    Pipe.SHARED, Pipe.GLOBAL, Pipe.TENSOR, Pipe.WARPGROUP, Pipe.EXCHANGE, Pipe.UNITS,
}  # fmt: skip
"""Pipes of instructions that ptxas neither drops nor moves out of their turn of a loop."""

BARRIERS = ("BAR", "UCGABAR_ARV", "UCGABAR_WAIT")
NO_LANDMARKS = ("CCTL", "ERRBAR", "CGAERRBAR", "MEMBAR", "FENCE", "USETMAXREG", "UTMACMDFLUSH")
"""Those that ptxas adds beside others."""

ACCESSES = {
    "LDS": ("shared_load",), "LDSM": ("ldmatrix",), "STS": ("shared_store",), "STSM": ("shared_store",),
    "ATOMS": ("shared_atomic",), "LDGSTS": ("shared_cp_async",), "LDG": ("global_load",),
    "LD": ("global_load", "shared_load"), "STG": ("global_store",), "ST": ("global_store", "shared_store"),
    "ATOM": ("global_atomic", "shared_atomic"), "ATOMG": ("global_atomic",), "RED": ("global_atomic",),
    "REDG": ("global_atomic",),
}  # fmt: skip
"""Opcode -> classes of access that it makes, see Counters."""

FRAGMENTS = re.compile(r"\bwmma\.(?:load|store|mma)\b")
"""PTX of which one instruction is several of SASS."""

WAITS = re.compile(r"\bmbarrier\.(try|test)_wait\b")
MOST = 1 << 22
"""Basic blocks of a block of threads that are kept."""

SKIPPED = 4
"""Turns without a landmark in a stretch of SASS that are looked past, and once more as many as it has; and
turns that were passed over, to which the walk may come back."""

WEAK = 0.5
"""What it costs to pass over a turn without an access, barrier or product, where one with some costs 1; and
how well a stretch fits whose landmarks are all further ahead."""

LONE = 2
"""Instructions of a basic block without any that may be passed over for nothing."""

AT_THE_END = 0.9
"""How well the end fits where the warp meets no more accesses, barriers or products."""

DEPTH = 8
"""Blocks without landmarks that are looked through at a branch."""


@dataclass(frozen=True)
class WarpPath:
    """What a warp executes. numbers: of the instructions, in order. accesses: for each of them the number of
    its row in `Steps.made`, -1 for none. found, missed: accesses, barriers and products of the
    SASS on the way that the warp meets in the PTX there, and that it does not; left: basic blocks of PTX with
    some that the walk never came to."""

    warp: int
    numbers: np.ndarray = field(repr=False)
    accesses: np.ndarray = field(repr=False)
    found: int
    missed: int
    left: int


@dataclass(frozen=True)
class BlockPaths:
    """The paths of a block's warps, and what its accesses cost. code: the instructions that numbers mean."""

    code: list[Instruction] = field(repr=False)
    warps: tuple[WarpPath, ...]
    steps: Steps = field(repr=False)

    @property
    def executed(self) -> Counter[str]:
        """How often the warps execute each opcode, without modifiers."""
        counts: Counter[str] = Counter()
        for path in self.warps:
            numbers, times = np.unique(path.numbers, return_counts=True)
            for number, count in zip(numbers.tolist(), times.tolist()):
                counts[self.code[number].name] += count
        return counts

    @property
    def agreement(self) -> float:
        """The share of landmarks on the way that PTX and SASS agree in, 0 to 1."""
        found = sum(path.found for path in self.warps)
        return found / max(1, found + sum(path.missed + path.left for path in self.warps))


def follow(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], block: Dim3 = (0, 0, 0)
) -> BlockPaths:
    """Executes one block on the CPU machine, and tells what its warps execute of the SASS.

    arguments, outputs: as `CpuMachine.run` takes them. CheckFailed where there is more than can be kept.
    """
    execution = CpuMachine().run(binary, arguments, outputs, watch=Watch(block, limit=MOST, steps=True))
    assert execution.steps is not None, "it was told to"
    if not execution.steps.whole:
        raise CheckFailed(
            f"{binary.kernel.label}: block {','.join(map(str, block))} executes more than {MOST} basic blocks"
            " or accesses: name a smaller shape"
        )
    return paths_of(binary, execution.steps)


def paths_of(binary: Binary, steps: Steps) -> BlockPaths:
    """The same of steps that are known."""
    code = listing(binary)
    ptx = binary.ptx.splitlines()
    polled = {
        number
        for number, lines in enumerate(steps.lines)
        if any(WAITS.search(ptx[line - 1]) for line in lines if 0 < line <= len(ptx))
    }
    program = Program(binary, code, steps)
    table = steps.table
    warps = []
    for warp in np.unique(table["warp"]).tolist():
        warps.append(Walk(program, steps, warp, polled).done())
    return BlockPaths(code, tuple(warps), steps)


@dataclass(frozen=True)
class Stretch:
    """A basic block of SASS. first, end: numbers of its instructions. marks: number and PTX line of its
    landmarks, and whether they depend on a predicate. after: blocks that may follow, where its last branch
    goes first. turn: whether the last instruction decides between two."""

    first: int
    end: int
    marks: tuple[tuple[int, int, bool], ...]
    after: tuple[int, ...]


class Program:
    """The SASS as basic blocks, and the PTX lines that are landmarks."""

    def __init__(self, binary: Binary, code: list[Instruction], steps: Steps):
        self.code = code
        entry, arch, ptx = binary.kernel.entry, binary.kernel.arch, binary.ptx.splitlines()
        self.block_of = {line: number for number, lines in enumerate(steps.lines) for line in lines}
        """PTX line -> number of its basic block of PTX."""
        self.strong = {one.ptx_line for one in code if is_landmark(one)} & self.block_of.keys()
        self.firm = {self.block_of[line] for line in self.strong}
        there = {one.ptx_line for one in code if is_work(one)} & self.block_of.keys()
        self.weak = {line for line in there if self.block_of[line] not in self.firm}
        """Lines of a basic block that has no landmarks: all that the SASS has are some."""
        self.lines = self.strong | self.weak
        self.sizes = Counter(self.block_of[line] for line in self.lines)
        self.fragments = {line for line in self.lines if FRAGMENTS.search(ptx[line - 1])}
        self.sums = {line for line in self.fragments if "wmma.mma" in ptx[line - 1]}
        self.products = 4 if arch == "sm_75" else 2  # HMMA of a wmma.mma
        begins = {0, *(one.target for one in code if one.target is not None)}
        begins |= {one.number + 1 for one in code if splits(one)} & {*range(len(code))}
        begins |= {b.number for a, b in zip(code, code[1:]) if a.function != b.function}
        self.begins = sorted(begins)
        ends = [*self.begins[1:], len(code)]
        self.stretches = [self.stretch(first, end) for first, end in zip(self.begins, ends)]
        self.entry = self.at(next(one.number for one in code if one.function == entry))
        self.ahead = lru_cache(None)(self.marks_ahead)

    def copies(self, times: Counter[int]) -> dict[int, int]:
        """How many turns of each basic block of PTX are in a stretch of SASS that has landmarks so often."""
        counts: dict[int, list[int]] = {}
        for line, count in times.items():
            if line not in self.fragments:
                counts.setdefault(self.block_of[line], []).append(count)
        found = {block: median_low(each) for block, each in counts.items()}
        for line, count in times.items():
            if self.block_of[line] not in counts:
                block = self.block_of[line]
                found[block] = max(found.get(block, 1), count // self.products if line in self.sums else 1)
        return found

    def at(self, number: int) -> int:
        """The block that an instruction is in."""
        return bisect_right(self.begins, number) - 1

    def stretch(self, first: int, end: int) -> Stretch:
        marks, seen = [], Counter()
        for one in self.code[first:end]:
            strong = is_landmark(one)
            if one.ptx_line not in (self.strong if strong else self.weak) or not is_work(one):
                continue
            if strong or not seen[one.ptx_line]:
                marks.append((one.number, one.ptx_line, bool(one.predicate)))
            seen[one.ptx_line] += not strong
        last = self.code[end - 1]
        after = [self.at(last.target)] if last.branches and last.target is not None else []
        if not last.ends and end < len(self.code):
            after.append(self.at(end))
        return Stretch(first, end, tuple(marks), tuple(dict.fromkeys(after)))

    def marks_ahead(self, block: int) -> tuple[tuple[tuple[int, int, bool], ...], int]:
        """Landmarks from the beginning of a block to the next branch that decides, and the block with that
        branch."""
        marks, seen = [], set()
        while block not in seen:
            seen.add(block)
            stretch = self.stretches[block]
            marks += stretch.marks
            if len(stretch.after) != 1 or self.code[stretch.end - 1].name == "CALL":
                break
            block = stretch.after[0]
        return tuple(marks), block


def splits(one: Instruction) -> bool:
    """Whether a basic block ends behind an instruction."""
    return one.branches or one.ends or one.name in ("EXIT", "RET", "BSYNC", "BREAK")


def is_work(one: Instruction) -> bool:
    """Whether an instruction is more than control flow."""
    return one.kind.pipe is not Pipe.CONTROL or one.name in BARRIERS


def is_landmark(one: Instruction) -> bool:
    """Whether ptxas leaves an instruction in its turn of a loop."""
    if one.name in NO_LANDMARKS or (one.name == "LDS" and one.operands[0] == "RZ"):
        return False
    return one.kind.pipe in LANDMARKS or one.name in BARRIERS


class Walk:
    """One warp's way through the SASS. turns: the basic blocks of PTX that it executed and that have
    landmarks. place: the last of them that the walk has met; met: of each, the lines that it met."""

    def __init__(self, program: Program, steps: Steps, warp: int, polled: set[int]):
        self.program, self.steps, self.warp = program, steps, warp
        rows = np.flatnonzero(steps.table["warp"] == warp)
        blocks = steps.table["block"][rows].tolist()
        made = [*steps.table["made"].tolist(), len(steps.made)]
        marked = {program.block_of[line] for line in program.lines}
        self.turns: list[int] = []
        self.ranges: list[tuple[int, int]] = []
        for block, row in zip(blocks, rows.tolist()):
            if block not in marked:
                continue
            if block in polled and self.turns and self.turns[-1] in polled:
                if block == self.turns[-1]:
                    del self.turns[-1], self.ranges[-1]
                elif sum(line in program.lines for line in steps.lines[block]) == 1:
                    continue
            self.turns.append(block)
            self.ranges.append((made[row], made[row + 1]))
        self.met: dict[int, Counter[int]] = {}
        self.used: set[int] = set()
        self.place = 0
        self.numbers: list[int] = []
        self.accesses: list[int] = []
        self.found = self.missed = 0

    def done(self) -> WarpPath:
        """Walks from the entry to the end."""
        program = self.program
        block: int | None = program.entry
        back: list[int] = []
        self.others: dict[int, None] = {}
        limit = 64 * (len(self.turns) + len(program.stretches)) + 1024
        while block is not None and limit:
            limit -= 1
            stretch = program.stretches[block]
            self.take(stretch)
            block = self.following(stretch, back)
        left = sum(block in program.firm and turn not in self.met for turn, block in enumerate(self.turns))
        return WarpPath(
            self.warp, np.array(self.numbers, np.int32), np.array(self.accesses, np.int64), self.found,
            self.missed, left,
        )  # fmt: skip

    def following(self, stretch: Stretch, back: list[int]) -> int | None:
        """The block that the walk goes to behind a stretch; None at the end. back: where calls return to.

        Where lanes part, both ways are walked, one after the other: the second where the first ends, or
        where lanes meet again.
        """
        program, last = self.program, self.program.code[stretch.end - 1]
        if last.name == "CALL" and last.target is not None and stretch.end < len(program.code):
            called, behind = program.at(last.target), program.at(stretch.end)
            if last.predicate and self.ahead_of(behind) > self.ahead_of(called):
                return behind
            back.append(behind)  # sm_80 has calls that are jumps: nothing returns to it
            return called
        if last.name == "RET" and back:
            return back.pop()
        if last.name == "EXIT" and not last.ends and self.ahead_of(stretch.after[0])[0] > 0:
            return stretch.after[0]
        if last.name == "EXIT" or not stretch.after:
            return self.other_than(None)
        if last.name == "BSYNC":
            return self.other_than(stretch.after[0])
        if len(stretch.after) == 1:
            return stretch.after[0]
        target, other = stretch.after
        takes = self.ahead_of(target) > self.ahead_of(other)
        for each in (target, other):
            self.others.pop(each, None)
        self.others[other if takes else target] = None
        return target if takes else other

    def other_than(self, block: int | None) -> int | None:
        """A block that a branch has not gone to, and that fits better to what the warp meets next; else this
        one."""
        best, fits = block, (0.0, 0) if block is None else self.ahead_of(block)
        for other in reversed(self.others):
            if (found := self.ahead_of(other)) > fits and found[1]:
                best, fits = other, found
        if best != block and best is not None:
            del self.others[best]
        return best

    def ahead_of(self, block: int, depth: int = DEPTH) -> tuple[float, int]:
        """How well a block and what follows it fit to what the warp meets next: the share of landmarks that
        fit, times the share of turns that they do not pass over; and their number."""
        marks, last = self.program.ahead(block)
        needed = [(line, optional) for _, line, optional in marks]
        if not any(not optional for _, optional in needed):
            after = self.program.stretches[last].after
            if not after or not depth:
                return (0.0, 0) if after or self.to_come else (AT_THE_END, 0)
            return max(self.ahead_of(each, depth - 1) for each in after)
        fits = self.fitting([line for line, _ in needed])
        certain = [fit for fit, (_, optional) in zip(fits, needed) if not optional]
        count = sum(fit is not None for fit in certain)
        ahead = {turn for turn in self.known([*zip((line for line, _ in needed), fits)]) if turn > self.place}
        hits, skipped = len(ahead), 0.0
        for turn in range(self.place + 1, max(ahead, default=self.place)):
            if turn not in ahead and turn not in self.met:
                skipped += 1 if self.turns[turn] in self.program.firm else 0 if self.is_lone(turn) else WEAK
        here = any(fit is not None and fit <= self.place for fit in fits)
        passed = hits / (hits + skipped) if hits else 1 if here else WEAK
        return count / len(certain) * passed, count

    @property
    def to_come(self) -> bool:
        """Whether the warp still meets accesses, barriers or products."""
        later = range(self.place + 1, len(self.turns))
        return any(self.turns[turn] in self.program.firm and turn not in self.met for turn in later)

    def is_next(self, turn: int, last: int) -> bool:
        """Whether the warp has met what lies between a turn and an earlier one; lone instructions, which
        ptxas may have moved ahead, do not count."""
        return all(each in self.met or self.is_lone(each) for each in range(last + 1, turn))

    def is_lone(self, turn: int) -> bool:
        block = self.turns[turn]
        return block not in self.program.firm and self.program.sizes[block] <= LONE

    def known(self, fits: list[tuple[int, int | None]]) -> list[int]:
        """The turns of which a stretch has more than a few landmarks, as ptxas may move a few ahead."""
        found = Counter(turn for _, turn in dict.fromkeys(fits) if turn is not None)
        sizes, firm = self.program.sizes, self.program.firm
        return [
            turn for turn, count in sorted(found.items())
            if (block := self.turns[turn]) in firm and 8 * count >= sizes[block]
            or 2 * count > sizes[block] > 1 or self.is_next(turn, self.place)
        ]  # fmt: skip

    def reached(self, fits: list[tuple[int, int | None]]) -> int:
        """The last turn that a stretch leads to. What is no access, barrier or product may be moved ahead
        altogether: it leads to the next turn alone."""
        last = self.place
        for turn in self.known(fits):
            if self.turns[turn] in self.program.firm or self.is_next(turn, last):
                last = max(last, turn)
        return last

    def fitting(self, lines: list[int]) -> list[int | None]:
        """For each landmark of a stretch of SASS, the turn in which the warp meets it; None where it does
        not."""
        block_of, times = self.program.block_of, Counter(lines)
        copies = self.program.copies(times)
        end = min(len(self.turns), self.place + 2 * sum(copies.values()) + SKIPPED)
        behind = (turn for turn in range(max(0, self.place - SKIPPED), self.place) if turn not in self.met)
        window = [*behind, *range(self.place, end)]
        turns_of = {block: [turn for turn in window if self.turns[turn] == block] for block in copies}
        seen: Counter[int] = Counter()
        found: list[int | None] = []
        for line in lines:
            block, nth = block_of[line], seen[line]
            seen[line] += 1
            # Where one instruction of PTX is several of SASS, these share its turns.
            per_turn = max(1, times[line] // copies[block])
            free = [turn for turn in turns_of[block] if self.met.get(turn, NONE)[line] < per_turn]
            at = nth // per_turn
            found.append(free[at] if at < min(len(free), copies[block]) else None)
        return found

    def take(self, stretch: Stretch) -> None:
        """Executes a basic block of SASS."""
        begin = len(self.numbers)
        self.numbers += range(stretch.first, stretch.end)
        self.accesses += [-1] * (stretch.end - stretch.first)
        if not stretch.marks:
            return
        turns = self.fitting([line for _, line, _ in stretch.marks])
        for (number, line, optional), turn in zip(stretch.marks, turns):
            if turn is None:
                self.missed += not optional and line in self.program.strong
                continue
            self.found += line in self.program.strong
            self.met.setdefault(turn, Counter())[line] += 1
            self.accesses[begin + number - stretch.first] = self.access(number, line, turn)
        self.place = self.reached([(line, turn) for (_, line, _), turn in zip(stretch.marks, turns)])

    def access(self, number: int, line: int, turn: int) -> int:
        """The access that an instruction makes in a turn; ptxas may have merged those of several lines."""
        kinds = ACCESSES.get(self.program.code[number].name)
        if not kinds:
            return -1
        first, end = self.ranges[turn]
        counters = self.steps.made["counter"][first:end].tolist()
        open_ = [
            (abs(self.steps.counted[counter][0] - line), row)
            for row, counter in enumerate(counters, first)
            if row not in self.used and self.steps.counted[counter][1] in kinds
        ]
        if not open_:
            return -1
        row = min(open_)[1]
        self.used.add(row)
        return row


NONE: Counter[int] = Counter()
