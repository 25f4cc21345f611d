"""Each opcode of each line of `tir-schedules list --instructions`: what is known runs, what is refused is."""

import re
from pathlib import Path

import numpy as np
import pytest
from ptx_kernels import SLOTS, launch, module
from reference import meaning
from softfloat import FORMATS, NAN, decode

from tir_schedules.machines.cpu.catalogue import entries, expanded, lines_of_rows
from tir_schedules.machines.cpu.instructions import ROWS, row_of_opcode
from tir_schedules.machines.cpu.lowering import lower
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.ptx import BITS, UnsupportedInstruction
from tir_schedules.machines.cpu.signatures import Signature
from tir_schedules.machines.cpu.table import UNKNOWN

LANES = 64
LANE_FAMILIES = ("arithmetic", "integers", "bits", "selection", "conversion")
ENTRIES = entries()
LINES = lines_of_rows()
EXECUTED = [e for e in ENTRIES if e.family in LANE_FAMILIES and e.precision == "exact"]
rng = np.random.default_rng(20)


def edges(kind):
    """Bits of the numbers where a type goes wrong first, and some at random."""
    if kind == "pred":
        return [0, 1]
    if kind == "small":
        return [*range(-33, 34, 3), 1, 2, 31, 32]
    if kind in ("b16", "b32", "b64"):
        kind = f"u{kind[1:]}"
    bits = BITS[kind]
    if kind.endswith("x2"):
        halves = edges(kind[:-2])
        return [a | halves[(k * 7 + 3) % len(halves)] << 16 for k, a in enumerate(halves)]
    if kind in FORMATS:
        exponent_bits, mantissa_bits = FORMATS[kind]
        one = ((1 << exponent_bits - 1) - 1) << mantissa_bits
        infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        ulp = 1 << mantissa_bits
        special = [0, 1, ulp - 1, ulp, ulp + 1, one, one + 1, one - 1, one + ulp // 2, one + ulp + ulp // 4,
                   one - ulp, one + 7 * ulp + 3, infinity - 1, infinity, infinity + ulp // 2]  # fmt: skip
        near = [
            one + int(x) * ulp // 8 + int(y)
            for x, y in zip(rng.integers(-80, 80, 12), rng.integers(0, ulp // 8 + 1, 12))
        ]
        return [x | sign << bits - 1 for x in special + near for sign in (0, 1)]
    top = 1 << bits - 1
    small = [0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 100, 255]
    return [
        *small,
        top,
        top - 1,
        top + 1,
        2 * top - 1,
        2 * top - 2,
        *(int(x) % (2 * top) for x in rng.integers(0, 2**63, 12)),
    ]


KINDS = [
    "pred",
    "small",
    *(kind for kind in BITS if BITS[kind] >= 8 and kind not in ("b128", "e4m3x2", "e5m2x2")),
]
OPERANDS = {
    kind: [
        [int(x) & (1 << 64) - 1 for x in rng.permutation(np.array((edges(kind) * LANES)[:LANES], object))]
        for _ in range(4)
    ]
    for kind in KINDS
}


def register(kind):
    if kind in ("f32", "f64", "pred"):
        return kind
    return f"b{max(BITS[kind], 32) if BITS[kind] == 8 else BITS[kind]}"


def operand_type(kind):
    return "b32" if kind == "small" else register(kind)


def instruction(opcode, how, number):
    """PTX that loads the operands of an opcode, executes it, and stores the result."""
    names, lines = [], []
    results = how.result.split()
    to = "|".join(("d", "q")[: len(results)]) if results != ["pred", "pred"] else "p|q"
    lines.append(
        ".reg .pred p, q, s<4>; .reg .b32 w;"
        f".reg .{'b32' if results[0] == 'pred' else register(results[0])} d;"
    )
    for k, kind in enumerate(how.operands):
        names.append(f"o{k}")
        offset = 8 * LANES * (4 * KINDS.index(kind) + k)
        loaded = "b32" if kind == "pred" else operand_type(kind)
        if BITS.get(kind) == 8 and ".bf16." in opcode:  # which takes no wider register
            loaded = "b8"
        lines.append(f".reg .{loaded} o{k}; ld.global.{loaded} o{k}, [x+{offset}];")
        if kind == "pred":
            lines.append(f"setp.ne.u32 s{k}, o{k}, 0;")
            names[-1] = f"s{k}"
    names[3:3] = [how.tail] if how.tail else []
    to = "p" if results == ["pred"] else to
    lines.append(f"{opcode} {to}, {', '.join(names)};")
    at = 8 * LANES * number
    if results == ["pred"]:
        lines.append(f"selp.u32 d, 1, 0, p; st.global.b32 [y+{at}], d;")
    elif results == ["pred", "pred"]:
        lines.append(f"selp.u32 d, 1, 0, p; selp.u32 w, 2, 0, q; or.b32 d, d, w; st.global.b32 [y+{at}], d;")
    else:
        lines.append(f"st.global.{register(results[0])} [y+{at}], d;")
    if results == ["b32", "pred"]:
        lines.append(f"selp.u32 w, 1, 0, q; st.global.b32 [y+{at + 4}], w;")
    return "{" + " ".join(lines) + "}"


def differs(got, expected, kind):
    """Whether bits are not what a type's result should be."""
    if kind in ("f16x2", "bf16x2", "s16x2", "u16x2") and isinstance(expected, list):
        return any(differs(got >> 16 * k & 0xFFFF, part, kind[:-2]) for k, part in enumerate(expected))
    if isinstance(expected, str):
        return False
    if expected is NAN:
        return got & 0xFFFF != 0x7FFF if kind in ("f16", "bf16") else decode(got, kind) is not NAN
    bits = {"pred": 32, "pred pred": 32, "b32 pred": 64}.get(kind) or max(
        BITS[kind], 32 if BITS[kind] == 8 else 0
    )
    return got != int(expected) & (1 << bits) - 1


def kernel_of(known):
    """PTX that executes opcodes, given with their meanings, one after another."""
    numbered = enumerate(known.items())
    return module(
        "test",
        ("X", "Y"),
        SLOTS + "\n".join(instruction(opcode, how, number) for number, (opcode, how) in numbered),
    )


def executed(known):
    """X and Y after one kernel with these opcodes: a row of Y has the results of one."""
    arguments = {
        "X": np.array([OPERANDS[kind] for kind in KINDS], np.uint64),
        "Y": np.zeros((len(known), LANES), np.uint64),
    }
    assert launch(kernel_of(known), arguments, ("Y",), block=(LANES, 1, 1)).findings == ()
    return arguments


def wrong_results(opcodes):
    """Execute opcodes in one kernel: opcode -> operands, result and what it should be, for those that err."""
    known = {opcode: meaning(opcode) for opcode in opcodes}
    known = {opcode: how for opcode, how in known.items() if how}
    wrong = {}
    for (opcode, how), row in zip(known.items(), executed(known)["Y"].tolist()):
        for lane, got in enumerate(row):
            values = values_of(how, lane)
            if differs(got, how.of(*values), how.result):
                wrong[opcode] = values, got, how.of(*values)
    return wrong


def values_of(how, lane):
    """Operands of an opcode in a lane."""
    return [OPERANDS[kind][k][lane] & mask_of(kind) for k, kind in enumerate(how.operands)]


def mask_of(kind):
    return (1 << (32 if kind in ("small", "pred") else BITS[kind])) - 1


def sample(line):
    """All of a line's opcodes, or every seventh of many."""
    opcodes = list(expanded(line.opcodes))
    return opcodes[:: 7 if len(opcodes) > 20 else 1]


@pytest.fixture(scope="module")
def wrong():
    """Of the opcodes of all samples, which are executed at once, so that they are compiled at once."""
    return wrong_results(opcode for line in EXECUTED for opcode in sample(line))


@pytest.mark.parametrize("line", EXECUTED, ids=lambda line: line.opcodes[:60])
def test_results_are_exact(line, wrong):
    assert not [(opcode, wrong[opcode]) for opcode in sample(line) if opcode in wrong]


@pytest.mark.slow
def test_every_result_is_exact():
    assert not wrong_results(opcode for line in EXECUTED for opcode in expanded(line.opcodes))


def test_the_reference_knows_all_but_these():
    """Carries and moves have tests of their own; each of the other opcodes is held against numbers."""
    unknown = {
        opcode.split(".")[0] for line in EXECUTED for opcode in expanded(line.opcodes) if not meaning(opcode)
    }
    assert unknown == {"addc", "subc", "madc", "add", "sub", "mad", "mov", "cvta", "isspacep"}
    without = [
        o
        for line in EXECUTED
        for o in expanded(line.opcodes)
        if not meaning(o) and o[:3] in ("add", "sub", "mad")
    ]
    assert all(".cc" in opcode or opcode[3] == "c" for opcode in without)


# ---- refusals ---
REFUSED = [
    (line, opcode) for line in ENTRIES if line.precision == "refused" for opcode in expanded(line.opcodes)
]


@pytest.mark.parametrize("line, opcode", REFUSED, ids=[opcode for _, opcode in REFUSED])
def test_refusals_name_the_instruction(line, opcode):
    with pytest.raises(
        UnsupportedInstruction, match=f"^PTX line 7: the CPU machine does not know {re.escape(opcode)}"
    ) as error:
        lowered(opcode, *OPERANDS_OF_REFUSED.get(line.family, ()))
    if line.family == "refused":
        assert line.note in str(error.value)


OPERANDS_OF_REFUSED = {
    "memory": ("{a, a, a, a}", "[a]"),
    **dict.fromkeys(LANE_FAMILIES, ("a", "a", "a", "a")),
}


def lowered(opcode, *operands):
    """Lower one instruction, and write the C++ of its lanes."""
    text = module("test", (), f".reg .b64 a; .reg .pred p; {opcode} {', '.join(operands)};")
    kernel = parse(text).kernels["test"]
    for signature, line in lower(parse(text), kernel).lanes.items():
        Signature(signature, line).source()


ISA = """abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt
brx call clz clusterlaunchcontrol cnot copysign cos cp.async cp.reduce createpolicy cvt cvta discard
div dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix
ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem
nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set
setmaxnreg setp shf shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq
sured sust szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd
vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr
vsub vsub2 vsub4 wgmma wmma.load wmma.mma wmma.store xor"""
"""Every opcode of PTX ISA 9.0."""


def test_every_opcode_of_the_isa_is_in_the_table():
    listed = {opcode for line in ENTRIES for opcode in expanded(line.opcodes)}
    assert not [name for name in ISA.split() if not any(f"{o}.".startswith(f"{name}.") for o in listed)]


BY_FORM = {"[": "[a]", "#": "7"}


def test_opcodes_without_lines_have_tests_of_their_own():
    """But for those that nothing is executed of."""
    others = [path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)]
    tests = "".join(path.read_text() for path in others)
    for name, row in ROWS.items():
        if row.ours:
            continue
        if row.lower is None:
            lowered(name, *(BY_FORM.get(slot.form, "END; END:") for slot in row.slots if not slot.optional))
        elif row.known and name not in LINES:
            assert re.search(rf"\b{re.escape(name)}\b", tests), name


def test_an_opcode_of_no_list_is_refused():
    assert row_of_opcode("vfoo.u32") is UNKNOWN
    with pytest.raises(UnsupportedInstruction, match="^PTX line 7: the CPU machine does not know vfoo.u32$"):
        lowered("vfoo.u32", "a", "a")


def test_lines_stand_for_opcodes_of_their_row():
    assert LINES.keys() <= ROWS.keys()
    for name, lines in LINES.items():
        opcodes = [opcode for line in lines for opcode in expanded(line.opcodes)]
        strays = [
            opcode
            for opcode in opcodes
            if not f"{opcode}.".startswith(f"{name}.") or row_of_opcode(opcode) is not ROWS[name]
        ]
        assert not strays, (name, strays)
