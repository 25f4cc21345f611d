"""Every form of ld and st moves the bytes of its type, each lane's own; special registers."""

import re

import numpy as np
import pytest
from ptx_kernels import SLOTS, launch, module

from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.ptx import BITS

SLOT = 16
ACCESSES = [
    opcode
    for entry in entries()
    if entry.family == "memory" and entry.precision == "exact"
    for opcode in expanded(entry.opcodes)
    if opcode.split(".")[0] in ("ld", "ldu", "st") and not opcode.startswith(("ld.param", "st.bulk"))
]
PARAMETERS = [
    opcode for entry in entries() for opcode in expanded(entry.opcodes) if opcode.startswith("ld.param")
]
rng = np.random.default_rng(7)


def register_of(kind):
    return kind if kind in ("f32", "f64") else f"b{max(16, BITS[kind])}"


def elements(opcode):
    """Type, number of elements and the state space, "" for a generic address."""
    count = re.search(r"\.v(\d)", opcode)
    space = re.search(r"\.(global|shared|local|const)", opcode)
    return opcode.split(".")[-1], int(count[1]) if count else 1, space[0] if space else ""


def code(opcode, number):
    """A load from a place that holds the lane's bytes, or a store to one; the bytes then go to Y."""
    kind, count, space = elements(opcode)
    size, lane = BITS[kind] // 8, SLOT * 32 * number
    text = f"{{.reg .{register_of(kind)} v<4>; .reg .b32 h<4>; .reg .b64 p, w;"
    whole = "{h0, h1, h2, h3}"
    place = {"": "x", ".global": "x", ".const": "w", ".shared": "tile", ".local": "stack"}[space]
    if space == ".const":
        text += "mov.u64 w, numbers; add.s64 w, w, off;"
    own = f"{place}+{0 if space == '.const' else lane if not space or space == '.global' else 0}"
    if space == ".shared":
        text += "mov.u64 p, tile; add.s64 p, p, off;"
        own = "p"
    registers = [f"v{k}" for k in range(count)]
    vector = f"{{{', '.join(registers)}}}" if count > 1 else "v0"
    if opcode.startswith("ld"):
        if space in (".shared", ".local"):
            text += f"ld.global.v4.b32 {whole}, [x+{lane}]; st{space}.v4.b32 [{own}], {whole};"
        text += f"{opcode} {vector}, [{own}];"
        wide = register_of(kind)
        step = BITS[wide] // 8
        return text + "".join(f"st.global.{wide} [y+{lane + step * k}], v{k};" for k in range(count)) + "}\n"
    own = own.replace("x+", "y+")
    text += "".join(f"ld.global.{kind} v{k}, [x+{lane + size * k}];" for k in range(count))
    if space in (".shared", ".local"):
        text += f"st{space}.v4.b32 [{own}], {{0, 0, 0, 0}};"
    text += f"{opcode} [{own}], {vector};"
    if space in (".shared", ".local"):
        text += f"ld{space}.v4.b32 {whole}, [{own}]; st.global.v4.b32 [y+{lane}], {whole};"
    return text + "}\n"


@pytest.fixture(scope="module")
def moved():
    """X and Y after every access in one kernel."""
    constants = rng.integers(0, 256, 32 * SLOT, dtype=np.uint8)
    declared = f".const .align 16 .b8 numbers[512] = {{{', '.join(map(str, constants))}}};\n"
    body = (
        SLOTS.replace("off, t, 8", "off, t, 16")
        + ".shared .align 16 .b8 tile[512]; .local .align 16 .b8 stack[16];"
    )
    body += "".join(code(opcode, number) for number, opcode in enumerate(ACCESSES))
    x = rng.integers(0, 256, (len(ACCESSES), 32, SLOT), dtype=np.uint8)
    arguments = {"X": x, "Y": np.zeros_like(x)}
    text = module("test", ("X", "Y"), body).replace(".visible", declared + ".visible")
    assert launch(text, arguments, ("Y",), block=(32, 1, 1)).findings == ()
    return x, constants.reshape(32, SLOT), arguments["Y"]


@pytest.mark.parametrize("number", range(len(ACCESSES)), ids=ACCESSES)
def test_bytes_arrive(number, moved):
    """Bytes are extended to the register of 16 bits that they are loaded to."""
    x, constants, y = moved
    opcode = ACCESSES[number]
    kind, count, space = elements(opcode)
    size = BITS[kind] // 8
    source = constants if space == ".const" else x[number]
    expected = np.zeros_like(source)
    expected[:, : size * count] = source[:, : size * count]
    if opcode.startswith("ld") and size == 1:
        numbers = source[:, :count].view("i1" if kind == "s8" else "u1").astype("i2")
        expected[:, : 2 * count] = numbers.view("u1")
        expected[:, 2 * count :] = 0
    assert (y[number] == expected).all()


@pytest.mark.parametrize("opcode", PARAMETERS)
def test_parameters(opcode):
    """A parameter of its type; a vector is loaded from a struct."""
    kind, count, _ = elements(opcode)
    wide = max(32, BITS[kind])
    register = kind if kind in ("f32", "f64") else f"b{wide}"
    values = ", ".join(f"v{k}" for k in range(count))
    declared = f".param .{kind} B" if count == 1 else ".param .align 16 .b8 B[16]"
    body = f".reg .b64 y; .reg .{register} v<4>; ld.param.u64 y, [Y];"
    body += f"{opcode} {'{' + values + '}' if count > 1 else values}, [B];"
    body += "".join(f"st.global.{register} [y+{wide // 8 * k}], v{k};" for k in range(count))
    content = rng.integers(128, 255, 16, dtype=np.uint8)
    number = {"f": "f", "s": "i"}.get(kind[0], "u")
    given = {"B": content.tobytes()} if count > 1 else {"B": content.view(f"{number}{BITS[kind] // 8}")[0]}
    text = module("test", ("Y",), body).replace(".param .u64 Y", f"{declared}, .param .u64 Y")
    y = np.zeros(16, np.uint8)
    assert launch(text, {**given, "Y": y}, ("Y",), block=(1, 1, 1)).findings == ()
    if count > 1:
        assert (y[: 4 * count] == content[: 4 * count]).all()
    else:
        assert y.view(f"{number}{wide // 8}")[0] == given["B"]


REGISTERS = {
    "%clusterid.x": "block", "%nclusterid.x": 2, "%cluster_ctaid.x": 0, "%cluster_nctaid.x": 1,
    "%cluster_ctarank": 0, "%cluster_nctarank": 1, "%smid": 0, "%nsmid": 1, "%gridid": 0, "%nwarpid": 2,
    "%dynamic_smem_size": 48, "%total_smem_size": 128, "%lanemask_lt": "lanes below", "%warpid": "warp",
}  # fmt: skip


def test_special_registers():
    body = SLOTS.replace("off, t, 8", "off, t, 4") + ".reg .b32 d, e; .shared .b8 tile[20]; mov.u32 e, tile;"
    body += ".reg .b32 c; mov.u32 c, %ctaid.x; mul.wide.u32 off, c, 256; add.s64 y, y, off;"
    body += "".join(f"mov.u32 d, {name}; st.global.u32 [y+{512 * k}], d;" for k, name in enumerate(REGISTERS))
    arguments = {"X": np.zeros(1, np.uint32), "Y": np.zeros((len(REGISTERS), 2, 64), np.uint32)}
    text = module("test", ("X", "Y"), body)
    assert launch(text, arguments, ("Y",), (2, 1, 1), (64, 1, 1), dynamic_shared=48).findings == ()
    thread = np.arange(64)
    named = {"block": np.array([[0], [1]]), "lanes below": (1 << thread % 32) - 1, "warp": thread // 32}
    for (name, expected), got in zip(REGISTERS.items(), arguments["Y"]):
        assert (got == named.get(expected, expected)).all(), name


@pytest.mark.parametrize("clock, bits", [("clock", 32), ("clock64", 64), ("globaltimer", 64)])
def test_loops_that_wait_for_a_time_end(clock, bits):
    """Two readings side by side differ, and a thousand units pass in fewer rounds than that."""
    read = f"mov.u{bits} {{}}, %{clock};"
    body = SLOTS + f".reg .b{bits} a, b, c; .reg .b32 n; .reg .pred p; {read.format('a')} {read.format('b')}"
    body += f"mov.b32 n, 0; LOOP: {read.format('c')} sub.u{bits} c, c, a; add.u32 n, n, 1;"
    body += f"setp.lt.u{bits} p, c, 1000; @p bra LOOP; setp.gt.u{bits} p, b, a; selp.u32 n, n, 0, p;"
    body += "st.global.u32 [y], n;"
    arguments = {"X": np.zeros(32, np.uint64), "Y": np.zeros(32, np.uint64)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1)).findings == ()
    assert (arguments["Y"] > 100).all() and (arguments["Y"] < 1000).all()


def test_the_space_of_an_address():
    """Of generic addresses in global, shared and local memory."""
    body = SLOTS + ".shared .align 8 .b8 tile[8]; .local .align 8 .b8 stack[8];"
    body += ".reg .b64 a0, a1, a2; mov.u64 a0, x;"
    body += ".reg .b32 d; .reg .pred p; cvta.shared.u64 a1, tile; mov.u64 a2, stack; cvta.local.u64 a2, a2;"
    spaces = ("global", "shared", "local", "shared::cta")
    for number, (space, address) in enumerate((space, k) for space in spaces for k in range(3)):
        body += f"isspacep.{space} p, a{address}; selp.u32 d, 1, 0, p; st.global.b32 [y+{8 * number}], d;"
    arguments = {"X": np.zeros(1, np.uint64), "Y": np.zeros((4, 3), np.uint64)}
    assert launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(1, 1, 1)).findings == ()
    assert arguments["Y"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]
