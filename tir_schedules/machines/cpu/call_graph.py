"""Which functions a kernel reaches, which of them are recursive, and in what order to lay them out."""

from __future__ import annotations

from typing import Iterator

from tir_schedules.machines.cpu import ptx

BUILT_IN = {
    "vprintf": "call.printf", "__assertfail": "call.assert", "malloc": "call.malloc", "free": "call.free",
    "memcpy": "call.memcpy", "memset": "call.memset",
}  # fmt: skip
"""Functions of the machine, and the opcode that executes each."""

REFUSED_FUNCTIONS = {
    "cudaDeviceSynchronize": "a kernel cannot wait for its own launches: end it there",
    "cudaGetParameterBuffer": "launches from a kernel: launch from the host",
    "cudaLaunchDevice": "launches from a kernel: launch from the host",
    "cudaMalloc": "use malloc",
    "cudaFree": "use free",
    "__cudaCDP": "launches from a kernel: launch from the host",
    "cuda": "the CUDA runtime: call it from the host",
}
"""What would be right in place of a function, by how its name begins; the longest that fits."""


def function_remedy(name: str) -> str:
    """What would be right in place of a function that is not there, after a semicolon."""
    known = [start for start in REFUSED_FUNCTIONS if name.startswith(start)]
    return f"; {REFUSED_FUNCTIONS[max(known, key=len)]}" if known else "; define it in the same file"


class CallGraph:
    """The functions that an entry reaches. order: callees before their callers, the entry last.

    component: number of the cycle of calls that a function is in. recursive: those that may call themselves,
    by way of others or not.
    """

    def __init__(
        self,
        entry: ptx.PtxFunction,
        functions: dict[str, ptx.PtxFunction],
        stored: set[str],
        refused: dict[str, ptx.UnsupportedInstruction],
    ):
        self.functions, self.stored, self.refused = functions, stored, refused
        self.pointed: set[str] = set()
        self.order: list[ptx.PtxFunction] = []
        self._find_pointed(entry)
        self.component: dict[str, int] = {}
        self.recursive: set[str] = set()
        self._visit(entry)

    def callees(self, caller: ptx.PtxFunction) -> list[ptx.PtxFunction]:
        calls = (i for i in caller.instructions if i.name == "call")
        found = [one for i in calls for one in self.reached_by(caller, i)]
        return list({one.name: one for one in found}.values())

    def reached_by(self, caller: ptx.PtxFunction, i: ptx.Instruction) -> list[ptx.PtxFunction]:
        """Functions of the module that a call may go to."""
        target = call_target(i)
        if isinstance(target, ptx.Symbol):
            return [] if target.name in BUILT_IN else [self._named(i, target.name)]
        if (targets := targets_of(caller, i)) is not None:
            return [self._named(i, name) for name in targets]
        shape = prototype_of(caller, i).shape
        known = [self.functions[name] for name in sorted(self.pointed & self.functions.keys())]
        return [function for function in known if function.prototype.shape == shape]

    def _named(self, i: ptx.Instruction, name: str) -> ptx.PtxFunction:
        if name in self.refused:
            raise self.refused[name]
        if name not in self.functions:
            raise i.unsupported(f"the function {name}, which the PTX does not define{function_remedy(name)}")
        return self.functions[name]

    def _find_pointed(self, entry: ptx.PtxFunction) -> None:
        """Functions whose addresses are taken: in the initial values of variables, or in what is reached."""
        before = -1
        while len(self.pointed) != before:
            before = len(self.pointed)
            reached, pending = {entry.name}, [entry]
            self.pointed |= self.stored & self.functions.keys()
            while pending:
                caller = pending.pop()
                self.pointed |= addresses_taken(caller) & self.functions.keys()
                new = [callee for callee in self.callees(caller) if callee.name not in reached]
                reached.update(callee.name for callee in new)
                pending += new

    def _visit(self, entry: ptx.PtxFunction) -> None:
        """Tarjan's strongly connected components, without recursion of our own."""
        number: dict[str, int] = {}
        lowest: dict[str, int] = {}
        stack: list[ptx.PtxFunction] = []
        work: list[tuple[ptx.PtxFunction, Iterator[ptx.PtxFunction]]] = []

        def enter(function: ptx.PtxFunction) -> None:
            number[function.name] = lowest[function.name] = len(number)
            stack.append(function)
            work.append((function, iter(self.callees(function))))

        enter(entry)
        while work:
            caller, callees = work[-1]
            name = caller.name
            callee = next(callees, None)
            if callee is None:
                work.pop()
                if work:
                    above = work[-1][0].name
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == number[name]:
                    self._close(stack, caller)
            elif callee.name not in number:
                enter(callee)
            elif callee.name not in self.component:
                lowest[name] = min(lowest[name], number[callee.name])
            if callee is caller:
                self.recursive.add(name)

    def _close(self, stack: list[ptx.PtxFunction], root: ptx.PtxFunction) -> None:
        members = []
        while not members or members[-1] is not root:
            members.append(stack.pop())
        for member in members:
            self.component[member.name] = len(self.order)
        if len(members) > 1:
            self.recursive.update(member.name for member in members)
        self.order += members


def split_call(i: ptx.Instruction) -> tuple[list[ptx.Operand], ptx.Operand, list[ptx.Operand], str]:
    """What a call returns, where it goes, what it takes, and the label of its prototype or targets."""
    lists = [k for k, operand in enumerate(i.operands) if isinstance(operand, ptx.Vector)]
    results = ptx.items(i.operands[0]) if 0 in lists else []
    at = int(0 in lists)
    arguments = ptx.items(i.operands[at + 1]) if at + 1 in lists else []
    last = i.operands[-1]
    label = last.name if isinstance(last, ptx.Symbol) and len(i.operands) - 1 > at else ""
    return results, i.operands[at], arguments, label


def call_target(i: ptx.Instruction) -> ptx.Operand:
    return split_call(i)[1]


def targets_of(caller: ptx.PtxFunction, i: ptx.Instruction) -> list[str] | None:
    """The functions that a call through a pointer names, where it names them."""
    return caller.targets.get(split_call(i)[3])


def prototype_of(caller: ptx.PtxFunction, i: ptx.Instruction) -> ptx.Prototype:
    """The prototype of a call through a pointer."""
    label = split_call(i)[3]
    if label not in caller.prototypes:
        raise i.unsupported("a call through a pointer without a .callprototype or .calltargets")
    return caller.prototypes[label]


def addresses_taken(function: ptx.PtxFunction) -> set[str]:
    """Symbols that it mentions other than to call them."""
    others = (i for i in function.instructions if i.name != "call")
    return {one.name for i in others for one in i.operands if isinstance(one, ptx.Symbol)}
