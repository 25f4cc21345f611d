"""Searches: the records of one task in the order they were made, as tables, JSON and pictures."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Iterable, Sequence

from tir_schedules.bench.plots import LIMIT, METADATA, SCHEDULE, TWIN, VENDOR, label_rates, pyplot
from tir_schedules.files import write_bytes
from tir_schedules.model.rung import Rung
from tir_schedules.subjects.subject import rate_of
from tir_schedules.tuning.records.journal import canonical
from tir_schedules.tuning.records.records import MEASURED, PREDICTED, Record, best, device_of, latest, task_of


@dataclass(frozen=True)
class Search:
    """Records of one rung, workload, architecture, device and kind. rung: its id. shipped: whether they came
    with this package."""

    rung: str
    records: tuple[Record, ...]
    shipped: bool = False

    def __len__(self) -> int:
        return len(self.records)

    @property
    def best(self) -> Record | None:
        return best(self.records)

    @property
    def refused(self) -> int:
        """How many candidates were refused."""
        return sum(bool(record.error) for record in self.records)

    @property
    def title(self) -> str:
        first = self.records[0]
        return (
            f"{self.rung} on {first.problem}, {first.kind} for"
            f" {first.device if first.kind == MEASURED else first.arch}"
        )

    @property
    def stem(self) -> str:
        """What tells its files from those of others."""
        first = self.records[0]
        source = " shipped" if self.shipped else ""
        return "_".join(
            f"{self.rung.replace('/', '_')} {first.problem} {first.arch} {first.kind}{source}".split()
        )


@dataclass(frozen=True)
class Run:
    """What a command did for one search. trials: new ones, in so many seconds. servers: that measured, none
    where this computer did.

    correlation: see tuner.Tuned.
    """

    trials: int
    seconds: float
    servers: int
    correlation: float | None

    @property
    def pace(self) -> str:
        by = f", by {self.servers} server{'s' if self.servers > 1 else ''}" if self.servers else ""
        what = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        return f"{what} in {self.seconds:.0f} s{by}: {60 * self.trials / self.seconds:.3g} per minute"


def searches_of(records: Iterable[Record], shipped: bool = False) -> list[Search]:
    """Records by search, in the order searches are first met. shipped: whether they came with this
    package."""
    groups: dict[str, list[Record]] = {}
    for record in latest(records):
        groups.setdefault(canonical(record.task), []).append(record)
    return [Search(group[0].rung, tuple(group), shipped) for group in groups.values()]


def of_task(records: Iterable[Record], rung: Rung, workload: Any, arch: str, machine: Any) -> Search:
    """The search of a rung on a workload on a machine; without records when there was none."""
    kind = MEASURED if machine.name == "gpu" else PREDICTED
    task = task_of(rung, workload, arch, device_of(machine), kind)
    return Search(rung.id, tuple(record for record in latest(records) if record.task == task))


def as_json(search: Search, run: Run | None) -> dict[str, Any]:
    """A search without the records that are not its best. run: that just ended; None when the search is only
    shown."""
    first, found = search.records[0], search.best
    return {
        "rung": search.rung,
        "workload": first.workload,
        "arch": first.arch,
        "device": first.device,
        "kind": first.kind,
        "shipped": search.shipped,
        "trials": len(search),
        "refused": search.refused,
        "best": asdict(found) if found else None,
        "model_rank_correlation": run.correlation if run else None,
        "run": {"trials": run.trials, "seconds": run.seconds, "servers": run.servers} if run else None,
    }


def print_searches(
    searches: Sequence[Search], paths: Sequence[Path], runs: dict[str, Run], drawn: Sequence[Path]
) -> None:
    """A table of searches, the point each found, and what is to be known of runs, by rung. paths: where the
    records are."""
    from rich.markup import escape

    from tir_schedules.console import print_left_out, print_line, print_table

    columns = ("rung", "shape", "for", "trials", "refused", "best", "rate", "of trial", "date")
    rows, prose = [tuple(map(escape, row(one))) for one in searches], {"shape": 12, "for": 6}
    spare = ("of trial", "date", "refused", "trials")
    print_left_out(print_table(columns, rows, prose=prose, spare=spare, keys=0))
    for search in searches:
        if search.best:
            values = ", ".join(f"{name} {value}" for name, value in search.best.point.items())
            print_line(f"{search.rung} on {search.best.problem}: {values}")
        else:
            print_line(f"{search.rung}: all refused, the last because {search.records[-1].error}")
        run = runs.get(search.rung)
        if run and run.trials:
            print_line(run.pace)
        if run and run.correlation is not None:
            print_line(
                "rank correlation of the cost model's scores with what candidates turned out to cost:"
                f" {run.correlation:.2f}"
            )
    if any(search.records[0].kind == PREDICTED for search in searches):
        print_line("predicted: a cost from what the CPU machine counts and from occupancy; no GPU was timed")
    print_line(
        f"records: {', '.join(map(str, paths))}" + (f"; drawn: {', '.join(map(str, drawn))}" if drawn else "")
    )


def row(search: Search) -> tuple[str, ...]:
    """A search as the cells of a table."""
    first, found = search.records[0], search.best
    place = (first.device if first.kind == MEASURED else f"{first.arch}, predicted") + (
        ", shipped" if search.shipped else ""
    )
    cells = ("-", "-", "-", search.records[-1].date[:10])
    if found:
        micros = found.median * 1e6
        rate, unit = rate_of(found.family, found.problem, micros)
        cells = (f"{micros:.4g} us", f"{rate:.4g} {unit}", str(found.trial), found.date[:10])
    return (search.rung, str(first.problem), place, str(len(search)), str(search.refused), *cells)


def save_plots(searches: Sequence[Search], path: Path) -> list[Path]:
    """Draw every search; one into `path`, of several each into a file with its name before the suffix.
    Returns the files."""
    paths = []
    for search in searches:
        paths.append(path.with_name(f"{path.stem}_{search.stem}{path.suffix}") if len(searches) > 1 else path)
        write_bytes(paths[-1], drawn_as(search, path.suffix.lower()[1:]))
    return paths


def drawn_as(search: Search, form: str) -> bytes:
    """A figure as the content of a file of that form ("png"): every trial and the best so far."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    draw_trials(axes, search)
    axes.set_title(search.title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=130, metadata=METADATA[form])
    plt.close(figure)
    return buffer.getvalue()


def draw_trials(axes: Any, search: Search) -> None:
    """Microseconds over trials: filled points are measured, hollow ones predicted, crosses on top refused; a
    line for the best so far."""
    places = range(len(search))
    micros = [record.median * 1e6 for record in search.records]
    kind = search.records[0].kind
    timed = [
        (place, micro) for place, micro, record in zip(places, micros, search.records) if not record.error
    ]
    if timed:
        filled = SCHEDULE if kind == MEASURED else "none"
        axes.scatter(*zip(*timed), s=22, facecolors=filled, edgecolors=SCHEDULE, label=kind)
        so_far = list(accumulate(micros, min))
        axes.step(
            places[timed[0][0] :],
            so_far[timed[0][0] :],
            where="post",
            color=TWIN,
            linewidth=1.5,
            label="best so far",
        )
        axes.axhline(so_far[-1], color=VENDOR, linewidth=0.6, linestyle=":", label=f"{so_far[-1]:.4g} us")
        axes.set_yscale("log")
        label_rates(axes.yaxis, *axes.get_ylim())
    refused = [place for place, record in zip(places, search.records) if record.error]
    if refused:
        heights = [1.02] * len(refused)
        axes.scatter(
            refused,
            heights,
            marker="x",
            s=22,
            color=LIMIT,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
            label="refused",
        )
    axes.set_xlabel("trial")
    axes.set_ylabel("us")
    axes.set_xlim(-0.5, len(search) - 0.5)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
