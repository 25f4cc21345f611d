"""Files to begin your own rung or ladder with. They run, and are verified, as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tir_schedules.errors import BadInput
from tir_schedules.files import write_text
from tir_schedules.ladders.known import FAMILIES, ladder_of, rung_names
from tir_schedules.ladders.own import PACKAGE_FILE

TEMPLATES = Path(__file__).parent / "templates"
OF_RUNGS = {"sgemm": "gemm", "hgemm": "gemm", "reduce": "reduce"}
"""Ladders -> which templates their rungs have."""


def new_rung(name: str, ladder: str) -> list[Path]:
    """Write NAME.py and its twin NAME.cu into this folder; returns both. BadInput for a name that no rung
    can have, and for files that are there."""
    check_name(name, "rung")
    if ladder not in FAMILIES:
        raise BadInput(f"there is no ladder {ladder!r}; there is {', '.join(FAMILIES)}")
    if name in (*rung_names(ladder), *ladder_of(ladder).beside):
        raise BadInput(f"there is a rung {ladder}/{name} already: give this one another name")
    kind = OF_RUNGS[ladder]
    files = {Path(f"{name}{ending}"): f"{kind}{ending}" for ending in (".py", ".cu")}
    return write(files, {"name": name, "ladder": ladder})


def new_ladder(name: str) -> list[Path]:
    """Write a folder NAME with a workload and a first rung and its twin; returns its files. BadInput as
    `new_rung`."""
    check_name(name, "ladder")
    if name in FAMILIES:
        raise BadInput(f"there is a ladder {name!r} already: give this one another name")
    files = (PACKAGE_FILE, "naive.py", "naive.cu")
    return write({Path(name) / file: f"ladder/{file}" for file in files}, {"name": name})


def check_name(name: str, what: str) -> None:
    if not (name.isascii() and name.isidentifier()):
        raise BadInput(
            f"a {what}'s name is letters, digits and _, not {name!r}: it is also the name of a file"
        )


def write(files: Mapping[Path, str], values: Mapping[str, str]) -> list[Path]:
    """Write files that are not there yet. files: paths -> names of templates without their ending."""
    there = [str(path) for path in files if path.exists()]
    if there:
        raise BadInput(f"{there[0]} is there already: take another name, or move it away")
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    for path, template in files.items():
        make_folder(path.parent)
        write_text(path, made.get_template(f"{template}.j2").render(values))
    return list(files)


def make_folder(folder: Path) -> None:
    """BadInput where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the folder {folder} here: {error.strerror}") from error
