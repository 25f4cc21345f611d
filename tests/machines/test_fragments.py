"""mma of integers, bits, tf32 and float64, stmatrix, movmatrix and wmma against numpy."""

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.lowering import lower
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.model.kernel import Kernel

GROUP, MEMBER = np.arange(32) // 4, np.arange(32) % 4
rng = np.random.default_rng(0)
BITS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "tf32": 32, "f64": 64, "f16": 16, "bf16": 16}
OTHERS = [
    opcode
    for entry in entries()
    if entry.opcodes.startswith("mma.") and entry.precision != "refused"
    for opcode in expanded(entry.opcodes)
    if "f16" not in opcode
]


def words(elements, bits):
    """Elements (lane, register, k) as 32-bit words, the first element lowest."""
    masked = (elements.astype(np.int64) & (1 << bits) - 1).astype(np.uint64)
    return (
        (masked << np.arange(elements.shape[2], dtype=np.uint64) * np.uint64(bits)).sum(2).astype(np.uint32)
    )


def fragment(matrix, kind, by_rows):
    """Words (lane, register) of a (by rows) or of b: neighbours along k share a register."""
    matrix = matrix if by_rows else matrix.T
    per = max(1, 32 // BITS[kind])
    blocks, groups = matrix.shape[0] // 8, matrix.shape[1] // (4 * per)
    order = (
        [(r % blocks, r // blocks) for r in range(blocks * groups)]
        if by_rows
        else [(0, r) for r in range(groups)]
    )
    elements = np.stack(
        [matrix[(GROUP + 8 * block)[:, None], 4 * per * group + MEMBER[:, None] * per + np.arange(per)]
         for block, group in order], 1,
    )  # fmt: skip
    if kind == "f64":
        return (
            elements[..., 0]
            .astype(np.float64)
            .view(np.uint64)
            .reshape(32, -1, 1)
            .view(np.uint32)
            .reshape(32, -1)
        )
    return elements[..., 0].astype("f4").view("u4") if kind == "tf32" else words(elements, BITS[kind])


def sums(matrix):
    """Elements (lane, element) of c and d."""
    count = matrix.shape[0] // 4
    return np.stack([matrix[GROUP + 8 * (e // 2), MEMBER * 2 + e % 2] for e in range(count)], 1)


def values_of(kind, shape):
    if kind == "b1":
        return rng.integers(0, 2, shape)
    if kind in ("tf32", "f64"):  # of 10 bits
        return rng.integers(-1000, 1000, shape) / 8
    low = 0 if kind[0] == "u" else -(1 << BITS[kind] - 1)
    return rng.integers(low, low + (1 << BITS[kind]), shape)


@pytest.mark.parametrize("opcode", OTHERS)
def test_mma(opcode):
    m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", opcode).groups())
    left, right = re.findall(r"\.(s8|u8|s4|u4|b1|tf32|f64)", opcode)[(1 if "f64" in opcode else 0) :][:2]
    a, b = values_of(left, (m, k)), values_of(right, (k, n))
    c = rng.integers(-99, 99, (m, n))
    product = (
        a @ b
        if left != "b1"
        else np.array([[(x ^ y if "xor" in opcode else x & y).sum() for y in b.T] for x in a])
    )
    if "satfinite" in opcode:
        c = rng.choice([2**31 - 5, -(2**31) + 5, 0], (m, n))
        expected = np.clip(product + c, -(2**31), 2**31 - 1)
    else:
        expected = product + c
    kind = "f8" if left == "f64" else "f4" if left == "tf32" else "i4"
    addend = np.ascontiguousarray(sums(c).astype(kind)).view("u4")
    if left == "tf32":  # what does not fit is cut off
        a = a * (1 + 2.0**-12)
    groups = [fragment(a, left, True), fragment(b, right, False), addend]
    got = multiplied(opcode, groups, "b64" if left == "f64" else "b32")
    np.testing.assert_array_equal(got.view(kind), sums(expected))


def multiplied(opcode, groups, register):
    """Words of d (lane, word) for words of a, b and c."""
    step = 2 if register == "b64" else 1
    kind = register if step == 1 else "f64"
    body = (
        f".reg .b32 t; .reg .{kind} r<40>, d<8>; .reg .b64 x, y, off; mov.u32 t, %tid.x; ld.param.u64 x, [X];"
    )
    table = np.concatenate(groups, 1)
    body += f"ld.param.u64 y, [Y]; mul.wide.u32 off, t, {4 * table.shape[1]}; add.s64 x, x, off;"
    counts = [group.shape[1] // step for group in groups]
    body += f"mul.wide.u32 off, t, {4 * groups[2].shape[1]}; add.s64 y, y, off;"
    body += "".join(f"ld.global.{kind} r{k}, [x+{4 * step * k}];" for k in range(sum(counts)))
    starts = np.cumsum([0, *counts])
    names = [f"{{{', '.join(f'r{k}' for k in range(a, b))}}}" for a, b in zip(starts, starts[1:])]
    body += f"{opcode} {{{', '.join(f'd{k}' for k in range(counts[2]))}}}, {', '.join(names)};"
    body += "".join(f"st.global.{kind} [y+{4 * step * k}], d{k};" for k in range(counts[2]))
    arguments = {"X": table, "Y": np.zeros((32, groups[2].shape[1]), np.uint32)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    return arguments["Y"]


TILE = """.reg .b32 t, a, c, w, d<4>; .reg .pred p; .reg .b64 x, y, off; .shared .align 16 .b8 tile[512];
mov.u32 t, %tid.x; ld.param.u64 x, [X]; ld.param.u64 y, [Y]; mov.u32 c, tile; mad.lo.s32 a, t, 16, c;
mul.wide.u32 off, t, 4; add.s64 x, x, off; add.s64 y, y, off;
"""


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix(count, transposed):
    """Each lane holds two neighbours of a row, or of a column where it is transposed."""
    matrices = rng.integers(0, 2**16, (count, 8, 8), dtype=np.uint16)
    registers = ", ".join(f"d{k}" for k in range(count))
    body = TILE + "".join(f"ld.global.u32 d{k}, [x+{128 * k}];" for k in range(count))
    body += f"setp.ge.u32 p, t, {8 * count}; @p mov.u32 a, c;"
    body += f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16 [a], {{{registers}}};"
    body += "bar.sync 0; mad.lo.s32 a, t, 4, c;"
    body += "".join(f"ld.shared.u32 w, [a+{128 * k}]; st.global.u32 [y+{128 * k}], w;" for k in range(count))
    arguments = {"X": matrices, "Y": np.zeros((count, 8, 8), np.uint16)}
    execution = launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1), count=True)
    assert execution.findings == ()
    assert (arguments["Y"] == (matrices.swapaxes(1, 2) if transposed else matrices)).all()
    assert execution.counters.accesses["shared_store"].cost == count


def test_movmatrix():
    matrix = rng.integers(0, 2**16, (8, 8), dtype=np.uint16)
    body = (
        TILE + "ld.global.u32 d0, [x]; movmatrix.sync.aligned.m8n8.trans.b16 d1, d0; st.global.u32 [y], d1;"
    )
    arguments = {"X": matrix, "Y": np.zeros((8, 8), np.uint16)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    assert (arguments["Y"] == matrix.T).all()


WMMA = """#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
template <class T, class Held, class Sum, int M, int N, int K, class LayoutA, class LayoutB, bool SHARED>
__device__ void multiply(const Held* A, const Held* B, const Sum* C, Sum* D, wmma::layout_t layout) {
  __shared__ __align__(32) Held a[1024], b[1024];
  wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
  for (int i = threadIdx.x; SHARED && i < 1024; i += 32) a[i] = A[i], b[i] = B[i];
  __syncthreads();
  wmma::load_matrix_sync(fa, SHARED ? a : A, 32);
  wmma::load_matrix_sync(fb, SHARED ? b : B, 32);
  wmma::load_matrix_sync(fc, C, 32, layout);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(D, fc, 32, layout);
}
"""
WMMA_CASES = {
    "s8_16": ("signed char", "signed char", "int", 16, 16, 16),
    "u8_32": ("unsigned char", "unsigned char", "int", 32, 8, 16),
    "s8_8": ("signed char", "signed char", "int", 8, 32, 16),
    "half_32": ("half", "half", "float", 32, 8, 16),
    "half_8": ("half", "half", "half", 8, 32, 16),
    "bf16_8": ("__nv_bfloat16", "__nv_bfloat16", "float", 8, 32, 16),
    "tf32": ("wmma::precision::tf32", "float", "float", 16, 16, 8),
    "double": ("double", "double", "double", 8, 8, 4),
}
NUMPY = {"signed char": "i1", "unsigned char": "u1", "half": "f2", "float": "f4", "double": "f8", "int": "i4"}


@lru_cache(maxsize=None)
def wmma_binary():
    """Every case by rows from global and by columns from shared memory, compiled together."""
    text = WMMA
    for name, (kind, held, total, m, n, k) in WMMA_CASES.items():
        for a, b, shared in (("row", "col", "false"), ("col", "row", "true")):
            types = f"{kind}, {held}, {total}, {m}, {n}, {k}, wmma::{a}_major, wmma::{b}_major, {shared}"
            text += f"""extern "C" __global__ void {name}_{a}(const {held}* A, const {held}* B,
            const {total}* C, {total}* D) {{ multiply<{types}>(A, B, C, D, wmma::mem_{a}_major); }}
            """
    return compile_kernel(Kernel("test", text, "s8_16_row", tuple("ABCD"), (1,) * 3, (32, 1, 1), "sm_80"))


@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize("name", WMMA_CASES)
def test_wmma(name, layout):
    """A and C in one layout, B in the other; rows, or columns, are 32 elements apart."""
    kind, held, total, m, n, k = WMMA_CASES[name]
    low = 0 if held.startswith("unsigned") else -9
    a, b = rng.integers(low, 10, (m, k)), rng.integers(low, 10, (k, n))
    c = rng.integers(-9, 10, (m, n))

    def stored(matrix, by_rows, of):
        matrix = matrix if by_rows else matrix.T
        padded = np.zeros((32, 32), matrix.dtype)
        padded[: matrix.shape[0], : matrix.shape[1]] = matrix
        if of == "__nv_bfloat16":
            return (padded.astype("f4").view("u4") >> 16).astype("u2")
        return padded.astype(NUMPY[of])

    by_rows = layout == "row"
    first, second = stored(a, by_rows, held), stored(b, not by_rows, held)
    arguments = {
        "A": first,
        "B": second,
        "C": stored(c, by_rows, total),
        "D": np.zeros((32, 32), NUMPY[total]),
    }
    binary = wmma_binary()
    binary = replace(binary, kernel=replace(binary.kernel, entry=f"{name}_{layout}"))
    assert CpuMachine().run(binary, arguments, ("D",), count=True).findings == ()
    assert (arguments["D"] == stored(a @ b + c, by_rows, total)).all()


WMMA_OPCODES = [
    opcode
    for entry in entries()
    if entry.opcodes.startswith("wmma.") and entry.precision != "refused"
    for opcode in expanded(entry.opcodes)
]
WIDTHS = {**BITS, "f32": 32, "s32": 32}


def wmma_registers(opcode, matrix, kind):
    """Operand text: of halves, a and b have 8 registers in every shape."""
    m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", opcode).groups())
    elements = {"a": m * k, "b": k * n}.get(matrix, m * n)
    count = elements // 32 // max(1, 32 // WIDTHS[kind])
    count = 8 if kind == "f16" and matrix in "ab" else count
    name = "w" if kind == "f64" else "r"
    return f"{{{', '.join(f'{name}{number}' for number in range(count))}}}"


@pytest.mark.parametrize("opcode", WMMA_OPCODES)
def test_every_form_of_wmma_is_known(opcode):
    """It is lowered with the registers that it takes, and refused with one more."""
    kinds = re.findall(r"\.(f16|bf16|tf32|f64|f32|s32|s8|u8)\b", opcode)
    if ".mma" in opcode:
        kinds = kinds if len(kinds) == 4 else [kinds[0], "f16", "f16", kinds[1]]
        operands = [wmma_registers(opcode, matrix, kind) for matrix, kind in zip("dabc", kinds)]
    else:
        matrix = opcode.split(".")[2]
        operands = ["[x]", wmma_registers(opcode, matrix, kinds[0])][:: -1 if "load" in opcode else 1] + [
            "16"
        ]

    def lowered(*operands):
        body = f".reg .b64 x; .reg .b32 r<16>; .reg .f64 w<4>; {opcode} {', '.join(operands)};"
        return lower(parse(text := module("test", (), body)), parse(text).kernels["test"])

    assert any(name.startswith(("wmma", "mma")) for name in lowered(*operands).functions)
    with pytest.raises(UnsupportedInstruction, match="number of registers"):
        lowered(*(operand.replace("}", ", w3}" if "w0" in operand else ", r15}") for operand in operands))
