"""CUDA in a string, as CuPy takes it, with its check in comments. The file is read, and not run."""

import cupy

# check: --kernel halve --let n=1000 --grid cdiv(n,256) --block 256 --arg x=f32[n] --expect x=x/2
halve = cupy.RawKernel(
    r"""
extern "C" __global__ void halve(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 0.5f;
}
""",
    "halve",
)
