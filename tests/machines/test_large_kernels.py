"""Kernels of any shape are lowered in steps that grow as their instructions do; what is declared and never
used costs nothing."""

import sys

import pytest

from tir_schedules.machines.cpu.kernels import made

MORE = 4


def module(body, before=""):
    """A kernel k of some lines."""
    return "\n".join(
        [
            ".version 8.0\n.target sm_80\n.address_size 64",
            before,
            ".visible .entry k(.param .u64 X) {",
            ".reg .b32 %r<9>; .reg .pred %p<9>; .reg .b64 x, %d<9>;",
            "ld.param.u64 x, [X]; ld.volatile.global.u32 %r1, [x];",
            *body,
            "st.global.u32 [x], %r1; ret;\n}\n",
        ]
    )


def one_block(n):
    return module([f"add.u32 %r{k % 8 + 1}, %r{(k + 1) % 8 + 1}, {k};" for k in range(n)])


def alive_at_once(n):
    loads = [f"ld.global.u32 v{k}, [x+{4 * k}];" for k in range(n)]
    return module([f".reg .b32 v<{n}>;", *loads, *(f"add.u32 %r1, %r1, v{k};" for k in range(n))])


def many_blocks(n):
    steps = (f"setp.lt.u32 %p1, v{k}, 7; @%p1 bra L{k}; mov.u32 v{k + 1}, {k}; L{k}:" for k in range(n))
    return module([f".reg .b32 v<{n + 1}>;", *steps])


def loops_from_one_head(n):
    steps = (f"add.u32 %r2, %r1, {k}; setp.lt.u32 %p1, %r2, 7; @%p1 bra HEAD;" for k in range(n))
    return module(["HEAD: ld.volatile.global.u32 %r1, [x];", *steps])


def against_the_order(n):
    """What a loop ends by, and where it loads from, is computed from the last line to the first."""
    steps = (f"add.u32 v{k + 1}, v{k}, 16; shl.b32 w{k + 1}, w{k}, 1;" for k in reversed(range(n)))
    head = f".shared .align 16 .b8 s[64]; .reg .b32 v<{n + 1}>, w<{n + 1}>; mov.u32 w0, s;"
    loads = f"ld.shared.u32 %r2, [w{n}]; ld.shared.u32 %r3, [w{n}+4];"
    end = f"setp.lt.u32 %p1, v{n}, 7; @%p1 bra HEAD;"
    return module([head, "HEAD: ld.volatile.global.u32 v0, [x];", *steps, loads, end])


def variables(n):
    declared = (f".shared .b32 s{k}; .local .b32 l{k};" for k in range(n))
    uses = (f"mov.u32 %r2, s{k}; st.shared.u32 [%r2], {k}; st.local.u32 [l{k}], {k};" for k in range(n))
    return module([*declared, *uses])


def arrays_on_the_stack(n):
    head = f".local .align 8 .b8 __local_depot0[{8 * n}]; mov.u64 %d1, __local_depot0;"
    return module([head, *(f"add.u64 %d2, %d1, {8 * k}; st.local.u32 [%d2], %r1;" for k in range(n))])


def functions(n):
    body = "{{ .reg .b32 a; ld.param.b32 a, [p]; add.u32 a, a, {k}; st.param.b32 [o], a; ret; }}"
    defined = (f".func (.param .b32 o) f{k}(.param .b32 p) {body.format(k=k)}" for k in range(n))
    call = "{{ .param .b32 a, b; st.param.b32 [a], %r1; call (b), f{k}, (a); ld.param.b32 %r1, [b]; }}"
    calls = [call.format(k=k).replace("a, b;", "a; .param .b32 b;") for k in range(n)]
    return module(calls, "\n".join(defined))


SHAPES = (
    one_block, alive_at_once, many_blocks, loops_from_one_head, against_the_order, variables,
    arrays_on_the_stack, functions,
)  # fmt: skip


def steps(text):
    """How many functions are called, Python's own among them, to lower the kernel k."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        made(text, "k")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_steps_of_lowering_grow_as_the_kernel_does(shape):
    made(shape(10), "k")  # what is read once
    assert steps(shape(MORE * 100)) < 1.25 * MORE * steps(shape(100))


def test_registers_that_are_never_used_are_not_made():
    assert steps(one_block(9).replace("%r<9>", "%r<2000000000>")) == steps(one_block(9))
