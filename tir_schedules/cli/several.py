"""`check` of one file or several: each is checked by itself, and the exit code is the worst of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tir_schedules.check.options import commented_checks, parse_comment, requests_of
from tir_schedules.cli.options import Options
from tir_schedules.errors import BadInput, MissingTool, TirSchedulesError
from tir_schedules.files import write_output
from tir_schedules.source import own_files, read_source

if TYPE_CHECKING:
    from tir_schedules.api.results import Result


def check_files(options: Options) -> int:
    """Check the files of a command, print what is found and write what is asked for; the exit code."""
    from tir_schedules.api.checking import Check
    from tir_schedules.api.results import finish
    from tir_schedules.check.sarif import sarif

    several = len(options.files) > 1
    files = with_checks(options.files) if several else options.files
    done: list[tuple[Path, Result]] = []
    failed: list[tuple[Path, TirSchedulesError]] = []
    for file in files:
        try:
            done.append((file, check_file(options, file)))
        except TirSchedulesError as error:
            failed.append((file, error))
        if several and not options.json:
            show_file(file, done, failed)
    checks = [one for _, one in done if isinstance(one, Check)]
    if options.sarif:
        pairs = [(request, one) for found in checks for request, one in found.checked if request]
        write_output(options.sarif, json.dumps(sarif(pairs, [str(error) for _, error in failed]), indent=2))
    if several:
        return finish_several(options, done, failed)
    if failed:
        raise failed[0][1]
    if options.page and checks:
        from tir_schedules.pages.folder import write_page

        write_page(options.page, checks[0].page())
    return finish(done[0][1], options.json, 2)


def check_file(options: Options, file: Path) -> Result:
    """What is found in one file, or with --dry-run what would be done. MissingTool for a single kernel that
    has what the machine does not know."""
    from tir_schedules.api.checking import check_requests
    from tir_schedules.api.plans import plan_of_requests
    from tir_schedules.insight.times.timed import target_of
    from tir_schedules.machines.choice import arch_for, choose

    machine = choose(options.machine, options.orders)
    if options.time:
        options.arch = target_of().arch_for(options.arch)
    requests = requests_of(options, read_source(file), arch_for(machine, options.arch))
    for request in requests:
        arch_for(machine, request.options.arch)
    if options.dry_run:
        read = [launch.read for request in requests for launch in request.launches if launch.read]
        return plan_of_requests(requests, *read, f"{len(requests)} to check on {machine.device_name}")
    found = check_requests(requests, machine, options.advice, time=options.time)
    if len(found.checked) == 1 and found.checked[0][1].unsupported:
        raise MissingTool(found.checked[0][1].outcome.error)
    return found


def watched_files(options: Options) -> list[Path]:
    """The files, and what they include of the user's."""
    found: dict[Path, None] = {}
    for file in options.files:
        folders = [*(options.includes or ())]
        try:
            source = read_source(file)
            for place, words in commented_checks(source.text, source.file):
                folders += parse_comment(words, place).includes or ()
        except BadInput:
            pass  # which the check itself tells
        found |= dict.fromkeys(own_files(file, folders))
    return [*found]


def with_checks(files: Sequence[Path]) -> list[Path]:
    """Those with `check:` comments; of others a line says that they are left out."""
    from tir_schedules.console import print_error

    sources = {file: read_source(file) for file in files}
    left_out = [file for file, one in sources.items() if not commented_checks(one.text, one.file)]
    if len(left_out) == len(files):
        raise BadInput("no file has a `// check:` comment: say in each how its kernels are launched")
    for file in left_out:
        print_error(f"{file} has no `// check:` comment, and is left out")
    return [file for file in files if file not in left_out]


def show_file(
    file: Path, done: Sequence[tuple[Path, Result]], failed: Sequence[tuple[Path, TirSchedulesError]]
) -> None:
    """What became of the file that was last."""
    from tir_schedules.console import print_error, print_line

    print_line(f"{file}:")
    if done and done[-1][0] == file:
        done[-1][1].show()
    else:
        print_error(str(failed[-1][1]))
    print_line()


def finish_several(
    options: Options, done: Sequence[tuple[Path, Result]], failed: Sequence[tuple[Path, TirSchedulesError]]
) -> int:
    """All of them in one line, or in one JSON; the worst exit code."""
    from tir_schedules.console import print_error, print_line

    wrong = [file for file, found in done if not found.ok]
    if options.json:
        told = [(file, found.to_json()) for file, found in done]
        every = [(file, each) for file, some in told for each in (some if isinstance(some, list) else [some])]
        print(json.dumps([{"file": str(file), **each} for file, each in every], indent=2))
        for _, error in failed:
            print_error(str(error))
    elif not options.dry_run:
        line = f"{len(done) + len(failed)} files: {len(done) - len(wrong)} without a fault"
        line += f", {len(wrong)} with: {', '.join(map(str, wrong))}" if wrong else ""
        line += f", {len(failed)} not checked: {', '.join(str(file) for file, _ in failed)}" if failed else ""
        print_line(line)
    return max([int(bool(wrong)), *(error.exit_code for _, error in failed)])
