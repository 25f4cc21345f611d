"""The instruction table of the CPU machine held against a GPU: every opcode, and every launch of the tests of
single instructions.

    python experiments/instructions_on_gpu.py pack FILE.zip --arch sm_90     # needs ptxas and pytest, no GPU
    python experiments/instructions_on_gpu.py run FILE.zip RESULT.json       # needs a GPU and CuPy
    python experiments/instructions_on_gpu.py table RESULT.json ...         # needs neither; --write F.json

A pack has cubins, arguments, and what the CPU machine made of them. `run` compares bit for bit. Some hundred
launches share a process. One that fails or hangs is noted, and another process goes on after it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from argparse import Namespace
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, Iterable, Sequence

import numpy as np
from instruction_results import FAILED, REFUSED, compared, lines, record, remarks, together, wrong
from packs import at_once, launched, manifest_of, noting, positive, read_result
from scripts import exit_code

from tir_schedules import processes
from tir_schedules.console import progress
from tir_schedules.errors import CheckFailed
from tir_schedules.files import Json, check_folder, lists_to_tuples, write_text
from tir_schedules.insight.profile.nsight import last_line
from tir_schedules.machines.choice import choose
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import TensorMap
from tir_schedules.subjects.results import about

PACK = ("instructions.json", "instructions", "name a file that `experiments/instructions_on_gpu.py` wrote")
"""The name of a pack's manifest, what it is of, and what to do about another file."""

TOGETHER = 250
"""Launches of one process, if nothing else is said."""

HANGS = "hangs"


def pack(options: Namespace) -> int:
    """Record what is to be launched, assemble it, and write it with its arguments and results."""
    from instruction_cases import FILES, HOPPER, NUMBERS, recorded, table_cases
    from instruction_modules import assembled

    check_folder(options.file)
    files = (*FILES, *HOPPER) if options.arch == "sm_90a" else FILES
    cases = [
        *table_cases(options.opcodes),
        *recorded(files if options.tests is None else options.tests, options.jobs),
    ]
    listed: dict[int, Json] = {}
    times: Counter[str] = Counter()
    with zipfile.ZipFile(options.file, "w", zipfile.ZIP_DEFLATED) as archive:
        written: set[str] = set()
        for at, module in enumerate(assembled(cases, options.arch)):
            if module.cubin:
                archive.writestr(f"{at}.cubin", module.cubin)
            for number, case in module.cases.items():
                listed[number] = entry = {
                    "name": case.name, "subject": case.subject, "opcodes": case.opcodes,
                    "lenient": case.lenient,
                }  # fmt: skip
                if number in module.refused:
                    entry["refused"] = module.refused[number]
                    continue
                mask = {} if case.mask is None else {"mask": case.mask}
                given, made, told = (stored(archive, written, a) for a in (case.before, case.after, mask))
                entry |= {
                    "cubin": f"{at}.cubin", "entry": module.entry(number), "number": NUMBERS.get(case.number),
                    "before": given, "after": made, "mask": told.get("mask"), "operands": case.operands,
                    "grid": case.grid, "block": case.block, "dynamic_shared": case.dynamic_shared,
                    "params": case.params, "cluster": case.cluster,
                    "maps": [asdict(one) for one in case.maps],
                }  # fmt: skip
        for number in sorted(listed):
            name = listed[number]["name"]
            times[name] += 1
            listed[number]["name"] += f" #{times[name]}" if times[name] > 1 else ""
        command = f"experiments/instructions_on_gpu.py pack {options.file.name} --arch {options.arch}"
        ordered = [listed[number] for number in sorted(listed)]
        archive.writestr(PACK[0], json.dumps({**about(command), "arch": options.arch, "cases": ordered}))
    refused = sum("refused" in entry for entry in ordered)
    print(
        f"packed {len(ordered) - refused} launches for {options.arch}, ptxas refuses {refused}: copy"
        f" {options.file} to where the GPU is"
    )
    return 0


def stored(archive: zipfile.ZipFile, written: set[str], arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Files of a pack that hold arrays; what is equal has one."""
    names = {}
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, array)
        names[name] = file = f"{hashlib.sha256(content.getvalue()).hexdigest()[:20]}.npy"
        if file not in written:
            written.add(file)
            archive.writestr(file, content.getvalue())
    return names


def run(options: Namespace) -> int:
    """Launch what the result lacks, write it after each process, print the table."""
    check_folder(options.result)
    manifest = manifest_of(options.file, *PACK)
    result = read_result(options.result, *PACK[1:]) if options.result.exists() else {"cases": {}}
    cases, entries = result["cases"], manifest["cases"]
    for entry in entries:
        if "refused" in entry:
            cases[entry["name"]] = {**facts(entry), "outcome": REFUSED, "why": entry["refused"]}
    lacking = [number for number, entry in enumerate(entries) if entry["name"] not in cases]
    if lacking:
        result |= {"packed": {key: value for key, value in manifest.items() if key != "cases"}}
        result |= {"device": choose("gpu").describe()}
        command = f"experiments/instructions_on_gpu.py run {options.file.name} {options.result.name}"
        once_more = noting(result, f"{command} --jobs {options.jobs}", options)
        parts = [lacking[at : at + options.together] for at in range(0, len(lacking), options.together)]
        with progress(len(parts), "launching") as step:
            for part, rows in at_once(lambda part: outcomes(part, options), parts, options.jobs):
                for number in part:
                    cases[entries[number]["name"]] = {**facts(entries[number]), **rows[number]}
                    once_more()
                result["cases"] = {e["name"]: cases[e["name"]] for e in entries if e["name"] in cases}
                write_text(options.result, as_text(result))
                step("")
    return table(options)


def facts(entry: Json) -> Json:
    """What a result has of an entry."""
    return {key: entry[key] for key in ("subject", "opcodes", "lenient")}


def as_text(result: Json) -> str:
    """JSON with one line per launch."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in result["cases"].items())
    head = json.dumps({key: value for key, value in result.items() if key != "cases"}, indent=1)
    return f'{head[:-2]},\n "cases": {{\n{rows}\n }}\n}}\n'


def outcomes(numbers: Iterable[int], options: Namespace) -> dict[int, Json]:
    """Number of an entry -> its row. A process that ends early is followed by another."""
    found: dict[int, Json] = {}
    left = list(numbers)
    with processes.temporary_folder() as folder:
        while left:
            path = folder / f"{left[0]}.jsonl"
            command = [sys.executable, __file__, "launch", str(options.file), str(path), *map(str, left)]
            why = fault_of(command, options.seconds)
            written = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
            found |= zip(left, map(json.loads, written))
            left = left[len(written) :]
            if left and (why or not written):
                found[left.pop(0)] = {"outcome": FAILED, "why": why or "it wrote nothing"}
    return found


def fault_of(command: Sequence[str], seconds: float) -> str:
    """Why a process did not end well; "" for one that did."""
    try:
        done = processes.run(command, timeout=seconds)
    except subprocess.TimeoutExpired:
        return HANGS
    return last_line(done.stderr, "error") if done.returncode else ""


def launch(options: Namespace) -> int:
    """Launch entries of a pack in one process, and write a line about each; ends after one that leaves the
    GPU unusable."""
    manifest, machine = manifest_of(options.file, *PACK), choose("gpu")
    with zipfile.ZipFile(options.file) as archive, open(options.lines, "w", encoding="utf-8") as file:
        for number in options.numbers:
            entry = manifest["cases"][number]
            try:
                row = row_of(archive, entry, manifest["arch"], machine)
            except CheckFailed as error:
                row = {"outcome": FAILED, "why": str(error)}
            file.write(json.dumps(row) + "\n")
            file.flush()
            if machine.broken:
                break
    return 0


def row_of(archive: zipfile.ZipFile, entry: Json, arch: str, machine: Any) -> Json:
    """The outcome of one launch."""
    read = {
        kind: {name: array(archive, file) for name, file in entry[kind].items()}
        for kind in ("before", "after")
    }
    before, after = read["before"], read["after"]
    kernel = Kernel(
        entry["name"], "", entry["entry"], tuple(entry["params"] or before), tuple(entry["grid"]),
        tuple(entry["block"]), arch, entry["dynamic_shared"], cluster=tuple(entry["cluster"]),
        maps=tuple(TensorMap(**lists_to_tuples(one)) for one in entry["maps"]),
    )  # fmt: skip
    binary = Binary(kernel, "", archive.read(entry["cubin"]), Resources(0, 0))
    mask = entry["mask"] and array(archive, entry["mask"])
    return compared(entry, before, after, launched(machine, binary, before), mask)


def array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.load(io.BytesIO(archive.read(name)))


def table(options: Namespace) -> int:
    """Print how each line of the table was held against the GPU. CheckFailed where what is exact differs."""
    files = options.result if isinstance(options.result, list) else [options.result]
    result = together([read_result(path, *PACK[1:]) for path in files])
    cases = result["cases"]
    if options.write:
        write_text(options.write, record(result))
    for line in (*lines(cases), "", *remarks(cases)):
        print(line)
    if found := wrong(cases):
        raise CheckFailed(f"not as on this GPU, though the table says exact: {', '.join(found)}")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    verbs = top.add_subparsers(required=True, metavar="VERB")
    for verb, does in {"pack": pack, "run": run, "table": table, "launch": launch}.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(";")[0].partition(".")[0])
        one.set_defaults(does=does, write=None)
        if does is not table:
            one.add_argument("file", type=Path, metavar="FILE.zip")
        if does in (run, table):
            count = "+" if does is table else None
            one.add_argument("result", type=Path, nargs=count, metavar="RESULT.json")
        if does is table:
            one.add_argument(
                "--write", type=Path, metavar="LINES.json", help="also write a row for each line, to be kept"
            )
        if does in (pack, run):
            one.add_argument("--jobs", type=positive, default=1, help="processes at a time (default 1)")
        if does is pack:
            one.add_argument("--arch", required=True, help="the GPU's architecture, such as sm_90")
            one.add_argument("--opcodes", nargs="*", help="of the table (default: all)")
            one.add_argument("--tests", nargs="*", help="files or names of pytest (default: all of them)")
        if does is run:
            one.add_argument("--seconds", type=float, default=60, help="most time of a process (default 60)")
            one.add_argument(
                "--together", type=positive, default=TOGETHER, help=f"launches of each (default {TOGETHER})"
            )
        if does is launch:
            one.add_argument("lines", type=Path, metavar="ROWS.jsonl")
            one.add_argument("numbers", type=int, nargs="+", metavar="NUMBER")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
