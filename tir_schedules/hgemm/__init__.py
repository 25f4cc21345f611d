"""The HGEMM ladder: float16 matrix products on tensor cores."""

LADDER = ("wmma_naive", "wmma_shared", "wmma_padded")
