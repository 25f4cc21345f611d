"""`layout` of arrays in global memory: which thread loads or stores which element."""
