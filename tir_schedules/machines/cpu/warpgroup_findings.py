"""What the engine recorded of faults with products of warpgroups and with tensor maps, in words."""

from __future__ import annotations

from typing import Callable

import numpy as np

from tir_schedules.machines.tensor_map import PIECE

LANES, DIFFERENT_WARPS, INCOMPLETE_GROUP, LEFT_OUT = range(4)
"""What is not together, as core/warpgroup.cpp has it."""


def divergent_aligned(record: np.void, other: str) -> str:
    if record["extent"] == INCOMPLETE_GROUP:
        return f"the block has {record['bytes']} warps, and a warpgroup four: take a multiple of 128 threads"
    if record["extent"] == LEFT_OUT:
        return f"warp {record['warp']} has left, and the others of its warpgroup have executed this"
    if record["extent"] == DIFFERENT_WARPS:
        return f"the warps of a warpgroup execute different instructions: {other} is there in its place"
    return f"not every lane it concerns executes it (active lanes {int(record['detail']):#010x})"


# ---- descriptors ---
def beyond(record: np.void) -> str:
    return f"it ends at byte {record['bytes']}, behind the end of shared memory: check start and strides"


def across_rows(record: np.void) -> str:
    span = int(record["extent_bytes"])
    into = int(record["address"]) % span
    return f"it begins {into} bytes into a row of {span}, and takes 32: begin {span - 32} into it at most"


def between_patterns(record: np.void) -> str:
    pattern = 8 * int(record["extent_bytes"])
    into = int(record["address"]) % pattern
    return (
        f"it begins {into} bytes into the pattern of its swizzle: align the array to {pattern} bytes, or say"
        f" base offset {into >> 7}"
    )


def wrong_base(record: np.void) -> str:
    pattern = 8 * int(record["extent_bytes"])
    right = int(record["address"]) % pattern >> 7
    return f"base offset {record['extent']} does not fit its start: {right} would"


def overlapping(record: np.void, which: str) -> str:
    pattern = 8 * int(record["extent_bytes"])
    return (
        f"its parts overlap: one takes {pattern} bytes, and by its {which} byte offset of {record['bytes']}"
        " the next begins within it"
    )


DESCRIPTOR_FAULTS: dict[int, Callable[[np.void], str]] = {
    1: lambda record: "bits are set that have no meaning: mask what is put into its fields with 0x3FFF",
    2: beyond,
    3: lambda record: f"base offset {record['extent']} without a swizzle: it has to be 0",
    4: across_rows,
    5: between_patterns,
    6: wrong_base,
    7: lambda record: "lanes or warps of the warpgroup have different ones: all have to have the same",
    8: lambda record: (
        f"its swizzle is of {int(record['extent_bytes']) or 'no'} bytes, the tensor map's of"
        f" {int(record['extent']) or 'none'}: take the same for both"
    ),
    9: lambda record: overlapping(record, "stride"),
    10: lambda record: overlapping(record, "leading"),
}
"""In the order of DescriptorFault in core/warpgroup.cpp."""

OTHER_SWIZZLE = 8


def bad_descriptor(record: np.void, other: str) -> str:
    fault, of_right = int(record["detail"]) & 0xFF, int(record["detail"]) >> 8
    what = f"the descriptor of {'AB'[of_right]} (start at byte {int(record['address'])} of shared memory)"
    copied = f" it reads what {other} has copied, and" if fault == OTHER_SWIZZLE else ""
    return f"{what}:{copied} {DESCRIPTOR_FAULTS[fault](record)}"


# ---- registers ---
def touched_registers(record: np.void, act: str, other: str) -> str:
    what = "a factor" if record["detail"] else "a sum"
    return f"{act} {what} of the wgmma of {other} before wgmma.wait_group has waited for its group"


def unfenced_registers(record: np.void, other: str) -> str:
    what = "a factor" if record["detail"] else "a sum"
    if not record["other_line"]:
        return f"{what} of it is in a register, and no wgmma.fence has been executed"
    return f"{what} of it was written by {other}, with no wgmma.fence between"


def too_many_registers(record: np.void) -> str:
    launched = int(record["extent_bytes"])
    there = f"it was launched with {launched}" if launched else "a multiprocessor has 65536"
    return (
        f"asks for {record['detail']} registers of each thread, and the block for {record['bytes']}: {there},"
        " and this waits forever"
    )


# ---- tensor maps ---
def within_a_piece(coordinate: int, element: int) -> str:
    """element: its bytes."""
    return (
        f"the innermost coordinate is {coordinate}, of elements of {element} bytes, so {coordinate * element}"
        f" bytes: it has to be a multiple of {PIECE} bytes, of {PIECE // element} elements, or a GPU ends the"
        " kernel (illegal instruction)"
    )


MAP_FAULTS: dict[int, Callable[[np.void], str]] = {
    1: lambda record: (
        "there is no tensor map at the address: pass one as const __grid_constant__ CUtensorMap, and name it"
        " in the launch"
    ),
    2: lambda record: (
        f"the copy has {record['bytes']} coordinates, and the tensor {record['extent_bytes']} dimensions"
    ),
    3: lambda record: (
        f"byte {int(record['address'])} of shared memory is no multiple of 128: align the array"
    ),
    4: lambda record: "the tensor map lies in memory that the kernel may write: pass it as a parameter",
    5: lambda record: within_a_piece(signed(record["bytes"]), int(record["extent_bytes"])),
    6: lambda record: (
        f"a store begins at coordinate {signed(record['bytes'])}: it may reach beyond the end of the tensor,"
        " but not begin before it, or a GPU ends the kernel (illegal instruction)"
    ),
}
"""In the order of MapFault in core/tensor_map.cpp."""


def signed(word: np.integer) -> int:
    """A coordinate."""
    return int(np.uint32(word).view(np.int32))


def bad_tensor_map(record: np.void) -> str:
    return MAP_FAULTS[int(record["detail"])](record)
