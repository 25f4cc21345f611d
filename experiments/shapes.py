"""Every rung on every combination of shapes, on the CPU machine: right, refused in one line, or wrong.

    python experiments/shapes.py [NAME ...] [-o FILE.json]
        all 125 combinations of M, N and K, schedule and twin; needs TVM and nvcc
    python experiments/shapes.py hgemm --combinations pairwise --jobs 8
        25 of them
    python experiments/shapes.py --shard 1/4 -o part1.json
        a quarter of the cases, on one of four computers
    python experiments/shapes.py -o FILE.json --resume
        go on with what was interrupted
    python experiments/shapes.py --from part1.json part2.json
        print what was recorded

NAME: ladders or rungs, by default all; each in every configuration but the flawed ones. hgemm in each layout
and accumulation, reduce in each type and on lengths of its own. What a shape is to a rung's tiles is said in
shape_cases.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import time
from argparse import Namespace
from collections import Counter
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Iterator, Sequence

from scripts import exit_code
from shape_cases import Case, cases, parse_combinations, parse_shard

from tir_schedules.console import print_line, print_table, progress
from tir_schedules.errors import BadInput, MissingTool, TirSchedulesError, one_line
from tir_schedules.files import check_folder, plain_json, read_bytes
from tir_schedules.ladders.registry import FAMILIES, current, find
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.subjects.results import about, as_text, save_results
from tir_schedules.tuning.building.workers import ONE_THREAD

FORMS = ("schedule", "twin")
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
SAVED_EVERY = 60  # seconds
SCHEMA = 1

Found = list[tuple[str, str]]
"""Of a schedule and of its twin: right, refused or wrong, and why."""


def verified(case: Case, arch: str) -> tuple[Found, float]:
    """What becomes of both twins, and the seconds it took. MissingTool is raised, whatever else happens is a
    result."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.run import judge_pair, launches, outcome_of

    started, (rung,) = time.perf_counter(), find(case.rung)
    outcomes, found = [], []
    for make in (lower, load_twin):
        try:
            outcomes.append(
                outcome_of(launches(make, rung, case.workload, arch), case.workload, CpuMachine())
            )
            found.append((WRONG, one_line(outcomes[-1].faults[0])) if outcomes[-1].faults else (RIGHT, ""))
        except MissingTool:
            raise
        except TirSchedulesError as error:
            found.append((REFUSED if isinstance(error, BadInput) else WRONG, one_line(error)))
        except Exception as error:  # what a user would see as a traceback
            found.append((WRONG, one_line(f"{type(error).__name__}: {error}")))
    if [mark for mark, _ in found] == [RIGHT, RIGHT]:
        faults = judge_pair(rung, case.workload, outcomes).faults
        found = [(WRONG, one_line(faults[0])), found[1]] if faults else found
    return found, time.perf_counter() - started


def all_verified(wanted: Sequence[Case], arch: str, jobs: int) -> Iterator[tuple[Case, Found, float]]:
    """Results as they are ready, from `jobs` processes. A case that ends its process is wrong, and no other
    is lost with it."""
    os.environ.update(ONE_THREAD)
    left = list(wanted)
    while left:
        pool, done = processes(jobs), set()
        try:
            pending = {pool.submit(verified, case, arch): case for case in left}
            for future in as_completed(pending):
                result = future.result()
                done.add(pending[future])
                yield pending[future], *result
        except BrokenExecutor:
            pass
        finally:
            pool.shutdown(cancel_futures=True)
        left = [case for case in left if case not in done]
        under_way, left = left[: jobs + 1], left[jobs + 1 :]  # one of them ended its process
        for case in under_way:
            yield case, *verified_alone(case, arch)


def verified_alone(case: Case, arch: str) -> tuple[Found, float]:
    with processes(1) as pool:
        try:
            return pool.submit(verified, case, arch).result()
        except BrokenExecutor:
            return [(WRONG, "the process ended")] * 2, 0.0


def processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))


class Results:
    """What was found so far, as a file has it.

    rows: of each rung, kind of workload and form how many cases are right, refused and wrong, and the seconds
    of both forms together;
    done: the cases, by name; not_right: of those refused or wrong why.
    """

    def __init__(self, command: str, arch: str, jobs: int):
        self.head = {"shapes": SCHEMA, **about(command), "arch": arch, "jobs": jobs}
        self.rows: dict[tuple[str, str, str], Counter] = {}
        self.done: dict[str, None] = {}
        self.not_right: list[dict[str, str]] = []

    def add(self, case: Case, found: Found, seconds: float) -> None:
        self.done[str(case)] = None
        for form, (mark, reason) in zip(FORMS, found):
            self.rows.setdefault((*case.row, form), Counter()).update({mark: 1, "seconds": seconds})
            if mark != RIGHT:
                self.not_right.append({"case": str(case), "form": form, "is": mark, "reason": reason})

    def merge(self, other: dict[str, Any]) -> None:
        """Add what another file has. BadInput when both have a case."""
        both = self.done.keys() & set(other.get("done", ()))
        if both:
            raise BadInput(f"{len(both)} cases are in more than one file, among them {min(both)}")
        self.done |= dict.fromkeys(other.get("done", ()))
        for row in other["rows"]:
            self.rows.setdefault((row["rung"], row["kind"], row["form"]), Counter()).update(
                {mark: row[mark] for mark in COUNTED}
            )
        self.not_right += other["not_right"]

    def count(self, mark: str) -> int:
        return sum(row[mark] for row in self.rows.values())

    def as_json(self) -> dict[str, Any]:
        counts = {mark: self.count(mark) for mark in (RIGHT, REFUSED, WRONG)}
        rows = [
            {"rung": rung, "kind": kind, "form": form} | {mark: round(row[mark], 1) for mark in COUNTED}
            for (rung, kind, form), row in sorted(self.rows.items())
        ]
        return {
            **self.head,
            "counts": counts,
            "rows": rows,
            "not_right": self.not_right,
            "done": sorted(self.done),
        }


COUNTED = (RIGHT, REFUSED, WRONG, "seconds")


def load(path: Path) -> dict[str, Any]:
    """A file that this script wrote. BadInput for any other."""
    try:
        recorded = plain_json(read_bytes(path, "name a file that --output wrote"))
        if recorded["shapes"] == SCHEMA:
            return current(recorded)
    except (ValueError, KeyError, TypeError):
        pass
    raise BadInput(f"{path} is not a result of this script: name a file that --output wrote")


def measure(options: Namespace) -> Results:
    """Verify what the options ask for, and write it down from time to time."""
    number, total = options.shard
    wanted = cases(options.names or FAMILIES, options.combinations, options.turn)
    random.Random(0).shuffle(wanted)  # so that processes do not wait for each other's compilation of one twin
    wanted = wanted[number - 1 :: total]
    results = Results("experiments/shapes.py", options.arch, options.jobs)
    if options.resume and options.output.exists():
        earlier = load(options.output)
        if earlier["git_revision"] != results.head["git_revision"] or earlier["arch"] != options.arch:
            raise BadInput(
                f"{options.output} is of another revision or architecture: leave out --resume to begin anew"
            )
        results.merge(earlier)
    wanted = [case for case in wanted if str(case) not in results.done]
    saved = time.monotonic()
    try:
        with progress(len(wanted), "verifying") as step:
            for case, found, seconds in all_verified(wanted, options.arch, options.jobs):
                results.add(case, found, seconds)
                step(case.rung)
                if options.output and time.monotonic() - saved > SAVED_EVERY:
                    save_results(results.as_json(), options.output)
                    saved = time.monotonic()
    finally:
        if options.output:
            save_results(results.as_json(), options.output)
    return results


def show(results: Results) -> None:
    """A line for each rung and kind of workload, and for each case that is not right."""
    table = []
    for rung, kind in sorted({(rung, kind) for rung, kind, _ in results.rows}):
        both = [results.rows[rung, kind, form] for form in FORMS]
        cells = [f"{row[RIGHT]} / {row[REFUSED]} / {row[WRONG]}" for row in both]
        table.append((rung, kind, *cells, f"{both[0]['seconds']:.0f}"))
    print_table(("rung", "kind", "schedule: right / refused / wrong", "twin", "seconds"), table)
    for one in results.not_right:
        print_line(f"{one['is']}: {one['case']} {one['form']}: {one['reason']}")
    seconds = sum(row["seconds"] for row in results.rows.values()) / len(FORMS)
    counts = ", ".join(f"{results.count(mark)} {mark}" for mark in (RIGHT, REFUSED, WRONG))
    print_line(
        f"{sum(map(results.count, (RIGHT, REFUSED, WRONG))) // len(FORMS)} cases, {counts} kernels,"
        f" {seconds:.0f} seconds of processes"
    )


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"ladders ({', '.join(FAMILIES)}) or rungs (default: all)"
    )
    parser.add_argument(
        "--combinations", metavar="WHICH", type=parse_combinations, default="all",
        help="all (default), pairwise, or some such as whole-whole-odd,one-ragged-smaller for M-N-K; GEMMs",
    )  # fmt: skip
    parser.add_argument(
        "--turn", metavar="N", type=int, default=0, help="other sizes of the same kinds (default 0)"
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        default=os.cpu_count(),
        help="processes (default: one for each processor)",
    )
    parser.add_argument(
        "--shard", metavar="I/N", type=parse_shard, default="1/1", help="only the I-th of N parts"
    )
    parser.add_argument(
        "--arch", default=CPU_ARCH, help=f"GPU architecture to compile for (default {CPU_ARCH})"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write what was found as JSON")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the cases that --output does not have yet"
    )
    parser.add_argument(
        "--from",
        dest="recorded",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="show what was recorded, in several shards",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def perform(options: Namespace) -> int:
    """Do what the options ask for; returns the exit code."""
    if options.jobs < 1:
        raise BadInput(f"--jobs is {options.jobs}; it must be at least 1")
    if options.resume and not options.output:
        raise BadInput("--resume goes on with a file: name it with --output")
    if options.output:
        check_folder(options.output)
    if options.recorded:
        first, *others = map(load, options.recorded)
        results = Results("", first["arch"], first["jobs"])
        results.head = {name: first[name] for name in results.head}
        for recorded in (first, *others):
            results.merge(recorded)
        if options.output:
            save_results(results.as_json(), options.output)
    else:
        results = measure(options)
    print(as_text(results.as_json()), end="") if options.json else show(results)
    return 1 if results.count(WRONG) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
