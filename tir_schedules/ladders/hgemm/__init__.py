"""The HGEMM ladder: float16 matrix products on tensor cores."""

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
    "mma_permuted",
    "mma_multistage",
)
