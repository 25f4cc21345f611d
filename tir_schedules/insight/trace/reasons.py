"""Why a half-finished schedule is no kernel, in one plain line instead of a stack trace."""

from __future__ import annotations

import re

REASONS = (
    (
        r"must end in one CUDA kernel",
        "no kernel yet: loops are not bound to the blocks and threads of the GPU",
    ),
    (
        r"Cannot insert syncs inside condition",
        "a guard stands around a barrier: the loop it guards is not bound to threads yet",
    ),
    (
        r"Cannot find shape of the wmma fragment (\S+)",
        r"{0} is a tensor-core fragment, but not every use of it is tensorized yet",
    ),
    (
        r"TransformMmaBufferLayout requires",
        "there are tensor-core fragments, but not every use of them is tensorized yet",
    ),
    (
        r'no operator ".*" matches these operands|no suitable conversion function from "nvcuda::wmma',
        "tensor-core fragments are used as numbers: not every use of them is tensorized yet",
    ),
    (
        r"LowerWarpMemory failed",
        "the sums of a warpgroup are not yet laid out over its threads as wgmma has them",
    ),
    (
        r"'\w+' object has no attribute",
        "a pass that gives warps their roles, or lets blocks take turns, needs the finished loops",
    ),
    (
        r'identifier "tir_schedules" is undefined',
        "it calls a function that is only declared with what is not tensorized yet",
    ),
    (
        r"Order of the software pipeline is not defined",
        "the pipeline has its stages, but not yet the order of its statements",
    ),
    (
        r"Cannot allocate global memory",
        "a buffer between two blocks is in global memory, which a kernel cannot allocate",
    ),
    (
        r"Memory verification failed",
        "some code would run on the host, which cannot access the GPU's memory",
    ),
    (
        r"uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)",
        "a block would need {0:,} bytes of static shared memory; {1:,} is the limit",
    ),
    (r"uses too much .*?local.*? data", "a thread would need more local memory than there is"),
    (
        r": (\d+) bytes of shared memory per block; (sm_\w+) has (\d+)",
        "a block would need {0:,} bytes of shared memory; {1} has {2:,}",
    ),
    (r": (\d+) threads per block; CUDA allows (\d+)", "a block would have {0:,} threads; {1:,} is the limit"),
)
"""What TVM, nvcc or ptxas say -> what it means here, with the groups of the pattern."""


def short_reason(message: str) -> str:
    """Why a state has no kernel, in one line."""
    for pattern, meaning in REASONS:
        if match := re.search(pattern, message):
            return meaning.format(*map(number_or_text, match.groups()))
    line = next((line for line in message.splitlines() if "rror" in line), message).strip()
    return re.sub(r"^Check failed: \(.*?\)( is false)?: ", "", line)[:160]


def number_or_text(group: str) -> int | str:
    return int(group, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", group) else group
