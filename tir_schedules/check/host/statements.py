"""What host code has in its variables where a position of it is reached: declarations and assignments in
order, branches whose conditions are known, parameters by the calls of their function."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Sequence

from tir_schedules.check.host.text import Code, angle_end, expand, split_commas, tokens_of
from tir_schedules.check.host.values import (
    CONSTANTS,
    Dims,
    Enumerator,
    Evaluation,
    Function,
    Kind,
    Parsing,
    Unresolved,
    converted,
)
from tir_schedules.compiler.signature import declaration

STORED = re.compile(r"\]\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*\w+\s*\[")
"""An element of an array that changes."""

MOST_TURNS = 256
"""Most iterations of a loop that is followed."""

WORD = re.compile(r"[A-Za-z_]\w*")
INVOKED = re.compile(r"[A-Za-z_]\w*\s*(?=\()")
GOES_ON = re.compile(r"[ \t]*\n\s*[A-Za-z_]")
SPACE = re.compile(r"[\s;]*")
LABEL = re.compile(
    r"(?<!\w)(?:case\b[^:;{}]*(?:::[^:;{}]*)*|default\s*|public\s*|private\s*|protected\s*):(?!:)"
)
OPENING = re.compile(r"[;{}(\[]")
ELSE = re.compile(r"\s*else\b")
WHILE = re.compile(r"\s*while\s*")
ONCE = re.compile(r"\s*while\s*\(\s*(?:0|false)\s*\)")
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)\s*(?=\{)|extern\s*(?=\{)")
RECORD = re.compile(r"(?:struct|class|union)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)[^;(){}=]*(?=\{)")
ENUM = re.compile(r"enum\s+(?:class\s+|struct\s+)?(\w*)[^;(){}]*(?=\{)")
SCOPED = re.compile(r"enum\s+(?:class|struct)\b")
TEMPLATE = re.compile(r"template\s*(?=<)")
FUNCTION = re.compile(r"([A-Za-z_~][\w:]*)\s*(?=\()")
NO_FUNCTION = {"noexcept", "__launch_bounds__", "__attribute__", "requires", "decltype", "alignas", "throw",
               "__maxnreg__", "__cluster_dims__", "explicit", "operator"}  # fmt: skip
USING = re.compile(r"using\s+(\w+)\s*=\s*(.+)", re.S)
TYPEDEF = re.compile(r"typedef\s+(.+?)\s*\b(\w+)$", re.S)
ASSIGNED = re.compile(r"([A-Za-z_]\w*(?:(?:\.|->)\w+)?)\s*((?:[-+*/%&|^]|<<|>>)?)=(?!=)\s*(.*)", re.S)
STEPPED = re.compile(r"(?:(\+\+|--)\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(\+\+|--))")
CHANGES = re.compile(
    r"(?<![\w.>])([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)
ADDRESS = re.compile(r"[(,]\s*(?:\([^()]*\*\)\s*)?&\s*([A-Za-z_]\w*)\s*(?=[,)])")
MARKS = r"(?:(?:const|constexpr|static|inline|volatile|unsigned|signed|long|short|struct|typename|extern|"
DECLARED = re.compile(
    MARKS + r"__constant__|__device__|thread_local|register)\s+)*"
    r"[A-Za-z_][\w:]*(?:\s*<[^;=(){}]*>)?(?:\s+(?:const|int|long|char|unsigned|short|double)\b)*"
)
DECLARATOR = re.compile(
    r"[\s*&]*(?:const\s+|__restrict__\s+)*([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)(.*)", re.S
)
CALLED = re.compile(r"([A-Za-z_]\w*)\s*\((.*)\)", re.S)
LAMBDA = re.compile(r"\[[^\]]*\]\s*")


class Reached(Exception):
    """The position is. scope: what is known there."""

    def __init__(self, scope: Scope):
        self.scope = scope


class Returned(Exception):
    """A function's value."""

    def __init__(self, value: Any):
        self.value = value


@dataclass(frozen=True)
class Unknown:
    """A variable whose value is not known. error: why. text: what it is initialised with."""

    error: Unresolved
    text: str = ""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a host function, or of its template, which its calls give."""

    function: Function
    at: int
    of_template: bool = False


@dataclass
class Scope:
    """Variables between two braces. own: whether it is that of a function that only computes, whose names no
    option means."""

    parent: Scope | None = None
    own: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> Scope | None:
        """The scope that a name is of."""
        scope: Scope | None = self
        while scope and name not in scope.values:
            scope = scope.parent
        return scope

    def assign(self, name: str, value: Any) -> None:
        (self.of(name) or self).values[name] = value


class Host:
    """The host code of a file. fixed: values of names that the user gives. arrays: shape and bytes of an
    element, by names of host code."""

    def __init__(self, code: Code):
        self.code = code
        self.fixed: dict[str, Any] = {}
        self.arrays: dict[str, tuple[tuple[int, ...], int]] = {}
        self.functions: list[Function] = []
        self.globals = Scope()
        self.known: dict[Parameter, Any] = {}
        self.active: set[Any] = set()
        self.unreached: set[int] = set()  # positions in branches whose conditions do not hold
        self.assumed: dict[int, dict[str, Any]] = {}  # what branches around a position ask of variables
        self.looped: set[int] = set()  # positions in loops
        self.records: dict[str, tuple[Sequence[tuple[str, str, str]], Scope]] = {}
        self.collect(0, len(code.text), ())

    def give(self, fixed: Mapping[str, Any], arrays: Mapping[str, tuple[tuple[int, ...], int]]) -> None:
        """Other values of the user's; what was found by the ones before is forgotten."""
        self.fixed, self.arrays = dict(fixed), dict(arrays)
        self.known, self.globals, self.functions, self.unreached = {}, Scope(), [], set()
        self.records, self.assumed, self.looped = {}, {}, set()
        self.collect(0, len(self.code.text), ())

    # ---- the file ---
    def collect(self, at: int, end: int, path: tuple[str, ...]) -> None:
        """Functions, and the variables outside of them."""
        text, pairs, walk = self.code.text, self.code.pairs, Walk(self)
        while (at := walk.start(at)) < end:
            stop = walk.extent(at, end, True)
            head, template = at, ()
            while match := TEMPLATE.match(text, at):
                close = angle_after(text, match.end())
                template = tuple(template_parameters(text[match.end() + 1 : close]))
                at = walk.start(close + 1)
            brace = text.find("{", at, stop)
            space, record, enum = (one.match(text, at) for one in (NAMESPACE, RECORD, ENUM))
            if space:
                more = tuple(filter(None, (space[1] or "").split("::")))
                self.collect(space.end() + 1, pairs[space.end()], path + more)
            elif record:
                outer, self.globals = self.globals, Scope(self.globals)
                self.collect(record.end() + 1, pairs[record.end()], (*path, record[1]))
                self.records[record[1]] = template, self.globals
                within = self.globals.values
                self.globals = outer
                for name, value in within.items():
                    if isinstance(value, Enumerator):
                        outer.values.setdefault(f"{record[1]}::{name}", value)
                outer.values.setdefault(record[1], Kind(record[1]))
            elif enum:
                is_scoped = bool(SCOPED.match(text, at))
                outside = (*path, enum[1]) if is_scoped else path
                self.enumerate(enum[1], text[enum.end() + 1 : pairs[enum.end()]], outside)
            elif LABEL.match(text, at):
                stop = at + LABEL.match(text, at).end() - at  # type: ignore[union-attr]
            elif brace >= 0 and stop == pairs[brace] + 1 or (brace := body_of(text, at, stop, pairs)) >= 0:
                self.define(head, at, brace, path, template)
            else:
                walk.simple(text[at:stop], self.globals)
            at = max(stop, at + 1)

    def enumerate(self, name: str, text: str, path: tuple[str, ...]) -> None:
        """path: what a name of one is written behind from outside."""
        value = -1
        for part in split_commas(text):
            item, _, told = (one.strip() for one in part.partition("="))
            try:
                value = self.evaluate(told, self.globals) if told else value + 1
            except Unresolved:
                return
            if item and isinstance(value, int):
                made = Enumerator(value, "::".join((*path, item)))
                self.globals.values[item] = self.globals.values[f"{name}::{item}"] = made

    def define(self, head: int, at: int, brace: int, path: tuple[str, ...], template: Any) -> None:
        text, pairs, found = self.code.text, self.code.pairs, None
        while match := FUNCTION.search(text, at, brace):
            if match[1] not in NO_FUNCTION:
                found = match
                if re.match(r"\s*:(?!:)", text[pairs[match.end()] + 1 : brace]):
                    break
            at = pairs.get(match.end(), brace) + 1
        if found:
            parts = parameters_of(text[found.end() + 1 : pairs[found.end()]])
            name = found[1].rpartition("::")[2]
            self.functions.append(
                Function(name, parts, (brace + 1, pairs[brace]), None, path, template, head)
            )

    def in_device_code(self) -> set[str]:
        """Words of functions for the GPU, and of the macros in them."""
        text, found = self.code.text, set[str]()
        for one in self.functions:
            if re.search(r"\b__(?:global|device)__\b", text[one.head : one.body[0]]):
                found.update(WORD.findall(text[one.head : one.body[1]]))
        left = [*found]
        while left:
            macro = self.code.macros.get(left.pop())
            more = {*WORD.findall(macro.body)} - found if macro else set[str]()
            found |= more
            left += more
        return found

    def is_namespace(self, name: str) -> bool:
        return bool(re.search(rf"\bnamespace\s+(?:\w+\s*::\s*)*{name}\b", self.code.text))

    def member(self, kind: str, name: str) -> Any:
        """A constant of a class, such as of "Packed<float>"; None where there is none."""
        record, _, given = kind.rpartition("::")[2].partition("<")
        if record.strip() not in self.records:
            return None
        template, scope = self.records[record.strip()]
        value = scope.values.get(name)
        if isinstance(value, Unknown) and value.text and given:
            inner = Scope(scope, own=True)
            for (parameter, is_type, _), text in zip(template, split_commas(given.rstrip("> "))):
                inner.values[parameter] = Kind(text) if is_type else self.evaluate(text, scope)
            value = self.evaluate(value.text, inner)
        if isinstance(value, Unknown):
            raise value.error
        return value

    def around(self, position: int) -> Function | None:
        """The function that a position is in."""
        found = [one for one in self.functions if one.body[0] <= position < one.body[1]]
        return min(found, key=lambda one: one.body[1] - one.body[0], default=None)

    def named(self, name: str) -> list[Function]:
        return [one for one in self.functions if one.name == name]

    # ---- what is known at a position ---
    def at(self, position: int) -> Scope:
        """Variables where a position is reached."""
        function = self.around(position)
        if not function or position in self.active:
            return self.globals
        known = self.records.get(function.path[-1]) if function.path else None
        scope = Scope(known[1] if known else self.globals)
        for at, (name, *_) in enumerate(function.template):
            scope.values[name] = Parameter(function, at, True)
        for at, (name, kind, _) in enumerate(function.parameters):
            scope.values[name], scope.types[name] = Parameter(function, at), kind
        self.active.add(position)
        walk = Walk(self, position)
        try:
            walk.run(*function.body, scope)
        except Reached as reached:
            scope = reached.scope
        finally:
            self.active.discard(position)
        if walk.missed:
            self.unreached.add(position)
        if walk.looped:
            self.looped.add(position)
        self.assumed[position] = walk.assumed
        return scope

    def evaluate(self, text: str, scope: Scope) -> Any:
        """The value of an expression. Unresolved where it is not known."""
        tokens = expand(tokens_of(text), self.code.macros, frozenset(self.fixed))
        return Evaluation(View(self, scope))(Parsing(tokens).whole())

    def given(self, parameter: Parameter) -> Any:
        """What the first call that tells gives a parameter."""
        if parameter not in self.known:
            if parameter in self.active or len(self.active) > 40:
                raise Unresolved(parameter_name(parameter))
            self.active.add(parameter)
            try:
                self.known[parameter] = next(self.from_calls(parameter), None)
            finally:
                self.active.discard(parameter)
        if self.known[parameter] is None:
            name = parameter_name(parameter)
            if name in CONSTANTS:
                return CONSTANTS[name]
            raise Unresolved("" if name == "argv" else name, name)
        return self.known[parameter]

    def from_calls(self, parameter: Parameter) -> Iterator[Any]:
        function, at = parameter.function, parameter.at
        for position, template, given in self.calls(function):
            parts = template if parameter.of_template else given
            if at >= len(parts):
                continue
            try:
                yield self.argument(parameter, parts[at], self.at(position))
            except Unresolved:
                continue
        default = (function.template if parameter.of_template else function.parameters)[at][2]
        if default:
            try:
                yield self.argument(parameter, default, self.globals)
            except Unresolved:
                return

    def argument(self, parameter: Parameter, text: str, scope: Scope) -> Any:
        """What a text gives a parameter."""
        if not parameter.of_template:
            return converted(parameter.function.parameters[parameter.at][1], self.evaluate(text, scope))
        is_type = parameter.function.template[parameter.at][1] == "type"
        return self.kind(text, scope) if is_type else self.evaluate(text, scope)

    def calls(self, function: Function) -> Iterator[tuple[int, list[str], list[str]]]:
        """Where a function is called: the position, arguments of its template, and arguments."""
        text, pairs = self.code.text, self.code.pairs
        for match in re.finditer(rf"(?<![\w.>]){re.escape(function.name)}\s*", text):
            opening, template = match.end(), list[str]()
            if text[opening : opening + 1] == "<" and (end := angle_end(text, opening)):
                template = list(split_commas(text[opening + 1 : end]))
                opening = SPACE.match(text, end + 1).end()  # type: ignore[union-attr]
            inside = self.around(match.start())
            if text[opening : opening + 1] == "(" and opening in pairs and inside:
                yield match.start(), template, list(split_commas(text[opening + 1 : pairs[opening]]))

    def kind(self, text: str, scope: Scope) -> Kind:
        """A type with the names of others put in. Unresolved where one is not known."""

        def replaced(match: re.Match[str]) -> str:
            name = match[0]
            if name in self.fixed:
                return str(self.fixed[name])
            there = scope.of(name)
            value = there.values[name] if there else None
            if isinstance(value, Parameter):
                value = self.given(value)
            if isinstance(value, Unknown):
                raise value.error
            if value is not None:
                return str(value)
            return name

        return Kind(WORD.sub(replaced, " ".join(expand(tokens_of(text), self.code.macros))))


def parameter_name(parameter: Parameter) -> str:
    function = parameter.function
    return (function.template if parameter.of_template else function.parameters)[parameter.at][0]


class View:
    """What an expression in a scope may name."""

    def __init__(self, host: Host, scope: Scope):
        self.host, self.scope = host, scope

    def find(self, name: str) -> Any:
        name = name.removeprefix("::")
        scope = self.scope.of(name)
        if name in self.host.fixed and not (scope and scope.own):
            return self.host.fixed[name]
        if scope is None:
            space, _, within = name.partition("::")
            if within and self.host.is_namespace(space):
                return self.find(within)
            if name in CONSTANTS:
                return CONSTANTS[name]
            if self.host.named(name.rpartition("::")[2]):
                return Kind(name)
            kind, _, member = name.rpartition("::")
            if kind and (made := self.host.member(self.host.kind(kind, self.scope), member)):
                return made
            raise Unresolved(name if name.isidentifier() else "", name)
        value = scope.values[name]
        if isinstance(value, Parameter):
            return self.host.given(value)
        if isinstance(value, Unknown):
            plain = name if name.isidentifier() and name not in self.host.arrays else ""
            raise Unresolved(value.error.name or plain, value.error.text)
        return value

    def type_of(self, name: str) -> str:
        if isinstance(self.host.fixed.get(name), Kind):
            return self.host.fixed[name]
        scope = self.scope.of(name)
        if not scope:
            return ""
        value = scope.values[name]
        if isinstance(value, Parameter) and value.of_template:
            value = self.host.given(value)
        return str(value) if isinstance(value, Kind) else scope.types.get(name, "")

    def array(self, name: str) -> tuple[tuple[int, ...], int] | None:
        return self.host.arrays.get(name)

    def call(self, name: str, given: Sequence[Any]) -> Any:
        scope = self.scope.of(name)
        found = [scope.values[name]] if scope else self.host.named(name.rpartition("::")[2])
        for function in found:
            if isinstance(function, Function) and len(function.parameters) >= len(given):
                return self.called(function, given)
        return NotImplemented

    def left_by(self, function: Function, given: Sequence[Any]) -> dict[str, Any]:
        """The variables of a function at its end; nothing where it cannot be followed."""
        inner = Scope(self.host.globals, own=True)
        for (name, kind, _), value in zip(function.parameters, given):
            inner.values[name], inner.types[name] = value, kind.rstrip(" &")
        key = (function.body, "left")
        if key in self.host.active:
            return {}
        self.host.active.add(key)
        try:
            Walk(self.host, strict=True).run(*function.body, inner)
        except Returned:
            pass
        except Unresolved:
            return {}
        finally:
            self.host.active.discard(key)
        return inner.values

    def called(self, function: Function, given: Sequence[Any]) -> Any:
        host = self.host
        key = (function.body, tuple(map(str, given)))
        if key in host.active or len(host.active) > 40:
            raise Unresolved("", f"{function.name}()")
        inner = Scope(function.values or host.globals, own=True)
        host.active.add(key)
        try:
            for at, (name, kind, default) in enumerate(function.parameters):
                value = given[at] if at < len(given) else host.evaluate(default, host.globals)
                inner.values[name], inner.types[name] = converted(kind, value), kind
            Walk(host, strict=True).run(*function.body, inner)
        except Returned as returned:
            return returned.value
        except Unresolved as error:
            raise Unresolved(error.name if function.values else "", f"{function.name}()") from None
        finally:
            host.active.discard(key)
        raise Unresolved("", f"{function.name}()")


class Walk:
    """Statements in order, up to a position. strict: of a function that is called: what is not known ends
    it."""

    def __init__(self, host: Host, goal: int = -1, strict: bool = False):
        self.host, self.goal, self.strict, self.missed = host, goal, strict, False
        self.looped = False
        self.assumed: dict[str, Any] = {}
        self.text, self.pairs = host.code.text, host.code.pairs

    def start(self, at: int) -> int:
        return SPACE.match(self.text, at).end()  # type: ignore[union-attr]

    def run(self, at: int, end: int, scope: Scope) -> None:
        while (at := self.start(at)) < end:
            stop = self.extent(at, end)
            self.step(at, stop, scope)
            at = max(stop, at + 1)
        if self.goal >= 0 and at > self.goal:
            raise Reached(scope)

    def extent(self, at: int, end: int, top: bool = False) -> int:
        """Behind the statement that begins there. top: whether functions may stand there."""
        word = WORD.match(self.text, at)
        name = word[0] if word else ""
        if self.text[at] == "{":
            return self.pairs[at] + 1
        label = LABEL.match(self.text, at)
        if label:
            return label.end()
        if name in ("if", "for", "while", "switch"):
            _, close = self.brackets(at)
            stop = self.extent(min(self.start(close + 1), end - 1), end)
            other = ELSE.match(self.text, stop) if name == "if" else None
            return self.extent(self.start(other.end()), end) if other else stop
        if name == "do":
            return self.statement_end(self.extent(self.start(at + 2), end), end, False)
        macro = None if top else INVOKED.match(self.text, at)
        if macro and macro.end() in self.pairs and GOES_ON.match(self.text, self.pairs[macro.end()] + 1):
            return self.pairs[macro.end()] + 1  # with no semicolon
        return self.statement_end(at, end, top)

    def brackets(self, at: int) -> tuple[int, int]:
        opening = self.text.find("(", at)
        return opening, self.pairs.get(opening, len(self.text) - 1)

    def statement_end(self, at: int, end: int, top: bool) -> int:
        first, round_, assigns = at, False, False
        template = TEMPLATE.match(self.text, at) if top else None
        if template:
            first = at = angle_after(self.text, template.end()) + 1
        space = top and NAMESPACE.match(self.text, self.start(at))
        last = at
        for _ in range(end - at + 1):
            match = OPENING.search(self.text, at, end)
            if not match:
                return end
            outer = self.text[last : match.start()]
            assigns |= bool(re.search(r"(?<![=!<>])=(?!=)", outer)) and "operator" not in outer
            if match[0] == ";":
                return match.end()
            if match[0] == "}":
                return match.end()
            at = last = self.pairs[match.start()] + 1
            record = RECORD.match(self.text, self.start(first)) or ENUM.match(self.text, self.start(first))
            if match[0] == "{" and top and not record and (space or (round_ and not assigns)):
                return at
            round_ |= match[0] == "("
        return end

    def within(self, at: int, stop: int) -> bool:
        return at <= self.goal < stop

    def step(self, at: int, stop: int, scope: Scope) -> None:
        word = WORD.match(self.text, at)
        name = word[0] if word else ""
        if self.text[at] == "{":
            self.run(at + 1, stop - 1, Scope(scope))
        elif name in ("if", "for", "while", "do", "switch"):
            getattr(self, f"of_{name}")(at, stop, scope)
        elif self.within(at, stop):
            opening = at
            while match := re.compile(r"\{").search(self.text, opening, stop):
                if match.start() < self.goal < self.pairs[match.start()]:
                    self.run(match.end(), self.pairs[match.start()], Scope(scope))
                opening = match.end()
            raise Reached(scope)
        elif name == "return" and self.strict:
            told = self.text[at + 6 : stop].strip(" \n\t;")
            raise Returned(self.host.evaluate(told, scope) if told else None)
        elif not LABEL.match(self.text, at):
            self.simple(self.text[at:stop], scope)

    def of_if(self, at: int, stop: int, scope: Scope) -> None:
        opening, close = self.brackets(at)
        first = self.start(close + 1)
        behind = self.extent(first, stop)
        other = ELSE.match(self.text, behind)
        second = self.start(other.end()) if other and other.end() < stop else stop
        if self.within(at, stop):
            inside = self.within(first, behind)
            holds = self.tried(lambda: self.host.evaluate(self.text[opening + 1 : close], scope), "")
            self.missed |= not isinstance(holds, Unknown) and bool(holds) != inside
            if inside:
                self.assume(self.text[opening + 1 : close], scope)
                self.step(first, behind, Scope(scope))
            elif self.within(second, stop):
                self.step(second, stop, Scope(scope))
            raise Reached(scope)
        try:
            holds = self.host.evaluate(self.text[opening + 1 : close], scope)
        except Unresolved:
            if self.strict:
                raise
            self.forget(at, stop, scope)
            return
        if holds:
            self.step(first, behind, Scope(scope))
        elif second < stop:
            self.step(second, stop, Scope(scope))

    def assume(self, condition: str, scope: Scope) -> None:
        """Values of variables without which a condition does not hold, such as `threads == 256`."""
        for part in condition.split("&&"):
            one, mark, other = part.partition("==")
            name = one.strip("() \t\n")
            if mark and name.isidentifier() and scope.of(name):
                value = self.tried(lambda: self.host.evaluate(other.strip("() \t\n"), scope), "")  # noqa: B023
                if isinstance(value, int):
                    self.assumed[name] = value

    def of_for(self, at: int, stop: int, scope: Scope) -> None:
        opening, close = self.brackets(at)
        inner, body = Scope(scope), self.start(close + 1)
        parts = self.text[opening + 1 : close].split(";")
        if self.within(at, stop):
            self.looped = True
            if len(parts) == 3:
                self.simple(parts[0], inner)
            else:
                self.first_of(self.text[opening + 1 : close], inner)
            self.step(body, stop, inner)
            raise Reached(inner)
        self.follow(at, stop, inner, parts if len(parts) == 3 else ["", "?", ""], body)

    def first_of(self, text: str, scope: Scope) -> None:
        """`for (int n : {1, 2})`: the first."""
        head, _, values = text.replace("::", "\0\0").partition(":")
        name = re.search(r"([A-Za-z_]\w*)\s*$", head)
        if name:
            self.simple(f"{head.replace(chr(0), ':')} = ({values.replace(chr(0), ':').strip()})[0]", scope)

    def of_while(self, at: int, stop: int, scope: Scope) -> None:
        opening, close = self.brackets(at)
        body = self.start(close + 1)
        if self.within(at, stop):
            self.looped = True
            self.step(body, stop, Scope(scope))
            raise Reached(scope)
        self.follow(at, stop, scope, ["", self.text[opening + 1 : close], ""], body)

    def of_do(self, at: int, stop: int, scope: Scope) -> None:
        body = self.start(at + 2)
        behind = self.extent(body, stop)
        if self.within(at, stop):
            self.looped |= not ONCE.match(self.text, behind)
            self.step(body, behind, Scope(scope))
            raise Reached(scope)
        self.forget(at, stop, scope)

    def of_switch(self, at: int, stop: int, scope: Scope) -> None:
        opening, close = self.brackets(at)
        body = self.start(close + 1)
        if not self.within(at, stop):
            self.forget(at, stop, scope)
            return
        labels = [one for one in self.labels(body + 1, stop) if one.end() <= self.goal]
        if labels and labels[-1][0].startswith("case"):
            told = f"({self.text[opening + 1 : close]}) == ({labels[-1][0][4:-1]})"
            self.missed |= self.tried(lambda: self.host.evaluate(told, scope), "") == 0
            self.assume(told, scope)
        self.run(labels[-1].end() if labels else body + 1, stop - 1, Scope(scope))

    def labels(self, at: int, stop: int) -> Iterator[re.Match[str]]:
        """Those that stand in no brace of their own."""
        while match := re.compile(rf"\{{|{LABEL.pattern}").search(self.text, at, stop):
            at = match.end()
            if match[0] == "{":
                at = self.pairs[match.start()] + 1
            else:
                yield match

    def follow(self, at: int, stop: int, scope: Scope, parts: Sequence[str], body: int) -> None:
        """Turn by turn where the loop changes few variables alone, else what it changes is not known."""
        changed = [name for name in self.changes(at, stop) if scope.of(name)]
        if not changed:
            return
        text = self.text[body:stop]
        try:
            if STORED.search(text) or "<<<" in text:
                raise Unresolved(changed[0])
            self.simple(parts[0], scope)
            for _ in range(MOST_TURNS):
                if not self.host.evaluate(parts[1] or "1", scope):
                    return
                self.step(body, stop, Scope(scope))
                for part in split_commas(parts[2]):
                    self.simple(part, scope)
            raise Unresolved(changed[0])
        except Unresolved:
            if self.strict:
                raise
            self.forget(at, stop, scope)

    def changes(self, at: int, stop: int) -> list[str]:
        return [match[1] or match[2] for match in CHANGES.finditer(self.text, at, stop)]

    def forget(self, at: int, stop: int, scope: Scope) -> None:
        """What a branch or loop changes is not known behind it."""
        for name in self.changes(at, stop):
            if scope.of(name):
                scope.assign(name, Unknown(Unresolved(name)))

    def simple(self, text: str, scope: Scope) -> None:
        """A declaration or an assignment; others change nothing."""
        text = text.strip(" \t\n;")
        using, alias = USING.fullmatch(text), TYPEDEF.fullmatch(text)
        assigned, stepped = ASSIGNED.fullmatch(text), STEPPED.fullmatch(text)
        if using or alias:
            name, kind = (using[1], using[2]) if using else (alias[2], alias[1])  # type: ignore[index]
            scope.values[name] = self.tried(lambda: self.host.kind(kind, scope), kind)
        elif assigned:
            self.assign(assigned[1].replace("->", "."), assigned[2], assigned[3], scope)
        elif stepped:
            self.assign(stepped[2] or stepped[3], (stepped[1] or stepped[4])[0], "1", scope)
        elif not self.declare(text, scope):
            for match in ADDRESS.finditer(text):
                if scope.of(match[1]):
                    scope.assign(match[1], Unknown(Unresolved("", match[1])))
            self.by_reference(text, scope)

    def by_reference(self, text: str, scope: Scope) -> None:
        """What a function of the file leaves in variables that it takes by reference."""
        match = CALLED.fullmatch(text)
        for function in self.host.named(match[1]) if match else ():
            given = list(split_commas(match[2]))  # type: ignore[index]
            taken = [
                (one[0], name)
                for one, name in zip(function.parameters, given)
                if one[1].endswith("&") and name.isidentifier() and scope.of(name)
            ]
            if not taken:
                continue
            values = [self.tried(lambda: self.host.evaluate(one, scope), one) for one in given]  # noqa: B023
            left = View(self.host, scope).left_by(function, values)
            for parameter, name in taken:
                scope.assign(name, left.get(parameter, Unknown(Unresolved(name, f"{function.name}()"))))

    def tried(self, value: Any, text: str) -> Any:
        try:
            return value()
        except Unresolved as error:
            return Unknown(error, text)

    def assign(self, name: str, mark: str, text: str, scope: Scope) -> None:
        whole = f"{name} {mark} ({text})" if mark else text
        base, _, member = name.partition(".")
        there = scope.of(base)
        kind = there.types.get(name, "") if there else ""
        value = self.tried(lambda: converted(kind, self.host.evaluate(whole, scope)), text)
        known = there.values[base] if there else None
        if member in ("x", "y", "z") and isinstance(known, Dims) and there:
            extents: list[Any] = list(known)
            extents["xyz".index(member)] = value
            there.values[base] = value if isinstance(value, Unknown) else Dims(extents)
        elif there:
            there.values[name] = value

    def declare(self, text: str, scope: Scope) -> bool:
        match = DECLARED.match(text)
        while match:
            rest = text[match.end() :]
            parts = list(split_commas(rest))
            found = [DECLARATOR.fullmatch(part) for part in parts]
            if (
                found
                and rest[:1] in (" ", "*", "&", "\n", "\t")
                and all(one and (not one[3] or one[3][0] in "=({") for one in found)
            ):
                for one in filter(None, found):
                    self.declare_one(match[0], one, scope)
                return True
            shorter = match[0].rstrip().rpartition(" ")[0]
            match = DECLARED.fullmatch(shorter) if shorter else None
        return False

    def declare_one(self, kind: str, one: re.Match[str], scope: Scope) -> None:
        name, array, rest = one[1], one[2], one[3].strip()
        pointer = "*" in one[0][: one.start(1) - one.start()]
        kind = f"{kind.strip()} *" if pointer else kind.strip()
        plain = re.sub(
            r"\b(?:const|constexpr|static|inline|extern|struct|__constant__|__device__)\b", "", kind
        )
        value: Any
        text = rest.removeprefix("=").strip()
        if not rest:
            value = Dims((1, 1, 1)) if plain.strip() == "dim3" else Unknown(Unresolved("", name))
        elif LAMBDA.match(text):
            value = self.closure(name, text, scope) or Unknown(Unresolved("", name), text)
        elif rest[0] == "=":
            value = self.tried(lambda: self.host.evaluate(text, scope), text)
            if not array and not isinstance(value, Unknown):
                value = self.tried(lambda: converted(plain, value), text)
        elif array:
            value = self.tried(lambda: self.host.evaluate(rest, scope), rest)
        else:
            made = re.sub(r"<.*>", "", plain, flags=re.S).strip()
            value = self.tried(lambda: self.host.evaluate(f"{made}{rest}", scope), rest)
        scope.values[name], scope.types[name] = value, kind

    def closure(self, name: str, text: str, scope: Scope) -> Function | None:
        """A lambda, by its place in the file."""
        at = self.text.find(text)
        head = LAMBDA.match(self.text, at) if at >= 0 else None
        if not head or self.text[head.end() : head.end() + 1] != "(":
            return None
        close = self.pairs[head.end()]
        brace = self.text.find("{", close)
        if brace < 0 or ";" in self.text[close:brace]:
            return None
        parts = parameters_of(self.text[head.end() + 1 : close])
        return Function(name, parts, (brace + 1, self.pairs[brace]), scope)


def parameters_of(text: str) -> tuple[tuple[str, str, str], ...]:
    """Name, type and default value of each."""
    found = []
    for part in split_parameters(text):
        told, _, default = part.partition("=")
        one = declaration(told)
        kind = f"{one.base} *" if one.pointer else one.base
        kind += " &" if one.reference and not re.match(r"\s*const\b", told) else ""
        found.append((one.name, kind, default.strip()))
    return () if text.strip() == "void" else tuple(found)


def split_parameters(text: str) -> list[str]:
    """Declarations of parameters; what stands between angles has commas of its own."""
    parts: list[str] = []
    for part in split_commas(text):
        if parts and parts[-1].count("<") > parts[-1].count(">"):
            parts[-1] += f", {part}"
        else:
            parts.append(part)
    return parts


def template_parameters(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, "type" or "", and default of each."""
    for part in split_commas(text):
        head, _, default = (one.strip() for one in part.partition("="))
        name = re.search(r"(\w+)$", head)
        kind = "type" if head.startswith(("typename", "class")) else ""
        yield (name[1] if name else "", kind, default)


def angle_after(text: str, opening: int) -> int:
    """Where the angle of `template <` is closed."""
    depth = 0
    for match in re.compile(r"[<>(){};]").finditer(text, opening):
        depth += (match[0] == "<") - (match[0] == ">")
        if not depth or match[0] in "{};":
            return match.start()
    return len(text) - 1


def body_of(text: str, at: int, stop: int, pairs: Mapping[int, int]) -> int:
    """The brace of a function's body that ends where a statement does; -1 where it is none."""
    for match in re.compile(r"\{").finditer(text, at, stop):
        if pairs[match.start()] + 1 == stop:
            return match.start()
    return -1
