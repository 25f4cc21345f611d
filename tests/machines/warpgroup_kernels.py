"""PTX of products of warpgroups, and where their matrices lie in shared memory.

Of `wgmma` the layouts are what PTX ISA calls canonical, in pieces of 16 bytes.
"""

import numpy as np

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

SPANS = {0: 0, 128: 1, 64: 2, 32: 3}
"""Bytes of a swizzle -> the number that descriptors have for it."""

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
ROOM = 65536
"""Bytes of shared memory; A begins at 0."""

RIGHT_AT = 16384


def launch(
    text, arguments, outputs, threads=128, maps=(), params=None, count=False, given=(), watch=None,
    registers=0, **how,
):  # fmt: skip
    """Run an entry `k` whose parameters are the arguments, or those named, and then the tensor maps."""
    names = (*(arguments if params is None else params), *(one.name for one in maps))
    kernel = Kernel("test", text, "k", names, (1, 1, 1), (threads, 1, 1), "sm_90a", ROOM, maps=tuple(maps))
    binary = Binary(kernel, text, b"", Resources(registers, 0))
    return CpuMachine(**how).run(binary, arguments, outputs, count=count, given=given, watch=watch)


def entry(body, parameters=("X", "Y"), maps=(), directives=".maxnreg 168\n"):
    """A module with one kernel; `s` is dynamic shared memory, t the thread, x and y the parameters."""
    declared = [f".param .u64 {name}" for name in parameters]
    declared += [f".param .align 64 .b8 {name}[128]" for name in maps]
    loads = "".join(f"ld.param.u64 {name.lower()}, [{name}];\n" for name in parameters)
    registers = "".join(f".reg .b64 {name.lower()};\n" for name in parameters)
    return (
        ".version 8.5\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 s[];\n"
        f".visible .entry k(\n{','.join(declared)})\n{directives}{{\n{registers}"
        ".reg .b32 t, o, v<4>; .reg .b64 at, wide;\n"
        f".reg .pred p, q;\nmov.u32 t, %tid.x;\n{loads}{body}\nret;\n}}\n"
    )


FILL = f"""shl.b32 o, t, 4; cvt.u64.u32 wide, o; add.s64 at, x, wide; mov.u64 wide, s; cvt.u32.u64 v0, wide;
add.s32 o, o, v0; .reg .b64 begin; shr.u64 begin, wide, 4;
.reg .b32 w<4>, end; add.s32 end, v0, {ROOM};
MORE: ld.global.v4.b32 {{w0, w1, w2, w3}}, [at]; st.shared.v4.b32 [o], {{w0, w1, w2, w3}};
add.s64 at, at, 2048; add.s32 o, o, 2048; setp.lt.u32 p, o, end; @p bra MORE;
fence.proxy.async.shared::cta; bar.sync 0;
"""
"""128 threads copy X to shared memory, which begins at v0; begin: what that adds to a descriptor. A GPU keeps
1024 bytes before it for itself."""


def descriptor(start, leading=0, stride=0, span=0, base=0, more=0):
    return (
        (start & 0x3FFFF) >> 4
        | leading >> 4 << 16
        | stride >> 4 << 32
        | base << 49
        | SPANS[span] << 62
        | more
    )


class Layout:
    """A matrix of `rows` (columns of B) and 32 bytes of k. across: rows follow one another in memory.
    base: rows of 128 bytes from a multiple of the pattern to where the pattern begins."""

    def __init__(self, kind, rows, span, across, start, base=0):
        self.base = base
        self.kind, self.rows, self.span, self.across, self.start = kind, rows, span, across, start
        self.depth = 256 // BITS[kind]
        wide = max(1, span // 16)
        if across:
            atoms = -(-rows // (8 * wide))
            self.leading, self.stride = wide * 128 * 2, wide * 128
            if not span:
                self.leading, self.stride = 128 * atoms, 128
        else:
            self.leading, self.stride = (128 * (rows // 8), 128) if not span else (0, 8 * span)

    @property
    def descriptor(self):
        return descriptor(self.start, self.leading, self.stride, self.span, self.base)

    def addresses(self):
        """Byte of each element (row, k)."""
        size = BITS[self.kind] // 8
        row, k = np.meshgrid(np.arange(self.rows), np.arange(self.depth), indexing="ij")
        along, over = (row, k) if self.across else (k, row)
        piece, within = along * size // 16, along * size % 16
        if self.across and not self.span:
            at = piece * self.stride + over // 8 * self.leading + over % 8 * 16
        elif self.across:
            wide = self.span // 16
            at = (
                piece % wide * 16
                + piece // wide * self.leading
                + over // 8 * self.stride
                + over % 8 * self.span
            )
        elif not self.span:
            at = over // 8 * self.stride + over % 8 * 16 + piece * self.leading
        else:
            at = over // 8 * self.stride + over % 8 * self.span + piece * 16
        at = at + self.start
        lines = (at // 128 - self.base) % (self.span // 16) if self.span else 0
        return (at ^ (lines * 16)) + within

    def put(self, memory, patterns):
        """Write the bits of a matrix (rows, k) to shared memory."""
        size = BITS[self.kind] // 8
        addresses = self.addresses()
        for byte in range(size):
            memory[addresses + byte] = patterns.astype(np.uint64) >> np.uint64(8 * byte) & np.uint64(255)


def sums_of(kind, columns):
    """Names of the registers of the sums."""
    return [f"d{k}" for k in range(columns // (4 if kind == "f16" else 2))]


def product(opcode, left, right, signs=(), adds="p"):
    columns = int(opcode.partition("m64n")[2].partition("k")[0])
    kind = next(part for part in opcode.split(".")[5:] if part != "satfinite")
    sums = ", ".join(sums_of(kind, columns))
    tail = "".join(f", {value}" for value in signs)
    return f"{opcode} {{{sums}}}, {left}, {right}, {adds}{tail};\n"


def stores(count, kind="b32"):
    """Y[thread][register] = each register of the sums."""
    lines = [f"mul.wide.u32 wide, t, {4 * count}; add.s64 at, y, wide;"]
    return "\n".join([*lines, *(f"st.global.{kind} [at+{4 * k}], d{k};" for k in range(count))])


def loads(count, kind="b32"):
    """Each register of the sums = Y[thread][register]."""
    lines = [f"mul.wide.u32 wide, t, {4 * count}; add.s64 at, y, wide;"]
    return "\n".join([*lines, *(f"ld.global.{kind} d{k}, [at+{4 * k}];" for k in range(count))])


def fragments(matrix):
    """Sums (64, columns) -> (thread, register), of 32 bits each, as PTX ISA lays them out."""
    thread = np.arange(128)
    columns = matrix.shape[1]
    row = thread // 32 * 16 + thread % 32 // 4
    found = [matrix[row + 8 * (e // 2 % 2), e // 4 * 8 + thread % 4 * 2 + e % 2] for e in range(columns // 2)]
    return np.stack(found, 1)
