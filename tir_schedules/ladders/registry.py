"""The registry of all rungs: those of a ladder in order, and those that a name stands for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Iterable

from tir_schedules.errors import BadInput, nearest
from tir_schedules.ladders import fastest
from tir_schedules.ladders.known import FAMILIES as FAMILIES
from tir_schedules.ladders.known import is_ladder, rungs_beside
from tir_schedules.ladders.known import rung_names as rung_names
from tir_schedules.ladders.own import RUNGS, at_path, is_path, ladder_rungs, split
from tir_schedules.ladders.settings import varied
from tir_schedules.model.rung import Rung

TREES = ("reduce/divergent", "reduce/interleaved", "reduce/sequential", "reduce/first_add")

FORMER = {f"{tree}:in_place": tree for tree in TREES} | {
    "hgemm/mma_permuted": "hgemm/mma_xor_swizzle",
    "hgemm/wmma_shared:unpadded": "hgemm/wmma_shared:article_004",
    "hgemm/wmma_padded:padded": "hgemm/wmma_padded:article_004",
    "hgemm/wmma_swizzled_grid:partial_group": "hgemm/wmma_swizzled_grid:article",
    "reduce/unrolled_warp:volatile": "reduce/unrolled_warp:article",
    "reduce/unrolled:volatile": "reduce/unrolled:article",
    "sgemm/shared_tile:000": "sgemm/shared_tile:article_000",
    "sgemm/thread_tile_1d:000": "sgemm/thread_tile_1d:article_000",
    "sgemm/thread_tile_2d:000": "sgemm/thread_tile_2d:article_000",
    "sgemm/thread_tile_2d:003": "sgemm/thread_tile_2d:article_003",
    "sgemm/transposed:000": "sgemm/transposed:article",
    "sgemm/warp_tiling:000": "sgemm/warp_tiling:article",
}
"""Ids that rungs had once -> those they have now. Users may type either; recorded files have either."""

REUSED = {"sgemm/vectorized": ("sgemm/transposed", "2026-11-22T19:10:00Z")} | {
    tree: (f"{tree}:rfactor", "2026-11-26T22:06:00Z") for tree in TREES
}
"""Ids that another rung or configuration has had since a time (UTC) -> what is now the id of the one that had
them before.

A user who types such an id means the rung of today. A file whose date is earlier means the other one.
"""

NAMED = "named"
"""What a file that is loaded with the names of today gets: the time since which it means them. So it can be
written and loaded again."""

FORMER_FIELDS = {"skew": "padding", "stripe": "threadblock_swizzle"}
"""The same for fields of their configurations."""


def add_entries(ids: dict[str, str]) -> dict[str, str]:
    """Former ids -> today's, and the same of `__global__` functions, which have the names of rungs alone."""
    rungs = {former: now for former, now in ids.items() if ":" not in former + now}
    return ids | {former.replace("/", "_"): now.replace("/", "_") for former, now in rungs.items()}


NAMES = add_entries(FORMER)
FORMER_SETTING = re.compile(rf"(?<=[:,])({'|'.join(FORMER_FIELDS)})(?==)")


def ladder(family: str) -> list[Rung]:
    """The rungs of a family in the order they build on each other, each in its default configuration."""
    return ladder_rungs(family)


def every_rung(*families: str) -> list[Rung]:
    """All rungs of the families, by default of all, in all their configurations but the flawed ones."""
    return [
        variant for family in families or FAMILIES for rung in ladder(family) for variant in rung.variants()
    ]


def find(name: str) -> list[Rung]:
    """The rungs `name` stands for: "sgemm" the whole ladder, "sgemm/naive" one rung,
    "sgemm/warp_tiling:128x128" one variant, "sgemm/naive:ts=16" one with a field set; "./my_rung.py" and
    "./my_ladder" those of one's own.

    "sgemm/fastest" is one that stands for another, which a workload and an architecture decide, see
    `Rung.settled`. BadInput with the nearest name when there is none.
    """
    if is_path(name):
        variant = split(name)[1]
        return [varied(rung, variant) for rung in at_path(name)]
    asked, name = name, current(name)
    if is_ladder(name):
        return ladder(name)
    base, _, variant = name.partition(":")
    family, _, of_ladder = base.partition("/")
    if of_ladder == fastest.NAME and is_ladder(family):
        return [one_for_all(family, variant)]
    known = [*ladder(family), *rungs_beside(family)] if is_ladder(family) else []
    bases = {rung.id: rung for rung in known} | RUNGS
    if base in bases and (variant in bases[base].configs or "=" in variant or not variant):
        return [varied(bases[base], variant)]
    every_base = [base for each in FAMILIES for base in (*ladder(each), *rungs_beside(each))]
    by_id = [rung.id for base in every_base for rung in base.variants(flawed=True)]
    standing = [f"{each}/{fastest.NAME}" for each in FAMILIES]
    hint = nearest(asked, [*FAMILIES, *by_id, *standing, *RUNGS, *FORMER])
    hint = renamed(hint, FORMER)
    if Path(f"{base}.py").is_file():
        hint = f", did you mean './{asked.replace(base, f'{base}.py', 1)}'?"
    raise BadInput(f"there is no rung {asked!r}{hint}; `tir-schedules list` shows all")


def one_for_all(family: str, variant: str) -> Rung:
    """NAME/fastest of a ladder."""
    rung = fastest.fastest_rung(family)
    if not rung:
        raise BadInput(f"the ladder {family} has no models, so that it has no {family}/{fastest.NAME}")
    if variant:
        raise BadInput(f"{rung.id} takes the configuration that suits the shape: leave out {variant!r}")
    return rung


def current(recorded: Any, names: dict[str, str] = NAMES) -> Any:
    """What was recorded, JSON or a single name, with today's names of rungs and of fields.

    "hgemm/wmma_padded:skew=8 (twin)" becomes "hgemm/wmma_padded:padding=8 (twin)". names: those that are no
    longer in use, or were not when the kernels in a file were compiled -> those of today.
    """
    if isinstance(recorded, dict):
        reused = reused_since(recorded)
        named = {NAMED: max(since for _, since in REUSED.values())} if reused else {}
        found = {
            FORMER_FIELDS.get(key, key): current(value, names | reused) for key, value in recorded.items()
        }
        return found | named
    if isinstance(recorded, list):
        return [current(value, names) for value in recorded]
    if not isinstance(recorded, str) or not recorded.startswith(FAMILIES):
        return recorded
    return FORMER_SETTING.sub(lambda found: FORMER_FIELDS[found[0]], renamed(recorded, names))


def reused_since(recorded: dict[str, Any]) -> dict[str, str]:
    """The REUSED names that stood for another rung when the kernels of a file were compiled; empty for a
    file without a date. Kernels of a pack were compiled before they were measured."""
    packed = recorded.get("packed")
    date = recorded.get(NAMED) or (packed if isinstance(packed, dict) else recorded).get("date")
    if not isinstance(date, str):
        return {}
    return add_entries({name: then for name, (then, since) in REUSED.items() if date < since})


def renamed(text: str, names: dict[str, str]) -> str:
    """The text with the first of the names in it replaced. Settings follow a rung after a colon, and a
    configuration after a comma. `RUNG:volatile=1` sets a field, and is not a name."""

    def now(found: re.Match[str]) -> str:
        name = names[found[1]]
        return name + (("," if ":" in name else ":") if found[2] else "")

    return re.sub(rf"({'|'.join(names)})\b(?!=)(?:([:,])(?=\w))?", now, text, count=1)


def find_one(name: str, verb: str) -> Rung:
    """The one rung `name` stands for. BadInput for a whole ladder, which the verb does not take."""
    rungs = find(name)
    if len(rungs) > 1 or is_ladder(name):
        raise BadInput(f"{verb} takes one rung, such as {rungs[0].id}, not the whole ladder {name!r}")
    return rungs[0]


def find_each(names: Iterable[str], configs: bool = False) -> list[Rung]:
    """All rungs that are named, each once. configs: in every configuration but the flawed ones. BadInput for
    two of one name in two files."""
    found: dict[str, Rung] = {}
    for name in names:
        for rung in find(name):
            for variant in rung.variants() if configs else [rung]:
                other = found.setdefault(variant.id, variant)
                if other.file != variant.file:
                    both = f"{other.typed} and {variant.typed}"
                    raise BadInput(f"{both} have both the name {variant.id}: give one another")
    return list(found.values())
