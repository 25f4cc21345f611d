"""Every form of atom and red: 32 lanes update one place, one after another."""

import re

import numpy as np
import pytest
from ptx_kernels import launch, module
from softfloat import FORMATS, NAN, add, decode, encode, extreme
from test_catalogue import edges

from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.ptx import BITS

SLOT = 16  # bytes of the place, of each lane's value, and of each lane's result
OPCODES = [
    o
    for entry in entries()
    if entry.opcodes.startswith(("atom", "red.", "red{"))
    for o in expanded(entry.opcodes)
]
OPCODES = [o for o in OPCODES if not o.startswith("red.async")]
rng = np.random.default_rng(6)


def split(opcode):
    """Operation, type and number of elements."""
    parts = opcode.split(".")
    count = re.search(r"\.v(\d)", opcode)
    name = next(
        p for p in parts if p in ("add", "min", "max", "and", "or", "xor", "inc", "dec", "cas", "exch")
    )
    return name, parts[-1], int(count[1]) if count else 1


def updated(name, kind, old, value, other, flushes):
    """Bits of one element."""
    if kind.endswith("x2"):
        parts = (updated(name, kind[:-2], old >> k & 0xFFFF, value >> k & 0xFFFF, 0, False) for k in (0, 16))
        return [part for part in parts]
    if kind in FORMATS:
        a, b = (decode(x, kind, flushes) for x in (old, value))
        return encode(add(a, b) if name == "add" else extreme(a, b, name, False), kind, ftz=flushes)
    bits = BITS[kind]

    def sign(x):
        return x - (1 << bits) if kind[0] == "s" and x >> bits - 1 else x

    forms = {
        "add": lambda: old + value,
        "min": lambda: min(sign(old), sign(value)),
        "max": lambda: max(sign(old), sign(value)),
        "and": lambda: old & value,
        "or": lambda: old | value,
        "xor": lambda: old ^ value,
        "inc": lambda: 0 if old >= value else old + 1,
        "dec": lambda: value if old == 0 or old > value else old - 1,
        "exch": lambda: value,
        "cas": lambda: other if old == value else old,
    }
    return forms[name]() & (1 << bits) - 1


def pieces(content, kind, count):
    """Bits of the elements of a slot."""
    whole, bits = int.from_bytes(content.tobytes(), "little"), BITS[kind]
    return [whole >> bits * k & (1 << bits) - 1 for k in range(count)]


def slot(elements, kind):
    whole = sum(x << BITS[kind] * k for k, x in enumerate(elements))
    return np.frombuffer(whole.to_bytes(SLOT, "little"), np.uint8)


def values_of(opcode):
    """The place before, each lane's value, and what a comparison that holds exchanges it for."""
    name, kind, count = split(opcode)
    if name == "cas":  # every lane finds what the one before it left
        return slot([0], kind), [slot([k], kind) for k in range(32)], [slot([k + 1], kind) for k in range(32)]
    choice = [
        x
        for x in edges(kind if kind != "b128" else "b64")
        if kind not in FORMATS or decode(x, kind) is not NAN
    ]
    if name in ("inc", "dec"):
        choice = [3, 5, 4, 7, 2**32 - 1]
    if kind == "f32" and count == 1:  # denormal numbers, lost in any other sum
        choice = [1, 5, 0x80000003, 0x7FFFFF, 0x800000]
    lanes = [
        slot([int(choice[k]) & (1 << BITS[kind]) - 1 for k in rng.integers(len(choice), size=count)], kind)
        for _ in range(33)
    ]
    return lanes[0], lanes[1:], lanes[1:]


def code(opcode, number):
    name, kind, count = split(opcode)
    register = kind if kind in ("f32", "f64") else f"b{BITS[kind]}"
    size, at, lane = BITS[kind] // 8, SLOT * number, SLOT * 32 * number
    own = opcode.startswith("atom")
    shared = ".shared" in opcode
    place = f"[tile+{at}]" if shared else f"[z+{at}]"
    text = f"{{.reg .{register} v<8>, o<8>, w; .reg .b32 h<4>;"
    text += "".join(f"ld.global.{register} v{k}, [x+{lane + size * k}];" for k in range(count))
    if shared:
        text += f"ld.global.v4.b32 {{h0, h1, h2, h3}}, [z+{at}];"
        text += f"st.shared.v4.b32 [tile+{at}], {{h0, h1, h2, h3}}; bar.warp.sync -1;"
    if name == "cas":
        text += f"ld.global.{register} w, [x+{lane + SLOT * 32 * len(OPCODES)}];"
    vector = [f"{{{', '.join(f'{n}{k}' for k in range(count))}}}" if count > 1 else f"{n}0" for n in "vo"]
    text += f"{opcode} {vector[1] + ',' if own else ''} {place}, {vector[0]}{', w' if name == 'cas' else ''};"
    text += "".join(f"st.global.{register} [y+{lane + size * k}], o{k};" for k in range(count)) if own else ""
    if shared:
        text += f"bar.warp.sync -1; ld.shared.v4.b32 {{h0, h1, h2, h3}}, [tile+{at}];"
        text += f"@first st.global.v4.b32 [z+{at}], {{h0, h1, h2, h3}};"
    return text + "}\n"


@pytest.fixture(scope="module")
def executed():
    """Every opcode in one kernel: the arguments before and after it."""
    body = f""".reg .b32 t; .reg .pred first; .reg .b64 x, y, z, off;
    .shared .align 16 .b8 tile[{SLOT * len(OPCODES)}];
    mov.u32 t, %tid.x; setp.eq.u32 first, t, 0; mul.wide.u32 off, t, {SLOT}; ld.param.u64 x, [X];
    ld.param.u64 y, [Y]; ld.param.u64 z, [Z]; add.s64 x, x, off; add.s64 y, y, off;\n"""
    body += "".join(code(opcode, number) for number, opcode in enumerate(OPCODES))
    places, values, others = zip(*map(values_of, OPCODES))
    before = {
        "X": np.array([values, others]),
        "Y": np.zeros((len(OPCODES), 32, SLOT), np.uint8),
        "Z": np.array(places),
    }
    after = {name: array.copy() for name, array in before.items()}
    launch(module("test", tuple("XYZ"), body), after, ("Y", "Z"), block=(32, 1, 1))
    return before, after


@pytest.mark.parametrize("number", range(len(OPCODES)), ids=OPCODES)
def test_lanes_update_a_place_one_after_another(number, executed):
    before, after = executed
    opcode = OPCODES[number]
    name, kind, count = split(opcode)
    flushes = kind == "f32" and ".shared" not in opcode
    now = pieces(before["Z"][number], kind, count)
    for lane in range(32):
        value, other = (pieces(before["X"][k][number][lane], kind, count) for k in (0, 1))
        if opcode.startswith("atom"):
            assert pieces(after["Y"][number][lane], kind, count) == now
        following = [updated(name, kind, *three, flushes) for three in zip(now, value, other)]
        now = [assigned(x) for x in following]
        if any(x is NAN or isinstance(x, list) and NAN in x for x in following):
            break  # which NaN it is is not told
    else:
        assert pieces(after["Z"][number], kind, count) == now


def assigned(x):
    return x[0] | x[1] << 16 if isinstance(x, list) and NAN not in x else x
