"""The articles' tables beside those of the GPU at hand.

    python experiments/articles.py [002 003 000 001] [-o FILE.json]
        measure and print; needs a GPU, TVM and nvcc
    python experiments/articles.py [002 ...] --pack FILE.zip --arch sm_90
        compile for another computer
    python experiments/articles.py FILE.zip [-o FILE.json]
        measure there; needs a GPU and CuPy
    python experiments/articles.py [002 ...] --from FILE.json
        print what was recorded
    python experiments/articles.py --write | --check
        write experiments/README.md from recorded results, or say whether that would change it

Kernels are timed as `tir-schedules bench` times them; FILE.json is what `bench --output` writes.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import Any, Sequence

from article_tables import TABLES, article_of, listing_section, notes_of, part_of, section, tables
from scripts import add_recorded_options, check_alone, exit_code
from writing import update

from tir_schedules.bench import session
from tir_schedules.bench.tables import escape_cells, refusal
from tir_schedules.cli.options import check_pack_arch, check_pack_file, is_pack
from tir_schedules.console import print_line, print_table
from tir_schedules.files import check_folder, print_wrote
from tir_schedules.ladders.articles import Article
from tir_schedules.ladders.registry import find
from tir_schedules.machines.choice import arch_for
from tir_schedules.model.rung import Rung
from tir_schedules.subjects.results import load_results, save_results

FOLDER = Path(__file__).parent
REMEDY = "name a JSON file that `experiments/articles.py --output` or `bench --output` wrote"
RECORDED = FOLDER / "results" / "articles_h100.json"


def jobs_of(articles: Sequence[Article]) -> list[tuple[Rung, Any]]:
    """Rungs and workloads of all steps and sizes, each pair once, those of a workload together."""
    pairs = {}
    for article in articles:
        for workload in map(article.workload, article.sizes):
            pairs |= {(step.rung, workload): None for step in article.steps}
    return [(find(name)[0], workload) for name, workload in pairs]


def pack(articles: Sequence[Article], arch: str | None, path: Path) -> int:
    """Compile for another computer; 1 when something could not be compiled."""
    arch = check_pack_arch(arch)
    subjects, refused = session.pack_jobs(jobs_of(articles), arch, path, command_of(articles))
    advice = f"copy {path} to where the GPU is and run `python experiments/articles.py {path.name}`"
    print_line(f"packed {len(subjects)} subjects for {arch}: {advice}")
    for row in refused:
        print_line(refusal(row))
    return 1 if refused else 0


def measured(articles: Sequence[Article], arch: str | None) -> dict[str, Any]:
    """Compile and time on this computer's GPU; returns a results document."""
    machine = session.gpu_machine()
    return session.measure_jobs(machine, jobs_of(articles), arch_for(machine, arch), command_of(articles))


def measured_pack(path: str) -> dict[str, Any]:
    """The same for a pack."""
    return session.measure_pack(Path(path), f"experiments/articles.py {Path(path).name}")


def command_of(articles: Sequence[Article]) -> str:
    return " ".join(["experiments/articles.py", *(article.name for article in articles)])


def show(articles: Sequence[Article], results: dict[str, Any]) -> None:
    """Print the tables of those articles of which something was measured."""
    for article in articles:
        part = part_of(article, results)
        if part["rows"] or part["refused"]:
            print_line(f"Article {article.name}")
            for heads, lines in tables(article, part):
                print_table(escape_cells(heads), map(escape_cells, lines))
                print_line()
            for note in notes_of(article, part):
                print_line(note)
            print_line()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    names = f"articles ({', '.join(TABLES)}; default: all), or a .zip that --pack wrote"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write every sample and where it comes from as JSON"
    )
    parser.add_argument(
        "--pack", metavar="FILE", type=Path, help="compile into a .zip for a computer without TVM and nvcc"
    )
    parser.add_argument(
        "--arch", help="GPU architecture to compile for (default: that of this computer's GPU)"
    )
    add_recorded_options(parser, RECORDED)
    return parser


def perform(options: Namespace) -> int:
    """Do what the options ask for; returns the exit code."""
    if options.write or options.check:
        check_alone("--write" if options.write else "--check", options, ("names", "output", "pack", "arch"))
        results = (
            load_results(options.recorded or RECORDED, remedy=REMEDY)
            if options.recorded or RECORDED.exists()
            else None
        )
        changed = update(options.readme, "article", lambda name: section(name, results), options.check)
        return changed | update(options.readme, "listing", listing_section, options.check)
    packed = is_pack(options.names)
    articles = [article_of(name) for name in (() if packed else options.names)] or list(TABLES.values())
    if packed:
        check_alone("a pack to be timed", options, ("pack", "recorded", "arch"))
    if options.pack:
        check_alone("--pack", options, ("output", "recorded"))
        check_pack_file(options.pack)
        return pack(articles, options.arch, options.pack)
    if options.output:
        check_folder(options.output)
    if options.recorded:
        results = load_results(options.recorded, remedy=REMEDY)
    else:
        results = measured_pack(options.names[0]) if packed else measured(articles, options.arch)
    if options.output:
        save_results(results, options.output)
        print_wrote(options.output)
    show(articles, results)
    return 1 if results["refused"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
