"""Twins on Hopper as nvcc and ptxas see them: sums in registers, products side by side, the instructions that
each is about."""

import re

import pytest
from hopper_twins import TWINS, twin
from layers import layers

from tir_schedules.compiler.nvcc import check_products, compile_kernel, compile_kernels
from tir_schedules.compiler.sass import disassemble
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Resources
from tir_schedules.workloads.half_gemm import HalfGemm

SHAPE = (1000, 1416, 520)
KINDS = {
    "nt half": ("nt", "float16"),
    "nn float": ("nn", "float32"),
    "nt float to half": ("nt", "float32", "float16", "float16"),
    "nn bfloat16": ("nn", "float32", "bfloat16", "bfloat16"),
}
CONFIGS = {
    "": {},
    "256x256": {"BM": 256, "STAGES": 3},
    "192x256": {"BM": 192, "CONSUMERS": 3, "STAGES": 3},
    "128x128": {"BN": 128},
}
"""Of 256x256 the sums are halves, and the tile of C has no room beside them."""


def gemm(kind, aligned=True):
    layout, accumulate, *others = KINDS[kind]
    dtype, output = (others or ("float16", ""))[:2]
    shape = SHAPE if aligned else (1001, 1417, 521)
    return HalfGemm(*shape, layout=layout, accumulate=accumulate, dtype=dtype, output=output)


def cases():
    """Twin, kind, configuration: those that can be."""
    for name, by_map in TWINS.items():
        for kind in KINDS:
            for config in CONFIGS:
                whole = config != "256x256" or kind == "nt half" and "C" not in by_map
                room = kind != "nn float" or "C" not in by_map
                producer = config != "192x256" or name not in ("wgmma", "wgmma_async", "tma")
                if whole and room and producer and (config != "192x256" or "C" not in by_map):
                    yield name, kind, config


SHORT = [(name, "nt half", "") for name in ("wgmma", "tma")] + [
    ("wgmma_async", "nn bfloat16", ""), ("warp_specialized", "nn float", ""),
    ("persistent", "nt float to half", ""), ("tma_store", "nt float to half", ""),
    ("cluster", "nn bfloat16", ""),
]  # fmt: skip
"""Compiled once for all tests here."""

each_twin = pytest.mark.parametrize("name, kind, config", SHORT, ids=[" ".join(case) for case in SHORT])


@pytest.fixture(scope="module")
def binaries():
    made = compile_kernels(twin(name, gemm(kind), **CONFIGS[config]) for name, kind, config in SHORT)
    return dict(zip(SHORT, made))


@layers("name, kind, config", SHORT, list(cases()))
def test_sums_stay_in_registers_and_products_do_not_wait_for_each_other(name, kind, config):
    """compile_kernel refuses the kernel otherwise."""
    made = compile_kernel(twin(name, gemm(kind), **CONFIGS[config]))
    assert "wgmma.mma_async" in made.ptx and not made.resources.spill_stores + made.resources.stack


@each_twin
def test_each_has_the_instructions_it_is_about(binaries, name, kind, config):
    sass = disassemble(binaries[name, kind, config])
    by_map = TWINS[name]
    assert re.findall(r"HGMMA\.\d+x\d+x\d+", sass) and set(re.findall(r"HGMMA\.\w+", sass)) == {
        "HGMMA.64x256x16"
    }
    assert ("UTMALDG" in sass) == bool(by_map) and ("UTMASTG" in sass) == ("C" in by_map)
    assert ("MULTICAST" in sass) == (name == "cluster")
    assert ("USETMAXREG" in sass) == (name not in ("wgmma", "wgmma_async", "tma"))
    assert ("LDGSTS" in sass) == (name == "wgmma_async")
    if "USETMAXREG" in sass:
        assert binaries[name, kind, config].resources.registers == 168


REMARK = (
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x"
)
IGNORED = "ptxas info    : (C7508) setmaxnreg ignored to maintain minimum register requirements."


@pytest.mark.parametrize(
    "report, spilled, line",
    [
        (REMARK, 0, "ptxas says: Potential .* serialized"),
        (IGNORED, 0, "setmaxnreg ignored"),
        ("", 4, "8 bytes are spilled"),
    ],
)
def test_what_ptxas_spoils_is_one_line(report, spilled, line):
    kernel = twin("wgmma", gemm("nt half"))
    fine = "ptxas info    : Used 168 registers"
    with pytest.raises(CheckFailed, match=rf"^hgemm/wgmma \(twin\): .*{line}"):
        check_products(kernel, f"{fine}\n{report}\n{fine}", Resources(168, 0, 0, spilled, spilled))
    check_products(kernel, fine, Resources(168, 0))
