"""The HGEMM ladder on a GPU: every rung and twin right, timed beside cuBLAS in one run, counted by Nsight Compute.

The computer that emits and compiles need not have the GPU, and the one with the GPU needs neither TVM nor nvcc:

    python experiments/hgemm_on_gpu.py pack FOLDER --arch sm_90       # here: cubins, launches, predicted counters
    python experiments/hgemm_on_gpu.py measure FOLDER RESULT.json     # there: needs CuPy
    python experiments/hgemm_on_gpu.py count FOLDER RESULT.json       # there: adds Nsight Compute's counters

The truth is cuBLAS in float64. A time is that of one product: CUDA events around several launches over two sets of buffers,
which together are larger than twice the L2 cache. Rungs, twins and cuBLAS take turns, each after a pause: without it the GPU
reaches its power limit and lowers its clock, by a fifth on an H200. The median of ROUNDS counts, and the clock is recorded.
"""
from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from check_ladder_on_gpu import describe, nsight_counters, predicted, print_differences, save

from tir_schedules.provenance import device_provenance, git_revision, software_versions
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS
from tir_schedules.workloads.half_gemm import HalfGemm

TIMED = (4096, 8192)
CHECKED = ((1000, 1000, 1000), (33, 17, 5), (4096, 4096, 4096), (8192, 8192, 8192))
COUNTED = (512, 512, 256)
KINDS = list(product(LAYOUTS, ACCUMULATORS))
ROUNDS, SETTLE = 11, 3
PAUSE = 0.03  # seconds
SAMPLE_US = 2000  # a sample's least length; far more than it takes to launch what is in it


def pack(folder: Path, arch: str, pattern: str) -> None:
    """Compile every kernel at every size; predict the counters at COUNTED."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernels
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.rung import every_rung

    rungs = [rung for rung in every_rung("hgemm") if re.search(pattern, rung.id)]
    gemms = [HalfGemm(*shape, *kind) for shape in (*CHECKED, COUNTED) for kind in KINDS]
    cases = [(rung, gemm) for gemm in gemms for rung in rungs if gemm.accumulate in rung.config.accumulators]
    jobs = [(rung, gemm, make) for rung, gemm in cases for make in (lower, load_twin)]
    binaries = compile_kernels(make(rung, gemm, arch) for rung, gemm, make in jobs)
    folder.mkdir(parents=True, exist_ok=True)
    machine, entries = CpuMachine(), []
    for (_, gemm, _), binary in zip(jobs, binaries):
        entry = describe(binary, folder) | {"workload": vars(gemm)}
        if (gemm.m, gemm.n, gemm.k) == COUNTED:
            entry["predicted"] = predicted(machine, binary, gemm.arguments(), gemm.outputs)
        entries.append(entry)
    manifest = {"git_revision": git_revision(), "versions": software_versions(), "kernels": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    print(f"packed {len(entries)} kernels for {arch} into {folder}")


class Gpu:
    """Loaded functions, and cuBLAS."""

    def __init__(self, folder: Path):
        import cupy

        self.cupy, self.folder, self.functions, self.nvml = cupy, folder, {}, None

    def launch(self, entry, arguments) -> None:
        """One launch, on the current stream."""
        key = entry["cubin"], entry["entry"]
        if key not in self.functions:
            function = self.cupy.RawModule(path=str(self.folder / entry["cubin"])).get_function(entry["entry"])
            function.max_dynamic_shared_size_bytes = entry["dynamic_shared"]
            self.functions[key] = function
        values = tuple(arguments[name] for name in entry["params"])
        self.functions[key](tuple(entry["grid"]), tuple(entry["block"]), values, shared_mem=entry["dynamic_shared"])

    def cublas(self, gemm: HalfGemm, arguments) -> None:
        """The same product by cublasGemmEx, which sees the matrices column-major: C^T = B^T A^T."""
        from cupy_backends.cuda.libs import cublas

        wide = np.float16 if gemm.accumulate == "float16" else np.float32
        compute, c_type = {"float16": (64, 2), "float32": (68, 0)}[gemm.accumulate]  # CUBLAS_COMPUTE_16F, _32F; CUDA_R_16F, _32F
        one, zero = np.array(1, wide), np.array(0, wide)
        handle = self.cupy.cuda.device.get_cublas_handle()
        cublas.setStream(handle, self.cupy.cuda.get_current_stream().ptr)
        cublas.setPointerMode(handle, 0)
        a, b, c = (arguments[name].data.ptr for name in "ABC")
        transposed, row_of_b = (1, gemm.k) if gemm.transposed else (0, gemm.n)
        cublas.gemmEx(
            handle, transposed, 0, gemm.n, gemm.m, gemm.k, one.ctypes.data, b, 2, row_of_b, a, 2, gemm.k, zero.ctypes.data,
            c, c_type, gemm.n, compute, -1,
        )  # fmt: skip

    def arguments(self, gemm: HalfGemm, exact: bool):
        """A and B drawn on the GPU, as the workload draws them (`exact`) or uniform in [-1, 1), and C of NaN."""
        cupy = self.cupy
        shapes = {"A": (gemm.m, gemm.k), "B": (gemm.n, gemm.k) if gemm.transposed else (gemm.k, gemm.n)}
        if exact and gemm.m * gemm.k < 1 << 22:
            drawn = {name: cupy.asarray(array) for name, array in gemm.arguments().items() if name in shapes}
        elif exact and gemm.accumulate == "float16":  # -1, 0 and 1, with so few ones that every sum is exact
            rng, ones = cupy.random.default_rng(0), (1024 / gemm.k) ** 0.5
            drawn = {
                name: (cupy.sign(rng.random(shape, np.float32) - 0.5) * (rng.random(shape, np.float32) < ones)).astype(np.float16)
                for name, shape in shapes.items()
            }
        else:
            rng = cupy.random.default_rng(0)
            drawn = {name: (2 * rng.random(shape, np.float32) - 1).astype(np.float16) for name, shape in shapes.items()}
        sizes = {name: np.int32(getattr(gemm, name.lower())) for name in "MNK"}
        return {**drawn, "C": cupy.full((gemm.m, gemm.n), np.nan, gemm.accumulate), **sizes}

    def verify(self, gemm: HalfGemm, entries) -> list[str]:
        """Compare each kernel with the exact product; what is wrong, one line each."""
        cupy, wrong = self.cupy, []
        arguments = self.arguments(gemm, exact=True)
        truth, allowed = gemm.truth(arguments)["C"], gemm.tolerance(arguments)["C"]
        for entry in entries:
            arguments["C"].fill(np.nan)
            self.launch(entry, arguments)
            output = arguments["C"].astype(np.float64)
            good = cupy.isfinite(output) & (cupy.abs(output - truth) <= allowed)
            entry["right"], count = bool(good.all()), int((~good).sum())
            if count:
                wrong.append(f"{entry['label']} on {gemm}: {count} of {output.size} elements wrong")
        return wrong

    def time(self, run, repeats: int, buffers) -> float:
        """Microseconds of one product, launched `repeats` times over rotating buffers."""
        start, stop = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record()
        for repeat in range(repeats):
            run(buffers[repeat % len(buffers)])
        stop.record()
        stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, stop) * 1000 / repeats

    def clock(self) -> int:
        """The clock of the multiprocessors, MHz."""
        import pynvml

        if not self.nvml:
            pynvml.nvmlInit()
            self.nvml = pynvml.nvmlDeviceGetHandleByIndex(0)
        return pynvml.nvmlDeviceGetClockInfo(self.nvml, pynvml.NVML_CLOCK_SM)

    def compare(self, gemm: HalfGemm, entries) -> list[dict]:
        """Time kernels and cuBLAS in turns; returns all of them, with samples."""
        buffers = [self.arguments(gemm, exact=False) for _ in range(2)]
        cublas = {"label": "cuBLAS", "workload": vars(gemm)}
        runs = [(cublas, lambda arguments: self.cublas(gemm, arguments))]
        runs += [(entry, lambda arguments, entry=entry: self.launch(entry, arguments)) for entry in entries]
        jobs = []
        for entry, run in runs:
            once = min(self.time(run, 1, buffers) for _ in range(2))
            jobs.append((entry, run, max(2, round(SAMPLE_US / once))))
        for round_ in range(SETTLE + ROUNDS):
            for entry, run, repeats in jobs:
                time.sleep(PAUSE)
                microseconds = self.time(run, repeats, buffers)
                if round_ >= SETTLE:
                    entry.setdefault("samples_us", []).append(round(microseconds, 2))
                    entry.setdefault("sm_mhz", []).append(self.clock())
        for entry, _, _ in jobs:
            entry["median_us"] = statistics.median(entry["samples_us"])
            entry["tflops"] = round(gemm.flops / entry["median_us"] / 1e6, 1)
        return [entry for entry, _, _ in jobs]


def measure(folder: Path, result: Path) -> int:
    manifest = json.loads((folder / "manifest.json").read_text())
    gpu, wrong, manifest["cublas"] = Gpu(folder), [], []
    groups: dict[HalfGemm, list] = {}
    for entry in manifest["kernels"]:
        groups.setdefault(HalfGemm(**entry["workload"]), []).append(entry)
    for gemm, entries in groups.items():
        wrong += gpu.verify(gemm, entries)
    print(f"{len(manifest['kernels']) - len(wrong)} of {len(manifest['kernels'])} right", *wrong, sep="\n", flush=True)
    manifest["device"] = device_provenance()
    save(manifest, result)
    for gemm in (gemm for gemm in groups if gemm.m == gemm.n == gemm.k and gemm.m in TIMED):
        timed = gpu.compare(gemm, [entry for entry in groups[gemm] if entry["right"]])
        manifest["cublas"].append(timed[0])
        print(f"{gemm}", flush=True)
        for entry in timed:
            spread = (max(entry["samples_us"]) - min(entry["samples_us"])) / entry["median_us"]
            print(f"  {entry['label']:45} {entry['tflops']:7.1f} TFLOPS {entry['median_us']:9.1f} us  {spread:.1%}  {min(entry['sm_mhz'])} MHz", flush=True)
        save(manifest, result)
        gpu.cupy.get_default_memory_pool().free_all_blocks()
    return 1 if wrong else 0


def launch_counted(folder: Path) -> None:
    """What ncu watches: every kernel with predicted counters, once, in order."""
    gpu = Gpu(folder)
    for entry in json.loads((folder / "manifest.json").read_text())["kernels"]:
        if "predicted" in entry:
            gpu.launch(entry, gpu.arguments(HalfGemm(**entry["workload"]), exact=True))
    gpu.cupy.cuda.Device().synchronize()


def count(folder: Path, result: Path) -> int:
    """Add Nsight Compute's counters to the results, and say where they differ from the predicted ones."""
    manifest = json.loads(result.read_text())
    counted = [entry for entry in manifest["kernels"] if "predicted" in entry]
    for entry, metrics in zip(counted, nsight_counters([sys.executable, __file__, "launch", str(folder)], "hgemm_")):
        entry["measured"] = metrics
    save(manifest, result)
    print_differences(counted)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("pack", "measure", "count", "launch"):
        verb = verbs.add_parser(name)
        verb.add_argument("folder", type=Path)
        if name == "pack":
            verb.add_argument("--arch", default="sm_90")
            verb.add_argument("--rungs", default=".", help="only those whose id matches this pattern")
        if name in ("measure", "count"):
            verb.add_argument("result", type=Path)
    options = parser.parse_args()
    if options.verb == "pack":
        return pack(options.folder, options.arch, options.rungs) or 0
    if options.verb == "launch":
        return launch_counted(options.folder) or 0
    return {"measure": measure, "count": count}[options.verb](options.folder, options.result)


if __name__ == "__main__":
    raise SystemExit(main())
