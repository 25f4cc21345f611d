"""From a hand-written .cu file under `cuda_reference` to a `Kernel`, launched like the schedule it
mirrors."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterator, Mapping

from tir_schedules.compiler.emitted import is_ours
from tir_schedules.compiler.lower import fitted, launch_for
from tir_schedules.compiler.nvcc import source_after_preprocessing
from tir_schedules.compiler.signature import argument_names, check_ptx, find_signature
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import FIXED_TWIN, Binary, Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import parameters_of, sizes_of

OWN_HEADER = re.compile(r'#include "([\w./]+)"\n')
ONCE = "#pragma once\n"


def load_twin(rung: Rung, workload: Any, arch: str) -> Kernel:
    """The hand-written kernel of the same name as the rung, with the rung's configuration as macros.

    The file gives the article's constants as defaults (`#ifndef BM`), so it compiles where it lies as well.
    CheckFailed when it is missing or has no kernel named `rung.entry`.
    """
    rung, workload = rung.settled(workload, arch)
    return twin_from(fitted(rung, workload), workload, arch, "twin", {})


def load_fixed_twin(rung: Rung, workload: Any, arch: str) -> Kernel:
    """The same compiled for the sizes of the workload alone, as a schedule is: as numbers in place of what it
    is given as arguments."""
    rung, workload = rung.settled(workload, arch)
    sizes = {f"SIZE_{name}": extent for name, extent in sizes_of(workload).items()}
    return twin_from(fitted(rung, workload), workload, arch, FIXED_TWIN, sizes)


def twin_from(rung: Rung, workload: Any, arch: str, form: str, sizes: Mapping[str, int]) -> Kernel:
    """form: what the label calls it. sizes: macros that put numbers in place of arguments."""
    lines = twin_lines(rung, workload, sizes)
    source = "".join(line.text for line in lines)
    folder = str(twin_file(rung).parent) if '#include "' in source else ""
    kernel = kernel_from_source(rung, source, form, workload, arch, folder)
    return replace(kernel, places=tuple((line.file, line.number) for line in lines))


def load_source(
    source: str, rung: Rung, workload: Any, arch: str, file: str = "", folder: str = ""
) -> Kernel:
    """CUDA text in place of a rung's own, launched as the rung launches.

    file: what messages call it. folder: where it finds what it includes by name. CheckFailed when it has no
    kernel `rung.entry`, or one that takes what the workload does not give.
    """
    return kernel_from_source(fitted(rung, workload), source, "source", workload, arch, folder, file)


def kernel_from_source(
    rung: Rung, source: str, origin: str, workload: Any, arch: str, folder: str, file: str = ""
) -> Kernel:
    arch = rung.arch_for(arch)
    launch, label = launch_for(rung, workload, arch), file or f"{rung.id} ({origin})"
    own = origin != "source" and is_ours(rung)
    kernel = Kernel(
        label, source, rung.entry, (), arch=arch, folder=folder, file=file, own=own, **vars(launch)
    )
    try:
        signature = find_signature(
            source,
            rung.entry,
            partial(source_after_preprocessing, kernel) if origin == "source" else None,
            kernel.maps,
        )
        takes = parameters_of(workload, kernel.results)
        params = argument_names(signature, rung.entry, takes, workload.outputs, kernel.maps)
        return replace(kernel, params=rung.given(workload, params))
    except CheckFailed as error:
        raise name_kernel(kernel, error) from None


def check_parameters(binary: Binary, workload: Any) -> None:
    """CheckFailed when nvcc made other parameters of a source than its text showed."""
    kernel = binary.kernel
    try:
        takes = parameters_of(workload, kernel.results)
        check_ptx(binary.ptx, kernel.entry, kernel.params, takes, kernel.maps)
    except CheckFailed as error:
        raise name_kernel(kernel, error) from None


def name_kernel(kernel: Kernel, error: CheckFailed) -> CheckFailed:
    """The error with the kernel's label before it."""
    return error if str(error).startswith(f"{kernel.label}: ") else CheckFailed(f"{kernel.label}: {error}")


@dataclass(frozen=True)
class TwinLine:
    """A line with its end. file, number: where a reader finds it; number 0 where that is in no file."""

    text: str
    file: str
    number: int = 0


def read_twin(rung: Rung, workload: Any, sizes: Mapping[str, int] = MappingProxyType({})) -> str:
    """Text of the twin, with its headers written out; `#define` lines below what it includes set sizes, and a
    configuration or type other than the default."""
    return "".join(line.text for line in twin_lines(rung, workload, sizes))


def twin_lines(rung: Rung, workload: Any, sizes: Mapping[str, int]) -> list[TwinLine]:
    """The same line by line."""
    path = twin_file(rung)
    if not path.is_file():
        place = path if rung.file else f"cuda_reference/{rung.family}/{rung.name}.cu"
        raise CheckFailed(f"{rung.id} has no twin: expected {place}")
    return inline_headers(define_macros(lines_of(path), rung, {**workload.macros, **sizes}), path.parent)


def lines_of(path: Path) -> list[TwinLine]:
    """The lines of a file, which is named from `cuda_reference` on where it lies there."""
    root, text = Path(str(resources.files("cuda_reference"))), path.read_text(encoding="utf-8")
    place = path.resolve()
    name = str(place.relative_to(root.parent) if place.is_relative_to(root) else path)
    return [TwinLine(line, name, number) for number, line in enumerate(re.findall(r".*\n|.+$", text), 1)]


def macros_of(rung: Rung) -> dict[str, Any]:
    """The fields of a rung's configuration as the macros of its twin."""
    return {name.upper(): value for name, value in asdict(rung.config).items()} if rung.config else {}


def define_macros(lines: list[TwinLine], rung: Rung, others: Mapping[str, str | int]) -> list[TwinLine]:
    macros = {**(macros_of(rung) if rung.variant else {}), **others}
    if not macros:
        return lines
    end = max((at for at, line in enumerate(lines, 1) if line.text.startswith("#include")), default=0)
    defined = [f"#define {name} {value}\n" for name, value in macros.items()]
    added = [f"// configuration {rung.variant or 'default'}\n", *defined, "\n"]
    return [*lines[:end], *(TwinLine(line, lines[0].file) for line in added), *lines[end:]]


def inline_headers(lines: list[TwinLine], folder: Path) -> list[TwinLine]:
    """Lines that compile without other files: each header of the folder replaces the line that includes it
    first, and CUDA's headers that they include are above the first of them. What is in other places is for
    nvcc to look for."""
    met: set[Path] = set()
    cuda: dict[str, TwinLine] = {}

    def inlined(lines: list[TwinLine], folder: Path) -> Iterator[TwinLine]:
        for line in lines:
            match = OWN_HEADER.match(line.text)
            path = (folder / match[1]).resolve() if match else folder
            if not match or not path.is_file():
                yield line
            elif path not in met:
                met.add(path)
                header = without_once(lines_of(path))
                cuda.update((one.text, one) for one in header if one.text.startswith("#include <"))
                yield from inlined([one for one in header if one.text not in cuda], path.parent)

    first = next((at for at, line in enumerate(lines) if OWN_HEADER.match(line.text)), len(lines))
    above, below = lines[:first], [*inlined(lines[first:], folder)]
    known = {line.text for line in above}
    return [*above, *(one for text, one in cuda.items() if text not in known), *below]


def without_once(lines: list[TwinLine]) -> list[TwinLine]:
    """Without `#pragma once` and the empty line below it."""
    once = next((at for at, line in enumerate(lines) if line.text == ONCE), len(lines))
    end = once + 2 if lines[once + 1 : once + 2] and lines[once + 1].text == "\n" else once + 1
    return [*lines[:once], *lines[end:]]


def twin_file(rung: Rung) -> Path:
    """Where a twin is: that of a rung from elsewhere beside it, with its name."""
    if rung.file:
        return Path(rung.file).with_suffix(".cu")
    return Path(str(resources.files("cuda_reference"))) / rung.family / f"{rung.name}.cu"
