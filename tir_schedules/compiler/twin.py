"""From a hand-written .cu file under `cuda_reference` to a `Kernel`, launched like the schedule it
mirrors."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping

from tir_schedules.compiler.emitted import is_ours
from tir_schedules.compiler.lower import fitted, launch_for
from tir_schedules.compiler.nvcc import source_after_preprocessing
from tir_schedules.compiler.signature import argument_names, check_ptx, find_signature
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import FIXED_TWIN, Binary, Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import parameters_of, sizes_of

INCLUDE = re.compile(r"^#include.*\n", re.M)
OWN_HEADER = re.compile(r'^#include "([\w./]+)"\n', re.M)
ONCE = re.compile(r"^#pragma once\n\n?", re.M)


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
    source = read_twin(rung, workload, sizes)
    folder = str(twin_file(rung).parent) if '#include "' in source else ""
    return kernel_from_source(rung, source, form, workload, arch, folder)


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


def read_twin(rung: Rung, workload: Any, sizes: Mapping[str, int] = MappingProxyType({})) -> str:
    """Text of the twin, with its headers written out; `#define` lines below what it includes set sizes, and a
    configuration or type other than the default."""
    path = twin_file(rung)
    if not path.is_file():
        place = path if rung.file else f"cuda_reference/{rung.family}/{rung.name}.cu"
        raise CheckFailed(f"{rung.id} has no twin: expected {place}")
    text = define_macros(path.read_text(encoding="utf-8"), rung, {**workload.macros, **sizes})
    return inline_headers(text, path.parent)


def define_macros(text: str, rung: Rung, others: Mapping[str, str | int]) -> str:
    macros = {name.upper(): value for name, value in asdict(rung.config).items()} if rung.variant else {}
    macros |= others
    if not macros:
        return text
    lines = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    includes = [match.end() for match in INCLUDE.finditer(text)]
    end = includes[-1] if includes else 0
    return f"{text[:end]}// configuration {rung.variant or 'default'}\n{lines}\n{text[end:]}"


def inline_headers(text: str, folder: Path) -> str:
    """A text that compiles alone: each header that stands in the folder in place of the line that includes it
    first, and what these include of CUDA's above the first of them. What does not stand there is for nvcc to
    look for."""
    met: set[Path] = set()
    cuda: dict[str, None] = {}

    def inlined(folder: Path, match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        if path in met:
            return ""
        met.add(path)
        try:
            header = ONCE.sub("", path.read_text(encoding="utf-8"))
        except OSError:
            return match[0]
        cuda.update(dict.fromkeys(re.findall(r"^#include <.*\n", header, re.M)))
        own = re.sub(r"^#include <.*\n", "", header, flags=re.M)
        return OWN_HEADER.sub(partial(inlined, path.parent), own)

    first = OWN_HEADER.search(text)
    if not first:
        return text
    above = text[: first.start()]
    below = OWN_HEADER.sub(partial(inlined, folder), text[first.start() :])
    return above + "".join(line for line in cuda if line not in above) + below


def twin_file(rung: Rung) -> Path:
    """Where a twin is: that of a rung from elsewhere beside it, with its name."""
    if rung.file:
        return Path(rung.file).with_suffix(".cu")
    return Path(str(resources.files("cuda_reference"))) / rung.family / f"{rung.name}.cu"
