"""Device functions that schedules and twins have in common: those of headers in cuda_reference.

An intrinsic calls one by its name, with nothing of its text. When CUDA has been printed,
`add_device_functions` puts above the kernel what it calls, and what that calls.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from tvm.backend.cuda.op import cuda_func_call

HEADERS = (
    "hgemm/addresses.cuh",
    "hgemm/barriers.cuh",
    "hgemm/boxes.cuh",
    "hgemm/wgmma.cuh",
    "hgemm/registers.cuh",
    "hgemm/result_boxes.cuh",
    "program_shares.cuh",
    "hgemm/streamed_parts.cuh",
    "hgemm/ldmatrix.cuh",
    "hgemm/unaligned.cuh",
    "sgemm/added_sums.cuh",
    "sgemm/parts.cuh",
    "sgemm/scales.cuh",
    "sgemm/mma_products.cuh",
    "sgemm/part_fragments.cuh",
    "sgemm/split_fragments.cuh",
    "sgemm/split_products.cuh",
    "sgemm/split_rows.cuh",
    "sgemm/transposed_k_tile.cuh",
    "sgemm/turns.cuh",
    "reduce/last_block.cuh",
    "reduce/pieces.cuh",
)
COMMENT = r"(?:^//[^\n]*\n)*"
PART = re.compile(
    rf"{COMMENT}^(?:template <[^>]*>\s+)?static __device__[^;{{]*?\b(?P<function>\w+)\([^{{]*\{{\n.*?^\}}\n"
    rf"|{COMMENT}^constexpr int (?P<constant>\w+) = [^\n]*\n",
    re.M | re.S,
)
"""A function or a constant, with the comment above it."""

FIRST = re.compile(rf'{COMMENT}^(?:static __device__|extern "C" __global__) ', re.M)
"""The first function of ours in what TVM prints, or the kernel."""


def call(name: str, *arguments: Any, returns: str = "void") -> Any:
    """A call of a device function of the headers. name: with template arguments where it takes some."""
    return cuda_func_call(name, *arguments, source_code="", return_type=returns)


@cache
def parts() -> dict[str, str]:
    """Functions and constants of the headers: name -> text, in their order. Those of one name, for several
    types, are one part."""
    found: dict[str, str] = {}
    for header in HEADERS:
        place = resources.files("cuda_reference") / header
        for part in PART.finditer(place.read_text(encoding="utf-8")):
            name = part["function"] or part["constant"]
            found[name] = found.get(name, "") + part[0] + "\n"
    return found


def add_device_functions(source: str) -> str:
    """CUDA source with the text of those functions that it calls, above what calls them."""
    needed = names_in(source) & parts().keys()
    reached = needed
    while reached:
        reached = set().union(*(names_in(parts()[name]) for name in reached)) & parts().keys() - needed
        needed |= reached
    text = "".join(part for name, part in parts().items() if name in needed)
    first = FIRST.search(source)
    place = first.start() if first else 0
    return source[:place] + text + source[place:]


def names_in(text: str) -> set[str]:
    """The words of CUDA text, without its comments and strings."""
    return set(re.findall(r"\b[A-Za-z_]\w*", re.sub(r'//[^\n]*|"[^"\n]*"', "", text)))
