"""Twins and their headers: one text that compiles alone, with the same code as where the file lies."""

import re
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from layers import layers

from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.compiler.twin import inline_headers, lines_of, load_twin, macros_of, twin_file
from tir_schedules.ladders.problems import RUN_SHAPES, Problem, workloads_of
from tir_schedules.ladders.registry import FAMILIES, ladder

ALL = [rung for family in FAMILIES for rung in ladder(family)]
FILES = Path(str(resources.files("cuda_reference"))).resolve()


def code(path, arch):
    """What nvcc compiles of a file and of those beside it, without space. Not its PTX: of one and the same
    text nvcc makes two at times, with other registers, or one load in two."""
    command = [str(find_toolchain().nvcc), f"-arch={arch}", "-E", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept, ours = [], False
    for line in done.stdout.splitlines():
        marker = re.match(r'#(?:line)? \d+ "(.*?)"', line)
        if marker:
            place = (path.parent / marker[1]).resolve()
            ours = place.suffix in (".cu", ".cuh") and (FILES in place.parents or place.parent == path.parent)
        elif ours:
            kept += line.split()
    return "".join(kept)


def arch_of(rung):
    return rung.arch or "sm_80"


def written(lines):
    return "".join(line.text for line in lines)


DEFAULT = re.compile(r"^#define (\w+) (-?\d+)\b", re.M)


def test_defaults_of_twins_are_those_of_schedules():
    """A twin is compiled with the defaults of its file if its configuration has no name. So these must be the
    fields of that configuration."""
    compared = 0
    for rung in ALL:
        fields, text = macros_of(rung), written(lines_of(twin_file(rung)))
        found = {name: int(value) for name, value in DEFAULT.findall(text) if name in fields}
        assert found == {name: fields[name] for name in found}, rung.id
        compared += len(found)
    assert compared > 300


def test_headers_are_written_out_once_below_those_of_cuda(tmp_path):
    (tmp_path / "a.cuh").write_text('// A.\n#pragma once\n\n#include <mma.h>\n#include "b.cuh"\nint a;\n')
    (tmp_path / "b.cuh").write_text("#pragma once\n\n#include <mma.h>\n#include <cuda_fp16.h>\nint b;\n")
    path = tmp_path / "k.cu"
    path.write_text('// K.\n#include <mma.h>\n#include "a.cuh"\n#include "b.cuh"\nint k;\n')
    lines = inline_headers(lines_of(path), tmp_path)
    assert written(lines) == (
        "// K.\n#include <mma.h>\n#include <cuda_fp16.h>\n// A.\nint b;\nint a;\nint k;\n"
    )
    for line in lines:
        assert Path(line.file).read_text().splitlines(keepends=True)[line.number - 1] == line.text


def test_a_header_that_is_not_there_is_left_to_nvcc(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text('#include "no.cuh"\nint k;\n')
    assert written(inline_headers(lines_of(path), tmp_path)) == path.read_text()


@pytest.mark.parametrize("rung", ALL, ids=lambda rung: rung.id)
def test_a_twin_needs_no_file_beside_it(rung):
    source = load_twin(
        rung, workloads_of(rung, Problem(rung.family, RUN_SHAPES[rung.family][0]))[0], arch_of(rung)
    ).source
    assert not re.search(r'^\s*#\s*include\s*"', source, re.M)


@layers("rung", [ladder(family)[-1] for family in FAMILIES], ALL)
def test_it_is_the_same_code_where_its_file_lies(rung, tmp_path):
    path = FILES / rung.family / f"{rung.name}.cu"
    (tmp_path / path.name).write_text(written(inline_headers(lines_of(path), path.parent)))
    found = code(path, arch_of(rung))
    assert f"{rung.entry}(" in found and found == code(tmp_path / path.name, arch_of(rung))


def test_headers_use_no_macro_of_a_twin():
    """Else a header would be included below the configuration, and `nvcc -DBM=64` would reach into it."""
    for header in FILES.rglob("*.cuh"):
        twins = [path.read_text() for path in header.parent.rglob("*.cu")]
        macros = {name for text in twins for name in re.findall(r"^#\s*define (\w+)", text, re.M)}
        code = re.sub(r"//.*", "", header.read_text())
        assert not macros & set(re.findall(r"\w+", code)), header.name
