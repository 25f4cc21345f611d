"""From a hand-written .cu file under `cuda_reference` to a `Kernel`, launched like the schedule it mirrors."""
from __future__ import annotations

import re
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from tir_schedules.errors import CheckFailed
from tir_schedules.kernel import Kernel
from tir_schedules.rung import Rung

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def load_twin(rung: Rung, workload: Any, arch: str) -> Kernel:
    """The hand-written kernel of the same name as the rung, with the rung's configuration as macros.

    The file gives the article's constants as defaults (`#ifndef BM`), so it compiles alone as well. CheckFailed when the
    file is missing or has no kernel named `rung.entry`.
    """
    rung = rung.fitted(workload)
    return kernel_from_source(rung, read_twin(rung, workload), "twin", workload, arch, str(twin_file(rung).parent))


def load_source(source: str, rung: Rung, workload: Any, arch: str, folder: str = "") -> Kernel:
    """CUDA text in place of a rung's own, launched as the rung launches. CheckFailed when it has no kernel `rung.entry`.

    folder: where it finds what it includes by name.
    """
    return kernel_from_source(rung.fitted(workload), source, "source", workload, arch, folder)


def kernel_from_source(rung: Rung, source: str, origin: str, workload: Any, arch: str, folder: str) -> Kernel:
    rung.check_arch(arch)
    label, launch = f"{rung.id} ({origin})", rung.launch(workload, rung.config)
    params = parameters(source, rung.entry, label)
    return Kernel(label, source, rung.entry, params, arch=arch, folder=folder, **vars(launch))


def read_twin(rung: Rung, workload: Any) -> str:
    """Text of the twin; `#define` lines above the file's own text set a configuration or type other than the default."""
    path = twin_file(rung)
    if not path.is_file():
        raise CheckFailed(f"{rung.id} has no twin: expected cuda_reference/{rung.family}/{rung.name}.cu")
    text = path.read_text(encoding="utf-8")
    macros = {name.upper(): value for name, value in asdict(rung.config).items()} if rung.variant else {}
    macros |= workload.macros
    if not macros:
        return text
    lines = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    return f"// configuration {rung.variant or 'default'}\n{lines}\n{text}"


def twin_file(rung: Rung) -> Path:
    return Path(str(resources.files("cuda_reference"))) / rung.family / f"{rung.name}.cu"


def parameters(source: str, entry: str, label: str) -> tuple[str, ...]:
    """Names of the kernel's parameters in order, read from the signature of its definition; TVM's "A_ptr" means "A"."""
    signature = re.search(rf"\b{entry}\s*\(([^)]*)\)\s*\{{", COMMENT.sub("", source))
    if not signature:
        raise CheckFailed(f'{label}: no kernel found; expected extern "C" __global__ void {entry}(...)')
    names = (re.search(r"(\w+)\s*$", declaration).group(1) for declaration in signature.group(1).split(","))
    return tuple(argument_name(name) for name in names)


def argument_name(parameter: str) -> str:
    """The workload's name of a parameter as TVM prints it."""
    return parameter.removesuffix("_ptr").removesuffix("_handle")
