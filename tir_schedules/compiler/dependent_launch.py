"""Launches that begin while the one before still runs: programmatic dependent launch, from sm_90 on.

Between two launches of a stream a GPU does nothing for about a microsecond: the first must have ended before
blocks of the second are brought to the SMs. A kernel that waits by itself, with `griddepcontrol.wait`, may be
brought there before, and one that says `griddepcontrol.launch_dependents` lets the next one be. The wait ends
when the launch before has ended and all it has written is seen.

What a kernel does above its wait runs beside the launch before it. So only a kernel that touches no memory of
others there is launched early: it may read its parameters, set barriers up in shared memory, and branch as
far as the wait. Others are launched as usual.

A kernel lets the next one be brought when its own wait has ended, so that no more than two are there. The
first launch of a chain, and a kernel without other launches, begin early if each block can have an SM to
itself, see `GpuMachine.overlaps`. On an H200 hgemm/tile_shapes took 4.6 us at 696x696x696 where it begins
early, and 5.7 where it does not.

On the CPU machine launches run one after another, and such a kernel sees nothing else.

In the emitted CUDA for sm_90 look for `griddepcontrol`. What follows it is as it was.
"""

from __future__ import annotations

import re
from math import prod

from tir_schedules.model.launch import Launch

WAIT = "griddepcontrol.wait"
LINES = """\
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
"""
SET_UP = re.compile(r"^  set_up_ring\(.*\n  (?:__syncthreads|sync_cluster)\(\);\n", re.M)
"""What a kernel with a ring does before it reads anything: barriers are set up, beside the launch before."""
LEAST_ARCH = 90
MOST_THREADS = 132 * 2048
"""That an H200 holds at a time. A launch of more begins early in part alone, and each of its blocks takes
time for the wait: the sums of 5148x214x1707, 65 blocks for an SM, took 5 us more."""
HARMLESS = {
    "mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "min", "max",
    "setp", "selp", "bfe", "bfi", "bra", "bar", "barrier", "elect", "shfl", "griddepcontrol",
}  # fmt: skip
"""Instructions that touch no memory."""
OF_OWN_MEMORY = ("ld.param.", "mbarrier.init.shared", "fence.mbarrier_init.", "fence.proxy.async",
                 "prefetch.tensormap")  # fmt: skip
"""Those that touch memory of the block alone, or maps, which are parameters."""
SILENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*\.(?:loc|pragma)\b[^\n]*", re.S | re.M)
DECLARATIONS = (".reg", ".shared", ".local")
LABEL = re.compile(r"^\s*(\$?\w+):", re.M)


def begins_early(ptx: str, entry: str) -> bool:
    """Whether a kernel waits for the launch before it, before it touches memory that others see. All that
    stands above the wait is harmless, and no branch there goes past it."""
    if WAIT not in ptx:
        return False
    text = SILENT.sub("", ptx)
    found = re.search(rf"\.entry\s+{re.escape(entry)}\b.*?\n\{{\n", text, re.S)
    above, wait, _ = (text[found.end() :] if found else "").partition(f"{WAIT};")
    above = above.replace("{", " ").replace("}", " ")
    labels = set(LABEL.findall(above))
    statements = [words for part in LABEL.sub("", above).split(";") if (words := part.split())]
    return bool(wait) and all(is_harmless(words, labels) for words in statements)


def is_harmless(words: list[str], labels: set[str]) -> bool:
    """Whether a statement, given as its words, touches no memory of others. labels: where it may branch."""
    if words[0] in DECLARATIONS:
        return True
    name = words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
    if name.partition(".")[0] == "bra":
        return words[-1] in labels
    return name.startswith(OF_OWN_MEMORY) or name.partition(".")[0] in HARMLESS


def fits_beside(launch: Launch | None) -> bool:
    """Whether all threads of a launch can wait at a time."""
    return launch is not None and prod(launch.grid) * prod(launch.block) <= MOST_THREADS


def add_dependent_launch(source: str, entry: str, arch: str) -> str:
    """CUDA source whose kernel begins with a wait for the launch before it, and lets the next one begin. For
    a GPU without dependent launches the source is unchanged."""
    if int(re.sub(r"\D", "", arch)) < LEAST_ARCH:
        return source
    head = re.compile(rf'extern "C" __global__ [^;{{]*\b{re.escape(entry)}\([^)]*\) \{{\n')
    (found,) = head.finditer(source)
    behind = SET_UP.search(source, found.end())
    place = behind.end() if behind else found.end()
    return source[:place] + LINES + source[place:]
