"""PTX text, as nvcc writes it, to kernels of basic blocks.

Covers entries and functions, shared/global/const/local variables, line tables and the scopes that inline
assembly and calls open. functions.py makes kernels of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, function_address
from tir_schedules.machines.cpu.functions import linked_kernel
from tir_schedules.machines.cpu.instructions import row_of_opcode
from tir_schedules.machines.cpu.placing import place_all
from tir_schedules.machines.cpu.reader import END, DeclarationReader, is_name, is_number, with_addresses

VARIABLE_SPACES = (".global", ".const", ".shared")
LINKING = (".visible", ".weak", ".extern", ".common")
MALFORMED = (ValueError, IndexError, KeyError, AttributeError, TypeError, ArithmeticError, struct.error)
"""What the reading of words raises where they are no PTX."""

ENDS = {"{": "}", "(": ")"}
DIGITS = "0123456789"

KERNEL_FILE = 1
"""The number that nvcc gives the file of the kernel."""


def parse(text: str) -> ptx.PtxModule:
    """Parse a whole PTX file. UnsupportedInstruction for instructions that the CPU machine does not know, and
    for text that is not PTX."""
    parser = Parser(text)
    try:
        return parser.module()
    except MALFORMED:
        raise parser.refuse("what stands there, or what should") from None


@dataclass
class Scope:
    """Names declared between two braces. suffix: what sets its registers and labels apart from others. rows:
    registers that one declaration numbers, by the name before the number: the type, how many."""

    suffix: str = ""
    names: dict[str, ptx.Register | ptx.Symbol] = field(default_factory=dict)
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)

    def look_up(self, name: str) -> ptx.Register | ptx.Symbol | None:
        known = self.names.get(name)
        if known is None and self.rows:
            for cut in range(len(name.rstrip(DIGITS)), len(name)):
                kind, count = self.rows.get(name[:cut], ("", 0))
                if (name[cut] != "0" or cut == len(name) - 1) and int(name[cut:]) < count:
                    known = self.names[name] = ptx.Register(name + self.suffix, kind)
        return known


class Parser(DeclarationReader):
    """Recursive descent over the words; the innermost scope is the last."""

    def __init__(self, text: str):
        super().__init__(text)
        self.bodies: dict[str, ptx.PtxFunction] = {}
        self.declared: dict[str, ptx.PtxFunction] = {}
        self.aliases: dict[str, str] = {}
        self.refused: dict[str, ptx.UnsupportedInstruction] = {}
        self.variables: dict[str, ptx.Variable] = {}
        self.shared: dict[str, ptx.Variable] = {}
        self.files: dict[int, str] = {}
        self.target = ""

    # ---- the module ---
    def module(self) -> ptx.PtxModule:
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
            elif word in (".entry", ".func"):
                self.function(word == ".entry")
            elif word == ".alias":
                name = self.next()
                self.expect(",")
                self.aliases[name] = self.next()
            elif word == ".pragma":
                self.skip_past(";")
            elif word != ";":
                self.position -= 1
                raise self.refuse(f"{word!r} outside a function")
            extern = False
        return self.linked()

    def linked(self) -> ptx.PtxModule:
        """The module with its kernels, each with the functions that it reaches."""
        functions = {name: body for name, body in self.bodies.items() if not body.is_entry}
        functions |= {name: functions[target] for name, target in self.aliases.items() if target in functions}
        known = {**self.declared, **functions}
        addresses = {name: (number + 1) << BUFFER_SHIFT for number, name in enumerate(self.variables)}
        addresses |= {name: function_address(number) for number, name in enumerate(known)}
        stored = {at.name for variable in self.variables.values() for at in variable.references}
        variables = {name: with_addresses(one, addresses) for name, one in self.variables.items()}
        module = ptx.PtxModule({}, variables, self.files, self.target, self.refused, tuple(known))
        for name, body in self.bodies.items():
            if body.is_entry:
                try:
                    module.kernels[name] = linked_kernel(body, functions, self.shared, stored, self.refused)
                except ptx.UnsupportedInstruction as error:
                    self.refused[name] = error
                except MALFORMED:
                    self.refused[name] = ptx.UnsupportedInstruction(
                        f"PTX line {body.line}: the CPU machine does not know what {name} calls, or how"
                    )
        return module

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

    # ---- a kernel or a function ---
    def function(self, is_entry: bool) -> None:
        """One with unknown instructions is refused when it is first asked for."""
        line = self.lines[self.position]
        results = [] if is_entry else self.parameters()
        name = self.next()
        prototype = ptx.Prototype(tuple(self.parameters()), tuple(results))
        while self.word not in ("{", ";"):
            self.next()
        self.made = ptx.PtxFunction(name, prototype, is_entry, line)
        if self.next() == ";":
            self.declared[name] = self.made
            return
        begins = self.position
        suffix = "" if is_entry else f"@{name}"
        self.scopes = [Scope(suffix)]
        if not is_entry:
            for parameter in (*prototype.parameters, *results):
                self.scopes[0].names[parameter.name] = ptx.Symbol(parameter.name + suffix)
        self.scope_count, self.source, self.within = 0, ptx.NO_PLACE, (ptx.NO_PLACE,)
        self.sites: dict[tuple[int, int, int], tuple[int, int, int]] = {}  # of .loc: where it is inlined
        try:
            self.body()
            place_all(self.made.items)
            self.bodies[name] = self.made
        except ptx.UnsupportedInstruction as error:
            self.refused[name] = error
            self.position = begins - 1
            self.skip_braces()

    def location(self) -> None:
        """`.loc file line column`, with the lines that inlined it. An instruction's `source` is the last one:
        that is where the reader will look. Of code inlined in a header it is the line of the kernel's file
        that this goes back to.

        nvcc says where code is inlined once, and leaves it out where the same place comes again.
        """
        place = (int(self.next()), int(self.next()), int(self.next()))
        while self.accept(","):
            word = self.next()
            if word == "function_name":
                self.next()
                if self.accept("+"):
                    self.next()
            elif word == "inlined_at":
                self.sites[place] = (int(self.next()), int(self.next()), int(self.next()))
        places = [place]
        while (site := self.sites.get(places[-1])) and site not in places:
            places.append(site)
        chain = tuple(one[:2] for one in places if one[1])
        self.within = chain or (ptx.NO_PLACE,)
        calls = self.within[1:] or self.within
        self.source = next((one for one in calls if one[0] == KERNEL_FILE), calls[-1])

    def look_up(self, name: str) -> ptx.Register | ptx.Symbol | None:
        for scope in reversed(self.scopes):
            known = scope.look_up(name)
            if known is not None:
                return known
        return None

    def predicate(self) -> ptx.Register:
        register = self.look_up(self.word)
        if not isinstance(register, ptx.Register):
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
                if word == ".local" and not self.made.is_entry:
                    own = f"{variable.name}@{self.made.name}"
                    self.scopes[-1].names[variable.name] = ptx.Symbol(own)
                    variable.name = own
                self.made.variables[variable.name] = variable
            elif word == ".param":
                self.passed()
            elif word == ".pragma":
                self.skip_past(";")
            elif word.startswith("."):
                self.position -= 1
                raise self.refuse(word)
            elif self.word == ":" and is_name(word):
                self.position += 1
                found = self.look_up(word)
                label = found.name if isinstance(found, ptx.Symbol) else word
                if not self.directive_of(label):
                    self.made.items.append(label)
            elif word != ";":
                self.position -= 1
                self.instruction()

    def passed(self) -> None:
        """Declarations of what calls take and return."""
        parameter, _ = self.parameter()
        name = f"{parameter.name}@{len(self.made.passed)}"
        self.scopes[-1].names[parameter.name] = ptx.Symbol(name)
        self.made.passed[name] = parameter
        self.expect(";")

    def directive_of(self, label: str) -> bool:
        """Read what a label may stand before that is not an instruction; whether it does."""
        word = self.word
        if word == ".callprototype":
            self.next()
            results = self.parameters()
            self.expect("_")
            self.made.prototypes[label] = ptx.Prototype(tuple(self.parameters()), tuple(results))
        elif word in (".branchtargets", ".calltargets"):
            self.next()
            named: list[str] = []
            while self.word != ";":
                if not self.accept(","):
                    found = self.look_up(self.word)
                    named.append(found.name if isinstance(found, ptx.Symbol) else self.word)
                    self.next()
            self.made.targets[label] = named
        else:
            return False
        self.skip_past(";")
        return True

    def open_scope(self) -> None:
        """Names declared inside get the scope's number; its labels are known at once, for branches ahead."""
        self.scope_count += 1
        scope = Scope(f"@{self.scope_count}{self.scopes[0].suffix}")
        self.scopes.append(scope)
        depth, k = 1, self.position
        while depth:
            word = self.words[k]
            depth += (word == "{") - (word == "}")
            if word == ":" and depth == 1:
                label = self.words[k - 1]
                if is_name(label) and label[0] not in ".%":
                    scope.names[label] = ptx.Symbol(label + scope.suffix)
            k += 1

    def registers(self, kind: str) -> None:
        scope = self.scopes[-1]
        while True:
            name = self.next()
            if self.accept("<"):
                scope.rows[name] = (kind, int(self.next()))
                self.expect(">")
            else:
                scope.names[name] = ptx.Register(name + scope.suffix, kind)
            if self.next() == ";":
                return

    def instruction(self) -> None:
        line, guard = self.lines[self.position], None
        if self.accept("@"):
            negated = self.accept("!")
            guard = (self.predicate(), negated)
        opcode = self.opcode = self.next()
        operands = []
        while (word := self.words[self.position]) != ";":
            if word == ",":
                self.position += 1
            else:
                operands.append(self.operand())
        self.position += 1
        places, access = (line, self.source, self.within), row_of_opcode(opcode).result
        self.made.items.append(ptx.Instruction(opcode, tuple(operands), guard, *places, access))

    def operand(self) -> ptx.Operand:
        first = self.atom()
        if self.words[self.position] != "|":
            return first
        self.position += 1
        return ptx.Pair(first, self.atom())

    def atom(self) -> ptx.Operand:
        word = self.words[self.position]
        self.position += 1
        if word == "[":
            return self.address()
        if word in ENDS:  # a vector, or what a call takes or returns
            found = []
            while not self.accept(ENDS[word]):
                if not self.accept(","):
                    found.append(self.atom())
            return ptx.Vector(tuple(found))
        if is_number(word):
            return number(word)
        known = self.look_up(word)
        if known is not None:
            return known
        if word == "!":
            return ptx.Negated(self.predicate())
        if word == "-":
            return ptx.Immediate(-int(self.next().rstrip("U"), 0))
        if word.startswith("%"):
            return ptx.SpecialRegister(word[1:])
        self.made.mentioned.add(word)
        return ptx.Symbol(word)

    def address(self) -> ptx.Address:
        base, offset, sign = None, 0, 1
        if is_name(self.word):
            base = self.atom()
            if not isinstance(base, (ptx.Register, ptx.Symbol)):
                raise self.refuse(f"the address [{base}]")
        while (word := self.next()) != "]":
            if word in ("+", "-"):
                sign = -1 if word == "-" else 1
            elif is_number(word):
                offset += sign * int(word.rstrip("U"), 0)
            elif word == "," and self.word == "{":
                coordinates = ptx.items(self.atom())
                self.expect("]")
                return ptx.Address(base, offset, tuple(coordinates))
            else:
                self.position -= 1
                remedy = row_of_opcode(self.opcode).remedy
                raise self.refuse(f"{self.opcode} ({remedy})" if remedy else "what stands in an address")
        return ptx.Address(base, offset)


def number(text: str) -> ptx.Immediate:
    prefix = text[:2].lower()
    if prefix in ("0f", "0d"):
        return ptx.Immediate(int(text[2:], 16), "f32" if prefix == "0f" else "f64")
    if "." in text:
        return ptx.Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64")
    return ptx.Immediate(int(text.rstrip("U"), 0))
