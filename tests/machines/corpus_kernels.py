"""The corpus: kernels that synchronise in every way, each with variants that break it and what must be found.

    python tests/machines/corpus_kernels.py [NAME ...]      # what the CPU machine says of each case now
    python tests/machines/corpus_kernels.py --waiting       # and list in waiting.txt what it gets wrong

corpus/README.md says how a file is written. A case is a kernel in one variant, `split_k` or `split_k:2`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Sequence

import numpy as np

from tir_schedules.compiler.nvcc import compile_kernels
from tir_schedules.errors import TirSchedulesError
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.findings import Finding
from tir_schedules.model.kernel import Binary, Kernel

FOLDER = Path(__file__).parent / "corpus"
ARCH = "sm_80"
ORDERS = 6
BUDGET = 1 << 20
"""Instructions of a warp: more than any case needs, few enough that an endless loop costs little."""

TOGETHER = 40
"""Cases per call of nvcc. A call costs half a second of CPU time and a case a fiftieth, but a large PTX text
costs each of its kernels the time to parse it."""

NOTES = {"note", "same_value"}
"""Kinds that are not a fault."""

AFTER = {
    "race": {"lockstep", "order_dependent", "uninitialized", "overlapping_writes"},
    "lockstep": {"order_dependent", "uninitialized"},
    "overlapping_writes": {"order_dependent"},
    "in_flight": {"race", "lockstep", "order_dependent"},
    "out_of_bounds": {"uninitialized"},
    "misaligned": {"uninitialized"},
    "divergent_aligned": {"uninitialized"},
    "divergent_barrier": {"divergent_aligned", "race", "lockstep", "uninitialized", "order_dependent"},
    "deadlock": {"order_dependent"},
    "endless_loop": {"order_dependent"},
}
"""Kinds that may come with another: what follows from it, or the same fault between other threads."""

ENTRY = ".visible .entry "
INCLUDE = re.compile(r"^#include .*$", re.M)
MARK = re.compile(r"// @([\w-]+(?:,? @[\w-]+)*)")
SETTING = re.compile(r"^// (\w+(?: \w+)?): (.*)$")
ARGUMENT = re.compile(r"(\w+)\[(\d+)\](?: = (.*))?|(\w+) (-?[\d.]+)")
EXPECTED = re.compile(r"(\w+)(?:\(([\w, -]*)\))?")


@dataclass(frozen=True)
class Argument:
    """One parameter of a kernel. role: "in", "out" (nothing has written it) or "inout". fill: an expression
    of numpy; that of a scalar is its value."""

    name: str
    role: str
    dtype: str
    size: int | None
    fill: str

    def value(self) -> np.ndarray | int | float:
        if self.size is None:
            return np.dtype(self.dtype).type(self.fill).item()
        if self.role == "out":
            return np.full(self.size, 0xDB, np.uint8).repeat(np.dtype(self.dtype).itemsize).view(self.dtype)
        made = eval(self.fill, {"np": np, "numbers": numbers})
        return np.ascontiguousarray(np.broadcast_to(np.asarray(made, self.dtype), self.size))


def numbers(count: int, high: int = 100) -> np.ndarray:
    """The same whole numbers below `high` in every run."""
    return np.random.default_rng(count).integers(0, high, count)


@dataclass(frozen=True)
class Expected:
    """A finding: its kind, and the marks of the one or two lines it names."""

    kind: str
    marks: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.marks)})" if self.marks else self.kind


@dataclass(frozen=True)
class Variant:
    """number: 0 is the sound one. finds: all of them must come, each as one of its alternatives. may: further
    kinds that may come besides."""

    number: int
    what: str = "sound"
    finds: tuple[tuple[Expected, ...], ...] = ()
    may: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """One file in one variant, to be launched once."""

    file: CorpusFile
    variant: Variant

    @property
    def name(self) -> str:
        return self.file.name + (f":{self.variant.number}" if self.variant.number else "")

    @property
    def entry(self) -> str:
        return f"{self.file.name}_{self.variant.number}"

    @property
    def sound(self) -> bool:
        return not self.variant.number

    @property
    def source(self) -> str:
        """The variant as a part of a larger text; a file's lines keep their numbers."""
        broken = f"BROKEN_{self.variant.number}"
        body = INCLUDE.sub("", self.file.text)
        return (
            f"#define KERNEL {self.entry}\n#define {broken}\nnamespace in_{self.entry} {{\n"
            f'#line 1 "{self.file.name}.cu"\n{body}\n}}\n#undef KERNEL\n#undef {broken}\n'
        )

    @property
    def alone(self) -> str:
        """A text for nvcc with nothing but this case."""
        return "\n".join([*self.file.headers, self.source])

    def kernel(self, source: str, label: str) -> Kernel:
        file = self.file
        params = tuple(argument.name for argument in file.arguments)
        return Kernel(label, source, self.entry, params, file.grid, file.block, ARCH, file.shared)

    def arguments(self) -> dict[str, np.ndarray | int | float]:
        return {argument.name: argument.value() for argument in self.file.arguments}

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(argument.name for argument in self.file.arguments if argument.role in ("out", "inout"))

    def wrong(self, arguments: dict) -> list[str]:
        """What must hold after the launch and does not. arguments: as the launch left them; an `inout` has
        what it held before as `X0`."""
        names = {"np": np, **{f"{name}0": value for name, value in self.arguments().items()}, **arguments}
        return [text for text in self.file.right if not np.all(eval(text, names))]

    def surprises(self, findings: Sequence[Finding]) -> list[str]:
        """How the findings are not those expected; empty when they are."""
        faults = [finding for finding in findings if finding.kind not in NOTES]
        missing = [
            "no " + " or ".join(map(str, alternatives))
            for alternatives in self.variant.finds
            if not any(self.file.is_at(finding, one) for one in alternatives for finding in faults)
        ]
        asked = {one.kind for alternatives in self.variant.finds for one in alternatives}
        allowed = asked.union(self.variant.may, *(AFTER.get(kind, ()) for kind in asked))
        return missing + [str(finding) for finding in faults if finding.kind not in allowed]


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus."""

    name: str
    text: str

    @cached_property
    def settings(self) -> list[tuple[str, str]]:
        """Keys and values at the head of the file, in order."""
        head = self.text[: self.text.index("\n\n")].split("\n")[1:]
        return [(match[1], match[2]) for match in map(SETTING.match, head) if match]

    @property
    def headers(self) -> list[str]:
        """Lines that include."""
        return sorted(INCLUDE.findall(self.text))

    def all_of(self, key: str) -> list[str]:
        return [value for name, value in self.settings if name == key]

    @cached_property
    def launch(self) -> dict[str, str]:
        return dict(word.split("=") for word in self.all_of("launch")[0].split())

    @property
    def grid(self) -> tuple[int, int, int]:
        return (int(self.launch["grid"]), 1, 1)

    @property
    def block(self) -> tuple[int, int, int]:
        return (int(self.launch["block"]), 1, 1)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return int(self.launch.get("shared", 0))

    @property
    def cooperative(self) -> bool:
        return self.launch.get("cooperative") == "yes"

    @cached_property
    def arguments(self) -> list[Argument]:
        found = []
        for key, value in self.settings:
            role, _, name = key.partition(" ")
            match = ARGUMENT.fullmatch(value)
            if role not in ("in", "out", "inout") or not match:
                continue
            dtype, size, fill, kind, number = match.groups()
            found.append(
                Argument(name, role, dtype or kind, int(size) if size else None, fill or number or "0")
            )
        return found

    @property
    def right(self) -> list[str]:
        return self.all_of("right")

    @cached_property
    def variants(self) -> list[Variant]:
        also = frozenset(text.removeprefix("may ") for text in self.all_of("sound"))
        found = [Variant(0, may=also)]
        for key, value in self.settings:
            if key.startswith("broken "):
                finds, _, what = value.partition(" -- ")
                finds, _, may = finds.partition("; may ")
                wanted = tuple(
                    tuple(expected(one) for one in each.split(" | ")) for each in finds.split(" and ")
                )
                found.append(Variant(int(key.split()[1]), what, wanted, also | {*may.split(", ")} - {""}))
        return found

    @property
    def cases(self) -> list[Case]:
        return [Case(self, variant) for variant in self.variants]

    @cached_property
    def marks(self) -> dict[str, set[int]]:
        """Mark -> lines that bear it."""
        found: dict[str, set[int]] = {}
        for number, line in enumerate(self.text.split("\n"), 1):
            match = MARK.search(line)
            for mark in re.findall(r"[\w-]+", match[1]) if match else ():
                found.setdefault(mark, set()).add(number)
        return found

    def is_at(self, finding: Finding, one: Expected) -> bool:
        """Whether it is the finding; which of its two lines is which does not matter."""
        places = [finding.location, *([finding.other] if finding.other else [])]
        lines = [place.line for place in places if place.file == f"{self.name}.cu"]
        wanted = [self.marks[mark] for mark in one.marks]
        if finding.kind != one.kind or len(wanted) > 2:
            return False
        if len(wanted) < 2:
            return not wanted or bool(wanted[0].intersection(lines))
        first, second = wanted
        return any(a in first and b in second for a, b in (lines, lines[::-1])) if len(lines) == 2 else False


def expected(text: str) -> Expected:
    match = EXPECTED.fullmatch(text.strip())
    assert match, text
    return Expected(match[1], tuple(re.findall(r"[\w-]+", match[2] or "")))


@lru_cache(maxsize=None)
def corpus() -> tuple[CorpusFile, ...]:
    return tuple(CorpusFile(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.cu")))


def cases() -> list[Case]:
    return [case for file in corpus() for case in file.cases]


def texts() -> dict[str, tuple[str, list[Case]]]:
    """Label -> a text for nvcc, and the cases in it. Files that include the same are together."""
    found = {}
    by_headers = sorted(cases(), key=lambda case: case.file.headers)
    for headers, alike in groupby(by_headers, lambda case: case.file.headers):
        group = list(alike)
        for first in range(0, len(group), TOGETHER):
            part = group[first : first + TOGETHER]
            text = "\n".join(headers) + "\n" + "".join(case.source for case in part)
            found[f"corpus/{len(found)}"] = (text, part)
    return found


@lru_cache(maxsize=None)
def binaries(arch: str = ARCH) -> dict[str, Binary]:
    """Name of a case -> its binary."""
    parts = texts()
    kernels = [replace(part[0].kernel(text, label), arch=arch) for label, (text, part) in parts.items()]
    found = {}
    for binary, (label, (text, part)) in zip(compile_kernels(kernels), parts.items()):
        for case in part:
            kernel = replace(case.kernel(text, label), arch=arch)
            found[case.name] = replace(binary, kernel=kernel, ptx=alone(binary.ptx, case.entry))
    return found


def alone(ptx: str, entry: str) -> str:
    """PTX with one of its kernels and the variables of that one, which is read in a part of the time."""
    head, *kernels = ptx.split(ENTRY)
    body = next(text for text in kernels if text.startswith(f"{entry}("))
    own = [line for line in head.split("\n") if "in_" not in line or f"in_{entry}" in line]
    return "\n".join(own) + ENTRY + body.rpartition("\n}\n")[0] + "\n}\n" + ptx[ptx.rindex("\n}\n") + 3 :]


def outcome(case: Case) -> tuple[list[str], list[str]]:
    """Launch a case in several orders: how its findings surprise, and which right outputs are wrong."""
    findings, arguments = launched(case)
    return case.surprises(findings), case.wrong(arguments) if case.sound else []


def launched(case: Case) -> tuple[Sequence[Finding], dict]:
    """What the CPU machine finds, and the arguments as the launch in the first order leaves them."""
    arguments = case.arguments()
    given = [argument.name for argument in case.file.arguments if argument.role == "inout"]
    machine = CpuMachine(budget=BUDGET, orders=ORDERS)
    return machine.run(binaries()[case.name], arguments, case.outputs, given=given).findings, arguments


def main(names: Sequence[str]) -> int:
    """Print a line for each case that is asked for; 1 when any is not as expected."""
    listing = "--waiting" in names
    wanted = [case for case in cases() if listing or not names or {case.file.name, case.name} & {*names}]
    failed = []
    for case in wanted:
        try:
            told = [line for part in outcome(case) for line in part]
        except TirSchedulesError as error:
            told = [str(error)]
        failed += [case.name] if told else []
        print(case.name, "  ".join(["NOT", *dict.fromkeys(told)]) if told else "as expected", flush=True)
    if listing:
        (FOLDER / "waiting.txt").write_text("".join(f"{name}\n" for name in failed))
    return int(len(failed) > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
