"""Configurations of HGEMM's rungs as they were timed on an H200, and what the models make of them."""

import json
from pathlib import Path
from statistics import median

import pytest

from tir_schedules.ladders import fastest
from tir_schedules.ladders.registry import find
from tir_schedules.workloads.half_gemm import HalfGemm

MEASURED = json.loads(Path(__file__).with_name("measured_choices.json").read_text())
"""Shape and format of the sums, B stored N x K and C in float16 -> microseconds, by rung and configuration.
Where rows are no multiples of 16 bytes, copies of them had rows of such, and not of whole lines."""
VENDOR = "vendor"
OFF = 0.3
"""Of the measured time, that an estimate is off at most."""
LOST = 1.12
"""Times the fastest of those measured that the one takes at most that is estimated to be the fastest."""


def gemm_of(shape):
    sizes, sums = shape.split()
    return HalfGemm(*map(int, sizes.split("x")), "nt", sums, output="float16")


def estimates(shape):
    """Microseconds by name, estimated and measured."""
    gemm, found = gemm_of(shape), {}
    for name, measured in MEASURED[shape].items():
        if name != VENDOR:
            (rung,) = find(f"hgemm/{name}")
            found[name] = fastest.estimated(rung, gemm).estimate.microseconds, measured
    return found


def test_estimates_are_near_what_was_measured():
    off = {
        (shape, name): estimated / measured - 1
        for shape in MEASURED
        for name, (estimated, measured) in estimates(shape).items()
    }
    assert len(off) > 150 and median(map(abs, off.values())) < 0.06
    assert not {key: error for key, error in off.items() if abs(error) > OFF}


@pytest.mark.parametrize("shape", MEASURED)
def test_what_is_estimated_to_be_the_fastest_nearly_is(shape):
    """Of each rung, and of all: `fastest` compares these estimates."""
    found = estimates(shape)
    rungs = {name.partition(":")[0] for name in found}
    for some in [found, *({name: found[name] for name in found if name.startswith(rung)} for rung in rungs)]:
        chosen = min(some, key=lambda name: some[name][0])
        assert some[chosen][1] <= LOST * min(measured for _, measured in some.values()), chosen
