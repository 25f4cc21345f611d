"""Compile the instructions of these tests together; one missing here is compiled by itself when its test
runs."""

from pathlib import Path

import pytest

from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.signatures import Signature


@pytest.fixture(scope="session", autouse=True)
def instructions_of_the_tests():
    lines = (Path(__file__).parent / "signatures.txt").read_text(encoding="utf-8").splitlines()
    the_library().lane_functions(Signature(line) for line in lines if not line.startswith("#"))
