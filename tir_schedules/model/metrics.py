"""Nsight Compute's metrics that are compared with what the CPU machine counts.

The shared-memory metrics of the L1 cache count what its data pipe really did, with the stalls of other
traffic. Those of the instrumented code (smsp__sass) count what the instructions asked for.
"""

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
