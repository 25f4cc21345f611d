"""ldmatrix, mma.sync and wmma against numpy, with fragments laid out as the PTX manual has them."""
import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.kernel import Kernel
from tir_schedules.machines.cpu import CpuMachine

GROUP, MEMBER = np.arange(32) // 4, np.arange(32) % 4
rng = np.random.default_rng(0)


def halves(pairs):
    """Two float16 per register, low half first."""
    return np.ascontiguousarray(pairs.astype(np.float16)).view(np.uint32)[..., 0]


def fragment_a(a, k):
    """Registers (lane, register) of a 16 x k matrix."""
    registers = [(GROUP + 8 * (r % 2), 8 * (r // 2)) for r in range(k // 4)]
    return np.stack([halves(np.stack([a[row, MEMBER * 2 + col], a[row, MEMBER * 2 + col + 1]], 1)) for row, col in registers], 1)


def fragment_b(b, k):
    registers = [8 * r for r in range(k // 8)]
    return np.stack([halves(np.stack([b[MEMBER * 2 + row, GROUP], b[MEMBER * 2 + row + 1, GROUP]], 1)) for row in registers], 1)


def fragment_c(c):
    """Elements (lane, 4) of a 16 x 8 matrix."""
    return np.stack([c[GROUP + 8 * (e // 2), MEMBER * 2 + e % 2] for e in range(4)], 1)


@pytest.mark.parametrize("accumulate", ["f32", "f16"])
@pytest.mark.parametrize("k", [8, 16])
def test_mma(k, accumulate):
    a, b, c = rng.integers(-4, 5, (16, k)), rng.integers(-4, 5, (k, 8)), rng.integers(-9, 10, (16, 8))
    expected = a @ b + c  # small integers are exact in every format
    if accumulate == "f32":
        addend, count = fragment_c(c).astype(np.float32).view(np.uint32), 4
    else:
        pairs = fragment_c(c).reshape(32, 2, 2)
        addend, count = np.stack([halves(pairs[:, 0]), halves(pairs[:, 1])], 1), 2
    registers = np.concatenate([fragment_a(a, k), fragment_b(b, k), addend], 1)
    total = registers.shape[1]
    names = [f"r{n}" for n in range(total)]
    groups = [names[: k // 4], names[k // 4 : k // 4 + k // 8], names[-count:], [f"d{n}" for n in range(count)]]
    fragments = [f"{{{', '.join(group)}}}" for group in groups]
    body = f".reg .b32 t, {', '.join(names)}, d<4>; .reg .b64 x, y, off; mov.u32 t, %tid.x; ld.param.u64 x, [X]; ld.param.u64 y, [Y];"
    body += f"mul.wide.u32 off, t, {4 * total}; add.s64 x, x, off; mul.wide.u32 off, t, {4 * count}; add.s64 y, y, off;"
    body += "".join(f"ld.global.u32 {name}, [x+{4 * n}];" for n, name in enumerate(names))
    body += f"mma.sync.aligned.m16n8k{k}.row.col.{accumulate}.f16.f16.{accumulate} {fragments[3]}, {', '.join(fragments[:3])};"
    body += "".join(f"st.global.u32 [y+{4 * n}], d{n};" for n in range(count))
    arguments = {"X": registers, "Y": np.zeros((32, count), np.uint32)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    got = arguments["Y"].view(np.float32 if accumulate == "f32" else np.float16)
    assert (got == fragment_c(expected)).all()


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
    body += f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16 {{{registers}}}, [a];"
    body += f"mul.wide.u32 off, t, {4 * count}; add.s64 y, y, off;"
    body += "".join(f"st.global.u32 [y+{4 * n}], d{n};" for n in range(count))
    arguments = {"X": matrices, "Y": np.zeros((32, count, 2), np.uint16)}
    assert launch(module("test", ("X", "Y"), ".reg .pred p;" + body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    for n, matrix in enumerate(matrices):
        source = matrix.T if transposed else matrix
        expected = np.stack([source[GROUP, MEMBER * 2], source[GROUP, MEMBER * 2 + 1]], 1)
        assert (arguments["Y"][:, n] == expected).all()


WMMA = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const half* A, const half* B, const TYPE* C, TYPE* D) {
  __shared__ half a[16 * 24], b[16 * 24];
  for (int i = threadIdx.x; i < 256; i += 32) { a[i / 16 * 24 + i % 16] = A[i]; b[i / 16 * 24 + i % 16] = B[i]; }
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::LAYOUT_A> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::LAYOUT_B> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, TYPE> fc;
  wmma::load_matrix_sync(fa, a, 24);
  wmma::load_matrix_sync(fb, FROM);
  wmma::load_matrix_sync(fc, C, 16, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(D, fc, 16, wmma::mem_LAYOUT_D);
}
"""


@pytest.mark.parametrize("layouts", [("row", "row", "row"), ("row", "col", "row"), ("col", "row", "col"), ("col", "col", "row")], ids="-".join)
@pytest.mark.parametrize("kind", ["float", "half"])
@pytest.mark.parametrize("source", ["b, 24", "B, 16"], ids=["shared", "global"])
def test_wmma(layouts, kind, source):
    a, b, c = rng.integers(-4, 5, (3, 16, 16))
    text = WMMA.replace("FROM", source).replace("TYPE", kind)
    for name, layout in zip(("LAYOUT_A", "LAYOUT_B", "LAYOUT_D"), layouts):
        text = text.replace(name, f"{layout}_major")
    kernel = Kernel("test/wmma", text, "k", ("A", "B", "C", "D"), (1, 1, 1), (32, 1, 1), "sm_80")
    number = np.float32 if kind == "float" else np.float16
    arguments = {"A": a.astype(np.float16), "B": b.astype(np.float16), "C": c.astype(number), "D": np.zeros((16, 16), number)}
    execution = CpuMachine().run(compile_kernel(kernel), arguments, ("D",))
    left, right = (array.T if layout == "col" else array for array, layout in zip((a, b), layouts))
    expected = left @ right + c
    assert execution.findings == ()
    assert (arguments["D"] == (expected.T if layouts[2] == "col" else expected)).all()
