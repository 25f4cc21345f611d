"""From a parsed kernel to micro-ops and a table of basic blocks: all that depends on the PTX alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Sequence

import numpy as np

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import BASIC_BLOCK, MICRO_OP, NONE, Exit, How, Polls, Trait
from tir_schedules.machines.cpu.context import PARAMETERS, WORKSPACE, WORKSPACE_WORDS, Lowering, size_of
from tir_schedules.machines.cpu.extents import Extent, Extents
from tir_schedules.machines.cpu.flow import (
    deciding,
    is_strong,
    is_strong_load,
    polled_loads,
    polling_blocks,
)
from tir_schedules.machines.cpu.guesses import guessed_loads
from tir_schedules.machines.cpu.instructions import check, mix_of, row_of
from tir_schedules.machines.cpu.instructions.control import is_of_the_block
from tir_schedules.machines.cpu.instrumentation import ProductRegisters, Undefined
from tir_schedules.machines.cpu.merging import Merged, address_of, merged_accesses
from tir_schedules.machines.cpu.micro_ops import MicroOp
from tir_schedules.machines.cpu.signatures import signature_of
from tir_schedules.model.attributes import check_local
from tir_schedules.model.gpus import SMS

WORKSPACE_BYTES = 64
READ_BY_ENGINE = (Exit.BARRIER, Exit.WAIT)
"""Ends of blocks whose micro-op is not executed with the block: the engine reads it."""

NAMES_BLOCKS = ("call.target", "switch")
"""Micro-ops whose operands from the third on are blocks, or NONE."""


class Guard(NamedTuple):
    """Place of a predicate, and whether it must be false."""

    place: int
    negated: int


ALWAYS = Guard(NONE, 0)


class Placed(NamedTuple):
    """What a row of MICRO_OP is made of.

    function: its name in the core; or a lane's, the signature. extent: number in Extents.
    """

    function: str
    lane: bool
    operands: Sequence[int]
    line: int
    guard: Guard
    counter: int = -1
    extent: int = 0


class Listing(NamedTuple):
    """The instructions of all blocks in their order: what is known of each, a list for each thing.

    lines: of PTX. sources, within: see Instruction. mixes: classes in the counters' mix. accesses: see Row.
    """

    lines: list[int]
    sources: list[tuple[int, int]]
    within: list[tuple[tuple[int, int], ...]]
    mixes: list[str]
    accesses: list[str]


class CountedAccess(NamedTuple):
    """An access that is counted: its class (see Counters), and a row of MERGE, what ptxas merges it into."""

    line: int
    kind: str
    merge: tuple[int, int]


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel that can be linked; it depends on the PTX alone, and holds no address of this process.

    module: without its kernels. kernel: without its blocks, whose instructions are in the listing.
    functions: names in the core, and signatures of lanes. lanes: the signatures, each with the PTX line to
    name where it is not known. micro_ops: rows of MICRO_OP, in which `run` is the number of a function,
    `operands` that of the first in `operands`, `extent` that in `extents`. blocks: rows of BASIC_BLOCK.
    registers: what they hold when a warp starts. deciding: see Program. special: places of the special
    registers. granule_shift:
    log2 of the bytes of shared memory that are watched as one, the narrowest access of the kernel;
    store_shift: that of its narrowest store to global memory. traits: what it may do. any_order: whether it
    may add floats in whatever order: atomically, by compare-and-swap, or under a lock.
    """

    module: ptx.PtxModule
    kernel: ptx.PtxKernel
    functions: tuple[str, ...]
    lanes: dict[str, int]
    micro_ops: np.ndarray
    operands: np.ndarray
    blocks: np.ndarray
    registers: np.ndarray
    deciding: int
    special: tuple[int, ...]
    extents: tuple[Extent, ...]
    counted: list[CountedAccess]
    listing: Listing
    granule_shift: int
    store_shift: int
    traits: Trait
    any_order: bool


MOST_GLOBAL = 1 << 32
"""Bytes of all variables of a module in global and constant memory."""


def check_sizes(module: ptx.PtxModule, kernel: ptx.PtxKernel) -> None:
    """CheckFailed for more memory than a GPU has, or the machine is to take from the host."""
    check_local(kernel.name, kernel.local_bytes)
    most = max(sm.shared_limit for sm in SMS.values())
    if kernel.shared_bytes > most:
        raise CheckFailed(
            f"{kernel.name}: {kernel.shared_bytes} bytes of shared memory per block; no GPU has more than"
            f" {most}"
        )
    size = sum(variable.size for variable in module.variables.values())
    if size > MOST_GLOBAL:
        raise CheckFailed(
            f"{kernel.name}: its file declares {size} bytes of variables in global memory; the CPU machine"
            f" has {MOST_GLOBAL}: pass large arrays as arguments"
        )


def lower(module: ptx.PtxModule, kernel: ptx.PtxKernel) -> LoweredKernel:
    """Lower every instruction. UnsupportedInstruction names the first that is not known; CheckFailed where it
    declares more memory than there is."""
    check_sizes(module, kernel)
    operands = (operand for i in kernel.instructions for operand in i.operands)
    if any(isinstance(one, ptx.SpecialRegister) and one.name in WORKSPACE_WORDS for one in operands):
        workspace = ptx.Variable(WORKSPACE, "global", 4, WORKSPACE_BYTES)
        module = replace(module, variables={**module.variables, WORKSPACE: workspace})
    if kernel.addresses_parameters:
        size = max(parameter.offset + parameter.size for parameter in kernel.parameters)
        parameters = ptx.Variable(PARAMETERS, "const", 16, size)
        module = replace(module, variables=module.variables | {PARAMETERS: parameters})
    blocks = Blocks(module, kernel)
    low, ops = blocks.low, blocks.ops
    for block in kernel.blocks:
        blocks.add(block)
    ops = [relocated(op, blocks.starts) for op in ops]
    functions = {name: number for number, name in enumerate(dict.fromkeys(op.function for op in ops))}
    micro_ops, operands = assembled(ops, functions)
    return LoweredKernel(
        module=replace(module, kernels={}, refused={}), kernel=replace(kernel, blocks=[]),
        functions=tuple(functions), lanes={op.function: op.line for op in ops if op.lane},
        micro_ops=micro_ops, operands=operands, blocks=blocks.rows(), registers=low.file.initial(),
        deciding=low.file.bytes if blocks.deciding is None else blocks.deciding,
        special=tuple(low.special), extents=tuple(blocks.extents.known),
        counted=counted(low, merged_accesses(kernel)), listing=listing(kernel),
        granule_shift=low.narrowest_shared.bit_length() - 1,
        store_shift=low.narrowest_store.bit_length() - 1,
        traits=traits_of(kernel, Polls.OF_MEMORY in blocks.polling.values(), low.how),
        any_order=any(may_add_floats(i) for i in kernel.instructions),
    )  # fmt: skip


def relocated(op: Placed, starts: Sequence[int]) -> Placed:
    """A micro-op that names blocks, with the rows where these begin."""
    if op.function not in NAMES_BLOCKS:
        return op
    places = [place if place == NONE else starts[place] for place in op.operands[2:]]
    return op._replace(operands=(*op.operands[:2], *places))


def how_loaded(kernel: ptx.PtxKernel) -> dict[ptx.Instruction, How]:
    """What the text around them says of loads."""
    polled = dict.fromkeys(polled_loads(kernel), How.POLLED)
    return polled | dict.fromkeys(guessed_loads(kernel), How.GUESSED)


def traits_of(kernel: ptx.PtxKernel, polls: bool, how: dict[ptx.Instruction, How]) -> Trait:
    """how: of loads, as how_loaded has it."""
    traits = Trait.POLLS | Trait.CLOCKS if polls else Trait(0)
    told, looked_at = False, set()
    for i in kernel.instructions:
        row = row_of(i)
        told |= row.access == "updates" or i.name == "st" and is_strong(i)
        if is_strong_load(i) and i not in how:
            looked_at.add(i.space)
        if how.get(i) == How.GUESSED and i.space != "global":
            traits |= Trait.CLOCKS
        if row.units:
            traits |= Trait.UNITS | Trait.CLOCKS
        if row.ends is Exit.BARRIER and not is_of_the_block(i):
            traits |= Trait.NAMED | Trait.CLOCKS
        elif row.orders or {"acquire", "release", "acq_rel"}.intersection(i.parts):
            traits |= Trait.CLOCKS
    if told and (looked_at - {"shared"} or looked_at and traits & Trait.CLOCKS):
        traits |= Trait.OBSERVES | Trait.CLOCKS
    return traits


def watched_by_lines(kernel: ptx.PtxKernel) -> bool:
    """Whether shared memory may be watched in pieces as wide as the narrowest access, up to 16 bytes: where
    asynchronous units copy a lot of it."""
    units = any(row_of(i).units for i in kernel.instructions)
    return units and not any(i.name == "wmma" or i.opcode.startswith("call.") for i in kernel.instructions)


def may_add_floats(i: ptx.Instruction) -> bool:
    """In whatever order: itself, or what comes between it and another."""
    adds = i.name in ("atom", "red") and i.has("add") and "f" in i.type
    return adds or i.name == "atom" and (i.has("cas") or i.has("exch"))


def assembled(ops: Sequence[Placed], functions: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of MICRO_OP, and the operands that they point to."""
    rows, operands = [], []
    for function, _, places, line, guard, counter, extent in ops:
        rows.append((functions[function], len(operands), extent, *guard, line, counter))
        operands += places
    return np.array(rows, MICRO_OP), np.array(operands, np.int64).astype(np.uint32)


def counted(low: Lowering, merged: dict[int, Merged]) -> list[CountedAccess]:
    found = []
    for i, kind in low.counted:
        merge = (0, 0)
        if (whole := merged.get(i.line)) and kind.startswith("shared"):
            merge = (whole.offset - address_of(i).offset, whole.bytes if whole.leads else NONE)
        found.append(CountedAccess(i.line, kind, merge))
    return found


def listing(kernel: ptx.PtxKernel) -> Listing:
    instructions = list(kernel.instructions)
    return Listing(
        [i.line for i in instructions],
        [i.source for i in instructions],
        [i.within for i in instructions],
        [mix_of(i.opcode) for i in instructions],
        [row_of(i).access for i in instructions],
    )


class Blocks:
    """Lowers a kernel's basic blocks, one after another.

    keep: registers that other blocks see, or that what ends one reads or writes; the places of the others are
    used again after their last use. polling: see polling_blocks(). deciding: bytes of the registers that
    deciding() names, which come first; None for all.
    """

    def __init__(self, module: ptx.PtxModule, kernel: ptx.PtxKernel):
        self.low = Lowering(module, kernel)
        if watched_by_lines(kernel):
            self.low.by_lines, self.low.narrowest_shared = True, 16
        self.extents = Extents(kernel)
        self.ops: list[Placed] = []
        self.products = ProductRegisters(kernel)
        self.keep: set[ptx.Register] = set(self.products.registers)
        for block in kernel.blocks:
            self.keep |= block.reads_first
            if block.end:
                self.keep.update(block.end.reads, block.end.results)
        first = deciding(kernel)
        for register in sorted(first or (), key=lambda r: r.name):
            self.low.file.place(register, size_of(register.type))
        self.deciding = None if first is None else self.low.file.bytes
        self.keep |= first or set()
        for register in sorted(self.keep, key=lambda r: r.name):
            self.low.file.place(register, size_of(register.type))
        self.undefined = Undefined(self.low, self.extents)
        self.low.followed = self.undefined.places
        self.polling = polling_blocks(kernel)
        self.low.how = how_loaded(kernel)
        self.starts: list[int] = []  # number of each block's first row
        self.pending: list[tuple] = []  # what is known of a row before all are
        self.targets: list[
            ptx.BasicBlock | None
        ] = []  # whose end a row has; None: it goes on at the next row

    def add(self, block: ptx.BasicBlock) -> None:
        """Lower the instructions of a block, and note its rows: one, or more where lanes wait for others."""
        low, last = self.low, {}
        for k, i in enumerate(block.instructions):
            for register in (*i.results, *i.reads):
                last[register] = k
        self.starts.append(len(self.pending))
        first, cost, members = len(self.ops), 0, (NONE, 0)
        for k, i in enumerate(block.instructions):
            own = self.members(i)
            if own:
                if cost:
                    count = len(self.ops) - first
                    self.pending.append((first, count, cost, Exit.BRANCH, *ALWAYS, i.line, NONE, members))
                    self.targets.append(None)
                first, cost, members = len(self.ops), 0, own
            cost += 1
            low.unused = all(last[register] == k and register not in self.keep for register in i.results)
            self.instruction(i)
            for register in (*i.results, *i.reads):
                if last[register] == k and register not in self.keep:
                    low.file.release(register, size_of(register.type))
            for register, size in low.temporaries:
                low.file.release(register, size)
            low.temporaries.clear()
        self.place(self.undefined.guards(block.end), ALWAYS)
        end, line = block.end, block.instructions[-1].line if block.instructions else 0
        how, guard, waits = Exit.BRANCH, ALWAYS, NONE
        if end:
            row, line = row_of(end), end.line
            check(end)
            assert row.ends is not None
            how, guard = row.ends, self.guard(end)
            if row.lower and how not in READ_BY_ENGINE:
                low.successors = block.successors
                self.place(self.undefined.before(end), guard)
                self.ops += [self.placed(op, guard) for op in row.lower(low, end)]
        count = len(self.ops) - first
        if how is Exit.WAIT:  # a row of its own, to which lanes come back that have to wait
            if cost or count:
                self.pending.append((first, count, cost, Exit.BRANCH, *ALWAYS, line, NONE, members))
                self.targets.append(None)
            first, count, cost, members = len(self.ops), 0, 0, (NONE, 0)
        if end and row.lower and how in READ_BY_ENGINE:
            lowered = [self.placed(op, ALWAYS) for op in row.lower(low, end)]
            waits = len(self.ops) if lowered else NONE
            self.ops += lowered
        self.pending.append((first, count, cost + bool(end), how, *guard, line, waits, members))
        self.targets.append(block)

    def members(self, i: ptx.Instruction) -> tuple[int, int] | None:
        """Place of the lanes that execute it together, and whether they may be at several instructions. Of a
        fence, that others may get a turn before it."""
        row = row_of(i)
        if row.orders:
            return NONE, 0
        if row.members is None or i.guard:
            return None
        return self.low.place(i.operands[row.members], "b32", i), int(row.gathers)

    def rows(self) -> np.ndarray:
        """Rows of BASIC_BLOCK. Micro-ops that name blocks are told the rows where these begin."""
        rows = []
        for number, (pending, block) in enumerate(zip(self.pending, self.targets)):
            *head, line, waits, members = pending
            targets, polls = (number + 1, 0), 0
            if block:
                targets, polls = self.following(block, head[3]), self.polling.get(block.index, Polls.NOTHING)
            rows.append((*head, *targets, line, waits, *members, polls))
        return np.array(rows, BASIC_BLOCK)

    def following(self, block: ptx.BasicBlock, how: Exit) -> tuple[int, int]:
        """Rows that a block goes on at: where it is taken, and otherwise."""
        places = [self.starts[index] if index < len(self.starts) else 0 for index in block.successors]
        taken, otherwise = (*places, 0, 0)[:2]
        if how in (Exit.LEAVE, Exit.RETURN, Exit.SWITCH):
            return 0, places[-1] if block.end and block.end.guard else 0
        if block.end and how is Exit.CALL:
            target, otherwise = block.end.operands[0], taken
            known = isinstance(target, ptx.Symbol)
            taken = self.starts[self.low.kernel.starts[target.name]] if known else NONE
        return taken, otherwise

    def instruction(self, i: ptx.Instruction) -> None:
        check(i)
        lower_it = row_of(i).lower
        if lower_it is None:
            return
        guard = self.guard(i)
        self.place(self.products.before(self.low, i), guard)
        lowered = [self.placed(op, guard) for op in lower_it(self.low, i)]
        if self.undefined.nothing:
            self.ops += lowered
            return
        self.place(self.undefined.guards(i), ALWAYS)
        self.place(self.undefined.before(i), guard)
        self.ops += lowered
        self.place(self.undefined.after(i), guard)

    def place(self, ops: Sequence[MicroOp], guard: Guard) -> None:
        self.ops += [self.placed(op, guard) for op in ops]

    def placed(self, op: MicroOp | ptx.Instruction, guard: Guard) -> Placed:
        """A micro-op, or an instruction that each lane executes for itself."""
        if isinstance(op, ptx.Instruction):
            signature, operands = signature_of(op)
            places = [self.low.place(operand, kind, op) for operand, kind in operands]
            return Placed(signature, True, places, op.line, guard)
        i = op.instruction
        extent = self.extents.of(op.within, i.space) if op.within else 0
        return Placed(op.function, False, op.operands, i.line, guard, op.counter, extent)

    def guard(self, instruction: ptx.Instruction) -> Guard:
        if instruction.guard is None:
            return ALWAYS
        register, negated = instruction.guard
        return Guard(self.low.place(register, "pred", instruction), int(negated))
