"""What ordinary CUDA is compiled to: functions of its headers against numpy, and nothing of it is refused."""

from dataclasses import replace
from functools import lru_cache
from math import cbrt, erf

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel

LANES = 32
M16, M32 = 0xFFFF, 0xFFFFFFFF


def signed(x, bits=32):
    return x - (1 << bits) if x >> bits - 1 & 1 else x


def by_parts(function, bits, is_signed=False):
    """A function of numbers for each part of two words."""

    def of(x, z):
        parts = [(x >> k & (1 << bits) - 1, z >> k & (1 << bits) - 1) for k in range(0, 32, bits)]
        if is_signed:
            parts = [tuple(signed(v, bits) for v in part) for part in parts]
        return sum((int(function(*part)) & (1 << bits) - 1) << bits * k for k, part in enumerate(parts))

    return of


def all_ones(condition):
    return -1 if condition else 0


REALS = {
    "exp(x)": np.exp,
    "log(z)": np.log,
    "sqrt(z)": np.sqrt,
    "rsqrt(z)": lambda x, z: 1 / np.sqrt(z),
    "cbrt(x)": np.vectorize(lambda x: cbrt(x)),
    "atan2(x, z)": np.arctan2,
    "tanh(x)": np.tanh,
    "erf(x)": np.vectorize(erf),
    "floor(x)": np.floor,
    "ceil(x)": np.ceil,
    "rint(x)": np.rint,
    "trunc(x)": np.trunc,
    "hypot(x, z)": np.hypot,
    "fma(x, z, x)": lambda x, z: x * z + x,
    "copysign(z, x)": lambda x, z: np.copysign(z, x),
    "fmin(x, z)": np.minimum,
    "fmax(x, z)": np.maximum,
    "log1p(z)": np.log1p,
    "expm1(x)": np.expm1,
    "exp2(x)": np.exp2,
    "log2(z)": np.log2,
    "x / z": np.divide,
    "ldexp(x, 3)": lambda x, z: x * 8,
    "fabs(x)": np.abs,
    "sinh(x)": np.sinh,
    "asin(x / 8)": lambda x, z: np.arcsin(x / 8),
}
OF_X = {"exp", "cbrt", "tanh", "erf", "floor", "ceil", "rint", "trunc", "expm1", "exp2", "fabs", "sinh"}
OF_Z = {"log", "sqrt", "log1p", "log2"}
HALVES = {
    "h2(__hadd2(a, b))": np.add,
    "h2(__hsub2(a, b))": np.subtract,
    "h2(__hmul2(a, b))": np.multiply,
    "h2(__h2div(a, b))": np.divide,
    "h2(h2exp(a))": lambda x, z: np.exp(x),
    "h2(h2sqrt(b))": lambda x, z: np.sqrt(z),
    "h2(__hmin2(a, b))": np.minimum,
    "h2(__hmax2(a, b))": np.maximum,
    "h2(h2floor(a))": lambda x, z: np.floor(x),
    "h2(__hgt2(a, b))": np.greater,
    "h2(__hneg2(a))": lambda x, z: -x,
    "h2(__habs2(a))": lambda x, z: np.abs(x),
    "h2(__hadd2_sat(a, b))": lambda x, z: np.clip(x + z, 0, 1),
    "h2(h2log2(b))": lambda x, z: np.log2(z),
    "h2(h2rcp(b))": lambda x, z: 1 / z,
    "h2(__hfma2(a, b, a))": lambda x, z: x * z + x,
    "h2(h2cos(a))": lambda x, z: np.cos(x),
    "h2(h2rint(a))": lambda x, z: np.rint(x),
}
INTEGERS = {
    "__vadd2(x, z)": by_parts(lambda a, b: a + b, 16),
    "__vsub4(x, z)": by_parts(lambda a, b: a - b, 8),
    "__vaddus4(x, z)": by_parts(lambda a, b: min(a + b, 255), 8),
    "__vsubss2(x, z)": by_parts(lambda a, b: max(-32768, min(a - b, 32767)), 16, True),
    "__vavgu4(x, z)": by_parts(lambda a, b: (a + b + 1) >> 1, 8),
    "__vabsdiffu4(x, z)": by_parts(lambda a, b: abs(a - b), 8),
    "__vsadu4(x, z)": lambda x, z: sum(abs((x >> k & 255) - (z >> k & 255)) for k in range(0, 32, 8)),
    "__vcmpgts2(x, z)": by_parts(lambda a, b: all_ones(a > b), 16, True),
    "__vmaxs4(x, z)": by_parts(max, 8, True),
    "__vimax3_s32(x, z, 5)": lambda x, z: max(signed(x), signed(z), 5),
    "__viaddmax_s16x2_relu(x, z, 0x30003)": by_parts(lambda a, b: max(signed(a + b & M16, 16), 3), 16, True),
    "__dp4a((int)x, (int)z, 7)": lambda x, z: (
        7 + sum(signed(x >> k & 255, 8) * signed(z >> k & 255, 8) for k in range(0, 32, 8))
    ),
    "__dp2a_hi(x, z, 7u)": lambda x, z: 7 + (x & M16) * (z >> 16 & 255) + (x >> 16) * (z >> 24),
    "__sad((int)x, (int)z, 9)": lambda x, z: 9 + abs(signed(x) - signed(z)),
    "__funnelshift_l(x, z, x)": lambda x, z: (z << 32 | x) << (x & 31) >> 32,
    "__funnelshift_rc(x, z, 40)": lambda x, z: z,
    "__brev(x)": lambda x, z: int(f"{x:032b}"[::-1], 2),
    "__clz(x)": lambda x, z: 32 - x.bit_length(),
    "__ffs(x)": lambda x, z: (x & -x).bit_length(),
    "__popcll((unsigned long long)x << 32 | z)": lambda x, z: bin(x).count("1") + bin(z).count("1"),
    "__byte_perm(x, z, 0x5140)": lambda x, z: (
        x & 255 | (z & 255) << 8 | (x >> 8 & 255) << 16 | (z >> 8 & 255) << 24
    ),
    "__umulhi(x, z)": lambda x, z: x * z >> 32,
    "__mul24(x, z)": lambda x, z: signed(x & 0xFFFFFF, 24) * signed(z & 0xFFFFFF, 24),
    "wide(x, z)": lambda x, z: ((x << 96 | z << 32 | 5) * (z << 40 | x) - (z << 64)) % 2**128 >> 93,
    "(unsigned)(1000.f / (x | 1)) + (unsigned char)z * (short)x": lambda x, z: (
        int(np.float32(1000) / np.float32(x | 1)) + (z & 255) * signed(x & M16, 16)
    ),
}
SOURCE = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ __half to_half(float x) { return __float2half(x); }
__device__ float h2(__half2 x) { return __high2float(x); }
__device__ float h2(__nv_bfloat162 x) { return __high2float(x); }
__device__ unsigned wide(unsigned x, unsigned z) {
  typedef unsigned __int128 u128;
  const u128 a = (u128)x << 96 | (u128)z << 32 | 5, b = (u128)z << 40 | x;
  return (unsigned)((a * b - ((u128)z << 64)) >> 93);
}
"""


def made(kind, function):
    return f"const {kind} a = {function}(x), b = {function}(z);"


@lru_cache(maxsize=None)
def binary(arch):
    text = SOURCE

    def kernel(name, kind, result, expressions, before=""):
        lines = "".join(f"y[{LANES * k} + i] = {e};\n" for k, e in enumerate(expressions))
        return f"""extern "C" __global__ void {name}(const {kind}* X, const {kind}* Z, {result}* y) {{
        const int i = threadIdx.x; const {kind} x = X[i], z = Z[i]; {before}
        {lines} }}
        """

    text += kernel("doubles", "double", "double", REALS) + kernel("singles", "float", "float", REALS)
    text += kernel("integers", "unsigned", "unsigned", INTEGERS)
    text += kernel("halves", "float", "float", HALVES, made("__half2", "__float2half2_rn"))
    bfloats = kernel("bfloats", "float", "float", HALVES, made("__nv_bfloat162", "__float2bfloat162_rn"))
    text += bfloats if arch != "sm_75" else ""
    return compile_kernel(Kernel("test", text, "doubles", ("X", "Z", "Y"), (1,) * 3, (LANES, 1, 1), arch))


def results(arch, entry, x, z, count):
    compiled = binary(arch)
    arguments = {"X": x, "Z": z, "Y": np.zeros((count, LANES), x.dtype)}
    compiled = replace(compiled, kernel=replace(compiled.kernel, entry=entry))
    assert CpuMachine().run(compiled, arguments, ("Y",)).findings == ()
    return arguments["Y"]


ARCHS = [
    pytest.param("sm_75", marks=pytest.mark.slow),
    pytest.param("sm_80", marks=pytest.mark.slow),
    "sm_90",
]
KINDS = {"doubles": ("f8", 1e-14), "singles": ("f4", 4e-6), "halves": ("f4", 3e-3), "bfloats": ("f4", 2e-2)}


@pytest.mark.parametrize("entry", KINDS)
@pytest.mark.parametrize("arch", ARCHS)
def test_real_numbers(arch, entry):
    """Of a half the sum of three roundings is allowed."""
    if entry == "bfloats" and arch == "sm_75":
        pytest.skip("CUDA has no such functions for it")
    kind, tolerance = KINDS[entry]
    rng = np.random.default_rng(3)
    x, z = (rng.uniform(-4, 4, LANES)).astype(kind), rng.uniform(0.5, 4, LANES).astype(kind)
    if entry in ("halves", "bfloats"):
        x, z = (np.round(v * 16) / 16 for v in (x, z))
    functions = REALS if entry in ("doubles", "singles") else HALVES
    got = results(arch, entry, x, z, len(functions))
    for (expression, function), row in zip(functions.items(), got):
        name = expression.split("(")[0]
        a, b = x.astype("f8"), z.astype("f8")
        expected = function(a) if name in OF_X else function(b) if name in OF_Z else function(a, b)
        np.testing.assert_allclose(row, expected, rtol=tolerance, atol=tolerance, err_msg=expression)


@pytest.mark.parametrize("arch", ARCHS)
def test_integers(arch):
    rng = np.random.default_rng(4)
    x, z = (rng.integers(0, 2**32, LANES, dtype=np.uint32) for _ in range(2))
    for (expression, function), row in zip(INTEGERS.items(), results(arch, "integers", x, z, len(INTEGERS))):
        expected = [function(int(a), int(b)) & M32 for a, b in zip(x, z)]
        assert row.tolist() == expected, expression
