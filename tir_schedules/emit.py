"""What a rung becomes, as text: its scheduled TIR, its CUDA, or the PTX and SASS nvcc makes of either
twin."""

from __future__ import annotations

from tir_schedules.errors import BadInput
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload


def emit_text(rung: Rung, workload: Workload, arch: str, form: str, twin: bool = False) -> str:
    """form: "cuda", "ptx", "sass" or "tir". twin: of the hand-written kernel. BadInput for the TIR of a
    twin."""
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


def scheduled_tir(rung: Rung, workload: Workload, twin: bool) -> str:
    """The PrimFunc after the rung's schedule, as TVMScript."""
    if twin:
        raise BadInput(
            f"the twin of {rung.id} is hand-written CUDA and has no TIR; leave out --twin or --tir"
        )
    from tir_schedules.compiler.lower import scheduled

    return scheduled(rung, workload).mod.script()
