"""What warps wait for: Nsight Compute's stall reasons and executed instructions beside the simulated SM's.

    tir-schedules bench NAME ... --sizes N --no-twins --arch sm_90a --pack PACK.zip  # needs TVM and nvcc
    python experiments/stalls_on_gpu.py count PACK.zip RESULT.json                   # needs a GPU and ncu
    python experiments/stalls_on_gpu.py compare RESULT.json ... -o COMPARED.json     # needs neither
    python experiments/stalls_on_gpu.py compare COMPARED.json -o COMPARED.json       # once more

Every subject of the pack is launched once under ncu. RESULT.json has the metrics of each launch.
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any, Sequence

from cuda_tools import known_names
from scripts import exit_code

from tir_schedules.errors import CheckFailed
from tir_schedules.files import Json, check_folder, read_json, write_text
from tir_schedules.insight.profile.nsight import nsight_counters
from tir_schedules.machines.choice import choose
from tir_schedules.machines.execution import execute
from tir_schedules.subjects.packs import load_pack
from tir_schedules.subjects.results import about, as_text, device_facts
from tir_schedules.subjects.subject import Subject
from tir_schedules.timing.gpus import find_table

WANTED = {
    r"smsp__average_warps_issue_stalled_\w+_per_issue_active": ".ratio",
    r"smsp__(inst_executed|inst_issued|cycles_active|cycles_elapsed|issue_active|warps_active"
    r"|inst_executed_pipe_\w+)": ".sum",
    r"sm__cycles_(active|elapsed)": ".max",
    r"lts__t_sectors(_op_read|_op_write|_lookup_hit|_lookup_miss)?": ".sum",
    r"dram__bytes_(read|write)": ".sum",
}
"""Names of metrics, and what follows them."""

PART = 12
"""Subjects that one ncu watches: where one fails, the others are counted."""


def metrics() -> list[str]:
    """Those of WANTED that this GPU has."""
    return [name + kind for pattern, kind in WANTED.items() for name in known_names(f"^({pattern})$")]


def chosen(path: Path) -> list[Subject]:
    """The subjects of a pack, without libraries."""
    return [subject for subject in load_pack(path).subjects if subject.binaries]


def count(options: Namespace) -> int:
    """Count, and write the result after each part."""
    check_folder(options.result)
    subjects, wanted = chosen(options.file), metrics()
    result: Json = {
        **about(f"experiments/stalls_on_gpu.py count {options.file.name} {options.result.name}"),
        "packed": load_pack(options.file).about, "device": device_facts(choose("gpu").describe()),
        "launches": [], "failed": [],
    }  # fmt: skip
    for first in range(0, len(subjects), PART):
        part = subjects[first : first + PART]
        entries = [binary.kernel.entry for subject in part for binary in subject.binaries]
        command = [sys.executable, __file__, "launch", str(options.file), str(first), str(len(part))]
        try:
            counted = iter(nsight_counters(command, entries, wanted))
        except CheckFailed as error:
            result["failed"].append(f"{[subject.label for subject in part]}: {error}")
            print(result["failed"][-1], flush=True)
            continue
        for subject in part:
            for number, binary in enumerate(subject.binaries):
                facts = {"name": subject.name, "form": subject.form, "workload": asdict(subject.workload)}
                facts |= {"launch": number, "entry": binary.kernel.entry, "grid": binary.kernel.grid}
                result["launches"].append({**facts, "measured": next(counted)})
        write_text(options.result, json.dumps(result, indent=1))
        print(f"{first + len(part)} of {len(subjects)}", flush=True)
    write_text(options.result, json.dumps(result, indent=1))
    return 1 if result["failed"] else 0


def launch(options: Namespace) -> int:
    """What ncu watches."""
    machine: Any = choose("gpu")
    for subject in chosen(options.file)[options.first : options.first + options.number]:
        execute(machine, subject.workload, subject.binaries, subject.workload.arguments())
        machine.free_memory()
    return 0


def compare(options: Namespace) -> int:
    """Predict what was counted, and write both."""
    from stall_tables import compared

    found: Json = about(
        f"experiments/stalls_on_gpu.py compare {' '.join(path.name for path in options.files)}"
    )
    found |= {"counted": [], "rows": []}
    for path in options.files:
        counted = read_json(path, "name a file that `count` wrote")
        again = "rows" in counted
        facts = (
            counted["counted"] if again else [{key: counted[key] for key in ("command", "date", "packed")}]
        )
        found["counted"] += facts
        found["device"], launches = counted["device"], counted["rows" if again else "launches"]
        for row in compared(launches, find_table(options.table), facts[0]["packed"]["arch"]):
            found["rows"].append(row)
            print(row["name"], row.get("refused", row.get("apart")), flush=True)
            write_text(options.output, as_text(found))
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    verbs = top.add_subparsers(required=True, metavar="VERB")
    each = {"count": count, "launch": launch, "compare": compare}
    for verb, does in each.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(".")[0])
        one.set_defaults(does=does)
        if does is compare:
            one.add_argument("files", type=Path, nargs="+", metavar="RESULT.json")
            one.add_argument("-o", "--output", type=Path, required=True, metavar="COMPARED.json")
            one.add_argument("--table", default="h100", help="of a GPU (default h100)")
            continue
        one.add_argument("file", type=Path, metavar="PACK.zip")
        if does is count:
            one.add_argument("result", type=Path, metavar="RESULT.json")
        else:
            one.add_argument("first", type=int)
            one.add_argument("number", type=int)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
