"""A check's results as SARIF 2.1.0, which code review and editors show beside the lines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Iterator, Sequence
from urllib.parse import quote

from tir_schedules.check.preparing import Request
from tir_schedules.check.report import costly, describe_unexecuted
from tir_schedules.check.session import Checked
from tir_schedules.faults import finding_groups, finding_text, value_groups, value_text
from tir_schedules.files import Json
from tir_schedules.model.findings import KINDS, NOTES, TITLES, Finding, Location
from tir_schedules.source import own_files
from tir_schedules.verdicts import LOOSE
from tir_schedules.version import VERSION

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
WIDE = 1_000_000
"""Characters of a line: no message is cut."""

OTHERS = {
    "wrong_value": ("error", "an output is not what was expected"),
    "not_run": ("error", "a kernel that does not compile, or that CUDA would refuse to launch"),
    "loose": ("warning", "rounding may explain more than elements of an input change"),
    "not_shown": ("note", "inputs and outputs that no run can judge"),
    "not_executed": ("note", "lines that no lane executed in any run"),
    "cost": ("note", "more wavefronts of shared memory, or sectors of global memory, than would do"),
}
"""Rules that are no kind of finding -> level, and what they are about."""

RULES = {
    **{kind: ("error", text) for kind, text in KINDS.items()},
    **{kind: ("note", text) for kind, text in NOTES.items()},
    **OTHERS,
}
IN_ERROR = re.compile(r"^\s*([^\s(:][^(:\n]*)[(:](\d+)\)?: .*error", re.M)
"""`gemm.cu(12): error: ...` of nvcc."""


@dataclass(frozen=True)
class Told:
    """One result: a rule, a message, its file, line and text, and the other place of a conflict."""

    rule: str
    message: str
    file: str = ""
    line: int = 0
    text: str = ""
    other: Location | None = None


def sarif(checked: Iterable[tuple[Request, Checked]], complaints: Sequence[str] = ()) -> Json:
    """A whole SARIF log. complaints: why files could not be checked."""
    results = [
        result_json(one, request)
        for request, done in checked
        for one in dict.fromkeys(told_of(request, done))
    ]
    distinct = [one for at, one in enumerate(results) if one not in results[:at]]
    driver = {"name": "tir-schedules check", "version": VERSION, "rules": [*map(rule_json, RULES)]}
    ended = {
        "executionSuccessful": not complaints,
        "toolExecutionNotifications": [
            {"level": "error", "message": {"text": complaint}} for complaint in complaints
        ],
    }
    run = {"tool": {"driver": driver}, "invocations": [ended], "results": distinct}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def rule_json(name: str) -> Json:
    level, text = RULES[name]
    title = TITLES.get(name, name.replace("_", " "))
    return {
        "id": name,
        "shortDescription": {"text": title[:1].upper() + title[1:]},
        "fullDescription": {"text": f"{text[:1].upper()}{text[1:]}."},
        "help": {
            "text": f"{title}: {text}. `tir-schedules check FILE` prints it with its threads and values."
        },
        "defaultConfiguration": {"level": level},
    }


def told_of(request: Request, done: Checked) -> Iterator[Told]:
    """All that is said of one check, what is wrong first."""
    outcome, label = done.outcome, done.label
    file, _, line = request.place.rpartition(":")
    place = (file, int(line)) if file else (request.source.file, 1)
    if outcome.error:
        found = IN_ERROR.search(outcome.error)
        yield Told("not_run", outcome.error, *((found[1], int(found[2])) if found else place))
    for group in finding_groups([("", outcome)]):
        finding = group.first
        assert isinstance(finding, Finding)
        message = f"{label}: {finding_text(finding, group, WIDE)}"
        yield Told(group.kind, message, *located(finding.location, place), finding.other)
    for group in value_groups([("", outcome)]):
        wrong = group.first
        assert not isinstance(wrong, Finding)
        message = f"{label}: {value_text(wrong, group, WIDE)}"
        yield Told("wrong_value", message, *located(wrong.location, place))
    for note in outcome.notes:
        yield Told(note.kind, f"{label}: {note.brief or note.message}", *located(note.location, place))
    for text in outcome.unshown:
        rule = "loose" if outcome.word == LOOSE else "not_shown"
        yield Told(rule, f"{label}: {text}", *place)
    if outcome.unexecuted:
        first = outcome.unexecuted[0]
        yield Told("not_executed", f"{label}: {describe_unexecuted(done)}", *located(first, place))
    for counters in (execution.counters for execution in done.executions):
        for text in costly(counters) if counters else ():
            where, _, message = text.partition(": ")
            at, _, number = where.rpartition(":")
            yield Told("cost", f"{label}: {message}", at, int(number))


def located(location: Location | None, otherwise: tuple[str, int]) -> tuple[str, int, str]:
    """File, line and text of a place, or of another where it is not known."""
    if location is None or not location.place:
        return *otherwise, ""
    return location.file, location.line, location.text


def result_json(told: Told, request: Request) -> Json:
    found: Json = {
        "ruleId": told.rule,
        "ruleIndex": [*RULES].index(told.rule),
        "level": RULES[told.rule][0],
        "message": {"text": told.message},
        "locations": [place_json(told.file, told.line, told.text, request)],
    }
    if told.other and told.other.place:
        other = told.other
        text = {"text": "the other access"}
        near = place_json(other.file, other.line, other.text, request)
        found["relatedLocations"] = [{"id": 1, **near, "message": text}]
    return found


def place_json(file: str, line: int, text: str, request: Request) -> Json:
    region = {"startLine": line, **({"snippet": {"text": text}} if text else {})}
    return {"physicalLocation": {"artifactLocation": artifact(file, request), "region": region}}


def artifact(file: str, request: Request) -> Json:
    """A file, as seen from the folder of the command where it is in there. Messages have a header's name
    alone."""
    here = Path(file)
    if not here.is_file():
        folder = Path(request.source.folder or ".")
        near = own_files(folder / Path(request.source.file).name, request.options.includes)
        here = next((path for path in near if path.name == here.name), here)
    inside = os.path.relpath(here)
    if inside.startswith(os.pardir):
        return {"uri": here.resolve().as_uri()}
    return {"uri": quote(inside.replace(os.sep, "/")), "uriBaseId": "%SRCROOT%"}
