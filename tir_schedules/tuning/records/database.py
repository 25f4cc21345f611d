"""The file that keeps records, those of it that count, and the files that come with this package.

A file is trusted to be what some search wrote, never to be true of this computer: see measure.validation.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Iterable

from tir_schedules.files import fault_of
from tir_schedules.ladders.registry import current
from tir_schedules.tuning.records import journal
from tir_schedules.tuning.records.record import MEASURED, Record
from tir_schedules.tuning.space.points import key

SHIPPED = Path(__file__).parent / "shipped"


class Database:
    """The records in a file, one JSON object per line (see journal.py). Several processes may append to it.

    Opening reads all of it and changes nothing. A file that does not exist is empty; the first record makes
    it. BadInput for a path that cannot be one, or a file of another kind; Damaged, naming the line and why,
    for a line that is not a record, or was changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.records()

    def append(self, record: Record) -> None:
        """Add a record; it is on the disk when this returns."""
        journal.append(self.path, asdict(record))

    def records(self) -> list[Record]:
        """All records that are in the file now, in the order they were added."""
        return [self._record(number, entry) for number, entry in enumerate(journal.load(self.path), 1)]

    def _record(self, number: int, entry: journal.Entry) -> Record:
        from tir_schedules.subjects.schemas import Record as Schema  # pydantic takes long to import

        try:
            fault = fault_of(entry, Schema)
            if fault:
                raise ValueError(f"it is not a record: {fault}")
            record = Record(**entry)
            return replace(record, rung=current(record.rung), point=current(record.point))
        except ValueError as error:
            raise journal.bad_line(self.path, number, error) from None


def latest(records: Iterable[Record]) -> list[Record]:
    """The last record of each point of each task: a search times the fastest again at its end."""
    return list({(record.task.key, key(record.point)): record for record in records}.values())


def best(records: Iterable[Record], **where: object) -> Record | None:
    """The one with the lowest median time; None when all were refused. where: values that fields must have.

    Times are not compared with predictions: as soon as one is measured, only what is measured counts.
    """
    timed = (record for record in latest(records) if not record.error)
    fit = [record for record in timed if all(getattr(record, name) == value for name, value in where.items())]
    measured = [record for record in fit if record.kind == MEASURED]
    return min(measured or fit, key=lambda record: record.median, default=None)


def shipped(device: str) -> Path:
    """Where the records for a GPU, "NVIDIA H200", are that come with this package, if there are any."""
    return SHIPPED / f"{re.sub(r'[^a-z0-9]+', '_', device.lower()).strip('_')}.jsonl"


def shipped_records(device: str) -> list[Record]:
    """The records for a GPU that come with this package; none for most."""
    path = shipped(device)
    return Database(path).records() if path.exists() else []


def own_records() -> Path:
    """Where `tune` keeps records unless told otherwise."""
    import platformdirs

    return Path(platformdirs.user_data_dir("tir_schedules")) / "records.jsonl"
