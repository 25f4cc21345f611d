"""Structs that a kernel takes by value: members are given like parameters, accessors of PyTorch as arrays."""

import numpy as np
import pytest

from tir_schedules.check.structs import NotSupported, members_of, with_members
from tir_schedules.check.target import Parameter
from tir_schedules.check.types import c_type
from tir_schedules.model.launch import Struct, join_structs

KERNELS = """\
#include <torch/extension.h>
struct Params {
  const float *x;
  float *__restrict__ y;
  int n;
  float alpha = 1;
  bool on;
  __host__ __device__ int size() const { return n; }
};
struct Same { __device__ float operator()(float x) const { return x; } };
constexpr int RANK = 3;
struct Shape { int extents[RANK]; float4 scale; };
struct Box { struct Shape shape; float *y; };
union Either { int i; float f; };
struct Mixed { Either either; int n; };
struct Lists { float *lists[2]; };
__global__ void scaled(Params p, int n, Same f) {
  int i = threadIdx.x;
  if (i < p.size() && p.on) p.y[i] = p.alpha * f(p.x[i]) + n;
}
__global__ void row_sums(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x,
                         torch::PackedTensorAccessor64<float, 1> y) {
  int row = threadIdx.x;
  if (row >= x.size(0)) return;
  float sum = 0;
  for (int i = 0; i < x.size(1); ++i) sum += x[row][i];
  y[row] = sum;
}
__global__ void boxed(Box b) { b.y[0] = b.shape.extents[2] * b.shape.scale.w; }
__global__ void mixed(Mixed m, int *y) { y[0] = m.n; }
__global__ void listed(Lists p) { p.lists[0][0] = 1; }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("structs") / "mine.cu"
    path.write_text(KERNELS)
    return path


SCALED = "--kernel scaled --block 32 --arg x=[20] --arg y=[20]:inout --arg alpha=1.5 --arg on=1"
SUMS = "--kernel row_sums --block 32 --let n=9 --arg x=f32[n,5]"


def test_members_by_their_names_and_of_two_alike_with_the_structs(file, tool):
    given = [*SCALED.split(), "--let", "p_n=20", "--let", "n=2", "--expect", "y=alpha*x+n"]
    code, out, _ = tool("check", str(file), *given)
    assert code == 0 and "1 of 1 verified" in out, out
    code, out, err = tool("check", str(file), *SCALED.split(), "--let", "n=2")
    assert code == 2 and "nothing is given for `int p_n` of scaled(Params p {const float * x" in err, err


def test_an_accessor_is_given_as_an_array(file, tool):
    code, out, _ = tool("check", str(file), *SUMS.split(), "--arg", "y=f32[n]:out", "--expect", "y=sum(x, 1)")
    assert code == 0 and "1 of 1 verified" in out, out
    code, out, _ = tool("check", str(file), *SUMS.split(), "--arg", "y=f32[n-1]:out")
    assert code == 1 and "mine.cu:27 writes 4 bytes of y[8], out of bounds" in out, out


@pytest.mark.parametrize("kernel, given, told", [
    ("boxed", "extents=[3] scale=[4] b.y=[1]:out", ""),
    ("boxed", "b.shape.extents=[3] b_shape_scale=[4] y=[1]:out", ""),
    ("boxed", "extents=[3] scale=[4]", "nothing is given for `float * y` of boxed(Box b {int extents[3]"),
    ("boxed", "extents=[4] scale=[4] y=[1]", "`int extents[3]` of"),
    ("boxed", "scale=[4] y=[1]", "say --arg 'extents=i32[3]'"),
    ("boxed", "b=u8[48]", "has pointers, which cannot be given as bytes: give its members, y=f32[N]"),
    ("mixed", "m=u8[8] y=[1]", ""),
    ("mixed", "y=[1]", "`Mixed m` (its member `Either either` is not supported) of mixed("),
        ("mixed", "y=[1]", "say --arg 'm=u8[8]'"),
    ("listed", "p=u8[16]", "as bytes, and its member `float * lists[2]` is not"),
    ("row_sums", "x=f32[9] y=f32[9]", "has 2 dimensions; an array of 1 is given"),
])  # fmt: skip
def test_arrays_and_structs_in_a_struct_and_members_that_are_not_supported(kernel, given, told, file, tool):
    options = [word for one in given.split() for word in ("--arg", one)]
    expect = ["--expect", "y=extents[2]*scale[3]"] if "out" in given else []
    code, out, err = tool("check", str(file), "--kernel", kernel, "--block", "1", *options, *expect)
    assert told in err and code == (2 if told else 0), err
    assert not expect or "1 of 1 verified" in out, out


@pytest.mark.parametrize("body, size, offsets", [
    ("float *x, *y; int n;", 24, [0, 8, 16]),
    ("char c; double d; short s;", 24, [0, 8, 16]),
    ("public: const unsigned int n = 3; float a{1}; void f() { int z; }", 8, [0, 4]),
    ("unsigned long long a; bool b; Params() = default;", 16, [0, 8]),
    ("float *x; int n;", 12, None),
    ("int n[4];", 16, [0]),
    ("float *n[4];", 32, None),
    ("char c; float3 v; struct { int a; } u;", 20, None),
    ("char c; float2 v; Inner in; enum E { A }; short s[2][2];", 40, [0, 8, 16, 24, 32]),
    ("Other o; int n;", 16, None),
    ("enum { A } a; int n;", 8, None),
    ("virtual void f(); int n;", 16, None),
])  # fmt: skip
def test_offsets_are_those_of_the_abi(body, size, offsets):
    source = f"struct Inner {{ char c; double d; }}; namespace ns {{ struct Mine {{ {body} }}; }}"
    one = Parameter("p", c_type("ns::Mine"), size, True)
    if offsets is None:
        with pytest.raises(NotSupported):
            members_of(one, source)
        assert with_members([one], source)[0].has_pointers == ("*" in body)
    else:
        assert [each.offset for each in members_of(one, source)] == offsets


def test_a_struct_takes_the_place_of_its_members():
    joined = join_structs([Struct(1, (0, 8), 16)], ["a", 258, np.float32(1), "b"])
    assert joined == ["a", bytes([2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 0]), "b"]
