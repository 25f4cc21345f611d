"""The Reduce ladder on a GPU: every rung and twin right, timed beside CUB in one run, and looked at by compute-sanitizer.

The computer that emits and compiles need not have the GPU, and the one with the GPU needs neither TVM nor nvcc:

    python experiments/reduce_on_gpu.py pack FOLDER --arch sm_90       # here: cubins of every launch, CUB as a library
    python experiments/reduce_on_gpu.py measure FOLDER RESULT.json     # there: needs CuPy
    python experiments/reduce_on_gpu.py sanitize FOLDER RESULT.json    # there: adds what compute-sanitizer says

A time is that of a whole reduction, all its launches: CUDA events around a graph of REPEATS reductions over rotating
buffers, which together are larger than twice the L2 cache. Rungs, twins and CUB take turns; the median of ROUNDS counts.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from check_ladder_on_gpu import describe, save

from tir_schedules.provenance import device_provenance, git_revision, software_versions

TIMED = {1 << 25: "", 1 << 30: r"shuffle|cross_thread|vectorized"}
"""Elements -> which rungs, by a pattern: the first ones would take all day."""

CHECKED = (1, 31, 255, 257, 1111111, 1 << 20)
SANITIZED = 20001
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
REPEATS, ROUNDS = 10, 15
CUB = r"""
#include <cub/device/device_reduce.cuh>
extern "C" int cub_sum(void* temporary, size_t* bytes, const int* X, int* Y, int N, void* stream) {
    return cub::DeviceReduce::Sum(temporary, *bytes, X, Y, N, static_cast<cudaStream_t>(stream));
}
"""


def pack(folder: Path, arch: str) -> None:
    """Compile every launch of every rung and twin, and CUB."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.toolchain import find_toolchain
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.rung import every_rung, find
    from tir_schedules.run import launches
    from tir_schedules.workloads.reduction import Reduction

    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    flawed = find("reduce/unrolled_warp:volatile")
    for rung in [*every_rung("reduce"), *flawed]:
        for n in (*CHECKED, SANITIZED, *TIMED):
            for make in (lower, load_twin):
                kernels = launches(make, rung, Reduction(n), arch)
                steps = [describe(compile_kernel(kernel), folder) for kernel in kernels]
                entries.append({"label": kernels[0].label, "n": n, "flawed": rung in flawed, "launches": steps})
    (folder / "cub.cu").write_text(CUB)
    command = [str(find_toolchain().nvcc), f"-arch={arch}", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "cub.cu", "-o", "cub.so"]
    subprocess.run(command, cwd=folder, check=True)
    manifest = {"git_revision": git_revision(), "versions": software_versions(), "kernels": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    print(f"packed {len(entries)} reductions for {arch} into {folder}")


class Gpu:
    """Loaded functions and scratch buffers of one GPU."""

    def __init__(self, folder: Path):
        import cupy

        self.cupy, self.folder, self.functions = cupy, folder, {}
        self.scratch = [cupy.empty(1 << 24, cupy.int32) for _ in range(2)]
        library = ctypes.CDLL(str((folder / "cub.so").resolve()))
        self.cub_sum, self.cub_bytes = library.cub_sum, ctypes.c_size_t(0)
        self.cub_sum.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int, ctypes.c_void_p]
        self.call_cub(0, 1 << 16, 0, 1 << 30)
        self.cub_scratch = cupy.empty(self.cub_bytes.value, cupy.uint8)

    def function(self, step):
        key = step["cubin"], step["entry"]
        if key not in self.functions:
            self.functions[key] = self.cupy.RawModule(path=str(self.folder / step["cubin"])).get_function(step["entry"])
        return self.functions[key]

    def reduce(self, steps, x):
        """Launch everything; the array whose first element is the sum."""
        source = x
        for number, step in enumerate(steps):
            target = self.scratch[number % 2]
            values = {"X": source, "Y": target, "N": np.int32(x.size if number == 0 else steps[number - 1]["grid"][0])}
            arguments = tuple(values[name] for name in step["params"])
            self.function(step)(tuple(step["grid"]), tuple(step["block"]), arguments, shared_mem=step["dynamic_shared"])
            source = target
        return source

    def call_cub(self, temporary: int, x: int, y: int, n: int) -> None:
        stream = self.cupy.cuda.get_current_stream().ptr
        status = self.cub_sum(temporary, ctypes.addressof(self.cub_bytes), x, y, n, stream)
        assert status == 0, f"CUB returned {status}"

    def cub(self, x):
        self.call_cub(self.cub_scratch.data.ptr, x.data.ptr, self.scratch[0].data.ptr, x.size)
        return self.scratch[0]

    def buffers(self, n: int):
        """Copies of random integers, together beyond twice the L2 cache."""
        cupy = self.cupy
        first = cupy.random.default_rng(0).integers(-(2**31), 2**31, n, dtype=cupy.int32)
        count = max(2, -(-2 * cupy.cuda.Device().attributes["L2CacheSize"] // first.nbytes))
        return [first] + [first.copy() for _ in range(count - 1)]

    def graph(self, reduce, buffers):
        """A CUDA graph of REPEATS reductions."""
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            reduce(buffers[0])  # load lazily before the capture
            stream.synchronize()
            stream.begin_capture()
            for repeat in range(REPEATS):
                reduce(buffers[repeat % len(buffers)])
            return stream, stream.end_capture()

    def time(self, stream, graph) -> float:
        """Microseconds of one reduction."""
        start, stop = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record(stream)
        graph.launch(stream)
        stop.record(stream)
        stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, stop) * 1000 / REPEATS


def verify(gpu: Gpu, entries) -> list[str]:
    """Compare every reduction with the exact sum; what is wrong, one line each."""
    wrong, cupy = [], gpu.cupy
    for n in sorted({entry["n"] for entry in entries}):
        x = cupy.random.default_rng(n).integers(-(2**31), 2**31, n, dtype=cupy.int32)
        expected = int(x.sum(dtype=cupy.int64).astype(cupy.int32))
        for entry in (entry for entry in entries if entry["n"] == n):
            gpu.scratch[0].fill(-559038737), gpu.scratch[1].fill(-559038737)
            got = int(gpu.reduce(entry["launches"], x)[0])
            entry["right"] = got == expected
            if got != expected:
                wrong.append(f"{entry['label']} of {n}: {got}, should be {expected}")
    return wrong


def measure(folder: Path, result: Path) -> int:
    manifest = json.loads((folder / "manifest.json").read_text())
    entries, gpu = manifest["kernels"], Gpu(folder)
    wrong = verify(gpu, entries)
    print(f"{len(entries) - len(wrong)} of {len(entries)} right", *wrong, sep="\n")
    manifest["cub"] = []
    for n, pattern in TIMED.items():
        buffers = gpu.buffers(n)
        timed = [entry for entry in entries if entry["n"] == n and entry["right"] and re.search(pattern, entry["label"])]
        cub = {"label": "CUB", "n": n}
        manifest["cub"].append(cub)
        jobs = [(cub, gpu.graph(gpu.cub, buffers))]
        for entry in timed:
            jobs.append((entry, gpu.graph(lambda x, steps=entry["launches"]: gpu.reduce(steps, x), buffers)))
        for round_ in range(ROUNDS + 3):  # three rounds to settle
            for entry, (stream, graph) in jobs:
                microseconds = gpu.time(stream, graph)
                if round_ >= 3:
                    entry.setdefault("samples_us", []).append(round(microseconds, 3))
        for entry, _ in jobs:
            entry["median_us"] = statistics.median(entry["samples_us"])
            spread = (max(entry["samples_us"]) - min(entry["samples_us"])) / entry["median_us"]
            print(f"{n:>11} {entry['label']:40} {entry['median_us']:10.2f} us {4 * n / entry['median_us'] / 1e3:8.1f} GB/s  {spread:.1%}")
        del buffers, jobs
        gpu.cupy.get_default_memory_pool().free_all_blocks()
    manifest["device"] = device_provenance()
    save(manifest, result)
    return 1 if wrong else 0


def launch(folder: Path, flawed: bool) -> None:
    """What compute-sanitizer watches: every reduction of SANITIZED elements once."""
    entries = json.loads((folder / "manifest.json").read_text())["kernels"]
    gpu = Gpu(folder)
    x = gpu.cupy.asarray(np.arange(SANITIZED, dtype=np.int32))  # a copy, which initcheck sees; it does not watch other kernels
    for entry in entries:
        if entry["n"] == SANITIZED and entry["flawed"] == flawed:
            gpu.reduce(entry["launches"], x)
    gpu.cupy.cuda.Device().synchronize()


def sanitize(folder: Path, result: Path) -> int:
    """Add the closing line of each tool to the results, for the ladder and for the flawed configuration."""
    manifest, summaries = json.loads(result.read_text()), {}
    for tool in SANITIZERS:
        for which in ("ladder", "flawed"):
            command = ["compute-sanitizer", "--tool", tool, "--kernel-regex", "kernel_substring=reduce_", sys.executable, __file__]
            done = subprocess.run([*command, "launch", str(folder), "--which", which], capture_output=True, text=True)
            lines = [line for line in done.stdout.splitlines() if "SUMMARY" in line] or [done.stdout[-500:] + done.stderr[-500:]]
            summaries[f"{tool}, {which}"] = lines[-1].strip("= ")
            print(f"{tool}, {which}: {summaries[f'{tool}, {which}']}", flush=True)
    save(manifest | {"sanitizers": summaries}, result)
    return 0 if all(" 0 errors" in text or "(0 errors" in text for name, text in summaries.items() if "ladder" in name) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("pack", "measure", "sanitize", "launch"):
        verb = verbs.add_parser(name)
        verb.add_argument("folder", type=Path)
        if name == "pack":
            verb.add_argument("--arch", default="sm_90")
        if name in ("measure", "sanitize"):
            verb.add_argument("result", type=Path)
        if name == "launch":
            verb.add_argument("--which", choices=["ladder", "flawed"], default="ladder")
    options = parser.parse_args()
    if options.verb == "pack":
        return pack(options.folder, options.arch) or 0
    if options.verb == "launch":
        return launch(options.folder, options.which == "flawed") or 0
    return {"measure": measure, "sanitize": sanitize}[options.verb](options.folder, options.result)


if __name__ == "__main__":
    raise SystemExit(main())
