"""What pytest does for instructions_on_gpu.py: write down every launch on the CPU machine that finds nothing.

A launch is a file of INSTRUCTION_LAUNCHES: PTX, the grid, and the arguments before and after.
"""

from __future__ import annotations

import itertools
import os
import pickle
import re
from pathlib import Path

import numpy as np

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.parser import parse

FOLDER = Path(os.environ["INSTRUCTION_LAUNCHES"])
LONGEST = 400_000
"""Characters of PTX: what is longer is no test of instructions."""

NOTES = {"note", "same_value"}
"""Kinds that are not a fault."""

FILLED = re.compile(r"(?:reads|updates) (\w+)\[")
"""An output that a test has filled and the CPU machine takes for empty."""

numbers = itertools.count()
really_run = CpuMachine.run


def run(self, binary, arguments, outputs, **options):
    before = {name: copied(value) for name, value in arguments.items()}
    execution = really_run(self, binary, arguments, outputs, **options)
    simple = all(value.dtype.kind in "iufbV" for value in before.values())
    sound = all(is_no_fault(finding, outputs) for finding in execution.findings)
    if outputs and simple and sound and len(binary.ptx) < LONGEST:
        kernel = binary.kernel
        types = [one.type for one in parse(binary.ptx).kernels[kernel.entry].parameters]
        after = {name: np.copy(arguments[name]) for name in outputs}
        launch = (kernel, binary.ptx, types, before, after)
        name = os.environ["PYTEST_CURRENT_TEST"].rpartition(" (")[0]
        path = FOLDER / f"{os.getpid()}-{next(numbers):05}.pickle"
        path.write_bytes(pickle.dumps((name, launch)))
    return execution


def copied(value):
    """An array, a number, or a struct, which some tests give as bytes."""
    if isinstance(value, (bytes, bytearray)) or np.asarray(value).dtype.kind == "V":
        content = bytes(value)
        return np.frombuffer(content, f"V{len(content)}").reshape(())
    return np.copy(value)


def is_no_fault(finding, outputs):
    filled = FILLED.match(finding.message) if finding.kind == "uninitialized" else None
    return finding.kind in NOTES or filled is not None and filled[1] in outputs


def pytest_configure(config):
    CpuMachine.run = run
