"""GPU kernels as ladders of TensorIR schedules, each with a hand-written CUDA twin; compiled, executed and
verified alike."""

__version__ = "0.1.0"
