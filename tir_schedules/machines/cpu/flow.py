"""From a list of instructions and labels to basic blocks with their successors and live registers; and which
loops wait."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Iterable, Sequence, Union

from tir_schedules.machines.cpu.abi import Exit, Polls
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, PtxKernel, Register, Symbol
from tir_schedules.machines.cpu.table import Spread

RETURN = Instruction("ret", (), access="")


def basic_blocks(items: Sequence[Union[Instruction, str]], first: int) -> list[BasicBlock]:
    """Split at labels (the strings) and after what ends a block; find successors and live registers.

    first: number of the first block.
    """
    blocks, labels = [BasicBlock(first)], {}
    for item in items:
        current = blocks[-1]
        starts = isinstance(item, str) and current.instructions
        if starts or current.end is not None:
            current = BasicBlock(first + len(blocks))
            blocks.append(current)
        if isinstance(item, str):
            labels[item] = current.index
        elif row_of(item).ends is not None:
            current.end = item
        else:
            current.instructions.append(item)
    if blocks[-1].end is None:
        blocks[-1].end = RETURN
    for block in blocks:
        block.successors = successors(block, labels)
    find_live_registers(blocks)
    return blocks


def successors(block: BasicBlock, labels: dict[str, int]) -> tuple[int, ...]:
    end, following = block.end, block.index + 1
    how = row_of(end).ends if end else None
    if end is None or how in (Exit.BARRIER, Exit.WAIT, Exit.CALL):
        return (following,)
    onward = (following,) if end.guard else ()
    if how in (Exit.BRANCH, Exit.SWITCH):
        targets = [target.name for target in end.operands if isinstance(target, Symbol)]
        if not targets or not labels.keys() >= set(targets):
            raise end.unsupported(f"a branch to {' or '.join(targets) or 'an undefined label'}")
        return (*(labels[target] for target in targets), *onward)
    return onward


def find_live_registers(blocks: list[BasicBlock]) -> None:
    """Set what every block reads first, and what is live where it begins: the least solution of the usual
    backward equations, a bit for each register."""
    written: list[set[Register]] = []
    for block in blocks:
        reads, writes = set[Register](), set[Register]()
        for i in block.all_instructions:
            reads.update(register for register in i.reads if register not in writes)
            writes.update(i.results)
        block.reads_first = frozenset(reads)
        written.append(writes)
    registers = list(dict.fromkeys(register for block in blocks for register in block.reads_first))
    numbers = {register: k for k, register in enumerate(registers)}
    first, before = blocks[0].index, defaultdict[int, list[int]](list)
    for block in blocks:
        block.registers = registers
        for successor in block.successors:
            before[successor - first].append(block.index - first)
    pending, waiting = deque(reversed(range(len(blocks)))), set(range(len(blocks)))
    while pending:
        k = pending.popleft()
        waiting.discard(k)
        block, live = blocks[k], 0
        for successor in block.successors:
            live |= blocks[successor - first].live
        live &= ~bits_of(written[k], numbers)
        live |= bits_of(block.reads_first, numbers)
        if live != block.live:
            block.live = live
            new = [k for k in before[k] if k not in waiting]
            waiting.update(new)
            pending += new


def bits_of(registers: Iterable[Register], numbers: dict[Register, int]) -> int:
    """The bits of those registers that have a number."""
    return sum(1 << number for number in {numbers[one] for one in registers if one in numbers})


def reached(
    registers: Iterable[Register], steps: Iterable[tuple[Iterable[Register], Iterable[Register]]]
) -> set[Register]:
    """These registers, and all that follow from them. steps: from any of some registers to all of others."""
    seen = set(registers)
    if not seen:
        return seen
    following: dict[Register, list[Iterable[Register]]] = defaultdict(list)
    for sources, results in steps:
        for register in sources:
            following[register].append(results)
    pending = list(seen)
    while pending:
        for results in following.get(pending.pop(), ()):
            pending += (new := set(results) - seen)
            seen |= new
    return seen


# ---- loops that wait ---
STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}


def observed(i: Instruction) -> Polls:
    """What may change its result although the thread does nothing."""
    row = row_of(i)
    weak = row.spread is Spread.LOAD and not is_strong(i)
    return Polls.NOTHING if weak else row.observes


def is_strong(i: Instruction) -> bool:
    """Whether a load or store is strong, by its opcode."""
    return not STRONG.isdisjoint(i.parts)


def is_strong_load(i: Instruction) -> bool:
    return row_of(i).spread is Spread.LOAD and is_strong(i)


def polled_loads(kernel: PtxKernel) -> set[Instruction]:
    """The strong loads that may return an older value without harm. Either the innermost loop around one goes
    on by its value, and so loads again; or the value decides which way branches go and nothing else, as a
    hint does."""
    loads = [(block.index, i) for block in kernel.blocks for i in block.instructions if is_strong_load(i)]
    if not loads:
        return set()
    loops = [
        (block.successors[0], block.index)
        for block in kernel.blocks
        if block.end and row_of(block.end).ends is Exit.BRANCH and block.successors[0] <= block.index
    ]
    steps = [(i, i.reads, i.results) for i in kernel.instructions]
    found = set[Instruction]()
    for index, load in loads:
        seen = reached(load.results, ((reads, results) for _, reads, results in steps))
        uses = [row_of(i) for i, reads, _ in steps if not seen.isdisjoint(reads)]
        if all(use.operation or use.ends is not None for use in uses):
            found.add(load)
            continue
        around = [(head, last) for head, last in loops if head <= index <= last]
        if not around:
            continue
        head, last = min(around, key=lambda loop: loop[1] - loop[0])
        blocks = kernel.blocks[head : last + 1]
        ends = {
            block.end.guard[0]
            for block in blocks
            if block.end and block.end.guard and not set(block.successors) <= set(range(head + 1, last + 1))
        }
        of_loop = ((i.reads, i.results) for block in blocks for i in block.instructions)
        if not ends.isdisjoint(reached(load.results, of_loop)):
            found.add(load)
    return found


def polling_blocks(kernel: PtxKernel) -> dict[int, Polls]:
    """The blocks whose branch back closes a loop that waits for memory, and what it waits for. All blocks
    from the loop's head to that branch count, in the order of the text."""
    ends: dict[int, list[int]] = defaultdict(list)  # by the head
    for block in kernel.blocks:
        if block.end and row_of(block.end).ends is Exit.BRANCH and block.successors[0] <= block.index:
            ends[block.successors[0]].append(block.index)
    found: dict[int, Polls] = {}
    for head, indices in ends.items():
        of_head: dict[int, Polls] = {}
        pending = [(0, len(indices) - 1)]
        while pending:  # a longer loop waits wherever a shorter one does: between two alike, all are
            low, high = pending.pop()
            for k in {low, high} - of_head.keys():
                of_head[k] = waits(kernel.blocks[head : indices[k] + 1])
            if of_head[low] == of_head[high]:
                of_head |= dict.fromkeys(range(low, high), of_head[low])
            elif high - low > 1:
                middle = (low + high) // 2
                pending += [(low, middle), (middle, high)]
        found |= {indices[k]: polls for k, polls in of_head.items() if polls}
    return found


def deciding(kernel: PtxKernel) -> set[Register] | None:
    """The registers that loops which wait go on by: those that all but arithmetic in them reads, such as
    branches, and those that these follow from. A warp that comes back with these unchanged, while no memory
    changes, never leaves, whatever else it counts. None for all registers, where functions are called."""
    lasts = polling_blocks(kernel)
    ends = [block.end for block in kernel.blocks if block.end]
    if any(row_of(end).ends is Exit.CALL for end in ends):
        return None
    behind = [(block.index, each) for block in kernel.blocks for each in block.successors]
    heads = [kernel.blocks[last].successors[0] for last in lasts]
    within = found_from(heads, behind) & found_from(lasts, [(to, at) for at, to in behind])
    inside = [i for number in within for i in kernel.blocks[number].all_instructions]
    seen = {register for i in inside if not row_of(i).operation for register in read_by(i)}
    return reached(seen, ((i.results, read_by(i)) for i in inside))


def read_by(i: Instruction) -> tuple[Register, ...]:
    """Of an instruction, its guard too."""
    return (*i.reads, *((i.guard[0],) if i.guard else ()))


def found_from(starts: Iterable[int], ways: Iterable[tuple[int, int]]) -> set[int]:
    """These numbers, and all that ways lead to, each from one to another."""
    onward = defaultdict[int, list[int]](list)
    for at, to in ways:
        onward[at].append(to)
    seen = set(starts)
    pending = list(seen)
    while pending:
        new = {to for to in onward[pending.pop()] if to not in seen}
        seen |= new
        pending += new
    return seen


def waits(loop: list[BasicBlock]) -> Polls:
    """What a branch in these blocks depends on that instructions in them observe."""
    instructions = [i for block in loop for i in block.instructions]
    guards = {block.end.guard[0] for block in loop if block.end and block.end.guard}
    observing = [(i, polls) for i in instructions if (polls := observed(i))]
    for polls in (Polls.OF_MEMORY, Polls.OF_BARRIERS):
        seen = {register for i, which in observing if which is polls for register in i.results}
        if seen and not guards.isdisjoint(reached(seen, ((i.reads, i.results) for i in instructions))):
            return polls
    return Polls.NOTHING
