"""Regret of forms. Their times are made up."""

import json
from pathlib import Path
from statistics import fmean

import form_regret
import pytest

ROW = {
    "family": "sgemm",
    "form": "schedule",
    "shape": "256x256x256",
    "workload": {"m": 256, "n": 256, "k": 256},
}


def write(path, *times):
    rows = [ROW | {"name": name, "in_turns_us": time} for name, time in times]
    path.write_text(json.dumps({"rows": rows}))
    return str(path)


def test_regret_is_what_the_first_takes_more_than_the_fastest(tmp_path, capsys):
    """`shared_tile` is estimated to be the fastest of these three, and was measured to be the second."""
    file = write(
        tmp_path / "a.json", ("sgemm/naive", 8.0), ("sgemm/coalesced", 20.0), ("sgemm/shared_tile", 10.0)
    )
    assert form_regret.main([file]) == 0
    said = capsys.readouterr().out
    assert "25.0%" in said and "shapes: 1; regret 25.0% in the mean, 25.0% at most\n" in said
    assert said.endswith("; 8: 0.0% in the mean, 0.0% at most\n")


@pytest.mark.parametrize("content", ['{"rows": [{"name": "a"}]}', '{"cases": {}}', "[]", '{"rows": 5}'])
def test_a_file_of_something_else_is_said_in_one_line(tmp_path, capsys, content):
    (tmp_path / "a.json").write_text(content)
    assert form_regret.main([str(tmp_path / "a.json")]) == 2
    err = capsys.readouterr().err
    assert "a.json is not a file of cache_states.py or bench" in err and err.count("\n") == 1


@pytest.mark.parametrize("times", [(("sgemm/naive", 8.0),), (("sgemm/none", 8.0),) * 3])
def test_shapes_with_few_forms_do_not_count(tmp_path, capsys, times):
    assert form_regret.main([write(tmp_path / "a.json", *times)]) == 2
    assert "no shape has 3 forms" in capsys.readouterr().err


RESULTS = Path(form_regret.__file__).parent / "results" / "changes"
EARLY = "hgemm/tile_shapes", "hgemm/split_k", "hgemm/repacked"


@pytest.mark.parametrize("most, names", [
    (0.02, ["forms_hgemm_h200_fifth", "forms_hgemm_h200_sixth"]),  # drawn, and estimates are fitted to them
    (0.06, ["forms_hgemm_h200_seventh"]),  # those where a choice was worst
    (0.03, ["forms_hgemm_h200_tenth", "forms_hgemm_h200_eleventh"]),  # drawn, of kernels since 2026-11-30
    (0.04, ["forms_hgemm_h200_twelfth"]),  # drawn, the best form of each kind
])  # fmt: skip
def test_of_forms_that_began_early_the_first_takes_hardly_longer_than_the_fastest(most, names):
    rows = [row for name in names for row in json.loads((RESULTS / f"{name}.json").read_text())["rows"]]
    found = form_regret.regrets(form_regret.forms_of(row for row in rows if row["name"].startswith(EARLY)))
    assert len(found) > 8 and sum(regret for regret, *_ in found) / len(found) < most


def test_the_fastest_of_a_few_candidates_is_hardly_slower_than_the_fastest_of_all():
    rows = json.loads((RESULTS / "forms_hgemm_h200_twelfth.json").read_text())["rows"]
    forms = form_regret.forms_of(rows)
    assert len(forms) == 130
    mean = [fmean(regret for regret, *_ in form_regret.regrets(forms, count)) for count in (1, 2, 4, 6)]
    assert mean == sorted(mean, reverse=True) and mean[-1] < 0.006
