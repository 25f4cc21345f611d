"""The model of register ports, on instructions whose cycles can be worked out by hand."""

from types import SimpleNamespace

import pytest

from tir_schedules.errors import MissingTool
from tir_schedules.insight.inspection.tables import of_main_loop
from tir_schedules.insight.metrics import ports
from tir_schedules.insight.metrics.ports import MainLoop, main_loop, simulate_ports

SASS = """\
.L_x_1:
        /*0100*/                   FFMA R0, R4.reuse, R7.reuse, R0 ;
        /*0110*/              @!P0 FFMA R1, R4, R8, R1 ;
        /*0120*/                   LDS.128 R8, [R12+0x10] ;
        /*0130*/               @P0 BRA `(.L_x_1) ;
"""


def binary(arch="sm_90", ptx="fma.rn.f32 %f1, %f2, %f3, %f1;"):
    return SimpleNamespace(kernel=SimpleNamespace(arch=arch), ptx=ptx)


@pytest.mark.parametrize(
    "code, cycles",
    [
        (["FFMA R0, R2, R5, R1"], 2),  # of three operands two are always in one bank
        (["FFMA R0, R2, R4, R6"], 3),
        (["FFMA R0, R2, R2, R1"], 1),  # one register twice is one operand
        (["FFMA R0, R2, 3, R1"], 1),
        (["FFMA R0, R2, c[0x0][0x18], R1"], 1),
        (["FFMA R0, -R2, |R4|, R6"], 3),
        (["FFMA.FTZ R0, R2, R4, RZ"], 2),
        (["FFMA R0, R2.reuse, R5, R0", "FFMA R1, R2, R7, R8"], 2 + 1),
        (["FFMA R0, R2.reuse, R5, R0", "FFMA R1, R7, R2, R8"], 2 + 2),  # another place among the operands
        (["FFMA R0, R2, R5, R0", "FFMA R1, R2, R7, R8"], 2 + 2),
        (["FFMA R0, R2.reuse, R5, R0", "FFMA R1, R2, R9, R1", "FFMA R1, R2, R7, R8"], 2 + 2 + 2),
        (["FFMA R0, R2.reuse, R5, R0", "LDS R9, [R10]", "FFMA R1, R2, R7, R8"], 2 + 2),
    ],
)
def test_an_ffma_takes_as_many_cycles_as_a_bank_has_operands_to_give(code, cycles):
    ffma = sum(one.startswith("FFMA") for one in code)
    found = simulate_ports(code)
    assert (found.ffma, found.others, found.cycles) == (ffma, len(code) - ffma, cycles)


@pytest.mark.parametrize(
    "load, needed",
    [
        ("LDS R9, [R40]", [9]),
        ("LDS.64 R8, [R40+UR4+0x10]", [8, 9]),
        ("LDS.128 R8, [R40]", [8, 9, 10, 11]),
    ],
)
@pytest.mark.parametrize("before", [31, 32])
def test_a_load_is_hurried_that_is_needed_before_it_can_be_there(load, needed, before):
    """It takes a cycle itself, and so do all that follow, but for FFMA with two operands of one bank."""
    for register in range(7, 13):
        code = ["FFMA R0, R1, 2, R0", load, *["IADD3 R20, R20, 1, RZ"] * (before - 3)]
        code += ["FFMA R30, R32, 2, R34", f"FFMA R0, R{register}, 2, R2"]
        hurried = before == 31 and register in needed
        assert (simulate_ports(code).loads, simulate_ports(code).hurried) == (register in needed, hurried)


def test_a_load_at_the_end_of_a_turn_is_needed_in_the_next():
    needed_after_20 = ["IADD3 R20, R20, 1, RZ"] * 20 + ["FFMA R0, R9, 2, R1", "LDS R9, [R40]"]
    assert (simulate_ports(needed_after_20).loads, simulate_ports(needed_after_20).hurried) == (1, 1)
    assert simulate_ports(["IADD3 R20, R20, 1, RZ"] * 20 + needed_after_20).hurried == 0


def test_shares():
    loop = MainLoop(ffma=80, others=20, cycles=140)
    assert (loop.issue, loop.predicted) == (0.8, 0.5)


def test_the_main_loop_of_a_kernel(monkeypatch):
    monkeypatch.setattr(ports, "disassemble", lambda binary: SASS)
    assert main_loop(binary()) == MainLoop(2, 2, 2 + 1, loads=1, hurried=1)
    loop = of_main_loop(SimpleNamespace(binary=binary()), lambda loop: f"{loop.hurried} of {loop.loads}")
    assert loop == "1 of 1"


OUTER = ".L_x_0:\n%s        /*0150*/               @P1 BRA `(.L_x_0) ;\n"
MORE = "        /*0140*/                   FFMA R9, R2, R3, R9 ;\n" * 3


@pytest.mark.parametrize("beside", [MORE, SASS.replace("x_1", "x_2")])
def test_a_loop_over_tiles_of_c_is_not_the_main_loop(beside, monkeypatch):
    """It has the loop over K in it, and FFMA beside that."""
    monkeypatch.setattr(ports, "disassemble", lambda binary: OUTER % (SASS + beside))
    assert main_loop(binary()) == MainLoop(2, 2, 2 + 1, loads=1, hurried=1)


@pytest.mark.parametrize("unfit", [binary(arch="sm_80"), binary(arch="sm_1"), binary(ptx="mma.sync")])
def test_where_the_model_does_not_apply_nothing_is_disassembled(unfit, monkeypatch):
    monkeypatch.setattr(ports, "disassemble", lambda binary: pytest.fail("disassembled"))
    assert main_loop(unfit) is None and of_main_loop(SimpleNamespace(binary=unfit), str) == "-"


def test_without_nvdisasm_or_a_loop_there_is_no_share(monkeypatch):
    def missing(binary):
        raise MissingTool("no nvdisasm")

    monkeypatch.setattr(ports, "disassemble", missing)
    assert of_main_loop(SimpleNamespace(binary=binary()), str) == "-"
    monkeypatch.setattr(ports, "disassemble", lambda binary: SASS.replace("BRA", "EXIT"))
    assert main_loop(binary()) is None
