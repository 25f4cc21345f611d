"""What Nsight Compute counts beside what the model says: executed instructions, and what warps wait for.

A warp of ncu is in one state in each cycle. The model has fewer reasons; states that mean the same to it are
one line of STATES. Shares are of all cycles of warps, those in which they issue among them.
"""

from __future__ import annotations

import re
from math import prod
from typing import Iterable, Iterator, Mapping, Sequence

from predictions import compiled, launched

from tir_schedules.errors import TirSchedulesError, one_line
from tir_schedules.files import Json
from tir_schedules.ladders.known import workload_class
from tir_schedules.timing.gpus import GpuTable
from tir_schedules.timing.paths import follow
from tir_schedules.timing.prediction import predict
from tir_schedules.workloads.drawing import ZEROS

STATES = {
    "issues": ((), ("selected",)),
    "not selected": (("not_selected",), ("not_selected",)),
    "fixed latency, branches": (("dependency",), ("wait", "branch_resolving")),
    "short scoreboard": (("short_board",), ("short_scoreboard",)),
    "long scoreboard": (("long_board", "mbarrier", "copies"), ("long_scoreboard",)),
    "memory queue": (("queue",), ("mio_throttle", "lg_throttle", "tex_throttle")),
    "pipe": (("pipe", "products"), ("math_pipe_throttle", "gmma")),
    "register banks": (("banks",), ("dispatch_stall",)),
    "instructions": (("fetch",), ("no_instruction",)),
    "barrier": (("barrier", "cluster"), ("barrier",)),
    "others": ((), ("drain", "membar", "sleeping", "imc_miss", "misc")),
}
"""A line of the comparison -> the model's reasons, and ncu's states. The model has none of the last ones:
stores on their way at a warp's end, fences, nanosleep, constants that are not cached."""

STATE = re.compile(r"^smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio$")
POLLS = ("SYNCS",)
"""Opcodes that a warp executes as often as it happens to look."""

COUNTED = ("counted", "counted_cycles", "counted_shares")
HEAD = ("executed / counted", "apart", "most apart in")


def counted_shares(measured: Mapping[str, float]) -> dict[str, float]:
    """Of ncu's counters."""
    states = {match[1]: value for name, value in measured.items() if (match := STATE.match(name))}
    unknown = states.keys() - {each for _, names in STATES.values() for each in names}
    assert not unknown, f"states of a warp without a line in STATES: {unknown}"
    return shares({line: sum(states.get(each, 0) for each in names) for line, (_, names) in STATES.items()})


def counted_by_ncu(launch: Json) -> Json:
    """What is compared, of a launch as `count` wrote it or of a row that was compared before."""
    measured = launch.get("measured")
    if measured is None:
        return {name: launch[name] for name in COUNTED}
    figures = (round(measured["smsp__inst_executed.sum"]), round(measured["sm__cycles_active.max"]))
    return dict(zip(COUNTED, (*figures, counted_shares(measured))))


def model_shares(reasons: Mapping[str, float], issued: float) -> dict[str, float]:
    """Of the model's cycles."""
    unknown = reasons.keys() - {each for names, _ in STATES.values() for each in names}
    assert not unknown, f"reasons without a line in STATES: {unknown}"
    found = {line: sum(reasons.get(each, 0) for each in names) for line, (names, _) in STATES.items()}
    return shares(found | {"issues": issued})


def shares(cycles: Mapping[str, float]) -> dict[str, float]:
    total = sum(cycles.values()) or 1
    return {line: round(amount / total, 4) for line, amount in cycles.items()}


def apart(some: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Half the sum of differences: the share of cycles that would have to change its state."""
    return sum(abs(some[line] - others[line]) for line in STATES) / 2


def compared(launches: Sequence[Json], figures: GpuTable, arch: str) -> Iterator[Json]:
    """A row for each launch that ncu watched."""
    kernels = {(one["name"], str(one["workload"])): one for one in launches}
    for one in kernels.values():
        family = one["name"].partition("/")[0]
        workload = workload_class(family)(**one["workload"])
        measured = [
            each for each in launches if (each["name"], each["workload"]) == (one["name"], one["workload"])
        ]
        subject = compiled(one["name"], workload, arch)["schedule"]
        arguments, outputs = launched(subject, workload.arguments(kind=ZEROS))
        for binary, given, counts in zip(subject.binaries, arguments, measured, strict=True):
            row: Json = {name: one[name] for name in ("name", "workload")} | {"shape": str(workload)}
            row |= {"launch": counts["launch"], **counted_by_ncu(counts)}
            try:
                paths = follow(binary, given, outputs)
                of_block = sum(len(path.numbers) for path in paths.warps)
                (launch,) = predict([binary], [given], outputs, figures).launches
            except TirSchedulesError as error:
                yield row | {"refused": one_line(error)}
                continue
            ours = model_shares(launch.by_reason(), float(launch.issued.sum()))
            executed = of_block * prod(binary.kernel.grid)
            said = {"executed": executed, "cycles": round(launch.cycles), "shares": ours}
            yield row | said | {"apart": round(apart(ours, row["counted_shares"]), 4)}


def lines(rows: Iterable[Json]) -> list[tuple[str, ...]]:
    """A table: of each kernel how many instructions of those counted are executed, how far the shares are
    apart, and which are most."""
    found = [("launch", *HEAD), ("---", *["--:"] * 2, "---")]
    known = [row for row in rows if "refused" not in row]
    for row in known:
        ours, theirs = row["shares"], row["counted_shares"]
        most = sorted(STATES, key=lambda line: -abs(ours[line] - theirs[line]))[:2]
        worst = ", ".join(f"{line} {100 * ours[line]:.0f} (ncu {100 * theirs[line]:.0f}) %" for line in most)
        number = f", launch {row['launch'] + 1}" if row["launch"] else ""
        name = f"{row['name']}, {row['shape']}{number}"
        found.append((name, f"{row['executed'] / row['counted']:.4f}", f"{100 * row['apart']:.1f} %", worst))
    mean = sum(row["apart"] for row in known) / max(1, len(known))
    equal = sum(row["executed"] == row["counted"] for row in known)
    return [*found, ("mean", f"{equal} of {len(known)} equal", f"{100 * mean:.1f} %", "")]


def by_state(rows: Iterable[Json]) -> list[tuple[str, ...]]:
    """The mean share of each state, the model's and ncu's, and how far apart the two are on average."""
    known = [row for row in rows if "refused" not in row]
    found = [("state", "model", "ncu", "mean difference"), ("---", *["--:"] * 3)]
    for line in STATES:
        pairs = [(row["shares"][line], row["counted_shares"][line]) for row in known]
        ours, theirs, between = (
            sum(each(*pair) for pair in pairs) / max(1, len(pairs))
            for each in (lambda a, _: a, lambda _, b: b, lambda a, b: abs(a - b))
        )
        found.append((line, *(f"{100 * each:.1f} %" for each in (ours, theirs, between))))
    return found
