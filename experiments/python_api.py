"""A function of one's own: scheduled with plain TVM, emitted, checked beside CUDA by hand, counted, shown."""

from tvm import s_tir
from tvm.script import tirx as T

import tir_schedules as ts


@T.prim_func(s_tir=True)
def transpose(A: T.Buffer((128, 64)), B: T.Buffer((64, 128))):  # pyright: ignore
    for i, j in T.grid(128, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj]


schedule = s_tir.Schedule(transpose)
for loop, axis in zip(schedule.get_loops(schedule.get_sblock("B")), ("blockIdx.x", "threadIdx.x")):
    schedule.bind(loop, axis)
BY_HAND = """__global__ void by_hand(const float *A, float *B) {
  for (int i = threadIdx.x; i < 64; i += blockDim.x) B[i * 128 + blockIdx.x] = A[blockIdx.x * 64 + i];\n}"""
print(ts.emit(schedule))
print(ts.check(schedule, expect={"B": "A.T"}, beside=BY_HAND))
costs = ts.inspect(schedule, beside=BY_HAND)  # in a notebook `costs` alone shows the table
print(costs._repr_html_())
