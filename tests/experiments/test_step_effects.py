"""What docstrings of rungs say of their steps is what was recorded."""

import shutil

import pytest
import step_effects
from step_effects import LADDERS, effect, effects, main, recordings, rewritten

from tir_schedules.ladders.registry import find

SHAPE = "8x8x8"


def recording(*rates):
    rows = [
        {"name": f"sgemm/{name}", "form": "schedule", "shape": SHAPE, "rate": rate, "unit": "TFLOPS"}
        for name, rate in rates
    ]
    return {"device": {"name": "NVIDIA H200"}, "rows": rows}


def test_docstrings_say_what_was_recorded():
    assert main(["--check"]) == 0


def test_a_docstring_that_says_another_rate_is_found_and_rewritten(tmp_path, capsys):
    for family in ("sgemm", "hgemm", "reduce"):
        shutil.copytree(LADDERS / family, tmp_path / family)
    path = tmp_path / "sgemm" / "coalesced.py"
    right = path.read_text()
    wrong = right.replace(" times the ", " or so times the ", 1)
    assert wrong != right
    for broken in (wrong, step_effects.LINE.sub("", right)):
        path.write_text(broken)
        assert main(["--check"], tmp_path) == 1 and path.read_text() == broken
        assert f"{path} does not say what was recorded" in capsys.readouterr().err
        assert main([], tmp_path) == 0 and path.read_text() == right


def test_words_that_it_does_not_know_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["nope"], tmp_path)
    assert "unrecognized arguments: nope" in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_both_rates_are_of_one_recording():
    apart = [recording(("coalesced", 9.0)), recording(("naive", 1.0))]
    assert effect(apart, "sgemm/naive", "sgemm/coalesced", SHAPE) == ""
    later = [
        *apart,
        recording(("naive", 2.0), ("coalesced", 3.0)),
        recording(("naive", 1.0), ("coalesced", 9.0)),
    ]
    assert (
        effect(later, "sgemm/naive", "sgemm/coalesced", SHAPE)
        == "Measured on an H200 at 8: 3.00 TFLOPS, 1.50 times the 2.00 of `naive`."
    )
    assert effect(later, "", "sgemm/naive", SHAPE) == "Measured on an H200 at 8: 1.00 TFLOPS."


def test_what_is_not_recorded_is_not_said():
    text = '"""One.\n\nMeasured on an H200 at 8: 1.00 TFLOPS.\n"""\n'
    assert (
        rewritten(text, "") == '"""One.\n"""\n'
        and rewritten('"""One.\n"""\n', "M.") == '"""One.\n\nM.\n"""\n'
    )


def test_configurations_that_stand_for_a_step_are_there():
    for name, (before, step, _) in step_effects.OTHERS.items():
        assert find(before) and find(step)[0].base_id == name
        assert effects(recordings(step_effects.RESULTS))[name]
