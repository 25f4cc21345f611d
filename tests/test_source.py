"""CUDA in strings of a Python file is found, with every line at its number."""

import pytest

from tir_schedules.embedded import OF_TORCH, cuda_in_python
from tir_schedules.errors import BadInput
from tir_schedules.source import read_source

EXTENSION = '''\
import torch
from torch.utils.cpp_extension import load_inline
# check: --grid 1 --block 32 --let n=20 --arg x=[n] --arg y=[n]:out --expect y='2*x'
source = r"""
template <typename scalar_t>
__global__ void twice(const scalar_t *x, scalar_t *y, int n) {
  if (threadIdx.x <= n) y[threadIdx.x] = 2 * x[threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    twice<scalar_t><<<1, 32>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  });
  return y;
}
"""
module = load_inline(name="mine", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source)
'''


def test_lines_keep_their_numbers_and_comments_of_checks_stay():
    lines = cuda_in_python(EXTENSION).split("\n")
    assert lines[0] == OF_TORCH and lines[5].startswith("__global__")
    assert lines[2].startswith("// check: --grid 1")


def test_triton_kernels_and_python_without_cuda_are_left_as_they_are(tmp_path):
    assert cuda_in_python("import triton\n@triton.jit\ndef f(x):\n    '__global__'\n") == ""
    assert cuda_in_python("print('__global__'") == ""
    path = tmp_path / "mine.py"
    path.write_text("print(1)\n")
    assert read_source(path).is_python


def test_an_extension_in_a_python_file_is_checked_and_found_wrong_at_its_line(tmp_path, tool):
    path = tmp_path / "extension.py"
    path.write_text(EXTENSION)
    other = tmp_path / "extension.cu"  # as collections of kernels call them
    other.write_text(EXTENSION)
    assert read_source(other).text == read_source(path).text != EXTENSION
    other.write_text(EXTENSION + "self.x = std::sqrt(5)\n")
    code, _, err = tool("check", str(other))
    assert code == 2 and err.endswith("is not Python: invalid syntax\n")
    other.write_text(EXTENSION.replace("__global__", ""))
    assert "it is Python, and no string of it has a __global__" in tool("check", str(other))[2]
    code, out, _ = tool("check", str(path))
    assert code == 1 and "extension.py:7 " in out and "twice<float>" in out, out
    path.write_text(EXTENSION.replace("<= n", "< n"))
    code, out, _ = tool("check", str(path))
    assert code == 0 and "1 of 1 verified" in out, out
    code, out, _ = tool("inspect", str(path), "--lines")
    assert code == 0 and "2 * x[threadIdx.x]" in out, out


BODY = "__global__ void k(float *x) {{ x[0] = {}; }}"
KERNEL = BODY.format("4")
DOUBLED = BODY.replace("{}", "{S}")
PUT_TOGETHER = {
    "f-string": f'S = 4\nload_inline(cuda_sources=f"{DOUBLED}")',
    "f-string with a format": f'S = 2.0\nT = f"{DOUBLED.replace("{S}", "{S * 2:g}")}"',
    "format": f'TEXT = "{DOUBLED}"\nRawKernel(TEXT.format(S=4), "k")',
    "percent": f'SourceModule("{BODY.format("%(S)d")}" % {{"S": 4}})',
    "replace": f'text = "{BODY.format("S")}"\ntext = text.replace("S", str(4))'.replace("str(4)", "'4'"),
    "in a function": f'def f():\n  return RawKernel(f"{DOUBLED}")\nS = 4',
    "a choice": f'text = open("k.cu").read() if False else "{KERNEL}"',
    "a list of names": f'a = "{BODY.format("5")}"\nb = "{KERNEL}"\nload_inline("m", "", [b])',
    "documentation": f'"""{BODY.format("5")}"""\nb = "{KERNEL}"',
    "longer by and by": 'text = "__global__ void k(float *x) "\ntext += "{ x[0] = 4; }"\nRawKernel(text)',
    "joined": 'RawKernel("".join(["__global__ void k(float *x) ", "{ x[0] = 4; }"]))',
}


@pytest.mark.parametrize("case", PUT_TOGETHER)
def test_strings_are_put_together_of_what_is_known(case):
    lines = [line for line in cuda_in_python(PUT_TOGETHER[case]).split("\n") if line]
    assert " ".join("".join(line for line in lines if line != OF_TORCH).split()) == KERNEL


def test_parts_stand_at_their_own_lines():
    text = (
        'A = """\n#define S 4\n"""\n\nB = """\n__global__ void k() {}\n"""\nm = load_inline("m", "", A + B)\n'
    )
    lines = cuda_in_python(text).split("\n")
    assert (lines[0], lines[1], lines[5]) == (OF_TORCH, "#define S 4", "__global__ void k() {}")


NOT_KNOWN = {
    "a parameter": (f'S = 1\ndef f(S):\n  return f"{DOUBLED}"', 3, "S"),
    "a loop": (f'S = 1\nfor S in range(4): RawKernel(f"{DOUBLED}")', 2, "S"),
    "a branch": (f'if f(): S = 1\nelse: S = 2\nt = f"{DOUBLED}"', 3, "S"),
    "a comprehension": (f'S = 1\nt = [f"{DOUBLED}" for S in (1, 2)]', 2, "S"),
    "a call": (f'S = f()\nt = "{BODY.format("%d")}" % S', 2, "S"),
    "a file": (f'h = open("h").read()\nRawKernel(h + "{KERNEL}")', 2, "h"),
    "too few": (f't = "{BODY.format("%d")}" % ()', 1, "% ()"),
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_what_is_not_known_of_a_string_is_named(case):
    text, line, name = NOT_KNOWN[case]
    with pytest.raises(BadInput) as error:
        cuda_in_python(text)
    start, _, rest = str(error.value).partition("; ")
    assert start == f"the CUDA string at line {line} is formatted" and f"{name} is not known" in rest


def test_kernels_that_cupy_makes_are_not_taken(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("cupy.ElementwiseKernel('float32 x', 'float32 z', 'z = x', 'copy')")
    with pytest.raises(BadInput, match="mine.py: CuPy's ElementwiseKernel is not taken"):
        read_source(path)
