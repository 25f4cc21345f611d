"""Every rung and twin of a ladder on a GPU: right at several sizes, and the CPU machine's counters against Nsight Compute's.

The computer that emits and compiles need not have the GPU, and the one with the GPU needs neither TVM nor nvcc:

    python experiments/check_ladder_on_gpu.py pack FOLDER --arch sm_90      # here: cubins, launches, predicted counters
    python experiments/check_ladder_on_gpu.py check FOLDER RESULT.json      # there: needs CuPy and, for counters, ncu
"""
from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tir_schedules.provenance import device_provenance, git_revision, software_versions
from tir_schedules.verify import compare_with_truth
from tir_schedules.workloads.gemm import Gemm

SIZES = (256, 1000, 4096)
COUNTED_SIZE = 256  # small enough to profile every kernel, large enough for several blocks and K tiles
# Our class of access and its field -> Nsight Compute's metric.
METRICS = {
    ("shared_load", "cost"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared_store", "cost"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("global_load", "cost"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global_load", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ("global_store", "cost"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("global_store", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
}


def pack(folder: Path, arch: str) -> None:
    """Compile every kernel at every size; predict the counters at COUNTED_SIZE."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernels
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.rung import every_rung

    jobs = [(rung, size, make) for rung in every_rung() for size in SIZES for make in (lower, load_twin)]
    binaries = compile_kernels([make(rung, Gemm(size, size, size), arch) for rung, size, make in jobs])
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, ((rung, size, _), binary) in enumerate(zip(jobs, binaries)):
        kernel = binary.kernel
        (folder / f"{number}.cubin").write_bytes(binary.cubin)
        entry = {key: getattr(kernel, key) for key in ("label", "entry", "params", "grid", "block", "dynamic_shared", "arch")}
        entry |= {"cubin": f"{number}.cubin", "size": size, "resources": asdict(binary.resources)}
        if size == COUNTED_SIZE:
            gemm = Gemm(size, size, size)
            counters = CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters
            entry["predicted"] = {name: asdict(access) for name, access in counters.accesses.items()}
        entries.append(entry)
    manifest = {"git_revision": git_revision(), "versions": software_versions(), "kernels": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    print(f"packed {len(entries)} kernels for {arch} into {folder}")


class Launcher:
    """Loads and launches packed kernels; keeps the inputs of each size on the GPU."""

    def __init__(self, folder: Path):
        import cupy

        self.cupy, self.folder, self.inputs = cupy, folder, {}

    def arguments(self, size: int):
        """The workload's arguments on the host and, with a fresh poisoned output, on the GPU."""
        if size not in self.inputs:
            host = Gemm(size, size, size).arguments()
            self.inputs[size] = host, {name: self.cupy.asarray(host[name]) for name in Gemm.inputs}
        host, device = self.inputs[size]
        return host, {**host, **device, "C": self.cupy.asarray(host["C"])}

    def __call__(self, entry, arguments) -> None:
        function = self.cupy.RawModule(path=str(self.folder / entry["cubin"])).get_function(entry["entry"])
        values = [arguments[name] if name in ("A", "B", "C") else np.int32(arguments[name]) for name in entry["params"]]
        function(tuple(entry["grid"]), tuple(entry["block"]), tuple(values), shared_mem=entry["dynamic_shared"])
        self.cupy.cuda.Device().synchronize()


def check(folder: Path, result: Path) -> int:
    """Run everything, write the result; the exit code says whether every kernel was right."""
    manifest = json.loads((folder / "manifest.json").read_text())
    launch = Launcher(folder)
    for size in SIZES:
        gemm = Gemm(size, size, size)
        host, _ = launch.arguments(size)
        truth, tolerance = gemm.truth(host), gemm.tolerance(host)
        for entry in (entry for entry in manifest["kernels"] if entry["size"] == size):
            _, arguments = launch.arguments(size)
            launch(entry, arguments)
            output = launch.cupy.asnumpy(arguments["C"])
            mismatch = compare_with_truth(Known(gemm.outputs, truth, tolerance), host, {"C": output})
            error = np.abs(output - truth["C"]) / tolerance["C"]
            entry |= {"right": mismatch is None, "mismatch": mismatch and str(mismatch), "worst_share_of_tolerance": float(error.max())}
    measured = nsight_counters(folder) if shutil.which("ncu") else []
    counted = [entry for entry in manifest["kernels"] if "predicted" in entry]
    for entry, metrics in zip(counted, measured):
        entry["measured"] = metrics
    manifest["device"] = device_provenance()
    result.write_text(json.dumps(manifest, indent=1))
    wrong = [entry["label"] for entry in manifest["kernels"] if not entry["right"]]
    print(f"{len(manifest['kernels']) - len(wrong)} of {len(manifest['kernels'])} right", *wrong, sep="\n")
    print_differences(counted)
    return 1 if wrong else 0


class Known:
    """Truth and tolerance worked out once for all kernels of a size."""

    def __init__(self, outputs, truth, tolerance):
        self.outputs, self.truth, self.tolerance = outputs, lambda arguments: truth, lambda arguments: tolerance


def launch_counted(folder: Path) -> None:
    """What ncu watches: every kernel with predicted counters, once, in order."""
    launch = Launcher(folder)
    for entry in json.loads((folder / "manifest.json").read_text())["kernels"]:
        if "predicted" in entry:
            launch(entry, launch.arguments(entry["size"])[1])


def nsight_counters(folder: Path) -> list[dict[str, float]]:
    """Nsight Compute's metrics of each launch of `launch_counted`."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--kernel-name", "regex:^sgemm_", "--metrics", ",".join(METRICS.values())]
    done = subprocess.run([*ncu, sys.executable, __file__, "launch", str(folder)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ncu failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    launches: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(done.stdout[done.stdout.index('"ID"'):])):
        launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(launches.values())


def print_differences(entries) -> None:
    for entry in (entry for entry in entries if "measured" in entry):
        differences = [
            f"{access} {kind}: predicted {entry['predicted'].get(access, {}).get(kind, 0)}, measured {entry['measured'][metric]:.0f}"
            for (access, kind), metric in METRICS.items()
            if entry["predicted"].get(access, {}).get(kind, 0) != entry["measured"][metric]
        ]
        print(entry["label"], "counters equal" if not differences else "; ".join(differences))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("pack", "check", "launch"):
        verb = verbs.add_parser(name)
        verb.add_argument("folder", type=Path)
        if name == "pack":
            verb.add_argument("--arch", default="sm_90")
        if name == "check":
            verb.add_argument("result", type=Path)
    options = parser.parse_args()
    if options.verb == "pack":
        return pack(options.folder, options.arch) or 0
    if options.verb == "launch":
        return launch_counted(options.folder) or 0
    return check(options.folder, options.result)


if __name__ == "__main__":
    raise SystemExit(main())
