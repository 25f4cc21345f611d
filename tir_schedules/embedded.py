"""CUDA in strings of a Python file, as `load_inline` and CuPy's `RawKernel` take it. Strings are put together
from what the file itself says: constants of the module in f-strings, `%`, `.format`, `.replace` and `+`."""

from __future__ import annotations

import ast
import operator
import re
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from tir_schedules.errors import BadInput

TRITON = re.compile(r"^[ \t]*@(?:triton\.)?jit\b", re.M)
CHECK = re.compile(r"^[ \t]*#([ \t]*check:.*)$")
OF_TORCH = "#include <torch/types.h>"
"""What `torch.utils.cpp_extension.load_inline` puts before CUDA."""

KERNEL = "__global__"
PARTIAL = re.compile(r"\b(ElementwiseKernel|ReductionKernel)\s*\(")
TAKING = {
    "load_inline": (2, "cuda_sources"),
    "RawKernel": (0, "code"),
    "RawModule": (0, "code"),
    "SourceModule": (0, "source"),
}
"""Functions that take CUDA: at which place, and by which name."""

OPTIONS = ("extra_cuda_cflags", "options")
"""How `load_inline`, and CuPy's `RawKernel` and `RawModule`, call the flags of nvcc."""

OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
CONVERSIONS = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}
METHODS = ("format", "replace", "join")
SHOWN = 60
"""Letters of an expression that a message names."""

LARGEST = 1 << 64
"""Numbers that are multiplied are smaller."""


class Piece(NamedTuple):
    """Text that begins in a line of the Python file."""

    line: int
    text: str


class Text(tuple[Piece, ...]):
    """A string, in pieces one behind another."""

    def __str__(self) -> str:
        return "".join(piece.text for piece in self)


class Untold(Exception):
    """A part of a string is not known; the text names it."""


class Formatted(Untold):
    """The same where CUDA is formatted with it. line: of the string."""

    def __init__(self, name: str, line: int):
        super().__init__(name)
        self.line = line


def cuda_in_python(text: str) -> str:
    """The CUDA in strings of a Python file, with the `# check:` comments, each line at its number. "" where
    there is none, or where there are Triton kernels. BadInput for CUDA that is formatted with what is not
    known, and for kernels that CuPy makes of an expression."""
    partial = PARTIAL.search(text)
    if TRITON.search(text) or (KERNEL not in text and not partial):
        return ""
    try:
        module = ast.parse(text)
        reader = Reader()
        reader.module(module.body)
        pieces = reader.passed_pieces()
    except Formatted as error:
        raise BadInput(
            f"the CUDA string at line {error.line} is formatted; {error} is not known: give it a value at the"
            " top of the file, or write it into the string"
        ) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if not pieces and partial:
        raise BadInput(
            f"CuPy's {partial[1]} is not taken: write a __global__ function, as RawKernel takes it"
        )
    return laid_out(pieces, text) if pieces else ""


def laid_out(pieces: Sequence[Piece], text: str) -> str:
    """Lines of CUDA at their numbers in the file."""
    lines = [f"//{match[1]}" if (match := CHECK.match(line)) else "" for line in text.split("\n")]
    for piece in pieces:
        for at, line in enumerate(piece.text.split("\n"), piece.line - 1):
            lines += [""] * (at + 1 - len(lines))
            lines[at] = line
    if "load_inline" in text and not lines[0]:
        lines[0] = OF_TORCH
    return "\n".join(lines)


def flags_in_python(text: str) -> tuple[str, ...]:
    """The flags that a Python file passes in literal lists with its CUDA."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.keyword)
            and node.arg in OPTIONS
            and isinstance(node.value, (ast.List, ast.Tuple))
        ):
            values = [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
            found += [value for value in values if isinstance(value, str) and value.startswith("-")]
    return tuple(dict.fromkeys(found))


class Reader:
    """Statements in order, those of functions last. functions: their bodies, with the names that are known
    around them and their parameters. found: text with kernels, by its line; passed: the
    text that functions of TAKING are given, None where that cannot be told."""

    def __init__(self) -> None:
        self.functions: list[tuple[list[ast.stmt], dict[str, Any], set[str]]] = []
        self.found: dict[int, Piece] = {}
        self.passed: list[Text] | None = []

    def passed_pieces(self) -> list[Piece]:
        """What is passed on, where that is known, else every text with a kernel."""
        passed = dict.fromkeys(self.passed or ())
        if not any(has_kernel(str(text)) for text in passed):
            return list(self.found.values())
        return [piece for text in passed for piece in lines_of(text)]

    def module(self, statements: Sequence[ast.stmt]) -> None:
        self.block(statements, {})
        for body, known, parameters in self.functions:  # which may have more of them
            self.block(body, {name: value for name, value in known.items() if name not in parameters})

    def block(self, statements: Sequence[ast.stmt], known: dict[str, Any]) -> None:
        for statement in statements:
            self.statement(statement, known)

    def statement(self, node: ast.stmt, known: dict[str, Any]) -> None:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        blocks: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                blocks.append(child)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                blocks += child.body
            elif not is_text:  # of documentation
                self.visit(child, known)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.forget(node.target, known)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parameters = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
            self.functions.append((node.body, known, parameters))
        else:
            self.block(blocks, known)
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try)):  # which may be left out
            for name in {name for block in blocks for name in stored(block)}:
                if not isinstance(known.get(name), Text):
                    known.pop(name, None)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value, known)
        elif isinstance(node, ast.AnnAssign) and node.value:
            self.assign(node.target, node.value, known)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = ast.Name(node.target.id, ast.Load())
            whole = ast.copy_location(ast.BinOp(name, node.op, node.value), node)
            self.assign(node.target, whole, known)

    def assign(self, target: ast.expr, value: ast.expr, known: dict[str, Any]) -> None:
        try:
            found = evaluated(value, known)
        except Untold:
            found = None
        self.forget(target, known)
        if isinstance(target, ast.Name) and found is not None:
            known[target.id] = found

    def forget(self, target: ast.AST, known: dict[str, Any]) -> None:
        for name in stored(target):
            known.pop(name, None)

    def visit(self, node: ast.AST, known: dict[str, Any]) -> None:
        """Finds text with kernels in an expression."""
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda)):
            own = stored(node) | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
            known = {name: value for name, value in known.items() if name not in own}
        if isinstance(node, ast.Call):
            self.pass_on(node, known)
        try:
            value = evaluated(node, known) if isinstance(node, ast.expr) else None
        except Formatted:
            raise
        except Untold:
            value = None
        if not isinstance(value, Text):
            for child in ast.iter_child_nodes(node):
                self.visit(child, known)
        elif has_kernel(str(value)):
            self.found |= {piece.line: piece for piece in lines_of(value)}

    def pass_on(self, node: ast.Call, known: dict[str, Any]) -> None:
        """What a call of TAKING is given."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in TAKING or self.passed is None:
            return
        at, word = TAKING[name]
        given = [one.value for one in node.keywords if one.arg == word] or node.args[at : at + 1]
        try:
            values = [evaluated(one, known) for one in given]
        except Formatted:
            raise
        except Untold:
            self.passed = None
            return
        for value in values:
            texts = [value] if isinstance(value, Text) else value if isinstance(value, list) else []
            self.passed += [one for one in texts if isinstance(one, Text)]


def stored(node: ast.AST) -> set[str]:
    """Names that are given values."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def has_kernel(text: str) -> bool:
    return KERNEL in text and "{" in text


def lines_of(text: Text) -> list[Piece]:
    """Its pieces, as far as each can stand at its own line."""
    found: list[Piece] = []
    for piece in text:
        if found and piece.line <= found[-1].line + found[-1].text.count("\n"):
            found[-1] = Piece(found[-1].line, found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


# ---- the value of an expression ---
def evaluated(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A number, a Text, or a list, tuple or dictionary of these. Untold for another."""
    if isinstance(node, ast.Constant):
        return Text([Piece(node.lineno, node.value)]) if isinstance(node.value, str) else node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.JoinedStr):
        return of_joined(node, known)
    if isinstance(node, ast.BinOp):
        return of_operator(node, known)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = (plain(evaluated(key, known)) for key in node.keys if key)
        return dict(zip(keys, (evaluated(one, known) for one in node.values)))
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [evaluated(one, known) for one in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.IfExp):
        return evaluated(node.body if evaluated(node.test, known) else node.orelse, known)
    if isinstance(node, ast.Call):
        return of_call(node, known)
    raise Untold(ast.unparse(node))


def of_joined(node: ast.JoinedStr, known: Mapping[str, Any]) -> Text:
    text, missing = "", None
    for one in node.values:
        try:
            text += str(evaluated(one, known) if isinstance(one, ast.Constant) else inserted(one, known))
        except Untold as error:
            missing = missing or error
    if missing:
        raise lost(text, missing, node.lineno)
    return Text([Piece(node.lineno, text)])


def inserted(node: ast.expr, known: Mapping[str, Any]) -> str:
    """What stands in the braces of an f-string."""
    assert isinstance(node, ast.FormattedValue)
    value = CONVERSIONS[node.conversion](plain(evaluated(node.value, known)))
    spec = str(evaluated(node.format_spec, known)) if node.format_spec else ""
    return calculated(lambda: format(value, spec), node)


def of_operator(node: ast.BinOp, known: Mapping[str, Any]) -> Any:
    sides, missing = [], None
    for one in (node.left, node.right):
        try:
            sides.append(evaluated(one, known))
        except Untold as error:
            missing = missing or error
    texts = [one for one in sides if isinstance(one, Text)]
    if missing or type(node.op) not in OPERATORS:
        raise lost("".join(map(str, texts)), missing or Untold(ast.unparse(node)), node.lineno)
    left, right = sides
    if isinstance(left, Text) and isinstance(node.op, ast.Mod):
        return whole(left, lambda text: text % plain(right), node)
    if len(texts) == 2 and isinstance(node.op, ast.Add):
        return Text([*left, *right])
    if not all(isinstance(one, (int, float)) and abs(one) < LARGEST for one in sides):
        raise Untold(ast.unparse(node))
    return calculated(lambda: OPERATORS[type(node.op)](left, right), node)


def of_call(node: ast.Call, known: Mapping[str, Any]) -> Any:
    """The value of a call of a string's method, or of textwrap.dedent and the like, which change no line of
    code."""
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name in ("dedent", "cleandoc") and node.args:
        return evaluated(node.args[0], known)
    if not isinstance(function, ast.Attribute) or name not in METHODS:
        raise Untold(f"{ast.unparse(function)}()")
    text = evaluated(function.value, known)
    if not isinstance(text, Text):
        raise Untold(ast.unparse(node))
    try:
        given = [evaluated(one, known) for one in node.args]
        named = {str(one.arg): plain(evaluated(one.value, known)) for one in node.keywords}
    except Untold as error:
        raise lost(str(text), error, text[0].line) from None
    if name == "join" and given and all(isinstance(one, Text) for one in given[0]):
        return Text([piece for one in given[0] for piece in (*one, *text)])
    given = plain(given)
    if name == "format":
        return whole(text, lambda told: told.format(*given, **named), node)
    parts = [calculated(lambda: getattr(piece.text, name)(*given), node) for piece in text]  # noqa: B023
    return Text([Piece(piece.line, part) for piece, part in zip(text, parts)])


def whole(text: Text, change: Callable[[str], str], node: ast.expr) -> Text:
    """A text that is formatted as a whole."""
    try:
        return Text([Piece(text[0].line, calculated(lambda: change(str(text)), node))])
    except Untold as error:
        raise lost(str(text), error, text[0].line) from None


def calculated(value: Callable[[], Any], node: ast.expr) -> Any:
    try:
        return value()
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError):
        raise Untold(ast.unparse(node)[-SHOWN:]) from None


def lost(text: str, error: Untold, line: int) -> Untold:
    """The error, with the line of the text if the text has a kernel."""
    return Formatted(str(error), line) if has_kernel(text) else error


def plain(value: Any) -> Any:
    """With strings for texts."""
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value
