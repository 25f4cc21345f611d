"""What CUDA asks of a tensor map: the checks of cuTensorMapEncodeTiled, for the machine that has no CUDA to
ask, and so that both machines say the same."""

from __future__ import annotations

from typing import Iterator

from tir_schedules.errors import CheckFailed
from tir_schedules.model.launch import TensorMap

ELEMENT_BYTES = {
    "uint8": 1, "uint16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8,
    "float16": 2, "float32": 4, "float64": 8, "bfloat16": 2,
}  # fmt: skip
"""Formats of elements that CUDA has and numpy, or its bits, too; in the order of CUtensorMapDataType."""

MOST_DIMENSIONS, MOST_IN_A_BOX, LARGEST_EXTENT, LARGEST_PITCH = 5, 256, 1 << 32, 1 << 40
PIECE = 16
"""Bytes that a copy moves at least; addresses, pitches and rows of a box are multiples of it."""

SWIZZLES = (0, 32, 64, 128)
"""In the order of CUtensorMapSwizzle."""

PROMOTIONS = (0, 64, 128, 256)
"""In the order of CUtensorMapL2promotion."""


def check_tensor_map(label: str, tensor: TensorMap, address: int = 0) -> None:
    """CheckFailed where CUDA refuses to make the map. label: of the kernel; address: of the array."""
    for fault in faults_of(tensor, address):
        raise CheckFailed(f"{label}: tensor map {tensor.name}: {fault}")


def faults_of(tensor: TensorMap, address: int = 0) -> Iterator[str]:
    """What is wrong with a map, and what would be right."""
    rank = len(tensor.shape)
    if tensor.element not in ELEMENT_BYTES:
        yield f"elements of {tensor.element}: they can be {', '.join(ELEMENT_BYTES)}"
        return
    if not 1 <= rank <= MOST_DIMENSIONS:
        yield f"{rank} dimensions: there can be 1 to {MOST_DIMENSIONS}"
    if len(tensor.box) != rank or len(tensor.pitches) != rank - 1:
        yield (
            f"shape {tensor.shape} needs {rank} extents of the box and {rank - 1} pitches, and has"
            f" {len(tensor.box)} and {len(tensor.pitches)}"
        )
    if address % PIECE:
        yield f"the array begins at {address:#x}: align it to {PIECE} bytes"
    for extent in tensor.shape:
        if not 1 <= extent <= LARGEST_EXTENT:
            yield f"an extent of {extent}: it can be 1 to 2**32"
    for extent in tensor.box:
        if not 1 <= extent <= MOST_IN_A_BOX:
            yield f"a box of {extent} elements along a dimension: there can be 1 to {MOST_IN_A_BOX}"
    for pitch in tensor.pitches:
        if pitch % PIECE or not 0 < pitch < LARGEST_PITCH:
            yield f"a pitch of {pitch} bytes: it has to be a multiple of {PIECE}, below 2**40"
    if tensor.swizzle not in SWIZZLES:
        yield f"a swizzle of {tensor.swizzle} bytes: it can be {', '.join(map(str, SWIZZLES))}"
    if tensor.promotion not in PROMOTIONS:
        yield f"a promotion to {tensor.promotion} bytes: it can be {', '.join(map(str, PROMOTIONS))}"
    row = tensor.box[-1] * ELEMENT_BYTES[tensor.element] if tensor.box else PIECE
    if row % PIECE:
        yield f"rows of the box have {row} bytes: make it a multiple of {PIECE}"
    if tensor.swizzle and row > tensor.swizzle:
        yield (
            f"rows of the box have {row} bytes, and the swizzle {tensor.swizzle}: at most"
            f" {tensor.swizzle // ELEMENT_BYTES[tensor.element]} elements fit"
        )
