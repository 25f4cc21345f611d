"""The facts of a kernel as the table of listings has them: of its launch, its PTX, and what is counted."""

import re
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
    """Barriers and maps, of block (0, 0, 0) alone."""
    kernel = binary.kernel
    arguments = kernel.prepared(workload, workload.arguments())
    watch = Watch(limit=1 << 19, every=True)
    execution = CpuMachine().run(binary, arguments, workload.outputs, watch=watch)
    met = execution.counters.mix.get("barrier", 0) // kernel.threads
    arrays = [name for name in kernel.params if isinstance(arguments[name], np.ndarray)]
    assert not execution.records.lost
    threads = [thread % kernel.threads for thread in THREADS]
    maps = {
        name: tuple(
            spelled(elements(execution.records, number, arguments[name], thread), arguments[name].shape)
            for thread in threads
        )
        for number, name in enumerate(arrays)
    }
    return {"barriers": met // (workload.k // tile_k if tile_k else 1), "all_barriers": met, **maps}


def elements(records, number, array, thread):
    """Flat indices of the elements of an array that a thread loads, copies or stores. number: of the array
    among those of the launch."""
    known = [number for number, kind in records.kinds.items() if kind.startswith("global")]
    (warp, lane), start, found = divmod(thread, 32), ARRAYS * (number + 1), set()
    for counter, address, lanes in (("counter", "address", "mask"), ("source_counter", "source", "reads")):
        table = records.table[np.isin(records.table[counter], known) & (records.table["warp"] == warp)]
        places = table[address][:, lane].astype(np.int64) - start
        own = (table[lanes] >> lane & 1 == 1) & (0 <= places) & (places < array.nbytes)
        for place, width in zip(places[own].tolist(), table["width"][own].tolist()):
            found |= {*range(place // array.itemsize, (place + width) // array.itemsize)}
    return found


def spelled(flat, shape):
    """ "0, 4 x 0-3": rows and columns of elements; in one dimension places alone; "-" without any.
    The number of elements where they are no rectangle of rows and columns."""
    if not flat:
        return "-"
    axes = [sorted(set(axis.tolist())) for axis in np.unravel_index(sorted(flat), shape)]
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
