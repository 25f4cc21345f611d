"""PTX made without reading all headers again is nvcc's."""

from dataclasses import replace
from itertools import cycle, product

import pytest
from layers import layers

from tir_schedules.compiler import front_end
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.front_end import (
    UNDETERMINED,
    Declarations,
    changed_macros,
    compile_ptx,
    end_of_headers,
    split,
)
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import FLAGS, PTX, compile_kernel, nvcc, without_place, write_source
from tir_schedules.compiler.toolchain import ask, find_toolchain
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.ladders.problems import Problem, workload_of
from tir_schedules.ladders.registry import FAMILIES, find, ladder
from tir_schedules.model.kernel import Kernel

CHEAP = ["sgemm/thread_tile_2d", "hgemm/wmma_padded", "hgemm/mma_ldmatrix", "reduce/shuffle"]
WIDENED = "sgemm/multistage:128x256"
"""Of this twin cicc widens a load in one call, and not in another."""

RUNGS = [rung.id for family in FAMILIES for rung in ladder(family)]
OTHERS = [name for name in (*RUNGS, WIDENED) if name not in CHEAP]
"""Other configurations of a rung include and call the same."""
MAKERS = (lower, load_twin)


@pytest.fixture
def whatever_cicc_widens(monkeypatch):
    """What cicc makes of our text is kept where it has widened a load, too, which it may do or not."""
    monkeypatch.setattr(front_end, "UNDETERMINED", "nothing that PTX has")


def made(kernel, by_nvcc=False):
    """The PTX of a kernel, or None where it is left to nvcc."""
    toolchain = find_toolchain()
    with default_cache().workplace() as folder:
        source = write_source(kernel, folder)
        if by_nvcc:
            nvcc(kernel, toolchain, folder, *FLAGS, "-ptx", source, "-o", PTX)
        elif not compile_ptx(kernel, toolchain, FLAGS, folder, PTX):
            return None
        return without_place((folder / PTX).read_text(encoding="utf-8"))


@layers("name, make", [*zip(CHEAP, cycle(MAKERS))], [*product(CHEAP, MAKERS), *zip(OTHERS, cycle(MAKERS))])
def test_it_is_what_nvcc_makes(name, make, whatever_cicc_widens):
    rung = find(name)[0]
    kernel = make(rung, workload_of(rung, Problem(rung.family)), rung.arch or "sm_80")
    ours, theirs = made(kernel), made(kernel, by_nvcc=True)
    assert ours
    assert ours == theirs or UNDETERMINED in ours + theirs


def kernel_of(source, **more):
    return Kernel("own", source, "own", (), (1, 1, 1), (32, 1, 1), arch="sm_80", **more)


OWN = 'extern "C" __global__ void own(float *X) { X[threadIdx.x] = 1; }\n'


@pytest.fixture
def dry_run(monkeypatch):
    """Makes nvcc say something else that it would do."""
    known = front_end.commands_of, front_end.assembling
    yield lambda change: (
        [each.cache_clear() for each in known],
        monkeypatch.setattr(front_end, "ask", lambda *command: change(ask(*command))),
    )
    for each in known:
        each.cache_clear()


def test_what_comes_from_users_or_does_not_compile_is_left_to_nvcc(dry_run):
    assert made(kernel_of(OWN, own=True))
    assert made(kernel_of(OWN)) is None
    assert made(kernel_of(OWN.replace("= 1", "= one"), own=True)) is None
    assert made(kernel_of(OWN.replace("= 1", "= __COUNTER__"), own=True)) is None
    wide = "= ((float4 *)X)[threadIdx.y].x + ((float4 *)X)[threadIdx.y].z"
    assert made(kernel_of(OWN.replace("= 1", wide), own=True)) is None
    assert UNDETERMINED in made(kernel_of(OWN.replace("= 1", wide)), by_nvcc=True)
    for change in (
        lambda told: "#$ another way of saying it",
        lambda told: told.replace("--module_id_file_name", "--another"),
        lambda told: told.replace("k.cu", "j.cu"),
    ):
        dry_run(change)
        assert made(kernel_of(OWN, own=True)) is None


def test_kernels_of_others_may_need_what_no_name_leads_to():
    """Memory from `new` is that of a function of CUDA's headers, which the text does not name."""
    ptx = compile_kernel(kernel_of(OWN.replace("X[threadIdx.x] = 1", "delete new int; *X = 1"))).ptx
    assert "call" in ptx and "malloc" in ptx


def test_schedules_and_twins_are_ours_in_every_configuration_and_others_are_not():
    workload = workload_of(find("sgemm/multistage")[0], Problem("sgemm"))
    for rung in (*find("sgemm/multistage:64x128"), *find("sgemm/naive")):
        assert lower(rung, workload, "sm_80").own and load_twin(rung, workload, "sm_80").own
    theirs = replace(rung, schedule=lambda *given: rung.schedule(*given))
    assert not lower(theirs, workload, "sm_80").own and not load_twin(theirs, workload, "sm_80").own
    assert not load_source(OWN.replace("own", "sgemm_naive").replace("X", "C"), rung, workload, "sm_80").own


def test_commands_are_the_same_in_every_process(dry_run):
    """What is kept of headers has them in its key."""
    told = []
    for _ in range(2):
        dry_run(lambda text: text)
        told.append(front_end.commands_of(find_toolchain().nvcc, "sm_80", FLAGS))
    assert told[0] and told[0] == told[1]


def test_ptxas_is_called_as_nvcc_calls_it(dry_run):
    words = front_end.assembling(find_toolchain().nvcc, "sm_80", FLAGS)
    assert words and "-arch=sm_80" in " ".join(words).replace("-arch sm_80", "-arch=sm_80")
    dry_run(lambda told: told.replace("ptxas ", "ptxas -maxrregcount=24 "))  # a wrapper of the user's
    assert "-maxrregcount=24" in front_end.assembling(find_toolchain().nvcc, "sm_80", FLAGS)
    dry_run(lambda told: told + "\n#$ fatbinary k.cubin\n")
    assert front_end.assembling(find_toolchain().nvcc, "sm_80", FLAGS) is None


@pytest.mark.parametrize(
    "source, end",
    [
        (OWN, 0),
        ("// #include <x>\n" + OWN, 0),
        ("/* one */\n#include <mma.h>\n" + OWN, 27),
        ("#define half int\n#include <cuda_fp16.h>\n" + OWN, None),
        ("#ifdef __CUDACC_RTC__\n#endif\nint a;\n#if 1\n#endif\nint b;\n" + OWN + "#define C\n", 49),
    ],
)
def test_where_headers_end(source, end):
    assert end_of_headers(source) == end


def test_macros_of_the_headers_are_made_and_unmade():
    before = ["#define GONE 1", "#define SAME 2", "#define F(x) x"]
    after = ["#define SAME 2", "#define F(x) (x)", "#define NEW"]
    assert changed_macros(before, after).split("\n") == ["#undef GONE", "#define F(x) (x)", "#define NEW", ""]


HEADER = """# 1 "a.h"
typedef int number; struct pair { number first; };
namespace n { inline namespace m { template <class T> struct box : holder<T(1) < T(2)> { T it; }; } }
#pragma GCC visibility push(default)
extern "C" { pair make(number) __attribute__((nothrow, deprecated("use() {"))); }
# 7 "b.h" 3
static inline box<int> filled(pair p) { box<int> b; b.it = make(1).first; return b; }
bool operator<(const pair &a, const pair &b);
int unused = 1, also = {2}; enum color { red, green = 0x1b }; number counted = 7;
template <class T> typename holder<sizeof(T) >= 4, T>::it swapped(T x) { union U { T y; }; return x; }
"""


@pytest.mark.parametrize(
    "kernel, kept, left",
    [
        ("number n;", ["typedef int number"], ["struct pair", "make", "unused"]),
        (
            "make(2)",
            ["typedef", "struct pair", "pair make(number)", "operator<"],
            ["filled", "box", "unused"],
        ),
        ("filled(x)", ["pair make(number)", "struct box", "filled"], ["unused", "color"]),
        ("green", ["enum color"], ["typedef", "unused"]),
        ("also", ["unused = 1, also"], ["color", "counted"]),
        ("int a = b, x = y.red + x1b;", [], ["operator<", "swapped", "color"]),
        ("swapped(1)", ["union U"], ["counted"]),
    ],
)
def test_what_a_kernel_leads_to(kernel, kept, left):
    text = Declarations(split(HEADER)).needed(kernel)
    assert all(part in text for part in [*kept, "#pragma GCC visibility"])
    assert not any(part in text for part in left)
    assert text.count("{") - text.count("use() {") == text.count("}")


def test_texts_that_begin_alike_are_split_as_if_each_were_the_first():
    other = "namespace n { int last; }\n"
    for place in range(0, len(HEADER), 7):
        split(HEADER, "test")
        text = HEADER[:place] + other + HEADER[place:]
        assert split(text, "test") == split(text, place)


def test_declarations_keep_place_and_scope():
    text = Declarations(split(HEADER)).needed("box")
    assert '# 2 "a.h"\ntemplate <class T> struct box' in text
    assert "namespace n {\ninline namespace m {\n" in text
    assert '# 7 "b.h"' in Declarations(split(HEADER)).needed("filled")
