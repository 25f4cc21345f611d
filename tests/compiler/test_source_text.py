"""The kernel's own part of a CUDA source."""

from __future__ import annotations

import pytest

from tir_schedules.compiler.source_text import SourceText, kernel_part, shown_name
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel

SOURCE = """#include <cstdint>
// extern "C" __global__ void kernel(int* out) { a comment
__device__ void helper() { }
extern "C" __global__ void __launch_bounds__(32) kernel(int* out);
extern "C" __global__ void __launch_bounds__(32)
kernel(int* out)
{
  asm volatile("{ unbalanced");  // }
  if (out) { *out = 1; }
}
extern "C" __global__ void other(int* out) { }
"""


def test_a_definition_is_found_past_its_declaration_comments_and_braces_in_strings():
    first, text = kernel_part(SOURCE, "kernel")
    assert first == 5
    assert text.splitlines() == SOURCE.splitlines()[4:10]


def test_a_definition_on_one_line():
    assert kernel_part(SOURCE, "other") == (11, SOURCE.splitlines()[10])


def test_a_kernel_that_is_not_there():
    with pytest.raises(CheckFailed, match="defines no .* kernel_2"):
        kernel_part(SOURCE, "kernel_2")


ASSEMBLY = """__global__ void k(int *out) {
  asm volatile("mov.b32 %0, 1;"
               : "=r"(*out)
               :: "memory");
  asm("membar.gl;");  // one line
  out[1] =
      2;
}
"""


@pytest.mark.parametrize("number, shown", [(2, 2), (3, 2), (4, 2), (5, 5), (6, 6), (7, 7)])
def test_a_line_of_inline_assembly_is_the_first_one(number, shown):
    kernel = Kernel("k", ASSEMBLY, "k", ("out",), (1, 1, 1), (32, 1, 1), "sm_80")
    expected = ASSEMBLY.split("\n")[shown - 1].strip()
    assert SourceText(kernel).line(shown_name(kernel), number) == expected
