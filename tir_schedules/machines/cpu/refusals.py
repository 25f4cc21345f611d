"""What the machine refuses on purpose, and what would be right in its place."""

from __future__ import annotations

TEXTURES = "textures: read the array through a pointer, with __ldg or a plain load"
SURFACES = "surfaces: write the array through a pointer"
CLUSTERS = "thread block clusters: leave them out, or use --machine gpu"
DEPENDENT = "programmatic dependent launch: leave it out, kernels run one after another"

INSTRUCTIONS = {
    **dict.fromkeys(("tex", "tld4", "txq"), TEXTURES),
    **dict.fromkeys(("suld", "sust", "sured", "suq"), SURFACES),
    "istypep": TEXTURES,
    **dict.fromkeys(("mapa", "getctarank", "barrier.cluster", "clusterlaunchcontrol"), CLUSTERS),
    "griddepcontrol": DEPENDENT,
    **dict.fromkeys(
        ("stacksave", "stackrestore"), "leave alloca to nvcc, which frees it at the function's end"
    ),
}
"""By the name of the instruction."""

FUNCTIONS = {
    "cudaDeviceSynchronize": "a kernel cannot wait for its own launches: end it there",
    "cudaGetParameterBuffer": "launches from a kernel: launch from the host",
    "cudaLaunchDevice": "launches from a kernel: launch from the host",
    "cudaMalloc": "use malloc",
    "cudaFree": "use free",
    "__cudaCDP": "launches from a kernel: launch from the host",
    "cuda": "the CUDA runtime: call it from the host",
}
"""By how the name of a function begins; the longest that fits."""


def function_remedy(name: str) -> str:
    """What would be right in place of a function that is not there, after a semicolon."""
    known = [start for start in FUNCTIONS if name.startswith(start)]
    return f"; {FUNCTIONS[max(known, key=len)]}" if known else "; define it in the same file"
