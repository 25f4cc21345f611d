"""Instructions that tests of the CPU machine execute, compiled together."""

from pathlib import Path

from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.signatures import Signature


def compile_together():
    """One that is missing in signatures.txt is compiled by itself when its test runs."""
    lines = (Path(__file__).parent / "signatures.txt").read_text(encoding="utf-8").splitlines()
    the_library().lane_functions(Signature(line) for line in lines if not line.startswith("#"))
