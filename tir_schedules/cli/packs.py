"""Packs on the command line: which names are one, and what making one needs."""

from __future__ import annotations

import re
from typing import Iterable, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import FAMILIES
from tir_schedules.model.rung import Rung


def is_pack(names: Sequence[str]) -> bool:
    """Whether the names are one pack file. BadInput when a pack is named among other things."""
    packs = [name for name in names if re.search(r"\.zip$", name, re.I)]
    if packs and len(names) > 1:
        others = ", ".join(name for name in names if name != packs[0])
        raise BadInput(f"a pack is timed alone: name {packs[0]} without {others}")
    return bool(packs)


def check_pack(rungs: Iterable[Rung]) -> None:
    """BadInput for ladders from elsewhere: who unpacks makes the inputs, and knows those of this package."""
    for rung in rungs:
        if rung.family not in FAMILIES:
            raise BadInput(
                f"--pack takes rungs of {', '.join(FAMILIES)}: another computer does not know what"
                f" {rung.id} computes; run it where the GPU is"
            )


def check_pack_arch(arch: str | None) -> str:
    """The architecture that a pack is for. BadInput when none is named."""
    if not arch:
        raise BadInput(
            "--pack compiles for another computer's GPU: name its architecture, such as --arch sm_90"
        )
    return arch
