"""The verb `list`: ladders and rungs, what each adds, its article; the instructions of the CPU machine."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Sequence

from tir_schedules.api.problems import OF_PROBLEMS, check_options, problem_of
from tir_schedules.cli.options import Options, Verbs, add_arch
from tir_schedules.cli.problems import OTHERS, add_kinds, parse_extents
from tir_schedules.errors import BadInput
from tir_schedules.files import read_json
from tir_schedules.ladders.articles import ARTICLES, FACTS
from tir_schedules.ladders.fastest import able, candidates, fastest_rung
from tir_schedules.ladders.known import ladder_names, ladder_of
from tir_schedules.ladders.own import is_path, ladder_at
from tir_schedules.ladders.problems import EMIT_SHAPES, workload_of
from tir_schedules.ladders.registry import FAMILIES, ladder
from tir_schedules.model.rung import Unasked
from tir_schedules.numerals import parse_length, parse_shape, power

WORD = 40  # columns of an opcode with its alternatives that stay whole

HELD_ON_GPU = "instructions_h200.json"
"""What experiments/instructions_on_gpu.py has recorded of the instruction table."""


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("list", help="ladders and rungs, what each adds, its article")
    ladders = f"one of {', '.join(FAMILIES)}, or a folder with one of your own (default: all)"
    verb.add_argument("family", nargs="?", metavar="LADDER", help=ladders)
    verb.add_argument(
        "--articles",
        action="store_true",
        help="the articles' steps: listings, figures",
    )
    verb.add_argument(
        "--instructions",
        action="store_true",
        help="the PTX instructions that the CPU machine knows, and those that it refuses",
    )
    mnk = "for a LADDER: the configuration that each rung takes on this shape, and its estimate"
    verb.add_argument("--mnk", metavar="M,N,K", type=parse_shape, help=mnk)
    add_kinds(verb, several=False)
    verb.add_argument("--n", metavar="N", type=parse_length, help="the same of reduce")
    verb.add_argument("--shape", metavar="S,...", type=parse_extents, help=OTHERS)
    add_arch(verb)
    wide = "every column, and a line for each record, however long"
    verb.add_argument("--wide", action="store_true", help=wide)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=list_rungs)


def list_rungs(options: Options) -> int:
    if options.family:
        options.family = (
            ladder_at(options.family) if is_path(options.family) else ladder_of(options.family)
        ).name
    if options.instructions:
        if options.family or options.articles:
            raise BadInput("--instructions goes with no ladder and with no articles")
        return list_instructions(options.json, options.wide)
    asked = [name for name in OF_PROBLEMS if getattr(options, name) is not None]
    if asked:
        if not options.family or options.articles:
            raise BadInput(f"--{asked[0]} goes with one ladder, such as `tir-schedules list sgemm`")
        return list_estimates(options)
    families = [options.family] if options.family else ladder_names()
    if options.articles:
        return list_articles(families, options.json, options.wide)
    from tir_schedules.api.ladders import ladders
    from tir_schedules.api.results import finish

    found = ladders(*families)
    if options.json:
        return finish(found, True, 2)
    found.show(options.wide)
    return 0


def list_estimates(options: Options) -> int:
    """Of each rung of a ladder on a shape: its configuration, and the microseconds that a model says; why it
    cannot be taken, or that there is no model. The last line has the fastest, or why there is none."""
    one = fastest_rung(options.family)
    if not one:
        raise BadInput(f"the ladder {options.family} has no models: a shape says nothing of its rungs")
    check_options([one], options)
    if not isinstance(options.arch, Unasked):
        from tir_schedules.compiler.toolchain import check_arch

        check_arch(options.arch)
    workload = workload_of(one, problem_of(options.family, options), EMIT_SHAPES)
    rows, names = [], {rung.id: rung for rung in [*ladder(options.family), *candidates(options.family)]}
    for rung in names.values():
        try:
            choice = able(rung, workload, options.arch)
            rows.append((choice.rung.id, choice.estimate.microseconds, str(choice.estimate)))
        except BadInput as error:
            rows.append((rung.id, None, str(error)))
    try:
        best, _ = one.settled(workload, options.arch)
        fastest = {"rung": best.id, "why": best.why}
    except BadInput as error:
        fastest = {"rung": None, "why": str(error)}
    if options.json:
        told = [dict(zip(("rung", "microseconds", "why"), row)) for row in rows]
        print(json.dumps({"rungs": told, "fastest": fastest}, indent=2))
        return 0
    from tir_schedules.console import print_line, print_table

    cells = [(name, "-" if micros is None else f"{micros:.1f}", why) for name, micros, why in rows]
    print_table(("rung", "us", "why"), cells, prose={"why": 30}, keys=0, wide=options.wide)
    print_line(fastest["why"])
    return 0


def list_articles(families: Sequence[str], as_json: bool, wide: bool = False) -> int:
    """Each article's steps: the rung, what the listing says of it, the article's figure and ours."""
    from tir_schedules.report.articles import Here, join_figures, list_facts

    here, articles = Here(), [article for article in ARTICLES.values() if article.family in families]
    if as_json:
        found = [
            {**asdict(article), "steps": [
                {**asdict(step), "here": here.figures(article, step)} for step in article.steps
            ], "device": here.device}
            for article in articles
        ]  # fmt: skip
        print(json.dumps(found, indent=2))
        return 0
    from tir_schedules.api.ladders import SHOWN_BY
    from tir_schedules.console import print_left_out, print_line, print_table

    device, left_out = here.device or "here", []
    prose = {"step": 20, "its listing": 28, "article": 12, device: 12}
    for article in articles:
        columns = (
            "step",
            "rung",
            "its listing",
            "article",
            *(f"article, {one}" for one in article.also),
            device,
        )
        sizes = f" at {', '.join(map(power, article.sizes))}" if article.sizes else ""
        rows = [
            (
                step.name,
                step.typed,
                list_facts(dict(step.facts)) or "-",
                join_figures(step.figures, article.unit),
                *step.also,
                join_figures(here.figures(article, step), article.unit),
            )
            for step in article.steps
        ]
        print_line(f"{article.name}, {article.title} ({article.about}){sizes}")
        left_out += print_table(columns, rows, prose=prose, spare=("its listing",), keys=0, wide=wide)
        for note in article.notes:
            print_line(f"- {note}")
    print_left_out(left_out, SHOWN_BY)
    for name, meaning in FACTS.items():
        print_line(f"{name}: {meaning}")
    return 0


def list_instructions(as_json: bool, wide: bool = False) -> int:
    """What the CPU machine knows of PTX ISA 9.0: how near to a GPU, and what else to write."""
    from tir_schedules.machines.cpu.catalogue import entries

    if as_json:
        print(json.dumps([entry._asdict() for entry in entries()], indent=2))
        return 0
    from tir_schedules.api.ladders import SHOWN_BY
    from tir_schedules.console import print_left_out, print_line, print_table

    columns = ["opcodes", "family", "class", "pipe", "since", "precision"]
    rows = [[e.opcodes, e.family, e.mix, e.pipe, e.since, e.precision, e.note] for e in entries()]
    if held := gpu_agreement():
        columns.append("on an H200")
        for row in rows:
            row.insert(6, held.get(row[0], ""))
    columns.append("held against, rule or remedy")
    if not wide:
        rows = [[spaced(row[0]), *row[1:]] for row in rows]
    prose = {"opcodes": 30, columns[-1]: 24}
    spare = ("since", "family", "class", "pipe")
    print_left_out(print_table(columns, rows, prose=prose, spare=spare, keys=0, wide=wide), SHOWN_BY)
    print_line("{,.sat} stands for nothing or .sat; exact: the bits of a GPU, except for a wide NaN")
    return 0


def spaced(opcodes: str) -> str:
    """Opcodes with blanks between long alternatives and before optional parts, so that lines can end
    there."""
    parts = re.compile(r"(?<=[^{],)|(?=\{,)")
    return " ".join(word if len(word) <= WORD else parts.sub(" ", word) for word in opcodes.split(" "))


def gpu_agreement() -> dict[str, str]:
    """Opcodes of a line -> how many of them were held against an H200, and how many differ; empty where no
    result is recorded, as in an installed package."""
    from tir_schedules.report.recorded import DEFAULT_FOLDER

    path = DEFAULT_FOLDER / HELD_ON_GPU
    rows = read_json(path, "take it from the repository")["lines"] if path.exists() else []
    differing = {row["opcodes"]: f", {row['differs']} differ" if row["differs"] else "" for row in rows}
    return {
        row["opcodes"]: f"{row['held']} of {row['of']}{differing[row['opcodes']]}"
        for row in rows
        if row["held"]
    }
