"""The verb `layout`: which lane touches which bank of a buffer in shared memory, and in which wavefront; and
which thread loads or stores which element of an array in global memory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tir_schedules.api.problems import check_options, problem_of
from tir_schedules.cli.files import FILE_HELP, add_file, check_ending, check_no_file, one_request, the_file
from tir_schedules.cli.options import RUNG_HELP, Options, Parser, Verbs, add_arch, add_path
from tir_schedules.cli.problems import add_problem
from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.files import check_page, to_json
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one
from tir_schedules.numerals import integer_for, three_integers

if TYPE_CHECKING:
    from tir_schedules.insight.banks.requests import Pattern
    from tir_schedules.insight.banks.shared_tiles import SharedTile
    from tir_schedules.insight.threads.mapping import Asked, ThreadMap
    from tir_schedules.model.kernel import Binary
    from tir_schedules.model.launch import Dim3
    from tir_schedules.model.machine import Execution
    from tir_schedules.model.workload import Workload

SUFFIXES = (".html", ".svg")
RING_SHAPES = {"hgemm": ((256, 256, 768),)}
"""Sizes at which every slot of a ring is used twice."""


NUMBERS = (
    "; or the number of a launch, from 1 on, also for rungs (default: for an output of a rung the last"
    " launch, else the first that accesses the array)"
)
"""What `--launch` takes besides what it takes for `check`."""


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `layout` to those of the other verbs."""
    verb = verbs.add_parser(
        "layout",
        help="pictures of who accesses what: banks of shared memory, elements of arrays in global memory",
    )
    verb.add_argument("rung", metavar="NAME", help=f"{RUNG_HELP}; {FILE_HELP}")
    verb.add_argument(
        "buffer",
        nargs="?",
        help="an array in shared memory: A, B, C or X for the data it holds, or the name of a static array;"
        " for a file an array or a line (default: all). Or an array in global memory",
    )
    verb.add_argument("--twin", action="store_true", help="show the hand-written twin, not the schedule")
    add_problem(verb, SMALL_SHAPES)
    add_arch(verb)
    verb.add_argument(
        "--block",
        metavar="X,Y,Z",
        help="the block to look at (default 0,0,0); for a file the threads of a block, as for `check`",
    )
    verb.add_argument(
        "--at", metavar="X,Y,Z", type=parse_at, help="for a file: the block to look at (default 0,0,0)"
    )
    verb.add_argument(
        "--warp",
        metavar="W",
        type=integer_for("--warp", 1),
        help="the warp to look at (default 0; for global memory the first that accesses the array)",
    )
    add_global(verb)
    add_path(verb, "-o", "--output", help="write a page or a picture: .html or .svg")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.add_argument(
        "--ring",
        action="store_true",
        help="for a rung with mbarriers: which warps wait for which slots, step by step",
    )
    verb.add_argument(
        "--steps",
        metavar="N",
        type=integer_for("--steps", 1),
        default=40,
        help="with --ring: how many steps to print (default 40)",
    )
    add_file(verb, block=False, numbers=NUMBERS)
    verb.set_defaults(verb=layout)


def add_global(verb: Parser) -> None:
    """Options for arrays in global memory."""
    verb.add_argument(
        "--memory",
        choices=("shared", "global"),
        help="where to look. Default: shared for an array that the warp has copied there; global for any"
        " other array, for outputs, and with the options below",
    )
    verb.add_argument(
        "--by",
        choices=("block", "warp", "scheduler", "lane", "step"),
        help="for global memory: what colours the elements; `block` shows all blocks, and --warp and --lane"
        " restrict the others to this warp or lane (default: the block by warp, a warp by lane, and a lane by"
        " step)",
    )
    verb.add_argument(
        "--lane", metavar="L", type=integer_for("--lane", 1), help="for global memory: the lane of the warp"
    )
    verb.add_argument(
        "--tile",
        metavar="N",
        help="of global memory: what is accessed up to the next barrier, from 0 on, or `all` (default: 0 of"
        " loads, all of stores)",
    )
    verb.add_argument(
        "--access",
        choices=("store", "update", "load"),
        help="of global memory: which accesses (default: stores, else atomic updates, else loads)",
    )
    verb.add_argument(
        "--columns",
        metavar="N",
        type=integer_for("--columns", 1),
        help="of global memory: elements in a row, of an array of one dimension (default 64)",
    )


OF_GLOBAL = ("by", "lane", "tile", "access", "columns")
"""Options that are for arrays in global memory alone."""


def is_of_global(options: Options, of_rung: bool) -> bool | None:
    """Whether global memory is asked for; None where that is open."""
    names = (*OF_GLOBAL, "number") if of_rung else OF_GLOBAL
    given = [name for name in names if getattr(options, name) is not None]
    name = "" if not given else "--launch" if given[0] == "number" else f"--{given[0]}"
    if name and options.memory == "shared":
        raise BadInput(f"{name} is for global memory; leave out --memory shared")
    if name and options.ring:
        raise BadInput(f"{name} is for global memory; --ring shows shared memory")
    if not given and options.memory is None:
        return None
    if options.memory != "shared" and not options.buffer:
        raise BadInput("name the array in global memory, such as C")
    return options.memory != "shared"


def asked_of(options: Options, block: Dim3 | None) -> Asked:
    """What is asked of an array in global memory. block: None where none is named."""
    from tir_schedules.insight.threads.mapping import ALL, Asked, check_selection

    tile = None
    if options.tile is not None:
        tile = ALL if options.tile == "all" else integer_for("--tile", 0)(options.tile)
        if options.tile != "all" and tile < 0:
            raise BadInput(f"there is no tile {tile}; they are counted from 0")
    columns = 0 if options.columns is None else options.columns
    if options.columns is not None and columns < 1:
        raise BadInput(f"--columns takes at least 1, not {columns}")
    named = {
        "--block" if options.at is None else "--at": block,
        "--warp": options.warp,
        "--lane": options.lane,
    }
    check_selection(options.by, named)
    at = None if options.by == "block" else block or (0, 0, 0)
    return Asked(options.buffer, at, options.access or "", tile, columns, options.number)


def shown_map(options: Options, found: ThreadMap) -> int:
    """Who accesses an array in global memory, written and printed."""
    from tir_schedules.insight.threads.views import Shown

    shown = Shown(found, options.by, options.warp, options.lane)
    if options.output:
        from tir_schedules.pages.folder import write_page

        write_page(options.output, shown.document(options.output.suffix))
    if options.json:
        print(json.dumps(to_json(shown.as_json())))
    elif not options.output:
        shown.print()
    return 0


def parse_block(text: str) -> tuple[int, int, int]:
    return three_integers(text, "--block takes three integers X,Y,Z such as 0,1,0")


def parse_at(text: str) -> tuple[int, int, int]:
    return three_integers(text, "--at takes three integers X,Y,Z such as 0,1,0")


def layout(options: Options) -> int:
    """Run the verb; returns the exit code."""
    if options.output:
        if options.output.suffix not in SUFFIXES:
            raise BadInput(f"layout writes {' or '.join(SUFFIXES)}, not {options.output}")
        check_page(options.output)
    path = the_file([options.rung], "layout")
    options = with_number(options)
    if options.ring and path:
        raise BadInput(f"--ring is for rungs; {path} is a file")
    return layout_of_file(options, path) if path else layout_of_rung(options)


def with_number(options: Options) -> Options:
    """The same with `number`: the launch that --launch names by its number, None where it names none."""
    numbers = [text for text in options.launch or () if re.fullmatch(r"[+-]?\d+", text)]
    if len(numbers) > 1:
        raise BadInput(f"--launch takes one number, not {' and '.join(numbers)}")
    number = integer_for("--launch", 1)(numbers[0]) if numbers else None
    rest = [text for text in options.launch or () if text not in numbers]
    return Options(**{**vars(options), "launch": rest or None, "number": number})


def layout_of_rung(options: Options) -> int:
    wants_global = is_of_global(options, of_rung=True)
    named = None if options.block is None else parse_block(options.block)
    block = named or (0, 0, 0)
    check_ending(options.rung)
    check_no_file(Options(**{**vars(options), "block": None}), options.rung)
    if options.at:
        raise BadInput("--at is for files; of a rung --block names the block to look at")
    rung = find_one(options.rung, "layout")
    check_options([rung], options)
    shapes = RING_SHAPES if options.ring and rung.family in RING_SHAPES else SMALL_SHAPES
    workload = workload_of(rung, problem_of(rung.family, options), shapes)
    from tir_schedules.api.layouts import map_of_rung
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.insight.banks.requests import chosen, in_global, patterns_of, watch_block
    from tir_schedules.insight.banks.shared_tiles import find_shared_tiles
    from tir_schedules.insight.banks.views import place
    from tir_schedules.insight.threads.mapping import array_names
    from tir_schedules.subjects.compiling import settle_jobs

    check_arch(options.arch)
    ((rung, workload),) = settle_jobs([(rung, workload)], options.arch)

    def of_global() -> int:
        asked = asked_of(options, named)
        return shown_map(options, map_of_rung((rung, workload), asked, options.arch, options.twin))

    if wants_global or wants_global is None and not options.ring and options.buffer in workload.outputs:
        return of_global()
    binary = compile_kernel((load_twin if options.twin else lower)(rung, workload, options.arch))
    if options.ring:
        return ring_of(options, binary, workload, block)
    warp = options.warp or 0
    execution, inputs = watch_block(binary, workload, block, warp)
    where = place(block, warp)
    tiles = find_shared_tiles(execution.events) if execution.events else []
    every = patterns_of(binary, execution, inputs, workload.outputs, None)
    known = {name for one in every for name in (one.buffer, one.variable)} | {tile.buffer for tile in tiles}
    arrays = array_names([binary.kernel], workload)
    anything = bool(execution.requests or tiles)
    if wants_global is None and options.buffer and (not anything or options.buffer in {*arrays} - known):
        return of_global()
    if not anything:
        raise BadInput(
            f"{binary.kernel.label}: {where} makes no request to shared memory; there is nothing to show."
            " Name an array to see who accesses it in global memory"
        )
    at_units = [tile for tile in tiles if options.buffer in (None, tile.buffer)]
    patterns = every if at_units or options.buffer is None else chosen(every, options.buffer, arrays)
    patterns = [one for one in patterns if options.buffer in (None, one.buffer, one.variable)]
    if not patterns and not at_units:
        touched = [tile.buffer for tile in tiles]
        raise BadInput(
            f"no unit and no thread of {where} touches a buffer {shown(options.buffer)} in shared memory"
            f"{nearest(options.buffer or '', [*touched, *arrays])}; units touch {', '.join(touched)}"
            f"{in_global(arrays)}"
        )
    return shown_as(options, binary, str(workload), block, patterns, cut_off(execution), at_units)


def ring_of(options: Options, binary: Binary, workload: Workload, block: Dim3) -> int:
    """Who waits for whom; exit code 0 also where somebody waits for ever."""
    from tir_schedules.insight.ring.timeline import timeline, watch_units
    from tir_schedules.insight.ring.views import document, print_timeline

    events = watch_units(binary, workload, block).events
    assert events is not None, "they were asked for"
    found = timeline(events)
    if not found.rows:
        raise BadInput(f"{binary.kernel.label} has no mbarrier; --ring shows who waits at those")
    title = f"{binary.kernel.label}: who waits for whom"
    subject = f"{workload}, block {','.join(map(str, block))}"
    if options.output:
        from tir_schedules.pages.folder import write_page

        write_page(options.output, document(options.output.suffix, title, subject, found, binary))
    if options.json:
        facts = {"kernel": binary.kernel.label, "workload": str(workload), "block": block}
        print(json.dumps(facts | to_json(found)))
    elif not options.output:
        print_timeline(f"{title}, {subject}", found, options.steps)
    return 0


def layout_of_file(options: Options, path: Path) -> int:
    """Of the first launch in which the warp uses shared memory."""
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.errors import CheckFailed
    from tir_schedules.insight.banks.views import place
    from tir_schedules.insight.files.views import (
        arrays_of_file,
        chosen,
        map_of_file,
        name_of,
        patterns_in,
        ready_for,
        variables_of,
        watch_launches,
    )

    wants_global = is_of_global(options, of_rung=False)
    if options.twin:
        raise BadInput(f"--twin is for rungs; {path} is a file")
    check_arch(options.arch)
    ready = ready_for(one_request(options, path, options.arch, "layout"))
    if isinstance(ready, CheckFailed):
        raise ready
    block, warp = options.at or (0, 0, 0), options.warp or 0

    def of_global() -> int:
        return shown_map(options, map_of_file(ready, asked_of(options, options.at), str(path)))

    if wants_global:
        return of_global()
    launches = watch_launches(ready, block, warp, options.number)
    found = next((one for one in launches if one[2].requests), None)
    patterns = patterns_in(found[1].binary, found[2].requests) if found else []
    known = {name for one in patterns for name in (one.variable, one.name)}
    arrays = arrays_of_file(ready)
    others = {*arrays, *variables_of(ready)} - known
    is_array = options.buffer and name_of(ready, options.buffer) in others
    if wants_global is None and options.buffer and (not found or is_array):
        return of_global()
    if not found:
        raise BadInput(
            f"{ready.label}: {place(block, warp)} makes no request to shared memory; there is nothing to"
            " show. Name an array to see who accesses it in global memory"
        )
    number, step, execution = found
    patterns = patterns if options.buffer is None else chosen(patterns, options.buffer, arrays)
    notes = cut_off(execution)
    if len(ready.steps) > 1:
        notes.append(f"this is launch {number} of {len(ready.steps)}; --launch N shows another")
    return shown_as(options, step.binary, str(path), block, patterns, notes)


def cut_off(execution: Execution) -> list[str]:
    """A note where the warp makes more requests than are kept."""
    kept = len(execution.requests)
    return [] if execution.requests_met == kept else [f"only the first {kept} requests are counted"]


def shown_as(
    options: Options,
    binary: Binary,
    of: str,
    block: Dim3,
    patterns: Sequence[Pattern],
    notes: list[str],
    tiles: Sequence[SharedTile] = (),
) -> int:
    """Patterns and tiles in shared memory, written and printed. of: the workload, or the file."""
    from tir_schedules.insight.banks.views import Layout, document, print_layout

    found = Layout(binary, of, block, options.warp or 0, options.buffer or "", patterns, notes, tiles)
    if options.output:
        from tir_schedules.pages.folder import write_page

        write_page(options.output, document(found, options.output.suffix))
    if options.json:
        print(json.dumps(to_json(found)))
    elif not options.output:
        print_layout(found)
    return 0
