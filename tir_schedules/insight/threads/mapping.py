"""Which thread accesses which element of an array in global memory, as the CPU machine executed it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.files import Json
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import Act
from tir_schedules.machines.execution import written
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Touches, Watch
from tir_schedules.model.workload import Workload

ACTS = {"store": Act.WRITE, "update": Act.ATOMIC, "load": Act.READ}
"""What a thread may do to an element -> as the machine has it; the first that occurs is shown."""

SCHEDULERS = 4
"""Warp schedulers of an SM."""

COLUMNS = 64
"""Elements of a row in which an array of one dimension is drawn."""

ALL = -1
"""In place of the number of a tile: all of them."""

BY = ("block", "warp", "scheduler", "lane", "step")
"""What elements can be coloured by."""

TICKETS = re.compile(r"^\s*(?:@\S+\s+)?atom\.(?!\S*shared)", re.M)
"""Atomics that return a value: a block may do what the number of blocks before it says."""


@dataclass(frozen=True)
class Asked:
    """What is asked for. array: its name. block: whose accesses, None for all blocks. access: of ACTS, "" for
    the first that occurs. tile: number of the tile, None for the first of loads and all of stores, or
    ALL. columns: elements of a row of an array of one dimension, 0 for COLUMNS. launch: its number, from 1
    on; None for the last that takes an output of a rung, else the first that accesses the array so."""

    array: str
    block: Dim3 | None = (0, 0, 0)
    access: str = ""
    tile: int | None = None
    columns: int = 0
    launch: int | None = None

    def watch(self, among_all: bool) -> Watch:
        return Watch(
            self.block or (0, 0, 0), array=self.array, every_block=self.block is None, among_all=among_all
        )


class Launched(NamedTuple):
    """A launch that takes the array. number, count: which of the launches, from 1, and how many there are.
    own: the shape that the workload gives the array; a launch whose array has another holds partial
    results in it."""

    binary: Binary
    array: np.ndarray
    execution: Execution
    number: int
    count: int
    own: tuple[int, ...]


@dataclass(frozen=True)
class ThreadMap:
    """Who accesses the elements of an array. of: the workload, or the file. array: its name. shape: its rows
    and columns; flat: whether it has one dimension, and the columns are for the picture alone. extents: of
    all its dimensions; rows are counted through all but the last. itemsize: bytes of an element. access: of
    ACTS. block: whose accesses, None for all blocks. tile, tiles: which of them, None for all, and how many
    there are. launch, launches: which of them, from 1, and how many there are. accesses: rows of ACCESS, one
    for each time a thread accesses an element, in order. lines: of the source. notes: what else must be
    known.

    A tile is what a block accesses up to the next barrier, group of cp.async or filling of an mbarrier. A
    step is one access of the thread: all elements of a vector have the same.
    """

    kernel: Kernel
    of: str
    array: str
    shape: tuple[int, int]
    flat: bool
    extents: tuple[int, ...]
    itemsize: int
    access: str
    block: Dim3 | None
    tile: int | None
    tiles: int
    launch: int
    launches: int
    accesses: np.ndarray
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.extents)

    def among(self, chosen: np.ndarray) -> ThreadMap:
        """The same of some accesses alone. chosen: which of them, as booleans."""
        return replace(self, accesses=self.accesses[chosen])

    def keys(self, by: str) -> np.ndarray:
        """What an access has of BY."""
        return self.accesses["warp"] % SCHEDULERS if by == "scheduler" else self.accesses[by]

    def block_name(self, number: int) -> str:
        """ "1,0,0": a block by its number in the grid."""
        x, y, _ = self.kernel.grid
        return f"{number % x},{number // x % y},{number // (x * y)}"

    def as_json(self) -> Json:
        rows, columns = np.divmod(self.accesses["element"], self.shape[1])
        places = (
            {"element": rows * self.shape[1] + columns} if self.flat else {"row": rows, "column": columns}
        )
        names = ("block", "warp", "lane", "step")
        told = {**places, **{name: self.accesses[name] for name in names}}
        return {
            "kernel": self.kernel.label, "of": self.of, "array": self.array,
            "shape": [self.size] if self.flat else list(self.shape),
            "access": self.access, "launch": self.launch, "launches": self.launches,
            "grid": self.kernel.grid, "block": self.block, "tile": self.tile, "tiles": self.tiles,
            "lines": self.lines, "notes": self.notes,
            "columns": list(told), "accesses": np.stack([*told.values()], 1).tolist(),
        }  # fmt: skip


ACCESS = np.dtype([(name, np.int32) for name in ("element", "block", "warp", "lane", "step")])


def arrays_of(kernel: Kernel) -> list[str]:
    """What a kernel may access: its parameters, and what its tensor maps describe."""
    described = {one.name: one.of for one in kernel.maps}
    return list(dict.fromkeys(described.get(name, name) for name in kernel.params))


def needs_all(binary: Binary) -> bool:
    """Whether a block may do otherwise among all blocks than alone, as far as the text tells."""
    return bool(TICKETS.search(binary.ptx))


def watched(binary: Binary, asked: Asked, run: Callable[[Watch], Execution]) -> Execution:
    """A launch with its accesses to the array: of the block alone, and among all blocks where it needs them.
    run: executes it on fresh arguments."""
    execution = run(asked.watch(needs_all(binary)))
    assert execution.touches is not None, "it was told to watch"
    return execution if execution.touches.ended else run(asked.watch(True))


def launches_of_rung(binaries: Sequence[Binary], workload: Workload, asked: Asked) -> Iterator[Launched]:
    """The launches of a workload that are asked for and take the array. BadInput where there are none."""
    kernels = [binary.kernel for binary in binaries]
    check_array(asked.array, kernels[0].label, array_names(kernels, workload))
    numbers = numbers_of(kernels, asked, last=asked.array in workload.outputs)
    own = workload.array_shapes((1, 1, 1))
    machine, arguments, outputs = CpuMachine(), workload.arguments(), written(workload, kernels)
    for number, binary in enumerate(binaries[: numbers[-1]], 1):
        arguments = binary.kernel.prepared(workload, arguments)

        def run(watch: Watch | None) -> Execution:
            given = {name: value if watch is None else copied(value) for name, value in arguments.items()}
            return machine.run(binary, given, outputs[number - 1], watch=watch)

        if number in numbers:
            array, execution = arguments[asked.array], watched(binary, asked, run)
            shape = own.get(asked.array, array.shape)
            yield Launched(binary, array, execution, number, len(binaries), shape)
        if number < numbers[-1]:
            run(None)


def numbers_of(kernels: Sequence[Kernel], asked: Asked, last: bool) -> list[int]:
    """Which launches to look at, from 1 on: the one that is asked for, else all that take the array, or the
    last of those. BadInput for one that there is not, that does not take the array, or has no such block."""
    taking = [number for number, kernel in enumerate(kernels, 1) if asked.array in arrays_of(kernel)]
    check_launch(asked.launch, len(kernels))
    if asked.launch is not None and asked.launch not in taking:
        raise BadInput(f"launch {asked.launch} does not take {asked.array}; {these_launches(taking)} it")
    numbers = [asked.launch] if asked.launch is not None else taking[-1:] if last else taking
    grid = kernels[numbers[0] - 1].grid
    if asked.block and len(kernels) > 1 and not all(0 <= at < end for at, end in zip(asked.block, grid)):
        others = [number for number in taking if number != numbers[0]]
        instead = f"; {these_launches(others)} {asked.array} too, see --launch" if others else ""
        raise BadInput(
            f"launch {numbers[0]} of {len(kernels)} has no block {','.join(map(str, asked.block))}; its grid"
            f" is {','.join(map(str, grid))}{instead}"
        )
    return numbers


def check_launch(number: int | None, count: int) -> None:
    """BadInput for a launch that there is not."""
    if number is not None and not 1 <= number <= count:
        many = f"there are {count}" if count > 1 else "there is 1"
        raise BadInput(f"there is no launch {number}; {many}, counted from 1")


def check_selection(by: str | None, named: Mapping[str, object]) -> None:
    """BadInput for a part of a block where all blocks are shown. named: options, None where not given."""
    given = [name for name, value in named.items() if value is not None]
    if by == "block" and given:
        raise BadInput(f"by block, all blocks are shown whole; leave out {' and '.join(given)}")


def these_launches(numbers: Sequence[int]) -> str:
    """ "launches 1 and 2 take"."""
    if len(numbers) == 1:
        return f"launch {numbers[0]} takes"
    return f"launches {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} take"


def array_names(kernels: Sequence[Kernel], workload: Workload) -> list[str]:
    """Names of all arrays that kernels take."""
    numbers = [name for name, kind in workload.parameters.items() if "*" not in kind]
    return [name for kernel in kernels for name in arrays_of(kernel) if name not in numbers]


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def check_array(name: str, label: str, names: Iterable[str]) -> None:
    """BadInput for a name that is not an array of a kernel. names: those that are."""
    names = list(dict.fromkeys(names))
    if name not in names:
        raise BadInput(
            f"{label} has no array {shown(name)} in global memory{nearest(name, names)}; it has"
            f" {', '.join(names)}"
        )


def thread_map(launches: Iterable[Launched], asked: Asked, of: str) -> ThreadMap:
    """The map of the first launch that accesses the array as asked. BadInput if no launch does."""
    kinds: list[str] = []
    number = 1
    label, seen, count = "", 0, 1
    for one in launches:
        label, seen, count = one.binary.kernel.label, seen + 1, one.count
        touches = one.execution.touches
        assert touches is not None, "it was told to watch"
        kinds = [name for name, act in ACTS.items() if (touches.table["act"] == act).any()]
        if asked.access in ("", *kinds) and kinds:
            return map_of(one, touches, asked, asked.access or kinds[0], of)
        number = one.number
    where = f"block {','.join(map(str, asked.block))}" if asked.block else "no block"
    never = "ever" if asked.block is None else "never"
    what = f"{asked.access}s" if asked.access else "accesses"
    every = " in any launch" if seen > 1 else ""
    instead = f"; it {' and '.join(f'{kind}s' for kind in kinds)} it" if kinds else ""
    others = "; --by block shows which blocks do" if asked.block and not kinds else ""
    only = f"; this is launch {number} of {count}, --launch N shows another" if seen < count else ""
    raise BadInput(
        f"{label}: {where} {never} {what} an element of {asked.array}{every}{instead}{others}{only}"
    )


def map_of(one: Launched, touches: Touches, asked: Asked, access: str, of: str) -> ThreadMap:
    kernel, array = one.binary.kernel, one.array
    if touches.lost:
        met = touches.lost + len(touches.table)
        raise BadInput(
            f"{kernel.label} accesses {asked.array} {met:,} times, and {len(touches.table):,} are kept: name"
            " a smaller size, or one block"
        )
    table = touches.table[touches.table["act"] == ACTS[access]]
    tiles = tiles_of(table)
    count = int(tiles.max()) + 1
    tile = asked.tile
    if tile is None and access == "load" and asked.block is not None and count > 1:
        tile = 0
    if tile is not None and not ALL <= tile < count:
        raise BadInput(f"there is no tile {tile} of {asked.array}; there are {count}, counted from 0")
    tile = None if tile == ALL else tile
    if tile is not None:
        table = table[tiles == tile]
    flat = array.ndim < 2
    if asked.columns and not flat:
        raise BadInput(
            f"--columns is for arrays of one dimension; {asked.array} is {by_extents(array.shape)}"
        )
    if asked.columns < 0:
        raise BadInput(f"a row has at least one element, not {asked.columns}")
    columns = min(asked.columns or COLUMNS, array.size) if flat else array.shape[-1]
    shape = (-(-array.size // columns), columns)
    notes = []
    if array.shape != one.own:
        notes.append(
            f"in this launch {asked.array} is {by_extents(array.shape)}, partial results; the workload's own"
            f" {asked.array} is {by_extents(one.own)}"
        )
    if array.ndim > 2:
        matrix = by_extents(array.shape[-2:])
        notes.append(f"row numbers go on from one {matrix} matrix of {asked.array} to the next")
    if one.count > 1:
        notes.append(f"this is launch {one.number} of {one.count}; --launch N shows another")
    if table["bulk"].any():
        notes.append(
            "a unit makes these copies in bulk; all that it copies counts as one step of the lane that starts"
            " the copy"
        )
    faults = {finding.kind for finding in one.execution.findings}
    if faults & {"deadlock", "endless_loop"}:
        notes.append("the launch does not come to its end; this is what is done until then")
    if "out_of_bounds" in faults:
        notes.append("accesses outside of every array are left out; `check` or `run` says where they are")
    found = elements_of(table, array.itemsize, array.size)
    lines = lines_of(touches, table)
    return ThreadMap(
        kernel, of, asked.array, shape, flat, array.shape, array.itemsize, access, asked.block, tile, count,
        one.number, one.count, found, lines, tuple(notes),
    )  # fmt: skip


def by_extents(shape: Sequence[int]) -> str:
    """ "64 x 32", or "1,000 elements"."""
    return " x ".join(map(str, shape)) if len(shape) > 1 else plural(math.prod(shape), "element")


def lines_of(touches: Touches, table: np.ndarray) -> tuple[str, ...]:
    """The source lines that accesses come from, as "file:line"."""
    places = [touches.locations[int(line)] for line in dict.fromkeys(table["line"].tolist())]
    return tuple(dict.fromkeys(f"{one.file}:{one.line}" for one in places if one.line))


def tiles_of(table: np.ndarray) -> np.ndarray:
    """For each access the number of its tile in its block, in the order in which tiles are first met."""
    keys = np.stack([table["block"].astype(np.uint64), table["tile"]], 1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.lexsort([first, table["block"][first]])
    return ranks_within(table["block"][first][order], np.arange(len(order)))[np.argsort(order)][
        inverse.ravel()
    ]


def ranks_within(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each value its rank among the different values of its group. Both are sorted, by group first."""
    fresh = np.ones(len(values), bool)
    fresh[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
    count = np.cumsum(fresh) - 1
    starts = np.ones(len(values), bool)
    starts[1:] = groups[1:] != groups[:-1]
    return count - count[starts][np.cumsum(starts) - 1]


def elements_of(table: np.ndarray, itemsize: int, size: int) -> np.ndarray:
    """A row of ACCESS for each element of each access; elements beyond the array's are left out."""
    thread = (table["block"].astype(np.int64) << 16) + table["warp"] * 32 + table["lane"]
    order = np.lexsort([table["order"], thread])
    step = np.empty(len(table), np.int64)
    step[order] = ranks_within(thread[order], table["order"][order])
    first = table["offset"].astype(np.int64) // itemsize
    counts = (table["offset"].astype(np.int64) + table["bytes"] - 1) // itemsize - first + 1
    at = np.repeat(np.arange(len(table)), counts)
    found = np.empty(len(at), ACCESS)
    found["element"] = first[at] + np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    for name in ("block", "warp", "lane"):
        found[name] = table[name][at]
    found["step"] = step[at]
    return found[found["element"] < size]
