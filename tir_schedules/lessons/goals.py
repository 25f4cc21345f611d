# pyright: strict
"""Goals of lessons: a line of text each, such as `global loads <= 2*M*N`, judged by what was executed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Iterable, Iterator, Mapping, Sequence

from tir_schedules.check.session import Checked, Written, fresh, launch_step
from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.insight.metrics.counting import (
    GLOBAL,
    GLOBAL_LOADS,
    LOADS,
    SHARED,
    STORES,
    conflicts,
    occupancy_of,
    total,
)
from tir_schedules.lessons.dependence import NEEDS
from tir_schedules.machines.choice import choose
from tir_schedules.model.counters import Counters, LineCounters
from tir_schedules.model.machine import Watch

Sizes = Mapping[str, int]
COUNT, ANSWER, TIME, CODE, NEED = "count", "answer", "time", "code", "need"
SHOWN = 2
"""Lines of source that are named with a counter."""


@dataclass(frozen=True)
class Memory:
    """A count of accesses. classes: see `Counters`. field: of `Access`, or "conflicts"."""

    unit: str
    classes: tuple[str, ...]
    field: str = "cost"

    def of(self, counters: Counters | LineCounters) -> int:
        access = total(counters.accesses, self.classes)
        return conflicts(access) if self.field == "conflicts" else getattr(access, self.field)


@dataclass(frozen=True)
class Mix:
    """A count of instructions that threads execute, of some classes."""

    classes: tuple[str, ...]
    unit: str = "thread instructions"

    def of(self, counters: Counters | LineCounters) -> int:
        return sum(counters.mix.get(name, 0) for name in self.classes)


class Issued:
    """Instructions that warps execute."""

    unit = "warp instructions"

    def of(self, counters: Counters | LineCounters) -> int:
        return counters.warp_instructions


COUNTS: dict[str, Memory | Mix | Issued] = {
    "global loads": Memory("sectors", GLOBAL_LOADS),
    "global stores": Memory("sectors", ("global_store", "tma_store")),
    "global atomics": Memory("sectors", ("global_atomic",)),
    "global sectors": Memory("sectors", GLOBAL),
    "global load requests": Memory("requests", GLOBAL_LOADS, "requests"),
    "global store requests": Memory("requests", ("global_store", "tma_store"), "requests"),
    "atomic requests": Memory("requests", ("global_atomic",), "requests"),
    "shared loads": Memory("wavefronts", LOADS),
    "shared stores": Memory("wavefronts", STORES),
    "shared copies": Memory("wavefronts", ("shared_cp_async",)),
    "shared wavefronts": Memory("wavefronts", SHARED),
    "shared atomics": Memory("wavefronts", ("shared_atomic",)),
    "shared load requests": Memory("requests", LOADS, "requests"),
    "ldmatrix requests": Memory("requests", ("ldmatrix",), "requests"),
    "wgmma requests": Memory("requests", ("wgmma",), "requests"),
    "cp.async requests": Memory("requests", ("global_cp_async",), "requests"),
    "TMA boxes": Memory("boxes", ("tma_load",), "requests"),
    "bank conflicts": Memory("wavefronts", SHARED, "conflicts"),
    "barriers": Mix(("barrier",)),
    "shuffles": Mix(("shuffle",)),
    "mma": Mix(("mma",)),
    "fp32 arithmetic": Mix(("fp32",)),
    "fp arithmetic": Mix(("fp16", "fp32", "fp64", "special")),
    "conversions": Mix(("convert",)),
    "bulk copies": Mix(("tma",)),
    "loads": Mix(("load",)),
    "instructions": Issued(),
}  # fmt: skip
"""What is counted, by the names that goals have for it."""

RESOURCES = {
    "registers": "registers of a thread",
    "spilled bytes": "bytes",
    "shared bytes": "bytes of a block",
    "warps on an SM": "warps",
}
NO_SPILLS = "no values outside registers: nothing is spilled, and threads need no stack"
UNITS = {
    "sectors": "A sector is 32 bytes of global memory, the least that is moved.",
    "requests": "A request is one load, store or atomic that a warp executes, for all its lanes together.",
    "wavefronts": "A wavefront is a pass over the 32 banks of shared memory: each serves a word of 4 bytes.",
    "thread instructions": "A thread instruction counts once for each thread that executes it.",
    "warp instructions": "A warp instruction counts once for each warp that executes it.",
}
"""What counts are counted in, for a learner who reads the word for the first time."""

TIMES = {"time": "%, or us"}
FORM = re.compile(r"(.+?) (<=|>=|==) (.+)")
WAYS = {"<=": "at most", ">=": "at least", "==": "exactly"}
QUESTION = re.compile(r"answer (\w+): (.+)")
SAME = "same CUDA"
NEEDED = "needs "
OF_BLOCK = " of a block"
"""Stands behind a name of COUNTS, where the block that has most of it is looked at alone."""

WORDS = " -- "
"""Stands before a goal's explanation."""

HIDDEN = " => "
"""Stands before words that a learner reads in place of the limit, where the limit would be the answer."""


@dataclass(frozen=True)
class Goal:
    """text: what a learner reads. kind: COUNT, ANSWER, TIME, CODE or NEED. what: a name of COUNTS, RESOURCES,
    TIMES or NEEDS. sign, limit: one of WAYS, and an expression of sizes. name: of an answer."""

    text: str
    kind: str
    what: str = ""
    sign: str = ""
    limit: str = ""
    name: str = ""
    hidden: bool = False


def parse_goal(text: str) -> Goal:
    """A goal of its text. BadInput for what is not counted."""
    text, explained, words = text.partition(WORDS)
    text, hidden, shown_words = text.partition(HIDDEN)
    if text == SAME:
        return Goal("the schedule emits the CUDA that the lesson shows, except for names", CODE)
    if text.startswith(NEEDED):
        what = known(text.removeprefix(NEEDED), text, NEEDS)
        return Goal(f"every element of the result depends on {NEEDS[what][0]}", NEED, what)
    question = QUESTION.fullmatch(text)
    if question:
        return Goal(text, ANSWER, known(question[2], text), name=question[1])
    match = FORM.fullmatch(text)
    if not match:
        raise BadInput(f"the goal {shown(text)} does not look like `global loads <= 2*M*N`")
    what, reason = known(match[1], text), f" ({words})" if explained else ""
    if what == "time" and match[3].endswith(" us"):
        return Goal(f"predicted time at most {match[3]}{reason}", TIME, what, "<=", match[3])
    if what == "time":
        share = match[3].removesuffix("%").strip()
        told = f"predicted time at most {share} % of the time at the start{reason}"
        return Goal(told, TIME, what, "<=", share)
    unit = RESOURCES.get(what) or counter(what).unit
    told = f"{what}: {WAYS[match[2]]} {match[3]} {unit}" if not hidden else f"{what}: {shown_words}"
    return Goal(f"{told}{reason}", COUNT, what, match[2], match[3], hidden=bool(hidden))


def unit_of(goal: Goal) -> str:
    return counter(goal.what).unit if goal.kind in (COUNT, ANSWER) and goal.what not in RESOURCES else ""


def counter(what: str) -> Memory | Mix | Issued:
    return COUNTS[what.removesuffix(OF_BLOCK)]


def known(name: str, text: str, names: Iterable[str] = ()) -> str:
    every = [*names] or [*COUNTS, *RESOURCES, *TIMES]
    bare = name if names else name.removesuffix(OF_BLOCK)
    if bare not in every:
        raise BadInput(f"the goal {shown(text)}: {name!r} is not counted{nearest(name, every)}")
    if bare != name and bare not in COUNTS:
        raise BadInput(f"the goal {shown(text)}: {bare!r} is not counted for each block; name it alone")
    return name


def measured(what: str, checked: Checked) -> int:
    """A count of all launches, or of resources the most."""
    binaries = [step.binary for step in checked.steps]
    if what == "registers":
        return max(one.resources.registers for one in binaries)
    if what == "spilled bytes":
        return max(one.resources.spill_stores + one.resources.spill_loads for one in binaries)
    if what == "shared bytes":
        return max(one.shared_bytes for one in binaries)
    if what == "warps on an SM":
        return min(occupancy_of(one).warps for one in binaries)
    if what.endswith(OF_BLOCK):
        return max(counter(what).of(counters) for counters in of_blocks(checked))
    return sum(counter(what).of(counters) for counters in counters_of(checked))


def of_blocks(checked: Checked) -> Iterator[Counters]:
    """Counters of each block of a single launch, which is run alone."""
    prepared = checked.prepared
    assert prepared is not None, "it has run"
    (step,), trial = prepared.steps, prepared.trials.runs[0]
    for x, y, z in product(*map(range, step.binary.kernel.grid)):
        run = launch_step(step, trial, choose("cpu", 1), fresh(trial), Written(), watch=Watch((x, y, z)))
        assert run.counters, "they are counted"
        yield run.counters


def counters_of(checked: Checked) -> list[Counters]:
    return [one.counters for one in checked.executions if one.counters]


def costly_lines(what: str, checked: Checked) -> Iterator[str]:
    """Lines of source that have most of a count: `my.cu:12: 4,096 of them`."""
    if what not in COUNTS:
        return
    lines = [(COUNTS[what].of(line), line) for one in counters_of(checked) for line in one.lines]
    lines = sorted(((count, line) for count, line in lines if count), key=lambda pair: -pair[0])
    texts = texts_of(checked)
    for count, line in lines[:SHOWN]:
        text = texts.get((line.file, line.line), "").strip()
        yield f"{line.file}:{line.line}: {count:,} of them{f': {text}' if text else ''}"


def texts_of(checked: Checked) -> dict[tuple[str, int], str]:
    if checked.prepared is None:
        return {}
    source = checked.prepared.request.source
    return {(source.file, number): line for number, line in enumerate(source.text.split("\n"), 1)}


def met(goal: Goal, value: float, limit: float) -> bool:
    return {"<=": value <= limit, ">=": value >= limit, "==": value == limit}[goal.sign]


def sizes_text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def same_code(one: str, other: str) -> Sequence[str]:
    """The first line in which two CUDA texts differ, as (its number, one, other), when names, comments and
    spaces do not count; empty where they are alike."""
    pairs = [canonical(text) for text in (one, other)]
    for (number, first, text), (_, second, wanted) in zip(*pairs):
        if first != second:
            return str(number), text.strip(), wanted.strip()
    if len(pairs[0]) != len(pairs[1]):
        longer = pairs[0] if len(pairs[0]) > len(pairs[1]) else pairs[1]
        number, _, text = longer[min(map(len, pairs))]
        return (str(number), text.strip(), "") if longer is pairs[0] else (str(number), "", text.strip())
    return ()


def canonical(text: str) -> list[tuple[int, str, str]]:
    """Lines of a kernel, from `__global__` on: number, the line with names by their order, the line."""
    names: dict[str, str] = {}
    found: list[tuple[int, str, str]] = []
    begun = False
    for number, line in enumerate(text.split("\n"), 1):
        begun = begun or "__global__" in line and "{" in line
        bare = re.sub(r"//.*", "", line)
        if not begun or not bare.strip():
            continue
        parts = re.findall(r"0x\w+|[\d.]+(?:e[-+]?\d+)?f?|[A-Za-z_]\w*|\S", bare)
        for place, part in enumerate(parts):
            if part.isidentifier() and not is_word(part):
                parts[place] = names.setdefault(part, f"name{len(names)}")
        found.append((number, " ".join(parts), line))
    return found


def is_word(name: str) -> bool:
    """Whether a name means something to CUDA."""
    words = ("for", "if", "else", "half", "void", "const", "extern")
    return name in words or name.startswith(("threadIdx", "blockIdx", "__", "float", "int", "uint"))
