# pyright: strict
"""Lessons in a notebook: `lessons` has their texts, and `learn` grades an answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Iterator, Mapping

from tir_schedules.api.results import Result
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, shown
from tir_schedules.files import Json
from tir_schedules.lessons.lesson import CHAPTERS, Lesson, all_lessons, find_lesson


@dataclass(frozen=True, repr=False)
class Lessons(Result, Mapping[str, Lesson]):
    """Lessons by their names, in the order in which they are best taken. A lesson has `title`, `reading` (its
    text), `start` (code to edit), `hints` and `solution`; `told_goals()` lists its goals."""

    every: Mapping[str, Lesson]

    def __getitem__(self, name: str) -> Lesson:
        return self.every[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.every)

    def __len__(self) -> int:
        return len(self.every)

    def __repr__(self) -> str:
        return f"Lessons({len(self)} lessons)"

    def show(self) -> None:
        rows = [(one.id, one.title, CHAPTERS[one.chapter]) for one in self.every.values()]
        print_table(("lesson", "title", "about"), rows, prose={"title": 20, "about": 20}, keys=0)

    def to_json(self) -> list[Json]:
        return [{"lesson": one.id, "title": one.title} for one in self.every.values()]


@dataclass(frozen=True, repr=False)
class Graded(Result):
    """An answer to a lesson, graded. ok: whether all goals are met. grade: `grade.goals` has each goal,
    whether it is met, and what is missing."""

    grade: Any

    @property
    def ok(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.grade.passed

    def __repr__(self) -> str:
        return f"Graded({self.grade.lesson.id}: {'passed' if self.ok else 'not passed'})"

    def show(self) -> None:
        for line in self.grade.lines():
            print_line(line)
        print_line(f"{self.grade.lesson.id} is {'' if self.ok else 'not '}passed")

    def to_json(self) -> Json:
        return self.grade.as_json()


def lessons() -> Lessons:
    """All lessons. `print(lessons()["003/coalesced"].reading)` shows the text of one, and its `start` is the
    code to edit."""
    return Lessons({one.id: one for one in all_lessons()})


def learn(lesson: str, code: str | Path) -> Graded:
    """Grade an answer to a lesson by executing it, with no GPU.

    - lesson: its name, such as "003/coalesced".
    - code: the edited text of the lesson's `start`, or the path of a file that has it. A lesson about a
      schedule runs your Python as it is, like a script.

    Raises BadInput if the lesson or the file does not exist.
    """
    from tir_schedules.lessons.grading import grade

    if not isinstance(lesson, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"lesson is {shown(repr(lesson))}; it takes a name such as '003/coalesced'")
    one = find_lesson(lesson)
    if not isinstance(code, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise no_code(one, code)
    if isinstance(code, Path) or ("\n" not in code and code.endswith((".cu", ".py"))):
        return Graded(grade(one, Path(code)))
    if not code.strip():
        raise no_code(one, code)
    with TemporaryDirectory() as folder:
        file = Path(folder) / one.file
        file.write_text(code, encoding="utf-8")
        return Graded(grade(one, file))


def no_code(lesson: Lesson, given: object) -> BadInput:
    takes = f"the edited text of lessons()[{lesson.id!r}].start, or the path of a file"
    return BadInput(f"code is {shown(repr(given))}; it takes {takes}")
