"""What Python and the C++ core both know: constants, numberings and the layout of every structure they share.

The C++ side is core/abi.h; tests/machines/test_abi.py compares the two.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag

import numpy as np

from tir_schedules.model.findings import KINDS, NOTES, OF_SEVERAL_ORDERS

NONE = 0xFFFFFFFF
"""No operand, no guard, no limit."""

BUFFER_SHIFT = 40
RANK_SHIFT = 24
"""An address of shared memory of a cluster: (rank of the block + 1) << RANK_SHIFT plus that in the block."""

SHARED_WINDOW, LOCAL_WINDOW = 1 << 36, 1 << 37
"""Where shared and local memory lie among generic addresses."""

FUNCTION_WINDOW, FUNCTION_BYTES = 1 << 38, 16
"""Where functions lie among addresses, and how far apart."""

FINDING_KINDS = tuple(kind for kind in (*KINDS, *NOTES) if kind not in OF_SEVERAL_ORDERS)
"""Names of Kind in core/abi.h, in its order, which is also how serious they are."""

SPECIAL = [
    "tid.x", "tid.y", "tid.z", "laneid", "warpid", "ctaid.x", "ctaid.y", "ctaid.z",
    "ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z",
]  # fmt: skip
"""Special registers, in the order of Program.special."""


class Space(IntEnum):
    SHARED = 0
    GLOBAL = 1
    LOCAL = 2
    GENERIC = 3


SPACES = {
    "shared": Space.SHARED,
    "global": Space.GLOBAL,
    "const": Space.GLOBAL,
    "local": Space.LOCAL,
    "generic": Space.GENERIC,
}
"""By the name PTX has for a state space."""


class Counting(IntEnum):
    """How an access is counted."""

    LOAD_COUNT = 0
    STORE_COUNT = 1
    ROWS_COUNT = 2
    GLOBAL_COUNT = 3
    COPY_COUNT = 4
    BYPASS_COUNT = 5


class Act(IntEnum):
    """What an access does to memory."""

    READ = 0
    WRITE = 1
    ATOMIC = 2


class Exit(IntEnum):
    """How a basic block ends."""

    BRANCH = 0
    BARRIER = 1
    LEAVE = 2
    CALL = 3
    RETURN = 4
    SWITCH = 5
    WAIT = 6


class Polls(IntEnum):
    """What a loop waits for: memory, or mbarriers alone."""

    NOTHING = 0
    OF_MEMORY = 1
    OF_BARRIERS = 2


class Flag(IntFlag):
    """Options of a launch: count accesses; let blocks, and the warps of each, take turns in reverse order, or
    in an order that a seed decides; do at once what asynchronous units do."""

    COUNT = 1
    REVERSE = 2
    SHUFFLE = 4
    EARLY = 8


class Trait(IntFlag):
    """What a kernel may do: order accesses by more than barriers of all threads; wait for memory in a loop;
    have barriers of some of its threads; have asynchronous units, mbarriers or clusters."""

    CLOCKS = 1
    POLLS = 2
    NAMED = 4
    UNITS = 8


class How(IntFlag):
    """How memory is accessed, and orders other accesses. STRONG: of two such accesses neither is a race.
    OF_BLOCK: strong for threads of the same block alone."""

    STORES = 1
    STRONG = 2
    UPDATES = 4
    OF_BLOCK = 8
    VOLATILE = 16
    ACQUIRES = 32
    RELEASES = 64


class Scope(IntEnum):
    """For whom a fence orders accesses."""

    THREADS_OF_BLOCK = 0
    DEVICE = 1


class Happening(IntEnum):
    """What a unit, or a thread with one, does."""

    INITIALISED = 0
    TESTED = 1
    PASSED = 2
    ARRIVED = 3
    EXPECTED = 4
    BEGUN = 5
    LANDED = 6
    MULTIPLIED = 7
    COMMITTED = 8
    DRAINED = 9
    STORED = 10
    STORES_COMMITTED = 11
    STORES_DRAINED = 12
    MET = 13


RIGHT_FACTOR = 1 << 31
"""Set in `at` of pieces of a product's right factor."""

MAP_MARK = 0x70616D20726F736E
"""What a tensor map begins with."""


def function_address(number: int) -> int:
    """Of a function of a module."""
    return FUNCTION_WINDOW + (number + 1) * FUNCTION_BYTES


def record(kind: str, names: str) -> list[tuple[str, str]]:
    """Fields of one type."""
    return [(name, kind) for name in names.split()]


MICRO_OP = np.dtype(
    record("u8", "run operands extent")
    + record("i8", "offset")
    + record("u4", "guard guard_negated")
    + record("i4", "line counter")
)
BASIC_BLOCK = np.dtype(
    record("u4", "first count cost exit guard guard_negated taken otherwise")
    + record("i4", "line")
    + record("u4", "end members gathers polls")
)
EXTENT = np.dtype(record("u4", "space low high number"))
COUNTER = np.dtype(record("u8", "requests cost ideal"))
BLOCK_COUNT = np.dtype(record("u8", "warps threads"))
MERGE = np.dtype([("offset", "i4"), ("width", "u4")])
BUFFER = np.dtype(record("u8", "data bytes cells") + record("u4", "element constant initialized pad"))
CELL = np.dtype(
    [("line", "i4"), *record("u4", "time block others"), *record("u2", "thread how"), ("plain_line", "i4")]
)
REQUEST = np.dtype(
    record("u4", "counter mask width cost ideal") + [("address", "u4", 32), ("value", "u4", 32)]
)
RECORD = np.dtype(
    record("u4", "counter source_counter counting warp mask reads width times cost ideal source_cost pad")
    + [("address", "u8", 32), ("source", "u8", 32)]
)
EVENT = np.dtype(
    record("u4", "what actor place warp lanes address other phase bytes row buffer") + [("line", "i4")]
)
MOVED = np.dtype(record("u4", "event at address bytes"))
FINDING = np.dtype(
    record("u4", "kind act space bytes")
    + record("i4", "line other_line warp lane other_warp other_lane")
    + [("block", "u4", 3)]
    + record("u4", "detail extent extent_bytes")
    + record("u8", "address count")
    + record("u4", "other_block role")
)
UNDEFINED = np.dtype(
    [("lanes", "u4"), ("line", "i4"), ("address", "u8"), *record("u4", "bytes extent extent_bytes")],
    align=True,
)

TENSOR_MAP = np.dtype(
    [
        *record("u8", "mark address"),
        ("shape", "u8", 5),
        ("pitches", "u8", 4),
        ("box", "u4", 5),
        *record("u4", "rank element swizzle"),
        ("pad", "u4", 2),
    ]
)

U32, U64, POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class Program(ctypes.Structure):
    """A lowered kernel."""

    _fields_ = [
        ("micro_ops", POINTER),
        ("blocks", POINTER),
        ("initial_registers", POINTER),
        ("register_bytes", U32),
        ("special", U32 * len(SPECIAL)),
        ("traits", U32),
        ("block_count", U32),
        ("counter_count", U32),
    ]


class Watch(ctypes.Structure):
    """The block that runs alone, the warp whose requests are kept, and room for them, and for records."""

    _fields_ = [
        *((name, POINTER) for name in ("requests", "records", "slots")),
        ("block", U32 * 3),
        *((name, U32) for name in ("warp", "limit", "met", "held", "valued")),
        *((name, U32) for name in ("record_limit", "recorded", "lost", "ended")),
        *((name, POINTER) for name in ("events", "moved")),
        *((name, U32) for name in ("event_limit", "events_met", "moved_limit", "moved_held", "rank", "pad")),
    ]


class Said(ctypes.Structure):
    """What a kernel printed, and the message of an assertion. bytes: of the text; cut: whether more was
    printed than there was room for."""

    _fields_ = [
        ("text", POINTER),
        ("message", POINTER),
        *((name, U32) for name in ("limit", "message_limit", "bytes", "cut")),
    ]


class LaunchArguments(ctypes.Structure):
    """All that the core's `launch` is given."""

    _fields_ = [
        ("program", ctypes.POINTER(Program)),
        *((name, POINTER) for name in ("params", "buffers", "counters", "merges", "block_counts")),
        *((name, POINTER) for name in ("findings", "watch", "origins", "stop", "said")),
        ("budget", U64),
        ("heap_bytes", U64),
        ("grid", U32 * 3),
        ("block", U32 * 3),
        *((name, U32) for name in ("buffer_count", "shared_bytes", "local_bytes", "flags")),
        *((name, U32) for name in ("granule_shift", "finding_limit", "stack_start", "stack_limit")),
        ("cluster", U32 * 3),
        *((name, U32) for name in ("seed", "resident", "cores", "registers")),
    ]
