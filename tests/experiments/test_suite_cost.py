"""What the tests cost: what Linux wrote is read as acct(5) says, and shown side by side."""

import json
from contextlib import nullcontext

import pytest
import suite_cost
from suite_cost import OTHER, RECORD, main, programs, ticks


@pytest.mark.parametrize("compressed, value", [(0, 0), (8191, 8191), (0x2000 | 1, 8), (0x4000 | 3, 192)])
def test_times_are_in_powers_of_8(compressed, value):
    assert ticks(compressed) == value


def test_programs_are_summed_and_the_cheap_ones_are_one_line(tmp_path):
    rows = [
        (13, 12, 150, 50, b"cicc"),
        (14, 12, 100, 0, b"ptxas"),
        (15, 12, 0x2000 | 25, 0, b"cicc"),
        (16, 12, 1, 1, b"uname"),
        (12, 11, 2, 0, b"nvcc"),
        (11, 10, 100, 0, b"pytest"),
        (10, 1, 100, 0, b"bash"),
        (17, 10, 500, 0, b"cicc"),  # another's
        (18, 19, 500, 0, b"cicc"),  # of numbers that were given twice
        (19, 18, 500, 0, b"cicc"),
    ]
    (tmp_path / "log").write_bytes(b"".join(RECORD.pack(*row) for row in rows))
    assert RECORD.size == 64
    found = [(name, runs, round(seconds, 2)) for name, runs, seconds in programs(tmp_path / "log", 11)]
    assert found == [("cicc", 2, 4.0), ("ptxas", 1, 1.0), ("pytest", 1, 1.0), (OTHER, 2, 0.04)]


def test_results_side_by_side(tmp_path, capsys):
    for name, cicc in (("before", 900.0), ("after", 90.0)):
        part = {"wall_s": 61, "programs": [["cicc", 3, cicc], [OTHER, 1, 1]], "python_parts": [["TVM", 5.0]]}
        (tmp_path / f"{name}.json").write_text(json.dumps({"cold": part}))
    assert main(["--table", str(tmp_path / "before.json"), str(tmp_path / "after.json")]) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if line.startswith(("cicc", "sum"))] == [
        ["cicc", "900.0", "90.0"],
        ["sum", "901.0", "91.0"],
        ["sum", "5.0", "5.0"],
    ]
    assert "before cold: 1 min 1 s" in out


def test_accounting_that_another_process_switched_off_is_worth_nothing(tmp_path):
    (tmp_path / "log").write_bytes(RECORD.pack(13, 11, 100, 0, b"cicc"))
    assert programs(tmp_path / "log", 11) == []


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"cold": {"wall_s": 1, "programs": [], "python_parts": []}, "warm": null}',
        '{"cold": {"programs": [["cicc"]]}}',
        '{"cold": 3}',
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, capsys, text):
    (tmp_path / "other.json").write_text(text)
    assert main(["--table", str(tmp_path / "other.json")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "has no costs of a suite" in line


def test_time_goes_to_the_innermost_part_that_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("SUITE_COST", str(tmp_path))
    import suite_plugin

    def frame(*places):
        made = None
        for file, name in reversed(places):
            made = Frame(file, name, made)
        return made

    parse = ("/x/tir_schedules/machines/cpu/parser.py", "parse")
    run = ("/x/tir_schedules/machines/cpu/machine.py", "run")
    assert suite_plugin.part_of(frame(("/usr/re.py", "sub"), parse, run)) == "PTX parsed"
    assert (
        suite_plugin.part_of(frame(("/x/tir_schedules/machines/cpu/invocation.py", "start"), run))
        == "kernels executed"
    )
    assert suite_plugin.part_of(frame(run)) == "PTX lowered"
    assert suite_plugin.part_of(frame(("/x/pytest.py", "main"))) == suite_plugin.OTHER
    assert suite_plugin.is_waiting(frame(("/usr/threading.py", "wait")))
    assert not suite_plugin.is_waiting(frame(("/x/tir_schedules/machines/cpu/machine.py", "read")))


class Frame:
    def __init__(self, file, name, back):
        self.f_code = type("Code", (), {"co_filename": file, "co_name": name})
        self.f_back = back


def test_what_was_measured_is_kept_when_a_test_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(suite_cost, "run", lambda command, variables: (10, 1))
    monkeypatch.setattr(suite_cost, "Accounting", nullcontext)  # there is one for the whole computer
    out = tmp_path / "cost.json"
    assert main(["--warm", "--out", str(out), "--", "tests/some"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pytest ends with exit code 1")
    assert suite_cost.recorded(out)["pytest"] == ["tests/some"]
