"""What a K tile costs each form of a tile on Hopper: the table by which HGEMM chooses its tiles.

    python experiments/tile_costs.py --pack FILE.zip                 # needs no GPU; compiles for sm_90a
    python experiments/cache_states.py FILE.zip RESULT.json          # where the GPU is
    python experiments/tile_costs.py --from RESULT.json              # writes the table into the package
    python experiments/tile_costs.py --check                         # exit code 1 where it is another

A form is timed on gemms that have a tile for each SM, three for each, or one for 16 of them, at two depths of
K. The difference of the two times is that of the K tiles between them, so launch and end of a tile do not
count. No gemm of a recorded benchmark is among them.
"""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections import defaultdict
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from scripts import exit_code

from tir_schedules.bench.session import pack_jobs
from tir_schedules.bench.tables import print_packed
from tir_schedules.cli.options import Parser, add_path, check_pack_file
from tir_schedules.console import print_aligned
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import read_json, write_text
from tir_schedules.ladders.hgemm import hopper, tile_choice, tile_costs
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.ladders.problems import Job
from tir_schedules.ladders.registry import find
from tir_schedules.ladders.settings import varied
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
FOLDER = Path(__file__).parent / "results" / "tile_costs"
RECORDED = FOLDER / "h200.json", FOLDER / "h200_second.json"
"""The later one counts where both have a form in a way."""

DEPTHS = (18 * hopper.DEPTH, 66 * hopper.DEPTH)
ODD = {16: 8, 32: 16, 64: 32}
"""Bytes that rows of A and B are multiples of -> elements that K has beyond whole K tiles."""

COLUMNS = {
    (64, 1, 0): (16, 24, 32, 40, 48, 64, 72, 96, 104, 128, 160, 192, 224, 256),
    (64, 2, 1): (128, 160, 192, 224, 256),
    (128, 1, 0): (64, 80, 96, 112, 128, 144, 160, 176),
    (128, 2, 0): (
        16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 128, 136, 144, 152, 160, 168, 176, 184, 192,
        208, 224, 232, 240, 256,
    ),
    (128, 2, 1): (256, 272, 288, 304, 320, 336, 352),
    (192, 1, 0): (64, 96),
    (192, 2, 1): (96, 128, 160, 192, 224),
    (192, 3, 0): (64, 72, 88, 96, 104, 128, 136, 160, 192),
    (256, 2, 0): (64, 72, 80, 88, 96, 104, 112, 128, 136, 144, 152, 160, 176, 208, 256),
}  # fmt: skip
"""(rows, warpgroups that multiply, 1 where these part columns) -> columns that are timed in one round."""

SEVERAL = {
    (64, 1, 0): (64, 128, 192, 256),
    (64, 2, 1): (128, 256),
    (128, 1, 0): (64, 96, 128, 160, 176),
    (128, 2, 0): (64, 96, 128, 160, 192, 224, 256),
    (128, 2, 1): (256, 272, 288, 304, 320, 352),
    (192, 2, 1): (96, 128, 160, 192, 224),
    (192, 3, 0): (128, 160, 192),
    (256, 2, 0): (96, 128, 144, 160, 176, 208, 256),
}
"""The same in several rounds."""

WITH_ODD_ROWS = (
    (64, 1, 0, 64), (64, 1, 0, 128), (64, 1, 0, 256), (128, 1, 0, 128), (128, 2, 0, 128), (128, 2, 0, 160),
    (128, 2, 0, 256), (192, 2, 1, 192), (256, 2, 0, 144),
)  # fmt: skip


class Way(NamedTuple):
    """How a form is used. cluster: blocks along rows and columns of C. swap: 1 where A and B change places.
    tiles: along rows and columns of C."""

    cluster: tuple[int, int]
    swap: int = 0
    tiles: tuple[int, int] = (11, 12)

    def again(self) -> "Way":
        """In three rounds."""
        return self._replace(tiles=(3 * self.tiles[0], self.tiles[1]))


ONCE = {
    "alone": Way((1, 1)),
    "swapped": Way((1, 1), 1, (12, 11)),
    "rows shared": Way((1, 2)),
    "columns shared": Way((2, 1), 0, (12, 11)),
    "rows and columns shared": Way((2, 2), 0, (12, 10)),
    "rows shared by four": Way((1, 4), 0, (10, 12)),
    "columns shared by four": Way((4, 1), 0, (12, 10)),
    "few": Way((1, 1), 0, (4, 4)),
}
AGAIN = {
    "alone": Way((1, 1)).again(),
    "swapped": Way((1, 1), 1).again(),
    "rows shared": Way((1, 2)).again(),
    "columns shared": Way((2, 1), 0, (12, 11)).again(),
    "swapped, rows shared": Way((2, 1), 1, (12, 11)).again(),
    "swapped, columns shared": Way((1, 2), 1).again(),
}
"""In one round of tiles, and in several. Blocks side by side share rows of A, blocks below each other columns
of B. Clusters of four take 120 SMs, in one round: several rounds are faster without them."""

Form = tuple[int, int, int, int]


def cases() -> Iterator[tuple[Config, HalfGemm]]:
    """What is timed, as far as its stages have room."""
    for columns, ways in ((COLUMNS, ONCE), (SEVERAL, AGAIN)):
        for form in ((*kind, wide) for kind, extents in columns.items() for wide in extents):
            for name, way in ways.items():
                odd = ODD.values() if form in WITH_ODD_ROWS and name != "few" else ()
                for depth in (*DEPTHS, *(DEPTHS[1] + more for more in odd)):
                    config, gemm = case(form, way, depth)
                    able = not hopper.reason_against_tile(gemm, config)
                    if able and (settled := next(tile_choice.settle(gemm, config), None)):
                        yield settled, gemm


def case(form: Form, way: Way, depth: int) -> tuple[Config, HalfGemm]:
    """A form and a gemm. Its sums are in float32, where a thread has registers for these."""
    tall, consumers, part_columns, wide = form
    bm, bn = (wide, tall) if way.swap else (tall, wide)
    config = Config(
        bm=bm, bn=bn, consumers=consumers, part_columns=part_columns, swap=way.swap,
        cluster_m=way.cluster[0], cluster_n=way.cluster[1],
    )  # fmt: skip
    sums = "float32" if "float32" in config.accumulators else "float16"
    gemm = HalfGemm(way.tiles[0] * bm, way.tiles[1] * bn, depth, "nt", sums, output="float16")
    return tile_choice.with_stripes(gemm, config), gemm


def pack(path: Path) -> int:
    """Compile all cases for another computer; 1 when something could not be compiled."""
    check_pack_file(path)
    (rung,) = find("hgemm/tile_shapes")
    jobs: list[Job] = []
    for config, gemm in cases():
        fields = ",".join(f"{name}={value}" for name, value in asdict(config).items() if name != "bk")
        jobs.append((replace(varied(rung, fields), twinned=False), gemm))
    subjects, refused = pack_jobs(jobs, ARCH, path, "tile_costs.py --pack")
    return print_packed(f"{len(subjects)} kernels for {ARCH}", "cache_states.py", path, refused)


def measured(recorded: Iterable[dict[str, Any]]) -> dict[tuple[Form, Way], dict[int, float]]:
    """A form in a way -> depth of K -> cycles."""
    found: dict[Any, dict[int, float]] = defaultdict(dict)
    for row in (row for each in recorded for row in each["rows"]):
        if row["name"].startswith("hgemm/tile_shapes:") and row.get("in_turns_mhz"):
            (rung,) = find(row["name"])
            config, size = rung.config, row["workload"]
            tiles = size["m"] // config.bm, size["n"] // config.bn
            way = Way((config.cluster_m, config.cluster_n), config.swap, tiles)
            cycles = row["in_turns_us"] * row["in_turns_mhz"]
            found[tile_costs.form_of(config), way][size["k"]] = cycles
    return {key: by_depth for key, by_depth in found.items() if set(DEPTHS) <= set(by_depth)}


def cycles_of_k_tile(way: Way, by_depth: dict[int, float]) -> float:
    short, long = (by_depth[depth] for depth in DEPTHS)
    rounds = max(1, round(prod(way.tiles) / hopper.WAVE))
    return (long - short) * hopper.DEPTH / (DEPTHS[1] - DEPTHS[0]) / rounds


def table_of(recorded: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The table of recordings. BadInput where they are of something else."""
    times = measured(recorded)
    if not times:
        raise BadInput("the results have no tiles: they are to be those of a pack of tile_costs.py")
    forms: list[dict[str, Any]] = []
    for form in sorted({form for form, _ in times}):
        costs: dict[str, dict[str, float]] = {}
        for rounds, ways in (("once", ONCE), ("again", AGAIN)):
            found = {name: times[form, way] for name, way in ways.items() if (form, way) in times}
            costs[rounds] = {
                name: round(cycles_of_k_tile(ways[name], by_depth), 1) for name, by_depth in found.items()
            }
        names = ("rows", "consumers", "part_columns", "columns")
        forms.append({**dict(zip(names, form)), **costs})
    return {"device": recorded[-1]["device"]["name"], "date": recorded[-1]["date"], "forms": forms}


def odd_rows(recorded: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Cycles of a K tile where rows of A and B are odd, beside those of whole lines."""
    names = {
        way: (name, rounds) for rounds, ways in (("1", ONCE), ("3", AGAIN)) for name, way in ways.items()
    }
    for (form, way), by_depth in measured(recorded).items():
        if way not in names:  # timed besides, and not in the table
            continue
        whole, each = by_depth[DEPTHS[1]], cycles_of_k_tile(way, by_depth)
        name, rounds = names[way]
        odd = [by_depth.get(DEPTHS[1] + more) for more in ODD.values()]
        if any(odd):
            more = [
                each + (time - whole) / int(rounds) / (DEPTHS[1] // hopper.DEPTH + 1) if time else 0
                for time in odd
            ]
            yield f"{form[0]}x{form[3]}", name, rounds, f"{each:.0f}", *(f"{cycles:.0f}" for cycles in more)


def perform(options: Namespace) -> int:
    if options.pack:
        return pack(options.pack)
    if not options.results and not options.check:
        raise BadInput("say --pack FILE.zip, --from RESULT.json or --check")
    options.results = options.results or RECORDED
    recorded = [read_json(path, "it is to be what cache_states.py wrote") for path in options.results]
    text = json.dumps(table_of(recorded), indent=1) + "\n"
    if options.check:
        if text != tile_costs.TABLE.read_text(encoding="utf-8"):
            raise CheckFailed(f"{tile_costs.TABLE.name} is not what the results say")
        return 0
    write_text(tile_costs.TABLE, text)
    head = ("tile", "used", "rounds", "cycles", *(f"rows of {bytes}" for bytes in ODD))
    print_aligned(head, [*odd_rows(recorded)])
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(description=str(__doc__).splitlines()[0], formatter_class=argparse.HelpFormatter)
    add_path(parser, "--pack", help="compile what is to be timed into a .zip for cache_states.py")
    add_path(parser, "--from", dest="results", nargs="+", help="write the table from what that wrote")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where it differs")
    return exit_code(perform, parser, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
