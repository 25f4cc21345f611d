"""TVM's own intrinsics are not imported, and can be before and afterwards."""

import subprocess
import sys

import pytest
import tvm_ffi

from tir_schedules.tir.intrinsics import mma

LINE = """
import sys
from tir_schedules.tir.intrinsics import mma, wmma
wmma.load("a", "shared", False), wmma.mma("float32", True), wmma.store("float16", "global")
assert "tvm.s_tir.tensor_intrin" not in sys.modules
"""


def test_intrinsics_of_tvm_which_take_seconds_are_not_imported():
    subprocess.run([sys.executable, "-c", LINE], check=True)


@pytest.mark.parametrize("there", [False, True])
def test_a_function_of_tvm_is_ours_only_while_a_schedule_is_lowered(there, monkeypatch):
    monkeypatch.setattr(mma, "MAP", "of.this.test")
    if there:
        tvm_ffi.register_global_func("of.this.test", lambda indices: indices)
    with mma.shares_known():
        with mma.shares_known():  # as another thread may
            assert tvm_ffi.get_global_func("of.this.test")
        assert tvm_ffi.get_global_func("of.this.test")
    assert bool(tvm_ffi.get_global_func("of.this.test", allow_missing=True)) == there
    if there:
        tvm_ffi.remove_global_func("of.this.test")
