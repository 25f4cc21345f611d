"""What a kernel computes with, read from the opcodes of its PTX: it decides how far right values may be off.

A kernel with fp16 arrays that has no fp16 arithmetic converts to float32 first, so that its sums have the
rounding errors of float32.
"""

from __future__ import annotations

import re
from typing import Iterable

from tir_schedules.check.bounded import Arithmetic

OPCODE = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%?\w+\s+)?([a-z][\w.:]*)", re.M)
NARROWED = re.compile(r"\bcvt\.(?:rn|rz)[\w.]*\.b?f16\.f32\s+(%\w+)")
WIDENED = re.compile(r"\bcvt\.f32\.b?f16\s+%\w+,\s*(%\w+)")
"""Registers that a float32 is rounded to, and those that one is made of."""

ATOMIC = ("atom", "red")
ADDS = ("add", "sub", "fma", *ATOMIC)
CHAIN = 5
"""So many additions of halves, each of the one before, are a sum."""

ASSIGNED = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%?\w+\s+)?([a-z][\w.:]*)\s+([^;]*)(?=;)", re.M)
REGISTER = re.compile(r"%\w+")
MULTIPLIES = ("mul", "ex2", "tanh")
TENSOR = ("mma", "wmma", "wgmma")
HALVES = {"f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16"}


def arithmetic_of(texts: Iterable[str]) -> Arithmetic:
    """texts: PTX of the kernels, each with the functions that it may call."""
    texts = list(texts)
    opcodes = {opcode for text in texts for opcode in OPCODE.findall(text)}
    multiplied, added, cut = set[str](), set[str](), set[str]()
    tensor = tf32 = flushes = angles = False
    for opcode in opcodes:
        name, *parts = opcode.split(".")
        halves = [HALVES[part] for part in parts if part in HALVES]
        flushes |= "ftz" in parts
        angles |= name in ("sin", "cos") and "approx" in parts
        if name in TENSOR and ("mma" in parts or "mma_async" in parts or name == "mma"):
            sums = next((part for part in parts if part in ("f16", "f32", "f64", "s32")), "")
            cut |= {"f16"} if sums == "f16" else set()
            tensor |= sums == "f32"
            tf32 |= "tf32" in parts
        elif halves and name in ADDS + MULTIPLIES:
            multiplied |= set(halves)
            added |= set(halves) if name in ATOMIC else set()
    if multiplied:
        added |= {one for text in texts for one in summed_halves(text)}
    narrowed = len(texts) > 1 or any(map(is_narrowed, texts))
    return Arithmetic(
        frozenset(multiplied), frozenset(added), frozenset(cut), tensor, narrowed, tf32, flushes, angles
    )


def is_narrowed(text: str) -> bool:
    """Whether a value may be rounded to 16 bits and used again: by way of shared memory, or in a register."""
    return "st.shared" in text or not set(NARROWED.findall(text)).isdisjoint(WIDENED.findall(text))


def summed_halves(text: str) -> set[str]:
    """Formats of 16 bits in which a kernel adds up: in a loop, or more than a few numbers one after another.
    A bias, or a residual, is added once."""
    graph: dict[str, set[str]] = {}
    adding: list[tuple[str, str, list[str]]] = []
    for opcode, operands in ASSIGNED.findall(text):
        registers = REGISTER.findall(operands)
        if not registers or opcode.startswith(("st", "bra", "setp", "red")):
            continue
        name, *parts = opcode.split(".")
        count = operands.partition("}")[0].count("%") if operands.startswith("{") else 1
        results, sources = registers[:count], registers[count:]
        for result in results:
            graph.setdefault(result, set()).update(sources)
        if name in ADDS and (formats := [HALVES[part] for part in parts if part in HALVES]):
            adding.append((formats[0], results[0], sources))
    results = {result for _, result, _ in adding}
    return {format for format, result, sources in adding if chain(graph, results, result, sources) >= CHAIN}


def chain(graph: dict[str, set[str]], adding: set[str], result: str, sources: list[str]) -> int:
    """How many additions a result is made by, one after another; CHAIN where it is made of itself."""
    found, pending, seen = {result}, set(sources), set[str]()
    while pending:
        if result in pending:
            return CHAIN
        found |= pending & adding
        seen |= pending
        pending = {source for one in pending for source in graph.get(one, ())} - seen
    return len(found)
