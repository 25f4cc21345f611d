"""Options that several verbs have, the parser that all are made with, and which names are packs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Iterable, Sequence, TypeAlias

from tir_schedules.check.options import Parser as Parser
from tir_schedules.errors import BadInput
from tir_schedules.files import check_folder
from tir_schedules.ladders.known import FAMILIES
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.rung import Rung

Options = argparse.Namespace
"""The options of a verb, as argparse has them. They go no further than this folder."""

RUNG_HELP = (
    "a rung such as sgemm/warp_tiling or ./my_rung.py, with :CONFIG for another of its configurations, or"
    " :FIELD=VALUE,... or :CONFIG,FIELD=VALUE,... for one of yours"
)


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What a verb adds its parser to."""


def add_arch(verb: Parser, default: str | None = CPU_ARCH, otherwise: str = "") -> None:
    """--arch. otherwise: words for what is done where there is no default."""
    verb.add_argument(
        "--arch", default=default, help=f"GPU architecture to compile for (default {default or otherwise})"
    )


def add_path(verb: Parser, *names: str, help: str, **more: Any) -> None:
    """An option or argument that takes a file. more: for `add_argument`."""
    verb.add_argument(*names, metavar="FILE", type=Path, help=help, **more)


def add_dry_run(verb: Parser) -> None:
    """--dry-run."""
    verb.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")


def add_tuned(verb: Parser) -> None:
    """--tuned [FILE], empty without a FILE."""
    what = "use the best record of exactly this shape and GPU: from FILE"
    verb.add_argument(
        "--tuned",
        metavar="FILE",
        nargs="?",
        const="",
        help=f"{what}, else from your own records, else from those of the package",
    )


def is_pack(names: Sequence[str]) -> bool:
    """Whether the names are one pack file. BadInput when a pack is named among other things."""
    packs = [name for name in names if re.search(r"\.zip$", name, re.I)]
    if packs and len(names) > 1:
        others = ", ".join(name for name in names if name != packs[0])
        raise BadInput(f"a pack cannot be timed together with other names: name {packs[0]} without {others}")
    return bool(packs)


def check_pack_file(path: Path | None) -> None:
    """BadInput where a pack cannot be written, and for a name that nothing would take for a pack."""
    if path is None:
        return
    check_folder(path)
    if not is_pack([str(path)]):
        raise BadInput(f"--pack {path}: the name of a pack must end with .zip, such as {path.stem}.zip")


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
