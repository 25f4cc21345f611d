"""Structs that a kernel takes by value: members are given like parameters, accessors of PyTorch as arrays."""

import numpy as np
import pytest

from tir_schedules.check.structs import members_of
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
struct Box { int extents[3]; };
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
__global__ void boxed(Box b, int *y) { y[0] = b.extents[2]; }
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
    assert code == 1 and "mine.cu:22 writes 4 bytes of y[8], out of bounds" in out, out


def test_a_struct_whose_members_are_not_known_is_given_as_bytes(file, tool):
    code, _, err = tool("check", str(file), "--kernel", "boxed", "--block", "1", "--arg", "y=[1]")
    assert code == 2 and "say --arg 'b=u8[12]'" in err
    code, _, _ = tool(
        "check", str(file), "--kernel", "boxed", "--block", "1", "--arg", "y=[1]", "--arg", "b=u8[12]"
    )
    assert code == 0


@pytest.mark.parametrize("body, size, offsets", [
    ("float *x, *y; int n;", 24, [0, 8, 16]),
    ("char c; double d; short s;", 24, [0, 8, 16]),
    ("public: const unsigned int n = 3; float a{1}; void f() { int z; }", 8, [0, 4]),
    ("unsigned long long a; bool b; Params() = default;", 16, [0, 8]),
    ("float *x; int n;", 12, None),
    ("int n[4];", 16, None),
    ("Other o; int n;", 16, None),
    ("enum { A } a; int n;", 8, None),
    ("virtual void f(); int n;", 16, None),
])  # fmt: skip
def test_offsets_are_those_of_the_abi(body, size, offsets):
    found = members_of(
        Parameter("p", c_type("ns::Mine"), size, True), f"namespace ns {{ struct Mine {{ {body} }}; }}"
    )
    assert (found and [one.offset for one in found]) == offsets


def test_a_struct_takes_the_place_of_its_members():
    joined = join_structs([Struct(1, (0, 8), 16)], ["a", 258, np.float32(1), "b"])
    assert joined == ["a", bytes([2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 0]), "b"]
