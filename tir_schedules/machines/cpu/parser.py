"""PTX text, as nvcc writes it, to kernels of basic blocks.

Covers entries, shared/global/const/local variables, line tables and the scopes that inline assembly opens.
Device functions that were not inlined, calls and texture state are refused by name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from tir_schedules.machines.cpu.flow import basic_blocks
from tir_schedules.machines.cpu.instructions import form_of_opcode
from tir_schedules.machines.cpu.ptx import (
    BITS,
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Parameter,
    PtxKernel,
    PtxModule,
    Register,
    SpecialRegister,
    Symbol,
    Variable,
    Vector,
)
from tir_schedules.machines.cpu.words import END, WordReader, is_name, is_number
from tir_schedules.model.gpus import rounded_up

VARIABLE_SPACES = (".global", ".const", ".shared")
LINKING = (".visible", ".weak", ".extern", ".common")
DYNAMIC_ALIGN = 16


def parse(text: str) -> PtxModule:
    """Parse a whole PTX file. UnsupportedInstruction for what the CPU machine has no notion of, and for what
    is no PTX."""
    parser = Parser(text)
    try:
        return parser.module()
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, struct.error):
        raise parser.refuse("what stands there, or what should") from None


@dataclass
class Scope:
    """Names declared between two braces. suffix: what sets its registers and labels apart from others."""

    suffix: str = ""
    names: dict[str, Register | Symbol] = field(default_factory=dict)


class Parser(WordReader):
    """Recursive descent over the words; the innermost scope is the last."""

    def __init__(self, text: str):
        super().__init__(text)
        self.kernels: dict[str, PtxKernel] = {}
        self.variables: dict[str, Variable] = {}
        self.shared: dict[str, Variable] = {}
        self.files: dict[int, str] = {}
        self.target = ""

    # ---- the module ---
    def module(self) -> PtxModule:
        extern = False
        while self.word != END:
            word = self.next()
            if word == ".target":
                self.target = self.next()
                while self.accept(","):
                    self.next()
            elif word in (".version", ".address_size"):
                self.next()
            elif word == ".file":
                self.file()
            elif word == ".section":
                self.skip_braces()
            elif word == ".loc":
                self.location()
            elif word in LINKING:
                extern = word == ".extern"
                continue
            elif word in VARIABLE_SPACES:
                variable = self.variable(word[1:], extern)
                (self.shared if word == ".shared" else self.variables)[variable.name] = variable
            elif word == ".entry":
                self.entry()
            elif word == ".func":
                self.function()
            elif word == ".pragma":
                self.skip_past(";")
            elif word != ";":
                self.position -= 1
                raise self.refuse(f"{word!r} outside a function")
            extern = False
        return PtxModule(self.kernels, self.variables, self.files, self.target)

    def file(self) -> None:
        number = int(self.next())
        self.files[number] = self.next().strip('"')
        while self.accept(","):
            self.next()

    def skip_braces(self) -> None:
        self.skip_past("{")
        depth = 1
        while depth:
            word = self.next()
            depth += (word == "{") - (word == "}")

    def function(self) -> None:
        """Skip a declaration or body; whoever calls it is refused."""
        while self.word not in ("{", ";"):
            self.next()
        if self.word == "{":
            self.skip_braces()

    def variable(self, space: str, extern: bool = False) -> Variable:
        align, length = 0, 1
        while self.word.startswith(".") and self.word[1:] not in BITS:
            word = self.next()
            if word == ".align":
                align = int(self.next())
            elif word in (".v2", ".v4"):
                length = int(word[2])
        kind, name = self.next()[1:], self.next()
        element = BITS[kind] // 8
        size, unsized = element * length, False
        while self.accept("["):
            if self.word == "]":
                unsized = True
            else:
                size *= int(self.next(), 0)
            self.expect("]")
        initial = b""
        if self.accept("="):
            values = self.initial_values()
            initial = b"".join(
                (value & ((1 << 8 * element) - 1)).to_bytes(element, "little") for value in values
            )
        self.expect(";")
        dynamic = extern or unsized
        return Variable(name, space, align or element, 0 if dynamic else size, initial, dynamic)

    def initial_values(self) -> list[int]:
        if not self.accept("{"):
            return [self.constant()]
        values = []
        while not self.accept("}"):
            if not self.accept(","):
                values.append(self.constant())
        return values

    def constant(self) -> int:
        text = self.word
        if text[:2].lower() in ("0f", "0d"):
            return int(self.next()[2:], 16)
        if is_name(text):
            raise self.refuse(f"the address of {text} as an initial value")
        return self.integer()

    # ---- a kernel ---
    def entry(self) -> None:
        name = self.next()
        parameters = self.parameters()
        while self.word != "{":
            self.next()
        self.next()
        self.scopes = [Scope()]
        self.scope_count, self.source, self.within = 0, (0, 0), (0, 0)
        self.items: list[Instruction | str] = []
        self.own: dict[str, Variable] = {}
        self.mentioned: set[str] = set()
        self.body()
        self.kernels[name] = self.finished(name, parameters)

    def parameters(self) -> list[Parameter]:
        found: list[Parameter] = []
        offset = 0
        if not self.accept("("):
            return found
        while not self.accept(")"):
            if self.accept(","):
                continue
            self.expect(".param")
            align, kind = 0, "b8"
            while self.word.startswith("."):
                word = self.next()
                if word == ".ptr":  # `.ptr .global .align 4` tells of what is pointed to
                    while self.word.startswith("."):
                        if self.next() == ".align":
                            self.next()
                elif word == ".align":
                    align = int(self.next())
                else:
                    kind = word[1:]
            name, size = self.next(), BITS[kind] // 8
            align = align or size
            if self.accept("["):
                size *= int(self.next(), 0)
                self.expect("]")
            offset = rounded_up(offset, align)
            found.append(Parameter(name, kind, size, offset))
            offset += size
        return found

    def location(self) -> None:
        """`.loc file line column`, with the line that inlined it last: that is where the reader will look."""
        self.source = self.within = (int(self.next()), int(self.next()))
        self.next()
        while self.accept(","):
            word = self.next()
            if word == "function_name":
                self.next()
                if self.accept("+"):
                    self.next()
            elif word == "inlined_at":
                self.source = (int(self.next()), int(self.next()))
                self.next()

    def look_up(self, name: str) -> Register | Symbol | None:
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        return None

    def predicate(self) -> Register:
        register = self.look_up(self.word)
        if not isinstance(register, Register):
            raise self.refuse(f"the predicate {self.word}")
        self.next()
        return register

    def body(self) -> None:
        while True:
            word = self.next()
            if word == ".loc":
                self.location()
            elif word == "{":
                self.open_scope()
            elif word == "}":
                self.scopes.pop()
                if not self.scopes:
                    return
            elif word == ".reg" or word.startswith(".reg."):
                self.registers(word[5:] or self.next()[1:])
            elif word in (".shared", ".local"):
                variable = self.variable(word[1:])
                self.own[variable.name] = variable
            elif word == ".pragma":
                self.skip_past(";")
            elif word.startswith("."):
                self.position -= 1
                raise self.refuse(word)
            elif self.word == ":" and is_name(word):
                self.position += 1
                label = self.look_up(word)
                self.items.append(label.name if isinstance(label, Symbol) else word)
            elif word != ";":
                self.position -= 1
                self.instruction()

    def open_scope(self) -> None:
        """Names declared inside get the scope's number; its labels are known at once, for branches ahead."""
        self.scope_count += 1
        scope = Scope(f"@{self.scope_count}")
        self.scopes.append(scope)
        depth, k = 1, self.position
        while depth:
            word = self.words[k]
            depth += (word == "{") - (word == "}")
            if word == ":" and depth == 1:
                label = self.words[k - 1]
                if is_name(label) and label[0] not in ".%":
                    scope.names[label] = Symbol(label + scope.suffix)
            k += 1

    def registers(self, kind: str) -> None:
        scope = self.scopes[-1]
        while True:
            name = self.next()
            names = [name]
            if self.accept("<"):
                names = [f"{name}{number}" for number in range(int(self.next()))]
                self.expect(">")
            scope.names.update({name: Register(name + scope.suffix, kind) for name in names})
            if self.next() == ";":
                return

    def instruction(self) -> None:
        line, guard = self.lines[self.position], None
        if self.accept("@"):
            negated = self.accept("!")
            guard = (self.predicate(), negated)
        opcode = self.next()
        operands = []
        while (word := self.words[self.position]) != ";":
            if word == ",":
                self.position += 1
            else:
                operands.append(self.operand())
        self.position += 1
        has_result = form_of_opcode(opcode).has_result
        self.items.append(
            Instruction(opcode, tuple(operands), guard, line, self.source, self.within, has_result)
        )

    def operand(self) -> Operand:
        first = self.atom()
        if self.words[self.position] != "|":
            return first
        self.position += 1
        return Pair(first, self.atom())

    def atom(self) -> Operand:
        word = self.words[self.position]
        if word == "(":
            raise self.refuse("calls")
        self.position += 1
        if word == "[":
            return self.address()
        if word == "{":
            items = []
            while not self.accept("}"):
                if not self.accept(","):
                    items.append(self.atom())
            return Vector(tuple(items))
        if is_number(word):
            return number(word)
        known = self.look_up(word)
        if known is not None:
            return known
        if word == "!":
            return Negated(self.predicate())
        if word == "-":
            return Immediate(-int(self.next().rstrip("U"), 0))
        if word.startswith("%"):
            return SpecialRegister(word[1:])
        self.mentioned.add(word)
        return Symbol(word)

    def address(self) -> Address:
        base, offset, sign = None, 0, 1
        if is_name(self.word):
            base = self.atom()
            if not isinstance(base, (Register, Symbol)):
                raise self.refuse(f"the address [{base}]")
        while (word := self.next()) != "]":
            if word in ("+", "-"):
                sign = -1 if word == "-" else 1
            elif is_number(word):
                offset += sign * int(word.rstrip("U"), 0)
            else:
                self.position -= 1
                raise self.refuse("tensor coordinates in an address")
        return Address(base, offset)

    def finished(self, name: str, parameters: list[Parameter]) -> PtxKernel:
        """Lay out the stack and shared memory: variables of the module, of the kernel, the dynamic array."""
        used = [variable for name, variable in self.shared.items() if name in self.mentioned]
        variables = {variable.name: replace(variable) for variable in used} | self.own
        sizes = {"shared": 0, "local": 0}
        for variable in sorted(variables.values(), key=lambda v: v.extern):
            align = max(variable.align, DYNAMIC_ALIGN) if variable.extern else variable.align
            variable.offset = rounded_up(sizes[variable.space], align)
            sizes[variable.space] = variable.offset + variable.size
        blocks = basic_blocks(self.items)
        return PtxKernel(name, parameters, variables, blocks, sizes["shared"], sizes["local"])


def number(text: str) -> Immediate:
    prefix = text[:2].lower()
    if prefix in ("0f", "0d"):
        return Immediate(int(text[2:], 16), "f32" if prefix == "0f" else "f64")
    if "." in text:
        return Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64")
    return Immediate(int(text.rstrip("U"), 0))
