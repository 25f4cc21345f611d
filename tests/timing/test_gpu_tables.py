"""Tables of GPUs: what they say is what the recorded profile does."""

import json
from pathlib import Path

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.model.gpus import SMS
from tir_schedules.timing.gpus import (
    FIGURES,
    LENT,
    RETURNS,
    STORES,
    STORES_CYCLES,
    Rows,
    find_table,
    known_tables,
    launch_us,
    table_of,
)

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def profile_of(name):
    return json.loads((RESULTS / f"profile_{name}.json").read_text())


@pytest.fixture(scope="module")
def profile():
    return profile_of("h200")


def test_the_table_of_a_measured_gpu_is_made_of_its_profile(profile):
    assert table_of(profile) == find_table("h200")
    assert table_of(profile_of("h100"), profile) == find_table("h100")


def test_a_figure_that_was_lent_says_so():
    own, lent = find_table("h200"), find_table("h100")
    for name in LENT:
        assert getattr(own, name) == getattr(lent, name) and own.source(name).verified
        assert not lent.source(name).verified and "H200" in lent.source(name).text


@pytest.mark.parametrize("name", known_tables())
def test_each_figure_has_one_source(name):
    table = find_table(name)
    assert sorted(figure for each in table.sources for figure in each.figures) == sorted(FIGURES)
    assert table.arch in SMS and table.carve_outs_kib[-1] == SMS[table.arch].shared_kib
    assert table.source("multiprocessors").verified or name == "h200"


def test_what_no_source_gives_is_of_the_h100_and_not_verified():
    base, other = find_table("h100"), find_table("a100")
    assert other.page_cycles == base.page_cycles
    assert not other.source("page_cycles").verified and "H100" in other.source("page_cycles").text
    assert all(base.source(name).verified for name in FIGURES if name not in LENT)


def test_recorded_figures_of_the_h200():
    """The clock within 1 % of what was recorded on another day and another H200. CUB reads 4.50 TB/s on one
    H200 and 4.58 on another."""
    table = find_table("h200")
    sgemm, reduce = (
        json.loads((RESULTS / f"bench_{name}_h200.json").read_text()) for name in ("sgemm", "reduce")
    )
    assert table.l2_bytes == sgemm["device"]["l2_bytes"]
    naive = [row for row in sgemm["rows"] if row["name"] == "sgemm/naive"]
    clocks = [row["clock_mhz"] for row in naive if row["form"] == "schedule"]
    assert max(clocks) == pytest.approx(table.mhz, rel=0.01)
    rates = [
        row["rate"] for row in reduce["rows"] if row["name"] == "CUB" and "268435456 int32" in row["shape"]
    ]
    assert rates == [pytest.approx(table.dram_gb_per_s, rel=0.025)]


def test_l1_is_what_shared_memory_leaves():
    table = find_table("h100")
    found = tuple(table.l1_bytes(shared) >> 10 for shared in (0, 1, 9 << 10, 1 << 20))
    assert found == (256, 248, 240, 28)
    assert find_table("t4").l1_bytes(0) == 64 << 10


def test_figures_follow_the_rows(profile):
    table = table_of(profile)
    row = next(row for row in profile["rows"]["shared"] if row["name"] == "lds.32 latency")
    row["cycles"] += 31
    changed = table_of(profile)
    row["cycles"] -= 31
    assert changed.shared_latency[4] == table.shared_latency[4] + 31
    assert changed.per_wavefront == table.per_wavefront - 1
    assert changed.l2_latency == table.l2_latency and changed.intervals == table.intervals


def test_known_figures():
    """Those that public work agrees on (Huerta et al., MICRO'25; Luo et al., arXiv 2402.13499)."""
    table = find_table("h100")
    assert table.intervals["fma"] == 1 and table.intervals["alu"] == 2
    assert table.shared_latency[4] == 23 and 270 < table.l2_latency[3] + table.latencies["global"] < 290
    assert [*table.l2_latency] == sorted(table.l2_latency) and table.dram_latency > 2 * table.l2_latency[-1]
    assert table.multiprocessors == 132 and table.code_bytes == 32 << 10


def test_a_row_that_lacks_is_told(profile):
    rows = profile["rows"] | {"shared": []}
    with pytest.raises(BadInput, match="no row '.*' in 'shared'"):
        table_of(profile | {"rows": rows})


def test_another_name_is_told():
    with pytest.raises(BadInput, match="'h300'; there are: a100, h100, h200, t4"):
        find_table("h300")


@pytest.mark.parametrize("longer", [0.0, 0.5])
def test_a_launch_takes_at_least_as_long_as_one_that_stores(profile, longer):
    """Where a kernel that stores takes no longer than one that returns, the latter counts."""
    rows = Rows(profile)
    returns = rows("gpu", f"{RETURNS}, 1 blocks of 1 warps", "in_graph")
    own = STORES_CYCLES / find_table("h200").mhz
    rows.rows["gpu", STORES] = {"in_graph": returns + own + longer}
    many = rows("gpu", f"{RETURNS}, 132 blocks of 32 warps", "in_graph")
    found = launch_us(rows)
    assert (found[1], found[4224]) == pytest.approx((returns + longer, many + longer))
    rows.rows["gpu", STORES] = {"in_graph": returns}
    assert launch_us(rows)[1] == returns
