"""One fault put into a copy of the tree, and the tests run on it: what mutations.py does for each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Sequence

from tir_schedules import interrupts, processes
from tir_schedules.errors import BadInput, CheckFailed, MissingTool, nearest, shown
from tir_schedules.files import Json, read_json

LIST = Path(__file__).with_name("mutations.json")
PLUGIN = Path(__file__).with_name("mutation_plugin.py")
LAYERS: dict[str, tuple[str, ...]] = {"default": (), "slow": ("-m", "slow")}
"""Layer of the tests -> the options of pytest that choose it."""

PARTS = (
    "tir_schedules", "cuda_reference", "tests", "experiments", "pyproject.toml", "README.md", ".github",
)  # fmt: skip
"""What is copied of a tree that git does not know, as far as it is there."""

LEFT_OUT = ("tests/experiments/test_mutations.py",)
"""Tests that the text to be replaced is there: in a copy with the fault it is not."""

ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")

FOUND, TIMEOUT, SURVIVED, NOT_APPLIED = "found", "timeout", "survived", "does not apply"
PASSED, NO_TESTS = 0, 5
"""Exit codes of pytest."""

NO_CONFTEST = "ImportError while loading conftest"


@dataclass(frozen=True)
class Mutation:
    """A fault: in `file`, `old`, which is there once, becomes `new`. what: the fault in words. near: tests,
    folders or files, that are run first."""

    id: str
    file: str
    what: str
    near: tuple[str, ...]
    old: str
    new: str

    def applied(self, tree: Path) -> str:
        """The file's text with the fault. ValueError, with the reason, where it does not apply."""
        path = tree / self.file
        if not path.resolve().is_relative_to(tree.resolve()) or path.is_symlink():
            raise ValueError(f"{self.file} is a link, or lies behind one")
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{self.file} cannot be read ({error.strerror})") from None
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.file} has the text to replace {count} times, not once")
        return text.replace(self.old, self.new)


def load_mutations(path: Path) -> list[Mutation]:
    """The mutations in a JSON file. BadInput for a file that holds something else."""
    remedy = f"name a list of mutations such as {LIST.name}"
    rows = read_json(path, remedy)
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path} is not a list of mutations; {remedy}")
    names = {field.name for field in fields(Mutation)}
    for place, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != names:
            raise BadInput(f"{path}: [{place}] should have {', '.join(sorted(names))}, and nothing else")
        near, texts = row["near"], [value for name, value in row.items() if name != "near"]
        if not isinstance(near, list) or not all(isinstance(text, str) for text in (*near, *texts)):
            raise BadInput(f"{path}: [{place}] should have texts alone, and a list of them as near")
        if not ID.fullmatch(row["id"]):
            raise BadInput(
                f"{path}: [{place}] has the id {shown(row['id'])}; it takes letters, digits, - and _"
            )
        outside = Path(row["file"]).is_absolute() or ".." in row["file"]
        if outside or not row["old"] or row["old"] == row["new"]:
            raise BadInput(f"{path}: [{place}] changes nothing, or a file outside the tree")
    found = [Mutation(**row | {"near": tuple(row["near"])}) for row in rows]
    twice = {one.id for one in found if sum(one.id == other.id for other in found) > 1}
    if twice:
        raise BadInput(f"{path} has several mutations with the id {min(twice)!r}")
    return found


def chosen(mutations: Sequence[Mutation], names: Sequence[str] | None) -> list[Mutation]:
    """Those with these ids, all where none are named. BadInput for an id that there is not."""
    known = {one.id: one for one in mutations}
    for name in names or ():
        if name not in known:
            raise BadInput(f"there is no mutation {name!r}{nearest(name, known)}")
    return [known[name] for name in dict.fromkeys(names or known)]


@dataclass(frozen=True)
class Ran:
    """What became of the tests. outcome: FOUND, TIMEOUT, SURVIVED. test: the first that failed, or what else
    shows the fault. seconds: that they took. scope: "near" or "layer", the tests that ran last."""

    outcome: str
    seconds: float
    test: str = ""
    scope: str = "layer"

    def as_json(self) -> Json:
        return {**vars(self), "seconds": round(self.seconds, 1)}


@dataclass(frozen=True)
class Runner:
    """Runs tests on copies of a tree.

    work: a folder for the copies. cache: TIR_SCHEDULES_CACHE of all runs. workers: of pytest-xdist, 0 for
    none. timeout: seconds of one run of pytest. deselected: tests to leave out. near_only: the whole layer is
    not run.
    """

    tree: Path
    work: Path
    cache: Path
    workers: int = 0
    timeout: float | None = None
    deselected: tuple[str, ...] = ()
    near_only: bool = False

    def clean(self, layer: str) -> Ran:
        """A layer on the tree as it is."""
        folder = self.work / f"clean-{layer}"
        copy_tree(self.tree, folder / "tree")
        try:
            return self.tests(folder, layer, ())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def mutated(self, mutation: Mutation, layers: Sequence[str]) -> dict[str, Ran]:
        """The layers on the tree with a fault, up to the first that finds it. ValueError where the fault does
        not apply."""
        folder, found = self.work / "faults" / mutation.id, {}
        text = mutation.applied(self.tree)
        copy_tree(self.tree, folder / "tree")
        if not (folder / "tree" / mutation.file).exists():
            raise BadInput(f"{mutation.file} is not copied: git does not track it")
        try:
            (folder / "tree" / mutation.file).write_text(text, encoding="utf-8")
            for layer in layers:
                found[layer] = self.layer(folder, mutation, layer)
                if found[layer].outcome != SURVIVED:
                    break
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return found

    def layer(self, folder: Path, mutation: Mutation, layer: str) -> Ran:
        """The tests near the fault; when none fails, all of the layer."""
        near = [path for path in mutation.near if (folder / "tree" / path).exists()]
        ran = self.tests(folder, layer, near) if near else Ran(SURVIVED, 0.0)
        if ran.outcome != SURVIVED or self.near_only:
            return Ran(ran.outcome, ran.seconds, ran.test, "near")
        every = self.tests(folder, layer, ())
        return Ran(every.outcome, ran.seconds + every.seconds, every.test)

    def tests(self, folder: Path, layer: str, paths: Sequence[str]) -> Ran:
        """One run of pytest on a copy, in folder/tree. CheckFailed where pytest itself fails."""
        log, report = folder / "log", folder / "report"
        started = time.monotonic()
        with open(log, "wb") as output:
            process = processes.begin(
                self.command(folder, layer, paths), cwd=folder / "tree", env=self.environment(folder, report),
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                processes.end(process)
        interrupts.check()
        seconds = time.monotonic() - started
        failed = report.read_text(encoding="utf-8") if report.exists() else ""
        if failed:
            return Ran(FOUND, seconds, failed)
        if code is None:
            return Ran(TIMEOUT, seconds, f"not done after {self.timeout:g} s")
        if code == PASSED or code == NO_TESTS and paths:
            return Ran(SURVIVED, seconds)
        said = log.read_text(encoding="utf-8", errors="replace")
        if code < 0:
            return Ran(FOUND, seconds, f"pytest ended by signal {-code}")
        if NO_CONFTEST in said:
            return Ran(FOUND, seconds, "conftest.py cannot be imported")
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it says nothing")
        raise CheckFailed(f"pytest failed with exit code {code}, but no test did: {last}")

    def command(self, folder: Path, layer: str, paths: Sequence[str]) -> list[Any]:
        plugins = ("-p", "no:cacheprovider", "-p", PLUGIN.stem)
        workers = ("-n", str(self.workers)) if self.workers else ()
        deselected = [f"--deselect={test}" for test in self.deselected]
        options = (*workers, *LAYERS[layer], *deselected, f"--basetemp={folder / 'tmp'}")
        return [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *options, *paths]

    def environment(self, folder: Path, report: Path) -> dict[str, str]:
        """The copy comes first on PYTHONPATH, then the plugin, alone in its folder."""
        plugin = self.work / "plugin"
        plugin.mkdir(exist_ok=True)
        if not (plugin / PLUGIN.name).exists():
            shutil.copy(PLUGIN, plugin)
        paths = [str(folder / "tree"), str(plugin), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return own | {
            "PYTHONPATH": os.pathsep.join(paths),
            "TIR_SCHEDULES_CACHE": str(self.cache),
            "MUTATION_TREE": str(folder / "tree"),
            "MUTATION_REPORT": str(report),
        }


def check_tree(tree: Path, workers: int) -> None:
    """BadInput for a folder that is not a checkout; MissingTool for workers without pytest-xdist."""
    from importlib.util import find_spec

    if not (tree / "pyproject.toml").is_file() or not (tree / "tests").is_dir():
        raise BadInput(f"{tree} is not a checkout: there is no pyproject.toml, or no tests")
    if workers and not find_spec("xdist"):
        raise MissingTool("--workers takes pytest-xdist: pip install 'tir_schedules[test]'")


def copy_tree(tree: Path, target: Path) -> None:
    """Copy what git tracks, as it is in the working tree; PARTS of a tree without git."""
    interrupts.check()
    target.mkdir(parents=True)
    names = tracked(tree)
    if names is None:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".hypothesis", ".pytest_cache")
        for part in PARTS:
            if (tree / part).is_dir():
                shutil.copytree(tree / part, target / part, symlinks=True, ignore=ignored)
            elif (tree / part).exists():
                shutil.copy2(tree / part, target / part)
    for name in names or ():
        if os.path.lexists(tree / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, target / name, follow_symlinks=False)
    for name in LEFT_OUT:
        (target / name).unlink(missing_ok=True)


def tracked(tree: Path) -> list[str] | None:
    """Files of the tree that git tracks; None where there is no git, or the tree is not a repository."""
    listed = git(tree, "ls-files", "-z") if (tree / ".git").exists() else ""
    return [name for name in listed.split("\0") if name] or None


def revision_of(tree: Path) -> str:
    """The commit of a tree, with "+changes" when files differ from it; empty without git."""
    if not (tree / ".git").exists():
        return ""
    changed = git(tree, "status", "--porcelain", "--untracked-files=no")
    return git(tree, "rev-parse", "HEAD").strip() + ("+changes" if changed else "")


def git(tree: Path, *arguments: str) -> str:
    if not shutil.which("git"):
        return ""
    done = processes.run(["git", *arguments], cwd=tree)
    return done.stdout if done.returncode == 0 else ""
