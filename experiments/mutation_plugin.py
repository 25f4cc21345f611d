"""What pytest does for mutations.py: write down the first test that fails, and end where another copy of
tir_schedules than the one with the fault would be tested."""

import importlib.util
import os
import sys
from pathlib import Path

FOREIGN = 97
"""Exit code where tir_schedules would come from elsewhere."""

TREE, REPORT = (Path(os.environ[name]) for name in ("MUTATION_TREE", "MUTATION_REPORT"))
WORKER = "PYTEST_XDIST_WORKER" in os.environ

found = importlib.util.find_spec("tir_schedules")
if found is None or found.origin is None or Path(found.origin).resolve().parents[1] != TREE.resolve():
    print(f"tir_schedules would be imported from {found and found.origin}, not from {TREE}", file=sys.stderr)
    raise SystemExit(FOREIGN)


def pytest_runtest_logreport(report):
    note(report)


def pytest_collectreport(report):
    note(report)


def note(report):
    if report.failed and not WORKER and not REPORT.exists():
        REPORT.write_text(report.nodeid, encoding="utf-8")
