"""Approximations against numpy: each form that is modelled, within the tolerance of its type."""

import numpy as np
from ptx_kernels import SLOTS, launch, module
from test_catalogue import ENTRIES, register

from tir_schedules.machines.cpu.catalogue import expanded
from tir_schedules.machines.cpu.ptx import BITS

rng = np.random.default_rng(20)
APPROXIMATE = {
    "div": lambda a, b: a / b, "sqrt": lambda a, b: np.sqrt(a), "rcp": lambda a, b: 1 / a,
    "rsqrt": lambda a, b: 1 / np.sqrt(a), "sin": lambda a, b: np.sin(a), "cos": lambda a, b: np.cos(a),
    "lg2": lambda a, b: np.log2(a), "ex2": lambda a, b: np.exp2(a), "tanh": lambda a, b: np.tanh(a),
}  # fmt: skip
TOLERANCE = {"f16": 2e-3, "bf16": 1e-2, "f32": 1e-6, "f64": 2e-6}


def numbers_of(bits, kind):
    """Of each half as float64."""
    if kind in ("f32", "f64"):
        return (
            bits.astype(f"u{int(kind[1:]) // 8}")
            .view(kind.replace("f32", "f4").replace("f64", "f8"))
            .astype("f8")[None]
        )
    halves = np.stack([bits & 0xFFFF, bits >> 16 & 0xFFFF][: 1 + kind.endswith("x2")]).astype(np.uint32)
    return (
        (halves << 16).view("f4").astype("f8")
        if kind.startswith("b")
        else halves.astype("u2").view("f2").astype("f8")
    )


def test_approximations():
    opcodes = [
        o
        for e in ENTRIES
        if e.precision == "modelled" and e.family == "arithmetic"
        for o in expanded(e.opcodes)
    ]
    rows, body = [], SLOTS
    for number, opcode in enumerate(opcodes):
        name, kind = opcode.split(".")[0], opcode.split(".")[-1]
        a, b = 0.1 + 3 * rng.random((2, 2, 32))
        encoded = [encode_numbers(values, kind) for values in (a, b)]
        rows += encoded
        names = ["o0", "o1"][: 1 + (name == "div")]
        at, bits = 8 * 32 * 2 * number, BITS[kind]
        body += f"{{.reg .{register(kind)} d, o<2>;"
        body += "".join(f"ld.global.{register(kind)} o{k}, [x+{at + 256 * k}];" for k in (0, 1))
        body += f"{opcode} d, {', '.join(names)}; st.global.b{bits} [y+{256 * number}], d;}}"
    arguments = {"X": np.array(rows, np.uint64), "Y": np.zeros((len(opcodes), 32), np.uint64)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    for number, opcode in enumerate(opcodes):
        kind = opcode.split(".")[-1]
        a, b, got = (
            numbers_of(bits, kind) for bits in (*arguments["X"][2 * number :][:2], arguments["Y"][number])
        )
        expected = APPROXIMATE[opcode.split(".")[0]](a, b)
        np.testing.assert_allclose(
            got, expected, rtol=TOLERANCE[kind.removesuffix("x2")], atol=1e-6, err_msg=opcode
        )


def encode_numbers(values, kind):
    """Two rows of float64 as registers of a type; the second row is the upper half."""
    if kind in ("f32", "f64"):
        return (
            values[0]
            .astype(kind.replace("f32", "f4").replace("f64", "f8"))
            .view(f"u{int(kind[1:]) // 8}")
            .astype("u8")
        )
    halves = values.astype("f4").view("u4") >> 16 if kind.startswith("b") else values.astype("f2").view("u2")
    halves = halves.astype("u8")
    return halves[0] | halves[1] << 16 if kind.endswith("x2") else halves[0]
