"""Lessons from Python: texts, and answers graded as the command grades them."""

import pytest

import tir_schedules as ts


def test_an_answer_is_graded_from_its_text_and_from_a_file(tmp_path):
    lesson = ts.lessons()["003/guard"]
    wrong = ts.learn("003/guard", lesson.start)
    assert not wrong.ok and "MISSING  right" in str(wrong) and "lesson_003_guard.cu:" in str(wrong)
    assert wrong.to_json()["passed"] is False and "not passed" in repr(wrong)
    file = tmp_path / "mine.cu"
    file.write_text(lesson.solution)
    for code in (lesson.solution, file, str(file)):
        right = ts.learn("003/guard", code)
        assert right.ok and str(right).endswith("003/guard is passed")


def test_lessons_are_listed_with_their_texts():
    every = ts.lessons()
    assert len(every) >= 36 and "003/coalesced" in every and "nothing" not in every
    assert "Neighbouring threads" in str(every) and "<table>" in every._repr_html_()
    assert every.to_json()[0] == {"lesson": "003/guard", "title": "A thread beyond the edge"}
    assert every["003/guard"].reading and every["003/guard"].told_goals()


@pytest.mark.parametrize(
    "given, message",
    [
        (("003/coalesed", "x"), "did you mean '003/coalesced'"),
        ((3, "x"), "lesson is '3'; it takes a name"),
        (("003/guard", " "), "it takes the edited text of lessons"),
        (("003/guard", None), "it takes the edited text of lessons"),
        (("003/guard", "none.cu"), "there is no none.cu"),
    ],
)
def test_what_cannot_be_graded_is_told(given, message):
    with pytest.raises(ts.BadInput, match=message):
        ts.learn(*given)
