"""What is wrong with kernels, in words: a word for the table, and paragraphs of at most two lines of a
terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import Iterable, Iterator, Sequence

from tir_schedules.errors import fold_paragraph
from tir_schedules.model.findings import KINDS, Finding, Location
from tir_schedules.verdicts import (
    DISAGREE,
    ERROR,
    FAIL,
    HAZARD,
    LOOSE,
    PASS,
    Outcome,
    Verdict,
    WrongValue,
    number,
)

SHOWN = 8
WIDTH = 80
LEAST_TEXT = 16  # characters of a source line that are worth showing
NO_ACCESS = (
    "divergent_barrier", "divergent_aligned", "stack_overflow", "assertion", "trap", "deadlock",
    "endless_loop", "order_dependent",
)  # fmt: skip


def closing(verdicts: Sequence[Verdict]) -> str:
    """How many pass, fail and so on: "9 of 11 verified, 1 failed, 1 with hazards,"."""
    return closing_words([verdict.word for verdict in verdicts])


def closing_words(verdicts: Sequence[str]) -> str:
    """The same of verdicts as words."""
    words = Counter(verdicts)
    phrases = {FAIL: "failed", ERROR: "with errors", DISAGREE: "whose twins disagree", HAZARD: "with hazards",
               LOOSE: "within a loose tolerance"}  # fmt: skip
    others = "".join(f" {words[word]} {phrase}," for word, phrase in phrases.items() if words[word])
    return f"{words[PASS]} of {len(verdicts)} verified" + (f",{others}" if others else "")


def closing_outcomes(outcomes: Sequence[Outcome]) -> str:
    """How many kernels are verified; of those for which nothing says what is right, how many hazards."""
    judged = [outcome.word for outcome in outcomes if outcome.judged]
    others = [outcome for outcome in outcomes if not outcome.judged]
    hazards = sum(len(outcome.findings) for outcome in others)
    which = f" for {len(others)} of {len(outcomes)}" if judged else ""
    told = f"no expected value given{which}: {hazards} hazard{'s' * (hazards != 1)}"
    return "; ".join([closing_words(judged)] * bool(judged) + [told] * bool(others))


def paragraphs(verdicts: Sequence[Verdict], width: int = WIDTH) -> Iterator[str]:
    """What is wrong with any kernel, each of one kind and place once, races first; none longer than two lines
    of `width`.

    What nvcc or the machine said of a kernel it did not run comes whole.
    """
    by_kernel: dict[str, list[tuple[str, Outcome]]] = {}
    several = len({str(verdict.workload) for verdict in verdicts}) > 1
    for verdict in verdicts:
        for outcome in verdict.outcomes:
            by_kernel.setdefault(outcome.kernel, []).append(
                (str(verdict.workload) if several else "", outcome)
            )
    yield from kernel_paragraphs(by_kernel, width)
    for verdict in verdicts:
        if verdict.disagreement:
            yield fit_two_lines(
                [f"{verdict.rung.id} on {verdict.workload}: {verdict.disagreement}"], "", width
            )


def kernel_paragraphs(by_kernel: dict[str, list[tuple[str, Outcome]]], width: int) -> Iterator[str]:
    """The same of kernels by name, each with what it was run on and what became of it, then notes."""
    for kernel, outcomes in by_kernel.items():
        errors = list(dict.fromkeys(outcome.error for _, outcome in outcomes if outcome.error))
        yield from errors[:SHOWN]
        groups = [*finding_groups(outcomes), *value_groups(outcomes)]
        shown = chosen(groups)
        yield from (group.paragraph(width) for group in shown)
        left = len(groups) - len(shown) + max(0, len(errors) - SHOWN)
        if left:
            yield f"{kernel}: and {left} more like these at other lines; --json has them all"
    yield from notes(by_kernel, width)


def notes(by_kernel: dict[str, list[tuple[str, Outcome]]], width: int) -> Iterator[str]:
    """What was seen of any kernel that is not a fault, each kind and place once."""
    for outcomes in by_kernel.values():
        first = {
            (note.kind, line_of(note.location)): note for _, outcome in outcomes for note in outcome.notes
        }
        for note in list(first.values())[:SHOWN]:
            place = with_call(note.location.place or f"{ptx_place(note)},", note.location.call)
            yield fit_two_lines([f"note: {place} {note.brief or note.message}"], note.location.text, width)


@dataclass
class Group:
    """Faults of one kind at one pair of source lines, on any workloads. first: the first of them; on: its
    workload."""

    kind: str
    first: Finding | WrongValue
    on: str
    count: int = 0

    def paragraph(self, width: int) -> str:
        if isinstance(self.first, Finding):
            return finding_text(self.first, self, width)
        return value_text(self.first, self, width)


def finding_groups(outcomes: Iterable[tuple[str, Outcome]]) -> list[Group]:
    """Groups of findings, most serious first."""
    groups: dict[tuple, Group] = {}
    for on, outcome in outcomes:
        for finding in outcome.findings:
            key = (finding.kind, frozenset({line_of(finding.location), line_of(finding.other)}))
            groups.setdefault(key, Group(finding.kind, finding, on)).count += finding.count
    order = list(KINDS)
    return sorted(groups.values(), key=lambda group: order.index(group.kind))


def value_groups(outcomes: Iterable[tuple[str, Outcome]]) -> list[Group]:
    """Groups of wrong values, by what stored them."""
    groups: dict[tuple, Group] = {}
    for on, outcome in outcomes:
        for wrong in outcome.wrong:
            groups.setdefault((wrong.blame, line_of(wrong.location)), Group(FAIL, wrong, on)).count += 1
    return list(groups.values())


def line_of(location: Location | None) -> tuple:
    """The source line, where it is known."""
    return (
        ()
        if location is None
        else (location.place, location.call, location.text)
        if location.place
        else (location.ptx_line,)
    )


def chosen(groups: list[Group]) -> list[Group]:
    """As many as are shown, in their order: of every kind the first, then what there is room for."""
    firsts = {group.kind: group for group in reversed(groups)}
    wanted = [
        *(group for group in groups if firsts[group.kind] is group),
        *(group for group in groups if firsts[group.kind] is not group),
    ]
    kept = {id(group) for group in wanted[: max(SHOWN, len(firsts))]}
    return [group for group in groups if id(group) in kept]


def finding_text(finding: Finding, group: Group, width: int) -> str:
    """`race: broken.cu:31 reads shared memory that broken.cu:25 writes, no __syncthreads between (block 0,0,0
    warps 1 and 0; and 31 more of the same): its text`."""
    place = finding.location.place or ptx_place(finding)
    other = finding.other.place if finding.other else ""
    brief = finding.brief or finding.message
    thread = f"warp {finding.warp} lane {finding.lane}"
    if finding.kind == "race" and finding.other_warp >= 0:
        thread = f"warps {finding.warp} and {finding.other_warp}"
    where = f"{group.on}, " * bool(group.on) + f"block {','.join(map(str, finding.block))} {thread}"
    full = f"({where}; and {group.count - 1} more of the same)" if group.count > 1 else f"({where})"
    short = f"({group.count} times)" if group.count > 1 else ""
    base = (
        f"{PurePath(finding.location.file).name}:{finding.location.line}" if finding.location.place else place
    )
    brief = brief.removeprefix(f"{base}: ")  # of an assertion, which CUDA begins with its place
    whole = both = one = brief
    if finding.other and other:
        near = f"line {finding.other.line}" if finding.other.file == finding.location.file else other
        call = finding.other.call if finding.other.call != finding.location.call else ""
        names = (other, f"{PurePath(finding.other.file).name}:{finding.other.line}", near)
        whole, both, one = (brief.replace(other, with_call(name, call)) for name in names)
    forms = [(place, whole, full), (base, both, full), (base, one, full), (base, one, short)]
    of_ptx = not finding.location.place and finding.location.ptx_line
    stop, call = ":" if finding.kind in NO_ACCESS else "," if of_ptx else "", finding.location.call
    return fit_two_lines(
        [f"{finding.title}: {with_call(at, call, stop)} {what} {tail}".rstrip() for at, what, tail in forms],
        finding.location.text,
        width,
    )


def with_call(place: str, call: str, stop: str = "") -> str:
    """A place of inlined code with the line that calls it. stop: what follows it; else a comma ends it."""
    return f"{place}, called from {call}{stop or ','}" if call else f"{place}{stop}"


def ptx_place(finding: Finding) -> str:
    line = finding.location.ptx_line
    return f"{finding.kernel}, PTX line {line}" if line else finding.kernel


def value_text(wrong: WrongValue, group: Group, width: int) -> str:
    """`wrong value, stored by broken.cu:23: C[0, 5] is 1, should be 2 within 1e-06; 64 of 64 wrong`."""
    m = wrong.mismatch
    within = f" within {m.allowed:.3g}" if m.allowed else ""
    what = (
        f"{m.element} is {number(m.got)}, should be {number(m.expected)}{within}; {m.count} of {m.size} wrong"
    ) + (f" ({m.hint})" if m.hint else "")
    more = f" (and {group.count - 1} more of the same)" if group.count > 1 else ""
    on = f" for {group.on}" if group.on else ""
    location = wrong.location
    if location is None or not location.place:
        return fit_two_lines([f"wrong value: {wrong.kernel}{on}: {what}; {wrong.blame}{more}"], "", width)
    base = f"{PurePath(location.file).name}:{location.line}"
    return fit_two_lines(
        [
            f"wrong value, {wrong.blame} {with_call(at, location.call, ':')} {what}{more}"
            for at in (f"{location.place}{on}", f"{base}{on}")
        ],
        location.text,
        width,
    )


def fit_two_lines(forms: Sequence[str], text: str, width: int) -> str:
    """The first form that takes no more than two lines, followed by as much of a source line as there is room
    for."""
    form = next((form for form in forms if len(fold_paragraph(form, width)) <= 2), None)
    if form is None:
        return shorten(forms[-1], width)
    if len(fold_paragraph(f"{form}: {text[:LEAST_TEXT]}", width)) > 2 or not text:
        return form
    return shorten(f"{form}: {text}", width)


def shorten(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it would take more than two lines."""
    if len(fold_paragraph(text, width)) <= 2:
        return text
    end = min(len(text), 2 * width)
    while end and len(fold_paragraph(text[:end].rstrip() + "…", width)) > 2:
        end -= 1
    return text[:end].rstrip() + "…"
