"""Damaged files of each kind that verbs read end in no traceback, but in one line and exit code 2, or are
read; see fuzzing.py."""

import pytest
from fuzzing import KINDS, fuzz


@pytest.mark.parametrize("name", KINDS)
def test_some_damaged_files(tmp_path, name):
    check(name, 3 if name == "reports" else 40, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_hundreds_of_damaged_files(tmp_path, name):
    check(name, 30 if name == "reports" else 300, 2, tmp_path)


def check(name, count, seed, folder):
    found, faults = fuzz(name, count, seed, folder)
    assert faults == []
    assert found["refused"] and (found["read"] or count < 200), (
        "damage that is always or never seen shows nothing"
    )
