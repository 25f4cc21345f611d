"""The tuned records beside rungs as chosen by hand, dlight, MetaSchedule's own CUDA rules, and cuBLAS.

    python experiments/tuners.py [sgemm hgemm] [--mnk M,N,K ...] [-o FILE.json]

searches, measures and prints; needs a GPU.

    python experiments/tuners.py [sgemm hgemm] [--mnk M,N,K ...] --emit FOLDER

writes the CUDA of dlight's kernels, without a GPU.

    python experiments/tuners.py --merge FILE.json FILE.json ... [-o FILE.json]

shows several runs as one, such as of several GPUs.

    python experiments/tuners.py --from FILE.json
    python experiments/tuners.py --write | --check

prints what was recorded, or writes experiments/README.md from it.

Measuring needs TVM, nvcc and xgboost, too. All kernels of a shape are verified and timed in one run, as
`tir-schedules bench` does it; FILE.json, written after each shape, is what its --output writes, with a row
besides for each kernel that says how it was made.
"""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence

from scripts import add_recorded_options, check_alone, exit_code
from tuners_candidates import Candidates, TooSlow
from tuners_metaschedule import TRIALS, search
from tuners_rules import DLIGHT, METASCHEDULE, dlight_kernel
from tuners_tables import FAMILIES, HAND, TUNED, load_tuners, merged, notes_of, section, table, tasks_of
from writing import update

from tir_schedules.bench import session
from tir_schedules.bench.binding import bind
from tir_schedules.bench.tables import escape_cells
from tir_schedules.bench.views import figures
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import check_folder, write_text
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.choice import arch_for, choose, the_gpu
from tir_schedules.model.kernel import Binary
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.numerals import integer_for, parse_shape
from tir_schedules.subjects.results import about, document, save_results
from tir_schedules.subjects.subject import VENDORS, Subject
from tir_schedules.tuning.measure.lookup import Lookup, open_tuned
from tir_schedules.tuning.space.tunable import DEFAULTS

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "results" / "tuners_h200.json"
SHAPES = ((1024, 1024, 1024), (4096, 4096, 4096), (2048, 8192, 1024), (512, 6144, 2048), (1000, 3000, 776))
LONGEST_S = 0.5
"""Seconds of a launch; a candidate of a search that takes longer is given up."""

Made = tuple[Binary, dict[str, Any]]
"""A kernel, and how it was made, as the table needs it."""


class Contest:
    """The kernels of one workload that are to be timed in one run.

    subjects: those that could be made. refused: rows of the others. points: how each was made.
    """

    def __init__(self, family: str, workload: Workload):
        self.family, self.workload = family, workload
        self.subjects: list[Subject] = []
        self.refused: list[dict[str, str]] = []
        self.points: list[dict[str, Any]] = []

    def add(self, role: str, name: str, make: Callable[[], Made]) -> None:
        """CheckFailed of `make` refuses the subject."""
        subject = Subject(self.family, name, "schedule", self.workload)
        say(f"{self.family} {self.workload}: {name}")
        try:
            binary, how = make()
        except CheckFailed as error:
            self.refused.append(subject.refused(str(error)))
        else:
            self.subjects.append(replace(subject, binaries=(binary,)))
            self.note(role, name, how)

    def note(self, role: str, name: str, how: dict[str, Any]) -> None:
        self.points.append(
            {"family": self.family, "name": name, "shape": str(self.workload), "role": role, **how}
        )


def say(line: str) -> None:
    """Progress, on standard error."""
    print(line, file=sys.stderr, flush=True)


def workloads_of(
    families: Sequence[str], shapes: Sequence[tuple[int, int, int]]
) -> list[tuple[str, Workload]]:
    """Families and workloads; half-precision GEMMs of the default layout and accumulator."""
    return [(family, workload_class(family)(*shape)) for family in families for shape in shapes]


def compared(
    family: str, workload: Workload, arch: str, machine: GpuMachine, lookup: Lookup, trials: int, command: str
) -> dict[str, Any]:
    """Make, verify and time all kernels of a workload; returns a results document."""
    contest = Contest(family, workload)
    for rung in map(base_rung, DEFAULTS[family]):
        fitted = rung.fitted(workload)
        contest.add(HAND, fitted.id, lambda: compiled(fitted, workload, arch))
        try:
            tuned = lookup.rung(rung, workload)
        except (BadInput, CheckFailed) as error:
            say(f"not timed: {error}")
        else:
            contest.add(TUNED, tuned.id, lambda: compiled(tuned, workload, arch))
    contest.add(DLIGHT, DLIGHT, lambda: by_dlight(family, workload, arch))
    searched(contest, arch, machine, trials)
    contest.subjects.append(Subject(family, VENDORS[family], "vendor", workload))
    measurement, policy = session.measure_subjects(machine, contest.subjects, session.Policy(), None)
    return document(about(command), measurement, asdict(policy), contest.refused) | {"points": contest.points}


def base_rung(name: str) -> Rung:
    return find_one(name, "tuners.py")


def compiled(rung: Rung, workload: Workload, arch: str) -> Made:
    return compile_kernel(lower(rung, workload, arch)), {"config": asdict(rung.config)}


def by_dlight(family: str, workload: Workload, arch: str) -> Made:
    kernel, rule = dlight_kernel(family, workload, arch)
    return compile_kernel(kernel), {"rule": rule}


def searched(contest: Contest, arch: str, machine: GpuMachine, trials: int) -> None:
    """Add the fastest kernel that MetaSchedule's own rules lead to, and how the search went."""
    subject, started = Subject(contest.family, METASCHEDULE, "schedule", contest.workload), time.monotonic()
    arguments = contest.workload.arguments(0, machine.xp)

    def timer(binary: Binary) -> Sequence[float]:
        return timed(replace(subject, binaries=(binary,)), machine, arguments)

    def progress(found: Candidates) -> None:
        best = ""
        if found.fastest:
            best = f"best {figures(contest.workload.flops / found.fastest[0] / 1e12)} TFLOPS, "
        took = f"{len(found.refused)} refused, {time.monotonic() - started:.0f} s"
        say(f"{contest.family} {contest.workload}: {METASCHEDULE}: {found.tried} of {trials}, {best}{took}")
        if machine.broken:
            advice = "measure the other shapes in a new one"
            raise CheckFailed(f"{machine.broken} left the GPU unusable for this process: {advice}")

    found = Candidates(arch, timer, trials, progress)
    try:
        search(contest.family, contest.workload, found)
    except CheckFailed as error:
        if machine.broken:
            raise
        say(f"{contest.family} {contest.workload}: {error}")
    how = found.as_json() | {"search_s": round(time.monotonic() - started, 1)}
    if found.fastest:
        contest.subjects.append(replace(subject, binaries=(found.fastest[1],)))
    else:
        contest.refused.append(subject.refused(f"none of {found.tried} trials could be timed"))
    contest.note(METASCHEDULE, METASCHEDULE, how)


def timed(subject: Subject, machine: GpuMachine, arguments: Arguments) -> Sequence[float]:
    """Samples in seconds of a subject that is verified before and after. arguments: on the GPU, for a first
    look.

    TooSlow, or CheckFailed as from `gpu_timing.time_subject`.
    """
    from tir_schedules.tuning.measure import gpu_timing

    with machine.explaining(subject.label):
        once = machine.seconds(bind(machine, None, subject, arguments).enqueue)
    if once > LONGEST_S:
        raise TooSlow(f"a launch takes {once:.2g} s, more than {LONGEST_S} s")
    return gpu_timing.time_subject(subject, machine)


def measured(options: Namespace, tasks: Sequence[tuple[str, Workload]]) -> int:
    """Compare the kernels of one workload after another; what was measured is kept whatever happens later."""
    from tir_schedules.tuning.search.metaschedule import import_metaschedule

    machine = the_gpu("without a GPU nothing can be timed, but --emit writes dlight's kernels")
    arch = arch_for(machine, options.arch)
    check_arch(arch)
    import_metaschedule()
    lookup = open_tuned(options.records, machine, arch, say)
    shapes = [f"--mnk {m},{n},{k}" for m, n, k in options.mnk or ()]
    command = " ".join(["experiments/tuners.py", *families_of(options), *shapes])
    documents: list[dict[str, Any]] = []
    try:
        for family, workload in tasks:
            documents.append(compared(family, workload, arch, machine, lookup, options.trials, command))
            if options.output:
                save_results(merged(documents), options.output)
    finally:
        if documents:
            show(merged(documents))
    return 1 if any(document["refused"] for document in documents) else 0


def emitted(folder: Path, tasks: Sequence[tuple[str, Workload]], arch: str) -> int:
    """Write dlight's kernels; 1 when one could not be made."""
    check_arch(arch)
    code = 0
    for family, workload in tasks:
        try:
            kernel, rule = dlight_kernel(family, workload, arch)
        except CheckFailed as error:
            print_line(f"{family} {workload}: {error}")
            code = 1
            continue
        path = folder / f"{DLIGHT}_{family}_{str(workload).replace(' ', '_')}.cu"
        write_text(path, kernel.source)
        blocks, threads = ("x".join(map(str, extents)) for extents in (kernel.grid, kernel.block))
        shared = f"{kernel.dynamic_shared} bytes of dynamic shared memory"
        print_line(f"{path}: rule {rule}, {blocks} blocks of {threads} threads, {shared}")
    return code


def show(results: dict[str, Any]) -> None:
    """Print the tables of the families that results have."""
    for family in FAMILIES:
        if tasks_of(family, results):
            heads, lines = table(family, results)
            print_table(escape_cells(heads), map(escape_cells, lines))
            print_line()
            for note in (*notes_of(family, results), ""):
                print_line(note)


def families_of(options: Namespace) -> list[str]:
    """Those that are named, all without a name. BadInput for others."""
    for name in options.names:
        if name not in FAMILIES:
            raise BadInput(f"there are no tuners of {name!r}; there are {' and '.join(FAMILIES)}")
    return list(dict.fromkeys(options.names)) or list(FAMILIES)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    shapes = ", ".join(",".join(map(str, shape)) for shape in SHAPES)
    parser.add_argument("names", nargs="*", metavar="FAMILY", help=f"{' or '.join(FAMILIES)} (default: both)")
    parser.add_argument(
        "--mnk", metavar="M,N,K", type=parse_shape, action="append", help=f"may be repeated; default {shapes}"
    )
    trials_help = f"of MetaSchedule by its own rules (default {TRIALS})"
    parser.add_argument(
        "--trials", metavar="N", type=integer_for("--trials", TRIALS), default=TRIALS, help=trials_help
    )
    parser.add_argument(
        "--records",
        metavar="FILE",
        default="",
        help="tuned records (default: your own, else those shipped for the GPU)",
    )
    parser.add_argument(
        "--arch", help="GPU architecture to compile for (default: that of this computer's GPU, else sm_80)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write every sample and where it comes from as JSON"
    )
    parser.add_argument(
        "--emit",
        metavar="FOLDER",
        type=Path,
        help="write the CUDA of dlight's kernels there instead; needs no GPU",
    )
    parser.add_argument(
        "--merge", metavar="FILE", type=Path, nargs="+", help="show several earlier --outputs as one"
    )
    add_recorded_options(parser, RECORDED)
    return parser


def perform(options: Namespace) -> int:
    """Do what the options ask for; returns the exit code."""
    for name in ("write", "check", "emit", "merge", "recorded"):
        if getattr(options, name):
            check_options(name, options)
            break
    if options.write or options.check:
        results = load_tuners(options.recorded or RECORDED) if options.recorded or RECORDED.exists() else None
        return update(options.readme, "tuners", lambda name: section(name, results), options.check)
    if options.trials < 1:
        raise BadInput(f"--trials is {options.trials}; it must be at least 1")
    if options.output:
        check_folder(options.output)
    if options.recorded or options.merge:
        results = merged([load_tuners(path) for path in options.merge or [options.recorded]])
        if options.output:
            save_results(results, options.output)
        show(results)
        return 1 if results["refused"] else 0
    tasks = workloads_of(families_of(options), options.mnk or SHAPES)
    if options.emit:
        if not options.emit.is_dir():
            raise BadInput(f"there is no folder {options.emit}; make it, or name another")
        return emitted(options.emit, tasks, arch_for(choose("auto"), options.arch))
    return measured(options, tasks)


def check_options(what: str, options: Namespace) -> None:
    """BadInput for options that do not go with the one that decides what is done."""
    option = {"recorded": "--from"}.get(what, f"--{what}")
    measuring = ("mnk", "arch") if what != "emit" else ()
    if what != "emit" and options.names:
        raise BadInput(f"{option} shows all that was recorded: leave out {' '.join(options.names)}")
    sections = ("output", "emit", "merge")
    others = {
        "write": sections,
        "check": sections,
        "emit": ("output", "merge", "recorded"),
        "merge": ("recorded",),
    }
    check_alone(option, options, (*measuring, "records", *others.get(what, ())))


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
