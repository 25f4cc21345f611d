"""A step of an article is read in the file of its rung and in the `steps.py` of its ladder."""

import inspect
import sys
from pathlib import Path

import pytest

from tir_schedules.compiler.lower import scheduled
from tir_schedules.ladders import articles
from tir_schedules.ladders.registry import find
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

LADDERS = Path(articles.__file__).parent
WORKLOADS = {
    "sgemm": (Gemm(256, 256, 256), Gemm(129, 127, 65)),
    "reduce": (Reduction(1 << 16),),
    "hgemm": (HalfGemm(256, 256, 128), HalfGemm(257, 129, 65)),
}
STEPS = dict.fromkeys(step.rung for article in articles.ARTICLES.values() for step in article.steps)


def files_read(rung, workload):
    """Of a ladder: files whose functions launch and schedule call, and those of the configuration."""
    called = {inspect.getfile(each) for each in type(rung.config).__mro__[:-1]}

    def note(frame, event, argument):
        if event == "call":
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        rung.launch(workload, rung.config)
        scheduled(rung, workload)
    finally:
        sys.setprofile(None)
    return {Path(name).name for name in called if Path(name).parent == LADDERS / rung.family}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_an_article_is_read_in_its_file_and_the_steps_of_its_ladder(name):
    (rung,) = find(name)
    for workload in WORKLOADS[rung.family]:
        assert files_read(rung, workload) <= {f"{rung.name}.py", "steps.py"}


def test_files_are_told_apart():
    (rung,) = find("sgemm/lane_quads")
    assert files_read(rung, WORKLOADS["sgemm"][0]) == {
        "lane_quads.py", "warp_tiles.py", "warp_tiling.py", "steps.py"
    }  # fmt: skip
