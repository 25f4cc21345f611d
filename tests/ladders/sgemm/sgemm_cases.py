"""What SGEMMs the tests are about.

A schedule is lowered and compiled for one shape. So that this is done once, the tests of the default layer
ask for the same shapes.
"""

from itertools import cycle, islice, product

from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.ladders.sgemm import offered
from tir_schedules.model.rung import Unasked
from tir_schedules.workloads.gemm import Gemm

ARCH = Unasked("sm_80")  # a rung for another one takes that
RUNGS, LADDER = (
    [rung for rung in rungs if offered(rung)["products"] == ("float32",)]
    for rungs in (every_rung("sgemm"), ladder("sgemm"))
)
"""Without those of products of parts, which test_sgemm_split.py is about."""
BASE = [*LADDER, *find("sgemm/multistage:32x64")]
"""The default layer's. For small shapes `multistage` takes a configuration that unrolls its stages, and that
one does not."""

# Whole tiles, several of them.
WHOLE = Gemm(256, 256, 256)
# Ragged along M, N and K, with rows that 16-byte accesses can take; and with rows that they cannot.
RAGGED, ODD = Gemm(132, 100, 36), Gemm(129, 127, 65)
WIDE = [rung for rung in LADDER if rung.shapes != "any"]
"""Rungs with 16-byte accesses, to which RAGGED and ODD are not the same."""


def takes(rung, gemm):
    """Whether a rung does not refuse a shape."""
    return rung.refuses is None or not rung.refuses(gemm, rung.fitted(gemm).config)


def taken(cases):
    return [(rung, gemm) for rung, gemm in cases if takes(rung, gemm)]


# Of the dear ones every other is ragged here; all are, in one way each, in ONE_EACH of test_sgemm_ladder.py.
IN_TURN = [*zip(WIDE[::2], cycle((RAGGED, ODD))), *((rung, ODD) for rung in LADDER if rung not in WIDE)]
SHARED = taken([*((rung, WHOLE) for rung in BASE), *IN_TURN])
OTHERS = [rung for rung in RUNGS if rung not in BASE]


def each_and_in_turn(shapes, count):
    """Every rung of the default layer with every shape; every other configuration with so many, in turn."""
    turns = cycle(shapes)
    others = [(rung, shape) for rung in OTHERS for shape in islice(turns, count)]
    return taken([*product(BASE, shapes), *others])


EVERY = [*each_and_in_turn((RAGGED, ODD), 1), *((rung, WHOLE) for rung in RUNGS)]
