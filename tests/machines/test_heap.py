"""malloc and free in a kernel: results, and what is wrong with an address from there."""

import numpy as np
import pytest
from cuda_kernels import run

SOURCE = r"""
extern "C" {
__global__ void k(int* Y) {
  const int t = threadIdx.x;
  int* p = (int*)malloc(4 * (t + 1));
  for (int i = 0; i <= t; i++) p[i] = i;
  int sum = 0;
  for (int i = 0; i <= t; i++) sum += p[i];
  free(p);
  free(0);
  Y[t] = sum;
}
__global__ void shares(int* Y) {
  __shared__ int* p;
  if (threadIdx.x == 0) p = new int[blockDim.x];
  __syncthreads();
  p[threadIdx.x] = threadIdx.x;
  __syncthreads();
  Y[threadIdx.x] = p[63 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 9) delete[] p;
}
__global__ void fills(int* Y) {
  int got = 0;
  void* p[12];
  for (int i = 0; i < 12; i++) got += (p[i] = malloc(1 << 20)) != 0;
  for (int i = 0; i < 12; i++) free(p[i]);
  void* all = malloc(8 << 20);
  Y[threadIdx.x] = 100 * (all != 0) + got;
  free(all);
}
__global__ void past(int* Y) { int* p = (int*)malloc(40); p[10 + threadIdx.x % 2] = 1; Y[threadIdx.x] = 0; }
__global__ void before(int* Y) { int* p = (int*)malloc(40); p[-1] = 1; Y[threadIdx.x] = 0; }
__global__ void freed(int* Y) {
  volatile int* p = (int*)malloc(40);
  p[3] = 1;
  free((void*)p);
  Y[threadIdx.x] = p[3];
}
__global__ void twice(int* Y) { void* p = malloc(4); free(p); free(p); Y[threadIdx.x] = p != 0; }
__global__ void inside(int* Y) { char* p = (char*)malloc(64); free(p + 16); Y[threadIdx.x] = 0; }
__global__ void output(int* Y) { Y[threadIdx.x] = 0; free(Y); }
__global__ void unaligned(int* Y) { char* p = (char*)malloc(64); *(int*)(p + 2) = 1; Y[threadIdx.x] = 0; }
}
"""
RESULTS = {"k": [t * (t + 1) // 2 for t in range(64)], "shares": [63 - t for t in range(64)]}


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("entry", RESULTS)
def test_results(entry, order):
    result, execution = run(SOURCE, entry, warp_order=order)
    assert execution.findings == () and result.tolist() == RESULTS[entry]


def test_the_heap_has_an_end():
    """One thread at a time: 8 of 12 pieces of 1 MiB, and all of it once they are freed."""
    result, execution = run(SOURCE, "fills", threads=1)
    assert execution.findings == () and result.tolist() == [108]
    result, _ = run(SOURCE, "fills", threads=1, heap=3 << 20)
    assert result.tolist() == [3]


FAULTS = {
    "past": (
        "out_of_bounds",
        "writes 4 bytes of memory of malloc at byte 40, out of bounds; it has 40 bytes",
    ),
    "before": (
        "out_of_bounds",
        "writes 4 bytes of memory of malloc at byte -4, out of bounds; it has 40 bytes",
    ),
    "freed": (
        "out_of_bounds",
        "reads 4 bytes of memory of malloc at byte 12, out of bounds; it has been freed",
    ),
    "twice": ("bad_free", "frees what has been freed"),
    "inside": ("bad_free", "frees memory of malloc at byte 16, not its start"),
    "output": ("bad_free", "frees Y[0], which malloc did not give"),
    "unaligned": ("misaligned", "not a multiple of 4 bytes"),
}


@pytest.mark.parametrize("entry", FAULTS)
def test_faults(entry):
    """Of all threads and all that malloc gave: one finding."""
    kind, message = FAULTS[entry]
    _, execution = run(SOURCE, entry)
    (finding,) = execution.findings
    assert finding.kind == kind and message in finding.message and finding.count == 64
    assert np.all(finding.location.text)
