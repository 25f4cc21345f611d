# pyright: strict
"""A learner's file graded: it is executed with several sizes, and what a goal is missing is told."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from tir_schedules.check.expressions import number
from tir_schedules.check.options import parse_comment, request_of
from tir_schedules.check.preparing import Request
from tir_schedules.check.session import Checked, check_requests, prepare_requests
from tir_schedules.compiler.source_text import shown_name
from tir_schedules.errors import BadInput, CheckFailed, one_line, printable
from tir_schedules.files import Json, to_json, write_text
from tir_schedules.insight.times.timed import Timed, target_of, time_prepared
from tir_schedules.lessons.dependence import unneeded
from tir_schedules.lessons.goals import (
    ANSWER,
    CODE,
    COUNT,
    NEED,
    NO_SPILLS,
    RESOURCES,
    SHOWN,
    TIME,
    WAYS,
    Goal,
    costly_lines,
    counter,
    counters_of,
    measured,
    met,
    same_code,
    sizes_text,
)
from tir_schedules.lessons.lesson import Lesson
from tir_schedules.lessons.schedules import emitted_source
from tir_schedules.machines.choice import choose
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.kernels import linked
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.sources import Sources
from tir_schedules.source import Source, read_source
from tir_schedules.verdicts import CELLS, FAIL, HAZARD, LOOSE, PASS

ORDERS = 2
BUDGET = 1 << 22
"""Instructions that a warp may execute: a hundred times those of any solution."""

FOLLOWED = 0.1
"""The share of a kernel's instructions that the simulated block, times the blocks, may leave out."""

VERDICTS = {
    FAIL: ": values are wrong",
    HAZARD: ": values are right here, but may be wrong on a GPU",
    LOOSE: ": values are within the tolerance, but so would be those of a kernel that leaves elements out",
}
"""What verdicts mean."""

FAULTS = 3
"""Faults that are told of one run."""

MEETINGS = ("race", "in_flight")
"""Findings of two accesses that meet. They are told first, because a deadlock is often what comes of them."""

OF_NVCC = re.compile(r"(\S+)\((\d+)\): (error: .*?)(?= \S+\(\d+\): | \d+ errors? detected|$)")
"""An error of nvcc: file, line and what it says."""

Sizes = dict[str, int]


@dataclass(frozen=True)
class Judged:
    """A goal, whether it is met, and what is missing, a line each."""

    goal: str
    met: bool
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grade:
    """What became of a learner's file."""

    lesson: Lesson
    file: str
    goals: tuple[Judged, ...] = field(default=())

    @property
    def passed(self) -> bool:
        return all(one.met for one in self.goals)

    def lines(self) -> Iterator[str]:
        """A line for each goal, and below it what is missing."""
        for one in self.goals:
            yield f"{'  ok   ' if one.met else 'MISSING'}  {one.goal}"
            yield from (f"           {printable(line)}" for line in one.told)

    def as_json(self) -> Json:
        return to_json(
            {"lesson": self.lesson.id, "file": self.file, "passed": self.passed, "goals": self.goals}
        )


def grade(lesson: Lesson, file: Path) -> Grade:
    """Grade a learner's file. BadInput where there is none."""
    if not file.is_file():
        raise BadInput(f"there is no {file}: `tir-schedules learn start {lesson.id}` writes it")
    return grade_text(lesson, file, read_text(file))


def grade_text(lesson: Lesson, file: Path, text: str) -> Grade:
    judge = judge_answers if lesson.asks else judge_kernel
    return Grade(lesson, str(file), tuple(judge(lesson, file, text)))


def read_text(file: Path) -> str:
    source = read_source(file.with_suffix(".cu") if file.suffix != ".py" else file)
    return source.text


# ---- answers
def judge_answers(lesson: Lesson, file: Path, text: str) -> Iterator[Judged]:
    """Answers are expressions of the sizes, compared with what the lesson's own kernel counts."""
    answers = lesson.answered(text)
    source = Source(lesson.start, "the lesson's kernel")
    runs = run_all(lesson, source, [*lesson.sizes(text)])
    for goal in lesson.goals:
        if goal.kind == ANSWER:
            yield judge_answer(goal, file, answers.get(goal.name), runs)


def judge_answer(
    goal: Goal, file: Path, answer: tuple[str, int] | None, runs: Sequence[tuple[Sizes, Checked]]
) -> Judged:
    unit = RESOURCES.get(goal.what) or counter(goal.what).unit
    asked = f"{goal.name}: {goal.what}, {unit}"
    if answer is None:
        return Judged(asked, False, (f"{file.name}: write the line `// answer: {goal.name} = ...` again",))
    value, line = answer
    place = f"{file.name}:{line}"
    if value.strip("?. ") == "":
        told = f"{place}: write an expression of {' and '.join(runs[0][0])} here"
        return Judged(asked, False, (told,))
    for sizes, checked in runs:
        counted = measured(goal.what, checked)
        try:
            said = number(value, sizes, goal.name)
        except BadInput as error:
            return Judged(asked, False, (f"{place}: {one_line(error)}",))
        if said != counted:
            wrong = f"{place}: {value} is {said:,} with {sizes_text(sizes)}, which is not what was counted"
            return Judged(asked, False, (wrong,))
    return Judged(asked, True)


# ---- kernels
def judge_kernel(lesson: Lesson, file: Path, text: str) -> Iterator[Judged]:
    """Every run has to be right before any goal is looked at."""
    every = [*lesson.sizes(text)]
    right = f"right with {'; '.join(map(sizes_text, every))}"
    runs: list[tuple[Sizes, Checked]] = []
    try:
        sources = source_of(lesson, file, text, every)
        keep_emitted(lesson, file, sources[0])
        for source, (sizes, checked) in zip(sources, running(lesson, sources, every)):
            if checked.outcome.word != PASS:
                keep_emitted(lesson, file, source)
                yield Judged(right, False, tuple(faults_of(lesson, sizes, checked)))
                return
            runs.append((sizes, checked))
    except (BadInput, CheckFailed) as error:
        yield Judged(right, False, (misfit(lesson, file, text, error),))
        return
    yield Judged(right, True)
    yield from no_spills(lesson, runs)
    for goal in lesson.goals:
        if goal.kind == COUNT:
            yield judge_count(goal, runs)
        elif goal.kind == TIME:
            yield judge_time(lesson, goal, runs[0], file)
        elif goal.kind == NEED:
            yield judge_need(goal, runs)
        elif goal.kind == CODE:
            yield judge_code(lesson, goal, runs[0][1])


def source_of(lesson: Lesson, file: Path, text: str, every: Sequence[Sizes]) -> list[Source]:
    """The CUDA that is run with each of the sizes: the file's, or what its schedule emits."""
    if lesson.language == "cu":
        return [Source(text, file.name, str(file.absolute().parent))] * len(every)
    return [emitted_source(lesson, file, sizes) for sizes in every]


def keep_emitted(lesson: Lesson, file: Path, source: Source) -> None:
    """Write the CUDA of a schedule beside its file, so that lines of it that are named can be read."""
    if lesson.language == "python":
        write_text(file.with_name(source.file), source.text)


def running(
    lesson: Lesson, sources: Sequence[Source], every: Sequence[Sizes]
) -> Iterator[tuple[Sizes, Checked]]:
    requests = [request_for(lesson, source, sizes) for source, sizes in zip(sources, every)]
    return zip(every, check_requests(requests, machine_of(ORDERS)))


def machine_of(orders: int) -> CpuMachine:
    machine = choose("cpu", orders)
    assert isinstance(machine, CpuMachine), "it is called cpu"
    return machine.limited(orders, BUDGET)


def run_all(lesson: Lesson, source: Source, every: Sequence[Sizes]) -> list[tuple[Sizes, Checked]]:
    return [*running(lesson, [source] * len(every), every)]


def request_for(lesson: Lesson, source: Source, sizes: Mapping[str, int]) -> Request:
    """What is asked of a kernel. What the learner's file says by `// check:` is not looked at."""
    words = shlex.split(lesson.check_words(sizes))
    if lesson.language == "python":
        words += shlex.split(source.flags[0])
        source = replace(source, flags=())
    return request_of(parse_comment(words, lesson.id), source, lesson.arch)


def faults_of(lesson: Lesson, sizes: Sizes, checked: Checked) -> Iterator[str]:
    """Why a run is not right."""
    outcome = checked.outcome
    compiler = [f"{file}:{line}: {told}" for file, line, told in OF_NVCC.findall(one_line(outcome.error))]
    if compiler:
        yield from compiler[:FAULTS]
        return
    findings = sorted(outcome.findings, key=lambda finding: finding.kind not in MEETINGS)
    told = replace(outcome, findings=tuple(findings))
    faults = [*told.faults] or [*told.unshown]
    yield from (one_line(fault) for fault in faults[:FAULTS])
    if len(faults) > FAULTS:
        yield f"and {len(faults) - FAULTS} more: mend these first"
    if any(finding.kind == "race" for finding in outcome.findings):
        yield "if both lines are in a loop, one access may be of this turn and the other of the next"
    if not outcome.error:
        yield f"the verdict is {CELLS[outcome.word]} with {sizes_text(sizes)}{VERDICTS.get(outcome.word, '')}"
    if any(finding.kind == "endless_loop" for finding in outcome.findings):
        yield f"a warp had executed {BUDGET:,} instructions, many times those of the solution"


def misfit(lesson: Lesson, file: Path, text: str, error: Exception) -> str:
    """Why a file cannot be run as the lesson runs it."""
    told = one_line(error)
    if lesson.language == "python" or re.match(rf"{re.escape(file.name)}:\d", told):
        return told
    kernels = [text.count("\n", 0, match.start()) + 1 for match in re.finditer(r"\b__global__\b", text)]
    place = f"{file.name}:{kernels[0]}" if kernels else file.name
    heads = re.findall(r"__global__[^{;]*\)(?=\s*\{)", lesson.start)
    return f"{place}: {told}; the lesson launches `{'` and `'.join(map(one_line, heads))}`"


def no_spills(lesson: Lesson, runs: Sequence[tuple[Sizes, Checked]]) -> Iterator[Judged]:
    """Registers that are saved by spilling them are not saved."""
    if any(goal.what == "registers" for goal in lesson.goals):
        spilled = measured("spilled bytes", runs[0][1])
        stack = max(step.binary.resources.stack for step in runs[0][1].steps)
        if spilled or stack:
            told = (
                f"values are spilled: a thread keeps {stack} bytes of them in its stack, and the instructions"
                f" that store and load them move {spilled} bytes"
            )
            yield Judged(NO_SPILLS, False, (told,))


def judge_count(goal: Goal, runs: Sequence[tuple[Sizes, Checked]]) -> Judged:
    for sizes, checked in runs:
        value, limit = measured(goal.what, checked), number(goal.limit, sizes, goal.what)
        if not met(goal, value, limit):
            aim = (
                f"{WAYS[goal.sign]} {limit:,.0f} is the goal"
                if not goal.hidden
                else goal.text.partition(": ")[2]
            )
            told = f"{value:,} with {sizes_text(sizes)}; {aim}"
            return Judged(goal.text, False, (told, *costly_lines(goal.what, checked)))
    values = ", ".join(f"{measured(goal.what, checked):,}" for _, checked in runs)
    return Judged(f"{goal.text}; counted: {values}", True)


def judge_need(goal: Goal, runs: Sequence[tuple[Sizes, Checked]]) -> Judged:
    """The run that has the least to do is made again without the mechanism."""
    sizes, checked = min(runs, key=lambda run: sum(one.warp_instructions for one in counters_of(run[1])))
    told = [f"{line} ({sizes_text(sizes)})" for line in unneeded(goal.what, checked, machine_of(1))]
    return Judged(goal.text, not told, tuple(told))


def judge_time(lesson: Lesson, goal: Goal, run: tuple[Sizes, Checked], file: Path) -> Judged:
    """The predicted time with the first sizes, beside that of the lesson's start or beside a number."""
    sizes, checked = run
    now = timed(checked)
    if not now.prediction:
        return Judged(goal.text, False, (f"no time is predicted: {now.reason}",))
    assert now.microseconds, "it is predicted"
    limit, _, unit = goal.limit.partition(" ")
    told, wanted = f"{now.microseconds:.2f} us with {sizes_text(sizes)}", float(limit)
    if not unit:
        before = timed_start(lesson, sizes).microseconds
        assert before, "that of the start is predicted"
        told = f"{told} are {now.microseconds / before:.0%} of {before:.2f} us"
        wanted = before * wanted / 100
    pairs = zip(now.prediction.launches, checked.steps)
    followed = sum(one.works[one.place] * prod(step.binary.kernel.grid) for one, step in pairs)
    counted = sum(one.warp_instructions for one in counters_of(checked))
    if followed < (1 - FOLLOWED) * counted:
        told = (
            f"no time is known: the simulated block executes {followed:,} instructions, times the number of"
            f" blocks, and all blocks together {counted:,}"
        )
        return Judged(goal.text, False, (told,))
    uneven = [one for one in now.prediction.launches if one.works[one.place] < max(one.works.values())]
    if uneven:
        works = ", ".join(f"{place}: {work:,}" for place, work in uneven[0].works.items())
        told = f"no time is known: the simulated block has less to do than others: {works} instructions"
        return Judged(goal.text, False, (told,))
    if now.microseconds <= wanted:
        return Judged(f"{goal.text} ({told})", True)
    costly = [f"{file.name}:{number}: {line.strip()}" for number, line in slowest(now)]
    return Judged(goal.text, False, (told, *(["where warps spend most of it:"] if costly else []), *costly))


def slowest(now: Timed) -> list[tuple[int, str]]:
    """The lines of the kernel itself in which warps spend most cycles: of a call, all that the call does."""
    binary, cycles = now.binaries[now.costliest], Counter[tuple[int, str]]()
    sources = Sources(binary, linked(the_library(), binary.ptx, binary.kernel.entry).lowered)
    for line, reasons in now.launch.by_line("ptx").items():
        place = sources.outermost(line)
        if place.line and place.file == shown_name(binary.kernel):
            cycles[place.line, place.text] += sum(reasons.values())
    return [place for place, spent in cycles.most_common(SHOWN) if spent]


def timed(checked: Checked) -> Timed:
    assert checked.prepared is not None, "it has run"
    return time_prepared(checked.prepared, target_of())


def timed_start(lesson: Lesson, sizes: Sizes) -> Timed:
    request = request_for(lesson, Source(lesson.start, "start.cu"), sizes)
    ((_, ready),) = prepare_requests([request], choose("cpu", 1))
    assert not isinstance(ready, CheckFailed), f"{lesson.id}: {ready}"
    return time_prepared(ready, target_of())


def judge_code(lesson: Lesson, goal: Goal, checked: Checked) -> Judged:
    assert checked.prepared is not None, "it has run"
    found = same_code(checked.prepared.request.source.text, lesson.target)
    if not found:
        return Judged(goal.text, True)
    line, mine, wanted = found
    place = f"{checked.prepared.request.source.file}:{line}"
    told = f"{place}: {mine or 'ends here'}", f"the lesson's in its place: {wanted or 'ends here'}"
    return Judged(goal.text, False, told)
