"""Expressions of C++ as host code has them, and their values: whole numbers divide as C's do, and `dim3` are
tuples."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Protocol, Sequence

from tir_schedules.check.types import NAMES, c_type

PAIRS = {"(": ")", "[": "]", "{": "}"}
LARGEST_SHIFT = 128
MOST_TOKENS = 4000
VECTOR = re.compile(r"(u?char|u?short|u?int|u?long|float|double|half|__half|__nv_bfloat16)([1-4])")
TYPE_WORDS = {*" ".join(NAMES).split(), "const", "struct", "typename", "*", "&", "void", "signed", "auto"}
QUALIFIER = re.compile(r"\b(?:const|constexpr|static|inline|volatile|typename|struct|register)\b|&")
NAME = re.compile(r"[A-Za-z_:]")
NUMBER = re.compile(r"[\d.]")


class Unresolved(Exception):
    """What has no value here. name: of the variable that a user could give; "" for another expression, which
    text is."""

    def __init__(self, name: str, text: str = ""):
        super().__init__(name or text)
        self.name, self.text = name, text or name


class Dims(tuple):
    """A dim3."""


class Kind(str):
    """The name of a type, or of a kernel."""


class Enumerator(int):
    """A value of an enumeration. name: how a template is given it, with its namespaces and classes."""

    name: str

    def __new__(cls, value: int, name: str) -> Enumerator:
        made = super().__new__(cls, value)
        made.name = name
        return made


@dataclass(frozen=True)
class Sized:
    """A container with so many elements."""

    length: int


@dataclass(frozen=True)
class Function:
    """A function of the host, or a lambda. parameters: names, types and default values. body: where it begins
    and ends. values: what a lambda sees, None for another. path: namespaces and classes around it. template:
    names of its template's parameters, "type" for types, and default values. head: where it begins."""

    name: str
    parameters: tuple[tuple[str, str, str], ...]
    body: tuple[int, int]
    values: Any = None
    path: tuple[str, ...] = ()
    template: tuple[tuple[str, str, str], ...] = ()
    head: int = 0


class Names(Protocol):
    """What an expression may name."""

    def find(self, name: str) -> Any: ...
    def type_of(self, name: str) -> str: ...
    def call(self, name: str, given: Sequence[Any]) -> Any:
        """NotImplemented where there is no such function."""

    def array(self, name: str) -> tuple[tuple[int, ...], int] | None: ...


Node = tuple[Any, ...]
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
          ("+", "-"), ("*", "/", "%"))  # fmt: skip


class Parsing:
    """The tree of an expression."""

    def __init__(self, tokens: Sequence[str]):
        if len(tokens) > MOST_TOKENS:
            raise Unresolved("", f"an expression of {len(tokens)} words")
        self.tokens, self.at = tokens, 0

    def whole(self) -> Node:
        node = self.ternary()
        if self.at < len(self.tokens):
            raise self.refused()
        return node

    def refused(self) -> Unresolved:
        return Unresolved("", " ".join(self.tokens)[:60])

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, token: str = "") -> str:
        found = self.peek()
        if not found or (token and found != token):
            raise self.refused()
        self.at += 1
        return found

    def ternary(self) -> Node:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        one = self.ternary()
        self.take(":")
        return "choice", condition, one, self.ternary()

    def binary(self, level: int) -> Node:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while True:
            mark = self.peek()
            if mark == ">" and self.peek(1) == ">":
                mark = ">>"
            if mark not in LEVELS[level]:
                return left
            self.at += 2 if mark == ">>" else 1
            left = "binary", mark, left, self.binary(level + 1)

    def unary(self) -> Node:
        mark = self.peek()
        if mark in ("+", "-", "!", "~", "*", "&", "++", "--"):
            self.take()
            return "unary", mark, self.unary()
        if mark == "(" and (end := self.cast_end()):
            kind = " ".join(self.tokens[self.at + 1 : end])
            self.at = end + 1
            return "cast", kind, self.unary()
        return self.postfix(self.primary())

    def closing(self, opening: int) -> int:
        depth = 0
        for at in range(opening, len(self.tokens)):
            depth += (self.tokens[at] in PAIRS) - (self.tokens[at] in PAIRS.values())
            if not depth:
                return at
        raise self.refused()

    def cast_end(self) -> int:
        """Where the type in brackets ends; 0 where there is no type."""
        end = self.closing(self.at)
        inner = self.tokens[self.at + 1 : end]
        behind = self.tokens[end + 1] if end + 1 < len(self.tokens) else ""
        if not inner or not (NAME.match(behind) or NUMBER.match(behind) or behind in ("(", "-", "~", "!")):
            return 0
        if all(is_type_word(token) for token in inner):
            return end
        alone = len(inner) == 1 and NAME.match(inner[0])
        pointer = inner[-1] == "*" and NAME.match(inner[0])
        return end if pointer or (alone and behind not in ("(", "-", "~", "!")) else 0

    def primary(self) -> Node:
        token = self.take()
        if token == "(":
            node = self.ternary()
            self.take(")")
            return node
        if token == "{":
            return "list", self.listed("}")
        if NUMBER.match(token):
            return "number", number_of(token)
        if not NAME.match(token):
            raise self.refused()
        if token == "sizeof":
            if self.peek() != "(":
                raise self.refused()
            end = self.closing(self.at)
            inner, self.at = self.tokens[self.at + 1 : end], end + 1
            return "sizeof", inner
        template = ""
        if self.peek() == "<" and (end := self.angle_end()):
            template, self.at = " ".join(self.tokens[self.at + 1 : end]), end + 1
            if self.peek().startswith("::"):
                return "name", f"{token}<{template}>{self.take()}"
        if is_type_word(token):
            while is_type_word(self.peek()) and self.peek() not in "*&":
                token += f" {self.take()}"
        if self.peek() in ("(", "{"):
            closer = PAIRS[self.take()]
            return "call", token, template, self.listed(closer)
        return ("name", token) if not template else ("kind", f"{token}<{template}>")

    def listed(self, closer: str) -> list[Node]:
        found: list[Node] = []
        while self.peek() != closer:
            found.append(self.ternary())
            if self.peek() == ",":
                self.take()
            elif self.peek() != closer:
                raise self.refused()
        self.take()
        return found

    def angle_end(self) -> int:
        """Where the arguments of a template end; 0 for a `<` that compares."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            token = self.tokens[at]
            depth += (token == "<") - (token == ">")
            if not depth:
                behind = self.tokens[at + 1] if at + 1 < len(self.tokens) else ""
                return at if behind in ("(", "{", "") or behind.startswith("::") else 0
            if token in ("&&", "||", "?", ";", "{", "}"):
                return 0
        return 0

    def postfix(self, node: Node) -> Node:
        while self.peek() in (".", "->", "[", "(", "++", "--"):
            mark = self.take()
            if mark == "[":
                node = "index", node, self.ternary()
                self.take("]")
            elif mark == "(":
                node = "call", spelled(node), "", self.listed(")")
            elif mark not in ("++", "--"):
                name = self.take()
                if self.peek() == "<" and (end := self.angle_end()):
                    self.at = end + 1
                if self.peek() == "(":
                    self.take()
                    node = "method", node, name, self.listed(")")
                else:
                    node = "member", node, name
        return node


def is_type_word(token: str) -> bool:
    return token in TYPE_WORDS or token.removeprefix("std::") in NAMES or bool(VECTOR.fullmatch(token))


def number_of(token: str) -> int | float:
    text = token.replace("'", "")
    try:
        if text[:2] in ("0x", "0X", "0b", "0B"):
            return int(text.rstrip("uUlLzZ"), 0)
        if re.fullmatch(r"\d+[uUlLzZ]*", text):
            whole = text.rstrip("uUlLzZ")
            return int(whole, 8) if whole[0] == "0" else int(whole)
        return float(text.rstrip("fFlL"))
    except ValueError:
        raise Unresolved("", token) from None


def spelled(node: Node) -> str:
    """A name with its members, such as "config.gridDim"; "" for another expression."""
    if node[0] == "name":
        return node[1]
    if node[0] == "member" and (left := spelled(node[1])):
        return f"{left}.{node[2]}"
    if node[0] == "unary" and node[1] in "*&":
        return spelled(node[2])
    return ""


def names_in(node: Any) -> list[str]:
    """Names in a tree, in order."""
    if isinstance(node, tuple) and node and node[0] == "name":
        return [node[1]]
    if isinstance(node, (tuple, list)):
        return [name for part in node for name in names_in(part)]
    return []


def divided(left: Any, right: Any) -> Any:
    if not right:
        raise Unresolved("", "a division by 0")
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def shifted(left: int, right: int) -> int:
    if not 0 <= right <= LARGEST_SHIFT:
        raise Unresolved("", f"a shift by {right}")
    return left << right


BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "<<": shifted,
    ">>": lambda left, right: left >> min(right, LARGEST_SHIFT), "+": operator.add, "-": operator.sub,
    "*": operator.mul, "/": divided, "%": lambda left, right: left - right * divided(left, right),
}  # fmt: skip
UNARY: Mapping[str, Callable[[Any], Any]] = {
    "+": operator.pos, "-": operator.neg, "!": operator.not_, "~": operator.invert,
    "++": lambda value: value + 1, "--": lambda value: value - 1,
}  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": min, "max": max, "abs": abs, "ceil": lambda x: float(math.ceil(x)),
    "floor": lambda x: float(math.floor(x)), "sqrt": math.sqrt, "log2": math.log2, "pow": math.pow,
    "exp": math.exp, "log": math.log,
}  # fmt: skip
CASTS = ("static_cast", "reinterpret_cast", "const_cast")
CEILINGS = ("cdiv", "ceildiv", "divceil", "divup", "idivup", "updiv", "divideup", "divroundup", "roundupdiv")
"""Division that rounds up, as headers that are not there call it; without underscores."""

THERE = ("defined", "has_value")
"""What asks whether there is an array."""

CONSTANTS = {"true": 1, "false": 0, "nullptr": 0, "NULL": 0, "argc": 1}
"""argc: a program that is run with no arguments."""


class Evaluation:
    """Values of trees."""

    def __init__(self, names: Names):
        self.names = names

    def __call__(self, node: Node) -> Any:
        try:
            return getattr(self, f"of_{node[0]}")(*node[1:])
        except (TypeError, ValueError, OverflowError, IndexError, AttributeError, RecursionError):
            raise Unresolved("", spelled(node) or "an expression") from None

    def of_number(self, value: Any) -> Any:
        return value

    def of_name(self, name: str) -> Any:
        return self.names.find(name)

    def of_kind(self, text: str) -> Kind:
        return Kind(text)

    def of_list(self, parts: list[Node]) -> tuple[Any, ...]:
        return tuple(map(self, parts))

    def of_choice(self, condition: Node, one: Node, other: Node) -> Any:
        return self(one if self(condition) else other)

    def of_unary(self, mark: str, node: Node) -> Any:
        if mark not in UNARY:
            raise Unresolved("", f"{mark}{spelled(node)}")
        value = UNARY[mark](self(node))
        return int(value) if isinstance(value, bool) else value

    def of_binary(self, mark: str, left: Node, right: Node) -> Any:
        if mark == "||":
            return int(bool(self(left)) or bool(self(right)))
        if mark == "&&":
            return int(bool(self(left)) and bool(self(right)))
        one, other = self(left), self(right)
        if isinstance(one, (tuple, Kind)) or isinstance(other, (tuple, Kind)):
            raise Unresolved("", mark)
        value = BINARY[mark](one, other)
        return int(value) if isinstance(value, bool) else value

    def of_cast(self, kind: str, node: Node) -> Any:
        return converted(kind, self(node))

    def of_sizeof(self, tokens: list[str]) -> int:
        text = " ".join(tokens)
        kind = self.names.type_of(text) or text
        found = size_of(kind)
        if not found:
            raise Unresolved("", f"sizeof({text})")
        return found

    def of_index(self, node: Node, place: Node) -> Any:
        value = self.of_member(*node[1:]) if node[0] == "member" else self(node)
        if not isinstance(value, tuple):
            raise Unresolved("", f"{spelled(node)}[]")
        return value[self(place)]

    def of_member(self, node: Node, name: str) -> Any:
        whole = f"{spelled(node)}.{name}"
        if name in ("x", "y", "z"):
            value = self(node)
            if isinstance(value, tuple):
                return (*value, 1, 1)["xyz".index(name)]
        if name in ("shape", "sizes") and (array := self.names.array(spelled(node))):
            return array[0]
        return self.names.find(whole)

    def of_method(self, node: Node, name: str, given: list[Node]) -> Any:
        base = spelled(node)
        array = self.names.array(base)
        values = [self(one) for one in given]
        if array:
            shape, element = array
            if name == "size" and len(values) == 1:
                return shape[values[0]]
            if name == "stride" and len(values) == 1:
                return math.prod(shape[values[0] % len(shape) + 1 :])
            told = {"numel": math.prod(shape), "size": math.prod(shape), "dim": len(shape), "sizes": shape,
                    "nbytes": math.prod(shape) * element, "element_size": element,
                    **dict.fromkeys(THERE, 1)}  # fmt: skip
            if name in told:
                return told[name]
        elif name in (*THERE, "numel") and self(node) == 0:  # a null pointer is given for it
            return 0
        elif name == "size" and not given:
            value = self(node)
            if isinstance(value, Sized):
                return value.length
            if isinstance(value, tuple):
                return len(value)
        raise Unresolved("", f"{base}.{name}()")

    def of_call(self, name: str, template: str, given: list[Node]) -> Any:
        last = name.rpartition("::")[2]
        if last in CASTS and template and len(given) == 1:
            return converted(template, self(given[0]))
        if is_type_word(name) and last != "dim3":
            return converted(name, self(given[0])) if given else 0
        if last == "dim3":
            return dims(tuple(map(self, given)))
        if last in ("vector", "thrust::device_vector", "device_vector", "host_vector") and given:
            value = self(given[0])
            return Sized(value) if isinstance(value, int) else Sized(len(value))
        values = [self(one) for one in given]
        value = self.names.call(name, values)
        if value is not NotImplemented:
            return value
        plain = last.lower().replace("_", "")
        if plain in CEILINGS and len(values) == 2:
            return (
                -divided(-values[0], values[1]) if values[0] % values[1] == 0 else values[0] // values[1] + 1
            )
        known = last if last in FUNCTIONS else last.removesuffix("f")
        if known not in FUNCTIONS:
            raise Unresolved("", f"{name}()")
        return FUNCTIONS[known](*values)


def dims(values: Sequence[Any]) -> Dims:
    """A dim3 of one to three numbers, or of another."""
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    if len(values) > 3:
        raise Unresolved("", "dim3")
    return Dims(int(one) for one in (*values, 1, 1, 1)[:3])


def converted(kind: str, value: Any) -> Any:
    """A value in a type; as it is for a type that is not built in."""
    text = " ".join(QUALIFIER.sub(" ", kind).split())
    if text == "dim3":
        return dims(value if isinstance(value, tuple) else (value,))
    if "*" in text or not isinstance(value, (int, float)):
        return value[0] if isinstance(value, tuple) and len(value) == 1 and c_type(text).format else value
    if text == "bool":
        return int(bool(value))
    format = c_type(text).format
    if not format:
        return value
    if format[0] in "fb":
        return float(value)
    bits, whole = int(format[1:]), int(value)
    whole &= (1 << bits) - 1
    return whole - (1 << bits) if format[0] == "i" and whole >> (bits - 1) else whole


def size_of(kind: str) -> int:
    """Bytes of a type; 0 where they are not known."""
    text = " ".join(QUALIFIER.sub(" ", kind).split()).replace(" *", "*")
    if text.endswith("*"):
        return 8
    format = c_type(text).format
    if format:
        return int(re.sub(r"\D", "", format)) // 8
    vector = VECTOR.fullmatch(text)
    if vector:
        return size_of({"uchar": "unsigned char", "ulong": "unsigned long"}.get(vector[1], vector[1])) * int(
            vector[2]
        )
    return {"half2": 4, "__half2": 4, "__nv_bfloat162": 4, "nv_bfloat162": 4}.get(text, 0)


class Nothing:
    """Names of `#if`, each of which is 0 where it is not known."""

    def find(self, name: str) -> Any:
        return CONSTANTS.get(name, 0)

    def type_of(self, name: str) -> str:
        return ""

    def call(self, name: str, given: Sequence[Any]) -> Any:
        return 0

    def array(self, name: str) -> None:
        return None


def constant(tokens: Sequence[str]) -> Any:
    """The value of what stands behind `#if`."""
    return Evaluation(Nothing())(Parsing(tokens).whole())
