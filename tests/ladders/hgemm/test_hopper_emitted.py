"""Facts of the CUDA and SASS of each rung with Hopper's instructions: launch, tensor maps, and
what stands in the main loop.

The recorded facts are in emitted_hopper.json. To rewrite them:
`pytest tests/ladders/hgemm/test_hopper_emitted.py --update-golden`.
"""

from pathlib import Path

import pytest
from hopper_rungs import ARCH, FEW, KINDS, LADDER, OTHERS, RUNGS, kind_of, taken, workload
from kinds import both
from layers import layers, named

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import count_opcodes, disassemble, loop_with_most
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find

RECORDED = Path(__file__).parent / "emitted_hopper.json"
LONG = "256x256x1536"  # so many K tiles that no compiler unrolls the loop over them
MAIN_LOOP = {
    "HGMMA": "products",
    "UTMALDG": "boxes",
    "LDGSTS": "copies",
    "STS": "stores",
    "SYNCS": "barriers_of_slots",
    "BAR": "barriers",
    "MOV": "moves",
}


ABOUT = ("LDGSTS", "UTMALDG", "MULTICAST", "UTMASTG", "STSM", "USETMAXREG")


def main_loop(sass):
    """The one with most wgmma."""
    return loop_with_most(sass, "HGMMA")


def facts(kernel):
    """Of the main loop: instructions of each kind per K tile of 64 rows of A."""
    binary = compile_kernel(kernel)
    sass = disassemble(binary)
    loop = count_opcodes(main_loop(sass))
    return {
        "grid": kernel.grid,
        "block": kernel.block,
        "cluster": kernel.cluster,
        "dynamic_shared": kernel.dynamic_shared,
        "static_shared": binary.resources.shared,
        "boxes": {tensor.of: tensor.box for tensor in kernel.maps},
        "opcodes": [opcode for opcode in ABOUT if opcode in sass],
        "main_loop": {name: loop[opcode] * 4 / loop["HGMMA"] for opcode, name in MAIN_LOOP.items()},
        "spills": binary.resources.spill_stores + binary.resources.spill_loads,
        "stack": binary.resources.stack,
    }


def kind_in_turn(rung):
    """Of a configuration of a rung; the next one has another. It does not depend on other rungs, so that what
    is recorded stays."""
    kinds = [kind for kind in KINDS if taken(rung, workload(LONG, kind))]
    place = [each.id for each in RUNGS if each.name == rung.name].index(rung.id)
    return kinds[place % len(kinds)]


NAMES = {"hgemm/tile_shapes": "144x128", "hgemm/repacked": "64x64", "hgemm/split_k": "64x64"}


def of_name(rung):
    """The rung, or a form with a name, because what some rungs choose changes with measured costs."""
    return find(f"{rung.id}:{NAMES[rung.id]}")[0] if rung.id in NAMES else rung


@layers(
    "rung, kind",
    [(of_name(rung), kind_of(rung)) for rung in LADDER],
    [(rung, kind_in_turn(rung)) for rung in OTHERS if rung == of_name(rung)],
)
@both
def test_emitted_code_is_as_recorded(rung, kind, make, golden):
    kernel = make(rung, workload(LONG, kind), ARCH)
    golden(RECORDED, f"{kernel.label} {' '.join(kind)}", facts(kernel))


@pytest.mark.parametrize("rung", LADDER, ids=named)
def test_the_instructions_are_those_the_rung_is_about(rung):
    """And sums stay in registers, products side by side: compile_kernel refuses the kernel otherwise. Of
    other configurations the opcodes are recorded."""
    gemm = workload(LONG, kind_of(rung))
    config, sass = rung.fitted(gemm).config, disassemble(compile_kernel(lower(rung, gemm, ARCH)))
    boxes = not rung.name.startswith("wgmma")
    stored = bool(getattr(config, "boxes", 0)) and rung.declared(gemm).parts == 1
    about = {
        "HGMMA.64x": True,
        "LDGSTS": rung.name == "wgmma_async",
        "UTMALDG": boxes,
        "USETMAXREG": boxes and rung.name != "tma" and config.consumers > 1,
        "MULTICAST": config.blocks > 1,
        "UTMASTG": stored,
        "STSM": stored and gemm.result != "float32",
    }
    assert {opcode: opcode in sass for opcode in about} == about


@pytest.mark.parametrize(
    "rung", [rung for rung in LADDER if rung.name in ("warp_specialized", *FEW, "tile_shapes", "stream_k")]
)
def test_main_loop_is_as_short_as_the_twins(rung):
    """Stages are counted: with a division for each K tile it had up to 24 instructions more. Where K is in
    parts, these are not so short that nvcc unrolls the loop."""
    gemm = workload(LONG, kind_of(rung))
    if rung.name == "split_k":
        (rung,) = find("hgemm/split_k:splits=2")
    schedule, twin = (
        len(main_loop(disassemble(compile_kernel(make(rung, gemm, ARCH))))) for make in (lower, load_twin)
    )
    assert schedule <= twin + 3
