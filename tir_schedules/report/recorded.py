"""Recorded results of a report: found in a folder or named one by one, told apart by what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Sequence

from tir_schedules.bench.tables import provenance_line
from tir_schedules.bench.views import Group, groups_of
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check, read_json
from tir_schedules.ladders.registry import FAMILIES, current
from tir_schedules.subjects.results import check_results

DEFAULT_FOLDER = Path(__file__).parents[2] / "experiments" / "results"
"""Where a checkout has them; an installed package has none."""

REMEDY = "name a folder or files with --results, such as what `bench -o FILE` wrote"
BENCHMARK, SWEEPS = "bench ", "sweeps.py"
"""How the command that wrote a file begins, or what it names."""

Document = Json


@dataclass(frozen=True)
class Recorded:
    """Files by what they hold, each kind in the order of their dates.

    benchmarks: of `bench`. others: timed as by `bench`, of other scripts. sweeps: of experiments/sweeps.py.
    counters: kernels with what Nsight Compute counted.
    """

    benchmarks: tuple[Document, ...]
    others: tuple[Document, ...]
    sweeps: tuple[Document, ...]
    counters: tuple[Document, ...]

    @cached_property
    def recordings(self) -> dict[str, list[tuple[Group, Document]]]:
        """Title ("hgemm nt float16") -> recordings of that kind of that ladder, in the order of the ladders.

        The recording with the most rungs comes first, then the one with the most sizes, then the latest: a
        few rungs that a search timed later do not replace the ladder.
        """
        found: dict[str, list[tuple[Group, Document]]] = {}
        for document in reversed(self.benchmarks):
            for group in groups_of(document):
                if group.cells:
                    found.setdefault(group.title, []).append((group, document))
        ranked = {
            title: sorted(several, key=lambda one: extent_of(one[0]), reverse=True)
            for title, several in found.items()
        }
        titles = {
            group.title: FAMILIES.index(group.family)
            for document in self.benchmarks
            for group in groups_of(document)
            if group.title in ranked
        }
        return {title: ranked[title] for title in sorted(titles, key=titles.__getitem__)}

    def groups(self) -> dict[str, tuple[Group, Document]]:
        """The first recording of each title."""
        return {title: several[0] for title, several in self.recordings.items()}

    @property
    def arch(self) -> str | None:
        """Architecture of the GPU that measured a ladder last, where it is known."""
        shown = sorted((document for _, document in self.groups().values()), key=date_of)
        known = [document["device"]["arch"] for document in shown if document["device"].get("arch")]
        return known[-1] if known else None

    def rate(self, name: str, form: str, shape: str) -> float | None:
        """Rate of a rung at a shape ("4096x4096x4096 nt float16"): the ladder's, else the last recorded."""
        shown = [document for _, document in self.groups().values()]
        rows = [
            row
            for document in (*self.others, *self.sweeps, *self.benchmarks, *shown)
            for row in document["rows"]
        ]
        rates = [
            row["rate"] for row in rows if (row["name"], row["form"], row["shape"]) == (name, form, shape)
        ]
        return rates[-1] if rates else None


def find_recorded(paths: Sequence[Path] | None) -> Recorded:
    """The results in folders and files. BadInput, in one line, where there are none."""
    if not paths and not DEFAULT_FOLDER.is_dir():
        raise BadInput(f"an installed package has no recorded results: {REMEDY}")
    paths = paths or [DEFAULT_FOLDER]
    documents = [document for path in paths for document in documents_at(path)]
    documents.sort(key=date_of)
    timed = [document for document in documents if "rows" in document]
    recorded = Recorded(
        benchmarks=tuple(document for document in timed if document["command"].startswith(BENCHMARK)),
        others=tuple(
            document
            for document in timed
            if not document["command"].startswith(BENCHMARK) and not is_sweep(document)
        ),
        sweeps=tuple(document for document in timed if is_sweep(document)),
        counters=tuple(document for document in documents if "kernels" in document),
    )
    if not recorded.groups():
        raise BadInput(f"no times of a ladder in {', '.join(map(str, paths))}: {REMEDY}")
    return recorded


def date_of(document: Document) -> str:
    return document.get("date", "")


def extent_of(group: Group) -> tuple[int, int]:
    """How many rungs and how many sizes were timed; configurations of a rung are one."""
    timed = [(name, size) for name, form, size in group.cells if form != "vendor"]
    return len({name.partition(":")[0] for name, _ in timed}), len({size for _, size in timed})


def is_sweep(document: Document) -> bool:
    return SWEEPS in document["command"]


def documents_at(path: Path) -> list[Document]:
    """Results in a file, or in all JSON files of a folder, where other JSON is left alone."""
    if path.is_dir():
        return [document for file in sorted(path.glob("*.json")) if (document := document_in(file))]
    document = document_in(path)
    if document is None:
        raise BadInput(f"{path} holds no times and no counters: {REMEDY}")
    return [document]


def document_in(path: Path) -> Document | None:
    """The content of a results file; None for other JSON. BadInput for a broken file."""
    from tir_schedules.subjects.schemas import Counters

    content = read_json(path, REMEDY)
    if not isinstance(content, dict):
        return None
    if "schema" in content:
        return check_results(
            content, path, "ResultsAndPoints" if SWEEPS in str(content.get("command")) else "Results"
        )
    kernels = content.get("kernels")
    if not isinstance(kernels, list) or not any(
        "measured" in entry for entry in kernels if isinstance(entry, dict)
    ):
        return None
    check(content, Counters, f"{path} has no counters of Nsight Compute", REMEDY)
    return current(content)


def origin(document: Document) -> str:
    """Device, driver, clocks, versions, revision and date of a file, in one line."""
    rows = {"rows": document.get("rows", ())}
    return f"{(document.get('device') or {}).get('name', 'no GPU')}, {provenance_line(document | rows)}"
