"""Which variable an address comes from, so that an access past its end is seen even where a neighbour lies.

A variable's address is a symbol, and what is computed from it and from numbers is an address in it. nvcc puts
the local arrays of a kernel into one variable, the depot, and makes the start of each by `add.u64` of a
constant to the depot's address; constant indices are added to the start, never folded into it. An array ends
where the next one starts, at most some padding later. Arrays that are never alive at once may share a place,
which is as long as the longest of them.

Where an address may come from several variables, it has to stay between the start of the first and the end of
the last. Only the bounds of the whole space are known for an address that may come from more than SEVERAL
variables, that was in memory, as an argument of a call was, or that is in the frame of a recursive function.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import EXTENT, NONE, SPACES, Space
from tir_schedules.machines.cpu.instructions import row_of

TO_THE_END = NONE
SEVERAL = 16
DEPOT = "__local_depot"


@dataclass(frozen=True)
class Extent:
    """Bytes of a space from low up to high, which is TO_THE_END for dynamic shared memory. name: of the
    variable in the CUDA source; empty for an array in the depot."""

    space: int
    low: int
    high: int
    name: str = ""


ANYWHERE = Extent(Space.GENERIC, 0, TO_THE_END)
NOWHERE: frozenset[Extent] = frozenset()


class Extents:
    """The variables of a kernel in shared and local memory; `known` begins with ANYWHERE."""

    def __init__(self, kernel: ptx.PtxKernel):
        self.variables = {variable.name: extent_of(variable) for variable in kernel.variables.values()}
        self.known: list[Extent] = []
        self._numbers: dict[Extent, int] = {}
        for extent in (ANYWHERE, *self.variables.values()):
            self._number(extent)
        self._reached: dict[ptx.Register, frozenset[Extent]] = defaultdict(frozenset)
        if self.variables:
            self._follow(kernel)

    def of(self, address: ptx.Address, space: str) -> int:
        """Number in `known` of the extent that an access through the address must stay in; 0 for any."""
        if isinstance(address.base, ptx.Symbol):
            found = frozenset({self.variables.get(address.base.name, ANYWHERE)})
        else:
            found = self._reached.get(address.base, NOWHERE) if address.base else NOWHERE
        if not found or ANYWHERE in found or len({extent.space for extent in found}) > 1:
            return 0
        extent = hull(found)
        if SPACES[space] not in (extent.space, Space.GENERIC):
            return 0
        return self._number(extent)

    def _number(self, extent: Extent) -> int:
        if extent not in self._numbers:
            self._numbers[extent] = len(self.known)
            self.known.append(extent)
        return self._numbers[extent]

    def _follow(self, kernel: ptx.PtxKernel) -> None:
        """Find what every register may be an address in: forward from each mention of a variable."""
        instructions = [i for i in kernel.instructions if computes_address(i)]
        users: dict[ptx.Register, list[int]] = defaultdict(list)
        for k, i in enumerate(instructions):
            for register in i.reads:
                users[register].append(k)
        mentions = (mentioned(self.variables, i) for i in instructions)
        seeds = {k: extents for k, extents in enumerate(mentions) if extents}
        arrays: dict[int, Extent] = {}  # by the instruction that makes the start of one
        for name, variable in kernel.variables.items():
            if name.startswith(DEPOT):
                arrays |= arrays_in(variable, instructions, users)
        for array in arrays.values():
            self._number(array)
        pending = list(dict.fromkeys([*seeds, *arrays]))
        for register in handed_addresses(kernel):
            self._reached[register] = frozenset({ANYWHERE})
            pending += users[register]
        while pending:
            k = pending.pop()
            i = instructions[k]
            found = NOWHERE.union(seeds.get(k, ()), *(self._reached[r] for r in i.reads))
            if k in arrays:
                found = frozenset({arrays[k]})
            for register in i.results:
                known = self._reached[register]
                more = any_of(known | found)
                if register.type != "pred" and more != known:
                    self._reached[register] = more
                    pending += users[register]


def any_of(extents: frozenset[Extent]) -> frozenset[Extent]:
    """The same; ANYWHERE alone where it is among them, or they are too many."""
    return frozenset({ANYWHERE}) if ANYWHERE in extents or len(extents) > SEVERAL else extents


def rows_of(extents: Sequence[Extent]) -> np.ndarray:
    """dtype EXTENT."""
    return np.array([(e.space, e.low, e.high, number) for number, e in enumerate(extents)], EXTENT)


def variable_at(extents: Sequence[Extent], space: int, address: int) -> Extent | None:
    """The variable that lies at an address. extents: all of a kernel, from ANYWHERE on."""
    there = (e for e in extents[1:] if e.space == space and e.low <= address < e.high)
    return next(there, None)


def hull(extents: frozenset[Extent]) -> Extent:
    """From the first of some variables of one space to the last."""
    first, *others = sorted(extents, key=lambda extent: (extent.low, extent.name))
    if not others:
        return first
    name = " or ".join(dict.fromkeys(extent.name or "an array" for extent in (first, *others)))
    return Extent(first.space, first.low, max(extent.high for extent in extents), name)


def extent_of(variable: ptx.Variable) -> Extent:
    if variable.name.startswith(DEPOT):
        return ANYWHERE
    end = TO_THE_END if variable.extern else variable.offset + variable.size
    return Extent(SPACES[variable.space], variable.offset, end, source_name(variable.name.partition("@")[0]))


def computes_address(i: ptx.Instruction) -> bool:
    """Whether its results are computed from its operands alone, and may be addresses."""
    in_memory = any(isinstance(operand, ptx.Address) for operand in i.operands)
    return not in_memory and row_of(i).makes_addresses


def mentioned(variables: dict[str, Extent], i: ptx.Instruction) -> list[Extent]:
    return [variables[o.name] for o in i.operands[1:] if isinstance(o, ptx.Symbol) and o.name in variables]


def handed_addresses(kernel: ptx.PtxKernel) -> list[ptx.Register]:
    """Registers that may hold the address of another function's variable: what a call hands over lies in
    local memory."""
    loads = (i for i in kernel.instructions if i.opcode.startswith("ld.local")) if kernel.starts else ()
    return [register for i in loads for register in i.results if register.bits == 64]


def arrays_in(
    depot: ptx.Variable, instructions: list[ptx.Instruction], users: dict[ptx.Register, list[int]]
) -> dict[int, Extent]:
    """Index of each instruction that makes the start of an array of a depot -> the array."""
    start = ptx.Symbol(depot.name)
    frames = [i.results[0] for i in instructions if i.name == "mov" and i.operands[1] == start]
    using = [instructions[k] for frame in frames for k in users[frame]]
    frames += [i.results[0] for i in using if i.name == "cvta"]
    starts = {
        k: instructions[k].number(2)
        for frame in frames
        for k in users[frame]
        if instructions[k].opcode == "add.u64" and isinstance(instructions[k].operands[2], ptx.Immediate)
    }
    ends = sorted({*starts.values(), depot.size})
    return {
        k: Extent(Space.LOCAL, depot.offset + start, depot.offset + ends[bisect_right(ends, start)])
        for k, start in starts.items()
        if 0 <= start < depot.size
    }


def source_name(symbol: str) -> str:
    """`As` of `_ZZ6kernelPKfE2As` and of `_ZZ6kernelPKfE2As_$_0`, the name of a variable in a function; any
    other symbol as it is."""
    for match in reversed(list(re.finditer(r"E(\d+)", symbol)) if symbol.startswith("_ZZ") else []):
        name, rest = symbol[match.end() :][: int(match[1])], symbol[match.end() :][int(match[1]) :]
        if len(name) == int(match[1]) and re.fullmatch(r"(_\d*_?|__\d+_)?(_\$_\d+)?", rest):
            return name
    return symbol
