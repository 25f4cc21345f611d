"""Kernels on a GPU: Nsight Compute's counters beside those of the CPU machine, and what compute-sanitizer
says.

    python experiments/counters_on_gpu.py pack FILE.zip [NAME ...] --arch sm_90     # needs TVM and nvcc
    python experiments/counters_on_gpu.py count FILE.zip RESULT.json                # needs a GPU, CuPy, ncu
    ... count FILE.zip RESULT.json --more 'tma|gmma|tensor'     # which metrics equal what the machine counts
    python experiments/counters_on_gpu.py sanitize FILE.zip RESULT.json             # compute-sanitizer, too

NAME: ladders, rungs, or `probes`; all of them by default. Every kernel is run and verified before it is
counted. `sanitize` adds what it finds to RESULT.json where that is there.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Sequence

from counter_pack import PROBES, load_all, pack
from cuda_tools import SANITIZERS, is_clean, known_metrics, sanitizer_summary
from scripts import exit_code

from tir_schedules.bench.tables import refusal
from tir_schedules.files import check, check_folder, read_json, write_text
from tir_schedules.insight.profile.cases import launch_all, verify_cases
from tir_schedules.insight.profile.nsight import Entry, differences
from tir_schedules.insight.profile.results import as_text, count_launches, document
from tir_schedules.ladders.registry import FAMILIES, current
from tir_schedules.machines.choice import choose

FLAWED = "flawed"
SHOWN = 20
"""Launches whose differences are printed; the result has all."""


def packing(options: Namespace) -> int:
    """Write a pack; 1 when something could not be compiled."""
    check_folder(options.file)
    count, refused = pack(options.names or [*FAMILIES, PROBES], options.arch, options.file)
    print(f"packed {count} cases for {options.arch}: copy {options.file} to where the GPU is")
    for row in refused:
        print(refusal(row))
    return 1 if refused else 0


def count(options: Namespace) -> int:
    """Run and verify everything, count what is to be counted, write the result; 1 when a kernel is wrong."""
    cases, source = load_all(options.file)
    check_folder(options.result)
    wrong, entries = verify_cases(choose("gpu"), cases)
    print(f"{len(cases) - len(wrong)} of {len(cases)} right", *wrong, sep="\n", flush=True)
    result = document(command_of("count", options), source, entries)
    write_text(options.result, as_text(result))
    command = [sys.executable, __file__, "launch", str(options.file), "--only", "counted"]
    more = known_metrics(options.more) if options.more else []
    counted = count_launches(entries, command, more)
    write_text(options.result, as_text(result))
    print_equal(counted, more)
    print_differences(counted)
    return 1 if wrong else 0


def print_equal(entries: Sequence[Entry], metrics: Sequence[str]) -> None:
    """For each metric that something counts: the CPU machine's counter that equals it most often, and where
    there is none, the first values."""
    print(f"{len(metrics)} further metrics were asked for")
    for metric in metrics:
        values = [entry["measured"].get(metric, 0) for entry in entries]
        if not any(values):
            continue
        equal: Counter[str] = Counter()
        for entry, value in zip(entries, values):
            equal.update(
                f"{access} {name}"
                for access, figures in entry["predicted"].items()
                for name, figure in figures.items()
                if value and figure == value
            )
        best = ", ".join(f"{name} in {count}" for name, count in equal.most_common(2))
        first = ", ".join(f"{value:.0f}" for value in values[:4])
        print(f"{metric}: not 0 in {sum(map(bool, values))}; equal to {best or 'nothing'}; first {first}")


def print_differences(entries: Sequence[Entry]) -> None:
    """How many launches were counted as predicted, and those that were not."""
    differing = {number: found for number, entry in enumerate(entries) if (found := differences(entry))}
    for number in list(differing)[:SHOWN]:
        print(entries[number].get("probe", entries[number]["label"]))
        for metric, (predicted, measured) in differing[number].items():
            print(f"    {metric}: predicted {predicted}, measured {measured:.0f}")
    if len(differing) > SHOWN:
        print(f"    and {len(differing) - SHOWN} more, which the result has")
    print(f"counters equal for {len(entries) - len(differing)} of {len(entries)} launches")


def sanitize(options: Namespace) -> int:
    """Add the closing line of each tool to the result, ladder by ladder; 1 when one finds something in what
    is not flawed."""
    cases, source = load_all(options.file)
    result = read_result(options.result) or document(command_of("sanitize", options), source)
    check_folder(options.result)
    result["sanitizers"], unclean = {}, 0
    for family, only in dict.fromkeys(
        (case.family, FLAWED if case.flawed else "sound") for case in cases if case.family != "probe"
    ):
        command = [sys.executable, __file__, "launch", str(options.file), "--only", only, "--family", family]
        for name in SANITIZERS:
            summary = sanitizer_summary(name, command, f"{family}_")
            unclean += only != FLAWED and not is_clean(summary)
            key = f"{name}, {family}" + (f", {FLAWED}" if only == FLAWED else "")
            result["sanitizers"][key] = summary
            print(f"{key}: {summary}", flush=True)
            write_text(options.result, as_text(result))
    return 1 if unclean else 0


def launch(options: Namespace) -> int:
    """What the tools watch: every case that is asked for, once, in order."""
    wanted = {
        "counted": lambda case: case.predicted is not None,
        "sound": lambda case: not case.flawed,
        FLAWED: lambda case: case.flawed,
    }[options.only]
    cases = load_all(options.file)[0]
    launch_all(
        choose("gpu"), [case for case in cases if wanted(case) and options.family in (None, case.family)]
    )
    return 0


def command_of(verb: str, options: Namespace) -> str:
    return f"experiments/counters_on_gpu.py {verb} {options.file.name}"


def read_result(path: Path) -> dict[str, Any] | None:
    """An earlier result, None when there is none. BadInput for a file that is something else."""
    if not path.exists():
        return None
    from tir_schedules.subjects.schemas import Counters

    remedy = "name another file"
    result = read_json(path, remedy)
    check(result, Counters, f"{path} is not a result that `count` wrote", remedy)
    return current(result)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    verbs = top.add_subparsers(required=True, metavar="VERB")
    for verb, does in {"pack": packing, "count": count, "sanitize": sanitize, "launch": launch}.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(";")[0].partition(".")[0])
        one.set_defaults(does=does)
        one.add_argument("file", type=Path, metavar="FILE.zip")
        if does is packing:
            one.add_argument(
                "names",
                nargs="*",
                metavar="NAME",
                help=f"a ladder ({', '.join(FAMILIES)}), a rung, or {PROBES}",
            )
            one.add_argument("--arch", required=True, help="the GPU's architecture, such as sm_90")
        elif does is launch:
            one.add_argument("--only", choices=("counted", "sound", FLAWED), required=True)
            one.add_argument("--family", choices=FAMILIES)
        else:
            one.add_argument("result", type=Path, metavar="RESULT.json")
            if does is count:
                one.add_argument(
                    "--more", metavar="REGEX", help="also every metric of this GPU whose name has this"
                )
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
