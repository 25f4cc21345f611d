"""Expressions of the user's: sizes such as `cdiv(M, 16)`, what an output should be, `exp(A) @ B`; and
launches, `reduce<256>[cdiv(N, 512), 256, 1024](X, partial, N)`.

Expressions are read by Python's parser and evaluated here, node by node: numbers, names that are given,
operators, subscripts, `.T`, and functions of a table, which are methods as well: `x.sum(1)` is `sum(x, 1)`.
There is nothing else that they could reach. Words of Python such as `in`, which parameters may be called, are
names.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from inspect import Signature, signature
from typing import Any, Callable, Mapping, Sequence

from tir_schedules.check.types import FORMAT_WORDS
from tir_schedules.check.words import BARE, parse_names
from tir_schedules.compiler.signature import closing, split
from tir_schedules.errors import BadInput, nearest, one_line, shown
from tir_schedules.model.launch import Dim3, ceil_div

Functions = Mapping[str, Callable[..., Any]]

LONGEST = 4000
"""Most letters of an expression."""

LARGEST_BITS = 4096
"""Most bits of an integer: beyond any size, and quickly computed with."""

LISTED = 16
"""Functions up to so many are named in a message."""

UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
COMPARED = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
COMPARISONS = {ast.Compare, ast.IfExp}
TORCH = "torch."
MODULES = {
    "np": "np.", "numpy": "np.", "np.linalg": "np.", "math": "", "F": TORCH, "torch": TORCH,
    "torch.nn.functional": TORCH, "nn.functional": TORCH, "torch.special": TORCH, "torch.linalg": TORCH,
}  # fmt: skip
"""What may stand before a function, and whose that is."""

SPELLINGS = {
    "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "fabs": "abs", "pow": "power",
    "neg": "negative", "remainder": "mod", "clamp": "clip", "mul": "multiply", "sub": "subtract",
    "div": "divide", "true_divide": "divide", "view": "reshape", "flatten": "ravel", "expand": "broadcast_to",
    "unsqueeze": "expand_dims", "t": "transpose", "movedim": "moveaxis", "repeat_interleave": "repeat",
    "cat": "concatenate", "mm": "matmul", "bmm": "matmul", "to": "astype", "type": "astype",
    "asarray": "array", "tensor": "array",
}  # fmt: skip
"""Names that torch and C have -> those of numpy."""

ATTRIBUTES = ("T", "shape", "size", "ndim")
ATTRIBUTES_THERE = f"there are {', '.join(f'.{name}' for name in ATTRIBUTES)} and functions"
PAIR = "leave it out, and name the axis by axis=: max(x, axis=1) is values, argmax(x, axis=1) places"
OTHER_ATTRIBUTES = {"values": PAIR, "indices": PAIR, "data": "leave it out", "real": "leave it out"}
"""What to write in place of attributes that other arrays have."""

NUMBERS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}

SIZE_FUNCTIONS: Functions = {
    "cdiv": ceil_div, "ceil_div": ceil_div, "ceil": math.ceil, "floor": math.floor, "min": min, "max": max,
    "log2": math.log2, "sqrt": math.sqrt, "abs": abs, "int": int,
}  # fmt: skip
"""Functions in sizes, grids and scalars."""


class Refused(Exception):
    """A part of an expression that is not taken; the text says which."""


@dataclass(frozen=True)
class Format:
    """What a type in an expression stands for, such as "f32" for `np.float32`."""

    name: str


def evaluate(
    text: str,
    names: Mapping[str, Any],
    functions: Functions,
    what: str,
    watch: Callable[[Any], None] | None = None,
) -> Any:
    """The value of an expression. what: the option that it comes from, for messages. watch: is called with
    the value of each part of it.

    BadInput for text that is not an expression, that uses an unknown name, or whose evaluation fails.
    """
    try:
        if len(text) > LONGEST:
            raise Refused(f"it has more than {LONGEST} letters")
        return Evaluation(names, functions, watch).operand(parsed(text).body)
    except Refused as error:
        reason = str(error)
    except SyntaxError as error:
        named = [word for word in BARE.findall(text) if word in names]
        told = f"; `{named[0]}` in it is a parameter" if named else ""
        reason = f"it is not an expression ({error.msg}){told}"
    except RecursionError:
        reason = "it is nested too deeply"
    except MemoryError:
        reason = "it needs more memory than there is"
    except (ArithmeticError, TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        reason = one_line(error) or type(error).__name__
    raise BadInput(f"{what} {shown(text)}: {reason}")


@lru_cache(maxsize=256)
def parsed(text: str) -> ast.Expression:
    """The tree of an expression. SyntaxError for other text, also of literals that Python will not take some
    day."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        return parse_names(text.strip())


class Evaluation:
    """Evaluates the nodes of one expression."""

    def __init__(
        self, names: Mapping[str, Any], functions: Functions, watch: Callable[[Any], None] | None = None
    ):
        self.names, self.functions, self.watch = names, functions, watch
        self.of_arrays = "array" in functions

    def __call__(self, node: ast.AST) -> Any:
        reader = getattr(self, f"of_{type(node).__name__}", None)
        if reader is None:
            raise Refused(f"{type(node).__name__} is not taken; there are operators, numbers and functions")
        value = reader(node)
        if self.watch:
            self.watch(value)
        return value

    def of_Constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, bool):
            return self.names.get(str(node.value), node.value)
        if isinstance(node.value, (int, float, str, type(...))):
            return node.value
        raise Refused(f"{node.value!r} is not taken")

    def of_Name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in NUMBERS and self.functions:
            return NUMBERS[node.id]
        if node.id in FORMAT_WORDS and self.of_arrays:
            return Format(FORMAT_WORDS[node.id])
        known = ", ".join(self.names) or "none is given"
        raise Refused(f"there is no {shown(node.id)}{nearest(node.id, self.names)}; names: {known}")

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if type(node.op) not in UNARY:
            raise Refused("`not x` is not taken; say x == 0")
        return operated(node.op, UNARY[type(node.op)], self(node.operand))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
        raise Refused(f"`{word}` is not taken; say {sign} between comparisons: (x > 0) {sign} (x < 1)")

    def of_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.operand(node.left), self.operand(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
            if abs(left).bit_length() * max(right, 0) > LARGEST_BITS:
                raise Refused("the power is too large")
        if isinstance(node.op, ast.LShift) and isinstance(right, int) and right > LARGEST_BITS:
            raise Refused("the shift is too large")
        if any(isinstance(one, (str, tuple, Format, type(...), type(None))) for one in (left, right)):
            raise Refused("operators take numbers and arrays")
        found = operated(node.op, BINARY[type(node.op)], left, right)
        if isinstance(found, int) and found.bit_length() > LARGEST_BITS:
            raise Refused("a number is too large")
        return found

    def operand(self, node: ast.AST) -> Any:
        """A value; for a list, such as [[1, 2], [3, 4]], an array."""
        if isinstance(node, ast.List) and self.of_arrays:
            return self.functions["array"](self(node))
        return self(node)

    def of_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARED:
            raise Refused("one comparison at a time, of < <= > >= == !=")
        return COMPARED[type(node.ops[0])](self(node.left), self(node.comparators[0]))

    def of_IfExp(self, node: ast.IfExp) -> Any:
        return self(node.body if self(node.test) else node.orelse)

    def of_Tuple(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple(map(self, node.elts))

    of_List = of_Tuple

    def of_Attribute(self, node: ast.Attribute) -> Any:
        name = dotted(node)
        if name in self.names:
            return self.names[name]
        if self.is_module(node.value):
            if node.attr in NUMBERS:
                return NUMBERS[node.attr]
            if node.attr in FORMAT_WORDS:
                return Format(FORMAT_WORDS[node.attr])
            called = node.attr in self.functions or node.attr in SPELLINGS
            instead = f"call it, {name}(...)" if called else f"there are {self.known_functions()}"
            raise Refused(f"{name} is not taken; {instead}")
        if node.attr not in ATTRIBUTES:
            called = node.attr in self.functions or node.attr in SPELLINGS
            instead = f"write it as a function, {node.attr}(...)" if called else ATTRIBUTES_THERE
            raise Refused(f".{node.attr} is not taken; {OTHER_ATTRIBUTES.get(node.attr, instead)}")
        return getattr(self(node.value), node.attr)

    def is_module(self, node: ast.AST) -> bool:
        """Whether it is np, torch and the like, and no argument's name."""
        name = dotted(node)
        return name in MODULES and name not in self.names

    def of_Subscript(self, node: ast.Subscript) -> Any:
        others = {name: value for name, value in self.names.items() if name != "None"}
        return self(node.value)[Evaluation(others, self.functions)(node.slice)]

    def of_Slice(self, node: ast.Slice) -> slice:
        return slice(*(part and self(part) for part in (node.lower, node.upper, node.step)))

    def of_Call(self, node: ast.Call) -> Any:
        """A call. The array of a method is its first argument: `x.sum(1)` is `sum(x, 1)`. Where numpy, torch
        and methods differ, the table has a function for each: "np.max", "torch.max", ".max"."""
        function, first = node.func, ()
        if isinstance(function, ast.Attribute):
            of_module = self.is_module(function.value)
            first = () if of_module else (self.operand(function.value),)
            told, kind = function.attr, MODULES[dotted(function.value)] if of_module else "."
        elif isinstance(function, ast.Name):
            told, kind = function.id, ""
        else:
            raise Refused("functions are called by their names, such as exp(A) or np.exp(A)")
        if any(isinstance(one, ast.Starred) for one in node.args) or any(
            not one.arg for one in node.keywords
        ):
            raise Refused("* before arguments is not taken")
        given = {str(one.arg): self(one.value) for one in node.keywords}
        kind = TORCH if given.keys() & {"dim", "keepdim"} else kind
        name = SPELLINGS.get(told, told)
        name = kind + name if kind + name in self.functions else name
        if name not in self.functions:
            if told in ATTRIBUTES and first:
                raise Refused(f".{told} is not a function: leave the brackets out, x.{told}")
            close = nearest(told, [*self.functions, *(SPELLINGS if self.of_arrays else ())])
            raise Refused(f"there is no function {shown(told)}{close}; there are {self.known_functions()}")
        return called(told, self.functions[name], (*first, *map(self, node.args)), given)

    def known_functions(self) -> str:
        if len(self.functions) > LISTED:
            return "numpy's functions of arrays, such as sum, exp, where, reshape"
        return ", ".join(self.functions)


def called(name: str, function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a function returns. Refused, with its parameters, where it takes others."""
    try:
        return function(*given, **named)
    except TypeError:
        try:
            takes = signature(function)
        except ValueError:  # of some that are built in
            takes = Signature()
        try:
            if takes.parameters:
                takes.bind(*given, **named)
        except TypeError as error:
            plain = [one.replace(annotation=one.empty) for one in takes.parameters.values()]
            form = f"{name}{takes.replace(parameters=plain, return_annotation=takes.empty)}"
            raise Refused(f"{name}: {error}; it is {form}") from None
        raise


OF_INTEGERS: dict[type[ast.AST], str] = {
    ast.BitXor: "^ takes integers and comparisons; a power is x**2",
    ast.BitAnd: "& takes integers and comparisons, such as (x > 0) & (x < 1)",
    ast.BitOr: "| takes integers and comparisons, such as (x < 0) | (x > 1)",
    ast.Invert: "~ takes integers and comparisons; the negative is -x",
    ast.LShift: "<< takes integers; of reals say x * 2**n",
    ast.RShift: ">> takes integers; of reals say x / 2**n",
}
"""Operators that reals have not, and what to say."""


def operated(sign: ast.AST, operation: Callable[..., Any], *operands: Any) -> Any:
    """An operator's value. Refused for reals where it takes integers."""
    try:
        return operation(*operands)
    except TypeError:
        if type(sign) not in OF_INTEGERS:
            raise
        raise Refused(OF_INTEGERS[type(sign)]) from None


def dotted(node: ast.AST) -> str:
    """ "torch.nn.functional" of its node; "" if the node is not a name with dots."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=256)
def functions_in(text: str) -> frozenset[str]:
    """Names of the functions and methods that an expression calls, as numpy spells them."""
    called = [node.func for node in ast.walk(parsed(text)) if isinstance(node, ast.Call)]
    names = [getattr(one, "attr", getattr(one, "id", "")) for one in called]
    return frozenset(SPELLINGS.get(name, name) for name in names)


OF_SHAPES = frozenset(("shape", "size", "ndim", "numel", "len", "zeros_like", "ones_like"))
"""Attributes and functions that tell nothing of what is in an array."""


@lru_cache(maxsize=256)
def names_read(text: str) -> frozenset[str]:
    """Names in an expression, except functions that are called, and arrays that are used only for their
    shape."""
    others: list[ast.AST] = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Attribute) and node.attr in OF_SHAPES:
            others.append(node.value)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            others += [node.func, *(node.args if called in OF_SHAPES else [])]
    left = {id(node) for node in others}
    nodes = (node for node in ast.walk(parsed(text)) if isinstance(node, ast.Name) and id(node) not in left)
    return frozenset(node.id for node in nodes)


@lru_cache(maxsize=256)
def axis_taken_for_value(text: str) -> str:
    """For `max(x, 1)` the form that means an axis, "max(x, axis=1)"; "" if there is no maximum or minimum of
    an array and a whole number."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Call) and dotted(node.func) in ("max", "min") and len(node.args) == 2:
            array, axis = map(ast.unparse, node.args)
            if re.fullmatch(r"-?\d+", axis):
                return f"{dotted(node.func)}({array}, axis={axis})"
    return ""


@lru_cache(maxsize=256)
def nodes_in(text: str) -> frozenset[type]:
    """Kinds of the nodes of an expression."""
    return frozenset(map(type, ast.walk(parsed(text))))


def numbers_in(text: str) -> set[float]:
    """Numbers of an expression, except for subscripts and what functions are told by name."""
    tree = parsed(text)
    left = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    left += [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    others = {id(node) for part in left for node in ast.walk(part)}
    return {
        float(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
        and id(node) not in others
    }


HIDDEN = {"layer_norm": ("eps", 1e-5, 5)}
"""Function -> a constant that it has where none is given: its name, its value, and its place."""


def with_hidden_constants(text: str) -> ast.Expression:
    """The tree of an expression, with the constants that functions have where none is given."""
    tree = deepcopy(parsed(text))
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node, ast.Call) and called in HIDDEN:
            name, value, place = HIDDEN[called]
            if len(node.args) < place and name not in [one.arg for one in node.keywords]:
                node.keywords.append(ast.keyword(name, ast.Constant(value)))
    return tree


def other_constants(text: str, factor: float) -> dict[str, str]:
    """Each real of an expression, and the expression with that real times a factor."""
    count = sum(map(is_real, ast.walk(with_hidden_constants(text))))
    found = {}
    for number in range(count):
        tree = with_hidden_constants(text)
        node = [node for node in ast.walk(tree) if is_real(node)][number]
        assert isinstance(node, ast.Constant) and isinstance(node.value, float)
        shown, node.value = f"{node.value:g}", node.value * factor
        found[shown] = ast.unparse(tree)
    return found


def is_real(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value != 0


def whole(text: str, sizes: Mapping[str, Any], what: str) -> int:
    """A whole number. BadInput for an expression of another value."""
    return as_whole(evaluate(text, sizes, SIZE_FUNCTIONS, what), text, what)


def as_whole(value: Any, text: str, what: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"{what} {shown(text)}: {shown(value)} is not a whole number; cdiv(a, b) rounds up")
    return value


def wholes(text: str, sizes: Mapping[str, Any], what: str) -> tuple[int, ...]:
    """One or several whole numbers with commas between, such as "cdiv(N, 16), 4"."""
    value = evaluate(text, sizes, SIZE_FUNCTIONS, what)
    return tuple(as_whole(one, text, what) for one in (value if isinstance(value, tuple) else (value,)))


def dim3(values: Sequence[int], text: str, what: str) -> Dim3:
    """Extents along x, y and z; those left out are 1."""
    if not 1 <= len(values) <= 3:
        raise BadInput(f"{what} {shown(text)}: it has {len(values)} extents; x, y and z are the most")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def number(text: str, sizes: Mapping[str, Any], what: str) -> int | float:
    """A number, whole or not."""
    value = evaluate(text, sizes, SIZE_FUNCTIONS, what)
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, (int, float)):
        raise BadInput(f"{what} {shown(text)}: {shown(value)} is not a number")
    return value


# ---- launches ---
FORM = "such as 'kernel[grid, block](A, B, N)' or 'kernel[(M//16, N//16), (16, 16), shared]'"


@dataclass(frozen=True)
class Asked:
    """A launch before the kernel's parameters are known. kernel: its name, "" for the only one. arguments:
    names of arrays and expressions, in the kernel's order; None where each parameter takes what has its own
    name. read: where in the source it was read; "" where the user says it. values: what the source gives
    each parameter, a number or an array's name, "" where it does not tell; for those that nothing is given
    for. raised: whether the source may let the kernel have more than 48 KiB of dynamic shared memory.
    cooperative: whether the launch may be a cooperative one."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared: int = 0
    arguments: tuple[str, ...] | None = None
    read: str = ""
    values: tuple[str, ...] = ()
    raised: bool = True
    cooperative: bool = True


def launch_of_options(kernel: str, grid: str, block: str, shared: str, sizes: Mapping[str, Any]) -> Asked:
    """The launch that `--kernel`, `--grid`, `--block` and `--shared` describe."""
    extents = [
        dim3(wholes(text, sizes, option), text, option)
        for option, text in (("--grid", grid), ("--block", block))
    ]
    return Asked(kernel, extents[0], extents[1], shared_bytes(whole(shared, sizes, "--shared"), shared))


def parse_launch(text: str, sizes: Mapping[str, Any]) -> Asked:
    """The launch that `--launch` describes. BadInput for text of another form."""
    opening = text.find("[")
    end = closing(text, opening) if opening > 0 else None
    if end is None:
        raise BadInput(f"--launch {shown(text)}: it takes a kernel, its grid and its block, {FORM}")
    rest = text[end + 1 :].strip()
    if rest and not (rest.startswith("(") and closing(rest, 0) == len(rest) - 1):
        raise BadInput(f"--launch {shown(text)}: write the arguments in brackets after it, {FORM}")
    value = evaluate(f"({text[opening + 1 : end]},)", sizes, SIZE_FUNCTIONS, "--launch")
    if not isinstance(value, tuple) or not 2 <= len(value) <= 3:
        raise BadInput(f"--launch {shown(text)}: grid, block and bytes of shared memory, {FORM}")
    grid, block = (
        dim3(
            [as_whole(one, text, "--launch") for one in (part if isinstance(part, tuple) else (part,))],
            text,
            "--launch",
        )
        for part in value[:2]
    )
    shared = as_whole(value[2], text, "--launch") if len(value) > 2 else 0
    names = tuple(part.strip() for part in split(rest[1:-1]) if part.strip()) if rest else None
    return Asked(text[:opening].strip(), grid, block, shared_bytes(shared, text), names)


def shared_bytes(value: int, text: str) -> int:
    if not 0 <= value < 1 << 31:
        raise BadInput(f"--shared {shown(text)}: it is {value}; it takes 0 bytes or more, below 2**31")
    return value
