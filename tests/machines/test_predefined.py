"""What PTX predefines (PTX ISA 9.0, 4.5.7 and 10): the warp's size wherever a number may stand, and special
registers, of which each is known, or refused by name with a reason."""

import numpy as np
import pytest
from ptx_kernels import SLOTS, launch, module

from tir_schedules.machines.cpu import UnsupportedInstruction

HEAD = SLOTS + ".reg .b32 a, b, c, e; .reg .b16 h; .reg .f32 f; .reg .b64 w; .reg .pred p;"
KNOWN = """tid.x tid.y tid.z tid.w ntid.x ntid.w laneid warpid nwarpid ctaid.x ctaid.w nctaid.x nctaid.w smid
nsmid gridid is_explicit_cluster clusterid.x clusterid.w nclusterid.x nclusterid.w cluster_ctaid.x
cluster_ctaid.w cluster_nctaid.x cluster_nctaid.w cluster_ctarank cluster_nctarank lanemask_eq
lanemask_le lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 globaltimer globaltimer_lo
globaltimer_hi envreg1 envreg2 total_smem_size dynamic_smem_size current_graph_exec
reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap""".split()
REFUSED = {
    "pm0": "profile on a GPU", "pm7": "profile on a GPU", "pm3_64": "profile on a GPU",
    "envreg0": "pass a parameter", "envreg31": "pass a parameter",
    "reserved_smem_offset_0": "declare a variable",
    "aggr_smem_size": "read %total_smem_size", "tid": "such as %tid.x", "cluster_nctaid": "%cluster_nctaid.x",
}  # fmt: skip


def first(body, before=""):
    """What a body leaves in d, the register that thread 1 stores."""
    arguments = {"X": np.arange(128, dtype=np.uint64) + 100, "Y": np.zeros(64, np.uint64)}
    text = module("test", ("X", "Y"), HEAD + f".reg .b32 d; {body} st.global.u32 [y], d;")
    text = text.replace(".visible", before + ".visible")
    assert launch(text, arguments, ("Y",), block=(64, 1, 1)).findings == ()
    return int(arguments["Y"][1])


PLACES = {
    "a number": ("mov.u32 d, WARP_SZ;", 32),
    "of 64 bits": ("mov.u64 w, WARP_SZ; cvt.u32.u64 d, w;", 32),
    "of 16 bits": ("mov.b16 h, WARP_SZ; cvt.u32.u16 d, h;", 32),
    "negated": ("mov.s32 d, -WARP_SZ;", 2**32 - 32),
    "a second operand": ("rem.u32 d, t, WARP_SZ;", 1),
    "compared": ("setp.lt.u32 p, t, WARP_SZ; selp.u32 d, WARP_SZ, 0, p;", 32),
    "an offset": ("ld.global.u32 d, [x+WARP_SZ];", 105),
    "part of a vector": ("mov.b64 w, {7, WARP_SZ}; shr.u64 w, w, 32; cvt.u32.u64 d, w;", 32),
    "stored": ("mov.u32 d, 9; .shared .b32 s[64]; st.shared.v2.u32 [s], {WARP_SZ, 3}; bar.sync 0; "
               "ld.shared.u32 d, [s];", 32),
    "threads of a barrier": ("mov.u32 d, 5; setp.ge.u32 p, t, 32; @p bra ON; bar.sync 1, WARP_SZ; ON:", 5),
    "a lane": ("shfl.sync.bfly.b32 d, t, 1, 31, -1; mov.u32 a, WARP_SZ; add.u32 d, d, a;", 32),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_the_size_of_a_warp(place):
    body, expected = PLACES[place]
    if place == "stored":
        body = body.replace("st.shared", "setp.eq.u32 p, t, 0; @p st.shared")
    assert first(body) == expected


def test_the_size_of_a_warp_in_declarations():
    values = ".global .b32 sizes[WARP_SZ] = {WARP_SZ, WARP_SZ};\n"
    assert first("ld.global.u32 d, [sizes+4];", values) == 32
    assert first("ld.global.u32 d, [sizes+124];", values) == 0


@pytest.mark.parametrize("name", KNOWN)
def test_special_registers_that_are_known(name):
    kind, to = ("u64", "w") if "64" in name or name in ("globaltimer", "current_graph_exec") else ("u32", "d")
    if name == "is_explicit_cluster":
        kind, to = "pred", "p"
    value = first(f"mov.u32 d, 0; mov.{kind} {to}, %{name};")
    assert value == 0 or not name.endswith(".w")


@pytest.mark.parametrize("name", REFUSED)
def test_special_registers_that_are_not_known(name):
    with pytest.raises(UnsupportedInstruction, match=rf"\(special register %{name}: .*{REFUSED[name]}"):
        first(f"mov.u32 d, %{name};")
