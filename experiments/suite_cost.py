"""What the tests cost: CPU seconds of each program that they run, and of the parts of Python.

    python experiments/suite_cost.py                          # the default layer with an empty cache
    python experiments/suite_cost.py --warm                   # and once more with the cache that this left
    python experiments/suite_cost.py --out cost.json -- -n auto -m slow tests/ladders
    python experiments/suite_cost.py --table before.json after.json

What follows `--` goes to pytest (default: -n auto). Programs are counted by Linux's process accounting, which
only root may switch on; those that outlive their parents are not. Without it, programs are one sum. Times are
worth something where nothing else runs. Exit code 1 when a test fails.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import struct
import sys
import time
from argparse import Namespace
from collections import Counter, defaultdict
from pathlib import Path
from typing import Sequence

from rich.markup import escape
from scripts import exit_code

from tir_schedules import processes
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, check_folder, read_json, write_text
from tir_schedules.subjects.results import about, as_text

ROOT = Path(__file__).parents[1]
REMEDY = "name a JSON file that `suite_cost.py --out` wrote"
OTHER = "other programs"
FEW = 1.0
"""Programs of fewer CPU seconds are one line."""

RECORD = struct.Struct("<16xII8xHH12x16s")
"""acct_v3 of acct(5): the process, its parent, user and system time, and the name of the command."""


class Accounting:
    """Process accounting into a file, while it is open; OSError where it cannot be switched on."""

    def __init__(self, path: Path):
        self.path, self.libc = path, ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> "Accounting":
        self.path.touch()
        self._switch(os.fsencode(self.path))
        return self

    def __exit__(self, *failure: object) -> None:
        self._switch(None)

    def _switch(self, path: bytes | None) -> None:
        if self.libc.acct(path):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def programs(path: Path, root: int) -> list[tuple[str, int, float]]:
    """(program, runs, CPU seconds) of what process accounting wrote of the process `root` and all that it
    started, the dearest first. Empty where it was switched off before that process ended."""
    runs: Counter[str] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    rows = list(RECORD.iter_unpack(path.read_bytes()))
    parents = {process: parent for process, parent, *_ in rows}
    if root not in parents:
        return []
    for process, _, user, system, command in rows:
        known: set[int] = set()
        while process != root and process in parents and process not in known:
            known.add(process)  # of a number that was given twice a process may be its own ancestor
            process = parents[process]
        if process != root:
            continue
        name = command.rstrip(b"\0").decode(errors="replace")
        runs[name] += 1
        seconds[name] += (ticks(user) + ticks(system)) / os.sysconf("SC_CLK_TCK")
    dear = [(name, runs[name], each) for name, each in dearest_first(seconds) if each >= FEW]
    rest = sum(seconds.values()) - sum(each for _, _, each in dear)
    return [*dear, (OTHER, sum(runs.values()) - sum(count for _, count, _ in dear), rest)]


def dearest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])


def ticks(compressed: int) -> int:
    """A number of 16 bits as acct(5) has it: 13 bits, and an exponent of base 8."""
    return (compressed & 0x1FFF) << (3 * (compressed >> 13))


def measured(arguments: Sequence[str], cache: Path, folder: Path) -> Json:
    """One run of pytest, and its exit code."""
    folder.mkdir()
    variables = os.environ | {
        "TIR_SCHEDULES_CACHE": str(cache),
        "SUITE_COST": str(folder),
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "experiments"), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suite_plugin", *arguments]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    log = folder / "accounting"
    try:
        with Accounting(log):
            root, code = run(command, variables)
    except OSError:
        log.unlink(missing_ok=True)
        root, code = run(command, variables)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    all_of_it = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)  # never below 0
    parts: dict[str, float] = defaultdict(float)
    for path in folder.glob("*.json"):
        for part, used in json.loads(path.read_text()).items():
            parts[part] += used
    return {
        "exit_code": code,
        "wall_s": round(wall),
        "programs": (log.exists() and programs(log, root)) or [("all programs", 1, all_of_it)],
        "python_parts": dearest_first(parts),
    }


def run(command: Sequence[str], variables: dict[str, str]) -> tuple[int, int]:
    """The process that pytest was, and its exit code; what it prints goes to our stderr."""
    process = processes.begin(command, cwd=ROOT, env=variables, stdout=sys.stderr)
    try:
        return process.pid, process.wait()
    finally:
        processes.end(process)


def perform(options: Namespace) -> int:
    if options.table:
        return show([(path.stem, recorded(path)) for path in options.table])
    if options.output:
        check_folder(options.output)
    found: Json = {**about("experiments/suite_cost.py"), "pytest": options.arguments, "cores": os.cpu_count()}
    with processes.temporary_folder() as folder:
        found["cold"] = measured(options.arguments, folder / "cache", folder / "cold")
        if options.warm:
            found["warm"] = measured(options.arguments, folder / "cache", folder / "warm")
    if options.output:
        write_text(options.output, as_text(found))
    show([("", found)])
    if code := found["cold"]["exit_code"] or found.get("warm", found["cold"])["exit_code"]:
        raise CheckFailed(
            f"pytest ends with exit code {code}: what fails may cost more or less than it should"
        )
    return 0


def recorded(path: Path) -> Json:
    """What --out wrote; BadInput for anything else."""
    found = read_json(path, REMEDY)
    try:
        runs = [found[part] for part in ("cold", "warm") if part == "cold" or part in found]
        sound = all(
            isinstance(name, str) and seconds >= 0 for ran in runs for name, _, seconds in ran["programs"]
        )
        sound &= all(
            isinstance(name, str) and seconds >= 0 for ran in runs for name, seconds in ran["python_parts"]
        )
        sound &= all(ran["wall_s"] >= 0 for ran in runs)
    except (AttributeError, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise BadInput(f"{path} has no costs of a suite; {REMEDY}")
    return found


def show(results: Sequence[tuple[str, Json]]) -> int:
    """One table: a column for each run of each result."""
    runs = [
        (f"{name} {part}".strip(), found[part])
        for name, found in results
        for part in ("cold", "warm")
        if part in found
    ]
    heads = [head for head, _ in runs]
    for title, key, column in (("program", "programs", 2), ("part of Python", "python_parts", 1)):
        cells = [{row[0]: row[column] for row in ran[key]} for _, ran in runs]
        names = dict.fromkeys(name for each in cells for name in each)
        rows = [
            (escape(name), *(f"{each[name]:.1f}" if name in each else "-" for each in cells))
            for name in names
        ]
        print_table(
            (f"{title}, CPU s", *heads), [*rows, ("sum", *(f"{sum(each.values()):.1f}" for each in cells))]
        )
    for head, ran in runs:
        print_line(f"{head}: {ran['wall_s'] // 60} min {ran['wall_s'] % 60} s")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    add = parser.add_argument
    add("arguments", nargs="*", default=["-n", "auto"], metavar="ARGUMENT", help="after --: pytest's own")
    add("--warm", action="store_true", help="run a second time, with the cache of the first")
    add("-o", "--out", dest="output", metavar="FILE", type=Path, help="write the results as JSON")
    add("--table", metavar="FILE", type=Path, nargs="+", help="show what --out wrote, side by side")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
