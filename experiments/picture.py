"""The README's picture, banks.svg: one request to shared memory in three rungs, as executed.

    python experiments/picture.py            # rewrite it
    python experiments/picture.py --check    # exit code 1 when that would change it

The request is an `ldmatrix` of A: `tir-schedules layout hgemm/wmma_shared A` shows it with all others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.files import write_text
from tir_schedules.insight.banks.pictures import document_svg, request_picture
from tir_schedules.insight.banks.requests import Pattern, request_patterns
from tir_schedules.ladders.problems import SMALL_SHAPES, Problem, workload_of
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.run import launches

PICTURE = Path(__file__).with_name("banks.svg")
RUNGS = {
    "hgemm/wmma_shared": "rows as they are",
    "hgemm/wmma_padded": "8 elements of padding after each row",
    "hgemm/mma_xor_swizzle": "the pieces of a row in another order, by XOR with the row's number",
}
"""Rungs -> how the tile of A lies in shared memory."""

TITLE = "An ldmatrix of A in three rungs: which lane each bank serves, wavefront by wavefront"


def load_of_a(name: str) -> Pattern:
    """The first `ldmatrix` of A, in a warp of the rung's first block."""
    rung = find_one(name, "layout")
    workload = workload_of(rung, Problem(rung.family), SMALL_SHAPES)
    binaries = [compile_kernel(kernel) for kernel in launches(lower, rung, workload, CPU_ARCH)]
    patterns = request_patterns(binaries, workload, "A")
    return next(pattern for pattern in patterns if pattern.kind == "ldmatrix")


def picture() -> str:
    """The SVG."""
    sections = []
    for name, lies in RUNGS.items():
        load = load_of_a(name)
        cost = f"{load.wavefronts} wavefronts where {load.ideal} would do"
        if load.wavefronts == load.ideal:
            cost = f"{load.wavefronts} wavefronts, no bank conflict"
        sections.append(((f"{name}: {lies}. {cost}.",), (request_picture(load),)))
    return document_svg(sections, TITLE)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 when it is outdated"
    )
    options = parser.parse_args(arguments)
    drawn = picture()
    if not options.check:
        write_text(PICTURE, drawn)
        print(f"wrote {PICTURE}")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        print(f"{PICTURE} is not what the machine executes: run experiments/picture.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
