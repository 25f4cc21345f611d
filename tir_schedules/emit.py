"""What a rung becomes, as text: its scheduled TIR, its CUDA, or the PTX and SASS nvcc makes of either twin."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.processes import unfinished
from tir_schedules.rung import Rung


def emit_text(rung: Rung, workload: Any, arch: str, form: str, twin: bool = False) -> str:
    """form: "cuda", "ptx", "sass" or "tir". twin: of the hand-written kernel. BadInput for the TIR of a twin."""
    if form == "tir":
        return scheduled_tir(rung, workload, twin)
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.sass import disassemble
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin

    check_arch(arch)
    kernel = (load_twin if twin else lower)(rung, workload, arch)
    if form == "cuda":
        return kernel.source
    binary = compile_kernel(kernel)
    return binary.ptx if form == "ptx" else disassemble(binary)


def scheduled_tir(rung: Rung, workload: Any, twin: bool) -> str:
    """The PrimFunc after the rung's schedule, as TVMScript."""
    if twin:
        raise BadInput(f"the twin of {rung.id} is hand-written CUDA and has no TIR; leave out --twin or --tir")
    from tir_schedules.compiler.lower import scheduled

    return scheduled(rung, workload).mod.script()


def check_folder(path: Path) -> None:
    """BadInput for a file that could not be written, before anything slow is done for it."""
    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: name a file in a folder that exists")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. BadInput when the path cannot be written."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """The same for any file."""
    temporary = None
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder, name a file in it")
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_bytes(content)
            return
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        with unfinished(temporary), open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~current_umask()
            os.chmod(temporary, mode)
            os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise BadInput(f"cannot write {path}: {error.strerror or error}; name a file in a folder that exists") from None


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_source(path: Path) -> str:
    """Text of a CUDA file. BadInput when it cannot be read."""
    from tir_schedules.files import read_bytes

    remedy = "name a CUDA source file"
    try:
        return read_bytes(path, remedy).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise BadInput(f"cannot read {path}: it is not UTF-8 text; {remedy}") from None
