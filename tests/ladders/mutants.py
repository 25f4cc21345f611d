"""Small faults put into CUDA source on purpose: a barrier or a wait removed, a bound shifted by one, a guard
dropped."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Callable, Iterable, Iterator

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload

BARRIER = re.compile(r"__syncthreads\(\);")
# Calls that commit asynchronous copies and wait for them, as TVM and the twins write them. (Where the loop
# of a twin goes on over zeros, it waits at the end for all groups, which nobody reads: a precaution, not to
# be missed.)
WAIT = re.compile(
    r"^\s+(?:tvm_builtin_ptx_cp_async_wait_group\w*\(\)|wait_\w+<(?!0>)[^>]*>\(\)"
    r"|wait_for_copies(?:<[^>]*>)?\(\w[^;]*\));"
)
COMMIT = re.compile(
    r"^\s+(?:tvm_builtin_ptx_cp_async_commit_group\w*\(\)|commit_copies\(\)|asm"
    r' volatile\("cp.async.commit_group;".*\));'
)
# A comparison in an if or for: what follows "<" is a number, a name, or a name with a bracketed offset.
LESS = re.compile(r"(?<=[\w)\]])\s<\s(?P<bound>\w+)")
LOOP = re.compile(r"\b(?:for|while)\b")
STEP = re.compile(r"\+= (\w+)\)")
# A guard around nothing but this does no harm when it goes.
# Before its loop a pipeline copies the first tiles, as many as there are: one more is zeros that nobody
# reads.
FIRST_TILES = re.compile(r"^\s+if \(ax\d+_0 < \d+\) \{")
# Beyond the last column of B a copy starts again at the first. That it goes on with the next row is not a
# fault: the columns of C that this is for are not written.
COLUMNS = re.compile(r"\bB_ptr\[.* \? ")
ZEROING = re.compile(r"_local_ptr\[\d+\] = 0x0p\+0f")
UNBOUNDED = "0x7fffffff"
REGISTER = re.compile(r"%[a-z]+\d+")
INSTRUCTION = re.compile(r"^\s+(?!\.|ld\.|mov\.)\S.*;$", re.MULTILINE)  # of PTX, where "." begins a directive


@dataclass(frozen=True)
class Mutant:
    """Mutated source; `name` says what was done in which line (1-based) of the original, and what stood
    there."""

    name: str
    line: int
    source: str

    @property
    def kind(self) -> str:
        """What was done: "no barrier"."""
        return self.name.split(",")[0]


def loaded(source: str, *arguments) -> Kernel:
    """As load_source has it, but compiled as kernels of this package are: with what they need of CUDA's
    headers alone, in half the time."""
    return replace(load_source(source, *arguments), own=True)


def differs(rung: Rung, source: str, workload: Workload, arch: str, mutant: Mutant) -> bool:
    """Whether a mutant of a rung's source is another kernel: one whose instructions are others, or more, or
    fewer. Loads, moves and the numbers of registers do not count, because nvcc repeats and numbers them anew
    where code changes that it drops."""
    codes = (loaded(text, rung, workload, arch) for text in (source, mutant.source))
    kernels = [REGISTER.sub("%", compile_kernel(kernel).ptx) for kernel in codes]
    return len({tuple(sorted(INSTRUCTION.findall(kernel))) for kernel in kernels}) == 2


def mutants(source: str) -> Iterator[Mutant]:
    """Every single fault of the kernel's body: barriers removed; guards with a bound one more, and with none;
    loops one iteration less.

    (A loop's bound one more is no such fault: mostly it adds a tile of zeros, or indexes a register array out
    of its bounds, which is undefined, and which nvcc compiles to the same instructions.)
    """
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("#", "//")) or "static_assert" in line or "constexpr" in line:
            continue
        for match in BARRIER.finditer(line):
            yield replaced(lines, number, match.span(), ";", "no barrier")
        for match in LESS.finditer(line):
            bound = match.group("bound")
            if LOOP.search(line):
                if "_init" in line:  # zeroing fewer registers is as undefined as reading them
                    continue
                step = STEP.search(line)
                yield replaced(
                    lines,
                    number,
                    match.span(),
                    f" < {bound} - {step.group(1) if step else 1}",
                    "one iteration less",
                )
            elif not (ZEROING.search(lines[number + 1]) or FIRST_TILES.search(line) or COLUMNS.search(line)):
                yield replaced(lines, number, match.span(), f" <= {bound}", "guard + 1")
                yield replaced(lines, number, match.span(), f" < {UNBOUNDED}", "no guard")


def asynchronous_mutants(source: str) -> Iterator[Mutant]:
    """Every single fault of the order of copies and reads: a barrier, a wait or a commit removed."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        for what, pattern in (("no barrier", BARRIER), ("no wait", WAIT), ("no commit", COMMIT)):
            if match := pattern.search(line):
                yield replaced(lines, number, match.span(), ";", what)


def one_of_each_kind(
    found: Iterable[Mutant], fits: Callable[[Mutant], bool] = lambda _: True
) -> list[Mutant]:
    """The first of each that fits; those of a kind that there is one of are not asked."""
    kinds: dict[str, Mutant] = {}
    for mutant in found:
        if mutant.kind not in kinds and fits(mutant):
            kinds[mutant.kind] = mutant
    return list(kinds.values())


def replaced(lines: list[str], number: int, span: tuple[int, int], text: str, what: str) -> Mutant:
    line = lines[number]
    mutated = line[: span[0]] + text + line[span[1] :]
    source = "\n".join([*lines[:number], mutated, *lines[number + 1 :]])
    return Mutant(f"{what}, line {number + 1}, column {span[0] + 1}: {line.strip()}", number + 1, source)
