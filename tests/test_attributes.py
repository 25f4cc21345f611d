"""A launch is refused where the CUDA driver refuses it: the cases here were launched on an H100 (driver
580.159)."""

from dataclasses import replace

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.model.attributes import Attributes, attributes_of, check_attributes, check_block
from tir_schedules.model.kernel import Binary, Kernel, Resources

CLUSTER = ".explicitcluster .reqnctapercluster"
IN_CLUSTERS = ".blocksareclusters .reqntid 32 .reqnctapercluster"
LAUNCHES = [
    (".maxntid 32, 1, 1", (4, 1, 1), (32, 1, 1), ""),
    (".maxntid 32, 1, 1", (4, 1, 1), (1, 32, 1), ""),
    (".maxntid 32, 2, 1", (4, 1, 1), (1, 1, 64), ""),
    (".minnctapersm 2 .maxntid 32", (4, 1, 1), (32, 1, 1), ""),
    (".maxnreg 32", (4, 1, 1), (32, 1, 1), ""),
    (".maxntid 32, 1, 1", (4, 1, 1), (256, 1, 1),
    "256,1,1, 256 threads; its __launch_bounds__(32) (.maxntid) allows 32: launch no"),
    (".maxntid 32, 1, 1", (4, 1, 1), (33, 1, 1), "33 threads"),
    (".maxntid 32, 1, 1", (4, 1, 1), (16, 2, 2), "64 threads"),
    (".maxntid 32, 2, 1", (4, 1, 1), (65, 1, 1), "__launch_bounds__(64)"),
    (".maxntid 32", (4, 1, 1), (64, 1, 1), "declare __launch_bounds__(64)"),
    (".reqntid 32, 2, 1", (4, 1, 1), (32, 2, 1), ""),
    (".reqntid 32", (4, 1, 1), (32, 1, 1), ""),
    (".reqntid 32", (4, 1, 1), (16, 1, 1),
    "16,1,1; its __block_size__ (.reqntid) is 32,1,1, and blocks must be just that"),
    (".reqntid 32, 2, 1", (4, 1, 1), (64, 1, 1), "is 32,2,1"),
    (".reqntid 32, 2, 1", (4, 1, 1), (16, 2, 1), "declare __block_size__((16,2,1))"),
    (".reqntid 32, 2, 1", (4, 1, 1), (2, 32, 1), "is 32,2,1"),
    (f"{CLUSTER} 2, 1, 1", (4, 1, 1), (32, 1, 1), ""),
    (f"{CLUSTER} 2, 2, 1", (4, 2, 1), (32, 1, 1), ""),
    (f"{CLUSTER} 8", (8, 1, 1), (32, 1, 1), ""),
    (f"{CLUSTER} 1", (3, 1, 1), (32, 1, 1), ""),
    (".reqnctapercluster 2", (4, 1, 1), (32, 1, 1), ""),
    (".maxclusterrank 4", (4, 1, 1), (32, 1, 1), ""),
    (f"{CLUSTER} 2, 1, 1", (3, 1, 1), (32, 1, 1),
    "are 2,1,1, and it is launched with a grid of 3,1,1: each extent of the grid must be"),
    (".reqnctapercluster 2", (3, 1, 1), (32, 1, 1), "must be a multiple"),
    (f"{CLUSTER} 2, 2, 1", (4, 1, 1), (32, 1, 1), "must be a multiple"),
    (f"{CLUSTER} 16", (16, 1, 1), (32, 1, 1), "16 blocks; CUDA launches clusters of at most 8"),
    (f"{CLUSTER} 4, 4, 1", (4, 4, 1), (32, 1, 1), "16 blocks"),
    (f"{CLUSTER} 9", (9, 1, 1), (32, 1, 1), "9 blocks"),
    (".explicitcluster", (4, 1, 1), (32, 1, 1), "__cluster_dims__() (.explicitcluster) without a size"),
    (f"{IN_CLUSTERS} 1", (3, 1, 1), (32, 1, 1), ""),
    (f"{IN_CLUSTERS} 2", (3, 1, 1), (32, 1, 1), ""),
    (f"{IN_CLUSTERS} 2", (3, 1, 1), (64, 1, 1), "is 32,1,1"),
]  # fmt: skip


def ptx(directives: str) -> str:
    return (
        ".version 9.0\n.target sm_90\n.visible .entry k(\n.param .u64"
        f" k_param_0\n)\n{directives}\n{{\nret;\n}}\n"
    )


def kernel(grid=(4, 1, 1), block=(32, 1, 1), arch="sm_90", source="") -> Kernel:
    return Kernel("my/k (source)", source, "k", ("a",), grid, block, arch)


def refusal(check, *arguments) -> str:
    try:
        check(*arguments)
    except CheckFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("directives, grid, block, refused", LAUNCHES)
def test_a_launch_is_refused_where_the_driver_refuses_it(directives, grid, block, refused):
    said = refusal(check_attributes, kernel(grid, block), attributes_of(ptx(directives), "k"))
    assert bool(said) == bool(refused) and refused in said
    assert "\n" not in said and (not said or said.startswith("my/k (source): ") and " k " in said)


@pytest.mark.parametrize(
    "block, refused",
    [((1, 1, 64), ""), ((1, 1024, 1), ""), ((1, 1, 65), "1,1,65; CUDA allows 1,1,1 to 1024,1024,64"),
     ((0, 1, 1), "0,1,1"), ((-32, -1, 1), "-32,-1,1"),
     ((1025, 1, 1), "1025 threads per block; CUDA allows 1024"),
     ((32, 32, 2), "2048 threads")],
)  # fmt: skip
def test_blocks_that_cuda_launches_of_no_kernel(block, refused):
    said = refusal(check_block, kernel(block=block))
    assert bool(said) == bool(refused) and refused in said
    binary = Binary(kernel(block=block), ptx(""), b"", Resources(0, 0))
    assert not refused or refused in refusal(CpuMachine().run, binary, {"a": np.zeros(4)}, ())


def test_attributes_are_those_of_the_kernel_asked_for():
    text = (
        ".visible .entry k2()\n.maxntid 1, 1, 1\n{\n}\n.entry k(.param .u64 k_param_0);\n.entry"
        " other()\n.maxntid 2\n{\n}\n.entry k(\n.param .align 16 .b8 k_param_0[64],\n.param .u32"
        ' x\n)\n.pragma "no;thing";\n/* .reqntid 9 */ .maxntid 0x20, 2 // .explicitcluster\n.minnctapersm'
        " 2\n{\n.reqntid 8\n}\n"
    )
    assert attributes_of(text, "k") == Attributes(most=(32, 2, 1), counts_registers=True)
    assert attributes_of(text, "k2") == Attributes(most=(1, 1, 1))
    assert attributes_of(text, "none") == Attributes()


DECLARED = """\
extern "C" __global__ void k(float* a) { a[0] = 1.f; }
extern "C" __global__ void __launch_bounds__(32) bounded(float* a) { a[0] = 1.f; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* a) { a[0] = 1.f; }
extern "C" __global__ void __cluster_dims__(1) alone(float* a) { a[0] = 1.f; }
extern "C" __global__ void __block_size__((32, 2, 1)) sized(float* a) { a[0] = 1.f; }
"""


@pytest.mark.parametrize(
    "entry, grid, block, refused",
    [
        ("k", (3, 1, 1), (256, 1, 1), ""),
        (
            "bounded",
            (3, 1, 1),
            (256, 1, 1),
            "bounded is launched with blocks of 256,1,1, 256 threads; its __launch_bounds__(32)",
        ),
        ("clustered", (3, 1, 1), (32, 1, 1), "(.reqnctapercluster) of clustered are 2,1,1"),
        ("clustered", (4, 1, 1), (32, 1, 1), ""),
        ("alone", (3, 1, 1), (32, 1, 1), ""),
        ("sized", (3, 1, 1), (32, 2, 1), ""),
        ("sized", (3, 1, 1), (64, 1, 1), "its __block_size__ (.reqntid) is 32,2,1"),
    ],
)
def test_what_cuda_declares_is_refused_when_it_is_compiled_and_by_the_cpu_machine(
    entry, grid, block, refused
):
    declared = replace(
        kernel((4, 1, 1), (32, 2, 1) if entry == "sized" else (32, 1, 1), source=DECLARED), entry=entry
    )
    binary = replace(compile_kernel(declared), kernel=replace(declared, grid=grid, block=block))
    said = refusal(compile_kernel, binary.kernel)
    assert said == "" if not refused or "CPU machine" in refused else refused in said
    a = np.zeros(1, np.float32)
    assert refused in refusal(CpuMachine().run, binary, {"a": a}, ("a",)) and (a[0] == 1) == (not refused)


def test_a_directive_that_the_cpu_machine_does_not_know_is_refused_by_name():
    binary = Binary(kernel(), ptx(".maxntid 32 .warpsareblocks 2"), b"", Resources(0, 0))
    with pytest.raises(
        UnsupportedInstruction, match="the CPU machine does not know .warpsareblocks, which k declares"
    ):
        CpuMachine().run(binary, {"a": np.zeros(1)}, ("a",))
