"""What a model of a GPU's time needs to know, measured on the GPU at hand: latencies, rates and queues of an
SM, L2, DRAM, TMA, launches, and the clock.

    python experiments/microbenchmarks.py run PROFILE.json            # needs a GPU, CuPy and nvcc; 3 minutes
    python experiments/microbenchmarks.py run PROFILE.json --only tma # what a regular expression finds
    python experiments/microbenchmarks.py check --arch sm_90a         # needs nvcc, no GPU: are the repeated
                                                                      # instructions all in the machine code?
    python experiments/microbenchmarks.py table PROFILE.json          # needs neither

A profile has a row for each probe: cycles that one more copy of an instruction takes. No kernel whose time is
to be predicted is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence

import micro_addresses
import micro_arithmetic
import micro_bursts
import micro_memory
import micro_residency
import micro_system
import micro_units
from micro_probes import Probe, measure, repeated
from packs import at_once
from scripts import exit_code

from tir_schedules import processes
from tir_schedules.check.building import assemble
from tir_schedules.compiler.nvcc import binary_of
from tir_schedules.compiler.sass import disassemble, instructions
from tir_schedules.compiler.toolchain import number_of
from tir_schedules.console import progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, check_folder, read_json, write_text
from tir_schedules.machines.choice import choose
from tir_schedules.model.kernel import Binary
from tir_schedules.subjects.results import about, device_facts

NEWEST = "sm_90a"
"""What a GPU of compute capability 9.0 is given: some instructions are in no other architecture."""


FAMILIES: dict[str, Callable[[], Iterable[Probe]]] = {
    "arithmetic": micro_arithmetic.probes, "memory": micro_memory.probes,
    "addresses": micro_addresses.probes, "bursts": micro_bursts.probes,
    "residency": micro_residency.probes, "gpu": micro_system.l2_rates,
    "units": micro_units.probes,
}  # fmt: skip
"""Each runs in a process of its own: a kernel that fails or hangs ends only that one. What could is last."""

SECONDS = 240
"""Most time of a family."""


def probes(family: str, arch: str, only: str | None) -> list[Probe]:
    """Those that an architecture has and a regular expression finds in group and name."""
    wanted = re.compile(only or "")
    return [
        probe
        for probe in FAMILIES[family]()
        if number_of(probe.needs) <= number_of(arch)
        and (arch.endswith("a") or not probe.needs.endswith("a"))
        and wanted.search(f"{probe.group}/{probe.name}")
    ]


def built(probe: Probe, copies: int, arch: str, multiprocessors: int) -> Binary:
    """The kernel of a probe, assembled."""
    kernel = probe.kernel(copies, arch, multiprocessors)
    return binary_of(kernel, assemble(kernel))


def run(options: Namespace) -> int:
    """Measure and write the profile, after each family once more."""
    check_folder(options.profile)
    machine = choose("gpu")
    profile: Json = {
        **about(f"experiments/microbenchmarks.py run {options.profile.name}"),
        "device": device_facts(machine.describe()), "rows": {}, "failed": [],
    }  # fmt: skip
    with processes.temporary_folder() as folder:
        for family in FAMILIES:
            part = folder / f"{family}.json"
            command = [sys.executable, __file__, "measure", str(part), family, "--only", options.only or ""]
            begun = time.monotonic()
            try:
                done = processes.run(command, timeout=SECONDS)
                why = done.stderr.strip()[-300:] if done.returncode else ""
            except subprocess.TimeoutExpired:
                why = f"not done after {SECONDS} s"
            print(f"{family}: {time.monotonic() - begun:.0f} s {why}", flush=True)
            found = read_json(part, "see above") if part.exists() else {"rows": {}, "failed": []}
            for group, rows in found["rows"].items():
                profile["rows"].setdefault(group, []).extend(rows)
            profile["failed"] += [*found["failed"], *([f"{family}: {why}"] if why else [])]
            write_text(options.profile, as_text(profile))
    return table(options)


def measure_family(options: Namespace) -> int:
    """Measure the probes of one family, and write them after each group."""
    machine = choose("gpu")
    arch = NEWEST if machine.arch == NEWEST[:-1] else machine.arch
    multiprocessors = machine.attribute("MultiProcessorCount")
    profile: Json = {"rows": {}, "failed": []}
    chosen = probes(options.family, arch, options.only)

    def build(probe: Probe, copies: int) -> Binary:
        return built(probe, copies, arch, multiprocessors)

    tasks = [(number, copies) for number, probe in enumerate(chosen) for copies in {*probe.copies}]
    assembled = dict(at_once(lambda task: build(chosen[task[0]], task[1]), tasks, os.cpu_count() or 1))
    for number, probe in enumerate(chosen):
        fewer, more = (assembled[number, copies] for copies in probe.copies)
        rows = profile["rows"].setdefault(probe.group, [])
        try:
            rows.append(measure(machine, probe, (fewer, more)))
        except CheckFailed as error:
            profile["failed"].append(f"{probe.name}: {error}")
        if number % 20 == 0 or number == len(chosen) - 1:
            write_text(options.profile, as_text(profile))
    for name, measured in micro_system.MEASURES.items() if options.family == "gpu" else ():
        if re.search(options.only or "", f"gpu/{name}"):
            try:
                profile["rows"].setdefault("gpu", []).extend(measured(machine, build))
            except (CheckFailed, RuntimeError, MemoryError, ValueError, TypeError) as error:
                profile["failed"].append(f"{name}: {error}")
            write_text(options.profile, as_text(profile))
    return 0


def as_text(profile: Json) -> str:
    """JSON with one line per row."""
    head = json.dumps({name: value for name, value in profile.items() if name != "rows"}, indent=1)
    groups = []
    for group, rows in profile["rows"].items():
        lines = ",\n".join(f"   {json.dumps(rounded(row))}" for row in rows)
        groups.append(f"  {json.dumps(group)}: [\n{lines}\n  ]")
    return f'{head[:-2]},\n "rows": {{\n' + ",\n".join(groups) + "\n }\n}\n"


def rounded(value: Any) -> Any:
    """Numbers with four decimals."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def table(options: Namespace) -> int:
    """Print what a profile has, and fail where something could not be measured."""
    profile = read_json(options.profile, "name a JSON file that `run` wrote")
    if not isinstance(profile, dict) or not isinstance(profile.get("rows"), dict):
        raise BadInput(f"{options.profile} is not a profile: name a JSON file that `run` wrote")
    for line in lines(profile):
        print(line)
    if profile["failed"]:
        raise CheckFailed("not measured: " + "; ".join(profile["failed"]))
    return 0


def lines(profile: Json) -> Iterator[str]:
    """A line for each row."""
    for group, rows in profile["rows"].items():
        yield f"{group}:"
        for row in rows:
            facts = {name: value for name, value in rounded(row).items() if name not in ("name", "opcode")}
            shown = {name: value for name, value in facts.items() if name not in ("warps", "lines")}
            yield f"  {row['name']}: " + ", ".join(f"{name} {value}" for name, value in shown.items())


def check(options: Namespace) -> int:
    """Hold the machine code of every probe against what it is to repeat."""
    chosen = [probe for family in FAMILIES for probe in probes(family, options.arch, options.only)]
    wrong = []
    with progress(len(chosen), "assembling") as step:
        for _, found in at_once(lambda probe: fault(probe, options.arch), chosen, os.cpu_count() or 1):
            wrong += found
            step("")
    if wrong:
        raise CheckFailed("; ".join(wrong))
    print(f"{len(chosen)} probes repeat what they are to repeat")
    return 0


def fault(probe: Probe, arch: str) -> list[str]:
    """What is wrong with the machine code of a probe; nothing where all is well."""
    for copies in dict.fromkeys(probe.copies):
        code = instructions(disassemble(built(probe, copies, arch, 1)))[0]
        found, wanted = repeated(code, probe.opcode), copies * probe.per_copy
        if found != wanted:
            return [f"{probe.name}: {found} {probe.opcode} between the clocks, not {wanted}"]
    return []


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=" ".join(str(__doc__).split("\n\n")[0].split()))
    verbs = top.add_subparsers(required=True, metavar="VERB")
    for verb, does in {"run": run, "measure": measure_family, "check": check, "table": table}.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(".")[0])
        one.set_defaults(does=does)
        if does is not check:
            one.add_argument("profile", type=Path, metavar="PROFILE.json")
        else:
            one.add_argument("--arch", default=NEWEST, help=f"architecture (default {NEWEST})")
        if does is measure_family:
            one.add_argument("family", choices=FAMILIES)
        if does is not table:
            one.add_argument("--only", metavar="REGEX", help="probes whose group/name has this")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
