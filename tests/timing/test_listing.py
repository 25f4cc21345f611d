"""The SASS of a kernel as a list: what each instruction is, waits for, and comes from."""

import re
from dataclasses import replace

import pytest
from sass import sass

from tir_schedules import processes
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import count_opcodes, disassemble, instructions
from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel
from tir_schedules.timing.listing import control_of, listing, parsed, placed, unknown_opcodes, with_places
from tir_schedules.timing.pipes import KINDS, TABLE, Done, Pipe, kind_of

SOURCE = """\
extern "C" __global__ void dot(const float *x, const float *y, float *z, int n) {
    __shared__ float part[128];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 128)
        sum += x[i] * y[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 128; ++i) sum += part[i];
        z[0] = __expf(sum);
    }
}
"""


def dot(arch):
    kernel = Kernel("dot", SOURCE, "dot", ("x", "y", "z", "n"), (1, 1, 1), (128, 1, 1), arch)
    return compile_kernel(kernel)


@pytest.fixture(scope="module", params=["sm_75", "sm_80", "sm_90a"])
def binary(request):
    return dot(request.param)


@pytest.fixture(scope="module")
def code(binary):
    return listing(binary)


def test_it_has_every_instruction(binary, code):
    plain = instructions(disassemble(binary))[0]
    assert [one.name for one in code] == [text.split()[0].partition(".")[0] for text in plain]
    assert [one.number for one in code] == [*range(len(code))]
    assert {one.function for one in code} == {"dot"} and not unknown_opcodes(code)
    assert count_opcodes(plain)["FFMA"]


def test_lines_are_those_of_ptx_and_source(binary, code):
    """An instruction for memory comes from a line of PTX that accesses it, and of the source that does."""
    ptx, source = binary.ptx.splitlines(), SOURCE.splitlines()
    of = {"LDG": ("ld.global", "x[i]"), "STS": ("st.shared", "part["), "STG": ("st.global", "z[0]")}
    for one in code:
        if one.name in of:
            in_ptx, in_source = of[one.name]
            assert in_ptx in ptx[one.ptx_line - 1] and one.source[0] == "dot.cu"
            assert in_source in source[one.source[1] - 1]


def test_a_load_names_the_scoreboard_that_its_reader_waits_for(code):
    for load in (one for one in code if one.name == "LDG"):
        board, target = load.control.writes, load.registers[0]
        reader = next(
            one for one in code[load.number + 1 :] if one.name == "FFMA" and target in one.registers[1:]
        )
        between = code[load.number + 1 : reader.number + 1]
        assert board is not None and any(board in one.control.waits for one in between)


def test_a_dependent_multiply_add_stalls_four_cycles(code):
    """An FFMA whose sum the next instruction reads: as ptxas knows, that takes so long."""
    chained = [
        one for one, then in zip(code, code[1:])
        if one.name == then.name == "FADD" and one.registers[0] in then.registers[1:]
    ]  # fmt: skip
    assert chained and {one.control.stall for one in chained} <= {4, 5}


def test_branches_have_targets(code):
    loops = [one for one in code if one.branches and one.target <= one.number]
    assert loops and all(0 <= one.target < len(code) for one in code if one.branches)
    assert any(one.predicate for one in code if one.branches or one.name == "EXIT")


def test_a_cubin_without_lines_is_assembled_once_more(binary, code):
    """Stripped of the line table it has the same instructions, and their lines."""
    bare = replace(binary, cubin=dot_without_lines(binary))
    assert [(one.opcode, one.operands, one.ptx_line, one.control) for one in listing(bare)] == [
        (one.opcode, one.operands, one.ptx_line, one.control) for one in code
    ]


def dot_without_lines(binary):
    with processes.temporary_folder() as folder:
        (folder / "k.ptx").write_text(binary.ptx)
        ptxas = find_toolchain().tool("ptxas")
        assert not processes.run(
            [ptxas, f"-arch={binary.kernel.arch}", "k.ptx", "-o", "k.cubin"], cwd=folder
        ).returncode
        return (folder / "k.cubin").read_bytes()


def test_fields_of_the_control_code():
    encoding = (5 | 0 << 4 | 2 << 5 | 7 << 8 | 0b100001 << 11 | 0b0101 << 17) << 105
    control = control_of(encoding)
    assert (control.stall, control.yields, control.writes, control.reads) == (5, True, 2, None)
    assert control.waits == (0, 5) and control.reuse == 0b0101


def test_text_by_hand():
    text = sass(
        "3| @!P1 FADD R4, -R5, c[0x0][0x160]", ".L_x_0:", "LDS.128 R8, [R4+UR5+0x10]",
        "7| @P0 BRA `(.L_x_0)", "EXIT",
    )  # fmt: skip
    add, load, branch, leave = parsed(text, "k")
    assert (add.predicate, add.negated, add.ptx_line, add.function) == ("P1", True, 3, "k")
    assert add.operands == ("R4", "-R5", "c[0x0][0x160]") and add.constants == ("c[0x0][0x160]",)
    assert load.registers == (("R", 8), ("R", 4), ("UR", 5)) and load.modifiers == ("128",)
    assert (branch.target, branch.branches, branch.ends, leave.ends) == (1, True, False, True)
    assert load.ptx_line == 3 and load.control.stall == 1 and load.control.writes is None


def test_text_that_is_not_known_is_refused():
    text = sass("FADD R0, R1, R2").replace("/* 0x", "/* 1x", 1)
    with pytest.raises(CheckFailed, match="nvdisasm prints a line that is not known here: .*FADD"):
        list(parsed(text, "k"))


def test_an_unknown_opcode_is_named_and_slow():
    code = [*parsed(sass("FROB.X R0, R1", "FADD R0, R1, R2", "FROB R2, R3"), "k")]
    assert unknown_opcodes(code) == ["FROB"]
    assert code[0].kind.done is Done.SCOREBOARD and code[0].kind.pipe is Pipe.SPECIAL


def test_an_instruction_without_a_line_of_its_own_gets_the_one_it_comes_from():
    """nvdisasm shows that of the instruction before it."""
    ptx = ["mov.b32 r, 1;", "add.s32 r, r, 1;", "@p mbarrier.try_wait.parity.shared.b64 p, [r], q;"]
    code = [*parsed(sass("2| IADD3 R0, R1, R2, RZ", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R0], R1"), "k")]
    assert [one.ptx_line for one in placed(code, ptx)] == [2, 3]
    assert [one.ptx_line for one in placed(code, ptx[:2])] == [2, 2]


def test_lines_of_triton_are_those_of_its_ptx(code, monkeypatch):
    ptx = '.version 8.0\n.loc 1 6 21\nld.global.f32 %f1, [%rd1];\n.file 1 "mine.py"\n'
    one = replace(code[0], ptx_line=3, source=("/there/mine.py", 9))
    assert [each.source for each in with_places([one, replace(one, ptx_line=1)], ptx)] == [
        ("mine.py", 6), ("", 0)
    ]  # fmt: skip
    kernel = Kernel("dot", SOURCE, "dot", ("x", "y", "z", "n"), (1, 1, 1), (128, 1, 1), "sm_90", file="a.cu")
    binary = compile_kernel(kernel)
    monkeypatch.setattr("tir_schedules.timing.listing.is_python", lambda kernel: True)
    assert listing(binary) == with_places(listing(binary), binary.ptx)


def test_the_table_has_every_opcode_once():
    named = [opcode for opcodes in TABLE.values() for opcode in opcodes.split()]
    assert len(named) == len(set(named)) == len(KINDS)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in named)
    assert kind_of("HMMA.16816.F32").pipe is Pipe.TENSOR


def test_what_the_table_calls_fixed_names_no_scoreboard(code):
    """ptxas itself says which results are waited for."""
    for one in code:
        if one.control.writes is not None:
            assert one.kind.done is not Done.FIXED, one


def test_a_branch_of_lanes_that_are_apart_is_not_taken():
    one, other, _ = parsed(sass("BRA.DIV UR6, `(.L_x_2)", "BRA P0, `(.L_x_2)", ".L_x_2:", "EXIT"), "k")
    assert one.target == other.target == 2
    assert not one.branches and not one.ends and other.branches
