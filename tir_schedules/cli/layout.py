"""The verb `layout`: which lane touches which bank of a buffer in shared memory, and in which wavefront."""

from __future__ import annotations

import json
from pathlib import Path

from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch
from tir_schedules.cli.problems import add_problem, check_options, problem_of
from tir_schedules.errors import BadInput, shown
from tir_schedules.files import check_folder, write_text
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one
from tir_schedules.numerals import integer_for, integers

SUFFIXES = (".html", ".svg")


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `layout` to those of the other verbs."""
    verb = verbs.add_parser(
        "layout", help="pictures of shared memory: which lane touches which bank in which wavefront"
    )
    verb.add_argument("rung", help=RUNG_HELP)
    verb.add_argument(
        "buffer",
        nargs="?",
        help="A, B, C or X, whose data it holds, or the name of a static array (default: all)",
    )
    verb.add_argument("--twin", action="store_true", help="of the hand-written twin, not of the schedule")
    add_problem(verb, SMALL_SHAPES)
    add_arch(verb)
    verb.add_argument(
        "--block",
        metavar="X,Y,Z",
        type=parse_block,
        default=(0, 0, 0),
        help="the block to look at (default 0,0,0)",
    )
    verb.add_argument(
        "--warp",
        metavar="W",
        type=integer_for("--warp", 1),
        default=0,
        help="its warp to look at (default 0)",
    )
    verb.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write a page or a picture: .html or .svg"
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=layout)


def parse_block(text: str) -> tuple[int, int, int]:
    try:
        x, y, z = integers(text, 3)
    except ValueError:
        raise BadInput(f"--block takes three integers X,Y,Z such as 0,1,0, not {shown(text)}") from None
    return x, y, z


def layout(options: Options) -> int:
    """Run the verb; returns the exit code."""
    rung = find_one(options.rung, "layout")
    if options.output:
        if options.output.suffix not in SUFFIXES:
            raise BadInput(f"layout writes {' or '.join(SUFFIXES)}, not {options.output}")
        check_folder(options.output)
    check_options([rung], options)
    workload = workload_of(rung, problem_of(rung.family, options))
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.insight.banks.requests import patterns_of, watched

    check_arch(options.arch)
    binary = compile_kernel((load_twin if options.twin else lower)(rung, workload, options.arch))
    execution, inputs = watched(binary, workload, options.block, options.warp)
    where = f"warp {options.warp} of block {','.join(map(str, options.block))}"
    if not execution.requests:
        raise BadInput(
            f"{binary.kernel.label}: {where} makes no request to shared memory; there is nothing to show"
        )
    patterns = patterns_of(binary, execution, inputs, workload.outputs, options.buffer)
    title, subject = f"{binary.kernel.label}: {options.buffer or 'shared memory'}", f"{workload}, {where}"
    notes = (
        []
        if execution.requests_met == len(execution.requests)
        else [f"only the first {len(execution.requests)} requests are counted"]
    )
    from tir_schedules.insight.banks.printing import document, print_patterns

    if options.output:
        write_text(options.output, document(options.output.suffix, title, subject, patterns, notes, binary))
    if options.json:
        facts = {
            "kernel": binary.kernel.label,
            "workload": str(workload),
            "block": options.block,
            "warp": options.warp,
        }
        print(json.dumps(facts | {"notes": notes, "patterns": [pattern.as_json() for pattern in patterns]}))
    elif not options.output:
        print_patterns(f"{title}, {subject}", patterns, notes)
    return 0
