"""Made-up tools of NVIDIA's on PATH, what Nsight Compute would print, and a GPU that is the CPU machine."""

import csv
import io
import os
import sys
from dataclasses import replace
from pathlib import Path

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.insight.profile.nsight import prediction
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.counters import METRICS

HEAD = ("ID", "Process ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")


class MadeUpGpu:
    """Runs cubins on the CPU machine, those of kernels that it is given. spoil: entry of kernels whose
    outputs it makes wrong."""

    name, arch, device_name = "gpu", "sm_90", "NVIDIA H200"

    def __init__(self, kernels, spoil=""):
        self.ptx = {binary.cubin: binary.ptx for binary in map(compile_kernel, kernels)}
        self.cpu, self.spoil, self.launched = CpuMachine(), spoil, []

    def run(self, binary, arguments, outputs, *, count=False):
        assert not binary.ptx, "a pack has none"
        self.launched.append(binary.kernel.entry)
        execution = self.cpu.run(replace(binary, ptx=self.ptx[binary.cubin]), arguments, outputs, count=count)
        if binary.kernel.entry == self.spoil:
            arguments[outputs[0]].flat[0] += 1
        return execution


def installer(folder, monkeypatch):
    """install(tool, code): a tool on PATH that runs Python code. It writes its arguments to a line of the
    file it returns."""
    path = folder / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path), prepend=os.pathsep)

    def install(name, code):
        log, tool = folder / f"{name}.log", path / name
        logged = f"open({str(log)!r}, 'a').write(json.dumps(sys.argv[1:]) + chr(10))"
        tool.write_text(f"#!{sys.executable}\nimport json, sys\n{logged}\n{code}\n")
        tool.chmod(0o755)
        return log

    return install


def table(counted, change=lambda number, name, value: value):
    """What ncu prints of launches, given as (kernel, metrics)."""
    text = io.StringIO()
    text.write("==PROF== Connected to process 1\n13 of 13 right\n==PROF== Disconnected from process 1\n")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(HEAD)
    for number, (kernel, metrics) in enumerate(counted):
        for name, value in metrics.items():
            shown = change(number, name, f"{value:,}")
            writer.writerows([(number, 1, kernel, name, "", shown)] if shown is not None else [])
    return text.getvalue()


def predicted_launches(cases):
    """Kernel and metrics of every launch that is counted, as the CPU machine predicted them."""
    found = [
        (binary.kernel.entry, one)
        for case in cases
        if case.predicted
        for binary, one in zip(case.binaries, case.predicted)
    ]
    return [
        (entry, {name: prediction({"predicted": one}, *METRICS[name]) for name in METRICS})
        for entry, one in found
    ]


NCU = f"""
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from fake_tools import predicted_launches, table
from tir_schedules.insight.profile.cases import load_cases
counted = predicted_launches(load_cases(Path(sys.argv[-1]))[0])
%s
print(table(counted))
"""
"""A made-up ncu: it counts what a pack predicts, which is the last of its arguments, changed by one statement
about `counted`."""
