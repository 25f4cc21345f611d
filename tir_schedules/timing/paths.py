"""What each warp of a block executes of the SASS, from the basic blocks of PTX that the CPU machine executed.

A walk through the SASS, guided by the PTX. Instructions with an effect (accesses, barriers, products) keep
their PTX line, whatever ptxas unrolls, reorders or predicates. They are the landmarks. At a branch the walk
goes where the next landmarks are those that the warp met next in the PTX. A body that ptxas unrolled has
each landmark several times, and is entered while that many turns are left.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Sequence

import numpy as np

from tir_schedules.errors import CheckFailed, one_line
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import NONE, Happening
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Steps, Watch
from tir_schedules.model.workload import Arguments
from tir_schedules.timing import abi
from tir_schedules.timing.abi import Ending
from tir_schedules.timing.library import library, pointer
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
    "SYNCS": ("INITIALISED", "ARRIVED", "EXPECTED", "PASSED"), "UTMALDG": ("BEGUN",), "UTMASTG": ("STORED",),
    "UTMAREDG": ("STORED",), "UBLKCP": ("BEGUN", "STORED"), "UBLKRED": ("STORED",), "BAR": ("MET",),
}  # fmt: skip
"""Opcode -> classes of access that it makes, see Counters; of a unit, what happens."""

FRAGMENTS = re.compile(r"\bwmma\.(?:load|store|mma)\b")
"""PTX of which one instruction is several of SASS."""

WAITS = re.compile(r"\bmbarrier\.(try|test)_wait\b")
MOST = 1 << 22
"""Basic blocks of a block of threads that are kept."""

BUDGET = 1 << 22
"""Instructions of PTX that a warp may execute."""

ENDLESS = ("endless_loop", "deadlock")
"""Findings on a block that does not end."""

FAILING = ("out_of_bounds", "misaligned", "stack_overflow", "assertion", "trap")
"""Findings with which a GPU ends a launch, so that it has no time."""

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

ENDINGS = {
    "CALL": Ending.WALK_CALL, "RET": Ending.WALK_RET, "EXIT": Ending.WALK_EXIT, "BSYNC": Ending.WALK_BSYNC,
}  # fmt: skip

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
        """The share of landmarks on the way that PTX and SASS agree in, 0 to 1; 1 where there are no
        landmarks."""
        found = sum(path.found for path in self.warps)
        lost = sum(path.missed + path.left for path in self.warps)
        return found / (found + lost) if lost else 1.0


def follow(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], block: Dim3 = (0, 0, 0), again: bool = True
) -> BlockPaths:
    """Executes one block on the CPU machine, and tells what its warps execute of the SASS.

    arguments, outputs: as `CpuMachine.run` takes them. A block that waits for others is executed among all.
    again: whether the launch follows itself, as `bench` has it: then a block that changes its input is
    executed twice, and the second time is told. Variables of the module begin anew. CheckFailed where there
    is more than can be kept, where the block does not end, and where it fails.
    """
    watch = Watch(block, limit=MOST, steps=True)
    execution, steps = watched(binary, arguments, outputs, watch, again)
    if not steps.ended and not fails(execution):
        execution, steps = watched(binary, arguments, outputs, replace(watch, among_all=True))
    where = f"{binary.kernel.label}: block {','.join(map(str, block))}"
    for finding in execution.findings:
        if finding.kind in ENDLESS:
            raise CheckFailed(
                f"{where} does not end within {BUDGET:,} instructions of a warp: it is too long, or waits for"
                " ever"
            )
        if finding.kind in FAILING:
            raise CheckFailed(f"{one_line(finding)}; a launch that fails has no time: see what `check` says")
    if not steps.whole:
        raise CheckFailed(
            f"{where} executes more than {MOST:,} basic blocks or accesses: name a smaller shape"
        )
    return paths_of(binary, steps)


def watched(
    binary: Binary,
    arguments: Arguments,
    outputs: Sequence[str],
    watch: Watch,
    again: bool = False,
    budget: int = BUDGET,
) -> tuple[Execution, Steps]:
    """An execution, and the steps of a block. The outputs stay as they were, because what one block leaves in
    counters and flags is not for the next that is watched. again: of a block that changes its input, the
    second execution, where it ends well. budget: of instructions of a warp."""
    before = {name: arguments[name].copy() for name in outputs}
    machine = CpuMachine().limited(1, budget)
    execution = machine.run(binary, arguments, outputs, watch=watch)
    steps = execution.steps
    assert steps is not None, "it was told to"
    if again and changes_its_input(steps):
        second = machine.run(binary, arguments, outputs, watch=watch, given=outputs)
        if second.steps is not None and second.steps.ended and not fails(second):
            execution, steps = second, second.steps
    for name, array in before.items():
        arguments[name][...] = array
    return execution, steps


def fails(execution: Execution) -> bool:
    """Whether a launch has no end, or ends with an error."""
    return any(finding.kind in (*ENDLESS, *FAILING) for finding in execution.findings)


def changes_its_input(steps: Steps) -> bool:
    """Whether a block stores where it has loaded. Not one with atomics, because counters and flags lead it:
    those are not as it left them when the next launch begins."""
    if not (steps.ended and steps.whole) or any(kind == "global_atomic" for _, kind in steps.counted):
        return False
    loaded, stored = (sectors(touched(steps, (kind,))) for kind in ("global_load", "global_store"))
    return bool(np.isin(loaded, stored).any())


def touched(steps: Steps, kinds: Sequence[str], what: Happening | None = None) -> np.ndarray:
    """The pieces of global memory that accesses of some classes touch, and those that units do."""
    numbers = [number for number, (_, kind) in enumerate(steps.counted) if kind in kinds]
    mine = np.isin(steps.made["counter"], numbers)
    if what is not None:
        mine |= steps.made["what"] == what
    made = steps.made[mine]
    counts = made["pieces"].astype(np.int64)
    begins = np.repeat(made["first_piece"] - (np.cumsum(counts) - counts), counts)
    return steps.pieces[begins + np.arange(counts.sum())]


def sectors(pieces: np.ndarray) -> np.ndarray:
    """Numbers of the sectors, 4 in a line."""
    lines = pieces["line"].astype(np.int64)
    return np.concatenate([4 * lines[pieces["sectors"] >> k & 1 > 0] + k for k in range(4)])


def paths_of(binary: Binary, steps: Steps) -> BlockPaths:
    """The same of steps that are known."""
    code = listing(binary)
    ptx = binary.ptx.splitlines()
    polled = {
        number
        for number, lines in enumerate(steps.lines)
        if any(WAITS.search(ptx[line - 1]) for line in lines if 0 < line <= len(ptx))
    }
    walks = Walks(Program(binary, code, steps), steps, polled)
    warps = np.unique(steps.table["warp"]).tolist()
    return BlockPaths(code, tuple(walks.walk(warp) for warp in warps), steps)


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
        self.spills = {
            one.number for one in code if one.name in ("LDL", "STL") and ".local" not in ptx[one.ptx_line - 1]
        }
        """Accesses to registers that ptxas keeps in memory: PTX has none there."""
        self.strong = {one.ptx_line for one in code if self.is_landmark(one)} & self.block_of.keys()
        self.firm = {self.block_of[line] for line in self.strong}
        there = {one.ptx_line for one in code if is_work(one)} & self.block_of.keys()
        self.weak = {line for line in there if self.block_of[line] not in self.firm}
        """Lines of a basic block that has no landmarks: all that the SASS has are some."""
        self.lines = self.strong | self.weak
        self.lines_of: dict[int, list[int]] = {}
        for line in sorted(self.lines):
            self.lines_of.setdefault(self.block_of[line], []).append(line)
        self.sizes = Counter({block: len(lines) for block, lines in self.lines_of.items()})
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

    def is_landmark(self, one: Instruction) -> bool:
        """Whether PTX and SASS both have an instruction, in the same turn of a loop."""
        return is_landmark(one) and one.number not in self.spills

    def stretch(self, first: int, end: int) -> Stretch:
        marks, seen = [], Counter()
        for one in self.code[first:end]:
            strong = self.is_landmark(one)
            if one.ptx_line not in (self.strong if strong else self.weak) or not is_work(one):
                continue
            if strong or not seen[one.ptx_line]:
                marks.append((one.number, one.ptx_line, bool(one.predicate)))
            seen[one.ptx_line] += not strong
        last = self.code[end - 1]
        after = [self.at(last.target)] if last.branches and last.target is not None else []
        if not last.ends and end < len(self.code):
            after.append(self.at(end))
        if len(after) > 1:
            after = [way for way in after if not self.is_rare(last, way)]
        return Stretch(first, end, tuple(marks), tuple(dict.fromkeys(after)))

    def is_rare(self, branch: Instruction, block: int) -> bool:
        """Whether a branch leads to a call for its own instruction of PTX, as where a quotient or a root
        is of denormal numbers."""
        begin, end = self.begins[block], [*self.begins[block + 1 :], len(self.code)][0]
        return any(one.name == "CALL" and one.ptx_line == branch.ptx_line for one in self.code[begin:end])

    def marks_ahead(self, block: int) -> tuple[tuple[tuple[int, int, bool], ...], int]:
        """Landmarks from the beginning of a block to the next branch that decides, and the block with that
        branch."""
        marks, seen = [], set()
        while block not in seen:
            seen.add(block)
            stretch = self.stretches[block]
            marks += stretch.marks
            if len(stretch.after) != 1 or self.code[stretch.end - 1].name in ("CALL", "EXIT"):
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


KINDS = sorted({kind for kinds in ACCESSES.values() for kind in kinds})
"""Classes of access, in the order of their bits."""


class Walks:
    """The walks of a block's warps, which walk.cpp does: how it goes is told there."""

    def __init__(self, program: Program, steps: Steps, polled: set[int]):
        self.program, self.steps = program, steps
        self.slots = {line: slot for lines in program.lines_of.values() for slot, line in enumerate(lines)}
        self.rules = np.zeros(1, abi.STRUCTURES["WalkRules"])
        self.rules[0] = (WEAK, AT_THE_END, SKIPPED, LONE, DEPTH, 1 << KINDS.index("PASSED"), 0)
        self.marks: list[tuple[int, ...]] = []
        self.stretches = np.zeros(len(program.stretches), abi.STRUCTURES["Stretch"])
        for row, stretch in zip(self.stretches, program.stretches):
            self.fill(row, stretch)
        self.marked = np.array(self.marks, abi.STRUCTURES["Mark"])
        self.turned = np.array(
            [
                (
                    program.sizes[block], block in program.firm, block in program.lines_of, block in polled,
                    sum(line in program.lines for line in lines) == 1,
                )
                for block, lines in enumerate(steps.lines)
            ],
            abi.STRUCTURES["Turned"],
        )  # fmt: skip
        self.executed = np.zeros(len(steps.table), abi.STRUCTURES["Executed"])
        self.executed["block"], self.executed["first"] = steps.table["block"], steps.table["made"]
        self.executed["end"][:-1] = steps.table["made"][1:]
        self.executed["end"][-1:] = len(steps.made)
        self.executed["lanes"] = steps.table["lanes"]
        self.made = made_by(steps)
        self.made["named"] = np.isin(self.made["line"], list(program.strong))

    def fill(self, row: np.void, stretch: Stretch) -> None:
        """A basic block of SASS as C++ takes it, with its landmarks and those ahead."""
        program, last = self.program, self.program.code[stretch.end - 1]
        row["first"], row["end"] = stretch.first, stretch.end
        row["marks"], row["marks_count"] = self.listed(stretch.marks)
        ahead, row["ahead_last"] = program.marks_ahead(program.at(stretch.first))
        row["ahead"], row["ahead_count"] = self.listed(ahead)
        row["ways"], row["conditional"] = len(stretch.after), bool(last.predicate)
        row["after"][: len(stretch.after)] = stretch.after
        row["kind"] = ENDINGS.get(last.name, Ending.WALK_ON)
        if last.name == "EXIT" and not last.ends:
            row["kind"] = Ending.WALK_EXIT_SOME
        if last.name == "CALL":
            if last.target is None or stretch.end == len(program.code):
                row["kind"] = Ending.WALK_ON
            else:
                row["target"], row["behind"] = program.at(last.target), program.at(stretch.end)

    def listed(self, marks: Sequence[tuple[int, int, bool]]) -> tuple[int, int]:
        """Add landmarks, of which each knows the others of its list; tells where, and how many."""
        program, first = self.program, len(self.marks)
        times = Counter(line for _, line, _ in marks)
        copies, seen = program.copies(times), Counter[int]()
        for number, line, optional in marks:
            block = program.block_of[line]
            # Where one instruction of PTX is several of SASS, these share its turns.
            per_turn = max(1, times[line] // copies[block])
            kinds = sum(1 << KINDS.index(kind) for kind in ACCESSES.get(program.code[number].name, ()))
            self.marks.append((
                number, line, block, self.slots[line], seen[line], per_turn, copies[block], kinds, optional,
                line in program.strong,
            ))  # fmt: skip
            seen[line] += 1
        return first, len(marks)

    def walk(self, warp: int) -> WarpPath:
        """From the entry to the end."""
        mine = self.executed[self.steps.table["warp"] == warp]
        figures = np.zeros(4, np.uint64)
        found = ctypes.c_void_p(library().walk(
            *map(pointer, (self.rules, self.stretches)), len(self.stretches),
            *map(pointer, (self.marked, self.turned)), len(self.turned), pointer(mine),
            ctypes.c_uint64(len(mine)), pointer(self.made), ctypes.c_uint64(len(self.made)),
            self.program.entry, pointer(figures),
        ))  # fmt: skip
        length, *counts = figures.tolist()
        numbers, accesses = np.empty(length, np.int32), np.empty(length, np.int32)
        library().walked(found, pointer(numbers), pointer(accesses))
        return WarpPath(warp, numbers, accesses.astype(np.int64), *counts)


def made_by(steps: Steps) -> np.ndarray:
    """Which line of PTX makes each access, and a bit for its class."""
    found = np.zeros(len(steps.made), abi.STRUCTURES["MadeBy"])
    lines = np.array([line for line, _ in steps.counted], np.uint32)
    bits = [1 << KINDS.index(kind) if kind in KINDS else 0 for _, kind in steps.counted]
    counters = steps.made["counter"]
    counted = counters != NONE
    found["line"][counted], found["kind"][counted] = (
        each[counters[counted]] for each in (lines, np.array(bits, np.uint32))
    )
    for happening in Happening:
        these = steps.made["what"] == happening
        found["line"][these] = steps.made["line"][these]
        found["kind"][these] = 1 << KINDS.index(happening.name) if happening.name in KINDS else 0
    return found
