"""Asynchronous copies that have the L2 cache fetch whole lines.

A 16-byte `cp.async` may carry the hint `.L2::128B`: what is missing in L2 is then fetched as a line of 128
bytes, not as sectors of 32. A tile that is 32 halves deep reads 64 bytes of each row of A, and with the hint
the next tile finds the other 64 in L2. TVM's own call, `cp_async_raw`, has no place for the hint, so the
copies become calls of the functions below, which are TVM's but for the hint.

`T.ptx["cp.async.cg.shared.global.L2::128B"]` has the hint as well, but makes other kernels: it declares that
it changes memory, past which nvcc moves no other access, and fills with zeros by a source size in place of a
predicate. A ragged `wmma_async` with float32 accumulators takes 201 registers with it, 166 without.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, ir, tirx, transform
from tvm.backend.cuda.op import cuda_func_call

from tir_schedules.tir.passes.rewriting import map_body

BYTES = 16

COPY = r"""
__forceinline__ __device__ void cp_async_whole_lines(void* dst, int dst_off, void* src, int src_off) {
  uint8_t* dst_p = (uint8_t*)dst + dst_off * 2;
  uint8_t* src_p = (uint8_t*)src + src_off * 2;
  unsigned int dst_addr = __cvta_generic_to_shared(dst_p);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(dst_addr), "l"(src_p));
}
"""

COPY_OR_ZEROS = r"""
__forceinline__ __device__ void cp_async_whole_lines_or_zeros(void* dst, int dst_off, void* src, int src_off,
                                                              int inside) {
  uint8_t* dst_p = (uint8_t*)dst + dst_off * 2;
  uint8_t* src_p = (uint8_t*)src + src_off * 2;
  unsigned int dst_addr = __cvta_generic_to_shared(dst_p);
  asm volatile(
    "{\n"
    " .reg .pred p;\n"
    " setp.eq.u32 p, %2, 1;\n"
    " @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n"
    " @!p st.shared.v4.u32 [%0], {%3, %3, %3, %3};\n"
    "}\n"
    :: "r"(dst_addr), "l"(src_p), "r"(inside), "r"(0)
  );
}
"""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.whole_lines")
def whole_lines(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """The hint in all 16-byte asynchronous copies of halves."""

    def hint(statement: Any) -> tirx.Stmt:
        call = statement.value
        if not isinstance(call, ir.Call) or getattr(call.op, "name", "") != "tirx.s_tir.cp_async_raw":
            return statement
        target, target_offset, source, source_offset, size, *inside = call.args
        if int(getattr(size, "value")) != BYTES:
            return statement
        name = "cp_async_whole_lines" + ("_or_zeros" if inside else "")
        arguments = (target, target_offset, source, source_offset, *inside)
        code = COPY_OR_ZEROS if inside else COPY
        return tirx.Evaluate(cuda_func_call(name, *arguments, source_code=code))

    return map_body(function, tirx.Evaluate, hint)
