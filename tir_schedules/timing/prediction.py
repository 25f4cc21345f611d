"""How long launches take: a simulated SM, its waves, what L2 and DRAM deliver, and what a launch costs.

A block stands for all. The SM with the most blocks decides: as many as fit run at once, and another begins
where one has ended.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.model.gpus import find_sm, occupancy
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Steps, Watch
from tir_schedules.model.workload import Arguments
from tir_schedules.timing.abi import HINTED, Kind, Reason
from tir_schedules.timing.clocks import tensor_share
from tir_schedules.timing.gpus import LINE, GpuTable
from tir_schedules.timing.keeping import kept
from tir_schedules.timing.listing import Instruction
from tir_schedules.timing.paths import BUDGET, MOST, BlockPaths, follow, made_by, touched, watched
from tir_schedules.timing.shortening import Shortened, shortened
from tir_schedules.timing.simulation import Outside, Simulated, rows_of, simulate
from tir_schedules.timing.states import busy_of
from tir_schedules.timing.waits import MOST_BLOCKS, MOST_WORK, cycles_of_waits

SHARED = ("shared_load", "shared_store", "ldmatrix", "shared_cp_async")
WAVEFRONT = 128
"""Classes of access to shared memory, and the bytes of a wavefront."""

BEGINNING, PROBED, LEAST_BUDGET = 512, 8, 1 << 10
"""Pieces of lines that a block touches first; and how many neighbours, and further on one of how many blocks,
are looked at for lines in common before all are; and instructions of a warp."""

HINT, BOX, WHOLE = re.compile(r"\.L2::(128|256)B\b"), "cp.async.bulk.tensor", 128
"""What asks L2 for all bytes of a line (PTX ISA, `level::prefetch_size`; CUDA's `CUtensorMapL2promotion`)."""

ALIKE = 0.1
"""Most that the work of two blocks may differ by, as a share of the greater, to be called about as much."""

LOOKED_AT, LOOKED_LONG, GOLDEN = 40, 1 << 19, (5**0.5 - 1) / 2
"""Blocks more that are looked at where the first and the centre of a grid differ; instructions of them behind
which no more are; and how far apart they are: the golden section spreads any number of places evenly."""

AHEAD, WAIT = 2048, "ACQBULK"
"""Instructions of a block among which that is where its warps wait for the launch before."""

FILLS = 4
"""Blocks that are simulated where there are more, times those that an SM has at once."""

APART = (1.0, 0.5, 1.5)
"""How far blocks of an SM begin apart, times the mean. Blocks take turns at what they share, by how far apart
they are, and SMs differ in that: the mean of these stands for all."""

REASONS = tuple(one.name.lower() for one in Reason if one is not Reason.REASONS)


@dataclass(frozen=True)
class Beyond:
    """What is behind L1 for a launch. level: "l2", or "dram" where lines come from there. shared_by: blocks
    of a wave that read the same line, on average. read_bytes: that an SM gets in a cycle. bound: what limits
    that. outside: the same for the simulator."""

    level: str
    shared_by: float
    read_bytes: float
    bound: str
    outside: Outside = field(default=Outside(), repr=False)


@dataclass(frozen=True)
class LaunchTime:
    """One launch. cycles: of the SM that has most to do. waves: of blocks on it. resident: blocks on an SM at
    once. dram_us: that its bytes need at the least. whole: whether all periods were simulated. busy: the
    share of cycles in which a unit of the SM works, the busiest first; tensor_share: of the tensor cores'
    peak. agreement: see BlockPaths. issues: see Simulated, of an SM with the blocks that begin at once. code:
    the instructions that rows of stalls belong to. stalls, issued: as Simulated has them, of the
    blocks that were simulated, at most FILLS times those at once. works: instructions of PTX that the
    warps of some blocks execute. place: the block that was simulated. waited: cycles by which the last block
    ends later because blocks wait for words that others store; None where that is not told, because it takes
    too long to execute all."""

    label: str
    cycles: float
    waves: float
    resident: int
    overhead_us: float
    dram_us: float
    beyond: Beyond
    whole: bool
    code: list[Instruction] = field(repr=False)
    stalls: np.ndarray = field(repr=False)
    issued: np.ndarray = field(repr=False)
    busy: dict[str, float]
    tensor_share: float
    agreement: float
    issues: np.ndarray = field(repr=False)
    works: dict[Dim3, int] = field(default_factory=dict[Dim3, int])
    place: Dim3 = (0, 0, 0)
    waited: float | None = 0.0

    @property
    def work(self) -> float:
        """Instructions of PTX that each block is taken to execute."""
        return work_of_each(self.works, self.place, self.waves <= 1)

    @property
    def uneven(self) -> bool:
        """Whether blocks that were looked at do more or less than the one that was simulated."""
        return any(not alike(work, self.works[self.place]) for work in self.works.values())

    def by_reason(self) -> dict[str, int]:
        """Cycles of warps by reason."""
        return dict(zip(REASONS, self.stalls.sum(axis=0).tolist()))

    def by_line(self, of: str = "cuda") -> dict[Any, dict[str, int]]:
        """The same by line: "ptx", or "cuda" with the name of its file."""
        found: dict[Any, Counter[str]] = {}
        for one, row in zip(self.code, self.stalls.tolist()):
            counts = found.setdefault(one.ptx_line if of == "ptx" else one.source, Counter())
            counts.update(dict(zip(REASONS, row)))
        return {line: dict(counts) for line, counts in found.items()}


@dataclass(frozen=True)
class Prediction:
    """How long launches take, one after the other. mhz: the clock that turns cycles into time."""

    launches: tuple[LaunchTime, ...]
    mhz: float

    @property
    def cycles(self) -> float:
        """Of all launches, without what a launch costs by itself."""
        return sum(each.cycles for each in self.launches)

    @property
    def microseconds(self) -> float:
        return sum(max(each.cycles / self.mhz, each.dram_us) + each.overhead_us for each in self.launches)


def predict(
    binaries: Sequence[Binary], arguments: Sequence[Arguments], outputs: Sequence[str], table: GpuTable,
    mhz: float | None = None, issues: int = 0, conflicts: bool = True, cold: bool = True,
    overlap: bool = True,
) -> Prediction:  # fmt: skip
    """The time of launches on a GPU. arguments: of each launch. mhz: that of the table where none is given.
    issues: how many of a block are kept. conflicts: whether bank conflicts cost what they do; False tells
    what a kernel without some would take. cold: whether L2 holds nothing of the arrays when a launch begins,
    as `bench` has it; otherwise it holds all that fit. overlap: whether the first launch follows another of
    the same kernels, as in `bench`, and may begin early where it fills SMs, see `GpuMachine.overlaps`.

    CheckFailed where a kernel has what the model does not, or executes more than can be kept.
    """
    clock = mhz or table.mhz
    alone = len(binaries) == 1
    named = [[name for name in outputs if name in given] for given in arguments]
    following = [
        number > 0 or overlap and one.overlaps(table.multiprocessors, one.kernel.footprint(given))
        for number, (one, given) in enumerate(zip(binaries, arguments))
    ]
    launches = tuple(
        kept(time_of, one, given, names, table, clock, issues, conflicts, follows, cold, alone)
        for one, given, names, follows in zip(binaries, arguments, named, following)
    )
    return Prediction(launches, clock)


def time_of(
    binary: Binary,
    arguments: Arguments,
    outputs: Sequence[str],
    table: GpuTable,
    mhz: float,
    issues: int = 0,
    conflicts: bool = True,
    follows: bool = False,
    cold: bool = True,
    alone: bool = True,
) -> LaunchTime:
    """follows: whether it may begin before the launch ahead of it has ended. alone: whether no other launch
    is, so that it finds what it has left itself."""
    kernel = binary.kernel
    blocks = prod(kernel.grid)
    held = occupancy(kernel.arch, kernel.block, binary.resources.registers, binary.shared_bytes).blocks
    busiest = -(-blocks // table.multiprocessors)
    resident = min(held, busiest)
    paths = follow(binary, arguments, outputs, again=alone)
    works = works_of(binary, arguments, outputs, paths.steps, alone)
    executable = blocks <= MOST_BLOCKS and blocks * max(works.values()) <= MOST_WORK
    at_once = busiest <= resident
    place = representative(works, at_once)
    if place != next(iter(works)):
        paths = follow(binary, arguments, outputs, place, alone)
    if not conflicts:
        paths = without_conflicts(paths)
    footprint, least = touched_bytes(kernel.footprint(arguments), paths.steps, blocks)
    paths.steps.pieces["kind"] = kinds_of(binary, arguments, outputs, paths, place)
    paths.steps.pieces["kind"][hinted(binary, paths.steps)] |= HINTED
    shared = shared_by(
        binary, arguments, outputs, paths, min(blocks, resident * table.multiprocessors), place
    )
    beyond = beyond_l1(kernel.grid, paths, table, mhz, resident, busiest, footprint, cold, shared)
    l1_bytes = table.l1_bytes(resident * (binary.shared_bytes + find_sm(kernel.arch).reserved))
    short, rows = shortened(paths), rows_of(paths.code, table)

    found = [
        in_turn(short, rows, resident, busiest, table, l1_bytes, apart(beyond, each), prod(kernel.cluster))
        for each in (APART if resident > 1 else (1.0,))
    ]
    cycles, simulated = sum(each for each, _ in found) / len(found), found[0][1]
    waited: float | None = 0.0
    cycles *= work_of_each(works, place, at_once) / max(1, works[place])
    if paths.steps.looks and blocks > prod(kernel.cluster):
        waited = None
        if executable:
            varied = most_varied(binary, arguments, outputs, [*works][1])
            _, seen = run(shortened(varied), 1, 1, table, l1_bytes, beyond, prod(kernel.cluster), rows)
            waited = cycles_of_waits(binary, arguments, outputs, varied, seen, table)
        cycles += waited or 0
    cycles = max(cycles, blocks * table.block_cycles)  # they begin one after the other
    warps = blocks * len(paths.warps)
    of_block = short.paths[-1]
    kept = simulate(
        of_block.code, of_block.warps, of_block.steps, table, resident, resident, l1_bytes, beyond.outside,
        issues, prod(kernel.cluster), rows
    ).issues if issues else simulated.issues  # fmt: skip
    early = follows and kernel.early and blocks <= held * table.multiprocessors
    cycles -= cycles_ahead(found[0][1], paths.code) if early else 0
    return LaunchTime(
        kernel.label, cycles, busiest / resident, resident, overhead(table, warps, early),
        dram_us(least, table), beyond, short.dropped == 0, paths.code, simulated.stalls, simulated.issued,
        busy_of(simulated, paths.code, table, beyond.bound, beyond.read_bytes),
        tensor_share(paths.code, simulated.issued, simulated.cycles, table), paths.agreement, kept,
        works, place, waited,
    )  # fmt: skip


def touched_bytes(footprint: int, steps: Steps, blocks: int) -> tuple[int, int]:
    """Bytes that launches of so many blocks touch of arrays with so many, and those that DRAM moves at the
    least, which are twice as many where a block reads and writes the same. They touch no more than this block
    does times the number of blocks: a kernel may read a few rows of a large table."""
    if not steps.whole:
        return footprint, footprint
    both = halves(steps.pieces)
    reached = min(footprint, HALF_LINE * both * blocks)
    return reached, round(reached * max(1.0, sum(halves_moved(steps)) / max(1, both)))


def cycles_ahead(simulated: Simulated, code: Sequence[Instruction]) -> int:
    """Cycles until the warps of the first block come to where they wait for the launch before. They pass
    while that still runs."""
    waits = [number for number, one in enumerate(code) if one.name == WAIT]
    issues = simulated.issues
    return max(issues["cycle"][np.isin(issues["number"], waits)].tolist(), default=0)


def without_conflicts(paths: BlockPaths) -> BlockPaths:
    """The same where each access to shared memory takes a wavefront for 128 bytes that its lanes ask for, at
    most as many as it did."""
    steps = paths.steps
    shared = [number for number, (_, kind) in enumerate(steps.counted) if kind in SHARED]
    made = steps.made.copy()
    mine = np.isin(made["counter"], shared)
    lanes = np.unpackbits(made["lanes"][mine].view(np.uint8).reshape(-1, 4), axis=1).sum(axis=1)
    least = np.maximum(1, -(-lanes.astype(np.int64) * made["width"][mine] // WAVEFRONT))
    made["cost"][mine] = np.minimum(made["cost"][mine], least)
    return replace(paths, steps=replace(steps, made=made))


def works_of(
    binary: Binary,
    arguments: Arguments,
    outputs: Sequence[str],
    first: Steps | None = None,
    again: bool = True,
) -> dict[Dim3, int]:
    """Instructions of PTX that the warps of the first block, of the last and of that in the centre execute.
    Where the first and the centre differ, so do others: then LOOKED_AT more are looked at. Of clusters it is
    the first block. first: of the first block, if they are known."""
    cluster = binary.kernel.cluster
    whole = [extent // each for extent, each in zip(binary.kernel.grid, cluster)]
    count = prod(whole)

    def place_of(at: int) -> Dim3:
        rest, x = divmod(at, whole[0])
        z, y = divmod(rest, whole[1])
        return x * cluster[0], y * cluster[1], z * cluster[2]

    def work_at(place: Dim3) -> int:
        known = first if place == (0, 0, 0) else None
        return work_of(known or executed(binary, arguments, outputs, place, again=again))

    x, y, z = (extent // 2 * each for extent, each in zip(whole, cluster))
    begin, centre, end = place_of(0), (x, y, z), place_of(count - 1)
    works = {place: work_at(place) for place in dict.fromkeys((begin, end, centre))}
    if not alike(works[begin], works[centre]):
        for number in range(1, LOOKED_AT + 1):
            place = place_of(int(number * GOLDEN % 1 * count))
            if place not in works and sum(works.values()) < LOOKED_LONG:
                works[place] = work_at(place)
    return works


def work_of(steps: Steps) -> int:
    """Instructions of PTX that warps execute."""
    lengths = np.array([len(lines) for lines in steps.lines])
    return int(lengths[steps.table["block"]].sum())


def alike(work: int, other: int) -> bool:
    """Whether two blocks do about as much as each other."""
    return abs(work - other) <= ALIKE * max(work, other)


def representative(works: Mapping[Dim3, int], at_once: bool) -> Dim3:
    """The block that is simulated. It is block 0 where all do about as much, because its part of an array is
    whole where that of the last is not. Otherwise the one that does most decides where all run at once, and
    where they do not, the one whose work is nearest to their mean."""
    first = next(iter(works))
    if all(alike(work, works[first]) for work in works.values()):
        return first
    if at_once:
        return max(works, key=lambda place: works[place])
    mean = mean_work(works)
    return min(works, key=lambda place: abs(works[place] - mean))


def mean_work(works: Mapping[Dim3, int]) -> float:
    """What blocks do in the mean. The first two are at the edges, so they do not count if others were looked
    at."""
    found = [*works.values()]
    inner = found[2:] or found
    return sum(inner) / len(inner)


def work_of_each(works: Mapping[Dim3, int], place: Dim3, at_once: bool) -> float:
    """What each block is taken to do: as much as the one that is simulated, or where they differ and SMs take
    several, as much as they do in the mean."""
    if at_once or all(alike(work, works[place]) for work in works.values()):
        return works[place]
    return mean_work(works)


def most_varied(binary: Binary, arguments: Arguments, outputs: Sequence[str], place: Dim3) -> BlockPaths:
    """Of a block that waits for others and the one before it, the one that executes more of the kernel. The
    last of a chain stores nothing for others to find."""
    x, y, z = place
    before = max(0, x - binary.kernel.cluster[0]), y, z
    found = (follow(binary, arguments, outputs, at, again=False) for at in (before, place))
    return max(found, key=lambda paths: len(np.unique(paths.steps.table["block"])))


def in_turn(
    short: Shortened,
    rows: np.ndarray,
    slots: int,
    blocks: int,
    table: GpuTable,
    l1_bytes: int,
    beyond: Beyond,
    cluster: int,
) -> tuple[float, Simulated]:
    """The cycles of the blocks of an SM, as many at once as it has slots. Of many blocks FILLS times the
    slots are simulated, and go on as the later half of these did."""
    counts = [FILLS * slots // 2, FILLS * slots] if blocks > FILLS * slots else [blocks]
    found = [run(short, slots, count, table, l1_bytes, beyond, cluster, rows) for count in counts]
    if len(found) == 1:
        return found[0]
    (before, _), (cycles, simulated) = found
    return cycles + (blocks - counts[1]) * (cycles - before) / (counts[1] - counts[0]), simulated


def run(
    short: Shortened, slots: int, blocks: int, table: GpuTable, l1_bytes: int, beyond: Beyond,
    cluster: int = 1, rows: np.ndarray | None = None,
) -> tuple[float, Simulated]:  # fmt: skip
    """The cycles of blocks on an SM, with the turns that were left out. rows: as `simulate` takes them."""
    found = [
        simulate(
            each.code, each.warps, each.steps, table, slots, blocks, l1_bytes, beyond.outside,
            AHEAD, cluster, rows,
        )
        for each in short.paths
    ]  # fmt: skip
    if not short.dropped:
        return found[0].cycles, found[0]
    few, more = found
    scale = short.dropped / short.between
    whole = {
        name: extended(getattr(few, name), getattr(more, name), scale)
        for name in ("cycles", "stalls", "issued", "wavefronts", "requested", "missed", "written")
    }
    cycles = more.cycles + scale * (more.cycles - few.cycles)
    least = (
        float(whole["missed"]) / beyond.outside.l2_bytes
    )  # the first turns may have got more than their share
    return max(cycles, least), replace(more, **whole)


def extended(few: Any, more: Any, scale: float) -> Any:
    """A count, or an array of some, that goes on as it did between two."""
    return np.rint(more + scale * (np.asarray(more, float) - few)).astype(np.int64)


def beyond_l1(
    grid: Dim3, paths: BlockPaths, table: GpuTable, mhz: float, resident: int, busiest: int, footprint: int,
    cold: bool, shared: float,
) -> Beyond:  # fmt: skip
    """The law of L2 and DRAM.

    A line that several SMs read together costs L2 as much as one that a single SM reads, down to what all
    SMs get of the same lines. DRAM gives each 64 bytes once to the blocks of a wave.
    Where most bytes come by TMA, the same lines come to all SMs as its row says.
    """
    busy = min(prod(grid), table.multiprocessors)
    cycles = {name: 1 / table.read_bytes[name] for name in ("alone", "own", "same")}
    if copies_of(paths) > 0.5:
        cycles["same"] = table.units["box byte, all SMs"]
    l2 = busy / table.multiprocessors * max(cycles["same"], cycles["own"] / shared)
    per_cycle = table.dram_gb_per_s * 1e3 / mhz
    dram = busy / per_cycle / shared
    states = states_of(grid, resident, busiest, table, footprint > table.l2_bytes, cold)
    costs = {"sm": cycles["alone"], "l2": l2} | ({"dram": dram} if states[-1] == ALL_KINDS else {})
    bound = max(costs, key=lambda name: costs[name])
    across, down = min(grid[0], busy), max(1.0, busy / grid[0])
    atomic = table.atomic_cycles["sector, all SMs"] * busy / table.multiprocessors
    back = per_cycle / busy / table.dram_write_cost / max(1e-9, dirty_share(paths, shared))
    outside = Outside(
        1 / l2, 1 / dram, states, back, back * shared, atomic, (1, across, down, busy),
        busy * table.block_cycles, busy * table.first_block_cycles, table.l2_bytes / busy,
        busy / table.multiprocessors * LINE * table.units.get("box byte, all SMs", 0),
    )  # fmt: skip
    return Beyond("dram" if any(states) else "l2", shared, 1 / costs[bound], bound, outside)


READS, WRITES = ("global_load", "shared_cp_async"), ("global_store", "global_atomic")
"""Classes of accesses to global memory."""

HALF_LINE = LINE // 2
"""Bytes that DRAM reads and writes at once."""


def dirty_share(paths: BlockPaths, shared: float) -> float:
    """The share of the bytes written in those that come into L2, 0 to 1. As many of the lines that leave it
    are written back, because launches before this one did the same."""
    read, written = halves_moved(paths.steps)
    return written / max(1, written + read / shared)


def halves_moved(steps: Steps) -> tuple[int, int]:
    """How many halves of lines a block reads, and how many it writes."""
    return (
        halves(touched(steps, READS, Happening.BEGUN)),
        halves(touched(steps, WRITES, Happening.STORED)),
    )


def halves(pieces: np.ndarray) -> int:
    """How many halves of lines are touched. DRAM reads and writes these."""
    return sum(len(np.unique(pieces["line"][pieces["sectors"] >> 2 * half & 3 > 0])) for half in (0, 1))


def apart(beyond: Beyond, times: float) -> Beyond:
    """The same where blocks begin so many times as far apart."""
    outside = replace(beyond.outside, first_cycles=times * beyond.outside.first_cycles)
    return replace(beyond, outside=outside)


def copies_of(paths: BlockPaths) -> float:
    """The share of TMA in what a block reads of global memory, by the lines that it touches."""
    made = paths.steps.made
    reads = made["what"] != Happening.STORED
    return float(made["pieces"][made["what"] == Happening.BEGUN].sum() / max(1, made["pieces"][reads].sum()))


ALL_KINDS = sum(1 << kind for kind in Kind)


def states_of(
    grid: Dim3, resident: int, busiest: int, table: GpuTable, exceeds: bool, cold: bool
) -> tuple[int, ...]:
    """For each block of an SM, in the order in which they begin, a bit for each Kind of line that is not in
    L2 then. exceeds: whether L2 is too small for the arrays; nothing is there for long.

    Those at once begin with a cold L2. Later ones find the lines of a kind if most of the blocks that begin
    with them share these with a block that began before.
    """
    if exceeds or not cold:
        return (ALL_KINDS if exceeds else 0,)
    columns, sms = grid[0], table.multiprocessors
    found = [ALL_KINDS] * resident
    for number in range(resident, busiest):
        before = number * sms
        kinds = 1 << Kind.OWN
        if -before % columns < sms / 2:
            kinds |= 1 << Kind.ALONG_X
        if columns > before + sms / 2:
            kinds |= 1 << Kind.ALONG_Y
        found.append(kinds)
    return tuple(found)


def kinds_of(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], paths: BlockPaths, place: Dim3 = (0, 0, 0)
) -> np.ndarray:
    """The Kind of each piece that a block touches, by what its neighbours along x and y do."""
    columns, rows, _ = binary.kernel.grid
    lines = paths.steps.pieces["line"]
    found = np.zeros(len(lines), np.uint32)
    across, down = (abs(place[0] - 1), *place[1:]), (place[0], abs(place[1] - 1), place[2])
    for kind, block, extent in ((Kind.ALONG_X, across, columns), (Kind.ALONG_Y, down, rows)):
        if extent > 1:
            found[np.isin(lines, lines_at(binary, arguments, outputs, block))] |= np.uint32(kind)
    return found


def hinted(binary: Binary, steps: Steps) -> np.ndarray:
    """Which pieces are of accesses that ask L2 for whole lines: by a hint in the instruction, or by the
    promotion of a tensor map."""
    promoted = any(tensor.promotion >= WHOLE for tensor in binary.kernel.maps)
    asking = [
        number
        for number, line in enumerate(binary.ptx.splitlines(), 1)
        if HINT.search(line) or promoted and BOX in line
    ]
    found = np.zeros(len(steps.pieces), bool)
    mine = steps.made[np.isin(made_by(steps)["line"], asking)]
    for first, count in zip(mine["first_piece"].tolist(), mine["pieces"].tolist()):
        found[first : first + count] = True
    return found


def shared_by(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], paths: BlockPaths, together: int,
    place: Dim3 = (0, 0, 0),
) -> float:  # fmt: skip
    """How many of the blocks that run together read a line, on average, where pieces know their kinds. Blocks
    are taken in order, x fastest."""
    pieces = paths.steps.pieces
    if not len(pieces) or together == 1:
        return 1.0
    columns, rows, _ = binary.kernel.grid
    if rows == 1:
        return shared_in_a_row(binary, arguments, outputs, paths.steps, together, place)
    _, at = np.unique(pieces["line"], return_index=True)
    across, down = min(columns, together), max(1, -(-together // columns))
    kinds = pieces["kind"][at] & np.uint32(Kind.ALONG_BOTH)
    share = np.bincount(kinds, minlength=len(Kind)) / len(at)
    unique = (
        share[Kind.ALONG_BOTH] + share[Kind.ALONG_X] * down + share[Kind.ALONG_Y] * across
        + share[Kind.OWN] * together
    )  # fmt: skip
    return float(together / unique)


def shared_in_a_row(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], steps: Steps, together: int, place: Dim3
) -> float:
    """The same for a grid with one row, in which blocks go over tiles in an order of their own, and may begin
    at different K tiles.

    A line that block 0 has in common with block 1, 2, 4, ..., or the last with those ahead of it, is read by
    twice as many for each of these, as where tiles lie in powers of two. Elsewhere there are more readers:
    for the lines that the block reads first, all blocks are asked that run together.
    """
    mine = np.unique(steps.pieces["line"])
    readers = readers_by_distance(binary, arguments, outputs, mine, together, place)
    first, counted = readers_at_first(binary, arguments, steps, together, place)
    told = readers[np.isin(mine, first)]
    return in_the_mean(readers) * max(1.0, in_the_mean(counted) / in_the_mean(told))


def in_the_mean(readers: np.ndarray) -> float:
    """Of all lines, as often as each is read."""
    return float(len(readers) / (1 / readers).sum())


def readers_by_distance(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], mine: np.ndarray, together: int,
    place: Dim3,
) -> np.ndarray:  # fmt: skip
    """Readers of each line, by blocks at distances of powers of two."""
    readers = np.ones(len(mine))
    apart, columns = 1, binary.kernel.grid[0]
    while apart < together:
        # behind block 0, or ahead of another
        at = abs(place[2] * columns + place[0] - apart)
        common = np.isin(mine, lines_at(binary, arguments, outputs, (at % columns, 0, at // columns)))
        readers *= np.where(common, min(2.0, together / apart), 1.0)
        apart *= 2
    return readers


def readers_at_first(
    binary: Binary, arguments: Arguments, steps: Steps, together: int, place: Dim3
) -> tuple[np.ndarray, np.ndarray]:
    """The lines that a block reads first, and how many of the blocks that run together do so, too."""
    mine, budget = beginning(steps)
    columns, _, layers = binary.kernel.grid
    number = place[2] * columns + place[0]
    first = number - number % together
    others = [at for at in range(first, min(first + together, columns * layers)) if at != number]

    def shares(at: int) -> np.ndarray:
        block = at % columns, 0, at // columns
        return np.isin(mine, lines_at(binary, arguments, (), block, budget))

    found = {at: shares(at) for at in (*others[:PROBED], *others[PROBED::PROBED])}
    if any(each.any() for each in found.values()):
        found |= {at: shares(at) for at in others if at not in found}
    return mine, sum(found.values(), np.ones(len(mine)))


def beginning(steps: Steps) -> tuple[np.ndarray, int]:
    """The lines that a block touches first, and a number of instructions of a warp. It is more than they take
    here, because other blocks may try longer at a wait."""
    last = int(np.searchsorted(np.cumsum(steps.made["pieces"]), BEGINNING)) + 1
    mine = np.unique(steps.pieces["line"][: steps.made["pieces"][:last].sum()])
    begun = steps.table[steps.table["made"] < last]
    lengths = np.array([len(lines) for lines in steps.lines])[begun["block"]]
    return mine, LEAST_BUDGET + 4 * int(np.bincount(begun["warp"], lengths).max(initial=0))


def lines_at(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], block: Dim3, budget: int = BUDGET
) -> np.ndarray:
    """The lines of global memory that another block touches."""
    return np.unique(executed(binary, arguments, outputs, block, budget).pieces["line"])


def executed(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], block: Dim3, budget: int = BUDGET,
    again: bool = False,
) -> Steps:  # fmt: skip
    """What a block does, except for the numbers of its warpgroups' products: whom it meets does not depend on
    them. budget: of instructions of a warp. again: as `follow` has it."""
    watch = Watch(block, limit=MOST, steps=True, multiplies=False)
    return watched(binary, arguments, outputs, watch, again, budget)[1]


def overhead(table: GpuTable, warps: int, early: bool = False) -> float:
    """Microseconds of an empty kernel, between those with the nearest numbers of warps. early: whether it may
    begin before the one ahead of it has ended."""
    figures = table.early_us if early else table.launch_us
    known = sorted(figures)
    return float(np.interp(np.log2(warps), np.log2(known), [figures[each] for each in known]))


def dram_us(footprint: int, table: GpuTable) -> float:
    """What reading each byte once takes, where L2 does not hold all."""
    return footprint / table.dram_gb_per_s / 1e3 if footprint > table.l2_bytes else 0.0
