"""What TVM makes of a GEMM by rules of its own: dlight's default schedule, lowered as any schedule of TVM's.

TVM's own passes lower it with TVM's own options, but for common subexpressions, which it would make
parameters of the kernel. nvcc compiles it as all kernels of this project.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tir_schedules.compiler.lower import emit, last_line, target
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.workload import Workload
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.search.metaschedule import INTRINSICS

if TYPE_CHECKING:
    from tvm.s_tir import Schedule

DLIGHT, METASCHEDULE = "dlight", "MetaSchedule"
OPTIONS = {"tirx.UnrollLoop": {"explicit_unroll": True}}
DLIGHT_RULES = {"sgemm": ("Matmul", "Fallback"), "hgemm": ("MatmulTensorization", "Matmul", "Fallback")}
"""Family -> dlight's rules; the first that takes a GEMM schedules it."""

NOT_LOWERED = "not lowered by TVM"


def kernel_of(label: str, schedule: Schedule, arch: str) -> Kernel:
    """The kernel of a schedule. CheckFailed when TVM cannot lower it to one kernel."""
    entry = label.split()[0].lower()
    try:
        emitted = emit(schedule, entry, arch, options=OPTIONS)
    except TirSchedulesError:
        raise
    except Exception as error:  # errors of TVM's passes are of many types
        raise CheckFailed(f"{label}: {NOT_LOWERED}: {last_line(error)}") from error
    return Kernel(label, emitted.source, entry, emitted.params, arch=arch, **vars(emitted.launch))


def dlight_kernel(family: str, workload: Workload, arch: str) -> tuple[Kernel, str]:
    """The kernel of dlight's default schedule, and the rule that made it. CheckFailed when no rule does."""
    import_tvm()
    rules = importlib.import_module("tvm.s_tir.dlight.gpu")
    if family == "hgemm":
        importlib.import_module(INTRINSICS)  # which takes half a minute
    function, gpu = workload.prim_func(DLIGHT), target(arch)
    for name in DLIGHT_RULES[family]:
        rule = getattr(rules, name, None) or getattr(rules.matmul, name)
        try:
            with gpu:
                found = rule().apply(function, gpu, False)
        except Exception as error:
            raise CheckFailed(f"{DLIGHT}: its rule {name} fails: {last_line(error)}") from error
        if found is not None:
            return kernel_of(DLIGHT, found[0] if isinstance(found, list) else found, arch), name
    raise CheckFailed(f"{DLIGHT}: none of its rules {', '.join(DLIGHT_RULES[family])} takes {workload}")
