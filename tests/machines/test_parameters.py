"""Structs that a kernel takes by value, and the initial values of variables."""

import numpy as np
import pytest
from cuda_kernels import run
from ptx_kernels import launch

from tir_schedules.errors import CheckFailed

POINT = np.dtype(
    [("tag", "i1"), ("x", "f8"), ("n", "i2"), ("v", "f4", 3), ("grid", "i4", (2, 3))], align=True
)
SOURCE = r"""
struct Point { char tag; double x; short n; float v[3]; int grid[2][3]; };
struct Pair { int* first; char second; float third; };
struct __attribute__((packed)) Tight { char a; int* p; short b; };
__device__ int values[4] = {1, 2, 3, 4};
__device__ int* inner = values + 2;
__device__ Pair pair = {values + 1, 'x', 2.5f};
__device__ Tight tight = {7, values + 3, -2};
__device__ short grid[2][3] = {{1, 2}, {-3}};
__device__ const char* text = "text";
__constant__ double doubles[3] = {1.5, -2};
__device__ float one = 1.5f;
__device__ __align__(16) float4 four = {1, 2, 3, 4};
__device__ unsigned long long wide = 0xfedcba9876543210ULL;
__device__ bool yes = true;
__device__ int zeros[5];
extern __shared__ int dynamic[];
__device__ __noinline__ int by_value(Point p, int i) { return p.grid[i / 3][i % 3] + p.n; }

extern "C" {
__global__ void k(Point p, char c, int* Y) {
  const int t = threadIdx.x;
  Y[t] = p.tag + int(4 * p.x) + p.n * 2 + int(p.v[0] + 10 * p.v[1] + 100 * p.v[2]) + p.grid[1][2] + c;
}
__global__ void indexed(Point p, int* Y) { Y[threadIdx.x] = p.grid[threadIdx.x / 3 % 2][threadIdx.x % 3]; }
__global__ void addressed(const __grid_constant__ Point p, int* Y) {
  const unsigned char* bytes = (const unsigned char*)&p;
  Y[threadIdx.x] = bytes[threadIdx.x % sizeof p];
}
__global__ void generic(const __grid_constant__ Point p, int other, int* Y) {
  __shared__ int own[6];
  if (threadIdx.x < 6) own[threadIdx.x] = 100 + threadIdx.x;
  __syncthreads();
  const int* from = other ? own : &p.grid[0][0];
  Y[threadIdx.x] = ((volatile const int*)from)[threadIdx.x % 6];
}
__global__ void past(const __grid_constant__ Point p, int* Y) {
  Y[threadIdx.x] = (&p.grid[0][0])[threadIdx.x];
}
__global__ void handed_on(Point p, int* Y) { Y[threadIdx.x] = by_value(p, threadIdx.x % 6); }
__global__ void initial(int* Y) {
  int sum = *inner + 10 * *pair.first + pair.second + int(pair.third * 2) + *tight.p * 1000 + tight.b;
  sum += tight.a + grid[0][1] + grid[0][2] + grid[1][0] + text[threadIdx.x % 5] + int(doubles[1]);
  sum += int(one * 2) + int(four.w) + int(wide >> 60) + yes + zeros[threadIdx.x % 5] + int(doubles[2]);
  Y[threadIdx.x] = sum;
}
__global__ void memories(int* Y) {
  __shared__ int own[64];
  __shared__ double more[3];
  const int t = threadIdx.x;
  own[t] = t, dynamic[t] = 10 * t;
  if (t < 3) more[t] = t;
  __syncthreads();
  Y[t] = own[63 - t] + dynamic[63 - t] + int(more[t % 3]);
}
}
"""
T = np.arange(64)


def point():
    made = np.zeros((), POINT)
    made["tag"], made["x"], made["n"], made["v"] = -3, 2.25, -700, (1, 2, 3)
    made["grid"] = np.arange(6).reshape(2, 3) * 1000
    return made


@pytest.mark.parametrize(
    "form", [lambda p: p, lambda p: p[()], lambda p: p.tobytes(), lambda p: bytearray(p)]
)
def test_a_struct_by_value(form):
    result, execution = run(SOURCE, "k", {"p": form(point()), "c": 5})
    assert execution.findings == ()
    assert (result == -3 + 9 - 1400 + 321 + 5000 + 5).all()


def test_a_struct_as_memory():
    """With an index that is not constant, by its address, and handed on to a function."""
    grid = point()["grid"].ravel()
    assert (run(SOURCE, "indexed", {"p": point()})[0] == grid[T % 6]).all()
    assert (run(SOURCE, "handed_on", {"p": point()})[0] == grid[T % 6] - 700).all()
    for other, expected in ((0, grid[T % 6]), (1, 100 + T % 6)):
        result, execution = run(SOURCE, "generic", {"p": point(), "other": other})
        assert (result == expected).all() and execution.findings == ()
    content = np.frombuffer(point().tobytes(), np.uint8)
    assert (run(SOURCE, "addressed", {"p": point()})[0] == content[T % content.size]).all()


def test_an_access_past_the_parameters_is_found():
    _, execution = run(SOURCE, "past", {"p": point()})
    assert {finding.kind for finding in execution.findings} == {"out_of_bounds"}
    assert "parameters of the kernel" in execution.findings[0].message


@pytest.mark.parametrize("value", [bytes(10), 3])
def test_a_struct_of_another_size_is_refused(value):
    with pytest.raises(CheckFailed, match=r"parameter indexed_param_0 (has|is a struct of) 56 bytes"):
        run(SOURCE, "indexed", {"p": value})


def test_initial_values():
    result, execution = run(SOURCE, "initial")
    fixed = 3 + 20 + ord("x") + 5 + 4000 - 2 + 7 + 2 + 0 - 3 - 2 + 3 + 4 + 15 + 1
    assert execution.findings == () and result.tolist() == [fixed + b"text\0"[t % 5] for t in T]


@pytest.mark.parametrize(
    "declared, expected",
    [
        (".global .u32 data[2][3] = {{1, 2}, {3}};", [1, 2, 3, 0, 0, 0]),
        (".global .b32 data[] = {5, -1};", [5, 2**32 - 1]),
        (".const .align 8 .b8 data[8] = {1, 2, 3, 4, 5};", [0x04030201, 5]),
        (".visible .global .attribute(.managed) .align 4 .f32 data = 0f3F800000;", [0x3F800000]),
        (".common .global .v2 .u32 data;", [0, 0]),
        (".global .v2 .u32 data[2] = {{1, 2}, {3, 4}};", [1, 2, 3, 4]),
        (".weak .global .u16 data[4] = {0xFFFF, 1, 2, 0x8000};", [0x1FFFF, 0x80000002]),
    ],
)
def test_declarations(declared, expected):
    space = "const" if declared.startswith(".const") else "global"
    text = f""".version 8.0\n.target sm_80\n.address_size 64\n{declared}
.visible .entry test(.param .u64 Y) .maxntid 64 .minnctapersm 1
{{ .reg .b64 y, at, w; .reg .b32 d, t; ld.param.u64 y, [Y]; mov.u32 t, %tid.x; mul.wide.u32 at, t, 4;
add.u64 y, y, at; mov.u64 w, data; add.u64 w, w, at; ld.{space}.u32 d, [w]; st.global.u32 [y], d; ret; }}"""
    y = np.zeros(len(expected), np.uint32)
    assert launch(text, {"Y": y}, ("Y",), block=(len(expected), 1, 1)).findings == ()
    assert y.tolist() == expected


def test_arrays_of_fixed_and_of_dynamic_size_in_shared_memory():
    result, execution = run(SOURCE, "memories", dynamic=256)
    assert execution.findings == () and (result == 11 * (63 - T) + T % 3).all()
