"""L2 prefetch: 16-byte asynchronous copies fetch whole cache lines into L2.

A 16-byte `cp.async` may carry the prefetch size `.L2::128B`: what is missing in L2 is then fetched as a line
of 128 bytes, not as sectors of 32. A tile that is 32 halves deep reads 64 bytes of each row of A, and with
the hint the next tile finds the other 64 in L2.

InjectPTXAsyncCopy leaves calls that TVM turns into functions with the instruction as it prints CUDA. This
pass has it make them now, and puts the hint into the instruction. TVM's own `T.ptx` knows the hint, too, but
takes addresses where these functions take a pointer and an index: nvcc then computes the addresses another
way, in up to 12 registers more.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform
from tvm.backend.cuda.op import cuda_func_call

from tir_schedules.tir.passes.rewriting import map_body

COPY = "tirx.s_tir.cp_async_raw"
PLAIN, HINTED = "cp.async.cg.shared.global ", "cp.async.cg.shared.global.L2::128B "
"""The instruction; `cg` has copies of 16 bytes alone."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.l2_prefetch")
def l2_prefetch(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Put the hint into all 16-byte asynchronous copies."""
    device_function = tvm_ffi.get_global_func("tirx.intrinsics.cuda.get_codegen")(COPY)

    def add_hint(statement: tirx.Evaluate) -> tirx.Evaluate:
        copy: Any = statement.value
        if getattr(getattr(copy, "op", None), "name", "") != COPY:
            return statement
        call, _ = device_function(list(copy.args))
        name, *arguments, code = call.args
        hinted = code.value.replace(PLAIN, HINTED)
        return tirx.Evaluate(cuda_func_call(name.value, *arguments, source_code=hinted))

    return map_body(function, tirx.Evaluate, add_hint)
