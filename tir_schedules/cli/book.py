"""The verb `book`: a site with a chapter for each rung, from the code, executions and recorded results."""

from __future__ import annotations

from pathlib import Path

from tir_schedules.cli.options import Options, Verbs, add_path

DEFAULT = Path("site")


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `book` to those of the other verbs."""
    verb = verbs.add_parser(
        "book",
        help="a site to read: a chapter for each rung with its figures, code, counts and times; no GPU",
    )
    verb.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        default=DEFAULT,
        help=f"where it goes (default {DEFAULT}/)",
    )
    verb.add_argument(
        "--only",
        metavar="NAME",
        nargs="+",
        default=(),
        help="only some chapters, such as sgemm/naive, or a ladder such as sgemm",
    )
    add_path(
        verb,
        "--results",
        help="a folder of recorded results (default: those of the repository, where there are)",
    )
    verb.set_defaults(verb=book)


def book(options: Options) -> int:
    """Run the verb; returns the exit code."""
    import time

    from tir_schedules.book.records import ABSENT, find_records
    from tir_schedules.book.site import Book, build, check_place, make_folder, write
    from tir_schedules.console import print_line
    from tir_schedules.insight.metrics.formats import plural

    begun = time.monotonic()
    check_place(options.output)
    made = Book(find_records(options.results), options.only)
    count = plural(len(made.rungs), "chapter")
    make_folder(options.output)
    print_line(f"{count}: each kernel is compiled, executed on the CPU machine and drawn")
    write(build(made), options.output)
    if made.records is None:
        print_line(ABSENT)
    seconds = time.monotonic() - begun
    print_line(f"wrote {options.output / 'index.html'} in {seconds:.0f} s; open it in a browser")
    return 0
