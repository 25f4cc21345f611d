# pyright: strict
"""`check` and `run`: kernels executed on given arguments, judged, and compared with another beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence, overload

import numpy as np

from tir_schedules.api.functions import kernel_of, own_of
from tir_schedules.api.options import Arguments, Asking, Extent, Running, Scheduler, Shape, check_names
from tir_schedules.api.requests import request_of_function, requests_of_file, with_reference
from tir_schedules.api.results import Result, framed
from tir_schedules.api.running import ORDERS, Verdicts, run_rungs
from tir_schedules.api.subjects import CODE, OWN, RUNG, Subject, as_rung, kind_of, known_kind
from tir_schedules.api.wording import reworded, reworded_hints
from tir_schedules.check.expecting import NEAR, Truth, to_numpy, wide
from tir_schedules.check.options import only
from tir_schedules.check.preparing import Request
from tir_schedules.check.report import as_json, print_all
from tir_schedules.check.session import Checked, failed_check
from tir_schedules.check.session import check_requests as check_each
from tir_schedules.check.types import format_of
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import print_line
from tir_schedules.errors import BadInput, CheckFailed, shown
from tir_schedules.files import Json
from tir_schedules.insight.advice.advising import advice_on_check, print_advice_on_checks
from tir_schedules.insight.files.page import page
from tir_schedules.insight.files.views import View, metrics
from tir_schedules.ladders.registry import find
from tir_schedules.machines.choice import CPU_ARCH, choose
from tir_schedules.model.counters import Counters
from tir_schedules.model.findings import Finding
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.verdicts import CELLS, DISAGREE, FAIL, RIGHT, WORST, Outcome, number

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tir_schedules.api.functions import Function
    from tir_schedules.insight.times.timed import Timed

FAIL_CELL = CELLS[FAIL]


@dataclass(frozen=True, repr=False)
class Check(Result):
    """The result of a kernel, or of several launched in order.

    - verdict: "pass"; "FAIL" (a value is wrong); "HAZARD" (there is a finding, but values are right); "ERROR"
      (it did not compile, or CUDA would refuse the launch); "no hazard" (nothing says what is right, and
      nothing was found); "loose" (the tolerance for rounding is larger than the effect of an element of the
      inputs); or "twins disagree".
    - faults: everything that is wrong, one text each, with file and line.
    - findings: those of the machine.
    - outputs: arrays that were written, by name, as the kernels left them.
    - counters: of each launch; wavefronts of shared memory and 32-byte sectors of global memory, see
      `Counters`.
    - printed: what printf printed.
    - seconds: the time that the machine took.
    - unshown: inputs for which no run shows that they matter, and why.
    - beside: the result of the kernel beside it.
    - identical: whether both left the same bits; None if there is no other kernel.
    - disagreement: how their outputs differ, if rounding does not explain it.
    - checked, machine, verdicts, advice: what the printed result is made from.
    """

    verdict: str
    faults: tuple[str, ...]
    findings: tuple[Finding, ...]
    outputs: Mapping[str, np.ndarray]
    counters: tuple[Counters | None, ...]
    printed: str
    seconds: float = 0.0
    unshown: tuple[str, ...] = ()
    beside: Check | None = None
    identical: bool | None = None
    disagreement: str = ""
    checked: tuple[tuple[Request | None, Checked], ...] = ()
    machine: Machine | None = None
    verdicts: Verdicts | None = None
    advice: bool = False
    times: tuple[Timed, ...] = ()

    @property
    def ok(self) -> bool:
        return self.verdict in [CELLS[word] for word in RIGHT]

    def __repr__(self) -> str:
        names = ", ".join(one.label for _, one in self.checked) or ", ".join(
            v.rung.id for v in self.verdicts or ()
        )
        return f"Check({names}: {self.verdict}{f', {len(self.faults)} faults' if self.faults else ''})"

    def show(self) -> None:
        if self.verdicts:
            return self.verdicts.show()
        print_all([one for _, one in self.checked], self.machine or choose("cpu"))
        if self.advice:
            print_advice_on_checks([one for _, one in self.checked])
        if self.times:
            from tir_schedules.insight.times.timed import target_of
            from tir_schedules.insight.times.views import line_of

            for one in self.times:
                print_line(line_of(one, target_of()))
        if self.disagreement:
            print_line(self.disagreement)
        elif self.identical is not None and self.ok:
            print_line(f"both leave the same, {'bit for bit' if self.identical else 'within tolerance'}")

    def to_json(self) -> list[Json]:
        if self.verdicts:
            return self.verdicts.to_json()
        both = {"identical": self.identical, "disagreement": self.disagreement or None} if self.beside else {}
        times = [{"time": one.as_json()} for one in self.times] or [{}] * len(self.checked)
        return [
            as_json(one) | advice_json(one, self.advice) | both | time
            for (_, one), time in zip(self.checked, times)
        ]

    def page(self) -> str:
        """Self-contained HTML: the source with its counters, pictures of banks."""
        views = [View(request, one, one.prepared, metrics(one)) for request, one in self.checked if request]
        return page(views, self.machine or choose("cpu"))

    def _repr_html_(self) -> str:
        return framed(self.page()) if all(request for request, _ in self.checked) else super()._repr_html_()


def advice_json(one: Checked, wanted: bool) -> Json:
    """Advice on each launch, where it is asked for."""
    if not wanted:
        return {}
    return {"advice": [[each.as_json() for each in found] for _, found in advice_on_check(one)]}


def check_requests(
    requests: Sequence[Request],
    machine: Machine,
    advice: bool = False,
    others: Sequence[Request] = (),
    time: bool = False,
) -> Check:
    """Several checks, each judged by itself: the verdict is the worst of theirs. others: all of a file, if
    these are some of them. time: whether times are predicted, too."""
    done = check_each(requests, machine, others)
    found = [result_of(one, request, machine) for one, request in zip(done, requests)]
    worst = min(found, key=lambda one: [*map(cell, WORST)].index(one.verdict))
    faults = tuple(fault for one in found for fault in one.faults)
    checked = tuple(pair for one in found for pair in one.checked)
    times = tuple(time_checked(one, advice) for _, one in checked) if time else ()
    return replace(worst, faults=faults, checked=checked, advice=advice, times=times)


def time_checked(checked: Checked, what_if: bool) -> Timed:
    """The predicted time of what was run. what_if: also without bank conflicts. Imported where it is asked
    for: it takes a third of a second."""
    from tir_schedules.insight.times.timed import Timed, target_of, time_prepared

    if checked.prepared is None:
        return Timed(checked.label, "", (), reason="it was not run")
    return time_prepared(checked.prepared, target_of(), what_if=what_if)


def result_of(checked: Checked, request: Request | None = None, machine: Machine | None = None) -> Check:
    """The result of one check."""
    counters = tuple(execution.counters for execution in checked.executions)
    return judged(checked.outcome, checked.outputs, counters, checked=((request, checked),), machine=machine)


def judged(
    outcome: Outcome, outputs: Mapping[str, np.ndarray], counters: tuple[Counters | None, ...], **others: Any
) -> Check:
    return Check(
        CELLS[outcome.word], tuple(map(reworded_hints, outcome.faults)), outcome.findings, outputs, counters,
        outcome.printed, outcome.seconds, tuple(map(reworded, outcome.unshown)), **others,
    )  # fmt: skip


def check(
    subject: Subject,
    kernel: str = "",
    *,
    grid: Extent | None = None,
    block: Extent | None = None,
    shared: int = 0,
    launches: Sequence[str] = (),
    arguments: Arguments = (),
    outputs: Sequence[str] = (),
    sizes: Mapping[str, int | float] | None = None,
    expect: Mapping[str, str | np.ndarray] | None = None,
    tolerance: float | None = None,
    usual: tuple[str, Sequence[int]] | None = None,
    arch: str = CPU_ARCH,
    machine: str = "cpu",
    orders: int = ORDERS,
    defines: Sequence[str] | Mapping[str, Any] = (),
    flags: Sequence[str] = (),
    includes: Sequence[str | Path] = (),
    seed: int = 0,
    finite: bool = False,
    beside: str | Path | None = None,
    beside_kernel: str = "",
    schedule: Scheduler | None = None,
    time: bool = False,
    **shape: Unpack[Shape],
) -> Check:
    """Run a kernel on given arguments, and judge what it leaves.

    - subject: a path of CUDA or PTX, or the text itself; a Schedule, PrimFunc or IRModule of TVM, with loops
      on blocks and threads; or a rung, which is run as by `run`. Options given here take precedence over `//
      check:` comments.
    - kernel: its name, `"sgemm<128, 8>"` for a template. It is needed only if there are several.
    - grid, block: (x, y, z); extents that are left out are 1. Without them, `// check:` comments or a launch
      in the host code of the file are used, as by the command. If only one is given, the other comes from
      that launch. A function of TVM has its own launch.
    - shared: bytes of dynamic shared memory.
    - launches: in place of kernel, grid, block and shared, several launches in order, such as `"scan[cdiv(N,
      256), 256](X, sums, N)"`.
    - arguments: by the names of parameters. A value is an array of numpy of any shape (it is copied and not
      changed), a number, None for a null pointer, or a text as `--arg` takes it, such as "f32[M,K]". Texts
      may also be a list in the order of the parameters. Arguments of a function of TVM that are not given are
      drawn at random.
    - outputs: names of arrays whose content counts as unwritten.
    - sizes: values of names in these texts and in `launches`. They are also passed to parameters of the same
      name, and to symbolic extents of a function.
    - expect: what arrays should be, as arrays or expressions of arguments.
    - tolerance: a number T; each element may be off by T + T |value|. With None rounding gives the tolerance.
    - usual: ("sgemm", (M, N, K)): inputs and exact results are those of this ladder.
    - machine, orders: what executes the kernel, and in which orders blocks and warps take turns.
    - defines: "NAME=VALUE", or a dictionary.
    - flags: further options of nvcc.
    - finite: leave out the runs with NaN, infinity, -0 and denormal numbers.
    - beside: a second kernel for the same arguments, "mine.cu" or "mine.cu:name" or CUDA text. Beside a
      function of TVM, grid and block are those of this kernel, and by default those of the function.
    - beside_kernel: the name of the second kernel, if its file or text has several.
    - schedule: a function that schedules a PrimFunc. It is called with a TVM Schedule of a copy. If nothing
      is expected, the PrimFunc before scheduling says what is right.
    - time: also predict how long it takes, see `time`.

    Raises BadInput if the request is not possible, such as an array of another format than its pointer.
    Raises MissingTool if there is no compiler. What is wrong with the kernel itself is in the result.
    """
    kind = kind_of(subject, "check", RUNG, OWN, CODE)
    if time:
        from tir_schedules.insight.times.timed import target_of

        arch = target_of().arch_for(arch)
    asked = {"grid": grid, "block": block, "shared": shared, "launches": launches, "arguments": arguments,
             "outputs": outputs, "sizes": sizes, "expect": expect, "tolerance": tolerance, "usual": usual,
             "defines": defines, "flags": flags, "includes": includes, "seed": seed,
             "finite": finite}  # fmt: skip
    if kind == RUNG:
        every = asked | {
            "kernel": kernel,
            "beside": beside,
            "beside_kernel": beside_kernel,
            "schedule": schedule,
        }
        given = {name: value for name, value in every.items() if value not in (None, (), "", 0, False)}
        if isinstance(subject, (str, Path)):
            find(str(subject))  # of a name that is none the message says so
        check_names(given, Shape, "check")
        given = {"arch": arch, "machine": machine, "orders": orders, "time": time}
        return result_of_rung(run_rungs(as_rung(subject), **given, **shape))
    check_names(shape, Asking, "check")
    check_arch(arch)
    there = choose(machine, orders)
    every = asked | {"kernel": kernel, "schedule": schedule}
    try:
        requests = requests_for(subject, arch, every, beside, beside_kernel, judged=True)
    except CheckFailed as error:
        return result_of(failed_check(str(error).partition(":")[0], error), machine=there)
    if beside is None:
        return check_requests(requests, there, time=time)
    if time:
        raise BadInput("time= is of one kernel: leave out beside=, or time each")
    one, other = (result_of(*pair, there) for pair in zip(check_each(requests, there), requests))
    return beside_each_other(one, other, tolerance)


def requests_for(
    subject: Subject,
    arch: str,
    asked: Mapping[str, Any],
    beside: str | Path | None,
    beside_kernel: str = "",
    judged: bool = False,
) -> list[Request]:
    """The checks of a file, or the check of a function of TVM and that of the kernel beside it. judged:
    whether a function whose form before scheduling is known says what is right, if nothing is expected."""
    if beside_kernel and beside is None:
        raise BadInput("beside_kernel= names the second kernel: say beside= as well")
    if asked.get("schedule") and not callable(asked["schedule"]):
        raise BadInput(
            f"schedule is {shown(str(asked['schedule']))}; it takes a function that schedules a PrimFunc"
        )
    is_own = known_kind(subject) == OWN
    if is_own:
        requests = [request_of_own(subject, arch, asked, beside is not None, judged)]
    elif asked.get("schedule"):
        raise BadInput("schedule= is for a PrimFunc of TVM's, not for CUDA")
    else:
        requests = requests_of_file(str(subject), arch, **asked)
    if beside is None:
        return requests
    first = only(requests, "--beside")
    return [first, request_beside(beside, beside_kernel, first, arch, is_own, asked)]


def request_of_own(subject: Any, arch: str, asked: Mapping[str, Any], beside: bool, judged: bool) -> Request:
    """The check of a function. beside, judged: see `requests_for`."""
    own = own_of(subject, asked.get("kernel") or "", asked.get("sizes") or {}, asked.get("schedule"),
                 asked.get("arguments") or ())  # fmt: skip
    check_launch(asked, beside)
    request = request_of_function(own, kernel_of(own, arch), arch, **asked)
    known = judged and own.original is not None and not asked.get("expect")
    return with_reference(request, own) if known else request


def check_launch(asked: Mapping[str, Any], beside: bool) -> None:
    """Raises BadInput if a function of TVM's, which has a launch of its own, is given one. beside: whether
    there is another kernel."""
    for name in ("grid", "block", "shared", "launches", "usual", "defines", "flags", "includes"):
        if asked.get(name) and (not beside or name in ("launches", "usual")):
            raise BadInput(f"{name}= is for CUDA: a function of TVM's has a launch of its own, leave it out")


def request_beside(
    beside: str | Path, kernel: str, first: Request, arch: str, is_own: bool, asked: Mapping[str, Any]
) -> Request:
    """The check of the second kernel, which has the arguments and the expected values of the first. For a
    function it also has the launch of the function, if no other is given. kernel: its name, if that is not in
    `beside`."""
    if known_kind(beside) != CODE:
        raise BadInput(
            f"beside= takes a file of CUDA or PTX, or its text, not {shown(str(beside))}; that of a rung is"
            " emit(rung, twin=True).text"
        )
    (launch, *_) = first.launches
    own = (
        {"grid": asked.get("grid") or launch.grid, "block": asked.get("block") or launch.block}
        if is_own
        else {}
    )
    every = requests_of_file(beside, arch, **{**asked, "kernel": kernel, "launches": (), **own})
    found = only(every, "--beside", "--beside-kernel")
    return replace(
        found, given=first.given, arguments=first.arguments, expect=first.expect, usual=first.usual
    )


def result_of_rung(found: Verdicts) -> Check:
    """The result of both kernels of a rung, on one shape or several."""
    words = [verdict.word for verdict in found]
    worst = found[words.index(min(words, key=WORST.index))]
    twin = result_of_outcome(worst.twin) if worst.twin else None
    return replace(
        result_of_outcome(worst.schedule), verdict=cell(worst.word), faults=found.faults, beside=twin,
        identical=worst.identical, disagreement=worst.disagreement, machine=found.machine, verdicts=found,
    )  # fmt: skip


def result_of_outcome(outcome: Outcome) -> Check:
    return judged(outcome, outcome.outputs[0] if outcome.outputs else {}, ())


def cell(word: str) -> str:
    """A verdict as results have it."""
    return CELLS.get(word, word)


def beside_each_other(one: Check, other: Check, tolerance: float | None) -> Check:
    """Two results, and how their outputs agree."""
    identical, differing = agreement(one, other, tolerance)
    words = [one.verdict, other.verdict, *([DISAGREE] if differing else [])]
    faults = (*one.faults, *other.faults, *([differing] if differing else []))
    return replace(
        one, verdict=min(words, key=[*map(cell, WORST)].index), faults=faults, beside=other,
        identical=identical, disagreement=differing, checked=(*one.checked, *other.checked),
    )  # fmt: skip


def agreement(one: Check, other: Check, tolerance: float | None) -> tuple[bool | None, str]:
    """Whether two kernels left the same bits, None where one left nothing; and how they differ, where
    rounding does not explain it and both are right."""
    names = [name for name in one.outputs if name in other.outputs]
    if not names:
        return None, ""
    identical = all(one.outputs[name].tobytes() == other.outputs[name].tobytes() for name in names)
    if identical or FAIL_CELL in (one.verdict, other.verdict):
        return identical, ""
    first, second = one.checked[0][1], other.checked[0][1]
    for name in names:
        ours, theirs = one.outputs[name], other.outputs[name]
        allowed = apart(first, name, theirs, tolerance)
        found = Truth(wide(theirs), allowed).mismatch(name, ours) if ours.shape == theirs.shape else None
        if found:
            return False, (
                f"the two disagree: {found.element} is {number(found.got)} in {first.label},"
                f" {number(found.expected)} in {second.label}, {found.allowed:.3g} apart would do;"
                f" {found.count} of {found.size}"
            )
    return False, ""


def apart(checked: Checked, name: str, values: np.ndarray, tolerance: float | None) -> Any:
    """How far two right kernels can be from each other: twice what one may be off; where nothing says that,
    so much of the largest value as is allowed of an array that is given."""
    prepared = checked.prepared
    truth = prepared.trials.runs[0].truths.get(f"{name}[]") if prepared else None
    if truth is not None:
        return 2 * truth.allowed
    finite = np.abs(np.nan_to_num(to_numpy(values).astype(np.float64), posinf=0, neginf=0))
    share = NEAR.get(format_of(values.dtype), 0.0) if tolerance is None else 2 * tolerance
    return share * float(np.max(finite, initial=0)) + (2 * tolerance if tolerance else 0)


@overload
def run(subject: str | Path | Rung, *subjects: str | Path | Rung, **options: Unpack[Running]) -> Verdicts: ...
@overload
def run(subject: Function, **options: Unpack[Running]) -> Check: ...
def run(subject: Subject, *subjects: Subject, **options: Unpack[Running]) -> Verdicts | Check:
    """Emit, compile, execute and verify rungs with their twins, or a function of TVM.

    - subject, subjects: rungs or ladders, by name or as objects; or one Schedule, PrimFunc or IRModule of
      TVM, with the options of `check`. Outputs of a function are in the result.

    The following options are for rungs:

    - arch: the GPU architecture to compile for; by default that of the GPU, or sm_80 for the CPU machine.
    - machine: "cpu", "gpu", or "auto" for the GPU if CuPy finds one.
    - orders: in which orders blocks and warps take turns on the CPU machine.
    - configs: run every configuration.
    - tuned: a file of records of `tune`, whose best configurations are taken; "" for your own file.
    - source: a CUDA file, or its text, that is run as the kernel of the one rung.
    - time: also predict how long they take, see `time`.

    What is wrong with a kernel is in the result. Raises BadInput if a name does not exist or an option is not
    possible, and MissingTool if there is no compiler.
    """
    kinds = [kind_of(one, "run", RUNG, OWN) for one in (subject, *subjects)]
    given: dict[str, Any] = dict(options)
    if kinds == [OWN]:
        return check(subject, **given)
    if OWN in kinds:
        raise BadInput("run takes one function of TVM's at a time, or rungs")
    return run_rungs(*map(as_rung, (subject, *subjects)), **given)
