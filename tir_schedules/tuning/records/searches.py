"""Searches, as their records tell of them: a table on the terminal, and plots of every trial and the best so
far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Iterable, Iterator, Sequence

from rich.markup import escape

from tir_schedules.bench.plots import LIMIT, SCHEDULE, TWIN, VENDOR, content_of, label_rates, pyplot
from tir_schedules.console import print_left_out, print_line, print_table
from tir_schedules.files import write_bytes
from tir_schedules.model.machine import Device
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import rate_of
from tir_schedules.tuning.records.database import best, latest
from tir_schedules.tuning.records.journal import Entry
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, Record, Task, device_of
from tir_schedules.tuning.records.timesheet import Spent


@dataclass(frozen=True)
class Search:
    """Records of one task. rung: its id. shipped: whether they came with this package."""

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
        target = first.device if first.kind == MEASURED else first.arch
        return f"{self.rung} on {first.problem}, {first.kind} for {target}"

    @property
    def stem(self) -> str:
        """The part of a file's name that tells its plot from those of other searches."""
        first, source = self.records[0], " shipped" if self.shipped else ""
        words = f"{self.rung.replace('/', '_')} {first.problem} {first.arch} {first.kind}{source}".split()
        return "_".join(words)


@dataclass(frozen=True)
class Run:
    """What a command did for one search. trials: new ones. seconds: that they took. correlation, spent: see
    tuner.Tuned."""

    trials: int
    seconds: float
    correlation: float | None
    spent: Spent | None = None

    @property
    def pace(self) -> str:
        what = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        return f"{what} in {self.seconds:.0f} s: {60 * self.trials / self.seconds:.3g} per minute"

    def as_json(self) -> Entry:
        spent = asdict(self.spent) if self.spent else None
        return {"trials": self.trials, "seconds": self.seconds, "spent": spent}


def searches_of(records: Iterable[Record], shipped: bool) -> list[Search]:
    """Records by search, in the order searches are first met. shipped: whether they came with this
    package."""
    groups: dict[str, list[Record]] = {}
    for record in latest(records):
        groups.setdefault(record.task.key, []).append(record)
    return [Search(group[0].rung, tuple(group), shipped) for group in groups.values()]


def search_of(records: Iterable[Record], rung: Rung, workload: Workload, arch: str, device: Device) -> Search:
    """The search of a rung on a workload by a device; without records when there was none."""
    task = Task.of(rung, workload, arch, device_of(device), MEASURED if device.name == "gpu" else PREDICTED)
    return Search(rung.id, tuple(record for record in latest(records) if record.task == task))


def as_json(search: Search, run: Run | None) -> Entry:
    """A search as JSON, of its records the best alone. run: that just ended; None when it is only shown."""
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
        "run": run.as_json() if run else None,
    }


COLUMNS = ("rung", "shape", "target", "trials", "refused", "best", "rate", "best trial", "date")
SPARE = ("best trial", "date", "refused", "trials")


def print_searches(
    searches: Sequence[Search], paths: Sequence[Path], runs: dict[str, Run], drawn: Sequence[Path]
) -> None:
    """A table of searches with the point that each found, and run metadata, by rung.

    paths: of the files of records. drawn: files of plots.
    """
    rows = [tuple(map(escape, row(search))) for search in searches]
    print_left_out(print_table(COLUMNS, rows, prose={"shape": 12, "target": 6}, spare=SPARE, keys=0))
    for search in searches:
        for line in lines_of(search, runs.get(search.rung)):
            print_line(line)
    if any(search.records[0].kind == PREDICTED for search in searches):
        print_line("predicted: a cost by a simulated SM, or by a formula; no GPU was timed")
    plots = f"; plots: {', '.join(map(str, drawn))}" if drawn else ""
    print_line(f"records: {', '.join(map(str, paths))}{plots}")


def lines_of(search: Search, run: Run | None) -> Iterator[str]:
    """The point that a search found, and what a run of it did."""
    if search.best:
        values = ", ".join(f"{name} {value}" for name, value in search.best.point.items())
        yield f"{search.rung} on {search.best.problem}: {values}"
    else:
        yield f"{search.rung}: all refused, the last because {search.records[-1].error}"
    if run and run.trials:
        yield run.pace
        yield from run.spent.lines if run.spent else ()
    if run and run.correlation is not None:
        yield (
            "rank correlation (Spearman) of the cost model's scores with the seconds of the candidates:"
            f" {run.correlation:.2f}"
        )


def row(search: Search) -> tuple[str, ...]:
    """A search as the cells of a table."""
    first, found = search.records[0], search.best
    target = first.device if first.kind == MEASURED else f"{first.arch}, predicted"
    target += ", shipped" if search.shipped else ""
    cells = ("-", "-", "-", search.records[-1].date[:10])
    if found:
        micros = found.median * 1e6
        rate, unit = rate_of(found.family, found.problem, micros)
        cells = (f"{micros:.4g} us", f"{rate:.4g} {unit}", str(found.trial), found.date[:10])
    return (search.rung, str(first.problem), target, str(len(search)), str(search.refused), *cells)


if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save_plots(searches: Sequence[Search], path: Path) -> list[Path]:
    """Draw every search; returns the files: `path` for one, for several its name with that of the search."""
    several, paths = len(searches) > 1, []
    for search in searches:
        paths.append(path.with_name(f"{path.stem}_{search.stem}{path.suffix}") if several else path)
        write_bytes(paths[-1], draw_search(search, path.suffix.lower()[1:]))
    return paths


def draw_search(search: Search, form: str) -> bytes:
    """A plot as the content of a file of that form ("png")."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    draw_trials(axes, search)
    axes.set_title(search.title)
    return content_of(figure, form)


def draw_trials(axes: Axes, search: Search) -> None:
    """Microseconds over trials: filled points are measured, hollow ones predicted; a line for the best so
    far.

    Crosses on top are refused candidates.
    """
    micros = [record.median * 1e6 for record in search.records]
    kind = search.records[0].kind
    timed = [place for place, record in enumerate(search.records) if not record.error]
    if timed:
        filled = SCHEDULE if kind == MEASURED else "none"
        heights = [micros[place] for place in timed]
        axes.scatter(timed, heights, s=22, facecolors=filled, edgecolors=SCHEDULE, label=kind)
        so_far, since = list(accumulate(micros, min)), timed[0]
        places = range(since, len(search))
        axes.step(places, so_far[since:], where="post", color=TWIN, linewidth=1.5, label="best so far")
        axes.axhline(so_far[-1], color=VENDOR, linewidth=0.6, linestyle=":", label=f"{so_far[-1]:.4g} us")
        axes.set_yscale("log")
        label_rates(axes.yaxis, *axes.get_ylim())
    refused = [place for place, record in enumerate(search.records) if record.error]
    if refused:
        above = {"clip_on": False, "transform": axes.get_xaxis_transform()}
        heights = [1.02] * len(refused)
        axes.scatter(refused, heights, marker="x", s=22, color=LIMIT, label="refused", **above)
    axes.set_xlabel("trial")
    axes.set_ylabel("us")
    axes.set_xlim(-0.5, len(search) - 0.5)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
