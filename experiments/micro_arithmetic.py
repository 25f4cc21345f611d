"""Probes of the arithmetic pipes, the tensor cores and the instruction caches: latency of a chain, and cycles
per instruction with many chains on many warps."""

from __future__ import annotations

from typing import Iterator

from micro_probes import Probe

CHAINS = 8
"""Independent ones of each warp when a rate is measured."""

WARPS = (4, 8, 16)
"""Of a block when a rate is measured: one, two and four for each part of an SM."""

INSTRUCTIONS = {
    "ffma": ("FFMA", "fma.rn.f32 {0}, {0}, fy, fz;", "%f"),
    "fadd": ("FADD", "add.rn.f32 {0}, {0}, fy;", "%f"),
    "fmul": ("FMUL", "mul.rn.f32 {0}, {0}, fy;", "%f"),
    "fmnmx": ("FMNMX", "max.f32 {0}, {0}, fy; min.f32 {0}, {0}, fz;", "%f"),
    "imad": ("IMAD", "mad.lo.u32 {0}, {0}, y, z;", "%r"),
    "imad.wide": ("IMAD.WIDE", "mov.b64 {{{1}, {3}}}, {0}; mad.wide.u32 {0}, {1}, y, {0};", "%d"),
    "imad.hi": ("IMAD.HI", "mul.hi.u32 {0}, {0}, y;", "%r"),
    "iadd3+lop3": ("LOP3", "add.u32 {0}, {0}, y; xor.b32 {0}, {0}, z;", "%r"),
    "lop3": ("LOP3", "lop3.b32 {0}, {0}, y, z, 0x1b;", "%r"),
    "shf": ("SHF", "shf.l.wrap.b32 {0}, {0}, y, z;", "%r"),
    "prmt": ("PRMT", "prmt.b32 {0}, {0}, y, z;", "%r"),
    "isetp+sel": ("SEL", "setp.lt.s32 %p0, {0}, y; selp.b32 {0}, y, z, %p0;", "%r"),
    "vimnmx": ("VIMNMX", "max.s32 {0}, {0}, y; min.s32 {0}, {0}, z;", "%r"),
    "hfma2": ("HFMA2", "fma.rn.f16x2 {0}, {0}, y, z;", "%r"),
    "hfma2.bf16": ("HFMA2", "fma.rn.bf16x2 {0}, {0}, y, z;", "%r"),
    "dfma": ("DFMA", "fma.rn.f64 {0}, {0}, gy, gz;", "%g"),
    "dadd": ("DADD", "add.rn.f64 {0}, {0}, gy;", "%g"),
    "mufu.ex2": ("MUFU", "ex2.approx.ftz.f32 {0}, {0};", "%f"),
    "mufu.rcp+fadd": ("MUFU", "rcp.approx.ftz.f32 {0}, {0}; add.rn.f32 {0}, {0}, fy;", "%f"),
    "mufu.rsq": ("MUFU", "rsqrt.approx.ftz.f32 {0}, {0};", "%f"),
    "mufu.tanh": ("MUFU", "tanh.approx.f32 {0}, {0};", "%f"),
    "div.rn": ("FCHK", "div.rn.f32 {0}, fz, {0};", "%f"),
    "sqrt.rn": ("MUFU", "sqrt.rn.f32 {0}, {0}; add.rn.f32 {0}, {0}, fy;", "%f"),
    "i2f+f2i": ("F2I", "cvt.rzi.s32.f32 {1}, {0}; cvt.rn.f32.s32 {0}, {1};", "%f"),
    "f2f.f64": ("F2F", "cvt.rn.f32.f64 {2}, {0}; cvt.f64.f32 {0}, {2};", "%g"),
    "f2fp+hadd2.f32": (
        "F2FP", "cvt.rn.f16x2.f32 {1}, {0}, fy; mov.b32 {{%h0, %h1}}, {1}; cvt.f32.f16 {0}, %h1;", "%f"
    ),
    "popc": ("POPC", "popc.b32 {0}, {0};", "%r"),
    "flo": ("FLO", "bfind.u32 {0}, {0};", "%r"),
    "brev": ("BREV", "brev.b32 {0}, {0}; add.u32 {0}, {0}, y;", "%r"),
    "shfl": ("SHFL", "shfl.sync.bfly.b32 {0}, {0}, 1, 31, -1;", "%r"),
    "redux": ("REDUX", "redux.sync.add.s32 {0}, {0}, -1;", "%r"),
    "vote": ("VOTE", "setp.lt.s32 %p0, {0}, y; vote.sync.ballot.b32 {0}, %p0, -1;", "%r"),
    "idp": ("IDP", "dp4a.u32.u32 {0}, {0}, y, z;", "%r"),
}  # fmt: skip
"""Name -> what SASS calls it, PTX of one copy ({0}: the register of its chain), kind of that register."""

SPARE = 64
"""Number of the first spare register of a kind."""

TWICE = ("fmnmx", "vimnmx", "f2f.f64")
"""Those that stand twice in a copy."""

NEEDS = {"redux": "sm_80", "hfma2.bf16": "sm_80", "mufu.tanh": "sm_75"}
SLOW = ("dfma", "dadd", "mufu", "div", "sqrt", "i2f", "f2f", "popc", "flo", "brev", "redux", "shfl")


def filled(template: str, kind: str, chain: int) -> str:
    """PTX of one copy."""
    spare = (f"%r{SPARE + chain}", f"%f{SPARE + chain}", f"%r{SPARE + CHAINS + chain}")
    return "    " + template.format(f"{kind}{chain}", *spare)


def setup_of(kind: str, chains: int) -> str:
    """PTX that gives the chains' registers values that nothing knows before."""
    make = {
        "%f": "add.rn.f32 %f{0}, fy, {1};",
        "%r": "add.u32 %r{0}, y, {0};",
        "%d": "cvt.u64.u32 %d{0}, y; add.u64 %d{0}, %d{0}, {0};",
        "%g": "add.rn.f64 %g{0}, gy, {2};",
    }[kind]
    return "\n".join(
        "    " + make.format(n, f"0f{0x3F800000 + (n << 16):08X}", f"0d{0x3FF0000000000000 + (n << 40):016X}")
        for n in range(chains)
    )


def arithmetic() -> Iterator[Probe]:
    """Latency and rates of INSTRUCTIONS."""
    for name, (opcode, template, kind) in INSTRUCTIONS.items():
        needs = NEEDS.get(name, "sm_75")
        short = name.startswith(SLOW)
        per_copy = 2 if name in TWICE else 1
        yield Probe(
            f"{name} latency", "latency", opcode, lambda i, t=template, k=kind: filled(t, k, 0),
            setup_of(kind, 1), sink=(f"{kind}0",), copies=(16, 48) if short else (32, 96), needs=needs,
            per_copy=per_copy,
        )  # fmt: skip
        chains = 4 if kind in ("%g", "%d") else CHAINS
        for warps in WARPS:
            yield Probe(
                f"{name} rate, {warps} warps", "rate", opcode,
                lambda i, t=template, k=kind, c=chains: filled(t, k, i % c), setup_of(kind, chains),
                sink=tuple(f"{kind}{n}" for n in range(chains)), copies=(16, 48) if short else (32, 96),
                warps=warps, needs=needs, per_copy=per_copy,
            )  # fmt: skip


def mixed() -> Iterator[Probe]:
    """Two pipes at once: whether an instruction of another pipe is free beside FFMA. One warp in a sub-core
    keeps what the operand cache holds; several may lose it to each other."""
    pairs = {
        "ffma+lop3": "fma.rn.f32 %f{0}, %f{0}, fy, fz; lop3.b32 %r{0}, %r{0}, y, z, 0x1b;",
        "ffma+imad": "fma.rn.f32 %f{0}, %f{0}, fy, fz; mad.lo.u32 %r{0}, %r{0}, y, z;",
        "ffma+hfma2": "fma.rn.f32 %f{0}, %f{0}, fy, fz; fma.rn.f16x2 %r{0}, %r{0}, y, z;",
        "imad+lop3": "mad.lo.u32 %r{0}, %r{0}, y, z; lop3.b32 %r{1}, %r{1}, y, z, 0x1b;",
        "lop3+mufu": "lop3.b32 %r{0}, %r{0}, y, z, 0x1b; ex2.approx.ftz.f32 %f{0}, %f{0};",
        "imad+shf of one register": (
            "mad.lo.u32 %r{0}, %r{0}, %r{0}, %r{0}; shf.l.wrap.b32 %r{1}, %r{1}, %r{1}, 7;"
        ),
    }
    for name, template, warps in ((*each, warps) for warps in (16, 4) for each in pairs.items()):
        setup = setup_of("%f", CHAINS) + setup_of("%r", CHAINS).replace("%r", "\n%r").replace("\n%r", "%r")
        more = "\n".join(f"    add.u32 %r{SPARE + n}, z, {n};" for n in range(CHAINS))
        yield Probe(
            f"{name} rate" + (", 4 warps" if warps == 4 else ""), "mixed rate", name.split("+")[0].upper(),
            lambda i, t=template: "    " + t.format(i % CHAINS, SPARE + i % CHAINS), f"{setup}\n{more}",
            sink=tuple(f"%{k}{n}" for k in "fr" for n in range(CHAINS))
            + tuple(f"%r{SPARE + n}" for n in range(CHAINS)),
            warps=warps,
        )  # fmt: skip


PRODUCTS = {
    "mma.m16n8k16.f32.f16": ("HMMA.16816.F32", "m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, "sm_80"),
    "mma.m16n8k16.f16.f16": ("HMMA.16816.F16", "m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2, "sm_80"),
    "mma.m16n8k16.f32.bf16": ("HMMA.16816.F32.BF16", "m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2, "sm_80"),
    "mma.m16n8k8.f32.f16": ("HMMA.1688.F32", "m16n8k8.row.col.f32.f16.f16.f32", 4, 2, 1, "sm_75"),
    "mma.m16n8k8.f16.f16": ("HMMA.1688.F16", "m16n8k8.row.col.f16.f16.f16.f16", 2, 2, 1, "sm_75"),
    "mma.m16n8k8.f32.tf32": ("HMMA.1688.F32.TF32", "m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2, "sm_80"),
    "mma.m16n8k4.f32.tf32": ("HMMA.1684.F32.TF32", "m16n8k4.row.col.f32.tf32.tf32.f32", 4, 2, 1, "sm_80"),
    "mma.m16n8k32.s32.s8": ("IMMA.16832", "m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, "sm_80"),
    "mma.m8n8k4.f64": ("DMMA.8x8x4", "m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1, "sm_80"),
}  # fmt: skip
"""Name -> SASS, PTX, registers of the sums, of A and of B, oldest architecture."""


def product(form: str, sums: int, a: int, b: int, chain: int) -> str:
    """PTX of one mma of a chain; A is in %r100 and the following, B in %r110."""
    kind = "%g" if "f64" in form else "%f" if form.endswith("f32") else "%r"

    def names(kind: str, first: int, count: int) -> str:
        listed = [f"{kind}{first + n}" for n in range(count)]
        return f"{{{', '.join(listed)}}}"

    c = names(kind, chain * sums, sums)
    if kind == "%g":
        return f"    mma.sync.aligned.{form} {c}, {{gy}}, {{gz}}, {c};"
    return f"    mma.sync.aligned.{form} {c}, {names('%r', 100, a)}, {names('%r', 110, b)}, {c};"


def products() -> Iterator[Probe]:
    """mma: latency of a chain of sums; cycles with more chains and warps."""
    for name, (opcode, form, sums, a, b, needs) in PRODUCTS.items():
        given = "\n".join(f"    add.u32 %r{n}, y, {n};" for n in (*range(100, 100 + a), *range(110, 110 + b)))
        kind = "%g" if "f64" in form else "%f" if form.endswith("f32") else "%r"
        for chains, warps in ((1, 1), (2, 1), (4, 1), (1, 4), (2, 4), (4, 4), (4, 8), (4, 16)):
            title = "latency" if chains == warps == 1 else f"rate, {chains} chains, {warps} warps"
            yield Probe(
                f"{name} {title}", "tensor", opcode,
                lambda i, f=form, s=sums, a=a, b=b, c=chains: product(f, s, a, b, i % c),
                f"{given}\n{setup_of(kind, chains * sums)}",
                sink=tuple(f"{kind}{n}" for n in range(chains * sums)), copies=(16, 48), warps=warps,
                needs=needs, notes={"chains": chains},
            )  # fmt: skip


def instruction_caches() -> Iterator[Probe]:
    """FFMA in bodies of growing size; copies are instructions of 16 bytes."""
    for warps in (1, 4, 8, 16):
        for kib in (8, 16, 24, 32, 64, 96, 128, 160, 256, 384):
            copies = kib * 64
            yield Probe(
                f"body of {kib} KiB, {warps} warps", "instruction cache", "FFMA",
                lambda i: filled(INSTRUCTIONS["ffma"][1], "%f", i % CHAINS), setup_of("%f", CHAINS),
                sink=tuple(f"%f{n}" for n in range(CHAINS)), copies=(64, copies), warps=warps, turns=(3, 9),
                notes={"kib": kib},
            )  # fmt: skip


def probes() -> Iterator[Probe]:
    yield from arithmetic()
    yield from mixed()
    yield from products()
    yield from instruction_caches()
