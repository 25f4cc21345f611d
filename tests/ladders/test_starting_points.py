"""`new` writes files that run and are verified as they are, on ragged shapes, too."""

import pytest

from tir_schedules.ladders import known
from tir_schedules.ladders.own import RUNGS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    known.LOADED.clear()
    RUNGS.clear()


@pytest.mark.parametrize(
    "ladder, options, kinds",
    [
        ("sgemm", ["--mnk", "3,130,65"], 1),
        ("hgemm", ["--mnk", "3,130,65"], 6),
        ("reduce", ["--n", "7001"], 2),
    ],
)
def test_a_rung_and_its_twin_are_right(ladder, options, kinds, tool, folder):
    code, out, _ = tool("new", "rung", "mine", "--ladder", ladder)
    assert code == 0 and "wrote mine.py, mine.cu\nnext: tir-schedules run ./mine.py" in out
    code, out, _ = tool("run", "./mine.py", *options)
    assert code == 0 and f"{kinds} of {kinds} verified" in out and out.count(" pass      pass ") == kinds
    twin = folder / "mine.cu"
    twin.write_text(twin.read_text().replace("+ threadIdx.x", "+ threadIdx.x + 1").replace("[i]", "[i / 2]"))
    assert tool("run", "./mine.py", *options)[0] == 1


def test_a_ladder_is_right(tool):
    assert "next: tir-schedules run ./scale" in tool("new", "ladder", "scale")[1]
    code, out, _ = tool("run", "./scale", "--n", "1001")
    assert code == 0 and "scale/naive" in out and "1 of 1 verified" in out


@pytest.mark.parametrize(
    "words, told",
    [
        (["rung", "a-b"], "a rung's name is letters, digits and _"),
        (["ladder", "../up"], "a ladder's name is letters, digits and _"),
        (["rung", "naive"], "there is a rung sgemm/naive already"),
        (["ladder", "reduce"], "there is a ladder 'reduce' already"),
        (["rung", "there"], "there.cu is there already"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(words, told, tool, folder):
    (folder / "there.cu").write_text("mine")
    code, out, err = tool("new", *words)
    assert code == 2 and told in err and len(err.splitlines()) == 1 and not out
    assert [path.name for path in folder.iterdir()] == ["there.cu"]
