"""The HGEMM ladder: GEMM of float16 matrices on tensor cores."""

LADDER = (
    "wmma_naive",
    "wmma_shared",
    "wmma_padded",
    "wmma_async",
    "wmma_pipelined",
    "wmma_register_pipelined",
    "wmma_staged_epilogue",
    "wmma_swizzled_grid",
    "mma_ldmatrix",
    "mma_xor_swizzle",
    "mma_multistage",
)
