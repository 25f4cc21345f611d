"""What NVIDIA's compute-sanitizer finds in the kernels of tests/machines/corpus, beside what is to be found.

    python experiments/sanitizers.py pack FILE.zip --arch sm_90     # needs nvcc, no GPU
    python experiments/sanitizers.py run FILE.zip RESULT.json       # needs a GPU, CuPy and compute-sanitizer
    python experiments/sanitizers.py table RESULT.json              # needs neither

A pack has each kernel, sound and broken, with its arguments. `run` launches every one alone and under four
tools, each in a process of its own that is ended after --seconds, as a broken one may wait for ever. It goes
on with what RESULT.json lacks.

--jobs launches share the GPU, and one that waits for ever takes turns from the others. So every kernel is
first launched without a tool, and those that hang come to the tools last. What hangs and should not is
launched again beside few others.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import zipfile
from argparse import Namespace
from collections import Counter
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import numpy as np
from cuda_tools import SANITIZERS
from packs import at_once, cells, launched, loaded, manifest_of, noting, positive, read_result, saved
from scripts import README, add_write_or_check, exit_code
from writing import update

from tir_schedules import processes
from tir_schedules.console import progress
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.files import Json, check_folder, write_text
from tir_schedules.insight.profile.nsight import last_line, tool
from tir_schedules.machines.choice import choose
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.subjects.results import about

RECORDED = Path(__file__).parent / "results" / "corpus_h200.json"
CORPUS = Path(__file__).parents[1] / "tests" / "machines"
PACK = ("corpus.json", "the corpus", "name a file that `experiments/sanitizers.py` wrote")
"""The name of a pack's manifest, what it is of, and what to do about another file."""

ALONE = "alone"
"""Launched with no tool watching."""

HANGS, CLEAN, FOUND = "hangs", "-", re.compile(r"(\d+) (?:errors?|hazards?)\b")
RIGHT, WRONG = "right", "wrong"
IN_DOUBT = "hangs beside others"
WAIT_FOR_EVER = ("deadlock", "endless_loop")
"""Kinds with which a kernel may hang."""

BESIDE_FEW = 4
"""What is in doubt is launched with a fourth of the jobs."""

GRACE = 2
"""Seconds after which a launch ends itself that whoever started it has not ended."""


def pack(options: Namespace) -> int:
    """Compile the corpus and write it with its arguments and what is expected."""
    check_folder(options.file)
    sys.path.insert(0, str(CORPUS))
    corpus = import_module("corpus_kernels")
    binaries = corpus.binaries(options.arch)
    cubins: dict[bytes, str] = {}
    with zipfile.ZipFile(options.file, "w", zipfile.ZIP_DEFLATED) as archive:
        cases = []
        for case in corpus.cases():
            binary = binaries[case.name]
            if binary.cubin not in cubins:
                cubins[binary.cubin] = f"{len(cubins)}.cubin"
                archive.writestr(cubins[binary.cubin], binary.cubin)
            if case.sound:
                archive.writestr(f"{case.file.name}.npz", saved(case.arguments()))
            cases.append(entry_of(case, binary, cubins[binary.cubin], seen_by(corpus, case)))
        command = f"experiments/sanitizers.py pack {options.file.name} --arch {options.arch}"
        archive.writestr(
            PACK[0], json.dumps({**about(command), "arch": options.arch, "cases": cases}, indent=1)
        )
    print(f"packed {len(cases)} kernels for {options.arch}: copy {options.file} to where the GPU is")
    return 0


def entry_of(case: Any, binary: Binary, cubin: str, seen: str) -> dict[str, Any]:
    """A case as the manifest has it."""
    kernel, file, variant = binary.kernel, case.file, case.variant
    finds = " and ".join(" | ".join(one.kind for one in alternatives) for alternatives in variant.finds)
    return {
        "name": case.name, "what": variant.what, "finds": finds, "cpu": seen,
        "entry": kernel.entry, "cubin": cubin, "resources": asdict(binary.resources),
        "grid": kernel.grid, "block": kernel.block, "dynamic_shared": kernel.dynamic_shared,
        "cooperative": file.cooperative, "arguments": f"{file.name}.npz",
        "roles": {argument.name: argument.role for argument in file.arguments}, "right": file.right,
    }  # fmt: skip


def seen_by(corpus: Any, case: Any) -> str:
    """Kinds that the CPU machine finds in a case."""
    try:
        found = {finding.kind for finding in corpus.launched(case)[0]}
    except TirSchedulesError:
        return "? refused"
    return " ".join(sorted(found - corpus.NOTES)) or CLEAN


def run(options: Namespace) -> int:
    """Launch what the result lacks, write it after each launch, print the table."""
    check_folder(options.result)
    manifest = manifest_of(options.file, *PACK)
    result = read_result(options.result, *PACK[1:]) if options.result.exists() else {"cases": {}}
    entries = [entry for entry in manifest["cases"] if not options.only or entry["name"] in options.only]
    facts = [{key: entry[key] for key in ("name", "what", "finds", "cpu")} for entry in manifest["cases"]]
    rows = {fact.pop("name"): fact for fact in facts}
    rows = {name: {**fact, **result["cases"].get(name, {})} for name, fact in rows.items()}
    if any(lacks(rows[entry["name"]], name) for entry in entries for name in (ALONE, *SANITIZERS)):
        result |= {"packed": {key: value for key, value in manifest.items() if key != "cases"}}
        result |= {"device": choose("gpu").describe(), "sanitizer": sanitizer_version()}
        launch_all(entries, rows, result, options)
    return table(options)


def launch_all(entries: list[Json], rows: dict[str, Json], result: Json, options: Namespace) -> None:
    """Round after round. A kernel has a row in the result once it was launched."""
    command = f"experiments/sanitizers.py run {options.file.name} {options.result.name}"
    once_more = noting(result, f"{command} --seconds {options.seconds:g} --jobs {options.jobs}", options)
    for jobs, names, chosen in rounds(options.jobs):
        tasks = [(e, name) for e in entries for name in names if chosen(rows[e["name"]], name)]
        doubtful = IN_DOUBT if jobs > max(1, options.jobs // BESIDE_FEW) else HANGS
        with progress(len(tasks), "launching") as step:
            for (entry, name), said in at_once(lambda task: told(task[1], task[0], options), tasks, jobs):
                row = rows[entry["name"]]
                row[name] = doubtful if said == HANGS and not is_known_to_hang(row, name) else said
                once_more()
                result["cases"] |= {entry["name"]: row}
                result["cases"] = {key: result["cases"][key] for key in rows if key in result["cases"]}
                write_text(options.result, json.dumps(result, indent=1))
                step(f"{entry['name']} {name}")


Chosen = Callable[[Json, str], bool]


def rounds(jobs: int) -> Iterator[tuple[int, Sequence[str], Chosen]]:
    """How many launches at a time, under which tools, and which of a row's are among them."""
    few = max(1, jobs // BESIDE_FEW)
    yield jobs, (ALONE,), lambda row, name: name not in row
    yield few, (ALONE,), lacks
    yield jobs, SANITIZERS, lambda row, name: name not in row and row[ALONE] != HANGS
    yield jobs, SANITIZERS, lambda row, name: name not in row
    yield few, SANITIZERS, lacks


def lacks(row: Json, name: str) -> bool:
    return row.get(name, IN_DOUBT) == IN_DOUBT


def is_known_to_hang(row: Json, name: str) -> bool:
    """Whether a kernel that hangs does what is expected of it: because of its fault, or as it does alone."""
    return row.get(ALONE) == HANGS or name == ALONE and any(kind in row["finds"] for kind in WAIT_FOR_EVER)


def told(name: str, entry: dict[str, Any], options: Namespace) -> str:
    """What a tool says of a kernel: `-`, how many errors or hazards, `hangs`, or why it says nothing."""
    seconds = str(options.seconds + GRACE)
    command = [sys.executable, __file__, "launch", "--seconds", seconds, str(options.file), entry["name"]]
    if name != ALONE:
        kernels = f"kernel_substring={entry['entry']}"
        command = [tool("compute-sanitizer"), "--tool", name, "--kernel-regex", kernels, *command]
    try:
        done = processes.run(command, timeout=options.seconds)
    except subprocess.TimeoutExpired:
        return HANGS
    lines = [line.strip("= ") for line in done.stdout.splitlines()]
    if name == ALONE:
        return next(
            (line for line in lines if line.startswith((RIGHT, WRONG))), last_line(done.stderr, "error")
        )
    summary = next((line for line in reversed(lines) if "SUMMARY" in line), "")
    counts = [int(count) for count in FOUND.findall(summary)]
    if not counts:
        return f"? {last_line(done.stdout + done.stderr, 'error')}"
    return str(max(counts)) if any(counts) else CLEAN


def sanitizer_version() -> str:
    """Its own words."""
    return last_line(processes.run([tool("compute-sanitizer"), "--version"]).stdout, "version")


def launch(options: Namespace) -> int:
    """What the tools watch: one kernel, once; prints whether its outputs are right. It ends itself too, by a
    signal that no call of CUDA holds up: a tool may have put it where nobody else finds it."""
    signal.setitimer(signal.ITIMER_REAL, options.seconds)
    manifest = manifest_of(options.file, *PACK)
    entry = next(each for each in manifest["cases"] if each["name"] == options.case)
    with zipfile.ZipFile(options.file) as archive:
        cubin, before = archive.read(entry["cubin"]), loaded(archive, entry["arguments"])
    kernel = Kernel(
        entry["name"], "", entry["entry"], tuple(entry["roles"]), tuple(entry["grid"]), tuple(entry["block"]),
        manifest["arch"], entry["dynamic_shared"],
    )  # fmt: skip
    try:
        blank = [name for name, role in entry["roles"].items() if role == "out"]
        binary = Binary(kernel, "", cubin, Resources(**entry["resources"]))
        after = launched(choose("gpu"), binary, before, blank, entry["cooperative"])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    names = {"np": np, **{f"{name}0": value for name, value in before.items()}, **after}
    wrong = [text for text in entry["right"] if not np.all(eval(text, names))]
    print("; ".join([WRONG, *wrong]) if wrong else RIGHT)
    return 0


def table(options: Namespace) -> int:
    """Print who finds what, by kernel and by kind, or write the latter; CheckFailed for a sound kernel that
    is wrong."""
    result = read_result(options.result, *PACK[1:])
    if getattr(options, "write", False) or getattr(options, "check", False):
        return update(options.readme, "corpus", lambda name: section(result), options.check)
    for line in (*rows(result["cases"]), "", *sums(result["cases"])):
        print(line)
    wrong = [name for name, row in result["cases"].items() if not row["finds"] and row.get(ALONE) != RIGHT]
    if wrong:
        raise CheckFailed(f"sound kernels that are not right on this GPU: {', '.join(wrong)}")
    return 0


def rows(cases: dict[str, dict[str, str]]) -> Iterator[str]:
    """One row per kernel."""
    yield cells("kernel", "what", "to be found", "CPU machine", ALONE, *SANITIZERS)
    yield cells(*["---"] * (5 + len(SANITIZERS)))
    for name, row in cases.items():
        told = [row.get(key, "").split(";")[0] for key in (ALONE, *SANITIZERS)]
        yield cells(name, row["what"], row["finds"].replace("|", "or") or CLEAN, row["cpu"], *told)


def sums(cases: dict[str, dict[str, str]]) -> Iterator[str]:
    """Of the kernels in which a kind is to be found, in how many each tool says anything, and with how many
    it hangs, as they do alone."""
    total: Counter[str] = Counter()
    told: Counter[tuple[str, str]] = Counter()
    hung: Counter[tuple[str, str]] = Counter()
    for row in cases.values():
        kind = re.split(r" (?:and|\|) ", row["finds"])[0] or "nothing"
        total[kind] += 1
        for name in ("cpu", *SANITIZERS):
            said = row.get(name, "?")
            hung[kind, name] += said == HANGS
            told[kind, name] += said != HANGS and said[0] not in "-?"
    yield cells("to be found", "kernels", "CPU machine", *SANITIZERS)
    yield cells("---", *["--:"] * (2 + len(SANITIZERS)))
    for kind, count in sorted(total.items()):
        shown = [
            f"{told[kind, name]}" + (f", {hung[kind, name]} hang" if hung[kind, name] else "")
            for name in ("cpu", *SANITIZERS)
        ]
        yield cells(kind, count, *shown)


def section(result: Json) -> str:
    """The sums as Markdown, and where they come from."""
    packed = result["packed"]
    right = sum(row.get(ALONE) == RIGHT for row in result["cases"].values() if not row["finds"])
    sound = sum(not row["finds"] for row in result["cases"].values())
    version, _, _ = result["sanitizer"].lower().partition(" (")
    when = f"revision {packed['git_revision'][:12]}, {result['runs'][0]['date'][:10]}"
    origin = f"{result['device']['name']}, compute-sanitizer {version}, {when}"
    remarks = [f"- {right} of {sound} sound kernels are right on this GPU.", f"- {origin}."]
    return "\n".join(["", *sums(result["cases"]), "", *remarks])


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    verbs = top.add_subparsers(required=True, metavar="VERB")
    for verb, does in {"pack": pack, "run": run, "table": table, "launch": launch}.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(";")[0].partition(".")[0])
        one.set_defaults(does=does)
        if does is not table:
            one.add_argument("file", type=Path, metavar="FILE.zip")
        if does is run:
            one.add_argument("result", type=Path, metavar="RESULT.json")
        if does is table:
            one.add_argument("result", type=Path, metavar="RESULT.json", nargs="?", default=RECORDED)
            add_write_or_check(one, "write the sums into the README")
            one.add_argument("--readme", metavar="FILE", type=Path, default=README, help="which README")
        if does is pack:
            one.add_argument("--arch", required=True, help="the GPU's architecture, such as sm_90")
        if does in (run, launch):
            one.add_argument("--seconds", type=float, default=60, help="most time of one launch (default 60)")
        if does is run:
            one.add_argument("--jobs", type=positive, default=1, help="launches at a time (default 1)")
            one.add_argument("--only", nargs="+", metavar="KERNEL", help="such as split_k split_k:2")
        if does is launch:
            one.add_argument("case", metavar="KERNEL")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
