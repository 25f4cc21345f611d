"""TVM's own intrinsics can be imported after ours, which replace one of its functions."""

import subprocess
import sys

LINE = "import tir_schedules.tir.intrinsics.mma, tvm.s_tir.tensor_intrin.cuda"


def test_intrinsics_are_imported_in_any_order():
    subprocess.run([sys.executable, "-c", LINE], check=True)
