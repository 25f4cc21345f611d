"""Nsight Compute's counters beside those of the CPU machine."""

from __future__ import annotations

import csv
import io
import re
import shutil
from dataclasses import dataclass, replace
from typing import Callable, Sequence, TypedDict

from tir_schedules import processes
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.model.counters import DATA_PIPE, INSTRUMENTED, METRICS, REQUESTS, SECTORS

NAMES = {
    f"{INSTRUMENTED}_ld.sum": "shared loads, wavefronts",
    f"{INSTRUMENTED}_ldsm.sum": "ldmatrix, wavefronts",
    f"{INSTRUMENTED}_st.sum": "shared stores, wavefronts",
    f"{INSTRUMENTED}_ldgsts.sum": "cp.async, wavefronts",
    f"{SECTORS}_ld.sum": "global loads, sectors",
    f"{REQUESTS}_ld.sum": "global loads, requests",
    f"{SECTORS}_st.sum": "global stores, sectors",
    f"{REQUESTS}_st.sum": "global stores, requests",
    f"{DATA_PIPE}_ld.sum": "data pipe, shared loads",
    f"{DATA_PIPE}_st.sum": "data pipe, shared stores",
}
"""How tables call the metrics, in their order."""

MANGLED = "_Z"
"""What names of C++ begin with in a cubin."""

NOISE = 0.01
"""Share of a counter that may differ without a reason."""


class CountedEntry(TypedDict):
    """A launch in a result of `profile`.

    label: "sgemm/naive (tir)". entry: its kernel's name. predicted: class of access -> counters of the CPU
    machine. measured: metric -> what Nsight Compute counted. A launch that is not counted lacks both.
    """

    label: str
    entry: str
    predicted: dict[str, dict[str, int]]
    measured: dict[str, float]


class Entry(CountedEntry, total=False):
    """What some launches have besides.

    workload: its fields. probe: the name of a single access. launch: its number, from 0, where there are
    several. copies_under_p0: see compiler/sass.py. waits: 1 where its blocks wait for one another.
    """

    workload: dict[str, int | str]
    probe: str
    launch: int
    copies_under_p0: int
    waits: int


@dataclass(frozen=True)
class Comparison:
    """A metric of one launch. reason: why it differs by more than NOISE, where that is known."""

    metric: str
    predicted: int
    measured: float
    reason: str = ""

    @property
    def difference(self) -> float:
        """Measured less predicted, as a share of measured."""
        return (self.measured - self.predicted) / max(1.0, self.measured)

    @property
    def unexplained(self) -> bool:
        return abs(self.difference) > NOISE and not self.reason


@dataclass(frozen=True)
class Reason:
    """Why metrics are known to differ from the prediction. applies: whether it explains an entry's metric."""

    metrics: tuple[str, ...]
    text: str
    applies: Callable[[Entry, Comparison], bool] = lambda entry, compared: True


def is_more(entry: Entry, compared: Comparison) -> bool:
    return compared.measured > compared.predicted


def is_under_p0(entry: Entry, compared: Comparison) -> bool:
    return bool(entry.get("copies_under_p0"))


def is_more_and_waits(entry: Entry, compared: Comparison) -> bool:
    return bool(entry.get("waits")) and is_more(entry, compared)


def is_narrow_probe(entry: Entry, compared: Comparison) -> bool:
    return entry.get("probe", "").startswith(("cp_async_4,", "cp_async_8,"))


def is_of_matrices(entry: Entry, compared: Comparison) -> bool:
    """Whether the stores can be those of stmatrix: only the data pipe counts them, not the instrumented
    code."""
    return not compared.measured and entry["measured"][f"{DATA_PIPE}_st.sum"] >= compared.predicted


REASONS = (
    Reason(
        (f"{DATA_PIPE}_ld.sum", f"{DATA_PIPE}_st.sum"),
        "the data pipe's counters include stalls for other traffic; those of the instrumented code count only"
        " what instructions ask for",
        is_more,
    ),
    Reason(
        (f"{SECTORS}_ld.sum", f"{REQUESTS}_ld.sum"),
        "blocks that wait for the mark of another block load it again and again",
        is_more_and_waits,
    ),
    Reason(
        (f"{INSTRUMENTED}_st.sum",),
        "Nsight Compute counts the wavefronts of stmatrix only among those of the data pipe",
        is_of_matrices,
    ),
    Reason(
        (f"{INSTRUMENTED}_ldgsts.sum",),
        "Nsight Compute misjudges copies under the predicate register P0: it counts copies that P0 switches"
        " off, and the others as if they filled with zeros; with other registers it counts as predicted",
        is_under_p0,
    ),
    Reason(
        (f"{INSTRUMENTED}_ldgsts.sum",),
        "the model of cp.async of 4 and 8 bytes misses some patterns with bank conflicts at both ends; no"
        " rung has such copies",
        is_narrow_probe,
    ),
)
"""All known reasons: a difference of more than NOISE without one of them is a fault."""


def comparisons(entry: Entry) -> list[Comparison]:
    """All metrics of a counted launch; entry: has "predicted" and "measured"."""
    return [comparison(metric, entry) for metric in NAMES]


def comparison(metric: str, entry: Entry) -> Comparison:
    found = Comparison(metric, prediction(entry, *METRICS[metric]), entry["measured"][metric])
    known = (reason.text for reason in REASONS if metric in reason.metrics and reason.applies(entry, found))
    return replace(found, reason=next(known, "")) if found.unexplained else found


def prediction(entry: Entry, classes: Sequence[str], counter: str) -> int:
    """A counter of the CPU machine, summed over classes of access. entry: has them as "predicted"."""
    return sum(entry["predicted"].get(name, {}).get(counter, 0) for name in classes)


def differences(entry: Entry) -> dict[str, tuple[int, float]]:
    """Metric -> predicted and measured, where they differ."""
    pairs = {metric: (prediction(entry, *METRICS[metric]), entry["measured"][metric]) for metric in METRICS}
    return {metric: pair for metric, pair in pairs.items() if pair[0] != pair[1]}


def nsight_counters(
    command: Sequence[str], entries: Sequence[str], more: Sequence[str] = ()
) -> list[dict[str, float]]:
    """METRICS of each launch of a command.

    entries: names of the kernels it launches, in order; other kernels are left out. more: further metrics,
    which are left out where ncu cannot count them. MissingTool without ncu; CheckFailed when ncu fails or
    counts other launches than expected.
    """
    pattern = f"regex:^({'|'.join(map(re.escape, sorted(set(entries))))})$"
    ncu = [tool("ncu"), "--clock-control", "none", "--csv"]
    if any(entry.startswith(MANGLED) for entry in entries):
        ncu += ["--kernel-name-base", "mangled", "--print-kernel-base", "mangled"]
    ncu += ["--kernel-name", pattern, "--metrics", ",".join([*METRICS, *more])]
    done = processes.run([*ncu, *command])
    if done.returncode:
        raise CheckFailed(f"ncu failed: {last_line(done.stdout + done.stderr, 'error')}")
    launches = parse_output(done.stdout)
    kernels = [kernel for kernel, _ in launches]
    if kernels != list(entries):
        raise CheckFailed(
            f"ncu counted {len(kernels)} launches where {len(entries)} were expected:"
            f" {first_difference(kernels, entries)}"
        )
    return [metrics for _, metrics in launches]


def parse_output(text: str) -> list[tuple[str, dict[str, float]]]:
    """Kernel and metrics of each launch in ncu's output. CheckFailed for a metric it could not count."""
    launches: dict[str, tuple[str, dict[str, float]]] = {}
    start = text.find('"ID"')
    for row in csv.DictReader(io.StringIO(text[start:])) if start >= 0 else ():
        kernel, metrics = launches.setdefault(row["ID"], (row["Kernel Name"].partition("(")[0], {}))
        try:
            metrics[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            if row["Metric Name"] in METRICS:
                raise CheckFailed(
                    f"ncu has no {row['Metric Name']} for {kernel}: this GPU or ncu is too old"
                ) from None
    for kernel, metrics in launches.values():
        missing = METRICS.keys() - metrics.keys()
        if missing:
            raise CheckFailed(f"ncu has no {min(missing)} for {kernel}: this GPU or ncu is too old")
    return list(launches.values())


def first_difference(kernels: Sequence[str], expected: Sequence[str]) -> str:
    """Where two sequences of kernels part."""
    for number, (one, other) in enumerate(zip(kernels, expected)):
        if one != other:
            return f"launch {number} is {one}, not {other}"
    return f"they agree up to launch {min(len(kernels), len(expected))}"


def tool(name: str) -> str:
    """Path of a tool of the CUDA toolkit. MissingTool when it is not on PATH."""
    path = shutil.which(name)
    if not path:
        raise MissingTool(f"{name} is not on PATH: it comes with NVIDIA's CUDA toolkit, in its bin folder")
    return path


def last_line(text: str, word: str) -> str:
    """The last line with a word in it, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if word in line.lower()),
        lines[-1] if lines else "it printed nothing",
    )
