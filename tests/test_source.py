"""CUDA in strings of a Python file is found, with every line at its number."""

from tir_schedules.source import OF_TORCH, cuda_in_python, read_source

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
    code, out, _ = tool("check", str(path))
    assert code == 1 and "extension.py:7 " in out and "twice<float>" in out, out
    path.write_text(EXTENSION.replace("<= n", "< n"))
    code, out, _ = tool("check", str(path))
    assert code == 0 and "1 of 1 verified" in out, out
    code, out, _ = tool("inspect", str(path), "--lines")
    assert code == 0 and "2 * x[threadIdx.x]" in out, out
