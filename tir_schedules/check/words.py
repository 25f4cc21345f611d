"""Parameters that are called like words of Python, such as `in`: how expressions and options name them."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import replace
from typing import Any, Iterable, Mapping

OF_BOTH = frozenset("and break class continue else for if not or return try while".split())
"""Words of Python that no parameter is called, for they are C++'s as well."""

VALUES = frozenset(("None", "True", "False"))
WORDS = frozenset(keyword.kwlist) - OF_BOTH - VALUES
BARE = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(WORDS))})(?!\w)")
HIDDEN = "_word_"
"""What stands before a word while Python reads an expression."""


def parse_names(text: str) -> ast.Expression:
    """An expression in which words are names, unless it is none then. SyntaxError for other text."""
    try:
        tree = ast.parse(BARE.sub(rf"{HIDDEN}\g<0>", text), mode="eval")
    except SyntaxError:
        return ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = node.id.removeprefix(HIDDEN)
    return tree


def name_parameters(request: Any, parameters: Iterable[str], others: Mapping[str, str] = {}) -> Any:
    """A Request (see preparing.py) in which a parameter `in` is called so wherever it is called `in_`.
    others: more names of parameters -> their own."""
    known = set(parameters)
    words = {*WORDS, *VALUES, *keyword.softkwlist} - {"_"}
    own = {f"{name}_": name for name in known & words if f"{name}_" not in known}
    own |= {other: name for other, name in others.items() if other not in known}
    if not own:
        return request
    spelled = re.compile(
        rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(own, key=len, reverse=True)))})(?!\w)"
    )

    def named(text: Any) -> Any:
        return spelled.sub(lambda match: own[match[0]], text) if isinstance(text, str) else text

    return replace(
        request,
        launches=tuple(
            replace(one, arguments=one.arguments and tuple(map(named, one.arguments)))
            for one in request.launches
        ),
        sizes={named(name): value for name, value in request.sizes.items()},
        given=tuple(replace(one, name=named(one.name), text=named(one.text)) for one in request.given),
        arguments={named(name): value for name, value in request.arguments.items()},
        expect=tuple(
            replace(one, output=named(one.output), where=named(one.where), value=named(one.value))
            for one in request.expect
        ),
    )
