"""A launch: grid, clusters and block, the tensor maps it is given, and what CUDA allows of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from tir_schedules.errors import BadInput, TooLarge

Dim3 = tuple[int, int, int]

LINE = 128
"""Bytes of a line of L2. Rows of copies are a multiple of it."""

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""Most blocks of a grid along x, y and z (CUDA programming guide, compute capabilities)."""


@dataclass(frozen=True)
class Struct:
    """A struct that a kernel takes by value, whose members stand among the kernel's params one after another.

    first: the place of the first of them. offsets: of each member, in bytes. size: of the struct, in bytes.
    """

    first: int
    offsets: tuple[int, ...]
    size: int

    def join(self, members: Sequence[Any]) -> bytes:
        """The struct's bytes. members: addresses, and numpy scalars."""
        content = bytearray(self.size)
        for offset, value in zip(self.offsets, members):
            data = value.to_bytes(8, "little") if isinstance(value, int) else value.tobytes()
            content[offset : offset + len(data)] = data
        return bytes(content)


def join_structs(structs: Sequence[Struct], values: Sequence[Any]) -> list[Any]:
    """Values of all params with one in place of the members of each struct."""
    joined = list(values)
    for one in reversed(structs):
        last = one.first + len(one.offsets)
        joined[one.first : last] = [one.join(values[one.first : last])]
    return joined


@dataclass(frozen=True)
class TensorMap:
    """How TMA (the Tensor Memory Accelerator) of an sm_90 sees an array: a tensor that it copies in boxes.

    name: of the kernel's parameter, a `const __grid_constant__ CUtensorMap`, such as "A_map". of: of the
    array it describes. element: format of the elements, "float16", "bfloat16" or "float32". shape: elements
    along each of 1 to 5 dimensions, outermost first, as numpy has it; what a box has beyond them reads as 0
    and is not written. pitches: bytes from one element to the next along each dimension but the innermost,
    outermost first, multiples of 16. box: elements along each dimension that one copy takes, 256 at most.
    swizzle: bytes of a row of the box over which 16-byte pieces change places in shared memory: 0 for none,
    32, 64 or 128. promotion: bytes that L2 fetches at least, 0, 64, 128 or 256.
    """

    name: str
    of: str
    element: str
    shape: tuple[int, ...]
    pitches: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    promotion: int = 128


def pitch_of(row: int, line: int = 16) -> int:
    """Bytes from one row of so many to the next, for a map, which takes multiples of 16: those of the matrix
    where they are multiples of `line`, else those of a copy, multiples of LINE."""
    return ceil_div(row, LINE) * LINE if row % line else row


def promotion_of(pitch: int, along_k: bool = True) -> int:
    """Bytes that L2 fetches at least for a map whose rows are so far apart: two lines of 128, or one where
    rows do not begin with a pair of lines. There a pair has bytes of two K tiles: 3000x3000x3000 took 96 us
    on an H100 with pairs, and 83 with lines. Where memory limits, pairs are 2 to 4 % faster.

    along_k: whether rows go along k. Else the second line of a pair belongs to the box beside, which is
    copied at the same time. An H200 read 8192x32768 in columns of 256 at 4.10 TB/s with pairs, and at 4.39
    with lines."""
    return 256 if along_k and pitch % 256 == 0 else 128


def described_array(name: str, row: int, pitch: int) -> str:
    """The name of the array that a tensor map describes: the matrix itself, or a copy whose rows are further
    apart, "A_rows"."""
    return f"{name}_rows" if pitch != row else name


@dataclass(frozen=True)
class Launch:
    """Grid and block (x, y, z), bytes of dynamic shared memory, blocks of a cluster (x, y, z), and the tensor
    maps among the kernel's parameters.

    parts: blocks along z that each leave a result of their own, for a launch that adds them up; 1 where z is
    anything else.
    workspaces: arrays besides those of the workload, and their extents, which launches before it fill.
    """

    grid: Dim3
    block: Dim3
    dynamic_shared: int = 0
    cluster: Dim3 = (1, 1, 1)
    maps: tuple[TensorMap, ...] = ()
    parts: int = 1
    workspaces: tuple[tuple[str, tuple[int, ...]], ...] = ()


def ceil_div(extent: int, part: int) -> int:
    """How many parts cover an extent."""
    return -(-extent // part)


def check_parts(label: str, parts: int, rows: int, columns: int) -> None:
    """TooLarge when parts, which leave a matrix of so many rows and columns each, leave more elements than
    indices of 32 bits count."""
    if parts > 1 and parts * rows * columns >= 2**31:
        raise TooLarge(
            f"{label}: {parts} parts of {rows}x{columns} have 2**31 elements or more (32-bit indices): take"
            " fewer splits"
        )


def check_grid(label: str, grid: Dim3) -> None:
    """TooLarge when CUDA has no such grid."""
    for axis, blocks, most in zip("xyz", grid, MOST_BLOCKS):
        if blocks < 1:
            raise BadInput(f"{label}: the grid has {blocks} blocks along {axis}; it takes 1 or more")
        if blocks > most:
            raise TooLarge(
                f"{label}: the grid has {blocks} blocks along {axis}; CUDA allows 1 to {most}: take a smaller"
                " shape"
            )
