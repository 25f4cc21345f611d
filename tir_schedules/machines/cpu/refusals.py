"""Functions and special registers that the machine refuses on purpose, and what would be right instead.

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

REGISTERS = {
    "pm": "it counts what a GPU's profiler is told to: profile on a GPU",
    "envreg": "the driver decides what it holds: pass a parameter",
    "reserved_smem_offset": "shared memory of the system's: declare a variable",
    "aggr_smem_size": "it counts what the system takes: read %total_smem_size",
    **{
        name: f"read its parts, such as %{name}.x"
        for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid")
    },
    **{f"cluster_{name}": f"read its parts, such as %cluster_{name}.x" for name in ("ctaid", "nctaid")},
}
"""Special registers of PTX ISA 9.0 that are not known, by how the name begins."""


def register_remedy(name: str) -> str:
    """Why a special register is not known, after a colon; empty for one that PTX does not have."""
    why = REGISTERS.get(name) or REGISTERS.get(name.rstrip("_0123456789"))
    return f": {why}" if why else ""


def function_remedy(name: str) -> str:
    """What would be right in place of a function that is not there, after a semicolon."""
    known = [start for start in FUNCTIONS if name.startswith(start)]
    return f"; {FUNCTIONS[max(known, key=len)]}" if known else "; define it in the same file"
