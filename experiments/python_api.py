"""The Python API: a rung is scheduled, emitted, verified and counted without a GPU.

python experiments/python_api.py
"""

from tir_schedules.compiler.lower import lower, scheduled
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.insight.metrics.counting import SHARED, metrics_of
from tir_schedules.ladders.problems import Problem, workload_of
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import run

if __name__ == "__main__":
    (rung,) = find("sgemm/warp_tiling")
    workload = workload_of(rung, Problem("sgemm", (256, 256, 128)))
    schedule = scheduled(rung, workload)  # a TVM Schedule; schedule.mod is its TensorIR
    kernel = lower(rung, workload, "sm_80")  # kernel.source is the CUDA that TVM makes of it
    (verdict,) = run([(rung, workload)], "sm_80", CpuMachine())  # the schedule, its twin, and both compared
    (metrics,) = metrics_of([compile_kernel(kernel)], workload)  # one launch
    shared = metrics.access(*SHARED)
    tir, cuda = len(schedule.mod.script().splitlines()), len(kernel.source.splitlines())
    print(f"{rung.id} on {workload}: {tir} lines of TensorIR become {cuda} lines of CUDA, grid {kernel.grid}")
    print(f"{verdict.word}; {metrics.binary.resources.registers} registers per thread")
    print(f"{shared.requests} requests to shared memory take {shared.cost} wavefronts, ideal {shared.ideal}")
