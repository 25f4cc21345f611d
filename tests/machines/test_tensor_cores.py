"""ldmatrix, mma.sync and wmma against numpy, with fragments laid out as the PTX manual has them."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel

GROUP, MEMBER = np.arange(32) // 4, np.arange(32) % 4
rng = np.random.default_rng(0)


def halves(pairs, kind="f16"):
    """Two halves per register, the low one first; as bfloat16 only values that it holds exactly."""
    bits = pairs.astype(np.float16).view(np.uint16) if kind == "f16" else bfloat(pairs)
    return np.ascontiguousarray(bits).view(np.uint32)[..., 0]


def bfloat(values):
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def fragment_a(a, k, kind):
    """Registers (lane, register) of a 16 x k matrix."""
    registers = [(GROUP + 8 * (r % 2), 8 * (r // 2)) for r in range(k // 4)]
    pairs = (np.stack([a[row, MEMBER * 2 + col], a[row, MEMBER * 2 + col + 1]], 1) for row, col in registers)
    return np.stack([halves(pair, kind) for pair in pairs], 1)


def fragment_b(b, k, kind):
    registers = [8 * r for r in range(k // 8)]
    pairs = (np.stack([b[MEMBER * 2 + row, GROUP], b[MEMBER * 2 + row + 1, GROUP]], 1) for row in registers)
    return np.stack([halves(pair, kind) for pair in pairs], 1)


def fragment_c(c):
    """Elements (lane, 4) of a 16 x 8 matrix."""
    return np.stack([c[GROUP + 8 * (e // 2), MEMBER * 2 + e % 2] for e in range(4)], 1)


@pytest.mark.parametrize("kind, accumulate", [("f16", "f32"), ("f16", "f16"), ("bf16", "f32")])
@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize("values", ["integers", "fractions"])
def test_mma(values, k, kind, accumulate):
    a, b, c = rng.integers(-4, 5, (16, k)), rng.integers(-4, 5, (k, 8)), rng.integers(-9, 10, (16, 8))
    if values == "fractions":  # of 7 bits, which both kinds of half hold
        a, b = (
            rng.integers(-127, 128, a.shape) / 2.0 ** rng.integers(5, 9, a.shape),
            rng.integers(-127, 128, b.shape) / 64,
        )
    expected = a @ b + c  # small integers are exact in every format
    if accumulate == "f32":
        addend, count = fragment_c(c).astype(np.float32).view(np.uint32), 4
    else:
        pairs = fragment_c(c).reshape(32, 2, 2)
        addend, count = np.stack([halves(pairs[:, 0]), halves(pairs[:, 1])], 1), 2
    registers = np.concatenate([fragment_a(a, k, kind), fragment_b(b, k, kind), addend], 1)
    total = registers.shape[1]
    names = [f"r{n}" for n in range(total)]
    groups = [
        names[: k // 4],
        names[k // 4 : k // 4 + k // 8],
        names[-count:],
        [f"d{n}" for n in range(count)],
    ]
    fragments = [f"{{{', '.join(group)}}}" for group in groups]
    body = (
        f".reg .b32 t, {', '.join(names)}, d<4>; .reg .b64 x, y, off; mov.u32 t, %tid.x; ld.param.u64 x, [X];"
        " ld.param.u64 y, [Y];"
    )
    body += (
        f"mul.wide.u32 off, t, {4 * total}; add.s64 x, x, off; mul.wide.u32 off, t, {4 * count}; add.s64 y,"
        " y, off;"
    )
    body += "".join(f"ld.global.u32 {name}, [x+{4 * n}];" for n, name in enumerate(names))
    operands = ", ".join([fragments[3], *fragments[:3]])
    body += f"mma.sync.aligned.m16n8k{k}.row.col.{accumulate}.{kind}.{kind}.{accumulate} {operands};"
    body += "".join(f"st.global.u32 [y+{4 * n}], d{n};" for n in range(count))
    arguments = {"X": registers, "Y": np.zeros((32, count), np.uint32)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    got = arguments["Y"].view(np.float32 if accumulate == "f32" else np.float16)
    error = 0 if values == "integers" else 1e-6 if accumulate == "f32" else 1e-3
    np.testing.assert_allclose(got, fragment_c(expected), rtol=error, atol=100 * error)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count, transposed):
    matrices = rng.integers(0, 2**16, (count, 8, 8), dtype=np.uint16)
    registers = ", ".join(f"d{n}" for n in range(count))
    body = ".reg .b32 t, a, c, d<4>; .reg .b64 x, y, off; .shared .align 16 .b8 tile[512]; mov.u32 t, %tid.x;"
    body += "ld.param.u64 x, [X]; ld.param.u64 y, [Y]; mov.u32 c, tile;"
    for word in range(count):  # 128 bytes at a time into shared memory
        body += f"mul.wide.u32 off, t, 4; add.s64 off, off, x; ld.global.u32 a, [off+{128 * word}];"
        body += f"mad.lo.s32 d0, t, 4, c; st.shared.u32 [d0+{128 * word}], a;"
    body += f"bar.warp.sync -1; mad.lo.s32 a, t, 16, c; setp.ge.u32 p, t, {8 * count}; @p mov.u32 a, c;"
    body += (
        f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16 {{{registers}}},"
        " [a];"
    )
    body += f"mul.wide.u32 off, t, {4 * count}; add.s64 y, y, off;"
    body += "".join(f"st.global.u32 [y+{4 * n}], d{n};" for n in range(count))
    arguments = {"X": matrices, "Y": np.zeros((32, count, 2), np.uint16)}
    assert (
        launch(
            module("test", ("X", "Y"), ".reg .pred p;" + body), arguments, ("Y",), block=(32, 1, 1)
        ).findings
        == ()
    )
    for n, matrix in enumerate(matrices):
        source = matrix.T if transposed else matrix
        expected = np.stack([source[GROUP, MEMBER * 2], source[GROUP, MEMBER * 2 + 1]], 1)
        assert (arguments["Y"][:, n] == expected).all()


WMMA_HEADERS = "#include <cuda_bf16.h>\n#include <mma.h>\nusing namespace nvcuda;\n"
WMMA = """extern "C" __global__ void ENTRY(const INPUT* A, const INPUT* B, const TYPE* C, TYPE* D) {
  __shared__ INPUT a[16 * 24], b[16 * 24];
  for (int i = threadIdx.x; i < 256; i += 32) { a[i / 16 * 24 + i % 16] = A[i];
  b[i / 16 * 24 + i % 16] = B[i]; }
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, INPUT, wmma::LAYOUT_A> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, INPUT, wmma::LAYOUT_B> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, TYPE> fc;
  wmma::load_matrix_sync(fa, a, 24);
  wmma::load_matrix_sync(fb, FROM);
  wmma::load_matrix_sync(fc, C, 16, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(D, fc, 16, wmma::mem_LAYOUT_D);
}
"""
SOURCES = {"shared": "b, 24", "global": "B, 16"}
LAYOUTS = [("row", "row", "row"), ("row", "col", "row"), ("col", "row", "col"), ("col", "col", "row")]


@lru_cache(maxsize=None)
def wmma(inputs, kind):
    """Kernels of one text, for every source and layouts: entry -> its binary."""
    text, entries = WMMA_HEADERS, []
    for source, place in SOURCES.items():
        for layouts in LAYOUTS:
            entries.append("_".join((source, *layouts)))
            one = WMMA.replace("ENTRY", entries[-1]).replace("FROM", place)
            for name, layout in zip(("LAYOUT_A", "LAYOUT_B", "LAYOUT_D"), layouts):
                one = one.replace(name, f"{layout}_major")
            text += one.replace("TYPE", kind).replace("INPUT", inputs)
    kernels = [
        Kernel("test/wmma", text, entry, ("A", "B", "C", "D"), (1, 1, 1), (32, 1, 1), "sm_80")
        for entry in entries
    ]
    compiled = compile_kernel(kernels[0])
    return {kernel.entry: replace(compiled, kernel=kernel) for kernel in kernels}


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("inputs, kind", [("half", "float"), ("half", "half"), ("__nv_bfloat16", "float")])
@pytest.mark.parametrize("source", SOURCES)
def test_wmma(layouts, inputs, kind, source):
    a, b, c = rng.integers(-4, 5, (3, 16, 16))
    binary = wmma(inputs, kind)["_".join((source, *layouts))]
    number = np.float32 if kind == "float" else np.float16
    a16, b16 = (array.astype(np.float16) if inputs == "half" else bfloat(array) for array in (a, b))
    arguments = {"A": a16, "B": b16, "C": c.astype(number), "D": np.zeros((16, 16), number)}
    execution = CpuMachine().run(binary, arguments, ("D",))
    left, right = (array.T if layout == "col" else array for array, layout in zip((a, b), layouts))
    expected = left @ right + c
    assert execution.findings == ()
    assert (arguments["D"] == (expected.T if layouts[2] == "col" else expected)).all()
