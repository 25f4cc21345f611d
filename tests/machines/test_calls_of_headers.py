"""What nvcc makes of double and wide arithmetic: functions of CUDA's headers, carries; printf of results."""

import math

import numpy as np
from cuda_kernels import compiled, run

SOURCE = r"""
#include <cstdio>
typedef __int128 i128;
typedef unsigned __int128 u128;
extern "C" __global__ void k(const double* X, const long long* N, int* Y) {
  const int t = threadIdx.x;
  const double x = X[t];
  const long long a = N[2 * t], b = N[2 * t + 1];
  const i128 wide = (i128)a << 40 | b;
  const u128 quotient = (u128)a * (u128)a / (u128)b, rest = (u128)(wide % (i128)b);
  Y[t] = printf("%d %.17g %.17g %.17g %.17g %lld %lld %llu %llu %lld %lld\n", t, sin(x), cos(x), tan(x),
                pow(fabs(x), 1.7), a / b, a % b, (unsigned long long)(quotient >> 64),
                (unsigned long long)quotient, (long long)(wide / b), (long long)rest);
}
"""
M64 = (1 << 64) - 1


def signed(x):
    return (x & M64) - ((x & 1 << 63) << 1)


def divided(a, b):
    """Towards zero, and what is left."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def integers(a, b):
    wide = a << 40 | b
    square = a * a % 2**128 // (b % 2**128)
    whole, rest = divided(wide, b)
    return [*divided(a, b), square >> 64, square & M64, signed(whole), signed(rest)]


def test_functions_of_the_headers():
    """Small and large angles: those beyond 1e5 are reduced by a function that is called, with carries."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-4, 4, 16), rng.uniform(-1, 1, 16) * 10.0 ** np.arange(4, 20)])
    n = rng.integers(-(2**63), 2**63, (32, 2))
    n[::2, 1] >>= 45
    y, execution = run(SOURCE, "k", {"X": x, "N": n.reshape(-1)}, threads=32)
    assert execution.findings == () and (y == 11).all()
    text = compiled(SOURCE).ptx
    called = ("__internal_trig_reduction_slowpathd", "__internal_accurate_pow", "madc", "subc")
    assert all(name in text for name in called)
    lines = sorted((line.split() for line in execution.printed.splitlines()), key=lambda line: int(line[0]))
    for v, (a, b), line in zip(x.tolist(), n.tolist(), lines, strict=True):
        expected = [math.sin(v), math.cos(v), math.tan(v), abs(v) ** 1.7]
        for got, wanted in zip(line[1:5], expected):
            assert math.isclose(float(got), wanted, rel_tol=1e-14), (v, line)
        assert [int(word) for word in line[5:]] == integers(a, b), (a, b)
