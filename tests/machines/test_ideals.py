"""What an access costs, and what is ideal, of random lanes, addresses and widths: the ideal is what the
distinct bytes fill, and no access costs less."""

import numpy as np
import pytest
from ptx_kernels import module

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

ROUNDS, BYTES, SECTOR, WAVEFRONT = 48, 4096, 32, 128
HEAD = """.reg .b64 x, y, m, o, g, off; .reg .b32 t, at, from, d, s; .reg .b64 e; .reg .pred p;
.reg .b16 h; .reg .b32 v<4>; .shared .align 16 .b8 tile[4096];
mov.u32 t, %tid.x; mul.wide.u32 off, t, 4; ld.param.u64 x, [X]; ld.param.u64 y, [Y]; ld.param.u64 m, [M];
ld.param.u64 o, [O]; mov.b32 d, 0; mov.b64 e, 0; mov.b16 h, 0; mov.b32 v0, 0; mov.b32 v1, 0; mov.b32 v2, 0;
mov.b32 v3, 0; mov.u32 s, 0;
FILL: add.u32 at, s, t; shl.b32 at, at, 2; mov.u32 from, tile; add.u32 from, from, at;
st.shared.b32 [from], d;
add.u32 s, s, 32; setp.lt.u32 p, s, 1024; @p bra FILL; bar.sync 0;
add.s64 m, m, off; add.s64 o, o, off; ld.global.u32 at, [m]; setp.ne.u32 p, at, 0; ld.global.u32 at, [o];
ld.global.u32 from, [o+128]; cvt.u64.u32 off, at; add.s64 y, y, off; add.s64 x, x, off;
cvt.u64.u32 off, from; ld.param.u64 g, [X]; add.s64 g, g, off; mov.u32 s, tile; add.u32 s, s, at;
"""
VALUES = {
    1: ("b8", "h"),
    2: ("b16", "h"),
    4: ("b32", "d"),
    8: ("b64", "e"),
    16: ("v4.b32", "{v0, v1, v2, v3}"),
}
ACCESSES = {
    "global_load": "@p ld.global.{kind} {value}, [x];",
    "global_store": "@p st.global.{kind} [y], {value};",
    "shared_load": "@p ld.shared.{kind} {value}, [s];",
    "shared_store": "@p st.shared.{kind} [s], {value};",
    "cp_async": "@p cp.async.ca.shared.global [s], [g], {width}; cp.async.wait_all;",
    "bypass": "@p cp.async.cg.shared.global [s], [g], {width}; cp.async.wait_all;",
}
WIDTHS = {"cp_async": (4, 8, 16), "bypass": (16,)}


def addresses(rng, width):
    """Of 32 lanes: side by side, strided, all alike, or anywhere, some of them twice."""
    slots = BYTES // width
    kinds = (
        np.arange(32) + rng.integers(slots - 32),
        np.arange(32) * rng.integers(1, 9) % slots,
        np.full(32, rng.integers(slots)),
        rng.integers(0, slots, 32),
        rng.integers(0, 12, 32),
    )
    return kinds[rng.integers(len(kinds))] * width


def counted(kind, width, lanes, to, source):
    """Accesses of the one that the mask decides, beside those of the loads of mask and offsets."""
    arguments = {
        "X": np.zeros(BYTES, np.uint8), "Y": np.zeros(BYTES, np.uint8), "M": lanes.astype(np.uint32),
        "O": np.concatenate([to, source]).astype(np.uint32),
    }  # fmt: skip
    ptx, value = VALUES[width]
    marked = "\n" + ACCESSES[kind].format(kind=ptx, value=value, width=width)
    text = module("test", arguments, HEAD.replace("\n", " ") + marked)
    line = text[: text.index(marked) + 1].count("\n") + 1
    kernel = Kernel("test", text, "test", tuple(arguments), (1, 1, 1), (32, 1, 1), "sm_80")
    done = CpuMachine().run(Binary(kernel, text, b"", Resources(0, 0)), arguments, ("Y",), count=True)
    assert done.counters is not None
    (found,) = (one.accesses for one in done.counters.lines if one.line == line)
    return found


@pytest.mark.parametrize("kind, width", [(k, w) for k in ACCESSES for w in WIDTHS.get(k, VALUES)])
def test_no_access_costs_less_than_is_ideal(kind, width):
    rng = np.random.default_rng([width, *kind.encode()])
    for number in range(ROUNDS):
        lanes = rng.random(32) < (1, 0.5, 0.1)[number % 3]
        to, source = addresses(rng, width), addresses(rng, width)
        found = counted(kind, width, lanes, to, source)
        if not lanes.any():
            assert not any(one.cost for one in found.values())
            continue
        for name, access in found.items():
            assert 0 < access.ideal <= access.cost, (name, lanes, to, source)
        if kind.startswith("global"):
            touched = np.unique(to[lanes][:, None] + np.arange(width))
            assert found[kind].ideal == -(-len(touched) // SECTOR)
            assert found[kind].cost == len(np.unique(touched // SECTOR))
        elif kind in WIDTHS:
            written = len(np.unique(to[lanes])) * width
            assert found["shared_cp_async"].ideal == -(-written // WAVEFRONT)
