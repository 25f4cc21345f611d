"""The hand-written CUDA twins: one .cu per rung, named like the rung."""
