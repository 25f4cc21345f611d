"""One SM, simulated: what C++ takes, made of a listing and the figures of a GPU, and what it says."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from math import inf
from typing import Sequence

import numpy as np

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu.abi import NONE, Happening
from tir_schedules.model.machine import Steps
from tir_schedules.timing import abi
from tir_schedules.timing.abi import Action, Pipes, Reason
from tir_schedules.timing.gpus import GpuTable
from tir_schedules.timing.library import library, pointer
from tir_schedules.timing.listing import REGISTER, Control, Instruction
from tir_schedules.timing.paths import WarpPath
from tir_schedules.timing.pipes import Pipe

PIPES = {
    Pipe.FMA: Pipes.PIPE_FMA, Pipe.FMA_HEAVY: Pipes.PIPE_FMA_HEAVY, Pipe.ALU: Pipes.PIPE_ALU,
    Pipe.HALF: Pipes.PIPE_HALF, Pipe.DOUBLE: Pipes.PIPE_DOUBLE, Pipe.SPECIAL: Pipes.PIPE_SPECIAL,
    Pipe.TENSOR: Pipes.PIPE_TENSOR, Pipe.UNIFORM: Pipes.PIPE_UNIFORM, Pipe.CONTROL: Pipes.PIPE_CONTROL,
    Pipe.CONSTANT: Pipes.PIPE_MEMORY, Pipe.SHARED: Pipes.PIPE_MEMORY, Pipe.GLOBAL: Pipes.PIPE_MEMORY,
    Pipe.EXCHANGE: Pipes.PIPE_MEMORY, Pipe.UNITS: Pipes.PIPE_MEMORY,
}  # fmt: skip

BANKED = (Pipe.FMA, Pipe.FMA_HEAVY, Pipe.ALU, Pipe.HALF)
"""Pipes whose instructions read registers from the two banks at once, in a fixed window."""

NOT_MODELLED = re.compile(r"^(UBLKRED|UTMAREDG|STAS)\b")
"""Reductions by TMA, and stores that tell an mbarrier of another block."""

STORES = ("STS", "STSM", "STG", "ST", "STL", "ATOMS", "RED", "REDG", "LDGSTS")

GATHERS = ("POPC", "REDUX")
"""With an atomic of the same line of PTX: one lane does it for all."""

FLOATS = {"F16", "BF16", "F32", "F64"}

WINDOW = 3
"""Cycles in which an instruction of fixed latency reads its registers (Huerta et al., MICRO'25)."""

OPERANDS_READ = 9
"""Cycles after which the sources of an instruction for memory may be written: of LDS by the same."""

READ_LATER = {"LDG": 2, "LD": 2, "STS": 3, "STG": 3, "ST": 3, "LDGSTS": 4}
"""How many more others take (probes "address of"), whatever the queue holds. Those of stores to global memory
are assumed."""

QUEUE_CYCLES = 4
"""From issue to the data path. Only how long an entry stays in the queue depends on it: a latency counts from
issue. An assumption."""

WRITE_BACKLOG = 64
"""Cycles of stores to L2 that may be on their way before further ones wait. An assumption."""

FENCE_BEHIND, ATOMIC_PERFORMED = 387, 1.48
"""Cycles from when L2 has performed a store until a fence of the device is over, and cycles in which L2
performs a sector of atomics of one SM (experiments/fences.py). On an H200 a warp that stored 512 bytes waited
387 cycles at its fence. 64 KB of red.v4.f32 by four warps left the SM in 2449 cycles, and the fence was over
after 3427."""

INSTRUCTION, CODE_LINE = 16, 128
"""Bytes of an instruction, and of a line of the instruction cache. The latter is an assumption."""

UNIT_FIGURES = {
    "mbarrier_cycles": "mbarrier", "mbarrier_wake": "wake", "remote_cycles": "remote",
    "box_row_cycles": "box row",
    "box_byte_cycles": "box byte", "multicast_byte_cycles": "multicast byte, all SMs",
    "store_byte_cycles": "store byte", "store_each": "store each",
}  # fmt: skip
"""Field of the core's Gpu -> name in `GpuTable.units`."""

LIMIT = 1 << 33
"""Cycles after which a simulation is given up."""


@dataclass(frozen=True)
class Simulated:
    """What an SM does. stalls: cycles of warps by instruction and Reason. issued: how often warps issued each
    instruction. wavefronts: of the data path. requested, missed, written: bytes of L1 and beyond. issues:
    rows of Issue, of the first block, as many as were asked for."""

    cycles: int
    stalls: np.ndarray = field(repr=False)
    issued: np.ndarray = field(repr=False)
    wavefronts: int
    requested: int
    missed: int
    written: int
    issues: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0, abi.STRUCTURES["Issue"]))


@dataclass(frozen=True)
class Outside:
    """What is behind the L1 of an SM. l2_bytes, dram_bytes: a cycle that L2 and DRAM give it where all SMs
    that are busy ask for the same; an SM that asked for less before is given more. back_bytes: the same of
    bytes that it writes. evict_bytes: the same of bytes that it reads from DRAM. Both push dirty lines out of
    L2, and DRAM takes those back. atomic_cycles: of L2, for a sector of an atomic, if all ask for as many.
    meeting: by Kind, how many SMs do atomics of a line. cold: for each block in the order in which they
    begin, a bit for each Kind of line that is not in L2 then; the last stands for those after it.
    block_cycles: between the beginnings of two blocks of an SM, at least; first_cycles: of those that begin
    at once. held: bytes of L2 that the lines of an SM may take. request_cycles: between two requests of TMA
    for a line or a part of one, where all SMs ask for the same."""

    l2_bytes: float = inf
    dram_bytes: float = inf
    cold: tuple[int, ...] = (0,)
    back_bytes: float = inf
    evict_bytes: float = inf
    atomic_cycles: float = 0
    meeting: tuple[float, ...] = (1.0,) * len(abi.Kind)
    block_cycles: float = 0
    first_cycles: float = 0
    held: float = inf
    request_cycles: float = 0


def rows_of(code: Sequence[Instruction], table: GpuTable) -> np.ndarray:
    """A row for each instruction. CheckFailed where one is not modelled yet."""
    rows = np.zeros(len(code), abi.STRUCTURES["Row"])
    rows["source"], rows["writes"], rows["reads"] = abi.NO_REGISTER, abi.NO_BOARD, abi.NO_BOARD
    gathered = {one.ptx_line for one in code if one.name in GATHERS}
    known: dict[tuple[str, tuple[str, ...], Control, bool], int] = {}
    for number, (one, row) in enumerate(zip(code, rows)):
        first = known.setdefault((one.opcode, one.operands, one.control, bool(one.predicate)), number)
        if first == number:
            fill(row, one, table)
        else:
            rows[number] = rows[first]
        if row["action"] == Action.ATOMIC:
            row["value"], row["occupies"] = one.ptx_line in gathered, atomic_cycles(one, table)
    return rows


def fill(row: np.void, one: Instruction, table: GpuTable) -> None:
    control, pipe = one.control, one.kind.pipe
    row["stall"], row["yields"], row["reuse"] = control.stall, control.yields, control.reuse
    row["waits"] = sum(1 << board for board in control.waits)
    if control.writes is not None:
        row["writes"] = control.writes
    if control.reads is not None:
        row["reads"] = control.reads
    row["pipe"] = PIPES.get(pipe, Pipes.PIPE_CONTROL)
    row["interval"], row["latency"] = interval_of(one, table), latency_of(one, table)
    row["read_latency"], row["action"] = OPERANDS_READ + READ_LATER.get(one.name, 0), action_of(one)
    row["per_wavefront"] = table.per_line if pipe is Pipe.GLOBAL else table.per_wavefront
    row["stores"], row["local"] = one.name in STORES, one.name in ("LDL", "STL")
    row["carries"], row["path_cycles"] = registers_of(one), table.path_cycles[path_of(one)]
    row["path_more"] = table.store_cycles if row["stores"] else 0
    row["banked"] = pipe in BANKED
    if row["banked"]:
        for slot, register in enumerate(sources_of(one)[: abi.SOURCES]):
            if register is not None:
                row["source"][slot] = register
    if row["action"] == Action.WAIT_BOARD:
        row["board"], row["value"] = int(one.operands[0].removeprefix("SB")), int(one.operands[1], 16)
    elif row["action"] == Action.BARRIER_ACTION:
        numbers = [int(text, 16) if text.startswith("0x") else 0 for text in one.operands]
        row["board"], row["value"] = numbers[0] % 16 if numbers else 0, numbers[1] // 32 if numbers[1:] else 0
        row["arrives_only"] = "ARV" in one.modifiers
        row["told"] = bool(one.predicate) and bool(row["board"] or row["value"])
    elif row["action"] == Action.ASYNC_COPY:
        row["value"] = "BYPASS" in one.modifiers
    elif row["action"] == Action.GLOBAL_LOAD:  # another SM may have written it
        row["value"] = "STRONG" in one.modifiers and bool({"GPU", "SYS"} & {*one.modifiers})
    elif row["action"] == Action.ARRIVE:
        row["value"] = "RED" in one.modifiers
    elif row["action"] in (Action.BOX_LOAD, Action.BOX_STORE):
        row["read_latency"] = round(table.units["copy accepted"])
    elif row["action"] == Action.PRODUCT:
        row["value"], row["occupies"] = "gsb0" in one.operands, occupies(one, table)
    elif row["action"] == Action.WAIT_PRODUCTS:
        row["value"] = int(one.operands[1], 16)


ACTIONS = {
    "BAR": Action.BARRIER_ACTION, "LDGDEPBAR": Action.COMMIT, "LDGSTS": Action.ASYNC_COPY,
    "UTMALDG": Action.BOX_LOAD, "UTMASTG": Action.BOX_STORE, "UTMACMDFLUSH": Action.FLUSH,
    "UCGABAR_ARV": Action.CLUSTER_ARRIVE, "UCGABAR_WAIT": Action.CLUSTER_WAIT,
    "HGMMA": Action.PRODUCT, "IGMMA": Action.PRODUCT, "QGMMA": Action.PRODUCT, "BGMMA": Action.PRODUCT,
    "STG": Action.GLOBAL_STORE, "ST": Action.GLOBAL_STORE, "STL": Action.GLOBAL_STORE,
    "LDG": Action.GLOBAL_LOAD, "LD": Action.GLOBAL_LOAD, "LDL": Action.GLOBAL_LOAD,
    "RED": Action.ATOMIC, "REDG": Action.ATOMIC, "ATOM": Action.ATOMIC, "ATOMG": Action.ATOMIC,
}  # fmt: skip


def action_of(one: Instruction) -> Action:
    pipe = one.kind.pipe
    if one.name == "DEPBAR" and len(one.operands) > 1:
        return Action.WAIT_BOARD
    if one.name == "WARPGROUP" and "DEPBAR" in one.modifiers:
        return Action.WAIT_PRODUCTS
    if one.name == "SYNCS":
        return Action.TRY_WAIT if "PHASECHK" in one.modifiers else Action.ARRIVE
    if one.name == "UBLKCP":
        return Action.BOX_LOAD if one.modifiers[0] == "S" else Action.BOX_STORE
    if one.name == "MEMBAR" and "CTA" not in one.modifiers:
        return Action.WAIT_MEMORY
    if pipe is Pipe.SHARED:
        return Action.SHARED
    if pipe is Pipe.EXCHANGE:
        return Action.EXCHANGE
    return ACTIONS.get(one.name, Action.PLAIN)


def interval_of(one: Instruction, table: GpuTable) -> int:
    """Cycles until the pipe takes the next instruction. Each half of FMA takes two of its figure."""
    pipe = one.kind.pipe
    if pipe is Pipe.FMA:
        return round(2 * table.intervals["fma"])
    if pipe is Pipe.FMA_HEAVY:
        wide = {"WIDE", "HI"} & {*one.modifiers}
        return round(table.intervals["imad.hi" if wide else "fma heavy"])
    if pipe is Pipe.TENSOR:
        return round(table.intervals.get(f"tensor {one.modifiers[0]}", table.intervals["tensor 16816"]))
    return round(table.intervals.get(pipe.value, 1))


def atomic_cycles(one: Instruction, table: GpuTable) -> float:
    """Of L2, until it does the next atomic of a word."""
    floats = FLOATS & {part.partition("x")[0] for part in one.modifiers}
    return table.atomic_cycles["float" if floats else "integer"]


def latency_of(one: Instruction, table: GpuTable) -> float:
    """Cycles from issue to the issue of what waits for the result by a scoreboard."""
    pipe, units = one.kind.pipe, table.units
    if one.name in UNIT_LATENCIES:
        return units[UNIT_LATENCIES[one.name]]
    if one.name == "UBLKCP":
        return units["bulk load" if one.modifiers[0] == "S" else "bulk store"]
    if one.name == "MEMBAR":
        return units["membar.cta" if "CTA" in one.modifiers else "membar.gl"]
    if action_of(one) is Action.PRODUCT:
        return columns_of(one) / 2 + units[f"product, A from {left_of(one)}"]
    if one.name == "ATOMS":
        return table.latencies["shared atomic"]
    if one.name == "LDSM":
        return table.latencies["ldsm"]
    if one.name in ("ATOM", "ATOMG"):
        return table.latencies["global atomic"]
    if pipe is Pipe.SHARED:
        return table.shared_latency[4 * registers_of(one)]
    return table.latencies.get(pipe.value, table.latencies["special"])


UNIT_LATENCIES = {
    "SYNCS": "try_wait", "UTMALDG": "box load", "UTMASTG": "box store", "FENCE": "membar.cta",
    "USETMAXREG": "membar.cta",
}  # fmt: skip
"""Opcode -> name of its latency in `GpuTable.units`. setmaxnreg was not measured."""


def columns_of(one: Instruction) -> int:
    """Of a product's right factor: HGMMA.64x128x16."""
    return int(one.modifiers[0].split("x")[1])


def left_of(one: Instruction) -> str:
    return "shared memory" if one.operands[1].startswith("gdesc") else "registers"


def occupies(one: Instruction, table: GpuTable) -> float:
    """Cycles until tensor cores take the next product: half a cycle for each column, and no less than its
    factors take to come, 32 bytes of each row of A and column of B, 128 of shared memory in a cycle."""
    columns = columns_of(one)
    read = 16 + columns / 4 if left_of(one) == "shared memory" else table.units["product of registers"]
    return max(columns / 2, read)


def path_of(one: Instruction) -> str:
    """What it takes on the way to the data path; a copy takes no registers there."""
    if one.name == "LDGSTS":
        return "copy"
    return "global" if one.kind.pipe is Pipe.GLOBAL else "shared"


def registers_of(one: Instruction) -> int:
    """Registers of a lane that an access fills or empties; those of LDSM come with its wavefronts. A copy
    counts as one."""
    if one.name == "LDGSTS":
        return 1
    return max((int(text) // 32 for text in one.modifiers if text in ("64", "128")), default=1)


def sources_of(one: Instruction) -> list[int | None]:
    """The registers that an instruction of fixed latency reads, by operand: None for a constant or RZ.
    Operands that are predicates have no place."""
    operands = [text for text in one.operands if not re.fullmatch(r"!?U?P[T\d]", text)]
    if one.operands and operands and one.operands[0] == operands[0]:
        del operands[0]  # what it writes
    found: list[int | None] = []
    for text in operands:
        match = REGISTER.search(text)
        found.append(int(match[2]) if match and not match[1] else None)
    return found


def simulate(
    code: Sequence[Instruction], warps: Sequence[WarpPath], steps: Steps, table: GpuTable, slots: int = 1,
    blocks: int = 0, l1_bytes: int = 128 << 10, outside: Outside = Outside(), issues: int = 0,
    cluster: int = 1, rows: np.ndarray | None = None,
) -> Simulated:  # fmt: skip
    """Blocks of an SM, all with the paths of one, from the first cycle to the last.

    slots: blocks that are there at once. blocks: in all, as many where none are named; each further one
    begins some time after another has ended. Blocks of one SM touch lines of their own. issues: how many of
    the first block's are kept. cluster: blocks of one. The others do what this one does: its arrivals at
    their mbarriers, and copies to several, are taken for theirs. rows: `rows_of(code, table)`, if they are
    known. CheckFailed for what is not modelled.
    """
    if unknown := unmodelled(code):
        met = sorted({code[n].name for w in warps for n in np.unique(w.numbers)} & unknown)
        if met:
            raise CheckFailed(f"the model of an SM does not have {', '.join(met)} yet")
    gpu = np.zeros(1, abi.STRUCTURES["Gpu"])
    gpu["l1_bytes"] = l1_bytes
    gpu["l2_latency"], gpu["dram_latency"] = table.l2_latency, table.dram_latency
    gpu["read_cycles"], gpu["part_cycles"] = 1 / table.read_bytes["alone"], table.part_cycles
    gpu["request_cycles"] = outside.request_cycles
    gpu["l2_cycles"], gpu["dram_cycles"] = 1 / outside.l2_bytes, 1 / outside.dram_bytes
    gpu["page_cycles"], gpu["copy_page_cycles"] = table.page_cycles, table.copy_page_cycles
    gpu["box_page_cycles"] = table.box_page_cycles
    gpu["box_dram_more"], gpu["copy_dram_more"] = table.box_dram_more, table.copy_dram_more
    gpu["write_cycles"], gpu["write_backlog"] = 1 / table.write_bytes, WRITE_BACKLOG
    gpu["part_write_cycles"] = table.part_write_cycles
    gpu["fence_behind"], gpu["atomic_performed"] = FENCE_BEHIND, ATOMIC_PERFORMED
    gpu["atomic_port"], gpu["atomic_share"] = table.atomic_cycles["sector"], outside.atomic_cycles
    gpu["write_back_cycles"], gpu["evict_cycles"] = 1 / outside.back_bytes, 1 / outside.evict_bytes
    gpu["meeting"] = outside.meeting
    gpu["l2_held"] = outside.held
    gpu["queue_cycles"] = QUEUE_CYCLES
    gpu["barrier_per_warp"], gpu["barrier_latency"] = round(table.barrier_per_warp), table.barrier_latency
    gpu["queue_loads"], gpu["queue_stores"] = table.queue_loads, table.queue_stores
    gpu["block_gap"], gpu["block_turn"] = table.gap, outside.block_cycles
    gpu["first_turn"] = outside.first_cycles
    gpu["dram_wait"] = table.dram_wait
    gpu["bank_window"], gpu["line_instructions"] = WINDOW, CODE_LINE // INSTRUCTION
    gpu["line_cycles"] = table.fetch_cycles * CODE_LINE / INSTRUCTION
    gpu["lines_held"] = table.code_bytes // CODE_LINE
    for name, figure in UNIT_FIGURES.items():
        gpu[name] = table.units[figure]
    gpu["cluster_latency"] = table.cluster_latency.get(cluster, 0)
    rows, (accesses, arrivals) = rows_of(code, table) if rows is None else rows, accesses_of(steps)
    pieces = np.ascontiguousarray(steps.pieces)
    begun = blocks or slots
    cold = np.array((outside.cold + outside.cold[-1:] * begun)[:begun], np.uint8)
    numbers = [np.ascontiguousarray(each.numbers, np.uint32) for each in warps]
    places = [np.ascontiguousarray(each.accesses, np.int32) for each in warps]
    paths = np.zeros(len(warps), abi.STRUCTURES["Path"])
    for row, mine, made in zip(paths, numbers, places):
        row["numbers"], row["accesses"], row["length"] = mine.ctypes.data, made.ctypes.data, len(mine)
    stalls = np.zeros((len(code), Reason.REASONS), np.uint64)
    issued, figures = np.zeros(len(code), np.uint64), np.zeros(len(abi.FIGURES), np.uint64)
    kept = np.zeros(issues, abi.STRUCTURES["Issue"])
    cycles = library().simulate(
        *map(pointer, (gpu, rows)), len(code), pointer(paths), len(warps), slots, begun,
        *map(pointer, (accesses, pieces, cold, arrivals)), len(arrivals), ctypes.c_uint64(LIMIT),
        *map(pointer, (stalls, issued, figures, kept)), ctypes.c_uint64(issues),
    )  # fmt: skip
    said = dict(zip(abi.FIGURES, figures.tolist()))
    kept = kept[: said.pop("kept")]
    if said.pop("live"):
        raise CheckFailed("the warps of a simulated SM wait for each other without end")
    return Simulated(cycles, stalls, issued, **said, issues=kept)


def unmodelled(code: Sequence[Instruction]) -> set[str]:
    return {one.name for one in code if NOT_MODELLED.match(one.opcode)}


def accesses_of(steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """What each access costs, and its lines, or what it does at a barrier; and the arrivals that each
    mbarrier of the block expects."""
    made = steps.made
    found = np.zeros(len(made), abi.STRUCTURES["Access"])
    found["wavefronts"], found["first"], found["pieces"] = made["cost"], made["first_piece"], made["pieces"]
    at = {happening: made["what"] == happening for happening in Happening}
    moves = (made["what"] == NONE) & (made["source_counter"] == NONE)
    found["parts"][moves] = made["source_cost"][moves]
    begun = np.flatnonzero(at[Happening.INITIALISED])
    places, firsts = np.unique(made["first"][begun], return_index=True)
    of_mbarrier = [at[getattr(Happening, name)] for name in ("ARRIVED", "EXPECTED", "PASSED", "BEGUN")]
    arrives, expects, passes, loads = of_mbarrier
    told = np.logical_or.reduce(of_mbarrier)
    found["barrier"][told] = np.searchsorted(places, made["first"][told])
    found["barrier"][at[Happening.MET]] = made["cost"][at[Happening.MET]]
    lanes = np.array([bin(each).count("1") for each in made["lanes"][expects].tolist()], np.uint32)
    found["arrivals"][arrives], found["arrivals"][expects] = made["cost"][arrives], lanes
    found["bytes"][expects] = made["cost"][expects] * lanes
    found["over"][passes] = made["source_cost"][passes] + np.uint32(1)
    copies = loads | at[Happening.STORED]
    for name, source in (("bytes", "cost"), ("blocks", "width")):
        found[name][copies] = made[source][copies]
    for name, which in (("reads", loads), ("parts", at[Happening.STORED])):
        found[name][which] = made["source_cost"][which]
    return found, np.ascontiguousarray(made["cost"][begun][firsts], np.uint32)
