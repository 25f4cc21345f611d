"""Arithmetic of numbers that take several registers: carries and borrows."""

import numpy as np
import pytest
from ptx_kernels import SLOTS, launch, module

rng = np.random.default_rng(20)


def numbers(count, bits):
    """Halves of which are all ones or zeros, so that carries go far."""
    return [
        sum(int(rng.choice([0, 2**32 - 1, 1, rng.integers(2**32)])) << k for k in range(0, bits, 32))
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carries(kind):
    """Sums, differences and products of numbers of four registers; the last instruction tells its carry."""
    bits, count, letter = int(kind[1:]), 4, kind[0]
    a, b = numbers(32, bits * count), numbers(32, bits * count)
    names = [f"{name}{k}" for name in "abcd" for k in range(count)]
    body = SLOTS + f".reg .b{bits} {', '.join(names)}, zero, f; mov.b{bits} zero, 0;"
    for k in range(count):
        body += "".join(
            f"ld.global.b{bits} {name}{k}, [x+{8 * 32 * (count * n + k)}];" for n, name in enumerate("ab")
        )
    chains = {
        "add": lambda k: f"add{'c' * (k > 0)}.cc.{kind} d{k}, a{k}, b{k};",
        "sub": lambda k: f"sub{'c' * (k > 0)}.cc.{kind} d{k}, a{k}, b{k};",
        "lo": lambda k: f"mad{'c' * (k > 0)}.lo.cc.{kind} d{k}, a{k}, b0, b{k};",
        "hi": lambda k: f"mad{'c' * (k > 0)}.hi.cc.{kind} d{k}, a{k}, b0, b{k};",
    }
    for n, chain in enumerate(chains.values()):
        body += "".join(chain(k) for k in range(count))
        ends = {
            "add": "addc.{kind} f, zero, zero;",
            "sub": "subc.{kind} f, zero, zero;",
            "lo": "madc.lo.{kind} f, zero, zero, zero;",
            "hi": "madc.hi.{kind} f, zero, zero, zero;",
        }
        body += ends[list(chains)[n]].format(kind=kind)
        for k, name in enumerate([*(f"d{k}" for k in range(count)), "f"]):
            body += f"st.global.b{bits} [y+{8 * 32 * ((count + 1) * n + k)}], {name};"
    part = lambda x, k: x >> bits * k & (1 << bits) - 1  # noqa: E731
    arguments = {
        "X": np.array([[part(x, k) for x in row] for row in (a, b) for k in range(count)], np.uint64),
        "Y": np.zeros((len(chains), count + 1, 32), np.uint64),
    }
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    sign = lambda x: x - (1 << bits) if letter == "s" and x >> bits - 1 else x  # noqa: E731
    for lane, (x, y) in enumerate(zip(a, b)):
        low = sum((part(x, k) * part(y, 0) & (1 << bits) - 1) << bits * k for k in range(count)) + y
        high = (
            sum(
                (sign(part(x, k)) * sign(part(y, 0)) >> bits & (1 << bits) - 1) << bits * k
                for k in range(count)
            )
            + y
        )
        for n, exact in enumerate((x + y, x - y, low, high)):
            got = [int(v) for v in arguments["Y"][n, :, lane]]
            assert got == [part(exact, k) for k in range(count)] + [part(exact >> bits * count, 0)]


def test_the_carry_of_a_difference_is_that_of_a_sum_with_the_complement():
    """So it is 1 where nothing is borrowed, and a difference after a sum borrows where that has none."""
    body = SLOTS + ".reg .b32 a, b, d; ld.global.b32 a, [x]; ld.global.b32 b, [x+256];"
    body += "sub.cc.u32 d, a, b; addc.u32 d, 0, 0; st.global.b32 [y], d;"
    body += "add.cc.u32 d, a, b; subc.u32 d, 0, 0; st.global.b32 [y+256], d;"
    a, b = (np.array(numbers(32, 32), np.uint64) for _ in range(2))
    b[:4] = a[:4]
    arguments = {"X": np.array([a, b]), "Y": np.zeros((2, 32), np.uint64)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    y = arguments["Y"].astype(np.uint32)
    assert (y[0] == (a >= b)).all() and (y[1] == np.where(a + b < 2**32, 2**32 - 1, 0)).all()
