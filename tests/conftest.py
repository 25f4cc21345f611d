"""Options of the tests, and what is skipped where there is no GPU."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from building_once import built_by_one_worker

from tir_schedules.cli import main as cli
from tir_schedules.compiler.code import KEEP
from tir_schedules.errors import MissingTool
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.gpu import GpuMachine

# What TVM lowers is kept, as in a command; tests that replace code of ours make rungs of others of it.
os.environ[KEEP] = "1"

# Workers of pytest-xdist read these before they import NumPy. Threads of BLAS that wait for each other would
# keep cores busy that other workers need.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A shell has what it starts in the background ignore Ctrl-C, and nohup SIGHUP. What the tests start must not
# inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the recorded facts from what the code does now"
    )


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = why_no_gpu() if marked else None
    for item in marked if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where whole folders run, a worker has whole files: what their fixtures make is made once."""
    folders = all(Path(argument).is_dir() for argument in config.args)
    if not folders or config.option.dist != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    class WholeFiles(LoadFileScheduling):
        def _reschedule(self, node):
            """Not for a worker in the place of one that has died, before it has collected its tests."""
            if node in self.registered_collections:
                super()._reschedule(node)

    return WholeFiles(config, log)


MANY = 1000
"""Tests among which there are some that execute kernels in processes of their own."""


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory, request):
    """Workers build what is kept in the cache once, and the CPU machine before they start processes that each
    would build it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with built_by_one_worker(tmp_path_factory.getbasetemp().parent / "locks"):
        if len(request.session.items) > MANY:
            the_library()
        yield


def pytest_terminal_summary(terminalreporter, config):
    """With --durations: seconds and tests by folder, below pytest's list of the slowest tests."""
    if config.option.durations is None:
        return
    reports = [
        report
        for some in terminalreporter.stats.values()
        for report in some
        if isinstance(report, pytest.TestReport)
    ]
    seconds, tests = Counter(), Counter()
    for report in reports:
        folder = report.nodeid.split("::")[0].rpartition("/")[0]
        seconds[folder] += report.duration
        tests[folder] += report.when == "call"
    terminalreporter.section("seconds by folder")
    for folder, sum_of in seconds.most_common():
        terminalreporter.write_line(f"{sum_of:8.1f} s {tests[folder]:5d} tests  {folder}")
    terminalreporter.write_line(f"{seconds.total():8.1f} s {tests.total():5d} tests")


def why_no_gpu() -> str | None:
    """What tests marked `gpu` lack here, or None."""
    try:
        GpuMachine()
    except MissingTool as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; see browser.py."""
    from browser import open_browser

    with open_browser() as opened:
        yield opened


@pytest.fixture
def check_page(browser, tmp_path):
    """check_page(page): nothing is wrong with a page, given as its HTML or its Path, on a phone and a
    desktop, light and dark."""
    from browser import faults_of

    def check(page: str | Path):
        path = page if isinstance(page, Path) else tmp_path / "page.html"
        if path is not page:
            path.write_text(page, encoding="utf-8")
        assert faults_of(browser, path) == []

    return check


@pytest.fixture
def tool(capsys):
    """Calls the command in this process; returns exit code, standard output, standard error."""

    def call(*arguments):
        code = cli.main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def one_line_each(entries: dict) -> str:
    """As JSON, a line for each key: a diff then shows the keys whose values changed."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(entries.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


@pytest.fixture
def golden(request):
    """golden(path, key, facts): facts equal those recorded under the key of a JSON file; with --update-golden
    they are recorded."""

    def check(path: Path, key: str, facts):
        facts = json.loads(json.dumps(facts))
        recorded = json.loads(path.read_text()) if path.exists() else {}
        if request.config.getoption("--update-golden"):
            path.write_text(one_line_each(recorded | {key: facts}))
        else:
            assert facts == recorded.get(key), (
                "run pytest --update-golden (without -n) if the change is wanted"
            )

    return check
