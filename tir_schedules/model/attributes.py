"""What a kernel asks of its launch: `__launch_bounds__`, `__block_size__` and `__cluster_dims__`, as they
stand in its PTX.

A launch is refused where the CUDA driver refuses it (580.159 on an H100: CUDA_ERROR_INVALID_VALUE for the
size of a block, CUDA_ERROR_INVALID_CLUSTER_SIZE for clusters).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tir_schedules.errors import CheckFailed
from tir_schedules.model.gpus import MAX_BLOCK, MAX_CLUSTER, MAX_LOCAL, MAX_THREADS, known_sm
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import Dim3

DIRECTIVES = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".pragma",
    ".explicitcluster", ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters",
}  # fmt: skip
"""All that may stand between the parameters of an entry and its body (PTX ISA 9.0, performance-tuning and
cluster directives)."""

PARAMETERS = re.compile(r"\s*(?:\([^)]*\))?\s*")
ASIDE = re.compile(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', re.S)
DIRECTIVE = re.compile(r"(\.[a-z]+)((?:[\s,]*\b\w+)*)")


@dataclass(frozen=True)
class Attributes:
    """most: extents whose product is the most threads of a block. exactly: the block it must be. cluster:
    blocks per cluster.

    None where the kernel asks for nothing. explicit: it must be launched in clusters. in_clusters: its grid
    counts clusters. counts_registers: ptxas knows how many registers a thread begins with, and keeps what
    follows a setmaxnreg within what that leaves; otherwise it ignores setmaxnreg, and says so (C7508).
    unknown: directives that are not in DIRECTIVES.
    """

    most: Dim3 | None = None
    exactly: Dim3 | None = None
    cluster: Dim3 | None = None
    explicit: bool = False
    in_clusters: bool = False
    counts_registers: bool = False
    unknown: tuple[str, ...] = ()


def attributes_of(ptx: str, entry: str) -> Attributes:
    """The attributes of one kernel in PTX text; none if the text does not have the kernel."""
    found = {name: extents(numbers) for name, numbers in DIRECTIVE.findall(heading(ptx, entry))}
    return Attributes(
        found.get(".maxntid"), found.get(".reqntid"), found.get(".reqnctapercluster"),
        ".explicitcluster" in found, ".blocksareclusters" in found,
        not found.keys().isdisjoint((".minnctapersm", ".maxnreg")),
        tuple(name for name in found if name not in DIRECTIVES),
    )  # fmt: skip


def heading(ptx: str, entry: str) -> str:
    """What stands between the parameters of the kernel and its body."""
    for start in re.finditer(rf"\.entry\s+{re.escape(entry)}(?![\w$])", ptx):
        parameters = PARAMETERS.match(ptx, start.end())
        begin = parameters.end() if parameters else start.end()
        if not ptx.startswith(";", begin):  # of a declaration
            return ASIDE.sub(" ", ptx[begin : ptx.find("{", begin)])
    return ""


def extents(numbers: str) -> Dim3:
    """Three extents. PTX may leave out the last ones."""
    x, y, z = ([int(number, 0) for number in re.findall(r"\w+", numbers)] + [1, 1, 1])[:3]
    return x, y, z


def check_block(kernel: Kernel) -> None:
    """CheckFailed for a block that CUDA launches of no kernel."""
    if kernel.threads > MAX_THREADS:
        raise CheckFailed(f"{kernel.label}: {kernel.threads} threads per block; CUDA allows {MAX_THREADS}")
    if any(not 1 <= extent <= most for extent, most in zip(kernel.block, MAX_BLOCK)):
        raise CheckFailed(
            f"{kernel.label}: blocks of {spelled(kernel.block)}; CUDA allows 1,1,1 to {spelled(MAX_BLOCK)}"
        )


def check_local(label: str, size: int) -> None:
    """CheckFailed for more bytes of local memory than CUDA gives a thread."""
    if size > MAX_LOCAL:
        raise CheckFailed(
            f"{label}: {size} bytes of local memory per thread; CUDA allows {MAX_LOCAL}: keep large arrays in"
            " global memory"
        )


def check_shared(kernel: Kernel, static: int) -> None:
    """CheckFailed for more bytes of shared memory than the architecture can give a block. static: those that
    the kernel declares, which come on top of the launch's."""
    limit, size = known_sm(kernel.arch), static + kernel.dynamic_shared
    if limit and size > limit.shared_limit:
        raise CheckFailed(
            f"{kernel.label}: {size} bytes of shared memory per block; {kernel.arch} has {limit.shared_limit}"
        )


def check_attributes(kernel: Kernel, attributes: Attributes) -> None:
    """CheckFailed for a launch other than the kernel asks for."""
    block, asked = kernel.block, attributes
    launched = f"{kernel.label}: {kernel.entry} is launched with blocks of {spelled(block)}"
    if asked.exactly and block != asked.exactly:
        raise CheckFailed(
            f"{launched}; its __block_size__ (.reqntid) is {spelled(asked.exactly)}, and blocks must be just"
            f" that: launch those, or declare __block_size__(({spelled(block)}))"
        )
    if asked.most and kernel.threads > prod(asked.most):
        most = prod(asked.most)
        raise CheckFailed(
            f"{launched}, {kernel.threads} threads; its __launch_bounds__({most}) (.maxntid) allows {most}:"
            f" launch no more, or declare __launch_bounds__({kernel.threads})"
        )
    check_clusters(kernel, asked)


def check_clusters(kernel: Kernel, asked: Attributes) -> None:
    launched = kernel.cluster if prod(kernel.cluster) > 1 else None
    if asked.explicit and not asked.cluster and not launched:
        raise CheckFailed(
            f"{kernel.label}: {kernel.entry} has a __cluster_dims__() (.explicitcluster) without a size, and"
            " is launched without clusters: declare the size, such as __cluster_dims__(2, 1, 1)"
        )
    if asked.cluster and launched and asked.cluster != launched:
        raise CheckFailed(
            f"{kernel.label}: {kernel.entry} is launched with clusters of {spelled(launched)}; its"
            f" __cluster_dims__ (.reqnctapercluster) are {spelled(asked.cluster)}: launch just those"
        )
    size = asked.cluster or launched
    if not size:
        return
    cluster = (
        f"{kernel.label}: the __cluster_dims__ (.reqnctapercluster) of {kernel.entry} are {spelled(size)}"
        if asked.cluster
        else f"{kernel.label}: {kernel.entry} is launched with clusters of {spelled(size)}"
    )
    if prod(size) > MAX_CLUSTER:
        raise CheckFailed(f"{cluster}, {prod(size)} blocks; CUDA launches clusters of at most {MAX_CLUSTER}")
    if not asked.in_clusters and any(extent % each for extent, each in zip(kernel.grid, size)):
        raise CheckFailed(
            f"{cluster}, and it is launched with a grid of {spelled(kernel.grid)}: each extent of the grid"
            " must be a multiple of the cluster's"
        )


def spelled(extent: Dim3) -> str:
    return ",".join(map(str, extent))
