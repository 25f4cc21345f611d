"""What NVIDIA's tools print is read, compared and explained; the tools are made up."""

import pytest
from cuda_tools import is_clean
from fake_tools import installer, table

from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.insight.profile.nsight import nsight_counters
from tir_schedules.model.counters import METRICS


@pytest.fixture
def install(tmp_path, monkeypatch):
    return installer(tmp_path, monkeypatch)


@pytest.mark.parametrize("change, message", [
    (lambda number, name, value: "n/a" if number == 1 else value, "ncu has no"),
    (lambda number, name, value: None if (number, name) == (1, next(iter(METRICS))) else value, "ncu has no"),
    (lambda number, name, value: None if number == 1 else value, "1 launches where 2 were expected"),
])  # fmt: skip
def test_incomplete_counters_are_refused(install, change, message):
    both = [("a", dict.fromkeys(METRICS, 1)), ("b", dict.fromkeys(METRICS, 2))]
    install("ncu", f"print({table(both)!r})")
    assert [metrics for _, metrics in both] == nsight_counters(["x"], ["a", "b"])
    with pytest.raises(CheckFailed, match="launch 0 is a, not b"):
        nsight_counters(["x"], ["b", "a"])
    install("ncu", f"print({table(both, change)!r})")
    with pytest.raises(CheckFailed, match=message):
        nsight_counters(["x"], ["a", "b"])


def test_a_tool_that_fails_or_is_missing_is_named(install, monkeypatch):
    install("ncu", "print('==ERROR== ERR_NVGPUCTRPERM: no permission\\n==PROF== bye')\nsys.exit(1)")
    with pytest.raises(CheckFailed, match="ncu failed: ==ERROR== ERR_NVGPUCTRPERM: no permission$"):
        nsight_counters(["x"], ["a"])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingTool, match="ncu is not on PATH"):
        nsight_counters(["x"], ["a"])


@pytest.mark.parametrize("summary, clean", [
    ("ERROR SUMMARY: 0 errors", True),
    ("ERROR SUMMARY: 10 errors", False),
    ("ERROR SUMMARY: 1 error", False),
    ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", True),
    ("RACECHECK SUMMARY: 20 hazards displayed (0 errors, 20 warnings)", False),
    ("RACECHECK SUMMARY: 0 hazards displayed (1 error, 0 warnings)", False),
    ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 3 warnings)", False),
    ("no summary: 0 errors", False),
    ("ERROR SUMMARY:", False),
])  # fmt: skip
def test_a_summary_is_clean_when_it_counts_nothing(summary, clean):
    assert is_clean(summary) == clean
