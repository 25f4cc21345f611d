"""What Python and the C++ core both know: constants, numberings and every structure they share.

codegen.py makes core/abi.h of it, by the names that stand here. A structure is written as in C++.
"""

from __future__ import annotations

import ctypes
import re
from enum import IntEnum, IntFlag
from typing import Any, Iterator

import numpy as np

from tir_schedules.model.findings import KINDS, NOTES, OF_SEVERAL_ORDERS

NONE = 0xFFFFFFFF
"""No operand, no guard, no limit."""

BUFFER_SHIFT = 40
"""A global address is (buffer + 1) << BUFFER_SHIFT plus a byte offset, so that no stray offset reaches
another buffer. Generic addresses of shared and local memory lie in windows below the first buffer."""

RANK_SHIFT = 24
"""An address of shared memory of a cluster: (rank of the block + 1) << RANK_SHIFT plus that in the block."""

NO_MEMORY = NONE - 1
"""What the core returns of a launch that the host has too little memory for."""

SHARED_WINDOW, LOCAL_WINDOW, WINDOW_BYTES = 1 << 36, 1 << 37, 1 << 32
"""Where shared and local memory lie among generic addresses."""

FUNCTION_WINDOW, FUNCTION_BYTES = 1 << 38, 16
"""Where functions lie among addresses, and how far apart: the first at FUNCTION_WINDOW + FUNCTION_BYTES."""

RIGHT_FACTOR = 1 << 31
"""Set in `at` of pieces of a product's right factor."""

MAP_MARK = 0x70616D20726F736E
"""What a tensor map begins with."""

FINDING_KINDS = tuple(kind for kind in (*KINDS, *NOTES) if kind not in OF_SEVERAL_ORDERS)
"""Names of Kind in the core, in its order, which is also how serious they are."""

SPECIAL = [
    "tid.x", "tid.y", "tid.z", "laneid", "warpid", "ctaid.x", "ctaid.y", "ctaid.z",
    "ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z",
]  # fmt: skip
"""Special registers, in the order of Program.special."""

Space = IntEnum("Space", "SHARED GLOBAL LOCAL GENERIC", start=0)
SPACES = {one.name.lower(): one for one in Space} | {"const": Space.GLOBAL}
"""By the name PTX has for a state space."""

Counting = IntEnum(
    "Counting", "LOAD_COUNT STORE_COUNT ROWS_COUNT GLOBAL_COUNT COPY_COUNT BYPASS_COUNT", start=0
)
"""How an access is counted. STORE_COUNT: as an atomic is, too; BYPASS_COUNT: a cp.async past the L1 cache."""

Act = IntEnum("Act", "READ WRITE ATOMIC", start=0)
"""What an access does to memory."""

Exit = IntEnum("Exit", "BRANCH BARRIER LEAVE CALL RETURN SWITCH WAIT", start=0)
"""How a basic block ends. WAIT: lanes go on once the micro-op that ends the block says so."""

Polls = IntEnum("Polls", "NOTHING OF_MEMORY OF_BARRIERS", start=0)
"""What a loop waits for: memory, or mbarriers alone."""

Flag = IntFlag("Flag", "COUNT REVERSE SHUFFLE EARLY SIZES")
"""Options of a launch: count accesses; let blocks, and the warps of each, take turns in reverse order, or in
an order that a seed decides; do what asynchronous units do at once, and not as late as allowed;
keep the sizes of what is stored in buffers that want it."""

Trait = IntFlag("Trait", "CLOCKS POLLS NAMED UNITS OBSERVES")
"""What a kernel may do, as far as its text tells: order accesses by more than barriers of all threads; wait
for memory in a loop; have barriers of some of its threads; have asynchronous units, mbarriers or
clusters; read by strong loads what strong accesses have stored."""

How = IntFlag(
    "How", "STORES STRONG UPDATES OF_BLOCK VOLATILE ACQUIRES RELEASES POLLED GUESSED TOGETHER NON_COHERENT"
)
"""How memory is accessed, and orders other accesses. STRONG: volatile, relaxed or by a synchronising
instruction; of two such accesses neither is a race. OF_BLOCK: strong for threads of the same block alone.
POLLED: a loop looks again, or the value is a hint. GUESSED: a compare-and-swap decides whether the value
was right. TOGETHER: no lane goes on before all have read. NON_COHERENT: by a cache that does not learn of
stores."""

Scope = IntEnum("Scope", "THREADS_OF_BLOCK DEVICE", start=0)
"""For whom a fence orders accesses."""

Happening = IntEnum(
    "Happening",
    "INITIALISED TESTED PASSED ARRIVED EXPECTED BEGUN LANDED MULTIPLIED COMMITTED DRAINED STORED"
    " STORES_COMMITTED STORES_DRAINED MET",
    start=0,
)
"""What a unit, or a thread with one, does. TESTED: in vain, what is waited for. DRAINED, STORES_DRAINED:
products or stores have been waited for. MET: at a barrier of threads."""


def function_address(number: int) -> int:
    """The address of a function of a module."""
    return FUNCTION_WINDOW + (number + 1) * FUNCTION_BYTES


# ---- structures: each field as C++ has it, and several names after one type ---
STRUCTURES: dict[str, str] = {}
"""Name in C++ -> fields; in an order in which C++ can read them."""

SIZES: dict[str, int] = {}
"""Bytes of those that Python has in arrays."""

DECLARATION = re.compile(r"((?:const |volatile )*\w+\*?) (.+)")
NUMPY = {"u16": "u2", "u32": "u4", "u64": "u8", "s32": "i4", "s64": "i8"}


def declared(fields: str) -> Iterator[tuple[str, str, int]]:
    """Type, name and length of each field; length 0 where it is not an array."""
    for declaration in fields.split("; "):
        kind, names = DECLARATION.fullmatch(declaration).groups()  # type: ignore[union-attr]
        for name in names.split():
            name, _, length = name.rstrip("]").partition("[")
            yield kind, name, int(length or 0)


def structure(name: str, fields: str) -> np.dtype:
    """One that Python has in arrays: addresses are numbers."""
    columns = [(n, NUMPY.get(kind, "u8"), size or ()) for kind, n, size in declared(fields)]
    made = np.dtype(columns, align=True)
    STRUCTURES[name], SIZES[name] = fields, made.itemsize
    return made


def given(name: str, fields: str) -> list[tuple[str, Any]]:
    """Fields of one that a launch is given."""
    STRUCTURES[name] = fields
    return [(n, ctype(kind, length)) for kind, n, length in declared(fields)]


def ctype(kind: str, length: int) -> Any:
    if kind == "const Program*":
        return ctypes.POINTER(Program)
    known = {"u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "double": ctypes.c_double}
    element = known.get(kind, ctypes.c_void_p)
    return element * length if length else element


EXTENT = structure("Extent", "u32 space low high number")
"""The bytes of one variable in its space: what an address that comes from it may reach. high: NONE up to the
end of the space."""

MICRO_OP = structure(
    "MicroOp",
    "Function run; const u32* operands; const Extent* extent; u32 guard guard_negated; s32 line counter",
)
"""One call of a function for a warp. operands: see operands.h. guard: place of a predicate, or NONE."""

BASIC_BLOCK = structure(
    "BasicBlock",
    "u32 first count cost exit guard guard_negated taken otherwise; s32 line; u32 end members gathers polls",
)
"""end: the micro-op of what ends it, NONE where that needs no operands. members: the register that names the
lanes which execute its first instruction together, NONE: none need; gathers: these may be at several such
instructions. polls: the branch back to `taken` closes a loop that waits: see Polls."""


class Program(ctypes.Structure):
    """A lowered kernel. special: places of the special registers. deciding: how many of register_bytes,
    the first ones, are of registers that loops which wait go on by."""

    _fields_ = given(
        "Program",
        "const MicroOp* micro_ops; const BasicBlock* blocks; const u8* initial_registers; u32 "
        f"register_bytes deciding special[{len(SPECIAL)}] traits block_count counter_count",
    )


FINDING = structure(
    "Finding",
    "u32 kind act space bytes; s32 line other_line warp lane other_warp other_lane; u32 block[3] detail "
    "extent extent_bytes; u64 address count; u32 other_block role",
)
"""A fault met for the first time at these source lines, and how often it was met there. line, other_line: of
PTX; other: the access it conflicts with, 0 if none. detail: a lane mask, or a stride in bytes. extent,
extent_bytes: of the variable the address comes from, 0 where that is not known; its bytes. other_block: from
1 in the order of indices; 0: this one. role: see role_of."""

COUNTER = structure("Counter", "u64 requests cost ideal")
BLOCK_COUNT = structure("BlockCount", "u64 warps threads")
"""How often a basic block was entered: by warps, by their lanes."""

MERGE = structure("Merge", "s32 offset; u32 width")
"""The wider access that ptxas makes of this one; width 0: none; NONE: another access counts for it."""

REQUEST = structure("Request", "u32 counter mask width cost ideal address[32] value[32]")
"""A warp's access to shared memory, as it is counted. value: the first bytes at each address afterwards."""

RECORD = structure(
    "Record",
    "u32 counter source_counter counting warp mask reads width times cost ideal source_cost pad; u64 "
    "address[32] source[32]",
)
"""A warp's access to shared or global memory as it is counted, and how often it was made. counter: NONE for
a copy's side that is not counted. address: in shared memory, and of an access to global memory there;
source: of a copy. reads: lanes of a copy that read. cost, ideal: wavefronts of shared memory, or sectors;
source_cost: sectors of a copy."""

EVENT = structure("Event", "u32 what actor place warp lanes address other phase bytes row buffer; s32 line")
"""Something that a warp or a unit does. actor, place: ranks of the blocks of who does it and of the shared
memory it is about. address: of an mbarrier, or what a copy or product begins at; other: of the mbarrier that
a copy tells, or of a product's right factor. phase: of the mbarrier; the number of a group of products or
stores, or of a meeting. bytes: that a copy moves or an mbarrier expects; arrivals; groups that may stay
open; columns of a product. row: bytes of that of a box; options of a product. buffer: number of what a box
is of, from 1."""

MOVED = structure("Moved", "u32 event at address bytes")
"""A piece that a copy or a product moves. event: its number. at: which of its pieces: bytes from the
beginning of a box; of a product from 0, row by row, or k by k where it lies across, with RIGHT_FACTOR for
those of the right one."""

TOUCH = structure("Touch", "u64 offset tile; u32 block warp lane bytes order act; s32 line; u32 bulk")
"""A thread's access to the array that is watched. offset: of its first byte. tile: it changes where the block
waits between two tiles: at barriers, and with each group of cp.async; of a bulk copy, the filling of an
mbarrier. order: number of the access, the same for all lanes of a warp, and for all pieces of a bulk copy.
act: see Act. line: of PTX. bulk: whether a unit carries it out, which the thread tells to."""

STEP = structure("Step", "u32 warp block lanes made")
"""A basic block that lanes of a warp execute. made: how many accesses were made before it."""

MADE = structure(
    "Made",
    "u32 counter lanes width cost source_counter source_cost first_piece pieces; u64 first; s32 line; "
    "u32 what",
)
"""A warp's access to shared or global memory as it is counted, see Record. first_piece, pieces: of global
memory that it touches; source_cost: sectors that it touches in part, of an atomic all of them, each as often
as most lanes meet at a word of it. first: address of its first lane.
what: NONE.

Or what a warp does with a unit, a Happening: INITIALISED, ARRIVED, EXPECTED, PASSED, BEGUN, STORED or MET.
counter: NONE. line: of PTX. first: the mbarrier in the block's shared memory, of a copy that which is told.
cost: arrivals, bytes that are expected or copied, or the number of a barrier. source_cost: the phase that is
over; of a copy that loads, the cycles in which a unit reads its rows, of one that stores, sectors that it
writes in part. width: blocks of the cluster that it is for."""

LINE_PIECE = structure("LinePiece", "u64 line; u32 sectors kind")
"""Sectors of 32 bytes of a line of 128, a bit each. line: its address in lines. kind: 0, room for others."""


class Watch(ctypes.Structure):
    """The block that runs alone, and the warp whose requests are kept. met, held, valued: how many requests
    there were, how many of them are kept, and of how many of these the values are known. records: null, or
    room for those of all its warps; slots: a table of twice `record_limit` places, each empty or the number
    of a record, from 1 on; lost: how many accesses found no room. ended: whether the block does so, alone.
    events, moved: what units and mbarriers of the block do, in order; the pieces that the first of them
    move. touches: null, or room for `touch_limit` accesses to buffer `array`, numbered from 1; touched: how
    many there were. among_all: run all blocks; every_block: keep what all do. cycles: null, or those of a
    warp in each basic block, negative in loops that wait for memory; link: those from a store until another
    block finds it; alone, among: when the last block ends if none waits for others, and with these waits.
    idle: products of warpgroups are not computed. steps, made, pieces: basic blocks that its warps execute,
    in order, the accesses these make, and the lines these touch."""

    _fields_ = given(
        "Watch",
        "Request* requests; Record* records; u32* slots; u32 block[3] warp limit met held valued "
        "record_limit recorded lost ended; Event* events; Moved* moved; u32 event_limit events_met "
        "moved_limit moved_held rank idle; Touch* touches; u32 touch_limit touched array order among_all "
        "every_block; Step* steps; Made* made; LinePiece* pieces; u32 step_limit steps_met made_limit "
        "made_met piece_limit pieces_met; double* cycles; double link alone among",
    )


class Said(ctypes.Structure):
    """What a kernel printed, and the message of an assertion, which ends in a zero. bytes: of the text; cut:
    whether more was printed than there was room for."""

    _fields_ = given("Said", "char* text message; u32 limit message_limit bytes cut")


CELL = structure("Cell", "s32 line; u32 epoch block prior; u16 thread how; s32 plain_line")
"""The accesses to one element of memory that later ones may clash with. line: of the last store, 0: none.
epoch, block, thread, how: of the last store that was not an atomic; block 0: none. prior: number of the first
PriorAccess, see core/state/order.h."""

BUFFER = structure(
    "Buffer", "u8* data; u64 bytes; Cell* cells; double* largest; u32 element constant initialized real"
)
"""cells: null for a buffer that no kernel writes. element: log2 of the bytes of an element. largest: the
largest magnitude that was stored to each number, or null. real: what the numbers are. For floats it is
bytes << 8 | bits of the exponent; for others it is 1; where it is not known it is 0."""

UNDEFINED = structure("Undefined", "u32 lanes; s32 line; u64 address; u32 bytes extent extent_bytes space")
"""The place of a register that may be undefined. lanes: those in which it is. line: of the read of memory or
the shuffle that the value comes from, 0 for a variable; space, address, bytes, extent: of that read, which
has bytes; of a followed load the address is the element's number."""

TENSOR_MAP = structure(
    "TensorMap", "u64 mark address shape[5] pitches[4]; u32 box[5] rank element swizzle pad[2]"
)
"""The tensor map that a kernel is given as a parameter of 128 bytes: the fields are the machine's own.
Dimension 0 is the innermost. mark: MAP_MARK. address: of the array; element: its bytes; swizzle: bytes of a
row over which pieces of 16 change places, 0: none."""


class LaunchArguments(ctypes.Structure):
    """All that the core's `launch` is given. watch: null: none. origins: PTX line -> number of the source
    line it comes from. stop: not 0: the launch is to end. stack_start, stack_limit: of the frames of
    recursive functions, in local memory; their bytes at most. resident: blocks that a GPU holds at once;
    cores: threads to run them; registers: of a thread, as ptxas says, 0: not known;
    NONE: ptxas ignores setmaxnreg."""

    _fields_ = given(
        "LaunchArguments",
        "const Program* program; const u8* params; const Buffer* buffers; Counter* counters; const Merge* "
        "merges; BlockCount* block_counts; Finding* findings; Watch* watch; const s32* origins; const "
        "volatile u32* stop; Said* said; u64 budget heap_bytes; u32 grid[3] block[3] buffer_count "
        "shared_bytes local_bytes flags granule_shift finding_limit stack_start stack_limit cluster[3] "
        "seed resident cores registers",
    )
