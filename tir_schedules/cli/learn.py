"""The verb `learn`: lessons that are graded by executing the learner's file, with no GPU."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tir_schedules.cli.options import Options, Verbs, add_path
from tir_schedules.errors import BadInput

if TYPE_CHECKING:
    from tir_schedules.lessons.desk import Desk
    from tir_schedules.lessons.grading import Grade
    from tir_schedules.lessons.lesson import Lesson

EPILOG = """\
  tir-schedules learn                          the lessons, and how far you are
  tir-schedules learn start 003/coalesced      write the file of a lesson; without a name the next
  tir-schedules learn check                    grade the one started last, with the line of what is missing
  tir-schedules learn check --watch            again whenever the file is saved
  tir-schedules learn hint                     the next hint; when all were shown, all of them again
  tir-schedules learn solution                 a file that passes, and why it does
  tir-schedules learn words                    what sector, wavefront, warp and other words mean
"""


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `learn` to those of the other verbs."""
    verb = verbs.add_parser(
        "learn",
        help="lessons: edit a kernel, and have it graded with no GPU",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = f"{{{','.join(ACTIONS)}}}"
    verb.add_argument("what", nargs="?", metavar=actions, default="list", help="see below (default list)")
    name = "a lesson such as 003/coalesced, or your file of one (default: the one started last)"
    verb.add_argument("lesson", nargs="?", metavar="LESSON", help=name)
    folder = "where your files are (default: this folder if it has a progress.json, else tir-lessons)"
    verb.add_argument("--folder", metavar="FOLDER", type=Path, help=folder)
    verb.add_argument("--again", action="store_true", help="start: keep a copy of your file and begin anew")
    verb.add_argument("--watch", action="store_true", help="check: again whenever the file is saved")
    verb.add_argument("--json", action="store_true", help="list, check: print JSON")
    add_path(verb, "-o", "--out", help="solution: write it to a file")
    verb.set_defaults(verb=learn)


def learn(options: Options) -> int:
    """Run the verb; returns the exit code: 1 where a goal is not met."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait for each other
    from tir_schedules.lessons.desk import open_desk

    if options.what not in ACTIONS:
        raise BadInput(unknown_action(options.what))
    for name, action in (("again", "start"), ("watch", "check"), ("out", "solution")):
        if getattr(options, name) and options.what != action:
            raise BadInput(f"--{name} is for `learn {action}`")
    return ACTIONS[options.what](options, open_desk(options.folder))


def unknown_action(word: str) -> str:
    """What is right in place of a word that is no action, which may be a lesson."""
    from tir_schedules.errors import nearest, shown
    from tir_schedules.lessons.lesson import lesson_ids

    if word in lesson_ids():
        return f"say what to do with the lesson: `tir-schedules learn start {word}`, or check, hint, solution"
    return f"`learn` does not know {shown(word)}{nearest(word, ACTIONS)}; it has {', '.join(ACTIONS)}"


def lesson_of(options: Options, desk: Desk) -> Lesson:
    """The lesson that is named, or that was started last."""
    from tir_schedules.lessons.lesson import find_lesson

    name = options.lesson or desk.current
    if not name:
        raise BadInput("no lesson was started here: `tir-schedules learn start` begins with the first")
    return find_lesson(name)


def list_lessons(options: Options, desk: Desk) -> int:
    from tir_schedules.console import print_line, print_table
    from tir_schedules.lessons.lesson import CHAPTERS, all_lessons

    if options.lesson:
        raise BadInput(f"`learn list` takes no lesson: `learn start {options.lesson}` begins it")
    every = all_lessons()
    if options.json:
        told = [{"lesson": one.id, "title": one.title, **desk.lessons.get(one.id, {})} for one in every]
        print(json.dumps(told, indent=2))
        return 0
    for chapter, about in CHAPTERS.items():
        rows = [(state_of(one, desk), one.id, one.title) for one in every if one.chapter == chapter]
        print_line(about)
        print_table(("", "lesson", "title"), rows, prose={"title": 20}, keys=0)
        print_line()
    done = sum(map(desk.passed, every))
    print_line(f"{done} of {len(every)} passed; {next_step(every, desk)}")
    return 0


def state_of(lesson: Lesson, desk: Desk) -> str:
    if desk.passed(lesson):
        return "passed, fails now" if desk.of(lesson).get("fails") else "passed"
    return "started" if desk.file(lesson).exists() else "-"


def next_step(every: list[Lesson], desk: Desk, behind: str = "") -> str:
    left = next_lesson(every, desk, behind)
    return f"next: tir-schedules learn start {left.id}" if left else "all is done"


def next_lesson(every: list[Lesson], desk: Desk, behind: str = "") -> Lesson | None:
    """The first lesson behind one, and after the last from the beginning, that is not passed."""
    place = next((place for place, one in enumerate(every, 1) if one.id == behind), 0)
    return next((one for one in every[place:] + every[:place] if not desk.passed(one)), None)


def start(options: Options, desk: Desk) -> int:
    from tir_schedules.console import print_line, print_whole
    from tir_schedules.lessons.lesson import all_lessons, find_lesson

    if options.lesson:
        lesson = find_lesson(options.lesson)
    else:
        lesson = next_lesson(all_lessons(), desk)
        if lesson is None:
            raise BadInput("all lessons are passed: name one to start again")
    path, kept = desk.start(lesson, options.again)
    print_line(f"{lesson.id}: {lesson.title}")
    print_line()
    print_whole(lesson.reading)
    print_line()
    for line in lesson.told_goals():
        print_line(line)
    print_line()
    if kept:
        print_line(f"your file is kept as {kept}")
    print_line(f"wrote {path}; edit it, then: tir-schedules learn check")
    print_line("what a word means: tir-schedules learn words")
    return 0


def check(options: Options, desk: Desk) -> int:
    from tir_schedules.cli.watching import watch

    lesson = lesson_of(options, desk)
    file = Path(options.lesson) if options.lesson and Path(options.lesson).is_file() else desk.file(lesson)
    if options.watch:
        return watch(lambda: check_once(options, desk, lesson, file), lambda: [file])
    return check_once(options, desk, lesson, file)


def check_once(options: Options, desk: Desk, lesson: Lesson, file: Path) -> int:
    from tir_schedules.console import print_line
    from tir_schedules.lessons.grading import grade
    from tir_schedules.lessons.lesson import all_lessons

    if not options.json and file.is_file():
        runs = len(lesson.fields["sizes"][0].split(";"))
        print_line(f"{file}: compiled, and executed with {runs} set{'s' * (runs > 1)} of sizes ...")
    found = grade(lesson, file)
    if found.passed or desk.passed(lesson):
        desk.of(lesson).update(passed=True, fails=not found.passed)
        desk.save()
    if options.json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        show(found, "" if not found.passed else next_step(all_lessons(), desk, lesson.id))
    return 0 if found.passed else 1


def show(found: Grade, after: str) -> None:
    """A line for each goal, and below it what is missing."""
    from tir_schedules.console import print_line

    for line in found.lines():
        print_line(line)
    if found.passed:
        print_line(f"{found.lesson.id} is passed; {after}")
    else:
        missing = sum(not one.met for one in found.goals)
        print_line(
            f"{found.lesson.id} is not passed: {missing} goal{'s' * (missing > 1)} missing;"
            f" stuck? tir-schedules learn hint"
        )


def hint(options: Options, desk: Desk) -> int:
    from tir_schedules.console import print_line

    lesson = lesson_of(options, desk)
    state = desk.of(lesson)
    every, before = len(lesson.hints), state.get("hints", 0)
    for number in range(1, every + 1) if before >= every else [before + 1]:
        print_line(f"{number} of {every}: {lesson.hints[number - 1]}")
    state["hints"] = min(before + 1, every)
    desk.save()
    if before + 1 >= every:
        print_line("these are all; tir-schedules learn solution shows a file that passes")
    return 0


def solution(options: Options, desk: Desk) -> int:
    from tir_schedules.console import print_line, print_whole
    from tir_schedules.files import check_folder, write_text

    lesson = lesson_of(options, desk)
    if options.out:
        check_folder(options.out)
        if options.out.exists():
            raise BadInput(f"{options.out} exists and stays as it is: name another file")
        write_text(options.out, lesson.solution)
        print_line(f"wrote {options.out}")
    else:
        print_whole(lesson.solution.rstrip("\n"))
    if lesson.after:
        print_line()
        print_line(lesson.after)
    desk.of(lesson)["solution"] = True
    desk.save()
    return 0


def words(options: Options, desk: Desk) -> int:
    from tir_schedules.console import print_table
    from tir_schedules.lessons.lesson import glossary

    if options.lesson:
        raise BadInput("`learn words` takes no lesson")
    print_table(("word", "meaning"), glossary(), prose={"meaning": 40}, keys=0)
    return 0


ACTIONS = {
    "list": list_lessons, "start": start, "check": check, "hint": hint, "solution": solution, "words": words,
}  # fmt: skip
