"""The same from Python, on numpy arrays; PTX; and what names, expressions and bounds come to."""

import re

import numpy as np
import pytest

from tir_schedules import check
from tir_schedules.check.expecting import Truth
from tir_schedules.check.expressions import evaluate
from tir_schedules.check.functions import FUNCTIONS
from tir_schedules.check.target import alone, chosen, instance_of, split_signature, targets
from tir_schedules.check.types import Bounded, c_type, fits, rounding_of
from tir_schedules.errors import BadInput

AXPY = """\
__global__ void axpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""

PTX = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 twice_param_0, .param .u64 twice_param_1, .param .u32 twice_param_2)
{
  .reg .pred %p<2>;
  .reg .f32 %f<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [twice_param_0];
  ld.param.u64 %rd2, [twice_param_1];
  ld.param.u32 %r1, [twice_param_2];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f1, %f1, %f1;
  st.global.f32 [%rd5], %f1;
  ret;
}
"""


def axpy(**changed):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    given = dict(grid=2, block=64, arguments={"a": 2.0, "x": x, "y": y, "n": 100}, expect={"y": "a * x + y"})
    return check(AXPY, **(given | changed))


def test_arrays_in_outputs_and_counters_out():
    result = axpy()
    assert result.ok and not result.faults
    assert list(result.outputs) == ["y"] and np.array_equal(result.outputs["y"], 2 * np.arange(100) + 1)
    assert result.counters[0].accesses["global_store"].requests == 4


def test_what_is_wrong_is_in_the_result():
    wrong = axpy(expect={"y": np.zeros(100, np.float32)})
    assert wrong.verdict == "FAIL" and "kernel.cu:3" in wrong.faults[0]
    outside = axpy(arguments={"a": "2", "x": "f32[90]", "y": "f32[100]", "n": "100"}, expect={})
    assert outside.verdict == "HAZARD" and [one.kind for one in outside.findings] == ["out_of_bounds"]
    unread = axpy(outputs=["y"], expect={})
    assert [one.kind for one in unread.findings] == ["uninitialized"]
    broken = check("__global__ void k() {\n nothing; }\n", block=1)
    assert broken.verdict == "ERROR" and "nothing" in broken.faults[0]


def test_a_tolerance_is_taken():
    near = np.arange(100) * 2.0 + 1.1
    assert axpy(expect={"y": near}).verdict == "FAIL"
    assert axpy(expect={"y": near}, tolerance=0.11).ok


@pytest.mark.parametrize("subject, given, told", [
    (AXPY, {"block": 1, "flags": "-lineinfo", "arguments": ["1"]}, "nothing is given for `float const* x`"),
    (AXPY, {"block": 1, "flags": "fast"}, "flags= takes flags such as --use_fast_math, not 'fast'"),
    (AXPY, {"block": 1, "includes": "inc"}, 'includes=["inc"] is not a folder'),
    (AXPY, {"launches": "axpy[1, 2](1)"}, "launches= gives 1 arguments"),
    (AXPY, {"block": 1, "defines": ["3=4"]}, "defines= takes NAME or NAME=VALUE"),
    (AXPY, {"block": 1, "arguments": ["1", "f32[4]", "f32[4]", "4"], "expect": {"Q": "x"}},
     'expect={"Q": ...}: there is no array \'Q\'; arrays: x, y'),
    (AXPY, {"block": 1, "arguments": ["1", "f32[4]", "f32[4]:out", "4"], "expect": {"y": "x + y"}},
     'expect={"y": \'x + y\'}: y is :out and holds nothing'),
    (AXPY, {"block": 1, "sizes": {"n": "abc"}}, "n of sizes= is 'abc'; it takes a number"),
    (AXPY, {"block": 1, "expect": {"y": len}}, "expect of y is a function"),
    (AXPY, {"block": 1, "schedule": "text"}, "schedule is 'text'; it takes a function"),
    ([AXPY], {"block": 1}, "not a list"),
    ("int main() {}", {"grid": 1}, "it has no __global__ function"),
    ("__global__ void k(float *);\nint main() {}", {"grid": 1}, "declares k and does not define it"),
    ("__global__ void k(float *);\nvoid k(int) {}", {"grid": 1}, "declares k and does not define it"),
    ("__global__ void k(const int4 *x) {}", {"block": 1}, "'i32[N]'"),
    ("", {"grid": 1}, "the text is empty"),
    ("/tmp", {"grid": 1}, "/tmp is a folder: name a file in it"),
    ("sgem", {"grid": 1}, "there is no rung 'sgem'"),
])  # fmt: skip
def test_bad_input_is_told_in_python(subject, given, told):
    with pytest.raises(BadInput) as error:
        check(subject, **given)
    assert told in str(error.value)


def test_ptx_is_checked_by_its_own_lines(tmp_path):
    path = tmp_path / "twice.ptx"
    path.write_text(PTX)
    given = dict(block=64, arguments=["f32[50]", "f32[50]:out", "50"])
    assert check(path, **given, expect={"param_1": "2 * param_0"}).ok
    path.write_text(PTX.replace("setp.ge", "setp.gt"))
    (finding, *_) = check(path, **given).findings
    assert finding.kind == "out_of_bounds" and finding.location.ptx_line == 19


def test_a_float_array_on_an_integer_pointer_is_bad_input():
    with pytest.raises(BadInput, match=re.escape("points to f32; an array of f64")):
        axpy(arguments={"a": 2.0, "x": np.zeros(100), "y": "f32[100]", "n": 100})


@pytest.mark.parametrize(
    "text, pointer, format, const",
    [
        ("float const*", True, "f32", True),
        ("const unsigned char *__restrict__", True, "u8", True),
        ("unsigned long", False, "u64", False),
        ("long long unsigned int", False, "u64", False),
        ("float (*) [32]", True, "f32", False),
        ("float4*", True, "", False),
        ("__nv_bfloat16 const*", True, "bf16", True),
    ],
)  # fmt: skip
def test_types_are_read(text, pointer, format, const):
    found = c_type(text)
    assert (found.pointer, found.format, found.const) == (pointer, format, const)


def test_which_arrays_fit_a_pointer():
    fit = {("float*", "f32"), ("int*", "u32"), ("unsigned int*", "f16"), ("float4*", "f16"), ("void*", "f64")}
    misfit = {("float*", "f64"), ("float*", "i32"), ("int*", "f32"), ("__half*", "f32"), ("int*", "i64")}
    assert all(fits(c_type(text), format) for text, format in fit)
    assert not any(fits(c_type(text), format) for text, format in misfit)


def test_names_of_kernels_are_taken_apart():
    assert split_signature("void ns::f<2, float>(float const*, int (*) [3])") == (
        "ns::f<2, float>",
        ("float const*", "int (*) [3]"),
    )
    assert split_signature("plain") == ("plain", None) and split_signature("f()") == ("f", ())
    text = "void tir_schedules_instance<1, &(void f<(Mode)1>(float*))>()"
    assert instance_of(text) == (1, "void f<(Mode)1>(float*)")


def test_other_kernels_leave_their_lines():
    two = PTX + PTX[PTX.index(".visible") :].replace("twice", "other")
    assert [one.shown for one in targets(two)] == ["twice", "other"]
    left = alone(two, "other")
    assert "twice" not in left and left.count("\n") == two.count("\n")
    assert left.split("\n").index("  add.f32 %f1, %f1, %f1;") == two.split("\n").index(
        "  add.f32 %f1, %f1, %f1;", 25
    )


def value(text, **names):
    bounded = {name: Bounded.given(np.asarray(array), rounding_of("f32")) for name, array in names.items()}
    return evaluate(text, bounded, FUNCTIONS, "test")


def test_bounds_cover_float32_and_little_more():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 300)).astype(np.float32)
    for text, ours in (
        ("x @ x.T", x @ x.T),
        ("exp(x - max(x, axis=1, keepdims=True))", np.exp(x - x.max(1, keepdims=True))),
        ("cumsum(x, axis=1)", np.cumsum(x, axis=1)),
        ("std(x, axis=0)", x.std(0)),
        ("sum(x * x) / 7", (x * x).sum() / np.float32(7)),
    ):
        found = value(text, x=x.astype(np.float64))
        off = np.abs(ours - found.value)
        assert np.all(off <= found.error + 1e-30), text
        assert np.max(found.error) < 2e-3 * np.max(np.abs(found.value)), text


def test_integers_are_exact_and_wrap_as_the_output_does():
    found = value("cumsum(x) * 3 + (x > 2)", x=np.arange(5))
    assert found.value.dtype == np.int64 and not np.any(found.error)
    source = "__global__ void k(int *x) { x[threadIdx.x] *= 65536; }\n"
    big = np.array([65535, 1], np.int32)
    assert check(source, block=2, arguments={"x": big}, expect={"x": "x * 65536"}).ok


def test_one_array_for_two_parameters_and_an_output_that_is_none():
    source = (
        "__global__ void add(const float *a, float *b) { b[threadIdx.x] += a[threadIdx.x]; }\n"
        "__global__ void turn(const float *a, float *b) { b[threadIdx.x] = a[63 - threadIdx.x]; }\n"
    )
    launch = ["add[1, 32](x, x)"]
    result = check(source, launches=launch, arguments={"x": "f32[32]"}, expect={"x": "x + x"})
    assert result.ok and list(result.outputs) == ["x"]
    raced = check(source, launches=["turn[1, 64](x, x)"], arguments={"x": "f32[64]"})
    assert "race" in {one.kind for one in raced.findings}
    wrong = check(source, "add", block=32, arguments={"a": "f32[32]", "b": "f32[32]"}, expect={"a": "a + 1"})
    assert wrong.verdict == "FAIL" and "no launch may store to it" in wrong.faults[0]


ALIASES = """\
typedef float real;
using Row = const real *;
extern "C" __global__ void scaled(Row x, real *y, real by, bool twice, unsigned long long n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * by * (twice ? 2 : 1);
}
"""


def test_what_one_launch_leaves_out_is_unwritten_for_the_next():
    def summed(first):
        launches = [f"twice[1, 32](x, partial, {first})", "twice[1, 32](partial, y, 32)"]
        return check(
            PTX, launches=launches, arguments={"x": "f32[32]", "partial": "f32[32]:out", "y": "f32[32]:out"}
        )

    assert summed(32).ok
    (fault,) = summed(31).faults
    assert "uninitialized: reads partial[31], which nothing has written" in fault


def test_aliases_of_types_whose_names_are_all_that_is_known():
    given = {"x": "f32[8]", "y": "f32[8]:out", "by": 0.5, "twice": True, "n": "8"}
    assert check(ALIASES, block=32, arguments=given, expect={"y": "x"}).ok


def test_an_argument_wins_over_a_size_of_its_name():
    given = {"a": 2.0, "x": "f32[n]", "y": "f32[n]", "n": "5"}
    result = axpy(arguments=given, sizes={"n": 100}, expect={"y[:5]": "a * x[:5] + y[:5]", "y[5:]": "y[5:]"})
    assert result.ok, result.faults


HEADER = "__device__ float twice(const float *x, int i) {\n  return 2 * x[i];\n}\n"
INCLUDING = """\
#include "twice.h"
__global__ void k(const float *x, float *y) { y[threadIdx.x] = twice(x, threadIdx.x) + LOCAL; }
"""


def test_headers_of_another_folder_and_macros_that_a_shell_would_run(tmp_path):
    (tmp_path / "my $(touch ran) headers").mkdir()
    header = tmp_path / "my $(touch ran) headers" / "twice.h"
    header.write_text(HEADER)
    path = tmp_path / "mine.cu"
    path.write_text(INCLUDING)
    given = dict(block=32, arguments=["f32[31]", "f32[32]:out"], includes=[header.parent])
    result = check(path, **given, defines=["LOCAL=1", 'TEXT="$(touch ran)"'])
    (finding,) = result.findings
    assert finding.location.file == "twice.h" and finding.location.text == "return 2 * x[i];"
    assert not list(tmp_path.rglob("ran"))
    header.write_text(HEADER.replace("2 *", "3 *"))
    again = check(path, **given, defines=["LOCAL=1"])
    assert np.allclose(again.outputs["y"][:31] - 1, 1.5 * (result.outputs["y"][:31] - 1))


GRID = """\
#include <cooperative_groups.h>
__device__ int rounds;
__global__ void turns(int *x) {
  cooperative_groups::this_grid().sync();
  x[blockIdx.x] = x[blockIdx.x] + rounds;
}
"""


def test_grids_synchronise_and_variables_of_the_file_are_set():
    given = {"x": "i32[4]", "rounds": "i32[1]:5"}
    assert check(GRID, grid=4, arguments=given, expect={"x": "x + 5"}).ok


def test_infinities_are_right_where_they_should_be():
    truth = Truth(np.array([np.inf, -np.inf, 1.0]), 0.5)
    assert truth.mismatch("y", np.float32([np.inf, -np.inf, 1.25])) is None
    assert truth.mismatch("y", np.float32([np.inf, np.inf, 1])).index == (1,)
    assert truth.mismatch("y", np.float32([np.inf, -np.inf, np.inf])).index == (2,)
    assert truth.mismatch("y", np.float32([3e38, -np.inf, 1])).index == (0,)


def test_a_variable_that_is_set_is_in_the_machine_code_as_well():
    source = "__constant__ int added;\n__global__ void add(int *x) { x[0] += added; }\n"
    arguments = {"x": np.zeros(1, np.int32)}
    codes = {
        check(source, block=1, arguments={**arguments, "added": f"i32[1]:{value}"})
        .checked[0][1].steps[0].binary.cubin
        for value in (3, 4)
    }  # fmt: skip
    assert len(codes) == 2


def test_flags_hold_for_machine_code_with_variables_set():
    source = (
        "__constant__ float w[4];\n__global__ void k(const float *x, float *y) {\n  float v[48];\n"
        "#pragma unroll\n  for (int i = 0; i < 48; ++i) v[i] = x[i * 32 + threadIdx.x] * w[i % 4];\n"
        "  __syncthreads();\n#pragma unroll\n"
        "  for (int i = 0; i < 48; ++i) y[i * 32 + threadIdx.x] = v[47 - i];\n}\n"
    )
    given = {"x": "f32[1536]", "y": "f32[1536]:out", "w": "f32[4]:ones"}
    plain, few = (
        check(source, block=32, arguments=given, flags=flags, finite=True)
        .checked[0][1].steps[0].binary.resources.registers
        for flags in ((), ("-maxrregcount=32",))
    )  # fmt: skip
    assert few <= 32 < plain


def test_kernels_of_thrust_and_cub_are_not_the_users():
    found = targets(".visible .entry _ZN3cub1fEv()\n{\nret;\n}\n", "int main() {}")
    with pytest.raises(BadInput, match="no __global__ function of its own"):
        chosen(found, "", "int main() {}", "sorts.cu")
    assert chosen(found, "", "", "sorts.ptx") == found[0]  # of PTX nothing else is known
