"""Instructions of PTX ISA 9.0 that the machine refuses by name, with what would be right instead."""

from __future__ import annotations

from tir_schedules.machines.cpu.table import Row, refused

VIDEO = "write it with prmt, bfe and integer arithmetic"
TEXTURES = "textures: read the array through a pointer, with __ldg or a plain load"
SURFACES = "surfaces: write the array through a pointer"
CLUSTER = "leave it out: blocks are those of the launch"
MAPS = "tensor maps are those of the launch: give the kernel another one"
REDUCE = "add up in registers, and use red or atom"
STACK = "leave alloca to nvcc, which frees it at the function's end"
SM_100 = "needs sm_100: use mma.sync"

REFUSED = {
    **{name: (VIDEO, 0) for name in "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset".split()},
    **{f"v{name}{parts}": (VIDEO, 0) for name in "add sub avrg min max set".split() for parts in (2, 4)},
    **{name: (TEXTURES, 0) for name in "tex tld4 txq istypep".split()},
    **{name: (SURFACES, 0) for name in "suld sust sured suq".split()},
    **{name: (STACK, 0) for name in "stacksave stackrestore".split()},
    "red.async": ("use red.shared::cluster, and arrive at the mbarrier", 90),
    "clusterlaunchcontrol": (CLUSTER, 100),
    "cp.reduce": (REDUCE, 90),
    "tensormap": (MAPS, 90),
    "multimem": ("there is one GPU: use ld, st and red", 90),
    "mma.sp": ("write the zeros of the sparse matrix out, and use mma", 80),
    "mma.sp::ordered_metadata": ("write the zeros of the sparse matrix out, and use mma", 80),
    "tcgen05": (SM_100, 100),
}
"""Opcode, or the first parts of it -> what would be right instead, and the oldest GPU that has it."""

ROWS: dict[str, Row] = {name: refused(remedy, since) for name, (remedy, since) in REFUSED.items()}
