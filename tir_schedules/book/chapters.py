"""What a chapter shows of a rung: its words, its code with executed counts, figures, costs and lessons."""

from __future__ import annotations

import ast
import importlib
import inspect as python
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from types import ModuleType
from typing import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup

from tir_schedules.book.figures import Figure, figures_of, warps_in_time
from tir_schedules.errors import BadInput, CheckFailed, nearest
from tir_schedules.insight.inspection.listing import AnnotatedLine, annotate_lines, extent
from tir_schedules.insight.inspection.twins import Inspection, inspect
from tir_schedules.insight.inspection.views import LINE_COUNTERS, counters_of
from tir_schedules.insight.metrics.counting import GLOBAL, SHARED, Metrics
from tir_schedules.insight.metrics.formats import pair, ratio
from tir_schedules.insight.times.timed import target_of
from tir_schedules.ladders.known import FAMILIES, GROUP, package_rungs, rung_names, rungs_beside
from tir_schedules.ladders.problems import SMALL_SHAPES, Job, Problem, takes, workload_of
from tir_schedules.lessons.lesson import Lesson, all_lessons
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.rung import Rung
from tir_schedules.pages.code import HighlightedSource, highlighted_lines
from tir_schedules.subjects.compiling import compile_jobs

MEASURED = re.compile(r"\d ?(?:%|TFLOPS|GFLOPS|GB/s|us\b|ms\b)|\bon an H\d+\b", re.I)
"""A measured figure. A docstring's sentence that has one is left out, and what follows it in its paragraph,
because no file of results proves it; what is recorded stands in the chapter."""

HEADS = {0: "instr.", 1: "wavefronts|(ideal)", 3: "sectors /|request"}
"""Place in LINE_COUNTERS -> what stands above it."""

CONFLICTS = LINE_COUNTERS.index("conflicts")

SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z`(])")


@dataclass(frozen=True)
class Line:
    """A line of code. cells: of LINE_COUNTERS."""

    number: str
    code: Markup
    cells: tuple[str, ...] = ()

    @property
    def conflicts(self) -> str:
        return self.cells[CONFLICTS] if self.cells else ""


CALLED = Line("", Markup("<i>Lines of functions that the kernel calls:</i>"), ("",) * len(LINE_COUNTERS))


@dataclass(frozen=True)
class Code:
    """title: what it is. file: where it stands."""

    title: str
    file: str
    lines: tuple[Line, ...]

    @property
    def columns(self) -> list[int]:
        """The columns of LINE_COUNTERS that some line has, except conflicts, which mark the wavefronts."""
        cells = [one.cells for one in self.lines if one.cells]
        return [at for at in HEADS if any(each[at] for each in cells)]

    @property
    def heads(self) -> list[str]:
        return ["line#", *(f"{HEADS[at]}#" for at in self.columns), "source"]


@dataclass(frozen=True)
class Chapter:
    """words: Markdown. costs: rows of a name and the cells of schedule and twin. reasons: why a form is not
    there."""

    rung: Rung
    words: str
    workload: str
    figures: tuple[Figure, ...]
    codes: tuple[Code, ...]
    costs: tuple[tuple[str, tuple[str, ...]], ...]
    forms: tuple[str, ...]
    lessons: tuple[Lesson, ...]
    reasons: tuple[str, ...]
    findings: tuple[str, ...]
    arch: str

    @property
    def name(self) -> str:
        return self.rung.id

    @property
    def heads(self) -> list[str]:
        return [f"{form}#" for form in self.forms]


def chapter_rungs(names: Sequence[str] = ()) -> list[Rung]:
    """The rungs of the book, in the order of its chapters; some of them by name. BadInput for a name that the
    book does not have."""
    every = [rung for family in FAMILIES for rung in (*package_rungs(family), *rungs_beside(family))]
    known = {rung.id for rung in every}
    for name in names:
        if name not in (*known, *FAMILIES):
            raise BadInput(
                f"the book has no chapter {name!r}{nearest(name, [*known, *FAMILIES])}; `tir-schedules list`"
                " shows its rungs"
            )
    return [rung for rung in every if not names or rung.id in names or rung.family in names]


def job_of(rung: Rung) -> Job:
    """A rung on the small shape of its ladder, or on the part of it that the rung takes."""
    whole = SMALL_SHAPES[rung.family][0]
    for shape in (whole, (1, *whole[1:])):
        workload = workload_of(rung, Problem(rung.family, shape))
        if takes(rung, workload):
            return rung, workload
    raise CheckFailed(f"{rung.id} takes no small shape")


def chapters_of(rungs: Sequence[Rung], said: Callable[[str], None] = lambda name: None) -> list[Chapter]:
    """Each rung compiled, executed on the CPU machine and drawn. said: called with each rung that is
    done."""
    lessons, target = all_lessons(), target_of()
    found = {one.rung.id: one for one in inspect([*map(job_of, rungs)], CPU_ARCH)}
    overlapping = [one for one in rungs if overlaps(found[one.id])]
    compiled = compile_jobs([*map(job_of, overlapping)], target.arch)[0] if overlapping else []
    subjects = {one.name: one for one in compiled if one.form == "schedule"}

    def made(rung: Rung) -> Chapter:
        subject = subjects.get(rung.id)
        in_time = [*warps_in_time(subject, target)] if subject else []
        chapter = chapter_of(found[rung.id], [one for one in lessons if one.one("rung") == rung.id], in_time)
        said(rung.id)
        return chapter

    with ThreadPoolExecutor(cpu_count()) as pool:
        return [*pool.map(made, rungs)]


def overlaps(found: Inspection) -> bool:
    """Whether copies are under way while a warp computes, and no mbarrier shows in which order."""
    if "schedule" not in found.kernels:
        return False
    ptx = found.own("schedule").binary.ptx
    return "mbarrier" not in ptx and (
        "cp.async" in ptx or "pipeline" in python.getsource(module_of(found.rung))
    )


def module_of(rung: Rung) -> ModuleType:
    return importlib.import_module(f"{GROUP}.{rung.family}.{rung.name}")


def chapter_of(found: Inspection, lessons: Sequence[Lesson], in_time: Sequence[Figure] = ()) -> Chapter:
    """in_time: figures from a prediction."""
    rung = found.rung
    module = module_of(rung)
    forms = tuple(found.kernels)
    figures: list[Figure] = []
    if "schedule" in forms:
        binaries = [one.binary for one in found.kernels["schedule"]]
        figures = figures_of(binaries, found.place, found.workload)
    own = {form: found.own(form) for form in forms}
    return Chapter(
        rung, proven(python.getdoc(module) or ""), str(found.workload), (*figures, *in_time),
        (schedule_code(rung, python.getsource(module)), *(kernel_code(rung, one, own[one]) for one in forms)),
        tuple(costs_of(own)), forms, tuple(lessons),
        tuple(f"{form}: {reason}" for form, reason in found.refused.items()),
        tuple(dict.fromkeys(str(finding) for one in own.values() for finding in one.findings)),
        str(found.arch),
    )  # fmt: skip


def proven(text: str) -> str:
    """A docstring without figures that were measured. The first line is the chapter's own."""
    kept = list[str]()
    for paragraph in text.split("\n\n"):
        sentences = SENTENCE.split(paragraph)
        measured = next((at for at, one in enumerate(sentences) if MEASURED.search(one)), len(sentences))
        said = " ".join(sentences[:measured]) if measured < len(sentences) else paragraph
        if kept and said != paragraph:  # what a colon announces is not whole
            kept[-1] = re.sub(r":$", ".", kept[-1])
        kept += [re.sub(r":$", ".", said) if said != paragraph else said] if said.strip() else []
    return "\n\n".join(kept)


def schedule_code(rung: Rung, source: str) -> Code:
    """A rung's file from its first statement on that is not an import."""
    tree = ast.parse(source).body
    skipped = (ast.Import, ast.ImportFrom)
    first = next(
        node for node in tree[1:] if not isinstance(node, skipped) and getattr(node, "end_lineno", 0)
    )
    start = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
    lines = highlighted_lines(source, "python")
    shown = tuple(Line(str(at), line) for at, line in enumerate(lines[start - 1 :], start))
    return Code("The schedule", f"tir_schedules/ladders/{rung.family}/{rung.name}.py", trimmed(shown))


def kernel_code(rung: Rung, form: str, metrics: Metrics) -> Code:
    """A kernel, each line with what it cost."""
    kernel = metrics.binary.kernel
    lines = [line for line in annotate_lines(metrics) if line.text or not line.file]
    source, inside = HighlightedSource(kernel.source, "cu"), extent(kernel)

    def shown_lines(several: Iterable[AnnotatedLine]) -> Iterator[Line]:
        for line in several:
            yield Line(line.place, source.line(line.row, line.text), counters_of(line))

    own = [line for line in lines if line.row in inside]
    called = [line for line in lines if line not in own]
    between = (CALLED,) if called else ()
    shown = (*trimmed(tuple(shown_lines(own))), *between, *shown_lines(called))
    title = "The CUDA that TVM emits" if form == "schedule" else "The twin, by hand"
    file = "" if form == "schedule" else f"cuda_reference/{rung.family}/{rung.name}.cu"
    return Code(title, file, trimmed(shown))


def trimmed(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    while lines and not lines[-1].code.strip():
        lines = lines[:-1]
    return lines


def costs_of(own: dict[str, Metrics]) -> list[tuple[str, tuple[str, ...]]]:
    """What each form costs, counted and compiled."""

    def row(name: str, value: Callable[[Metrics], str]) -> tuple[str, tuple[str, ...]]:
        return name, tuple(map(value, own.values()))

    return [
        row("registers per thread", lambda one: f"{one.binary.resources.registers:,}"),
        row("shared memory per block, bytes", lambda one: f"{one.binary.shared_bytes:,}"),
        row("warps per SM", lambda one: f"{one.occupancy.warps} of {one.occupancy.max_warps}"),
        row("wavefronts of shared memory (ideal)", lambda one: pair(one.access(*SHARED))),
        row("sectors of global memory (ideal)", lambda one: pair(one.access(*GLOBAL))),
        row("sectors per request", lambda one: ratio(one.access(*GLOBAL).cost, one.access(*GLOBAL).requests)),
        row("instructions of warps", lambda one: f"{one.counters.warp_instructions:,}"),
    ]


def nearest_below(rung: Rung) -> list[str]:
    """The rungs before one, the nearest last."""
    names = [f"{rung.family}/{name}" for name in rung_names(rung.family)]
    return names[: names.index(rung.id)] if rung.id in names else names
