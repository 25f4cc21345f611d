# pyright: strict
"""A lesson, read from its one Markdown file."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.lessons.goals import ANSWER, NO_SPILLS, UNITS, Goal, parse_goal, unit_of

FOLDER = Path(__file__).parent
CHAPTERS = {
    "003": 'from naive to tiled SGEMM: article 003, "choiBLAMS"',
    "002": 'sums: article 002, "Unrolling the Warp"',
    "000": 'warps and registers: article 000, "Warp Tiling"',
    "004": 'banks: article 004, "Why does padding resolve bank conflicts?"',
    "001": 'tensor cores: article 001, "Optimizing Half-Precision GEMM with Tensor Cores"',
    "beyond": "races, Hopper, and work that is shared",
}
"""Folders of lessons, in the order in which they are best taken, and what each is about."""

FIELDS = {"order", "rung", "article", "check", "sizes", "letters", "goal", "arch"}
FIELD = re.compile(r"- (\w+): (.+)")
SECTION = re.compile(r"^## (.+)\n", re.M)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
RANGE = re.compile(r"(\w+)=(\d+)(?:\.\.(\d+)(?:/(\d+))?)?")
ASKED = re.compile(r"^(// answer: (\w+) =) .*$", re.M)
DRAWN = "Some sizes are drawn anew whenever your file changes, so that it has to be right for all."
EXPRESSIONS = (
    "An expression may have + - * / // % ** ( ), comparisons, `a if b else c`, and min, max, cdiv, ceil,"
    " floor, log2, sqrt, abs, int."
)
SUFFIXES = {"cu": ".cu", "python": ".py"}


@dataclass(frozen=True)
class Wrong:
    """A wrong answer. told: words that the grader has to say of it."""

    name: str
    code: str
    told: str


@dataclass(frozen=True)
class Lesson:
    """id: such as "003/coalesced". text: what the learner reads. fields: those of the file's head, each with
    its values. start, solution: the learner's file at first, and one that passes. language: "cu" or
    "python". after: what is said beside the solution."""

    id: str
    title: str
    text: str
    fields: Mapping[str, Sequence[str]]
    start: str
    solution: str
    language: str
    hints: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    after: str = ""
    target: str = ""

    @property
    def chapter(self) -> str:
        return self.id.partition("/")[0]

    @property
    def order(self) -> float:
        return float(self.one("order") or 99)

    @property
    def file(self) -> str:
        """Name of the learner's file."""
        return f"lesson_{self.id.replace('/', '_')}{SUFFIXES[self.language]}"

    @cached_property
    def goals(self) -> list[Goal]:
        try:
            return [parse_goal(text) for text in self.fields.get("goal", ())]
        except BadInput as error:
            raise BadInput(f"{self.id}: {error}") from None

    @property
    def asks(self) -> bool:
        """Whether the learner writes answers about a kernel, rather than the kernel."""
        return any(goal.kind == ANSWER for goal in self.goals)

    @property
    def arch(self) -> str:
        """What kernels are compiled for: all that an H100 has where its time is a goal."""
        timed = any(goal.what == "time" for goal in self.goals)
        return self.one("arch") or ("sm_90a" if timed else "sm_80")

    def one(self, field: str) -> str:
        return next(iter(self.fields.get(field, ())), "")

    def sizes(self, text: str) -> Iterator[dict[str, int]]:
        """Sizes that a file is run with. Those of ranges follow from the file's own text, so that no file
        can be written for them, and the same file is always graded alike."""
        draw = random.Random(sha256(f"{self.id}\n{text}".encode()).digest())
        for group in self.one("sizes").split(";"):
            sizes = {}
            for word in group.split():
                match = RANGE.fullmatch(word)
                if not match:
                    raise BadInput(f"{self.id}: sizes look like M=128 N=32..96/32, not {shown(word)}")
                low, high, step = int(match[2]), int(match[3] or match[2]), int(match[4] or 1)
                sizes[match[1]] = draw.randrange(low, high + 1, step)
            yield sizes

    def check_words(self, sizes: Mapping[str, int]) -> str:
        """The options of `check` for sizes."""
        words = re.sub(r"\{(\w+)\}", lambda match: str(sizes[match[1]]), self.one("check"))
        return f"{words} {' '.join(f'--let {name}={value}' for name, value in sizes.items())}"

    @property
    def reading(self) -> str:
        """The text, and the CUDA that a schedule has to emit, where that is the goal."""
        shown = "\n".join(f"    {line}" for line in self.target.strip().split("\n"))
        return f"{self.text}\n\n{shown}" if self.target else self.text

    def learners_file(self) -> str:
        """What `learn start` writes: the text as a comment, then the code."""
        mark = "//" if self.language == "cu" else "#"
        told = [f"{self.id}: {self.title}", "", *self.reading.split("\n"), "", *self.told_goals(), ""]
        told += [f"Grade it: tir-schedules learn check {self.id}   Stuck: tir-schedules learn hint {self.id}"]
        return "".join(f"{mark} {line}".rstrip() + "\n" for line in told) + "\n" + self.start

    def told_goals(self) -> list[str]:
        """What has to be reached, a line each, and what the letters and units mean."""
        first = "your answers are right" if self.asks else "the result is right, and nothing races"
        told = [first, *(goal.text for goal in self.goals if goal.kind != ANSWER)]
        told += [NO_SPILLS] if any(goal.what == "registers" for goal in self.goals) else []
        notes = [*self.told_letters(), *([DRAWN] if ".." in self.one("sizes") else [])]
        notes += [EXPRESSIONS] if self.asks else []
        return ["Goals:", *(f"  - {line}" for line in told), *(["", *notes] if notes else [])]

    def told_letters(self) -> Iterator[str]:
        """What stands in the goals: sizes, functions and units."""
        if self.one("letters"):
            yield self.one("letters")
        limits = " ".join(goal.text for goal in self.goals)
        if "cdiv(" in limits:
            yield "cdiv(a, b) is a / b, rounded up."
        if "//" in limits:
            yield "a // b is a / b, rounded down."
        yield from dict.fromkeys(
            UNITS[unit] for goal in self.goals for unit in [unit_of(goal)] if unit in UNITS
        )

    def answered(self, text: str) -> dict[str, tuple[str, int]]:
        """Answers by name, and the line of each."""
        found: dict[str, tuple[str, int]] = {}
        for match in ASKED.finditer(text):
            value = match[0].partition("=")[2].strip()
            found[match[2]] = value, text.count("\n", 0, match.start()) + 1
        return found


def parse_lesson(id: str, content: str) -> Lesson:
    """A lesson from the text of its file. BadInput for one that is not written as README.md says."""
    head, *sections = SECTION.split(content)
    lines = head.strip().split("\n")
    if not lines[0].startswith("# "):
        raise BadInput(f"{id}: a lesson begins with `# TITLE`")
    fields: dict[str, list[str]] = {}
    text: list[str] = []
    for line in lines[1:]:
        match = FIELD.fullmatch(line)
        if match and not any(text):
            if match[1] not in FIELDS:
                raise BadInput(f"{id}: there is no field {match[1]!r}{nearest(match[1], FIELDS)}")
            fields.setdefault(match[1], []).append(match[2])
        else:
            text.append(line)
    pairs = list(zip(sections[::2], sections[1::2]))
    parts = {name: body for name, body in pairs if not name.startswith(("Wrong", "Hint"))}
    for needed in ("Start", "Solution"):
        if needed not in parts or not FENCE.search(parts[needed]):
            raise BadInput(f"{id}: a lesson has `## {needed}` with code between ``` lines")
    start, solution = (FENCE.search(parts[name]) for name in ("Start", "Solution"))
    assert start and solution
    solved = edited(id, start[2], solution[1], solution[2])
    target = FENCE.search(parts.get("Target", ""))
    wrong = [wrong_of(id, name, body, solved) for name, body in pairs if name.startswith("Wrong")]
    hints = tuple(body.strip() for name, body in pairs if name.startswith("Hint"))
    return Lesson(
        id, lines[0][2:].strip(), "\n".join(text).strip(), fields, start[2], solved, start[1], hints,
        tuple(wrong), FENCE.sub("", parts["Solution"]).strip(), target[2] if target else "",
    )  # fmt: skip


def wrong_of(id: str, name: str, body: str, solution: str) -> Wrong:
    """A section `## Wrong: NAME -> WORDS`, whose code is whole or a change of the solution."""
    title, arrow, told = name.partition(":")[2].partition("->")
    fence = FENCE.search(body)
    if not arrow or not fence:
        raise BadInput(
            f"{id}: a wrong answer is `## Wrong: NAME -> WORDS OF THE GRADER` with code, not {name!r}"
        )
    return Wrong(title.strip(), edited(id, solution, fence[1], fence[2]), told.strip())


def edited(id: str, text: str, language: str, code: str) -> str:
    """Code that is whole, or a change of a text: `diff` has lines - and + of places that stand apart by empty
    lines, `answers` has lines NAME = EXPRESSION."""
    if language == "answers":
        answers = dict(line.split(" = ", 1) for line in code.strip().split("\n"))
        return ASKED.sub(lambda match: f"{match[1]} {answers.get(match[2], '?')}", text)
    if language != "diff":
        return code
    text = f"\n{text}"
    for place in re.split(r"\n\s*\n", code.strip("\n")):
        lines = place.split("\n")
        old, new = ("\n".join(line[1:] for line in lines if line[:1] == sign) for sign in "-+")
        if text.count(f"\n{old}\n") != 1:
            raise BadInput(f"{id}: a change is of lines that stand once in the solution, not {shown(old)}")
        text = text.replace(f"\n{old}\n", f"\n{new}\n" if new else "\n")
    return text[1:]


def lesson_ids() -> list[str]:
    """All lessons, in the order in which they are best taken."""
    return [lesson.id for lesson in all_lessons()]


def all_lessons() -> list[Lesson]:
    found = [read_lesson(f"{path.parent.name}/{path.stem}") for path in FOLDER.glob("*/*.md")]
    places = [*CHAPTERS]
    return sorted(found, key=lambda lesson: (places.index(lesson.chapter), lesson.order, lesson.id))


def read_lesson(id: str) -> Lesson:
    return parse_lesson(id, (FOLDER / f"{id}.md").read_text(encoding="utf-8"))


def find_lesson(name: str) -> Lesson:
    """A lesson by its name, or by the learner's file. BadInput where there is no lesson of that name."""
    known = {f"{path.parent.name}/{path.stem}" for path in FOLDER.glob("*/*.md")}
    stem = Path(name).name.partition(".")[0]
    for id in known:
        if name == id or stem == f"lesson_{id.replace('/', '_')}":
            return read_lesson(id)
    hint = nearest(name, sorted(known)) or nearest(name, sorted(id.partition("/")[2] for id in known))
    raise BadInput(f"there is no lesson {shown(name)}{hint}; `tir-schedules learn` lists them")


def glossary() -> list[tuple[str, str]]:
    """Words and what they mean."""
    lines = (FOLDER / "GLOSSARY.md").read_text(encoding="utf-8").split("\n")
    rows = [line.strip("| ").split(" | ", 1) for line in lines if line.startswith("| ")]
    return [(word, meaning) for word, meaning in rows[2:]]
