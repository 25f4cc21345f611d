# pyright: strict
"""The learner's folder: the files of lessons and, beside them, a small JSON with what has been done."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tir_schedules.errors import BadInput
from tir_schedules.files import check, read_json, write_text
from tir_schedules.lessons.lesson import Lesson

PROGRESS = "progress.json"
USUAL = Path("tir-lessons")


class Done(BaseModel):
    """What has been done of a lesson: see `Desk`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    written: str = ""
    passed: bool = False
    fails: bool = False
    hints: int = 0
    solution: bool = False


class Progress(BaseModel):
    """The progress file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    tir_schedules: Literal["lessons"]
    current: str
    lessons: dict[str, Done]


@dataclass
class Desk:
    """folder: of the learner's files. current: the lesson that was started last. lessons: by name, what has
    been done: "written" (a hash of the file as it was written), "passed", "fails" (whether the last check
    failed although it was passed before), "hints" (how many were shown) and "solution" (whether it was)."""

    folder: Path
    current: str = ""
    lessons: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def of(self, lesson: Lesson) -> dict[str, Any]:
        return self.lessons.setdefault(lesson.id, {})

    def passed(self, lesson: Lesson) -> bool:
        return bool(self.lessons.get(lesson.id, {}).get("passed"))

    def file(self, lesson: Lesson) -> Path:
        return self.folder / lesson.file

    def is_edited(self, lesson: Lesson) -> bool:
        """Whether the learner's file is there and not as it was written."""
        path = self.file(lesson)
        return path.exists() and hash_of(path.read_bytes()) != self.of(lesson).get("written")

    def start(self, lesson: Lesson, again: bool) -> tuple[Path, Path | None]:
        """Write the file of a lesson; also returns where an edited one has been moved to. BadInput for one
        that is edited, unless it is started again."""
        path, kept = self.file(lesson), None
        if self.is_edited(lesson):
            if not again:
                self.current = lesson.id
                self.save()
                raise BadInput(
                    f"{path} has your changes and stays as it is: `tir-schedules learn check {lesson.id}`"
                    f" grades it; `learn start {lesson.id} --again` keeps a copy and begins anew"
                )
            kept = next(name for name in map(path.with_name, copies(path)) if not name.exists())
            path.rename(kept)
        self.folder.mkdir(parents=True, exist_ok=True)
        text = lesson.learners_file()
        write_text(path, text)
        self.of(lesson)["written"] = hash_of(text.encode())
        self.current = lesson.id
        self.save()
        return path, kept

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"tir_schedules": "lessons", "current": self.current, "lessons": self.lessons}
        write_text(self.folder / PROGRESS, json.dumps(told, indent=1, sort_keys=True) + "\n")


def copies(path: Path) -> list[str]:
    return [f"{path.stem}_{number}{path.suffix}" for number in range(1, 1000)]


def hash_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def open_desk(folder: Path | None) -> Desk:
    """The desk in a folder: the one that is named, or this one if it has a progress file, or
    `tir-lessons`. BadInput for a progress file that is not ours."""
    folder = folder or (Path() if (Path() / PROGRESS).is_file() else USUAL)
    path = folder / PROGRESS
    if not path.exists():
        return Desk(folder)
    remedy = "delete it to begin without your progress; your files stay"
    found = read_json(path, remedy)
    check(found, Progress, f"{path} is not what `learn` wrote", remedy)
    return Desk(folder, found["current"], found["lessons"])
