"""Functions that the machine refuses on purpose, and what would be right in their place.

For instructions, see instructions/refused.py.
"""

from __future__ import annotations

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
