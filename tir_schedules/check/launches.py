"""Launches as a user writes them: `reduce<256>[cdiv(N, 512), 256, 1024](X, partial, N)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from tir_schedules.check.expressions import SIZE_FUNCTIONS, as_whole, dim3, evaluate, whole, wholes
from tir_schedules.compiler.signature import closing, split
from tir_schedules.errors import BadInput, shown
from tir_schedules.model.launch import Dim3

FORM = "such as 'kernel[grid, block](A, B, N)' or 'kernel[(M//16, N//16), (16, 16), shared]'"


@dataclass(frozen=True)
class Asked:
    """A launch before the kernel's parameters are known. kernel: its name, "" for the only one. arguments:
    names of arrays and expressions, in the kernel's order; None where each parameter takes what has its own
    name."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared: int = 0
    arguments: tuple[str, ...] | None = None


def launch_of_options(kernel: str, grid: str, block: str, shared: str, sizes: Mapping[str, Any]) -> Asked:
    """Of `--kernel`, `--grid`, `--block` and `--shared`."""
    extents = [
        dim3(wholes(text, sizes, option), text, option)
        for option, text in (("--grid", grid), ("--block", block))
    ]
    return Asked(kernel, extents[0], extents[1], shared_bytes(whole(shared, sizes, "--shared"), shared))


def parse_launch(text: str, sizes: Mapping[str, Any]) -> Asked:
    """Of `--launch`. BadInput for text of another form."""
    opening = text.find("[")
    end = closing(text, opening) if opening > 0 else None
    if end is None:
        raise BadInput(f"--launch {shown(text)}: it takes a kernel, its grid and its block, {FORM}")
    rest = text[end + 1 :].strip()
    if rest and not (rest.startswith("(") and closing(rest, 0) == len(rest) - 1):
        raise BadInput(f"--launch {shown(text)}: arguments stand in brackets behind, {FORM}")
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
