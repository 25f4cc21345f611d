"""Cubins of many small kernels, and which of them ptxas refuses."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Sequence

from instruction_cases import Case
from packs import at_once

from tir_schedules import processes
from tir_schedules.compiler.toolchain import find_toolchain

VERSION = "9.0"
"""Of PTX, as it is given to ptxas."""

TOGETHER = 64
"""Kernels of one module."""

HEAD = re.compile(r"\s*\.version \S+\s+\.target \S+\s+\.address_size 64\s+")
PLAIN = re.compile(HEAD.pattern + r"\.visible \.entry (\w+)\s*\(")
REFUSED = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


SUM = re.compile(r"(mad\.lo\.s32 \w+, \w+, \w+,) (tile|stack);")
"""An address of a variable where ptxas takes registers alone, and the tests of loads and stores do not."""


@dataclass
class Module:
    """Cases whose kernels are one cubin. refused: number of a case -> what ptxas says of it."""

    cases: dict[int, Case]
    cubin: bytes = b""
    refused: dict[int, str] = field(default_factory=dict)

    def entry(self, number: int) -> str:
        """The name of a case's kernel here."""
        return self.cases[number].entry if len(self.cases) == 1 else f"k{number}"


def assembled(cases: Sequence[Case], arch: str) -> list[Module]:
    """Modules with all cases but those that ptxas refuses."""
    plain = {number: case for number, case in enumerate(cases) if is_plain(case.ptx)}
    groups = [Module({number: case}) for number, case in enumerate(cases) if number not in plain]
    numbers = list(plain)
    for first in range(0, len(numbers), TOGETHER):
        groups.append(Module({number: plain[number] for number in numbers[first : first + TOGETHER]}))
    ptxas = find_toolchain().tool("ptxas")
    with processes.temporary_folder() as folder:
        names = {id(group): folder / f"{at}.ptx" for at, group in enumerate(groups)}
        for _ in at_once(
            lambda group: assemble(group, names[id(group)], ptxas, arch), groups, os.cpu_count() or 1
        ):
            pass
    return groups


def is_plain(ptx: str) -> bool:
    """Whether nothing but one kernel is declared, so that others can stand beside it."""
    return PLAIN.match(ptx) is not None and ".func" not in ptx and ptx.count(".entry") == 1


def assemble(module: Module, path: Path, ptxas: Path, arch: str) -> None:
    """Run ptxas until it refuses nothing any more of what is left."""
    while left := {number: case for number, case in module.cases.items() if number not in module.refused}:
        text, first_lines = joined(left, module, arch)
        path.write_text(text)
        cubin = path.with_suffix(".cubin")
        done = processes.run([ptxas, f"-arch={arch}", path, "-o", cubin])
        if not done.returncode:
            module.cubin = cubin.read_bytes()
            return
        told = REFUSED.findall(done.stderr)
        found = {
            max((n for n in left if first_lines[n] <= int(line)), key=first_lines.__getitem__): why
            for line, why in reversed(told)
            if "aborted" not in why
        }
        module.refused |= found or {number: done.stderr.strip()[-300:] for number in left}


def joined(cases: dict[int, Case], module: Module, arch: str) -> tuple[str, dict[int, int]]:
    """One text for ptxas, and the line at which each case begins."""
    text, lines = f".version {VERSION}\n.target {arch}\n.address_size 64\n", {}
    for number, case in cases.items():
        lines[number] = text.count("\n") + 1
        body = HEAD.sub("", case.ptx, 1) if len(module.cases) > 1 else own_head(case.ptx)
        body = SUM.sub(r"{.reg .b32 place; mov.u32 place, \2; \1 place;}", body)
        body = re.sub(rf"(\.entry\s+){case.entry}\b", rf"\g<1>{module.entry(number)}", body, count=1)
        text += (body if prod(case.cluster) == 1 else in_clusters(body, case.cluster)) + "\n"
    return text, lines


def in_clusters(ptx: str, cluster: tuple[int, int, int]) -> str:
    """A text with one kernel that declares its clusters, which a GPU asks for."""
    extents = ", ".join(map(str, cluster))
    return re.sub(
        r"(\.entry\s+\w+\s*\([^)]*\))", rf"\1 .explicitcluster .reqnctapercluster {extents}", ptx, count=1
    )


def own_head(ptx: str) -> str:
    """A text without the lines that say of which version it is and for what."""
    return re.sub(r"^\s*\.(version|target|address_size)\b.*$", "", ptx, flags=re.M)
