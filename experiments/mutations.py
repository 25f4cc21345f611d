"""Faults put into the project's own code, one at a time: does a test find each of them?

    python experiments/mutations.py --workers 2                  # all, hours; each on a copy of the tree
    python experiments/mutations.py --only verify-not-finite race-last-reader
    python experiments/mutations.py --layer slow --jobs 4 --workers 4 --out slow.json
    python experiments/mutations.py --tree ../other --out before.json     # the faults in another checkout
    python experiments/mutations.py --table before.json slow.json

mutations.json has the faults, each with the tests nearest to it. These run first, up to the first that fails;
where none does, the whole layer runs. Tests that hang find a fault, too: --timeout has to be well above what
the tests take without one. Exit code 1 when a fault survives, 2 when one does not apply to the tree.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Sequence

from mutation_runs import (
    FOUND,
    LAYERS,
    LIST,
    NOT_APPLIED,
    SURVIVED,
    TIMEOUT,
    Mutation,
    Runner,
    check_tree,
    chosen,
    load_mutations,
    revision_of,
)
from scripts import exit_code

from tir_schedules import processes
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, check_folder, read_json, write_text
from tir_schedules.subjects.results import about, as_text

ROOT = Path(__file__).parents[1]
REMEDY = "name a JSON file that `mutations.py --out` wrote"


def perform(options: Namespace) -> int:
    if options.table:
        return show([recorded(path) for path in options.table])
    check(options)
    mutations = chosen(load_mutations(options.list), options.only)
    reasons = {one.id: reason for one in mutations if (reason := obstacle(one, options.tree))}
    if len(reasons) == len(mutations):
        raise BadInput(f"nothing to do: {'; '.join(f'{name}: {why}' for name, why in reasons.items())}")
    layers = tuple(LAYERS) if options.layer == "both" else (options.layer,)
    found: Json = {
        **about("experiments/mutations.py"),
        "git_revision": revision_of(options.tree),
        "layer": options.layer,
        "clean": {},
        "rows": [row_of(one, {}, reasons.get(one.id, "")) for one in mutations],
    }
    with ExitStack() as stack:
        work = stack.enter_context(processes.temporary_folder())
        runner = Runner(
            options.tree, work, options.cache or work / "cache", options.workers, options.timeout,
            tuple(options.deselect), options.near_only,
        )  # fmt: skip
        if options.check_clean:
            found["clean"] = clean(runner, layers)
        try:
            run_all(runner, [one for one in mutations if one.id not in reasons], layers, options, found)
        finally:
            save(found, options.output)
    summary([found])
    if reasons:
        raise BadInput(f"some do not apply to {options.tree}: {'; '.join(map(': '.join, reasons.items()))}")
    return 1 if any(survived(row) for row in found["rows"]) else 0


def check(options: Namespace) -> None:
    """BadInput for options that cannot be, before anything is copied."""
    for name, least in (("jobs", 1), ("workers", 0)):
        if getattr(options, name) < least:
            raise BadInput(f"--{name} is {getattr(options, name)}; it must be at least {least}")
    if not options.timeout > 0:
        raise BadInput(f"--timeout is {options.timeout:g}; it must be more than 0 seconds")
    options.tree = options.tree.resolve()
    options.cache = options.cache and options.cache.resolve()
    check_tree(options.tree, options.workers)
    if options.output:
        check_folder(options.output)


def obstacle(mutation: Mutation, tree: Path) -> str:
    """Why a mutation does not apply to a tree; empty when it does."""
    try:
        mutation.applied(tree)
    except ValueError as error:
        return str(error)
    return ""


def clean(runner: Runner, layers: Sequence[str]) -> Json:
    """Each layer on the tree without a fault. CheckFailed when a test fails."""
    found = {}
    for layer in layers:
        ran = runner.clean(layer)
        if ran.outcome != SURVIVED:
            raise CheckFailed(f"without any fault the {layer} layer fails: {ran.test}")
        print_line(f"without any fault the {layer} layer passes in {ran.seconds:.0f} s")
        found[layer] = ran.as_json()
    return found


def run_all(
    runner: Runner, mutations: Sequence[Mutation], layers: Sequence[str], options: Namespace, found: Json
) -> None:
    """Run every mutation, several at a time; a line for each, and its results into a row of `found`."""
    rows = {row["id"]: row for row in found["rows"]}
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(runner.mutated, one, layers): one for one in mutations}
        try:
            for done in as_completed(running):
                one = running[done]
                results = {layer: ran.as_json() for layer, ran in done.result().items()}
                rows[one.id] |= row_of(one, results)
                for layer, ran in results.items():
                    told = f"{ran['outcome']} {ran['test']}".strip()
                    print_line(f"{one.id}: {layer}, {ran['scope']}: {told} ({ran['seconds']:.0f} s)")
                sys.stdout.flush()
                save(found, options.output)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end_programs()
            raise


def row_of(mutation: Mutation, results: Json, reason: str = "") -> Json:
    """A mutation as JSON. reason: why it does not apply."""
    outcome = {"reason": reason} if reason else {}
    return {
        "id": mutation.id, "file": mutation.file, "what": mutation.what,
        "applies": not reason, **outcome, "results": results,
    }  # fmt: skip


def save(found: Json, path: Path | None) -> None:
    if path:
        write_text(path, as_text(found))


def survived(row: Json) -> bool:
    """Whether tests ran, and none found the fault."""
    return bool(row["results"]) and all(ran["outcome"] == SURVIVED for ran in row["results"].values())


def recorded(path: Path) -> Json:
    """What --out wrote; BadInput for anything else."""
    found = read_json(path, REMEDY)
    try:
        if found["layer"] not in (*LAYERS, "both"):
            raise TypeError
        for row in found["rows"]:
            if not row["results"].keys() <= LAYERS.keys():
                raise TypeError
            told = [row["id"], row["file"], row["what"], found["git_revision"]]
            told += [text for ran in row["results"].values() for text in (ran["outcome"], ran["test"])]
            if not all(isinstance(text, str) for text in told) or not isinstance(row["applies"], bool):
                raise TypeError
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{path} has no results of mutations; {REMEDY}") from None
    return found


def show(results: Sequence[Json]) -> int:
    """One table of several files: a column for each layer, of each revision where there are several."""
    columns, rows = arranged(results)
    lines = [
        (row["what"], row["file"].removeprefix("tir_schedules/"), *(cell(cells.get(key)) for key in columns))
        for row, cells in rows.values()
    ]
    heads = [f"{layer} {short(revision)}".strip() for revision, layer in columns]
    if len({revision for revision, _ in columns}) == 1:
        heads = [layer for _, layer in columns]
    print_table(
        ("fault", "file", *heads), [tuple(map(escaped, line)) for line in lines], prose={"fault": 24}, keys=1
    )
    summary(results)
    return 0


def arranged(
    results: Sequence[Json],
) -> tuple[list[tuple[str, str]], dict[str, tuple[Json, dict[Any, Json]]]]:
    """(revision, layer) of each column; and id -> row and the results in its columns. Later files count."""
    rows: dict[str, tuple[Json, dict[Any, Json]]] = {}
    columns: dict[tuple[str, str], None] = {}
    for found in results:
        revision = found["git_revision"]
        for row in found["rows"]:
            _, cells = rows.setdefault(row["id"], (row, {}))
            asked = tuple(LAYERS) if found.get("layer") == "both" else (found.get("layer"),)
            given = (
                row["results"]
                if row["applies"]
                else dict.fromkeys(asked, {"outcome": NOT_APPLIED, "test": ""})
            )
            columns |= dict.fromkeys((revision, layer) for layer in given)
            cells |= {(revision, layer): ran for layer, ran in given.items()}
    order = list(LAYERS)
    known = list(dict.fromkeys(revision for revision, _ in columns))
    return sorted(columns, key=lambda key: (known.index(key[0]), order.index(key[1]))), rows


def cell(ran: Json | None) -> str:
    """The test that found a fault, or what else became of it; "-" where the layer did not run."""
    if ran is None:
        return "-"
    return ran["test"].removeprefix("tests/") if ran["outcome"] == FOUND else ran["outcome"]


def short(revision: str) -> str:
    commit, plus, changes = revision.partition("+")
    return commit[:12] + plus + changes


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def summary(results: Sequence[Json]) -> None:
    """A line for each layer: how many faults it found."""
    columns, rows = arranged(results)
    for key in columns:
        ran = [cells[key]["outcome"] for _, cells in rows.values() if key in cells]
        found, lost = (sum(one in kinds for one in ran) for kinds in ((FOUND, TIMEOUT), (NOT_APPLIED,)))
        besides = f", {lost} do not apply" if lost else ""
        revision, layer = key
        of = f" of {short(revision)}" if revision else ""
        print_line(f"{layer} layer{of}: {found} of {len(ran) - lost} faults found{besides}")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    add = parser.add_argument
    layers = "the tests to run (default: default); both: the slow ones where the others find nothing"
    add("--layer", choices=(*LAYERS, "both"), default="default", help=layers)
    add("--only", metavar="ID", nargs="+", help="these mutations alone")
    add("--near-only", action="store_true", help="only the tests nearest to each fault")
    add("--tree", metavar="DIR", type=Path, default=ROOT, help="another checkout than this one")
    add("--list", metavar="FILE", type=Path, default=LIST, help=f"default {LIST.name}")
    add("--jobs", metavar="N", type=int, default=1, help="mutations at a time (default 1)")
    add("--workers", metavar="K", type=int, default=0, help="workers of pytest-xdist for each (default none)")
    hangs = "seconds after which a run of pytest hangs (default 7200)"
    add("--timeout", metavar="S", type=float, default=7200.0, help=hangs)
    add("--cache", metavar="DIR", type=Path, help="TIR_SCHEDULES_CACHE of all runs (default a temporary one)")
    add("--deselect", metavar="TEST", action="append", default=[], help="leave out a test; may be repeated")
    add("--check-clean", action="store_true", help="first run the layer without a fault; stop if it fails")
    add("-o", "--out", dest="output", metavar="FILE", type=Path, help="write the results as JSON")
    add("--table", metavar="FILE", type=Path, nargs="+", help="show what --out wrote, of several runs")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
