"""A kernel with the functions it calls, as one list of basic blocks.

What a call hands over lies in each thread's local memory: arguments and results in two areas that all calls
share, which a function copies from as it begins. So `ld.param` and `st.param` become loads and stores there.
A function that cannot be under way twice has its parameters and variables at a fixed place; those of a
recursive one are in a frame of each call, on a stack behind all else.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Union

from tir_schedules.machines.cpu import call_graph, ptx
from tir_schedules.machines.cpu.flow import basic_blocks
from tir_schedules.model.gpus import rounded_up

ARGUMENTS, RESULTS = "arguments of calls", "results of calls"
"""The areas that calls share, as variables."""

START, END = "start", "end"
"""Of a frame, beside the names of what is in it."""

SAVE, RESUME, RETURN, ENTER, PUSH = "call.save", "call.resume", "call.return", "call.enter", "call.push"
"""Instructions that no PTX has."""

DYNAMIC_ALIGN = FRAME_ALIGN = 16
GAP = 64
"""Bytes between the variables of two functions: a read past the end of an array finds memory that was never
written."""

RETURN_ADDRESS, LEAST_FRAME = 8, 16
PARAM_SPACE = re.compile(r"\.param(::\w+)?(?=\.|$)")
QUICK_PARAMETER = re.compile(r"ld\.param(::entry)?\.([usbf](16|32|64)|[ub]8)$")
"""Loads of a kernel's parameters that need no address: one value of at most 64 bits."""


def linked_kernel(
    entry: ptx.PtxFunction,
    functions: dict[str, ptx.PtxFunction],
    shared: dict[str, ptx.Variable],
    stored: set[str],
    refused: dict[str, ptx.UnsupportedInstruction],
) -> ptx.PtxKernel:
    """The kernel of an entry. shared: variables of the module in shared memory. stored: what initial values
    hold the addresses of. refused: functions with unknown instructions, and why."""
    graph = call_graph.CallGraph(entry, functions, stored, refused)
    return Linker(entry, graph, shared).kernel()


def taking(*sizes: int, returns: int = 0) -> ptx.Prototype:
    """The prototype of a function of the machine, by the bytes of each parameter and of the result."""
    offsets = [sum(sizes[:k]) + 4 * (4 in sizes[:k] and sizes[k] == 8) for k in range(len(sizes))]
    parameters = (ptx.Parameter("", f"b{8 * size}", size, at) for size, at in zip(sizes, offsets))
    results = (ptx.Parameter("", f"b{8 * size}", size, 0) for size in (returns,) if size)
    return ptx.Prototype(tuple(parameters), tuple(results))


BUILT_IN_PROTOTYPES = {
    "vprintf": taking(8, 8, returns=4),
    "__assertfail": taking(8, 8, 4, 8, 8),
    "malloc": taking(8, returns=8),
    "free": taking(8),
    "memcpy": taking(8, 8, 8, returns=8),
    "memset": taking(8, 4, 8, returns=8),
}


class Linker:
    """Lays out memory, then rewrites the functions one after another, callees first.

    frames: of each recursive function, offsets of its parameters and variables in the frame.
    """

    def __init__(self, entry: ptx.PtxFunction, graph: call_graph.CallGraph, shared: dict[str, ptx.Variable]):
        self.entry, self.graph = entry, graph
        self.addresses_parameters = False
        self.frames: dict[str, dict[str, int]] = {}
        self.sizes = {"shared": 0, "local": 0}
        mentioned = set[str]().union(*(function.mentioned for function in graph.order))
        used = [replace(variable) for name, variable in shared.items() if name in mentioned]
        own = [v for f in graph.order for v in f.variables.values() if f is entry or v.space == "shared"]
        self.variables = {variable.name: replace(variable) for variable in [*used, *own]}
        aligns = [DYNAMIC_ALIGN, *(v.align for v in self.variables.values() if v.extern)]
        for variable in sorted(self.variables.values(), key=lambda v: v.extern):
            self._place(
                variable, max(aligns) if variable.extern else variable.align
            )  # which share their start
        for function in reversed(graph.order[:-1]):
            self._frame(function)
        for area in (ARGUMENTS, RESULTS):
            size = max((end_of(handed(area, p)) for f in graph.order for p in self._prototypes(f)), default=0)
            if size:
                self.sizes["local"] += GAP
                self._place(ptx.Variable(area, "local", FRAME_ALIGN, size), FRAME_ALIGN)

    def kernel(self) -> ptx.PtxKernel:
        order, starts = self.graph.order, {}
        blocks = [ptx.BasicBlock(0)] if len(order) > 1 else []
        scale = int(any(i.name == "alloca" for function in order for i in function.instructions))
        for function in order:
            starts[function.name] = len(blocks)
            added = basic_blocks(Rewriter(self, function).items(), len(blocks))
            if function.name in self.graph.recursive:
                scale = max(scale, self._keep_registers(function, added))
            blocks += added
        first = starts.pop(self.entry.name)
        if first:
            blocks[0].successors = (first,)
            blocks[0].live, blocks[0].registers = blocks[first].live, blocks[first].registers
        return ptx.PtxKernel(
            self.entry.name, list(self.entry.prototype.parameters), self.variables, blocks,
            self.sizes["shared"], self.sizes["local"], starts, scale, self.addresses_parameters,
        )  # fmt: skip

    def prototype(self, caller: ptx.PtxFunction, i: ptx.Instruction) -> ptx.Prototype:
        """The prototype of the function that a call goes to."""
        target = call_graph.call_target(i)
        if isinstance(target, ptx.Symbol) and target.name in call_graph.BUILT_IN:
            return BUILT_IN_PROTOTYPES[target.name]
        if isinstance(target, ptx.Symbol) or call_graph.targets_of(caller, i):
            return self.graph.reached_by(caller, i)[0].prototype
        return call_graph.prototype_of(caller, i)

    def within_cycle(self, caller: ptx.PtxFunction, i: ptx.Instruction) -> bool:
        """Whether the function may be called again before the call returns."""
        component = self.graph.component
        callees = self.graph.reached_by(caller, i)
        return any(component[callee.name] == component[caller.name] for callee in callees)

    def area(self, name: str) -> int:
        """Where arguments or results are handed over."""
        return self.variables[name].offset if name in self.variables else 0

    def _prototypes(self, caller: ptx.PtxFunction) -> list[ptx.Prototype]:
        return [self.prototype(caller, i) for i in caller.instructions if i.name == "call"]

    def _place(self, variable: ptx.Variable, align: int) -> None:
        variable.offset = rounded_up(self.sizes[variable.space], align)
        self.variables[variable.name] = variable
        self.sizes[variable.space] = variable.offset + variable.size

    def _frame(self, function: ptx.PtxFunction) -> None:
        """Parameters, as they are handed over, then variables: at a fixed place, or in a frame."""
        recursive, name = function.name in self.graph.recursive, function.name
        start = 0 if recursive else rounded_up(self.sizes["local"] + GAP, FRAME_ALIGN)
        found = [
            ptx.Variable(f"{p.name}@{name}", "local", 1, p.size, offset=start + p.offset)
            for p in function.prototype.parameters
        ]
        end = start + end_of(function.prototype.parameters)
        for variable in (v for v in function.variables.values() if v.space == "local"):
            found.append(replace(variable, offset=rounded_up(end, variable.align)))
            end = found[-1].offset + variable.size
        if recursive:
            self.frames[name] = {v.name: v.offset for v in found} | {END: rounded_up(end, FRAME_ALIGN)}
            return
        self.variables |= {variable.name: variable for variable in found}
        self.frames[name] = {START: start, END: end}
        self.sizes["local"] = end

    def _keep_registers(self, function: ptx.PtxFunction, blocks: list[ptx.BasicBlock]) -> int:
        """Name the registers that live across calls in the instructions that save them, and what the frame
        counts as: what ptxas gives it, or a little less. Returns bytes of the frame for each that counts."""
        most = 0
        for block, following in zip(blocks, blocks[1:]):
            if not block.instructions or block.instructions[-1].opcode != SAVE:
                continue
            kept = sorted(following.live_in, key=lambda register: register.name)
            for owner, k in ((block, -1), (following, 0)):
                owner.instructions[k] = replace_operands(owner.instructions[k], (ptx.Vector(tuple(kept)),))
            most = max(most, sum(max(1, register.bits // 32) for register in kept))
        frame = self.frames[function.name]
        own = frame[END] - rounded_up(end_of(function.prototype.parameters), FRAME_ALIGN)
        counted = max(LEAST_FRAME, rounded_up(RETURN_ADDRESS + 4 * most + max(own, 0), 8))
        push = blocks[0].instructions[0]
        blocks[0].instructions[0] = replace_operands(push, (*push.operands, ptx.Immediate(counted)))
        return -(-frame[END] // counted)


class Rewriter:
    """The items of one function, with what PTX leaves to the ABI written out."""

    def __init__(self, linker: Linker, function: ptx.PtxFunction):
        self.linker, self.function = linker, function
        self.recursive = function.name in linker.graph.recursive
        self.frame = ptx.Register(f"frame@{function.name}", "b64")
        self.places = self._places()
        self.stored: set[str] = set()
        self.returned: set[str] = set()

    def _places(self) -> dict[str, tuple[str, int]]:
        """Area and offset of all that is handed over, by the names it has here."""
        function, places = self.function, dict[str, tuple[str, int]]()
        for p in function.prototype.results:
            places[f"{p.name}@{function.name}"] = (RESULTS, p.offset)
        for i in function.instructions:
            if i.name != "call":
                continue
            results, _, arguments, _ = call_graph.split_call(i)
            prototype = self.linker.prototype(function, i)
            pairs = ((RESULTS, results, prototype.results), (ARGUMENTS, arguments, prototype.parameters))
            for area, given, wanted in pairs:
                if len(given) != len(wanted):
                    raise i.unsupported(f"{len(given)} {area} where the function has {len(wanted)}")
                for symbol, p in zip(given, wanted):
                    passed = function.passed.get(getattr(symbol, "name", ""))
                    if passed is None or not isinstance(symbol, ptx.Symbol):
                        raise i.unsupported("what is passed in registers: use .param variables")
                    if passed.size != p.size or places.setdefault(symbol.name, (area, p.offset)) != (
                        area,
                        p.offset,
                    ):
                        raise i.unsupported(f"{passed.name}, which is not as the function declares it")
        return places

    def items(self) -> list[Union[ptx.Instruction, str]]:
        made: list[Union[ptx.Instruction, str]] = [] if self.function.is_entry else self._entered()
        for item in self.function.items:
            made += [item] if isinstance(item, str) else self._rewritten(item)
        return made

    def _entered(self) -> list[Union[ptx.Instruction, str]]:
        first = next(iter(self.function.instructions), ptx.Instruction("ret", (), line=self.function.line))
        frame, passed = self.linker.frames[self.function.name], end_of(self.function.prototype.parameters)
        given = (ptx.Immediate(passed), ptx.Immediate(self.linker.area(ARGUMENTS)))
        if self.recursive:
            return [like(first, PUSH, (self.frame, ptx.Immediate(frame[END]), *given), access="=")]
        return [like(first, ENTER, (ptx.Immediate(frame[START]), *given))] if passed else []

    def _rewritten(self, i: ptx.Instruction) -> list[Union[ptx.Instruction, str]]:
        if i.name == "call":
            return self._call(i)
        if i.name in ("ret", "exit", "bra") and not i.guard:
            self.stored.clear()
        if i.name == "ret" and not self.function.is_entry:
            frame = self.linker.frames[self.function.name]
            size = 0 if self.recursive else frame[END] - frame[START]
            place = (ptx.Immediate(frame[START]), ptx.Immediate(size)) if size else ()
            return [like(i, RETURN, place, guard=i.guard)]
        if i.opcode.startswith("brx.idx"):
            label = getattr(i.operands[-1], "name", "")
            if label not in self.function.targets:
                raise i.unsupported("a table without .branchtargets")
            targets = tuple(ptx.Symbol(target) for target in self.function.targets[label])
            return [replace_operands(i, (i.operands[0], *targets))]
        if i.name in ("ld", "st") and i.space == "param":
            i = self._handed(i)
        elif i.opcode.startswith(("cvta.param", "cvta.to.param")):
            opcode = "mov.u64" if self.function.is_entry else i.opcode.replace("param", "local")
            i = like(i, opcode, i.operands, guard=i.guard, access="=")
        if self.function.is_entry:
            names = {p.name for p in self.function.prototype.parameters}
            if any(isinstance(operand, ptx.Symbol) and operand.name in names for operand in i.operands):
                self.linker.addresses_parameters = True
        return [self._based(i) if self.recursive else i]

    def _handed(self, i: ptx.Instruction) -> ptx.Instruction:
        """A load or store of what is handed over, as one of memory."""
        store = i.name == "st"
        where = i.address(0 if store else 1)
        name = where.base.name if isinstance(where.base, ptx.Symbol) else ""
        space = "local"
        if name in self.places:
            area, offset = self.places[name]
            self._in_order(i, name, store)
            where = ptx.Address(ptx.Symbol(area), offset + where.offset)
        elif name in self.function.passed:
            raise i.unsupported(f"{self.function.passed[name].name}, which no call takes or returns")
        elif self.function.is_entry:
            if not store and name and QUICK_PARAMETER.match(i.opcode):
                return like(i, PARAM_SPACE.sub(".param", i.opcode), i.operands, guard=i.guard, access="=")
            self.linker.addresses_parameters, space = True, "const"
        operands = (where, *i.operands[1:]) if store else (i.operands[0], where)
        opcode = PARAM_SPACE.sub(f".{space}", i.opcode)
        return like(i, opcode, operands, guard=i.guard, access=i.access)

    def _in_order(self, i: ptx.Instruction, name: str, store: bool) -> None:
        """Calls share the areas: nothing may call between a store and the call or return that it is for."""
        if store:
            self.stored.add(name)
        elif self.places[name][0] == RESULTS and name not in self.returned:
            raise i.unsupported(f"{name.partition('@')[0]}, read after another call")

    def _call(self, i: ptx.Instruction) -> list[Union[ptx.Instruction, str]]:
        results, target, arguments, _ = call_graph.split_call(i)
        given = {symbol.name for symbol in arguments if isinstance(symbol, ptx.Symbol)}
        if self.stored - given:
            raise i.unsupported("a call between a st.param and the call or return that it is for")
        self.stored.clear()
        self.returned = {symbol.name for symbol in results if isinstance(symbol, ptx.Symbol)}
        if isinstance(target, ptx.Symbol) and target.name in call_graph.BUILT_IN:
            areas = (ptx.Immediate(self.linker.area(ARGUMENTS)), ptx.Immediate(self.linker.area(RESULTS)))
            return [like(i, call_graph.BUILT_IN[target.name], areas, guard=i.guard)]
        if isinstance(target, ptx.Symbol):
            target = ptx.Symbol(self.linker.graph.reached_by(self.function, i)[0].name)
        call: list[Union[ptx.Instruction, str]] = [like(i, i.opcode, (target,))]
        if self.linker.within_cycle(self.function, i):
            call = [like(i, SAVE, ()), *call, like(i, RESUME, ())]
        if i.guard is None:
            return call
        beyond = f"beyond the call in line {i.line}"
        skip = like(i, "bra", (ptx.Symbol(beyond),), guard=(i.guard[0], not i.guard[1]))
        return [skip, *call, beyond]

    def _based(self, i: ptx.Instruction) -> ptx.Instruction:
        """With addresses in the frame of a recursive function."""
        frame = self.linker.frames[self.function.name]
        if i.name == "mov" and isinstance(i.operands[1], ptx.Symbol) and i.operands[1].name in frame:
            operands = (i.operands[0], self.frame, ptx.Immediate(frame[i.operands[1].name]))
            return like(i, "add.u64", operands, guard=i.guard, access="=")
        operands = []
        for operand in i.operands:
            if (
                isinstance(operand, ptx.Address)
                and isinstance(operand.base, ptx.Symbol)
                and operand.base.name in frame
            ):
                operand = ptx.Address(self.frame, operand.offset + frame[operand.base.name])
            elif isinstance(operand, ptx.Symbol) and operand.name in frame:
                raise i.unsupported(
                    f"the address of {operand.name} in a recursive function, other than by mov"
                )
            operands.append(operand)
        return replace_operands(i, tuple(operands))


def handed(area: str, prototype: ptx.Prototype) -> tuple[ptx.Parameter, ...]:
    return prototype.parameters if area == ARGUMENTS else prototype.results


def end_of(parameters: tuple[ptx.Parameter, ...]) -> int:
    """Bytes of several, with the gaps between them."""
    return parameters[-1].offset + parameters[-1].size if parameters else 0


def like(
    i: ptx.Instruction,
    opcode: str,
    operands: tuple[ptx.Operand, ...],
    guard: tuple[ptx.Register, bool] | None = None,
    access: str = "",
) -> ptx.Instruction:
    """An instruction in the place of another."""
    return ptx.Instruction(opcode, operands, guard, i.line, i.source, i.within, access)


def replace_operands(i: ptx.Instruction, operands: tuple[ptx.Operand, ...]) -> ptx.Instruction:
    return like(i, i.opcode, operands, i.guard, i.access)
