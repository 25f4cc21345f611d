"""Every rung and twin on a GPU: right at several sizes, and the CPU machine's counters against Nsight Compute's.

The computer that emits and compiles need not have the GPU, and the one with the GPU needs neither TVM nor nvcc:

    python experiments/check_ladder_on_gpu.py pack FOLDER --arch sm_90      # here: cubins, launches, predicted counters
    python experiments/check_ladder_on_gpu.py check FOLDER RESULT.json      # there: needs CuPy and, for counters, ncu
"""
from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from counter_probes import Probe, probes

from tir_schedules.kernel import Binary
from tir_schedules.provenance import device_provenance, git_revision, software_versions
from tir_schedules.verify import compare_with_truth
from tir_schedules.workloads.gemm import Gemm

SIZES = (256, 1000, 4096)
COUNTED_SIZE = 256  # small enough to profile every kernel, large enough for several blocks and K tiles
# Nsight Compute's metric -> our classes of access it covers, and which of their figures. The shared-memory metrics
# of the L1 cache count what its data pipe really did, with the stalls of other traffic; those of the instrumented code
# (smsp__sass) what the instructions asked for.
METRICS = {
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": (("shared_load", "ldmatrix"), "cost"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": (("shared_store",), "cost"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": (("shared_load",), "cost"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum": (("ldmatrix",), "cost"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum": (("shared_store",), "cost"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum": (("shared_cp_async",), "cost"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": (("global_load", "global_cp_async"), "cost"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": (("global_load", "global_cp_async"), "requests"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": (("global_store",), "cost"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": (("global_store",), "requests"),
}


def pack(folder: Path, arch: str) -> None:
    """Compile every kernel at every size; predict the counters at COUNTED_SIZE."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernels
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.rung import every_rung

    jobs = [(rung, size, make) for rung in every_rung("sgemm") for size in SIZES for make in (lower, load_twin)]
    kernels = [make(rung, Gemm(size, size, size), arch) for rung, size, make in jobs]
    patterns = probes(arch)
    binaries = compile_kernels([*kernels, *(probe.kernel for probe in patterns)])
    folder.mkdir(parents=True, exist_ok=True)
    machine, entries = CpuMachine(), []
    for (_, size, _), binary in zip(jobs, binaries):
        entry = describe(binary, folder) | {"size": size}
        if size == COUNTED_SIZE:
            gemm = Gemm(size, size, size)
            entry["predicted"] = predicted(machine, binary, gemm.arguments(), gemm.outputs)
        entries.append(entry)
    for probe, binary in zip(patterns, binaries[len(jobs) :]):
        counts = predicted(machine, binary, probe.arguments(), ("Y",))
        entries.append(describe(binary, folder) | {"probe": probe.name, "predicted": counts} | addresses(probe))
    manifest = {"git_revision": git_revision(), "versions": software_versions(), "kernels": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    print(f"packed {len(entries)} launches for {arch} into {folder}")


def describe(binary: Binary, folder: Path) -> dict[str, Any]:
    """Save the cubin under a hash of its content; everything else a launch needs."""
    kernel, name = binary.kernel, cubin_name(binary)
    (folder / name).write_bytes(binary.cubin)
    entry = {key: getattr(kernel, key) for key in ("label", "entry", "params", "grid", "block", "dynamic_shared", "arch")}
    return entry | {"cubin": name, "resources": asdict(binary.resources)}


def cubin_name(binary: Binary) -> str:
    """File name of a cubin, by its content."""
    return hashlib.sha256(binary.cubin).hexdigest()[:16] + ".cubin"


def addresses(probe: Probe) -> dict[str, list[int]]:
    return {"offsets": probe.offsets.tolist(), "sources": probe.sources.tolist()}


def predicted(machine, binary: Binary, arguments, outputs) -> dict[str, dict[str, int]]:
    counters = machine.run(binary, arguments, outputs, count=True).counters
    return {name: asdict(access) for name, access in counters.accesses.items()}


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

    def probe_arguments(self, entry):
        arguments = Probe(entry["probe"], None, np.array(entry["offsets"]), np.array(entry["sources"])).arguments()
        return {name: self.cupy.asarray(array) for name, array in arguments.items()}

    def __call__(self, entry, arguments) -> None:
        function = self.cupy.RawModule(path=str(self.folder / entry["cubin"])).get_function(entry["entry"])
        arrays = (self.cupy.ndarray, np.ndarray)
        values = [arguments[name] if isinstance(arguments[name], arrays) else np.int32(arguments[name]) for name in entry["params"]]
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
        for entry in (entry for entry in manifest["kernels"] if entry.get("size") == size):
            _, arguments = launch.arguments(size)
            launch(entry, arguments)
            output = launch.cupy.asnumpy(arguments["C"])
            mismatch = compare_with_truth(Known(gemm.outputs, truth, tolerance), host, {"C": output})
            error = np.abs(output - truth["C"]) / tolerance["C"]
            entry |= {"right": mismatch is None, "mismatch": mismatch and str(mismatch), "worst_share_of_tolerance": float(error.max())}
    measured = nsight_counters([sys.executable, __file__, "launch", str(folder)], "sgemm_|probe") if shutil.which("ncu") else []
    counted = [entry for entry in manifest["kernels"] if "predicted" in entry]
    for entry, metrics in zip(counted, measured):
        entry["measured"] = metrics
    manifest["device"] = device_provenance()
    save(manifest, result)
    judged = [entry for entry in manifest["kernels"] if "right" in entry]
    wrong = [f"{entry['label']} at {entry['size']}: {entry['mismatch']}" for entry in judged if not entry["right"]]
    print(f"{len(judged) - len(wrong)} of {len(judged)} right", *wrong, sep="\n")
    print_differences(counted)
    return 1 if wrong else 0


def save(manifest: dict[str, Any], path: Path) -> None:
    """As JSON with a line for each kernel."""
    about = {name: value for name, value in manifest.items() if name != "kernels"}
    kernels = ",\n".join(json.dumps(entry) for entry in manifest["kernels"])
    path.write_text(json.dumps(about, indent=1)[:-2] + f',\n "kernels": [\n{kernels}\n]\n}}\n')


class Known:
    """Truth and tolerance worked out once for all kernels of a size."""

    def __init__(self, outputs, truth, tolerance):
        self.outputs, self.truth, self.tolerance = outputs, lambda arguments: truth, lambda arguments: tolerance


def launch_counted(folder: Path) -> None:
    """What ncu watches: every kernel with predicted counters, once, in order."""
    launch = Launcher(folder)
    for entry in json.loads((folder / "manifest.json").read_text())["kernels"]:
        if "predicted" in entry:
            size = entry.get("size")
            launch(entry, launch.arguments(size)[1] if size else launch.probe_arguments(entry))


def nsight_counters(command: list[str], kernels: str) -> list[dict[str, float]]:
    """Nsight Compute's metrics of each launch of a command, of kernels whose name begins with the pattern."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--kernel-name", f"regex:^({kernels})", "--metrics", ",".join(METRICS)]
    done = subprocess.run([*ncu, *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ncu failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    launches: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(done.stdout[done.stdout.index('"ID"'):])):
        launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(launches.values())


def print_differences(entries) -> None:
    """One line per launch whose counters differ, and how many agree."""
    differing = 0
    for entry in (entry for entry in entries if "measured" in entry):
        figures = {metric: prediction(entry, *METRICS[metric]) for metric in METRICS}
        differences = [
            f"{metric}: predicted {figure}, measured {entry['measured'][metric]:.0f}"
            for metric, figure in figures.items()
            if figure != entry["measured"][metric]
        ]
        differing += bool(differences)
        if differences:
            print(entry.get("probe", entry["label"]), *differences, sep="\n    ")
    print(f"counters equal for {len(entries) - differing} of {len(entries)} launches")


def prediction(entry, classes, figure: str) -> int:
    return sum(entry["predicted"].get(name, {}).get(figure, 0) for name in classes)


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
