"""Names of rungs: those of today, and those that users may still type and recorded files still have."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.files import read_json
from tir_schedules.insight.profile.results import read_result
from tir_schedules.ladders.registry import FORMER, FORMER_FIELDS, REUSED, current, every_rung, find
from tir_schedules.report.recorded import document_in
from tir_schedules.tuning.records.database import SHIPPED, Database
from tir_schedules.tuning.space.tunable import space_of

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
MEASURED = [path for path in sorted(RESULTS.glob("*.json")) if document_in(path)]


def names_in(value):
    """All keys and strings of JSON."""
    if isinstance(value, dict):
        return [*value, *(name for part in value.values() for name in names_in(part))]
    return [name for part in value for name in names_in(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("former, now", FORMER.items())
def test_a_former_id_stands_for_the_rung_of_today(former, now):
    assert find(former) == find(now)
    assert [rung.id for rung in find(former)] == [now]


@pytest.mark.parametrize(
    "recorded, now",
    [
        ("hgemm/mma_permuted:stages=5 (twin)", "hgemm/mma_xor_swizzle:stages=5 (twin)"),
        ("hgemm_mma_permuted", "hgemm_mma_xor_swizzle"),
        ("hgemm/wmma_padded:padded,skew=8", "hgemm/wmma_padded:article_004,padding=8"),
        ("hgemm/mma_permuted_again", "hgemm/mma_permuted_again"),
        ("reduce/divergent:in_place (twin)", "reduce/divergent (twin)"),
        ("reduce/divergent:in_place,block=128", "reduce/divergent:block=128"),
        ("reduce/divergent: no twin", "reduce/divergent: no twin"),
        ("no skew=8 of hgemm/mma_permuted", "no skew=8 of hgemm/mma_permuted"),
        ("reduce/unrolled_warp:volatile (twin)", "reduce/unrolled_warp:article (twin)"),
        ("reduce/unrolled_warp:volatile=1", "reduce/unrolled_warp:volatile=1"),
        ([{"skew": 1, "stripe": None}], [{"padding": 1, "threadblock_swizzle": None}]),
    ],
)
def test_what_was_recorded_has_the_names_of_today(recorded, now):
    assert current(recorded) == now == current(now)


LABELS = [
    "sgemm/vectorized:32x32 (twin)", "sgemm_vectorized", "sgemm/vectorized_again",
    "reduce/divergent (twin)", "reduce/divergent:block=128", "reduce_divergent", "reduce/divergent: refused",
]  # fmt: skip
THEN = [
    "sgemm/transposed:32x32 (twin)", "sgemm_transposed", "sgemm/vectorized_again",
    "reduce/divergent:rfactor (twin)", "reduce/divergent:rfactor,block=128", "reduce_divergent",
    "reduce/divergent:rfactor: refused",
]  # fmt: skip


@pytest.mark.parametrize(
    "dates, labels",
    [
        ({"date": "2026-11-21T14:20:55Z"}, THEN),
        ({"date": "2027-01-01T00:00:00Z"}, LABELS),
        ({"date": "2027-01-01T00:00:00Z", "packed": {"date": "2026-11-21T14:17:12Z"}}, THEN),
        ({"date": "2027-01-01T00:00:00Z", "packed": {"date": "2027-01-01T00:00:00Z"}}, LABELS),
        ({"date": None}, LABELS),
        ({}, LABELS),
    ],
    ids=str,
)
def test_an_id_that_was_given_again_stands_for_the_rung_that_had_it_when_a_file_was_recorded(dates, labels):
    recorded = {**dates, "rows": [{"name": name} for name in LABELS]}
    loaded = current(recorded)
    assert [row["name"] for row in loaded["rows"]] == labels
    assert current(loaded) == loaded


def test_an_earlier_name_of_what_has_the_id_now_stays_that_when_a_file_is_loaded_again():
    recorded = {"date": "2026-11-23T00:10:47Z", "rows": ["reduce/divergent:in_place", "reduce/divergent"]}
    loaded = current(recorded)
    assert loaded["rows"] == ["reduce/divergent", "reduce/divergent:rfactor"]
    assert current(loaded) == loaded


def test_who_types_an_id_that_was_given_again_means_the_rung_of_today():
    ids = {rung.id for rung in every_rung()}
    for name, (then, _) in REUSED.items():
        assert find(name)[0].id == name and then in ids


def test_recorded_files_that_name_the_vectorized_rung_mean_the_one_of_today():
    """Those that were recorded before it had the name are shown with that of `transposed`."""
    kept = {path: {str(name) for name in names_in(document_in(path))} for path in MEASURED}
    today = [path for path, names in kept.items() if any(n.startswith("sgemm/vectorized") for n in names)]
    _, since = REUSED["sgemm/vectorized"]
    assert today
    for path in today:
        recorded = read_json(path, "")
        assert recorded.get("packed", recorded)["date"] > since


@pytest.mark.parametrize("typed", ["hgemm/mma_permutd", "mma_permuted", "hgemm/mma_permuted:64x64"])
def test_a_former_id_that_is_misspelled_leads_to_the_one_of_today(typed):
    with pytest.raises(BadInput, match=f"no rung '{typed}', did you mean 'hgemm/mma_xor_swizzle'"):
        find(typed)


def test_no_former_name_is_one_of_today():
    rungs = every_rung()
    used = {field.name for rung in rungs for field in fields(rung.config)}
    assert set(FORMER_FIELDS.values()) <= used and not used & set(FORMER_FIELDS)
    assert not {rung.id for rung in rungs} & set(FORMER)


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.name)
def test_recorded_files_are_loaded_with_the_names_of_today(path):
    loaded = document_in(path)
    assert loaded == current(loaded)
    assert "kernels" not in loaded or read_result(path) == loaded


def test_recorded_files_do_have_former_names():
    """Else the test above would say nothing."""
    kept = [name for path in MEASURED for name in names_in(read_json(path, "")) if current(name) != name]
    assert any("mma_permuted" in name for name in kept) and any("skew=" in name for name in kept)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.jsonl")), ids=lambda path: path.name)
def test_shipped_records_are_points_of_todays_spaces(path):
    assert '"skew"' in path.read_text()
    for record in Database(path).records():
        assert json.dumps(record.point) == json.dumps(current(record.point))
        assert space_of(record.rung).config(record.point)
