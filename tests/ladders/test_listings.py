"""The articles' steps are what their listings say: schedule and twin, in what nvcc makes of them."""

import re
from dataclasses import replace
from functools import lru_cache
from math import prod

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.metrics.counting import metrics_of
from tir_schedules.ladders.articles import ARTICLES, FACTS
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import find
from tir_schedules.run import launches
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
MAKERS = {"schedule": lower, "twin": load_twin}
SHAPE = (1024, 2048, 512)
"""What FACTS says of the grid."""

WHOLE = {"sgemm": Gemm(256, 256, 256), "hgemm": HalfGemm(256, 256, 1536), "reduce": Reduction(1 << 16)}
"""Whole tiles, for which other tests compile the kernels, too."""

LOAD = re.compile(r"ld\.global\S*?(?:\.v(\d))?\.[bfsu](\d+)\s")
COPY = re.compile(r"cp\.async\.c[ag]\S*\s+\[[^]]*\],\s*\[[^]]*\],\s*(\d+)")
WAIT = re.compile(r"cp\.async\.wait_group\s+(\d+)")
STEPS = [
    (step, form) for article in ARTICLES.values() for step in article.steps for form in MAKERS if step.facts
]


@lru_cache(maxsize=None)
def binary(name, form):
    """Of the first launch, on the shape that other tests of the ladder compile it for."""
    (rung,) = find(name)
    return compile_kernel(MAKERS[form](rung, WHOLE[rung.family], ARCH))


def threads(name, form):
    return binary(name, form).kernel.threads


def grid(name, form):
    (rung,) = find(name)
    return MAKERS[form](rung, workload_class(rung.family)(*SHAPE), ARCH).grid


def shared(name, form):
    made = binary(name, form)
    return made.resources.shared + made.kernel.dynamic_shared


def load(name, form):
    """Loads into registers and copies to shared memory alike."""
    ptx = binary(name, form).ptx
    loads = [int(count or 1) * int(bits) // 8 for count, bits in LOAD.findall(ptx)]
    return max([*loads, *map(int, COPY.findall(ptx))])


def barriers(name, form):
    """Executed by each thread of the first launch; those of a warp alone are left out."""
    (rung,) = find(name)
    workload = WHOLE[rung.family]
    binaries = [compile_kernel(kernel) for kernel in launches(MAKERS[form], rung, workload, ARCH)]
    alone = [replace(each, ptx=re.sub(r"bar\.warp\.sync[^;]*;", "", each.ptx)) for each in binaries]
    met, kernel = metrics_of(alone, workload)[0].counters.mix.get("barrier", 0), binaries[0].kernel
    tiles = 1 if rung.family == "reduce" else workload.k // vars(rung.config).get("bk", 32)
    return met // (prod(kernel.grid) * kernel.threads) // tiles


def ahead(name, form):
    ptx = binary(name, form).ptx
    return ptx[: ptx.index("mma.sync")].count("cp.async.commit_group")


def waits(name, form):
    found = [int(depth) for depth in WAIT.findall(binary(name, form).ptx)]
    return tuple(dict.fromkeys(found))


MEASURED = {
    "threads": threads, "grid": grid, "shared": shared, "load": load, "barriers": barriers, "ahead": ahead,
    "waits": waits,
}  # fmt: skip


@pytest.mark.parametrize("step, form", STEPS, ids=lambda value: getattr(value, "rung", value))
def test_a_step_is_what_its_listing_says(step, form):
    found = {fact: MEASURED[fact](step.rung, form) for fact in step.facts}
    assert found == step.facts


def test_every_fact_is_explained_and_measured():
    assert FACTS.keys() == MEASURED.keys()
    assert {fact for step, _ in STEPS for fact in step.facts} == FACTS.keys()
