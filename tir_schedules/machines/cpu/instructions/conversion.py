"""Moves and conversions that each lane does for itself: C++ over the helpers of core/numeric.h and
core/conversion.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import IntEnum

from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lane_code import HALVES, STORAGE, LaneCode, is_float, raw, rounding
from tir_schedules.machines.cpu.lines import COPIES, FRACTIONS, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, Instruction, Opcode, SpecialRegister, Vector
from tir_schedules.machines.cpu.table import Lowered, Row, Spread, Zeros, by_itself, lane

FLOATS_OF_8 = {"e4m3x2": "3, 7", "e5m2x2": "2, 15"}
"""Bits of the mantissa and the bias of the exponent."""

LARGEST = {"f16": "65504.f", "bf16": "0x1.fep127f", "tf32": "0x1.ffcp127f", "f16x2": "", "bf16x2": ""}
TF32_ROUNDINGS = {"rna": "round_to_tf32", "rn": "round_to_tf32_even", "rz": "truncate_to_tf32"}
INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def move(code: LaneCode) -> None:
    to, source, kind = code.operand(0), code.operand(1), raw(code.instruction.type)
    if isinstance(to, Vector):
        width = BITS[kind] // len(to.items)
        for k, item in enumerate(to.items):
            code.write(f"(u{width})({code.read(1, kind)} >> {width * k})", f"b{width}", item)
    elif isinstance(source, Vector):
        width = BITS[kind] // len(source.items)
        parts = [code.value(item, f"b{width}") for item in source.items]
        shifted = (f"(u{BITS[kind]}){part} << {width * k}" for k, part in enumerate(parts))
        code.write(" | ".join(shifted), kind)
    else:
        code.write(code.read(1, kind), kind)


def convert_address(code: LaneCode) -> None:
    i = code.instruction
    window = {"shared": "SHARED_WINDOW", "local": "LOCAL_WINDOW"}.get(i.space)
    symbol = "-" if i.has("to") else "+"
    code.write(f"{code.read(1, 'u64')} {symbol} {window}" if window else code.read(1, "u64"), "u64")


def convert(code: LaneCode) -> None:
    i = code.instruction
    if len(i.types) != 2:
        raise i.unsupported()
    to, source = i.types
    if any(kind in FLOATS_OF_8 for kind in i.types):
        return convert_float8(code)
    if i.has("satfinite") and to not in LARGEST or i.has("relu") and not (to in LARGEST and source == "f32"):
        raise i.unsupported("limits")
    if to in ("f16x2", "bf16x2"):
        high, low = (narrowed(i, code.read(k, "f32"), "f32", to[:-2]) for k in (1, 2))
        return code.write(f"pack({low}, {high})", "b32")
    value = code.read(1, source)
    if source in HALVES:
        value, source = f"{HALVES[source][0]}({value})", "f32"
    if not is_float(source):
        return convert_integer(code, value, source)
    integral = next((INTEGRAL[part] for part in i.parts if part in INTEGRAL), None)
    if to[0] in "us":
        value = f"std::{integral}((f64){value})" if integral else value
        low, nan = least_of(to), 1 << (BITS[to] - 1) if i.types[1] == "f64" or BITS[to] == 64 else 0
        high = low + 2 ** BITS[to] - 1
        return code.write(f"to_integer<{STORAGE[to]}>({value}, {float(low)!r}, {float(high)!r}, {nan}u)", to)
    code.write(narrowed(i, f"std::{integral}({value})" if integral else value, source, to), to)


def least_of(kind: str) -> int:
    return 0 if kind[0] == "u" else -(2 ** (BITS[kind] - 1))


def fits(source: str, to: str) -> bool:
    """Whether each integer of one type is one of another."""
    low, high = least_of(source), least_of(source) + 2 ** BITS[source]
    return least_of(to) <= low and high <= least_of(to) + 2 ** BITS[to]


def convert_integer(code: LaneCode, value: str, source: str) -> None:
    i, to = code.instruction, code.instruction.types[0]
    if to[0] in "us":
        if i.has("sat"):
            if fits(i.types[1], to):
                raise i.unsupported(NEVER_LIMITED)
            low = least_of(to)
            value = f"within({value}, {low if low > -(2**63) else 'INT64_MIN'}, {low + 2 ** BITS[to] - 1}u)"
        return code.write(f"({STORAGE[to]})({value})", to)
    if i.has("sat"):
        raise i.unsupported("of an integer")
    if to in HALVES or rounding(i) is not None:
        value, source = (f"(quad){value}", "quad") if BITS[source] == 64 else (f"(f64){value}", "f64")
    code.write(narrowed(i, value, source, to), to)


def narrowed(i: Instruction, value: str, source: str, to: str) -> str:
    """C++ of a number as another float type, rounded once. source: its C++ type."""
    mode = rounding(i)
    if i.has("sat"):
        value = f"float_min(float_max({value}, {source}(0)), {source}(1))"
    if i.has("relu"):
        value = f"rectify({value})"
    if to == "tf32":
        value = f"{TF32_ROUNDINGS[i.choice(list(TF32_ROUNDINGS))]}({value})"
        return f"limited({value}, {LARGEST[to]})" if i.has("satfinite") else value
    if i.has("rna"):
        raise i.unsupported("rounding")
    if to in HALVES:
        widen, narrow = HALVES[to]
        if mode is not None:
            exact = f"round_to_odd<f64>({value})" if source == "quad" else f"(f64){value}"
            half = f"directed_half<{widen}, {narrow}>({exact}, {mode})"
        else:
            half = f"{narrow}({value if source == 'f32' else f'round_to_odd({value})'})"
        return f"{narrow}(limited({widen}({half}), {LARGEST[to]}))" if i.has("satfinite") else half
    if mode is None:
        return f"({STORAGE[to]})({value})"
    exact = value if source == "quad" else f"(f64){value}"
    return f"round_directed<{to}>({exact}, {mode})"


def convert_float8(code: LaneCode) -> None:
    """Two 8-bit floats from or to float32 or halves; the first operand is the upper one."""
    i = code.instruction
    to, source = i.types
    if not i.has("rn") or i.has("satfinite") != (to in FLOATS_OF_8) or i.has("sat") or i.has("ftz"):
        raise i.unsupported("rounding")
    if to == "f16x2":
        parts = (f"from_float8<{FLOATS_OF_8[source]}>({code.read(1, 'b16')} >> {k})" for k in (0, 8))
        form = "float_to_half(rectify({}))" if i.has("relu") else "float_to_half({})"
        low, high = map(form.format, parts)
        return code.write(f"pack({low}, {high})", "b32")
    if source not in ("f32", "f16x2"):
        raise i.unsupported("types")
    values = [code.read(2), code.read(1)] if source == "f32" else code.halves(1)
    narrow = f"to_float8<{FLOATS_OF_8[to]}>({{}}, {str(i.has('relu')).lower()})"
    low, high = map(narrow.format, values)
    code.write(f"(u16)({low} | {high} << 8)", "b16")


def pack_integers(code: LaneCode) -> None:
    """Two integers as narrower ones; of 8 bits they become the low half, below the low half of a third."""
    i = code.instruction
    to, *others = i.types
    bits = BITS[to]
    if not i.has("sat") or bits not in (8, 16) or others != ["s32", "b32"][: 16 // bits]:
        raise i.unsupported("types")
    low = least_of(to)
    a, b = (f"(u{bits})within({code.read(k, 's32')}, {low}, {low + 2**bits - 1})" for k in (1, 2))
    upper = f"| {code.read(3, 'u32')} << 16" if bits == 8 else ""
    code.write(f"{b} | (u32){a} << {bits} {upper}", "u32")


LaunchRegister = IntEnum(
    "LaunchRegister",
    "CLOCK CLOCK64 CLOCK_HI GLOBALTIMER GLOBALTIMER_LO GLOBALTIMER_HI NWARPID DYNAMIC_SMEM_SIZE"
    " TOTAL_SMEM_SIZE CLUSTERID_X CLUSTERID_Y CLUSTERID_Z NCLUSTERID_X NCLUSTERID_Y NCLUSTERID_Z"
    " CLUSTER_CTAID_X CLUSTER_CTAID_Y CLUSTER_CTAID_Z CLUSTER_NCTAID_X CLUSTER_NCTAID_Y CLUSTER_NCTAID_Z"
    " CLUSTER_CTARANK CLUSTER_NCTARANK IS_EXPLICIT_CLUSTER",
    start=0,
)
"""Special registers that change while a warp runs, or that only a launch knows."""

READ_BY_CORE = {re.sub("_(?=[XYZ]$)", ".", one.name).lower(): one for one in LaunchRegister}

ReadSpecial = micro_op(
    "ReadSpecial", "special", "LaunchRegister which; Lanes result; Constant bytes static_shared"
)
"""bytes: of the result; static_shared: of the kernel's static shared memory."""


def move_or_read_clock(low: Lowering, i: Instruction) -> Lowered:
    """A register that changes while the warp runs, or that only a launch knows, is read by the core."""
    source = i.operands[-1]
    if not isinstance(source, SpecialRegister) or source.name not in READ_BY_CORE:
        return by_itself(low, i)
    which, size = READ_BY_CORE[source.name], BITS[i.type] // 8
    how = dict(which=which, bytes=size, static_shared=low.kernel.shared_bytes)
    return [ReadSpecial(low, i, **how, result=i.operands[0])]


def zeros_of_source(i: Instruction, zeros: Zeros) -> int:
    return zeros(i.operands[1])


def zeros_of_converted(i: Instruction, zeros: Zeros) -> int:
    return zeros(i.operands[1]) if i.type[0] in "usb" else 0


def pipe_of_conversion(opcode: Opcode) -> str:
    """Integers and halves are converted by byte permutes, HADD2, I2FP and F2FP; the rest by F2F, F2I, I2F and
    FRND."""
    if len(opcode.types) != 2:
        return "xu"
    to, source = opcode.types
    whole, narrow = source[0] in "us", max(BITS[to], BITS[source]) <= 32
    if to[0] in "us":
        return "alu" if whole else "xu"
    if source in HALVES and to == "f32":
        return "fma"
    return "alu" if narrow and (whole or to != source) else "xu"


NEVER_LIMITED = "as ptxas does, where each value fits: leave out .sat"
NARROW_FLOATS = "8-bit floats are the narrowest that are known"
TIME = "of %clock, %clock64 and %globaltimer: the instructions that the warp has issued in this block"
ROUND, TO_WHOLE = "{.rn,.rz,.rm,.rp}", "{.rni,.rzi,.rmi,.rpi}"
WHOLE = "{u8,s8,u16,s16,u32,s32,u64,s64}"


def saturating(fitting: bool) -> str:
    """Opcodes of .sat between integers whose values all fit, or those where some do not."""
    kinds = WHOLE.strip("{}").split(",")
    sources = {to: [kind for kind in kinds if fits(kind, to) == fitting] for to in kinds}
    return " ".join(f"cvt.sat.{to}.{{{','.join(found)}}}" for to, found in sources.items())


SPACES = "to global shared shared::cta local const"
LIMITS = "rn rna rm rp rz rni rzi rmi rpi ftz sat satfinite relu"
MOVE = lane(move, "=d{}, a{}", mix="move", spread=Spread.PARTS, zeros=zeros_of_source)

ROWS: dict[str, Row] = {
    "mov": replace(MOVE, lower=move_or_read_clock),
    "cvta": lane(convert_address, "=d, a:u64", SPACES, mix="move", zeros=zeros_of_source),
    "cvt": lane(
        convert, "=d, a, b?", LIMITS, mix="convert", pipe=pipe_of_conversion, zeros=zeros_of_converted
    ),
    "cvt.pack": lane(pack_integers, "=d, a, b, c:b32?", "sat", mix="convert", pipe="alu"),
}

LINES = (
    exact("mov.{pred,b16,b32,b64,b128,u16,s16,u32,s32,u64,s64,f32,f64}", COPIES),
    modelled("mov.{u32,u64}", TIME),
    exact("cvta{,.to}.{global,shared,shared::cta,local,const}.u64", COPIES),
    exact(f"cvt.{WHOLE}.{WHOLE}"),
    exact(saturating(False)),
    refusal(saturating(True), NEVER_LIMITED),
    exact(f"cvt{TO_WHOLE}.{WHOLE}.{{f16,f32,f64}} cvt{TO_WHOLE}.ftz.{{s32,u64}}.f32", FRACTIONS),
    exact(f"cvt{ROUND}.{{f16,f32,f64}}.{WHOLE}", FRACTIONS),
    exact(f"cvt{TO_WHOLE}{{.f16.f16,.f32.f32,.f64.f64,.ftz.f32.f32,.sat.f32.f32}}", FRACTIONS),
    exact(f"cvt{ROUND}{{,.sat}}.f16.{{f32,f64}} cvt{ROUND}{{,.ftz}}{{,.sat}}.f32.f64", FRACTIONS),
    exact("cvt{,.sat}.{f32,f64}.f16 cvt{,.ftz}{,.sat}.f64.f32 cvt.ftz{,.sat}.f32.f16", FRACTIONS),
    exact("cvt{.rn,.rz}{,.relu}.{f16x2,bf16x2,bf16,f16}.f32 cvt.rna.tf32.f32", FRACTIONS, 80),
    exact("cvt{.rm,.rp}.bf16.f32 cvt.f32.bf16", FRACTIONS, 80),
    exact(f"cvt{ROUND}.bf16.{WHOLE} cvt{TO_WHOLE}.{{s32,u64}}.bf16 cvt{ROUND}.bf16.f64", FRACTIONS, 90),
    exact(
        "cvt{.rn,.rz}{,.relu}.tf32.f32 cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.{f32,f16x2}", FRACTIONS, 89
    ),
    exact("cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}", FRACTIONS, 89),
    refusal("cvt.rn.satfinite.{e2m1x2,e2m3x2,e3m2x2}.f32 cvt.rz.ue8m0x2.f32", NARROW_FLOATS, 100),
    refusal("cvt.rs.satfinite.{e4m3x4,e5m2x4}.f32", NARROW_FLOATS, 100),
    exact("cvt.pack.sat.{u16,s16}.s32 cvt.pack.sat.{u8,s8}.s32.b32"),
    refusal("cvt.pack.sat.{u4,s4}.s32.b32", "pack bytes, and put these together with shifts"),
)
