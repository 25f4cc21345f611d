"""A thread for each element of C, of any formats."""

from tir_schedules.model.rung import Rung
from tir_schedules.workloads import OPERANDS, RESULTS


def schedule(sch, gemm, config):
    block = sch.get_sblock("C")
    if gemm.rounds:
        sch.set_scope(block, 0, "local")
    result = sch.get_sblock("D") if gemm.rounds else sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    j, thread = sch.split(j, [None, 32])
    for loop, axis in ((i, "blockIdx.y"), (j, "blockIdx.x"), (thread, "threadIdx.x")):
        sch.bind(loop, axis)
    sch.reverse_compute_at(result, thread)
    sch.decompose_reduction(block, k)


RUNG = Rung("hgemm", schedule=schedule, dtypes=OPERANDS, outputs=RESULTS)
