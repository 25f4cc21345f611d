"""Shapes of GEMMs to be timed: thirty that were chosen, as options of `bench`, or as many as a seed draws.

    tir-schedules bench sgemm/fastest --no-twins $(python experiments/many_shapes.py) -o shapes_sgemm.json
    tir-schedules bench sgemm/fastest --no-twins --random 100 --seed 7 -o drawn_sgemm.json
    python experiments/tables.py    # writes the tables of results/shapes_*.json and results/drawn_*.json

Twenty of the thirty were chosen: common sizes, and sizes that kernels are seldom tuned for. A seed drew the
other ten, with extents as likely to be between 32 and 64 as between 3000 and 6000. Choices were tuned to
them. `bench --random` draws shapes of several kinds by any seed, see `tir_schedules/ladders/drawn_shapes.py`,
and shows the ratios as a distribution.

    python experiments/many_shapes.py hgemm --random 24 --seed 7                        # shows them
    python experiments/many_shapes.py hgemm --random 24 --seed 7 --configs --pack FILE.zip --arch sm_90a
    tir-schedules bench FILE.zip -o regret_hgemm.json                                   # where the GPU is

--configs packs what NAME/fastest chooses and other configurations beside it, by a RULE. `bench` then says how
much longer the choice takes than the best of them, and how far estimates are from what was measured.
"""

from __future__ import annotations

import random
from argparse import Namespace
from dataclasses import replace
from typing import Any

from scripts import exit_code

from tir_schedules.api.problems import kinds_of
from tir_schedules.bench.session import pack_jobs
from tir_schedules.bench.tables import print_packed
from tir_schedules.cli.options import Parser, add_path, check_pack_arch, check_pack_file
from tir_schedules.cli.problems import add_kinds
from tir_schedules.console import print_aligned
from tir_schedules.errors import BadInput
from tir_schedules.ladders.drawn_shapes import draw, drawn_problems, note_on
from tir_schedules.ladders.fastest import Choice, candidates, fastest, ranked
from tir_schedules.ladders.known import FAMILIES
from tir_schedules.ladders.problems import Job, workloads_of
from tir_schedules.numerals import integer_for

SEED = 23
SQUARES = [(size, size, size) for size in (256, 512, 1024, 2048, 4096, 8192, 16384)]
ODD = [(511, 513, 515), (1023, 1023, 1023), (2047, 2047, 2047), (4093, 4093, 4093), (4097, 4095, 1023)]
SKINNY = [
    (3072, 1, 3072),
    (1, 4096, 4096),
    (17, 4096, 4096),
    (4096, 17, 4096),
    (12345, 77, 1001),
    (8192, 64, 8192),
]
LONG = [(96, 96, 65536), (64, 64, 16384)]

FIRST, BESIDE, WITHIN = 12, 4, 3
RULE = (
    f"the {FIRST} that models rank first and {BESIDE} drawn of the others within {WITHIN} times their best"
    " estimate, one of those with the same launch and estimate"
)
"""Which configurations are timed beside the one that is chosen: all would be up to 74 at a shape."""


def drawn(count: int = 10, least: int = 32, most: int = 6000) -> list[tuple[int, int, int]]:
    """Shapes by SEED."""
    draw = random.Random(SEED)

    def extent() -> int:
        return round(least * (most / least) ** draw.random())

    return [(extent(), extent(), extent()) for _ in range(count)]


def shapes() -> list[tuple[int, int, int]]:
    """All thirty: M, N, K."""
    return [*SQUARES, *ODD, *SKINNY, *LONG, *drawn()]


def workloads(options: Namespace) -> list[tuple[str, Any]]:
    """Each ladder's drawn problems as workloads."""
    return [
        (ladder, workloads_of(candidates(ladder)[0], problem)[0])
        for ladder in options.ladders
        for problem in drawn_problems(ladder, options.random, options.seed, kinds_of(ladder, options))
    ]


def by_rule(ladder: str, workload: Any, arch: str, seed: int) -> list[Choice]:
    """The choice and, by RULE, others beside it."""
    found = ranked(ladder, workload, arch)
    most = WITHIN * found[0].estimate.microseconds
    others = [choice for choice in found[FIRST:] if choice.estimate.microseconds <= most]
    beside = random.Random(f"{seed} {workload}").sample(others, min(BESIDE, len(others)))
    return [*found[:FIRST], *beside]


def pack(options: Namespace) -> int:
    """Compile what is drawn for another computer; 1 when something could not be compiled."""
    arch = check_pack_arch(options.arch)
    check_pack_file(options.pack)
    jobs: list[Job] = []
    found = workloads(options)
    note = note_on(options.random, options.seed, [workload for _, workload in found])
    if options.configs:
        note |= {"chosen": {}, "estimated": {}, "rule": RULE}
    for ladder, workload in found:
        if options.configs:
            choices = by_rule(ladder, workload, arch, options.seed)
            note["chosen"][str(workload)] = choices[0].rung.id
            note["estimated"][str(workload)] = {each.rung.id: each.estimate.microseconds for each in choices}
            rungs = [choice.rung for choice in choices]
        else:
            rungs = [fastest(ladder, workload, arch)[0]]
        jobs += [(replace(rung, twinned=False), workload) for rung in rungs]
    command = f"many_shapes.py {' '.join(options.ladders)} --random {options.random} --seed {options.seed}"
    command += " --configs" * options.configs
    subjects, refused = pack_jobs(jobs, arch, options.pack, command, more={"drawn": note})
    kernels = len({binary.cubin for subject in subjects for binary in subject.binaries})
    packed = f"{len(jobs)} schedules, {kernels} kernels for {arch}"
    return print_packed(packed, "bench", options.pack, refused)


def perform(options: Namespace) -> int:
    if options.random is None:
        if options.ladders or options.pack or options.configs or options.seed:
            raise BadInput("--random N is missing: say how many shapes are to be drawn")
        print(*(f"--mnk {m},{n},{k}" for m, n, k in shapes()))
        return 0
    options.ladders = [name.removesuffix("/fastest") for name in options.ladders]
    for name in options.ladders:
        if name not in FAMILIES:
            raise BadInput(f"there is no ladder {name!r}; shapes are drawn for sgemm and hgemm")
    if options.pack:
        if not options.ladders:
            raise BadInput("--pack takes a ladder: sgemm or hgemm")
        return pack(options)
    if options.configs:
        raise BadInput("--configs goes with --pack: other configurations are compiled, to be timed elsewhere")
    kinds = {drawn.shape: drawn.kind for drawn in draw(options.random, options.seed)}
    lines = [(kinds[workload.shape], str(workload)) for _, workload in workloads(options)]
    print_aligned(("kind", "shape"), lines or [(kind, "x".join(map(str, it))) for it, kind in kinds.items()])
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(description=str(__doc__).splitlines()[0])
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="sgemm, hgemm; with --random")
    whole = integer_for("--random", 24)
    parser.add_argument("--random", metavar="N", type=whole, help="so many shapes that --seed draws")
    parser.add_argument("--seed", metavar="S", type=integer_for("--seed", 7), default=0)
    parser.add_argument("--configs", action="store_true", help="other configurations beside what is chosen")
    add_path(parser, "--pack", help="compile into a .zip for `tir-schedules bench` where the GPU is")
    parser.add_argument("--arch", help="of that GPU, such as sm_90a")
    add_kinds(parser, several=True)
    return exit_code(perform, parser, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
