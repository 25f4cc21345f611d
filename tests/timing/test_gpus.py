"""Tables of GPUs: what they say is what the recorded profile does."""

import json
from pathlib import Path

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.timing.gpus import find_table, known_tables, table_of

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


@pytest.fixture(scope="module")
def profile():
    return json.loads((RESULTS / "profile_h100.json").read_text())


@pytest.mark.parametrize("name", known_tables())
def test_a_shipped_table_is_made_of_the_profile(name):
    assert table_of(json.loads((RESULTS / f"profile_{name}.json").read_text())) == find_table(name)


def test_figures_follow_the_rows(profile):
    table = table_of(profile)
    row = next(row for row in profile["rows"]["shared"] if row["name"] == "lds.32 latency")
    row["cycles"] += 31
    changed = table_of(profile)
    row["cycles"] -= 31
    assert changed.shared_latency[4] == table.shared_latency[4] + 31
    assert changed.per_wavefront == table.per_wavefront - 1
    assert changed.miss_latency == table.miss_latency and changed.intervals == table.intervals


def test_known_figures():
    """Those that public work agrees on (Huerta et al., MICRO'25; Luo et al., arXiv 2402.13499)."""
    table = find_table("h100")
    assert table.intervals["fma"] == 1 and table.intervals["alu"] == 2
    assert table.shared_latency[4] == 23 and 250 < table.miss_latency["l2"] + table.latencies["global"] < 280
    assert table.multiprocessors == 132 and table.code_bytes == 32 << 10


def test_a_row_that_lacks_is_told(profile):
    rows = profile["rows"] | {"shared": []}
    with pytest.raises(BadInput, match="no row '.*' in 'shared'"):
        table_of(profile | {"rows": rows})


def test_another_name_is_told():
    with pytest.raises(BadInput, match="'h300'; there are: h100"):
        find_table("h300")
