"""The facts of a kernel as the table of listings has them: of its launch, its PTX, and what is counted."""

import re
from hashlib import sha256
from itertools import groupby

import numpy as np

from tir_schedules.insight.metrics.counting import metrics_of, total
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.listings import EXTENTS, THREADS
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.machine import Watch

LOAD = re.compile(r"ld\.global\S*?(?:\.v(\d))?\.[bfsu](\d+)\s")
COPY = re.compile(r"cp\.async\.c[ag]\S*\s+\[[^]]*\],\s*\[[^]]*\],\s*(\d+)")
WAIT = re.compile(r"cp\.async\.wait_group\s+(\d+)")

SIZES = {family: workload_class(family)(*extents) for family, extents in EXTENTS.items()}
COUNTED = {
    "global_load": ("global_load", "global_cp_async"), "global_store": ("global_store",),
    "shared_load": ("shared_load",), "shared_store": ("shared_store",), "fragment_load": ("ldmatrix",),
    "shared_copy": ("shared_cp_async",),
}  # fmt: skip
"""Fact -> classes of access as counters have them."""

ARRAYS = 1 << 40
"""From one array of a launch to the next, as addresses in records are; the first begins there."""


def facts_of(binary, family, tile_k=None):
    """All facts but the grid. binary: of the first launch. tile_k: extent along K of a tile, of a product."""
    workload = SIZES[family]
    counters = metrics_of([binary], workload)[0].counters
    found = {"threads": binary.kernel.threads, "shared": binary.shared_bytes, "load": widest_load(binary.ptx)}
    for fact, classes in COUNTED.items():
        access = total(counters.accesses, classes)
        if access.requests:
            found[fact] = (access.requests, access.cost)
    return found | facts_of_a_block(binary, workload, tile_k) | facts_of_copies(binary.ptx)


def widest_load(ptx):
    """Loads into registers and copies to shared memory alike."""
    loads = [int(count or 1) * int(bits) // 8 for count, bits in LOAD.findall(ptx)]
    return max([*loads, *map(int, COPY.findall(ptx))])


def facts_of_copies(ptx):
    if "cp.async" not in ptx:
        return {}
    begins = ptx.index("mma.sync")
    depths = [int(depth) for depth in WAIT.findall(ptx)]
    return {"ahead": ptx[:begins].count("cp.async.commit_group"), "waits": tuple(dict.fromkeys(depths))}


def facts_of_a_block(binary, workload, tile_k):
    """Barriers, maps and their hashes, of block (0, 0, 0) alone."""
    kernel = binary.kernel
    arguments = kernel.prepared(workload, workload.arguments())
    watch = Watch(limit=1 << 19, every=True)
    execution = CpuMachine().run(binary, arguments, workload.outputs, watch=watch)
    met = execution.counters.mix.get("barrier", 0) // kernel.threads
    arrays = [name for name in kernel.params if isinstance(arguments[name], np.ndarray)]
    assert not execution.records.lost
    held = [held_by_threads(execution.records, number, arguments[name]) for number, name in enumerate(arrays)]
    maps = {
        name: tuple(
            spelled(elements[threads == thread % kernel.threads], arguments[name].shape) for thread in THREADS
        )
        for name, (threads, elements) in zip(arrays, held)
    }
    barriers = met // (workload.k // tile_k if tile_k else 1)
    return {"barriers": barriers, "all_barriers": met, **maps, "all_maps": tuple(map(hash_of, held))}


def held_by_threads(records, number, array):
    """Threads, and flat indices of the elements of an array that they load, copy or store: each pair once,
    sorted. number: of the array among those of the launch."""
    known = [counter for counter, kind in records.kinds.items() if kind.startswith("global")]
    start, pairs = ARRAYS * (number + 1), [np.empty(0, np.int64)]
    for counter, address, lanes in (("counter", "address", "mask"), ("source_counter", "source", "reads")):
        table = records.table[np.isin(records.table[counter], known)]
        places = table[address].astype(np.int64) - start
        own = (table[lanes][:, None] >> np.arange(32) & 1 == 1) & (0 <= places) & (places < array.nbytes)
        rows, lane = np.nonzero(own)
        threads = table["warp"][rows].astype(np.int64) * 32 + lane
        first, count = places[own] // array.itemsize, table["width"][rows] // array.itemsize
        for step in range(count.max(initial=0)):
            pairs.append((threads * array.size + first + step)[step < count])
    return np.divmod(np.unique(np.concatenate(pairs)), array.size)


def hash_of(held):
    """Eight hexadecimal digits of what the threads of a block have."""
    return sha256(np.stack(held).astype("<i8").tobytes()).hexdigest()[:8]


def spelled(flat, shape):
    """ "0, 4 x 0-3": rows and columns of elements; in one dimension places alone; "-" without any.
    The number of elements where they are not a rectangle of rows and columns."""
    if not len(flat):
        return "-"
    axes = [sorted(set(axis.tolist())) for axis in np.unravel_index(flat, shape)]
    if np.prod([len(axis) for axis in axes]) != len(flat):
        return f"{len(flat)} elements"
    return " x ".join(map(series, axes))


def series(values):
    """ "0-3, 16-19": runs; "0-3 by 16 to 51" where the run begins again after each 16, the last at 51."""
    runs = [
        (run[0], run[-1])
        for _, group in groupby(enumerate(values), lambda pair: pair[1] - pair[0])
        for run in [[value for _, value in group]]
    ]
    steps = {after[0] - before[0] for before, after in zip(runs, runs[1:])}
    lengths = {last - first for first, last in runs}
    if len(runs) > 2 and len(steps) == len(lengths) == 1:
        return f"{one_run(*runs[0])} by {steps.pop()} to {runs[-1][1]}"
    return ", ".join(one_run(*run) for run in runs)


def one_run(first, last):
    return str(first) if first == last else f"{first}-{last}"
