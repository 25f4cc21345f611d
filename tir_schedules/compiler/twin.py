"""From a hand-written .cu file under `cuda_reference` to a `Kernel`, launched like the schedule it mirrors."""
from __future__ import annotations

import re
from dataclasses import asdict
from importlib import resources
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
    rung.check_arch(arch)
    source = read_twin(rung)
    launch = rung.launch(workload, rung.config)
    return Kernel(f"{rung.id} (twin)", source, rung.entry, parameters(source, rung), arch=arch, **vars(launch))


def read_twin(rung: Rung) -> str:
    """Text of the twin; a configuration other than the default is set by `#define` lines above the file's own text."""
    path = resources.files("cuda_reference").joinpath(rung.family, f"{rung.name}.cu")
    if not path.is_file():
        raise CheckFailed(f"{rung.id} has no twin: expected cuda_reference/{rung.family}/{rung.name}.cu")
    text = path.read_text(encoding="utf-8")
    if not rung.variant:
        return text
    macros = "".join(f"#define {name.upper()} {value}\n" for name, value in asdict(rung.config).items())
    return f"// configuration {rung.variant}\n{macros}\n{text}"


def parameters(source: str, rung: Rung) -> tuple[str, ...]:
    """Names of the kernel's parameters in order, read from its signature."""
    code = COMMENT.sub("", source)
    signature = re.search(rf"\b{rung.entry}\s*\(([^)]*)\)\s*\{{", code)
    if not signature:
        raise CheckFailed(f"{rung.id}: its twin has no kernel {rung.entry}(...)")
    return tuple(re.search(r"(\w+)\s*$", declaration).group(1) for declaration in signature.group(1).split(","))
