"""Moves and conversions that each lane does for itself: C++ over the helpers of core/numeric.h and
core/conversion.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.forms import Form, Spread, Zeros, lane
from tir_schedules.machines.cpu.lane_code import HALVES, STORAGE, LaneCode, is_float, raw, rounding
from tir_schedules.machines.cpu.ptx import BITS, Instruction, Vector

INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def move(code: LaneCode) -> None:
    to, source, kind = code.operand(0), code.operand(1), raw(code.instruction.type)
    if isinstance(to, Vector):
        width = BITS[kind] // len(to.items)
        for k, item in enumerate(to.items):
            code.write(f"(u{width})({code.read(1, kind)} >> {width * k})", f"b{width}", item)
    elif isinstance(source, Vector):
        width = BITS[kind] // len(source.items)
        parts = (
            f"(u{BITS[kind]}){code.value(item, f'b{width}')} << {width * k}"
            for k, item in enumerate(source.items)
        )
        code.write(" | ".join(parts), kind)
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
    mode, integral = rounding(i), next((INTEGRAL[part] for part in i.parts if part in INTEGRAL), None)
    if mode is not None and to.removesuffix("x2") in HALVES:
        raise i.unsupported("directed rounding to half")
    if i.has("rna") != (to == "tf32"):
        raise i.unsupported("rounding")
    if to in ("f16x2", "bf16x2"):
        narrow = HALVES[to[:-2]][1]
        return code.write(f"pack({narrow}({code.read(2, 'f32')}), {narrow}({code.read(1, 'f32')}))", "b32")
    value = code.read(1, source)
    nan = 1 << (BITS[to] - 1) if source == "f64" or BITS[to] == 64 else 0
    if source in HALVES:
        value, source = f"{HALVES[source][0]}({value})", "f32"
    if is_float(source) and to[0] in "us":
        value = f"std::{integral}((f64){value})" if integral else value
        low = 0 if to[0] == "u" else -(2 ** (BITS[to] - 1))
        high = low + 2 ** BITS[to] - 1
        return code.write(f"to_integer<{STORAGE[to]}>({value}, {float(low)!r}, {float(high)!r}, {nan}u)", to)
    if not is_float(source) and (i.has("sat") or to == "bf16" and BITS[source] == 64):
        raise i.unsupported("of an integer")
    if not is_float(source) and to[0] in "us":
        return code.write(f"({STORAGE[to]})({value})", to)
    if integral:
        value = f"std::{integral}({value})"
    if mode is not None:
        if to != "f32" or BITS[source] == 64 and not is_float(source):
            raise i.unsupported("directed rounding")
        value = f"round_directed((f64){value}, {mode})"
    if i.has("sat"):
        value = f"float_min(float_max({value}, {STORAGE[source]}(0)), {STORAGE[source]}(1))"
    if to in HALVES:
        value = f"{HALVES[to][1]}({f'round_to_odd({value})' if source != 'f32' else value})"
    elif to == "tf32":
        value = f"round_to_tf32({value})"
    else:
        value = f"({STORAGE[to]})({value})"
    code.write(value, to)


def zeros_of_source(i: Instruction, zeros: Zeros) -> int:
    return zeros(i.operands[1])


def zeros_of_converted(i: Instruction, zeros: Zeros) -> int:
    return zeros(i.operands[1]) if i.type[0] in "usb" else 0


FORMS: dict[str, Form] = {
    "mov": lane(move, mix="move", spread=Spread.PARTS, zeros=zeros_of_source),
    "cvta": lane(
        convert_address,
        "to global shared local const",
        mix="move",
        zeros=zeros_of_source,
        operand_types={1: "u64"},
    ),
    "cvt": lane(convert, "rn rna rm rp rz rni rzi rmi rpi ftz sat", mix="convert", zeros=zeros_of_converted),
}
