"""What a launch costs, accesses to memory and instructions, summed and per source line; and the metrics of
Nsight Compute that count the same.

The shared-memory metrics of the L1 cache count what its data pipe really did, with the stalls of other
traffic. Those of the instrumented code (smsp__sass) count what the instructions asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.model.findings import Location


@dataclass(frozen=True)
class Access:
    """Memory accesses of one class: warp-level requests; what they cost (shared wavefronts or 32-byte global
    sectors); and what is ideal, which is never more (no bank conflict; the distinct bytes that lanes ask for
    side by side)."""

    requests: int = 0
    cost: int = 0
    ideal: int = 0

    def __add__(self, other: "Access") -> "Access":
        return Access(self.requests + other.requests, self.cost + other.cost, self.ideal + other.ideal)


@dataclass(frozen=True)
class LineCounters:
    """Counters of one CUDA source line. accesses: class of access (see Counters) -> Access; mix: class ->
    thread instructions. warp_instructions: instructions issued per warp."""

    file: str
    line: int
    accesses: dict[str, Access]
    mix: dict[str, int]
    warp_instructions: int = 0


@dataclass(frozen=True)
class Counters:
    """Counters of a launch, summed and per CUDA source line.

    accesses: keys shared_load, shared_store, ldmatrix, shared_atomic, shared_cp_async (cost in wavefronts),
    global_load, global_store, global_atomic, global_cp_async (cost in 32-byte sectors); absent when the
    kernel has none. Models, which no profiler has confirmed: wgmma (wavefronts; a request is the product of a
    warpgroup), tma_load and tma_store (sectors; a request is a box).
    mix: thread instructions by class: fp32, fp16, int, load, store, control, barrier, mbarrier, shuffle, mma,
    wgmma, cp_async, tma, move, atomic, ...
    warp_instructions: instructions issued per warp. thread_instructions: the same times active lanes.
    unreached: source lines with instructions that no lane executed.
    """

    accesses: dict[str, Access]
    mix: dict[str, int]
    warp_instructions: int
    thread_instructions: int
    lines: tuple[LineCounters, ...] = ()
    unreached: tuple[Location, ...] = ()


DATA_PIPE, INSTRUMENTED = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op",
)
SECTORS, REQUESTS = "l1tex__t_sectors_pipe_lsu_mem_global_op", "l1tex__t_requests_pipe_lsu_mem_global_op"
METRICS = {
    f"{DATA_PIPE}_ld.sum": (("shared_load", "ldmatrix"), "cost"),
    f"{DATA_PIPE}_st.sum": (("shared_store",), "cost"),
    f"{INSTRUMENTED}_ld.sum": (("shared_load",), "cost"),
    f"{INSTRUMENTED}_ldsm.sum": (("ldmatrix",), "cost"),
    f"{INSTRUMENTED}_st.sum": (("shared_store",), "cost"),
    f"{INSTRUMENTED}_ldgsts.sum": (("shared_cp_async",), "cost"),
    f"{SECTORS}_ld.sum": (("global_load", "global_cp_async"), "cost"),
    f"{REQUESTS}_ld.sum": (("global_load", "global_cp_async"), "requests"),
    f"{SECTORS}_st.sum": (("global_store",), "cost"),
    f"{REQUESTS}_st.sum": (("global_store",), "requests"),
}
"""Metric -> the classes of access it covers, see Counters, and which of their figures."""
