"""What `emit` prints compiles as it stands, to the same instructions, and says how it is launched."""

import re
import shlex
import subprocess

from layers import layers

from tir_schedules.compiler.front_end import UNDETERMINED
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.compiler.twin import load_twin
from tir_schedules.emit import emit_text, is_used, numbered, parts_of, text_of, without_unused
from tir_schedules.ladders.problems import SMALL_SHAPES, Problem, workload_of
from tir_schedules.ladders.registry import FAMILIES, find, ladder

MAKERS = {"schedule": lower, "twin": load_twin}
ARCH = "sm_80"
SOME = [("sgemm/shared_tile", "schedule"), ("reduce/shuffle", "twin")]
# Of each rung schedule, then twin; and of every other rung one of them, in turn.
ALL = [(rung.id, form) for family in FAMILIES for rung in ladder(family) for form in MAKERS]


def made(name, form):
    """A rung's kernel on a small workload, and what `emit` prints of it; other launches are printed below."""
    (rung,) = find(name)
    workload = workload_of(rung, Problem(rung.family), SMALL_SHAPES)
    arch = rung.arch or ARCH
    text = emit_text(rung, workload, arch, "cuda", form == "twin")
    return MAKERS[form](rung, workload, arch), re.split(r"\n(?=// \S+ \((?:tir|twin)\) on )", text)[0]


def instructions(ptx):
    """The lines of PTX that do something, without what only names files and lines of the source."""
    code = re.sub(r"\d+_INTERNAL_\w+", "", ptx).partition("\n\t.section")[0].splitlines()
    return [line for line in code if line.startswith("\t") and not line.startswith(("\t.loc", "\t.file"))]


IN_TURN = [("hgemm/wmma_async", "schedule"), *(each for place, each in enumerate(ALL) if place % 8 in (0, 5))]
SCHEDULES = [each for each in ALL if each[1] == "schedule"]


@layers("name, form", SOME, IN_TURN)
def test_what_is_printed_compiles_to_the_same_instructions(name, form, tmp_path):
    kernel, text = made(name, form)
    (command,) = re.findall(r"^// compile: (nvcc .*)$", text, re.M)
    words = shlex.split(command)
    (tmp_path / words[-1]).write_text(text)
    nvcc = [find_toolchain().nvcc, *words[1:]]
    subprocess.run([*nvcc, "--keep"], cwd=tmp_path, check=True, capture_output=True)
    (ptx,) = tmp_path.glob("*.ptx")
    assert (tmp_path / words[-1]).with_suffix(".o").stat().st_size
    ours, theirs = ptx.read_text(), compile_kernel(kernel).ptx
    assert instructions(ours) == instructions(theirs) or UNDETERMINED in ours + theirs


@layers("name, form", SCHEDULES[::2], SCHEDULES)
def test_nothing_above_a_kernel_is_unused(name, form):
    kernel, text = made(name, form)
    above, opening, below = text.partition('extern "C" __global__')
    lines = [line for line in numbered(above) if not line[1].startswith("//")]
    parts = [*map(text_of, parts_of(lines))]
    for part in parts:
        assert is_used(part, [each for each in parts if each is not part], below), part
    # Device functions are written out.
    few = 140 if "mma.sync" in above else 70 if re.search("is_last_block|add_four", above) else 45
    most = 320 if kernel.maps or re.search("wgmma|mbarrier", above) else few
    assert len(above.splitlines()) < most and "__CUDACC_RTC__" not in above
    assert kernel.source.rstrip().endswith(below.rstrip()) and below.count('extern "C"') == 0


def test_the_head_says_how_it_is_launched():
    kernel, text = made("reduce/vectorized", "twin")
    assert text.startswith(
        "// reduce/vectorized (twin) on 65536 int32\n"
        "// compile: nvcc -arch=sm_80 -c reduce_vectorized.cu\n"
        "// launch:  reduce_vectorized, grid 8x1x1, block 256x1x1, 0 bytes of dynamic shared memory\n"
        "// takes:   const int *X[65536]\n"
        "//          int *Y[8]\n"
        "//          int N = 65536\n"
        "// after:   its 8 results are left, for a launch on 8 int32\n\n"
    )
    kernel, text = made("hgemm/mma_multistage", "schedule")
    assert f"SharedMemorySize, {kernel.dynamic_shared})" in text and "const half *B[512][256]" in text


def test_what_is_not_understood_stays():
    kernel = 'extern "C" __global__ void k(float* a) { a[0] = twice(max(1, 2)); }\n'
    used = "__device__ float twice(int x) {\n  return BAR * x;\n}\n"
    own = f"#include <vendor.h>\n#if FOO\n#define BAR 2\n#endif\n{used}"
    spare = "#include <cstdint>\n// unused\n__device__ int never(int x) {\n  return once(x);\n}\n"
    spare += "#define once(x) x\n"
    assert without_unused(own + spare + kernel) == own.rstrip("\n") + "\n\n" + kernel
    assert without_unused("no kernel") == "no kernel"
