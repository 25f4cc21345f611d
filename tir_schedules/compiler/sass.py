"""From a `Binary` to SASS, the machine code that the GPU executes."""
from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.toolchain import find_toolchain, version_of
from tir_schedules.errors import MissingTool
from tir_schedules.kernel import Binary

FLAGS = ("--print-code", "--print-line-info")
CUBIN, SASS = "kernel.cubin", "kernel.sass"


def disassemble(binary: Binary) -> str:
    """The SASS of a binary, as nvdisasm prints it, kept in the cache.

    Where the source line changes, a comment names it: `//## File "sgemm_naive_tir.cu", line 12`. MissingTool when there
    is no nvdisasm, or it is older than the cubin.
    """
    nvdisasm = find_toolchain().tool("nvdisasm")
    key = "\0".join([hashlib.sha256(binary.cubin).hexdigest(), *FLAGS, version_of(nvdisasm)])

    def build(folder: Path) -> None:
        (folder / CUBIN).write_bytes(binary.cubin)
        command = [nvdisasm, *FLAGS, CUBIN]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        if result.returncode:
            reason = (result.stderr.strip() or "it says nothing").splitlines()[-1]
            raise MissingTool(
                f"{binary.kernel.label}: {nvdisasm} ({version_of(nvdisasm)}) cannot read the cubin ({reason}):"
                " install one as new as nvcc"
            )
        (folder / SASS).write_text(result.stdout, encoding="utf-8")
        (folder / CUBIN).unlink()

    return default_cache().load("sass", key, build, lambda folder: (folder / SASS).read_text(encoding="utf-8"))
