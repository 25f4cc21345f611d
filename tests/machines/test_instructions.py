"""The table of instruction families: it is whole, and its families do not get in each other's way."""

import pkgutil
import re
import subprocess

import pytest
from corpus_kernels import binaries
from ptx_kernels import module

from tir_schedules.machines.cpu import instructions
from tir_schedules.machines.cpu.catalogue import entries
from tir_schedules.machines.cpu.codegen import functions_table, generated
from tir_schedules.machines.cpu.instructions import FAMILIES, ROWS, check, row_of, row_of_opcode
from tir_schedules.machines.cpu.instructions import warp as warp_family
from tir_schedules.machines.cpu.library import FLAGS, find_compiler, read_core, the_library
from tir_schedules.machines.cpu.lowering import lower
from tir_schedules.machines.cpu.micro_ops import MICRO_OPS, MicroOpType
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction, read_opcode, registers_of
from tir_schedules.machines.cpu.table import PIPES

NAMES = [family.__name__.rpartition(".")[2] for family in FAMILIES]


def test_every_family_is_in_the_table():
    assert sorted(NAMES) == sorted(module.name for module in pkgutil.iter_modules(instructions.__path__))


def test_no_two_families_have_one_instruction():
    assert len(ROWS) == sum(len(family.ROWS) for family in FAMILIES)


def test_functions_of_the_core_are_found_by_name():
    library = the_library()
    names = ["ld.shared", "cp.async", "shfl", "mma", "undefined.flow"]
    assert len({library.function(name) for name in names}) == len(names)
    with pytest.raises(KeyError):
        library.function("no such function")


def test_a_longer_name_goes_before_a_shorter_one():
    assert row_of_opcode("bar.warp.sync") is ROWS["bar.warp"] is not ROWS["bar"]
    assert row_of_opcode("bar.sync") is ROWS["bar"]
    assert row_of_opcode("cp.nonsense.x") is row_of_opcode("nonsense")
    assert row_of_opcode("cp.async.bulk.tensor.1d") is ROWS["cp.async.bulk.tensor"] is not ROWS["cp.async"]


# ---- both sides of a micro-op ---
def compiled(folder, file, changed):
    """What g++ says of one file of the core and the table of its micro-ops, after a change of the sources."""
    names = [name for name, made in MICRO_OPS.items() if made in vars(warp_family).values()]
    sources = read_core() | generated() | {"table.cpp": functions_table(names)}
    sources |= {"unit.cpp": f'#include "{file}"\n#include "table.cpp"\n'}
    for name, text in changed(sources).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [find_compiler(), *FLAGS, "-fsyntax-only", "unit.cpp"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stderr


def replaced(file, before, after):
    def change(sources):
        assert before in sources[file]
        return sources | {file: sources[file].replace(before, after)}

    return change


@pytest.mark.parametrize(
    "change, complaint",
    [
        (lambda sources: sources, ""),
        (replaced("operands.h", " clamp() ", " limit() "), "has no member named 'clamp'"),
        (replaced("operands.h", "struct Elect ", "struct Chosen "), "'Elect' "),
        (replaced("exec/warp.cpp", "const ops::Elect& op", "const ops::Match& op"), "execute"),
    ],
    ids=["as it is", "another field", "no micro-op", "no function"],
)
def test_what_one_side_lacks_does_not_compile(tmp_path, change, complaint):
    said = compiled(tmp_path, "exec/warp.cpp", change).replace("\u2018", "'").replace("\u2019", "'")
    assert complaint in said and bool(complaint) == bool(said)


def test_a_micro_op_is_made_of_all_its_fields():
    text = module("test", (), ".reg .b32 a; activemask.b32 a;")
    (made,) = [op for op in lower(parse(text), parse(text).kernels["test"]).functions]
    assert made == "vote" and isinstance(MICRO_OPS[made], MicroOpType)
    with pytest.raises(KeyError, match="members"):
        MICRO_OPS["bar.warp"](None, None)
    with pytest.raises(TypeError, match="bar.warp has no result"):
        MICRO_OPS["bar.warp"](None, None, members=0, result=0)


# ---- what rows say ---
def test_operands_of_rows_are_those_of_the_corpus():
    """Each instruction has the operands of its row, and writes those that are marked."""
    seen = set()
    for binary in binaries().values():
        for i in parse(binary.ptx).kernels[binary.kernel.entry].instructions:
            check(i)
            row = row_of(i)
            written = [slot.access for slot in row.slots]
            assert not any(written[1:]) and i.access == (written[0] if written else "")
            assert set(registers_of(i.operands)) >= set(i.results) and (not i.results or written[0])
            seen.add(row.operands)
    assert len(seen) > 20


@pytest.mark.parametrize(
    "text, complaint",
    [
        (".reg .f32 f; add.f32 f, f;", "operands, which are d, a, b"),
        (".reg .f32 f; add.f32 f, f, [f];", "operands, which are d, a, b"),
        (".reg .f32 f; add.rna.f32 f, f, f;", "modifier .rna"),
        (".reg .b32 a; shfl.sync.up.b32 a, a, a, a;", "operands, which are d|p?, a, b, c, members"),
        (".reg .b32 a; setmaxnreg.inc.sync.aligned.u32 a;", "operands, which are #n"),
        (".reg .b64 a; mbarrier.inval.b64 [a], 1;", re.escape("operands, which are [a]")),
    ],
)
def test_other_operands_and_modifiers_are_refused(text, complaint):
    module_ = parse(module("test", (), text))
    with pytest.raises(UnsupportedInstruction, match=complaint.replace("|", r"\|").replace("?", r"\?")):
        lower(module_, module_.kernels["test"])


def test_every_line_that_is_known_has_a_class_and_a_pipe():
    for line in entries():
        known = bool(line.mix)
        assert known == bool(line.pipe) and (
            not known or line.pipe in PIPES.values() or line.pipe == "uniform"
        )


@pytest.mark.parametrize(
    "opcode, pipe",
    [
        ("add.f32", "fma"), ("add.s32", "alu"), ("mad.lo.s32", "fma"), ("add.f64", "fp64"),
        ("min.f32", "alu"), ("cvt.rn.f16.f32", "alu"), ("cvt.f32.f16", "fma"),
        ("cvt.rzi.s32.f32", "xu"), ("cvt.u16.u32", "alu"), ("ex2.approx.f32", "xu"), ("popc.b32", "xu"),
        ("ld.global.v4.f32", "lsu"), ("selp.f32", "alu"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor"), ("bar.sync", "adu"), ("bra", "cbu"),
        ("cp.async.bulk.commit_group", "tma"), ("setmaxnreg.inc.sync.aligned.u32", "uniform"),
    ],
)  # fmt: skip
def test_pipes(opcode, pipe):
    row = row_of_opcode(opcode)
    assert row.pipe_of(read_opcode(opcode)) == pipe
