"""What kernels take where L2 holds their arrays, beside what they take as `bench` times them: over sets of
arrays that together exceed twice L2, so that each launch finds its inputs in DRAM.

    python experiments/cache_states.py FILE.zip RESULT.json   # needs a GPU and CuPy

FILE.zip: of bench --pack.
"""

from __future__ import annotations

import argparse
import json
import math
from argparse import Namespace
from pathlib import Path
from statistics import median
from typing import Any, Iterator, Sequence

from scripts import exit_code

from tir_schedules.bench.binding import bind, timing_buffers
from tir_schedules.bench.clocks import Cycles
from tir_schedules.bench.measure import group_by_workload, rotate_buffers
from tir_schedules.errors import TirSchedulesError
from tir_schedules.files import Json, check_folder, write_text
from tir_schedules.machines.choice import choose
from tir_schedules.subjects.packs import load_pack
from tir_schedules.subjects.results import about, device_facts
from tir_schedules.subjects.subject import Subject

SAMPLES, SAMPLE_S, MOST = 5, 0.004, 400


def timed(machine: Any, cycles: Cycles, subject: Subject, buffers: Sequence[Any]) -> Json:
    """Microseconds and clock of a subject: inputs in DRAM, and in L2 where they fit."""
    bound = [bind(machine, None, subject, arguments) for arguments in buffers]
    once = min(machine.seconds(one.enqueue) for one in bound[:2])
    launches = min(MOST, max(len(bound), math.ceil(SAMPLE_S / once)))
    row = subject.identity()
    for name, sets in (("in_turns", bound), ("same", bound[:1])):
        graph = machine.capture(rotate_buffers(sets, launches))
        samples, clocks = [], []
        for _ in range(SAMPLES):
            seconds = machine.seconds(graph, before=graph, around=cycles.points)
            samples.append(seconds / launches * 1e6)
            clocks.append(cycles.mhz())
        row |= {f"{name}_us": median(samples), f"{name}_mhz": median(each or 0 for each in clocks)}
    return row


def rows_of(machine: Any, subjects: Sequence[Subject]) -> Iterator[Json]:
    cycles = Cycles(machine)
    for group in group_by_workload([each for each in subjects if each.form != "vendor"]):
        machine.free_memory()
        buffers = timing_buffers(machine, group[0].workload)
        for subject in group:
            try:
                row = timed(machine, cycles, subject, buffers)
            except TirSchedulesError as error:
                row = subject.identity() | {"failed": str(error)}
            print({name: row[name] for name in row if name != "workload"}, flush=True)
            yield row


def measure(options: Namespace) -> int:
    """Time all of a pack and write the result."""
    check_folder(options.result)
    machine = choose("gpu")
    result = {
        **about(f"experiments/cache_states.py {options.file.name} {options.result.name}"),
        "device": device_facts(machine.describe()),
        "rows": [*rows_of(machine, load_pack(options.file).subjects)],
    }  # fmt: skip
    write_text(options.result, json.dumps(result, indent=1) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=" ".join(str(__doc__).split("\n\n")[0].split()))
    top.add_argument("file", type=Path, metavar="FILE.zip")
    top.add_argument("result", type=Path, metavar="RESULT.json")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(measure, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
