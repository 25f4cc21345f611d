"""Somebody's file compiles without the headers of the host's libraries, and as nvcc has it where nothing is
missing."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tir_schedules import check
from tir_schedules.compiler.device_code import (
    FAMILIES,
    STAND_INS,
    NoDeviceCode,
    compile_device_code,
    faults_in,
)
from tir_schedules.compiler.nvcc import compile_source
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel

EXTENSION = """\
#include <torch/extension.h>
#include "device.cuh"
#include "logging/host.h"
#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be on a GPU")
MACRO_OF_A_LIBRARY(1024)
__global__ void plain(float *x) { x[threadIdx.x] = scale(x[threadIdx.x]); }
template <typename scalar_t>
__global__ void made(const scalar_t *__restrict__ x, scalar_t *y, int n) {
  CUDA_KERNEL_LOOP(i, n) y[i] = x[i] * static_cast<scalar_t>(2);
}
static host::Logger logger("mine");
struct __align__(8) Pair { float m, d; };
__global__ void of_pairs(Pair *p) { p->m += p->d; }
torch::Tensor forward(torch::Tensor x) {
  CHECK_CUDA(x);
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "made", ([&] {
    made<scalar_t><<<1, 32>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  }));
  return y;
}
namespace nested { torch::Tensor again(torch::Tensor x) { return forward(forward(x)); } }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "doubles"); }
template __global__ void made<at::Half>(const at::Half *, at::Half *, int);
"""

DEVICE_CUH = """\
#pragma once
__device__ inline float scale(float x) { assert(x > 0); return 3 * x; }
inline void complain(host::Logger &logger) { logger.say("no"); }
template <int N> __global__ void in_header(const float *wanted, float *result) { result[0] = wanted[N]; }
template __global__ void in_header<2>(const float *, float *);
"""


def kernel_of(source, folder="", **others):
    one = (1, 1, 1)
    return Kernel(
        "mine.cu", source, "", (), one, one, "sm_80", folder=str(folder), file="mine.cu", **others
    )  # fmt: skip


def lines_of(ptx):
    """Lines of mine.cu that instructions come from."""
    number = re.search(r'\.file\s+(\d+)\s+"mine.cu"', ptx)[1]
    return {int(line) for line in re.findall(rf"^\s*\.loc\s+{number}\s+(\d+)", ptx, re.M)}


def test_host_code_that_does_not_compile_is_left_out(tmp_path):
    (tmp_path / "device.cuh").write_text(DEVICE_CUH)
    code = compile_device_code(kernel_of(EXTENSION, tmp_path))
    assert {"plain", "made", "in_header", "of_pairs"} == {
        name for name in ("plain", "made", "in_header", "of_pairs", "forward") if name in code.compiled.ptx
    }
    assert lines_of(code.compiled.ptx) >= {6, 9, 13}
    assert "beside" not in code.text and '"device.cuh"' in code.text
    (note,) = code.notes
    assert note.startswith("logging/host.h is not found")
    assert "const float *wanted" in code.text and "__global__" in code.text
    assert "forward" not in code.text and "complain" not in code.text and "mine" not in code.text


def test_what_device_code_needs_is_an_error_and_says_which_headers_are_missing():
    source = '#include "mine.cuh"\nvoid f(Missing m) {}\n__global__ void k(float *y) { y[0] = mine(1); }\n'
    with pytest.raises(NoDeviceCode) as error:
        compile_device_code(kernel_of(source))
    assert error.value.missing == ("mine.cuh",)
    assert 'mine.cu(3): error: identifier "mine" is undefined' in str(error.value)
    assert "Missing" not in str(error.value)


def test_without_faults_it_is_what_nvcc_makes(tmp_path):
    (tmp_path / "two.cuh").write_text("__device__ int two() { return 2; }\n")
    source = (
        '#include <cmath>\n#include "two.cuh"\n'
        "__global__ void k(float *y) { y[0] = std::sqrt(y[1]) * two(); }\n"
        "int main() { k<<<1, 1>>>(nullptr); return 0; }\n"
    )
    kernel = kernel_of(source, tmp_path, flags=("--use_fast_math",), defines=("UNUSED 1",))
    assert compile_device_code(kernel).compiled[:2] == compile_source(kernel)[:2]
    assert "sqrt.approx" in compile_device_code(kernel).compiled.ptx


def test_a_flag_that_nvcc_asks_for_is_added():
    source = (
        "constexpr int half(int n) { return n / 2; }\n__global__ void k(int *y, int n) { *y = half(n); }\n"
    )
    assert "--expt-relaxed-constexpr" in compile_device_code(kernel_of(source)).notes[0]


def test_an_architecture_that_ptxas_asks_for_is_taken_unless_it_is_fixed():
    source = '__global__ void k() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }\n'
    code = compile_device_code(kernel_of(source), fixed=False)
    assert code.arch == "sm_90a" and "sm_90a" in code.notes[0] and ".target sm_90a" in code.compiled.ptx
    with pytest.raises(CheckFailed, match="requires .target sm_90 or higher"):
        compile_device_code(kernel_of(source))
    source = '__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }\n'
    assert compile_device_code(replace(kernel_of(source), arch="sm_90")).arch == "sm_90a"


def test_a_file_that_is_missing_above_the_source_stays_out_of_other_folders(tmp_path):
    source = '#include "../../../../../outside.h"\n__global__ void k(float *y) { y[0] = 1; }\n'
    assert "outside.h" in compile_device_code(kernel_of(source, tmp_path)).notes[0]


USES = """\
#include <helper_math.h>
#include <cublas_v2.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void vectors(const float *x, float *y) {
  const float4 a = make_float4(x[0], x[1], x[2], x[3]), b = 2.0f * a + make_float4(1.0f) - a / 4.0f;
  const float3 c = cross(make_float3(a), make_float3(b)) * 0.5f;
  const float3 d = normalize(make_float3(make_int3(3, 0, 4)));
  y[0] = dot(a, b), y[1] = c.x, y[2] = c.y, y[3] = c.z, y[4] = length(clamp(b, 0.0f, 1.0f)), y[5] = d.x + d.z;
  y[6] = lerp(a, b, 0.25f).w, y[7] = (-max(make_int2(3, -5), make_int2(-1, 2))).y;
}
template <typename T> __global__ void halves(const T *x, T *y, float *z) {
  using wide = at::opmath_type<T>;
  y[0] = x[0] + x[1], y[1] = x[0] * 3, y[2] = -x[1], y[3] = static_cast<T>(x[0] / 3.0f);
  y[4] = x[0] > x[1] ? 1 : 0;
  z[0] = static_cast<wide>(x[0]) / 3, z[1] = at::numeric_limits<T>::max() > x[0] ? x[0] * 1.5f : 0;
}
template __global__ void halves<at::Half>(const at::Half *, at::Half *, float *);
__global__ void accessor(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x) {
  CUDA_KERNEL_LOOP(i, x.size(1)) x[1][i] += x[0][i];
}
cublasStatus_t unused(cublasHandle_t handle);
"""


def test_what_stands_in_computes_what_the_libraries_do(tmp_path):
    path = tmp_path / "uses.cu"
    path.write_text(USES)
    x = [1.0, -2.0, 3.0, 0.5]
    a = np.array(x)
    b = 1 + 1.75 * a
    c = np.cross(a[:3], b[:3]) / 2
    truth = np.array([a @ b, *c, np.linalg.norm(np.clip(b, 0, 1)), 1.4, a[3] + 0.25 * (b[3] - a[3]), -2])
    done = check(str(path), "vectors", block=1, arguments={"x": np.float32(x), "y": np.zeros(8, np.float32)},
                 expect={"y": np.float32(truth)}, finite=True, tolerance=1e-6)  # fmt: skip
    assert done.ok, done.faults
    given = {"x": np.float16([1.5, -2]), "y": np.zeros(5, np.float16), "z": np.zeros(2, np.float32)}
    done = check(str(path), "halves", block=1, arguments=given, finite=True, expect={
        "y": np.float16([-0.5, 4.5, 2, 0.5, 1]), "z": np.float32([0.5, 2.25])}, tolerance=1e-6)  # fmt: skip
    assert done.ok, done.faults


def test_every_stand_in_belongs_to_a_family():
    assert {path.name for path in STAND_INS.iterdir()} == {*FAMILIES.values(), "any.h"}


def test_faults_are_read_with_the_lines_that_led_there():
    said = (
        ' mine.cu(7): error: identifier "x" is undefined\n  f(x);\n    ^\n\n'
        "/usr/include/vector(90): error: static assertion failed\n"
        '          detected during instantiation of "void g(T)" at line 12 of mine.cu\n\n'
    )
    assert [*faults_in(said)] == [("mine.cu", 7), ("mine.cu", 12)]


def test_an_error_in_a_template_is_not_hidden_with_the_host_code_that_makes_it():
    source = (
        "template <int N> __global__ void k(float *y) { static_assert(N > 2); y[0] = N; }\n"
        "void host(Missing m) {}\nint main() { k<1><<<1, 1>>>(nullptr); return 0; }\n"
    )
    with pytest.raises(NoDeviceCode, match=r"mine.cu\(1\): error: static assertion failed"):
        compile_device_code(kernel_of(source))


LEFT_OUT = {
    "template <> struct Wide<float> { static constexpr int v = at::wide<float>(); };": "Wide",
    "namespace mine { constexpr int SCALE = torch::scale(); }": "SCALE",
    "constexpr int width(float) { return torch::width(); }": "width",
    "MY_DEVICE float apply(float x) { return 3 * x; }": "apply",
    "using acc = at::wide_of<float>::type;": "acc",
}
"""Code that does not compile here -> a name by which device code may depend on it."""


@pytest.mark.parametrize("code", LEFT_OUT)
def test_what_device_code_may_depend_on_is_not_left_out_in_silence(code):
    source = (
        "#include <torch/extension.h>\ntemplate <typename T> struct Wide { static constexpr int v = 1; };\n"
        "constexpr int SCALE = 2;\nconstexpr int width(double) { return 1; }\n"
        "__device__ float apply(double x) { return x; }\ntypedef int count; struct acc_of { int n; };\n"
        f"{code}\n"
        "__global__ void k(float *y) { y[0] = apply(y[1]) * Wide<float>::v * SCALE * width(2.0f); }\n"
        "__global__ void counted(float *y) { int acc = y[1]; y[0] = acc; }\n"
    )
    with pytest.raises(NoDeviceCode, match=rf"device code may need {LEFT_OUT[code]} of mine.cu\(7\)"):
        compile_device_code(kernel_of(source))


def test_host_code_that_device_code_does_not_use_is_left_out():
    source = (
        "#include <torch/extension.h>\n__device__ float relu(float x) { return x > 0 ? x : 0; }\n"
        "__global__ void k(float *y) { y[0] = relu(y[0]); }\n"
        "torch::Tensor relu(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); return x; }\n"
        "template <typename T> struct Compare { T of(T x); };\n"
        "template <> float Compare<float>::of(float x) { return torch::compare(x); }\n"
        "template <> struct Compare<int> { int of(int x) { return torch::compare(x); } };\n"
    )
    assert not compile_device_code(kernel_of(source)).notes


def test_an_instance_for_float_that_the_file_does_not_have_is_no_error():
    source = (
        "#include <torch/extension.h>\ntemplate <typename T> __global__ void k(T *y) {\n"
        '  static_assert(sizeof(T) == 2, "16 bits"); y[0] = T(1);\n}\n'
        "void f(torch::Tensor x) { AT_DISPATCH_HALF(x, [&] { k<scalar_t><<<1, 1>>>(0); }); }\n"
        "template __global__ void k<at::Half>(at::Half *);\n"
    )
    assert "Half" in compile_device_code(kernel_of(source)).compiled.ptx


def test_macros_that_a_missing_header_may_define_are_told():
    source = (
        '#include "config.h"\n#ifdef __HIP__\n#endif\n__global__ void k(float *y) {\n'
        "#if SCALE > 2\n  y[0] = 4;\n#else\n  y[0] = 2;\n#endif\n}\n"
    )
    _, note = compile_device_code(kernel_of(source)).notes
    assert note.startswith("SCALE is tested by #if and not defined, because config.h is not found")


def test_flags_are_part_of_what_is_kept():
    source = "__global__ void k(float *y) { y[0] = y[1] / y[2]; }\n"
    plain, fast = (
        compile_device_code(replace(kernel_of(source), flags=flags)) for flags in ((), ("--use_fast_math",))
    )
    assert plain.compiled.ptx != fast.compiled.ptx
