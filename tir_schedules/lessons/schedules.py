# pyright: strict
"""Schedules that learners write: a rung of one's own, loaded from its file and lowered to CUDA."""

from __future__ import annotations

import ast
import shlex
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generator, Mapping, NoReturn

from tir_schedules.emit import without_unused
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.own import at_path
from tir_schedules.ladders.problems import Problem, workload_of
from tir_schedules.lessons.lesson import Lesson
from tir_schedules.model.rung import Rung
from tir_schedules.source import Source

SECONDS = 30
"""A schedule may take. The longest of ours takes two."""

GIVEN = ("tir_schedules.model.rung", "tir_schedules.tir.schedule")
"""Modules of this package that a learner's schedule may import, besides the `steps` of ladders."""

BEYOND_SCHEDULES = {"eval", "exec", "open", "compile", "__import__", "importlib", "globals", "getattr"}


def emitted_source(lesson: Lesson, file: Path, sizes: Mapping[str, int]) -> Source:
    """The CUDA of the file's schedule for sizes; its `flags` have the launch, as options of `check`. BadInput
    and CheckFailed with the line of the file."""
    from tir_schedules.run import launches, lower

    refuse_shortcuts(file)
    with time_limit(file):
        (rung,) = at_path(str(file))
        refuse_other_algorithms(lesson, file, rung)
        kernels = launches(lower, rung, workload_for(lesson, rung, sizes), lesson.arch)
    if len(kernels) != 1:
        raise BadInput(f"{file.name}: the lesson has one launch, and the schedule has {len(kernels)}")
    (kernel,) = kernels
    extents = (",".join(map(str, extent)) for extent in (kernel.grid, kernel.block))
    words = [
        "--kernel",
        kernel.entry,
        *(word for pair in zip(("--grid", "--block"), extents) for word in pair),
    ]
    words += ["--shared", str(kernel.dynamic_shared)]
    return Source(without_unused(kernel.source), f"{file.stem}.emitted.cu", "", flags=(shlex.join(words),))


def workload_for(lesson: Lesson, rung: Rung[Any, Any], sizes: Mapping[str, int]) -> Any:
    return workload_of(rung, Problem(rung.family, tuple(sizes.values())))


def refuse_shortcuts(file: Path) -> None:
    """BadInput for a file that takes the answer from elsewhere, or cannot be read by Python."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise BadInput(f"{file.name}:{line}: {getattr(error, 'msg', error)}") from None
    for node in ast.walk(tree):
        modules, line = list[str](), getattr(node, "lineno", 1)
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Name) and node.id in BEYOND_SCHEDULES:
            raise BadInput(f"{file.name}:{node.lineno}: a schedule needs no {node.id}: write its steps")
        for name in modules:
            ours = name.partition(".")[0] in ("tir_schedules", "importlib", "runpy", "cuda_reference")
            if ours and name not in GIVEN and not name.endswith(".steps"):
                raise BadInput(f"{file.name}:{line}: {name} may have the answer: write the steps here")


def refuse_other_algorithms(lesson: Lesson, file: Path, rung: Rung[Any, Any]) -> None:
    """BadInput for a rung that changes what is computed, or is of another ladder."""
    family = lesson.one("check").split()[1]
    if rung.family != family:
        raise BadInput(f"{file.name}: the lesson takes a rung of {family}, not of {rung.family}")
    if rung.prim_func or rung.around or rung.launch:
        raise BadInput(
            f"{file.name}: the algorithm is the lesson's: leave prim_func, around and launch of Rung out"
        )


@contextmanager
def time_limit(file: Path) -> Generator[None]:
    """CheckFailed for Python that does not come to an end, where signals can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: Any) -> NoReturn:
        raise CheckFailed(f"{file.name}: the schedule did not end within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
