"""Single PTX instructions as kernels: operands come from arrays by thread index, the result goes to an
array."""

import numpy as np

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

THREADS = 256
NUMPY = {
    "u16": "u2",
    "s16": "i2",
    "b16": "u2",
    "f16": "f2",
    "u32": "u4",
    "s32": "i4",
    "b32": "u4",
    "f32": "f4",
    "f16x2": "u4",
    "bf16": "u2",
    "bf16x2": "u4",
    "u64": "u8",
    "s64": "i8",
    "b64": "u8",
    "f64": "f8",
    "u8": "u1",
    "s8": "i1",
}
BITS = {name: int(kind[1]) * 8 for name, kind in NUMPY.items()}


SLOTS = """.reg .b64 x, y, off; .reg .b32 t; mov.u32 t, %tid.x; mul.wide.u32 off, t, 8; ld.param.u64 x, [X];
ld.param.u64 y, [Y]; add.s64 x, x, off; add.s64 y, y, off;
"""
"""Lets x and y point to each thread's own 8 bytes of the arrays X and Y."""


def register_type(kind):
    return kind if kind in ("f32", "f64") else f"b{max(16, BITS[kind])}"


def memory_type(kind):
    return kind if kind[0] in "us" and not kind.startswith("bf") else register_type(kind)


def module(name, parameters, body):
    declared = ",\n".join(f".param .u64 {parameter}" for parameter in parameters)
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry"
        f" {name}(\n{declared})\n{{\n{body}\nret;\n}}\n"
    )


def launch(ptx, arguments, outputs, grid=(1, 1, 1), block=(THREADS, 1, 1), dynamic_shared=0, count=False):
    """Run PTX text; the kernel's parameters are the arguments in order."""
    kernel = Kernel("test", "", "test", tuple(arguments), grid, block, "sm_80", dynamic_shared)
    return CpuMachine().run(Binary(kernel, ptx, b"", Resources(0, 0)), arguments, outputs, count=count)


def run(instruction, result, *operands):
    """The result of `instruction` for arrays of operands, given as (type, array); {d}, {a}, {b}, {c}, {e} are
    its registers.

    result: type of the result. Predicates p and q are free for the instruction.
    """
    size = len(operands[0][1])
    names = "abce"[: len(operands)]
    lines = [
        ".reg .pred p, q;",
        ".reg .b32 t, n, cta;",
        ".reg .b64 base, at, off;",
        f".reg .{register_type(result)} rd;",
    ]
    lines += [f".reg .{register_type(kind)} r{name};" for name, (kind, _) in zip(names, operands)]
    lines += [
        "mov.u32 cta, %ctaid.x;",
        "mov.u32 n, %ntid.x;",
        "mov.u32 t, %tid.x;",
        "mad.lo.s32 t, cta, n, t;",
    ]
    for name, (kind, _) in zip(names, operands):
        lines += [
            f"ld.param.u64 base, [{name.upper()}];",
            f"mul.wide.u32 off, t, {BITS[kind] // 8};",
            "add.s64 at, base, off;",
        ]
        lines += [f"ld.global.{memory_type(kind)} r{name}, [at];"]
    lines += [instruction.format(d="rd", **{name: f"r{name}" for name in names})]
    lines += [
        "ld.param.u64 base, [D];",
        f"mul.wide.u32 off, t, {BITS[result] // 8};",
        "add.s64 at, base, off;",
    ]
    lines += [f"st.global.{memory_type(result)} [at], rd;"]
    arguments = {
        name.upper(): np.ascontiguousarray(array, NUMPY[kind]) for name, (kind, array) in zip(names, operands)
    }
    padded = -(-size // THREADS) * THREADS
    arguments = {name: np.resize(array, padded) for name, array in arguments.items()} | {
        "D": np.zeros(padded, NUMPY[result])
    }
    execution = launch(
        module("test", arguments, "\n".join(lines)), arguments, ("D",), (padded // THREADS, 1, 1)
    )
    assert execution.findings == ()
    return arguments["D"][:size]


def edges(kind):
    """Values where arithmetic of a type goes wrong first, and some at random."""
    rng = np.random.default_rng(len(kind))
    if kind in ("f16", "f32", "f64"):
        info = np.finfo(NUMPY[kind])
        special = [
            0.0,
            -0.0,
            1,
            -1,
            0.5,
            1.5,
            2.5,
            -2.5,
            3,
            np.pi,
            -100.7,
            1000.1,
            info.max,
            -info.max,
            info.tiny,
            info.smallest_subnormal,
            np.inf,
            -np.inf,
            np.nan,
        ]
        return np.concatenate([special, rng.standard_normal(30) * 10]).astype(NUMPY[kind])
    info = np.iinfo(NUMPY[kind])
    special = [
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        63,
        64,
        100,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        info.max // 2,
    ]
    values = np.array(
        special + [int(x) for x in rng.integers(info.min, info.max, 20, dtype=NUMPY[kind])], dtype=NUMPY[kind]
    )
    return np.concatenate([values, -values.astype(NUMPY[kind])]) if info.min < 0 else values


def all_pairs(first, second):
    a, b = np.meshgrid(first, second, indexing="ij")
    return a.ravel(), b.ravel()


def all_triples(*values):
    return [array.ravel() for array in np.meshgrid(*values, indexing="ij")]
