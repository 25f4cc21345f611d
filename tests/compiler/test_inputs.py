"""What the cache takes for the same kernel: the same text, seen by the same compilers with the same flags and
the same files."""

import os
import re
import shutil
from dataclasses import replace

import pytest

from tir_schedules.compiler import inputs, nvcc
from tir_schedules.compiler.inputs import environment, reads_files
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import Toolchain, find_toolchain
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.machines.cpu import library as machine_library
from tir_schedules.model.kernel import Kernel

PLAIN = 'extern "C" __global__ void k(float* a) { a[0] = 1.f; }\n'
KERNEL = Kernel("k", PLAIN, "k", ("a",), (1, 1, 1), (32, 1, 1), "sm_80")
INCLUDING = replace(
    KERNEL, source='#include "outer.h"\nextern "C" __global__ void k(float* a) { a[0] = VALUE; }\n'
)
REPORT = "Compiling entry function 'k' for 'sm_80'\nUsed 8 registers"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    for name in (*inputs.FOREIGN, *inputs.SEARCHED, *inputs.KEPT, "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def compiled(monkeypatch):
    """compiled(kernel): how many compilations it took; what nvcc would leave is made up."""
    built = []

    def build(kernel, toolchain, folder, seen=None):
        built.append(kernel)
        for name, text in (("kernel.ptx", ".entry k()\n{}"), ("kernel.cubin", ""), ("ptxas.txt", REPORT)):
            (folder / name).write_text(text)

    def count(kernel=KERNEL):
        before = len(built)
        compile_kernel(kernel)
        return len(built) - before

    monkeypatch.setattr(nvcc, "build", build)
    return count


@pytest.fixture
def toolkit(monkeypatch, tmp_path):
    """A made-up toolkit; its nvcc only tells a version."""
    folder = tmp_path / "toolkit"
    parts = (
        "bin/nvcc.profile",
        "bin/ptxas",
        "nvvm/bin/cicc",
        "nvvm/libdevice/libdevice.10.bc",
        "include/mma.h",
        "include/crt/mma.h",
    )
    for name in ("bin/nvcc", *parts):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("#!/bin/sh\necho V13.0.1\n")
    (folder / "bin/nvcc").chmod(0o755)
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(folder / "bin/nvcc"))
    return folder


def edit(path):
    path.write_text(path.read_text() + " ")


def test_the_flags_are_part_of_the_key(compiled, monkeypatch):
    assert (compiled(), compiled()) == (1, 0)
    monkeypatch.setattr(nvcc, "FLAGS", (*nvcc.FLAGS, "--use_fast_math"))
    assert compiled() == 1
    monkeypatch.setattr(nvcc, "FLAGS", nvcc.FLAGS[1:])
    assert compiled() == 1


@pytest.mark.parametrize(
    "change", [{"source": PLAIN + "\n"}, {"label": "other"}, {"arch": "sm_90"}, {"entry": "k2"}]
)
def test_the_kernel_is_part_of_the_key(compiled, monkeypatch, change):
    monkeypatch.setattr(nvcc, "parse_resources", lambda kernel, report: nvcc.Resources(8, 0))
    assert (compiled(), compiled(replace(KERNEL, **change))) == (1, 1)


def test_how_a_kernel_is_launched_is_not(compiled):
    assert (compiled(), compiled(replace(KERNEL, grid=(7, 1, 1), block=(64, 1, 1), dynamic_shared=64))) == (
        1,
        0,
    )


@pytest.mark.parametrize(
    "part",
    [
        "bin/nvcc",
        "bin/nvcc.profile",
        "bin/ptxas",
        "nvvm/bin/cicc",
        "nvvm/libdevice/libdevice.10.bc",
        "include/mma.h",
        "include/crt/mma.h",
    ],
)
def test_every_part_of_the_compiler_is_part_of_the_key(compiled, toolkit, part):
    assert (compiled(), compiled()) == (1, 0)
    edit(toolkit / part)
    assert (compiled(), compiled()) == (1, 0)


def test_another_compiler_of_the_same_version_is_another(compiled, toolkit, monkeypatch, tmp_path):
    assert compiled() == 1
    shutil.copytree(toolkit, tmp_path / "second")
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(tmp_path / "second/bin/nvcc"))
    assert compiled() == 1


def test_the_version_is_part_of_the_key(compiled, monkeypatch):
    found = find_toolchain()
    assert compiled() == 1
    monkeypatch.setattr(nvcc, "find_toolchain", lambda: Toolchain(found.nvcc, found.origin, "13.9.99"))
    assert compiled() == 1


def test_the_host_compiler_is_part_of_the_key(compiled, monkeypatch, tmp_path):
    assert compiled() == 1
    host = tmp_path / "g++"
    host.write_text("#!/bin/sh\n")
    host.chmod(0o755)
    monkeypatch.setenv("NVCC_CCBIN", str(host))
    assert (compiled(), compiled()) == (1, 0)
    edit(host)
    assert compiled() == 1
    monkeypatch.setenv("NVCC_CCBIN", str(tmp_path / "none"))
    with pytest.raises(BadInput, match="NVCC_CCBIN is .*none', which is not a program: set it to"):
        compiled()
    (tmp_path / "gcc").symlink_to(host)
    monkeypatch.delenv("NVCC_CCBIN")
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(find_toolchain().nvcc))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert inputs.host_compiler() == tmp_path / "gcc"


@pytest.mark.parametrize("variable", inputs.KEPT)
def test_what_gcc_heeds_of_the_environment_is_part_of_the_key(compiled, monkeypatch, variable):
    assert compiled() == 1
    monkeypatch.setenv(variable, "/nowhere/")
    assert (compiled(), compiled()) == (1, 0)


@pytest.mark.parametrize("variable", inputs.FOREIGN)
def test_foreign_flags_reach_no_compiler(compiled, monkeypatch, variable):
    assert compiled() == 1
    monkeypatch.setenv(variable, "-DFOREIGN")
    assert compiled() == 0 and variable not in environment()


def test_flags_that_nvccs_profile_takes_from_the_environment_change_nothing(monkeypatch):
    """nvcc.profile appends to INCLUDES and PTXAS_FLAGS what the environment has of them."""
    monkeypatch.setenv("PTXAS_FLAGS", "--no-such-flag")
    monkeypatch.setenv("INCLUDES", "-DFOREIGN")
    source = PLAIN + "#ifdef FOREIGN\n#error FOREIGN\n#endif\n"
    assert compile_kernel(replace(KERNEL, source=source)).cubin


@pytest.fixture
def headers(tmp_path):
    """A folder, of a name that a shell reads otherwise, whose outer.h includes inner.h in a folder below."""
    folder = tmp_path / 'my $(touch ran) "headers'
    (folder / "below").mkdir(parents=True)
    (folder / "outer.h").write_text('#include "below/inner.h"\n')
    (folder / "below/inner.h").write_text("#define VALUE 1.f\n")
    return folder


def test_an_edited_include_is_compiled_anew(compiled, headers):
    including = replace(INCLUDING, folder=str(headers))
    assert (compiled(including), compiled(including)) == (1, 0)
    edited, times = headers / "below/inner.h", os.stat(headers / "below/inner.h")
    edited.write_text("#define VALUE 2.f\n")
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (compiled(including), compiled(including)) == (1, 0)
    edited.write_text("#define VALUE 1.f\n")
    assert compiled(including) == 0, "what was compiled before is still there"


def test_an_include_that_appears_is_seen(compiled, headers):
    source = '#if __has_include("extra.h")\n#include "extra.h"\n#endif\n' + PLAIN
    including = replace(KERNEL, source=source, folder=str(headers))
    assert (compiled(including), compiled(including)) == (1, 0)
    (headers / "extra.h").write_text("#define NEW\n")
    assert compiled(including) == 1


@pytest.mark.parametrize("variable", inputs.SEARCHED[::2])
def test_includes_found_by_a_variable_of_gccs(compiled, headers, monkeypatch, variable):
    """Its folders may be relative, to where the command is called."""
    monkeypatch.chdir(headers.parent)
    monkeypatch.setenv(variable, f"/nowhere:{headers.name}")
    assert (compiled(INCLUDING), compiled(INCLUDING)) == (1, 0)
    (headers / "below/inner.h").write_text("#define VALUE 2.f\n")
    assert compiled(INCLUDING) == 1


def test_an_include_is_compiled_as_it_is_now_and_leaves_no_place_in_the_binary(headers):
    including = replace(
        INCLUDING, folder=str(headers), source=INCLUDING.source.replace("= VALUE", "= squared(a[1]) * VALUE")
    )
    (headers / "outer.h").write_text(
        '#include "below/inner.h"\n__device__ float squared(float x) { return x * x; }\n'
    )
    for value, bits in (("3.f", "0f40400000"), ("5.f", "0f40A00000")):
        (headers / "below/inner.h").write_text(f"#define VALUE {value}\n")
        binary = compile_kernel(including)
        assert bits in binary.ptx
    assert re.findall(r'\.file\s+\d+ "(.*)"', binary.ptx) == ["k.cu", "outer.h"]
    assert not list(headers.parent.rglob("ran"))


def test_an_error_in_an_include_names_it_as_the_source_does(headers):
    (headers / "below/inner.h").write_text("oops\n")
    with pytest.raises(CheckFailed, match=r"\n  below/inner\.h\(1\): error"):
        compile_kernel(replace(INCLUDING, folder=str(headers)))


def test_an_include_that_is_edited_meanwhile_is_not_kept(headers, monkeypatch):
    including, run = replace(INCLUDING, folder=str(headers)), nvcc.nvcc

    def edited_meanwhile(kernel, toolchain, folder, *arguments):
        answer = run(kernel, toolchain, folder, *arguments)
        if "-ptx" in arguments:
            (headers / "below/inner.h").write_text("#define VALUE 3.f\n")
        return answer

    monkeypatch.setattr(nvcc, "nvcc", edited_meanwhile)
    with pytest.raises(
        CheckFailed, match="k: a file that it includes changed while it was compiled: run it again"
    ):
        compile_kernel(including)


@pytest.mark.parametrize(
    "text",
    ['#include "a.h"', "#include </a.h>", "#include <vector>", "#include NAME", "# /**/ include <cstdint>",
     "#inc\\\nlude <a>", "#inc\\ \r\nlude <a>", "%:include <cstdint>", "??=include <cstdint>",
     "#import <cstdint>",
     "#include_next <cstdint>", "#if __has_include(<cstdint>)", "#include <cstdint> /* a\n#include <b> */",
     "#embed <a>"],
)  # fmt: skip
def test_sources_that_may_read_files(text):
    assert reads_files(f"{PLAIN}{text}\n")


def test_sources_that_read_no_files_but_the_compilers(monkeypatch):
    source = "#include <cuda_fp16.h>\n  #  include <mma.h>  \n" + PLAIN
    assert not reads_files(source)
    monkeypatch.setenv("CPATH", "/somewhere")
    assert reads_files(source)


def test_a_compiler_knows_no_date():
    dated = 'extern "C" __global__ void k(char* a) { a[0] = (__DATE__ " " __TIME__)[threadIdx.x]; }'
    assert ", ".join(map(str, b"Jan  1 1970 00:00:00")) in compile_kernel(replace(KERNEL, source=dated)).ptx


def test_names_that_a_source_gives_to_its_lines_need_no_quoting():
    source = PLAIN.replace("{ a[0]", '{\n#line 7 "a\\"b$(c).cu"\na[0]')
    assert re.findall(r"\.file\s+\d+ (.*)", compile_kernel(replace(KERNEL, source=source)).ptx) == [
        '"k.cu"',
        '"a__b__c_.cu"',
    ]


def test_the_machines_library_is_known_by_its_compiler(monkeypatch, tmp_path):
    """Another g++ of the same version, or the same one edited, compiles it anew."""
    host, keys = tmp_path / "g++", []
    host.write_text("#!/bin/sh\necho g++ 1\n")
    host.chmod(0o755)

    class Keys:
        def load(self, kind, key, build, read):
            keys.append(key)

    monkeypatch.setattr(machine_library, "default_cache", Keys)
    for change in (
        lambda: None,
        lambda: edit(host),
        lambda: monkeypatch.setenv("CPATH", "/x"),
        lambda: monkeypatch.chdir(tmp_path),
    ):
        change()
        machine_library.compiled(str(host), "lanes", "lanes.cpp", {"lanes.cpp": ""})
    assert len(set(keys)) == 3 and keys[2] == keys[3]


def test_a_compiler_of_the_machine_that_cannot_be_started(monkeypatch, tmp_path):
    (tmp_path / "g++").write_bytes(b"\x7fELF damaged")
    (tmp_path / "g++").chmod(0o755)
    with pytest.raises(
        MissingTool,
        match=(
            r"g\+\+ cannot compile the CPU machine \(Exec format error\): a g\+\+ of version 9 .* set CXX"
            r" to one"
        ),
    ):
        machine_library.compiler_version(str(tmp_path / "g++"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "./g++")
    assert machine_library.find_compiler() == str(tmp_path / "g++"), "it is called in another folder"
