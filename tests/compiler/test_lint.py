"""Mistakes in a schedule are told with its line and what to do, in place of what TVM or nvcc make of them."""

import pytest

from tir_schedules.ladders.own import RUNGS

HEAD = """from tir_schedules.model.rung import Rung

def schedule(sch, gemm, config):
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
"""
TAIL = '\nRUNG = Rung("sgemm", schedule=schedule)\n'
BOUND = '    sch.bind(i, "blockIdx.x"), sch.bind(j, "threadIdx.x")\n'
LINE = 6

MISTAKES = {
    "axis": ('    sch.bind(i, "threadIdx.w")', "loop i is bound to 'threadIdx.w', which CUDA lacks"),
    "twice": (
        '    sch.bind(j, "threadIdx.x"), sch.bind(i, "threadIdx.x")',
        "loops i and j are both bound to threadIdx.x: bind one of them to another axis",
    ),
    "around": (
        "    sch.reorder(k, i, j)\n" + BOUND,
        "loop k is around the loops that are bound to blockIdx, so that each iteration would be a launch",
    ),
    "copy": (
        '    sch.cache_read(block, 0, "shared")\n' + BOUND,
        "block A_shared is outside of the loops that are bound to blockIdx",
    ),
    "block": (
        "    sch.peel_last(block)\n" + BOUND,
        "TypeError: it takes a loop of this schedule, not a block",
    ),
    "loop": ("    sch.wrap_edge_tiles(k, 0, 1)\n" + BOUND, "TypeError: it takes a block of this schedule"),
    "specialize_warps": (
        "    sch.specialize_warps(k, 4)\n" + BOUND,
        "specialize_warps does not fit: it takes",
    ),
    "prefetch_boxes": ("    sch.prefetch_boxes(k, 4)\n" + BOUND, "prefetch_boxes does not fit: it takes"),
    "make_persistent": (
        "    sch.make_persistent(i, 132)\n" + BOUND,
        "make_persistent does not fit: it takes",
    ),
    "mbarriers": ("    sch.pipeline_by_mbarriers(k, 3)\n" + BOUND, "pipeline_by_mbarriers does not fit: it"),
    "swizzle": (
        "    sch.swizzle_threadblocks(k, 8)\n" + BOUND,
        "swizzle_threadblocks does not fit: it takes",
    ),
    "unbound": ("    sch.unroll(k)", "bind its loops to blockIdx and threadIdx"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake, tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines, told = MISTAKES[mistake]
    (tmp_path / "mine.py").write_text(HEAD + lines + TAIL)
    code, out, _ = tool("run", "./mine.py", "--mnk", "64,64,64")
    RUNGS.clear()
    place = "" if mistake == "unbound" else f"sgemm/mine: mine.py:{LINE}: "
    assert code == 1 and f"{place}{told}" in out.replace("\n", " ")
