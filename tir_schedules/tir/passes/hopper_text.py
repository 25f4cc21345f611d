"""Adds to the printed CUDA of a Hopper kernel what TVM does not print: device functions, clusters, launch
bounds, and the alignment of dynamic shared memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tir_schedules.model.annotations import CLUSTER
from tir_schedules.tir.intrinsics.device import add_device_functions

if TYPE_CHECKING:
    from tvm import IRModule

BOUNDS = re.compile(r"__launch_bounds__\((\d+)\)")
DYNAMIC = re.compile(r"(extern __shared__ __align__\()\d+(\) uchar buf_dyn_shmem\w*\[\];)")
PATTERN = 1024
"""Bytes after which the swizzle of 128 bytes repeats, which hardware takes from addresses."""


def hopper_text(source: str, module: IRModule) -> str:
    """CUDA source with the text of the device functions that it calls, the clusters of its function, and
    dynamic shared memory on a multiple of PATTERN where hardware swizzles it."""
    blocks = cluster_of(module)
    if blocks > 1:
        source = BOUNDS.sub(rf"__cluster_dims__({blocks}, 1, 1) \g<0>", source)
    if "wgmma" in source:  # one block per SM: ptxas must know how many registers a thread has to begin with
        source = BOUNDS.sub(r"__launch_bounds__(\1, 1)", source)
    if "wgmma" in source or "load_box" in source:
        source = DYNAMIC.sub(rf"\g<1>{PATTERN}\2", source)
    return add_device_functions(source)


def cluster_of(module: IRModule) -> int:
    """Blocks of a cluster, along x."""
    (function,) = getattr(module, "functions").values()
    attributes = function.attrs
    return int(attributes[CLUSTER]) if attributes and CLUSTER in attributes else 1
