"""Findings name variables and lines of the source, of inlined code also the call."""

import json

import pytest

from tir_schedules.machines.cpu.parser import parse
from tir_schedules.model.findings import Location

SOURCE = """\
namespace {
template <class T> __device__ T next(T *p, int i) {
  __shared__ T tile[33];
  tile[i] = p[i];
  return tile[i + 1];
}
}
__device__ float low(float *s, int i) {
  return s[i + 1];
}
__device__ float mid(float *s, int i) {
  return low(s, i) + 1;
}
template <int N, class T> __global__ void one(T *y) {
  __shared__ T l[N];
  if (threadIdx.x == 0) {
    l[0] += 1;
    y[0] = l[0];
    { __shared__ float l[3]; l[1] += 1; y[1] = l[1]; }
    y[2] = next(y, blockIdx.x);
  }
}
__global__ void k(double *y) {
  __shared__ double l[4];
  if (threadIdx.x == 0) { l[0] += 1; y[0] = l[0]; }
}
__global__ void nested(float *y) {
  __shared__ float s[64];
  s[threadIdx.x] = y[threadIdx.x];
  y[threadIdx.x] = mid(s, threadIdx.x);
}
__global__ void levels(const unsigned *x, unsigned *y) {
  __shared__ unsigned lv[32];
  int lane = threadIdx.x;
  if (lane % 4 == 0) lv[lane] = x[lane];
  if (lane % 4 == 0) lv[lane + 2] = lv[lane] + 2;
  if (lane % 2 == 0) lv[lane + 1] = lv[lane] + 3;
  y[lane] = lv[lane];
}
__global__ void padded(const float *x, float *y) {
  __shared__ float s[48][1];
  if (threadIdx.x < 40) {
    s[threadIdx.x][0] = x[threadIdx.x];
  } else {
    s[threadIdx.x][0] = 0;
  }
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 48][0];
}
"""


FORMATS = {"k": "f64", "one<4, float>": "f32"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("places") / "mine.cu"
    path.write_text(SOURCE)
    return path


def line_of(text):
    return next(number for number, line in enumerate(SOURCE.split("\n"), 1) if text in line)


@pytest.fixture
def told(tool, file, monkeypatch):
    """What a check prints, and its findings."""
    monkeypatch.chdir(file.parent)

    def run(*options):
        options = ("check", file.name, "--grid", "1", *options)
        _, out, err = tool(*options)
        assert not err, err
        return out, json.loads(tool(*options, "--json")[1])[0]["findings"]

    return run


def test_shared_arrays_have_the_names_of_the_source(told):
    for kernel, names in (("k", {"l"}), ("one<4, float>", {"l", "tile"})):
        _, found = told(
            "--kernel", kernel, "--block", "1", "--arg", f"y=f{'64' if kernel == 'k' else '32'}[4]"
        )
        messages = [one["brief"] for one in found if one["kind"] == "uninitialized"]
        assert messages and all("_ZZ" not in one for one in messages), messages
        assert {one.split()[1] for one in messages} == names


def test_what_nvcc_moves_has_the_line_that_uses_it(told):
    out, found = told("--kernel", "levels", "--block", "32", "--arg", "x=u32[32]", "--arg", "y=u32[32]:out")
    assert "PTX line" not in out and all(one["location"]["line"] for one in found)
    (read,) = [one for one in found if one["kind"] == "uninitialized"]
    assert read["location"]["line"] == line_of("y[lane] = lv[lane]")


def test_one_store_of_two_branches_has_the_line_of_one(told):
    """nvcc gives it line 0, and what follows is a barrier."""
    out, found = told("--kernel", "padded", "--block", "64", "--arg", "x=f32[40]", "--arg", "y=f32[64]:out")
    (one,) = [each for each in found if each["kind"] == "out_of_bounds" and "writes" in each["brief"]]
    assert one["location"]["text"].startswith("s[threadIdx.x][0] =")


def test_inlined_code_is_told_with_its_call(told):
    out, found = told("--kernel", "nested", "--block", "63", "--arg", "y=f32[63]")
    inner, call = line_of("return s[i + 1]"), line_of("= mid(s")
    assert f"mine.cu:{inner}, called from line {call}, reads s in shared memory, which nothing" in out
    (read,) = [one for one in found if one["kind"] == "uninitialized"]
    place = Location(**read["location"])
    assert (place.line, place.call) == (inner, f"line {call}")
    assert str(place).startswith(f"mine.cu:{inner}, called from line {call} (PTX line ")
    places = [one[end] for one in found for end in ("location", "other") if one["kind"] != "order_dependent"]
    assert {one["line"] for one in places if one} == {inner, call - 1}


HEAD = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
"""
TAIL = '}\n.file 1 "k.cu"\n'


def lines(body):
    kernel = parse(HEAD + body + TAIL).kernels["k"]
    return [(i.name, [line for _, line in i.within]) for i in kernel.instructions]


def test_line_0_is_that_of_the_reader_on_any_way():
    found = lines(
        ".loc 1 0 0\nmov.u32 %r1, 1;\n.loc 1 5 0\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra $A;\n"
        ".loc 1 0 0\nmov.u32 %r2, 2;\nbra $B;\n$A:\n.loc 1 6 0\nmov.u32 %r2, 3;\nadd.u32 %r3, %r2, 1;\n$B:\n"
        ".loc 1 7 0\nadd.u32 %r3, %r2, 1;\n.loc 1 0 0\nret;\n"
    )
    assert found == [
        ("mov", [5]), ("setp", [5]), ("bra", [5]), ("mov", [7]), ("bra", [7]), ("mov", [6]), ("add", [6]),
        ("add", [7]), ("ret", [7]),
    ]  # fmt: skip


def test_a_store_of_line_0_has_that_of_a_value_that_branches_make():
    found = lines(
        ".loc 1 4 0\nmov.u64 %rd1, 0;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 bra $A;\n"
        ".loc 1 5 0\nld.global.u32 %r2, [%rd1];\nbra $B;\n$A:\n.loc 1 0 0\nmov.u32 %r2, 0;\n"
        ".loc 1 8 0\nmov.u32 %r3, 0;\n$B:\n.loc 1 0 0\nst.global.u32 [%rd1], %r2;\n.loc 1 9 0\nret;\n"
    )
    assert found[-2:] == [("st", [5]), ("ret", [9])]


def test_calls_of_inlined_code_come_again_where_nvcc_leaves_them_out():
    found = lines(
        ".loc 1 20 3\n.loc 1 8 3, function_name $L, inlined_at 1 20 3\n"
        ".loc 1 5 3, function_name $L, inlined_at 1 8 3\nmov.u32 %r1, 1;\n"
        ".loc 1 0 3\nmov.u32 %r2, %r1;\n.loc 1 5 3\nmov.u32 %r3, %r2;\n.loc 1 21 1\nret;\n"
    )
    assert found == [("mov", [5, 8, 20])] * 3 + [("ret", [21])]


def test_variables_of_a_file_are_counted_in_bytes(tool, tmp_path):
    """PTX has no other type for an array of them."""
    path = tmp_path / "table.cu"
    path.write_text(
        "__device__ float table[16];\n"
        "__global__ void k(float *y, int first) { y[threadIdx.x] = table[first + threadIdx.x]; }\n"
    )
    code, out, _ = tool("check", str(path), "--grid", "1", "--block", "16", "--arg", "y=f32[16]:out",
                        "--arg", "first=4")  # fmt: skip
    assert code == 1 and "reads 4 bytes of table at byte 64, out of bounds; table has 64 bytes" in out


def test_a_cache_that_learns_of_no_atomics_names_their_line(tool, tmp_path):
    path = tmp_path / "sums.cu"
    path.write_text(
        "__global__ void k(float *y) {\n"
        "  if (threadIdx.x < 32) atomicAdd(y + threadIdx.x, 1.0f);\n"
        "  __syncthreads();\n"
        "  if (threadIdx.x == 63) y[63] = __ldg(y + 5);\n"
        "}\n"
    )
    code, out, _ = tool("check", str(path), "--grid", "1", "--block", "64", "--arg", "y=f32[64]:inout")
    assert code == 1 and "sums.cu:4 reads y[5] by ld.global.nc, which" in out
    assert "sums.cu:2 has stored" in out
