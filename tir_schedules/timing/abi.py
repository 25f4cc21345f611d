"""What Python and the C++ of the simulator share: structures, numbers of pipes, actions and reasons.

abi.h is written from this module when the core is compiled; `python -m tir_schedules.timing.abi` prints it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

SOURCES = 3
NO_REGISTER, NO_BOARD = 0xFFFF, 0xFF

SHARES = (1, 10, 25, 50, 75, 90, 99)
"""Percentiles that the latency of L2 is told at, from near lines to far ones."""


class Pipes(IntEnum):
    """What takes an instruction for some cycles before it takes the next."""

    PIPE_CONTROL = 0
    PIPE_FMA = 1
    PIPE_FMA_HEAVY = 2
    PIPE_ALU = 3
    PIPE_HALF = 4
    PIPE_DOUBLE = 5
    PIPE_SPECIAL = 6
    PIPE_TENSOR = 7
    PIPE_UNIFORM = 8
    PIPE_MEMORY = 9
    PIPES = 10


class Action(IntEnum):
    """What an instruction does besides taking its pipe. Those from SHARED to FLUSH go into the queue. ATOMIC:
    in global memory. ARRIVE, TRY_WAIT: at mbarriers. BOX_LOAD, BOX_STORE: copies by TMA; FLUSH: the end of a
    group of stores. PRODUCT: of a warpgroup; WAIT_PRODUCTS: for its groups. WAIT_MEMORY: until earlier
    accesses are seen by the GPU."""

    PLAIN = 0
    SHARED = 1
    GLOBAL_LOAD = 2
    GLOBAL_STORE = 3
    ASYNC_COPY = 4
    EXCHANGE = 5
    ATOMIC = 6
    ARRIVE = 7
    TRY_WAIT = 8
    BOX_LOAD = 9
    BOX_STORE = 10
    FLUSH = 11
    COMMIT = 12
    WAIT_BOARD = 13
    BARRIER_ACTION = 14
    PRODUCT = 15
    WAIT_PRODUCTS = 16
    CLUSTER_ARRIVE = 17
    CLUSTER_WAIT = 18
    WAIT_MEMORY = 19


class Reason(IntEnum):
    """What a warp waits for in a cycle in which it does not issue. DEPENDENCY: stall cycles that ptxas wrote.
    SHORT_BOARD, LONG_BOARD: a scoreboard, of shared memory and arithmetic, and of global memory. PIPE: it
    takes no instruction yet. BANKS: of registers. QUEUE: for memory. FETCH: of instructions. NOT_SELECTED:
    another warp issues. MBARRIER: for a phase of one. COPIES: until TMA has read what it stores. PRODUCTS: of
    its warpgroup. CLUSTER: for other blocks."""

    DEPENDENCY = 0
    SHORT_BOARD = 1
    LONG_BOARD = 2
    BARRIER = 3
    QUEUE = 4
    PIPE = 5
    BANKS = 6
    FETCH = 7
    NOT_SELECTED = 8
    MBARRIER = 9
    COPIES = 10
    PRODUCTS = 11
    CLUSTER = 12
    REASONS = 13


class Ending(IntEnum):
    """How a basic block of SASS ends, as far as a walk asks. WALK_EXIT_SOME: lanes may go on."""

    WALK_ON = 0
    WALK_CALL = 1
    WALK_RET = 2
    WALK_EXIT = 3
    WALK_EXIT_SOME = 4
    WALK_BSYNC = 5


class Kind(IntEnum):
    """Which other blocks read a line: those beside along x, along y, both, or neither."""

    OWN = 0
    ALONG_X = 1
    ALONG_Y = 2
    ALONG_BOTH = 3


HINTED = 4
"""Beside a Kind: the access asks L2 for the whole line."""


STRUCTURES = {
    "Gpu": np.dtype(
        [(name, "f8") for name in (
            "l1_bytes", "dram_latency", "read_cycles", "part_cycles", "l2_cycles", "dram_cycles",
            "page_cycles", "copy_page_cycles", "box_page_cycles", "write_cycles", "write_backlog",
            "queue_cycles",
            "barrier_per_warp", "barrier_latency", "line_cycles", "block_gap", "mbarrier_cycles",
            "mbarrier_wake", "remote_cycles", "box_row_cycles", "box_byte_cycles", "store_byte_cycles",
            "store_each", "cluster_latency", "write_back_cycles", "part_write_cycles",
            "multicast_byte_cycles", "atomic_port", "atomic_share",
            "dram_wait", "block_turn", "first_turn", "evict_cycles", "box_dram_more", "copy_dram_more",
            "l2_held", "request_cycles", "fence_behind", "atomic_performed",
        )] + [(name, "u4") for name in (
            "queue_loads", "queue_stores", "bank_window", "line_instructions", "lines_held", "pad",
        )] + [("l2_latency", "f8", (len(SHARES),)), ("meeting", "f8", (len(Kind),))]
    ),
    "Row": np.dtype(
        [(name, "f8") for name in ("latency", "per_wavefront", "path_cycles", "path_more", "occupies")]
        + [(name, "u4") for name in ("interval", "read_latency", "value")]
        + [("source", "u2", (SOURCES,))]
        + [(name, "u1") for name in (
            "stall", "yields", "writes", "reads", "waits", "pipe", "action", "board", "stores", "banked",
            "arrives_only", "reuse", "carries", "told", "local",
        )]
        + [("pad", "u1", (7,))]
    ),
    "Path": np.dtype([("numbers", "u8"), ("accesses", "u8"), ("length", "u4"), ("pad", "u4")]),
    "Access": np.dtype([(name, "u4") for name in (
        "wavefronts", "first", "pieces", "parts", "barrier", "arrivals", "bytes", "over", "blocks", "reads",
    )]),
    "Piece": np.dtype([("line", "u8"), ("sectors", "u4"), ("kind", "u4")]),
    "Issue": np.dtype([("cycle", "u8"), *((name, "u4") for name in ("warp", "number", "reason", "stalled"))]),
    "WalkRules": np.dtype(
        [("weak", "f8"), ("at_the_end", "f8"), ("skipped", "i8")]
        + [(name, "u4") for name in ("lone", "depth", "passed", "pad")]
    ),
    "Stretch": np.dtype(
        [(name, "u4") for name in ("first", "end", "marks", "marks_count", "ahead", "ahead_count")]
        + [("ahead_last", "i4"), ("after", "i4", (2,)), ("target", "i4"), ("behind", "i4")]
        + [(name, "u1") for name in ("ways", "kind", "conditional", "pad")]
    ),
    "Mark": np.dtype(
        [(name, "u4") for name in (
            "number", "line", "block", "slot", "nth", "per_turn", "copies", "kinds", "optional", "strong",
        )]
    ),
    "Turned": np.dtype([(name, "u4") for name in ("lines", "firm", "marked", "polled", "single")]),
    "Executed": np.dtype([(name, "u4") for name in ("block", "first", "end", "lanes")]),
    "MadeBy": np.dtype([("line", "u4"), ("kind", "u4"), ("named", "u4")]),
}  # fmt: skip
"""Gpu: figures of `GpuTable` for one kernel; l2_latency by SHARES, meeting by Kind, see Outside. Row: a SASS
instruction, told: a barrier to which a warp without an access does not come. Path: of a warp, addresses of
arrays. Access: what one costs, and the lines it touches, rows of Piece, kind: who else reads a line, see
Kind; parts: how many sectors it touches a part of, of an atomic how often L2 goes over its sectors; or what
it does at a barrier or an mbarrier, by number: arrivals and bytes that are expected there or that a copy
brings, how many phases are over behind a wait, blocks of the cluster that a copy is for, cycles in which TMA
reads the rows of a box. Issue: of an instruction, the Reason of most of the cycles that its warp stalled
before it, REASONS for none, and how many these were. The others are of walk.cpp. Stretch: a basic block of
SASS. Mark: a landmark of one, or of what lies ahead. Turned: what is known of a basic block of PTX. Executed:
one that lanes of a warp execute, and the rows of its accesses. MadeBy: the line of PTX that makes an access,
a bit for its class, and whether the SASS has an instruction that is named after that line."""

POINTERS = {"numbers": "const u32*", "accesses": "const s32*"}
FIGURES = ("wavefronts", "requested", "missed", "written", "live", "kept")


def header() -> str:
    """The text of abi.h."""
    text = "#pragma once\n#include <cstdint>\n"
    for name, cpp in {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}.items():
        text += f"typedef {cpp} {name};\n"
    text += "typedef int32_t s32;\ntypedef int64_t s64;\n"
    for name in ("SOURCES", "NO_REGISTER", "NO_BOARD", "HINTED"):
        text += f"const u32 {name} = {globals()[name]};\n"
    text += f"const u32 SHARES[] = {{{', '.join(map(str, SHARES))}}};\n"
    for kind in (Pipes, Action, Reason, Ending, Kind):
        text += (
            f"enum {kind.__name__} : u32 {{ {', '.join(f'{one.name} = {one.value}' for one in kind)} }};\n"
        )
    for name, dtype in STRUCTURES.items():
        fields = "".join(f"  {declared(field, dtype[field])};\n" for field in dtype.names or ())
        text += f"struct {name} {{\n{fields}}};\nstatic_assert(sizeof({name}) == {dtype.itemsize});\n"
    return text


def declared(name: str, dtype: np.dtype) -> str:
    """A field as C++ declares it."""
    if name in POINTERS:
        return f"{POINTERS[name]} {name}"
    base, shape = dtype.subdtype or (dtype, ())
    cpp = "double" if base.kind == "f" else f"{'s' if base.kind == 'i' else 'u'}{8 * base.itemsize}"
    return f"{cpp} {name}" + "".join(f"[{extent}]" for extent in shape)


if __name__ == "__main__":
    print(header())
