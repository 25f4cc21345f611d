"""NVIDIA's tools beside Nsight Compute's counters: compute-sanitizer, and which metrics ncu knows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Sequence

from tir_schedules import processes
from tir_schedules.insight.profile.nsight import last_line, tool

SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")


def known_metrics(pattern: str) -> list[str]:
    """Sums of what ncu can count on this GPU, of which a part of the name matches a regular expression."""
    return [f"{name}.sum" for name in known_names(pattern)]


def known_names(pattern: str) -> list[str]:
    """Names of ncu's metrics on this GPU in which a regular expression finds something."""
    names = re.findall(r"^([a-z][a-z0-9_]+__[a-z0-9_]+)\s", query_metrics(), re.M)
    return [name for name in sorted(set(names)) if re.search(pattern, name)]


@lru_cache
def query_metrics() -> str:
    """All metrics as ncu lists them."""
    return processes.run([tool("ncu"), "--query-metrics"]).stdout


def sanitizer_summary(name: str, command: Sequence[str], kernels: str) -> str:
    """The closing line of a tool of compute-sanitizer. kernels: part of the names of the kernels it checks.
    MissingTool without compute-sanitizer."""
    sanitizer = [tool("compute-sanitizer"), "--tool", name, "--kernel-regex", f"kernel_substring={kernels}"]
    done = processes.run([*sanitizer, *command])
    lines = [line.strip("= ") for line in done.stdout.splitlines() if "SUMMARY" in line]
    return lines[-1] if lines else f"no summary: {last_line(done.stdout + done.stderr, 'error')}"


def is_clean(summary: str) -> bool:
    """Whether a summary counts no error, hazard or warning."""
    counts = re.findall(r"(\d+) (?:errors?|hazards?|warnings?)\b", summary)
    return "SUMMARY" in summary and bool(counts) and not any(map(int, counts))
