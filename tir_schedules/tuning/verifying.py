"""Verifies a candidate on the CPU machine in a process of its own: several go on at a time, and one that dies takes nothing with it.

    python -m tir_schedules.tuning.verifying

reads a pickled kernel and workload, and writes pickled Metrics or the error.
"""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

from tir_schedules.compiler.cache import default_root
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.insight.metrics import Metrics, execute, shared_bytes
from tir_schedules.insight.occupancy import occupancy
from tir_schedules.kernel import Kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.verify import compare_with_truth

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def verified(kernel: Kernel, workload: Any) -> Metrics:
    """What the CPU machine counts of a kernel. CheckFailed when nvcc refuses it, when it has findings, or computes something else than
    the truth."""
    binary = compile_kernel(kernel)
    (execution,), arguments = execute(CpuMachine(), workload, [binary], count=True)
    if execution.findings:
        raise CheckFailed(str(execution.findings[0]))
    mismatch = compare_with_truth(workload, arguments, arguments)
    if mismatch:
        raise CheckFailed(f"{kernel.label}: wrong on {workload}: {mismatch}")
    held = occupancy(kernel.arch, kernel.block, binary.resources.registers, shared_bytes(binary))
    return Metrics(binary, held, execution.counters)


def verified_apart(kernel: Kernel, workload: Any) -> Metrics:
    """The same, in another process. CheckFailed also when that ends without an answer."""
    command, environment = [sys.executable, "-m", __name__], {**os.environ, **ONE_THREAD, "TIR_SCHEDULES_CACHE": str(default_root())}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(command, input=pickle.dumps((kernel, workload)), capture_output=True, env=environment)
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise CheckFailed(f"{kernel.label}: verifying it on {workload} ended without an answer: {reason}")
    found = pickle.loads(done.stdout)
    if isinstance(found, Exception):
        raise found
    return found


def main() -> None:
    kernel, workload = pickle.load(sys.stdin.buffer)
    try:
        found = verified(kernel, workload)
    except TirSchedulesError as error:
        found = error
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    main()
