"""What the model knows of a GPU: latencies and rates, each from a row of a measured profile.

`experiments/microbenchmarks.py` writes a profile. `table_of` derives the figures, one function for each, by
the names of rows. No figure is fitted to a kernel that is to be predicted.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, Mapping

from pydantic import BaseModel, ConfigDict, Field

from tir_schedules.errors import BadInput
from tir_schedules.files import Json, parse_json
from tir_schedules.timing.abi import SHARES

QUARTERS = 4
LINE, ROW_BYTES = 128, 16384
"""Bytes of a line of L1, and those that a copy of an L2 probe reads."""


class Source(BaseModel):
    """Where figures are from. verified: whether this project measured them, or the maker says so."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    figures: tuple[str, ...]
    text: str
    verified: bool


class GpuTable(BaseModel):
    """One GPU. Times are cycles of the SM, unless a name says otherwise.

    device, driver, git_revision: of the profile. mhz: of the SM under FP32 load. intervals: between two
    instructions of a pipe in one sub-core. latencies: from issue to the issue of what needs the result.
    shared_latency: of a load from shared memory by bytes of a lane, without conflicts. per_wavefront: more
    for each further one; per_line: of L1. path_cycles: that a register of a warp, or a wavefront, keeps the
    way between its sub-core and the data path, from shared memory and from L1, and that a copy to shared
    memory does; store_cycles: more for each store. l2_latency: what L2 adds to a hit in L1, by SHARES of
    lines. dram_latency: the same of DRAM, where a warp waits for many lines.
    dram_write_cost: how many times as long as a byte read a byte written keeps DRAM; dram_wait: cycles that a
    request waits for others if DRAM is busy half of the time. read_bytes: a cycle and SM,
    from L2: one SM alone, all with lines of their own, all the same lines. part_cycles: between two
    requests of an SM for parts of lines. page_cycles: between two pages of DRAM that an SM asks for by loads
    into registers, copy_page_cycles: by cp.async; box_page_cycles: how much more whole lines take in pages
    of their own than next to each other; box_dram_more: how much later than loads into registers a box is
    there that DRAM has, copy_dram_more: a copy to shared memory.
    write_bytes: a cycle and SM, all SMs; part_write_cycles: between two sectors that an SM writes a part
    of, then. atomic_cycles: between two atomics of a word, of one SM or of all, by type; between two
    sectors of atomics of an SM, alone and where all do as many. queue_loads, queue_stores: instructions that
    the queue of a sub-core holds. launch_us: of a kernel that stores a word in a row of others, by its warps;
    early_us: where it may begin before the last has ended. block_cycles: between the beginnings of two blocks
    of a grid; first_block_cycles: while SMs have room. gap: between a block's end and its successor's begin.
    code_bytes: of the instruction cache. fetch_cycles: for each instruction that is not there, of one
    warp in straight code. data_kib: L1 and shared memory together, carve_outs_kib: what shared memory can
    have of it. units: of mbarriers, TMA, wgmma and fences, see `units`; cluster_latency: of a cluster's
    barrier, by its blocks. tensor_products: multiply-adds of 16-bit factors in a cycle of an SM at most.
    loaded_mhz: what is left of the clock then, on random numbers. None where it is not known. sources: of
    all these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: str
    driver: str
    git_revision: str
    arch: str
    multiprocessors: int = Field(gt=0)
    l2_bytes: int = Field(gt=0)
    mhz: float = Field(gt=0)
    intervals: dict[str, float]
    latencies: dict[str, float]
    shared_latency: dict[int, float]
    per_wavefront: float
    per_line: float
    path_cycles: dict[str, float]
    store_cycles: float
    l2_latency: tuple[float, ...] = Field(min_length=len(SHARES), max_length=len(SHARES))
    dram_latency: float
    read_bytes: dict[str, float]
    part_cycles: float
    page_cycles: float
    copy_page_cycles: float
    box_page_cycles: float
    box_dram_more: float
    copy_dram_more: float
    write_bytes: float
    part_write_cycles: float
    atomic_cycles: dict[str, float]
    dram_gb_per_s: float
    dram_write_cost: float
    dram_wait: float
    queue_loads: int
    queue_stores: int
    barrier_latency: float
    barrier_per_warp: float
    block_cycles: float
    first_block_cycles: float
    launch_us: dict[int, float]
    early_us: dict[int, float]
    code_bytes: int
    fetch_cycles: float
    gap: float
    data_kib: int
    carve_outs_kib: tuple[int, ...]
    sources: tuple[Source, ...]
    tensor_products: float | None = None
    loaded_mhz: float | None = None
    units: dict[str, float] = {}
    cluster_latency: dict[int, float] = {}

    def l1_bytes(self, shared: int) -> int:
        """Bytes of L1 beside the shared memory of an SM's blocks: the driver takes the least carve-out that
        holds them."""
        fitting = (kib for kib in self.carve_outs_kib if kib << 10 >= shared)
        return (self.data_kib - next(fitting, self.carve_outs_kib[-1])) << 10

    def source(self, figure: str) -> Source:
        return next(each for each in self.sources if figure in each.figures)


IDENTITY = ("device", "driver", "git_revision", "arch")
FIGURES = tuple(name for name in GpuTable.model_fields if name not in (*IDENTITY, "sources"))

CARVE_OUTS: dict[str, tuple[int, tuple[int, ...]]] = {
    "sm_90": (256, (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
}
"""KiB of an SM's data cache, and of shared memory in it (CUDA Programming Guide, compute capabilities)."""


class Rows:
    """A profile's rows by group and name. BadInput for one that it lacks."""

    def __init__(self, profile: Mapping[str, Any]):
        self.rows = {(group, row["name"]): row for group, rows in profile["rows"].items() for row in rows}

    def __call__(self, group: str, name: str, figure: str = "cycles") -> Any:
        try:
            return self.rows[group, name][figure]
        except KeyError:
            raise BadInput(f"the profile has no row {name!r} in {group!r} with {figure!r}") from None


def per_sub_core(rows: Rows, group: str, name: str, warps: int) -> float:
    """Cycles between two instructions in a sub-core, where its share of the warps issue the same number."""
    return rows(group, f"{name}, {warps} warps") * QUARTERS / warps


def intervals(rows: Rows) -> dict[str, float]:
    """By pipe, and by shape of a product; whole cycles, as a probe's loop adds a little."""
    names = {
        "fma": "ffma", "fma heavy": "imad", "imad.hi": "imad.hi", "alu": "lop3", "half": "hfma2",
        "double": "dadd", "special": "mufu.ex2",
    }  # fmt: skip
    found: dict[str, float] = {
        pipe: round(per_sub_core(rows, "rate", f"{name} rate", 16)) for pipe, name in names.items()
    }
    for sass, shape in {"16816": "m16n8k16.f32.f16", "1688": "m16n8k8.f32.f16"}.items():
        found[f"tensor {sass}"] = round(per_sub_core(rows, "tensor", f"mma.{shape} rate, 4 chains", 16))
    return found


def latencies(rows: Rows, multiprocessors: int) -> dict[str, float]:
    """Of what is waited for by a scoreboard. global: of one line in L1, from rows with lanes apart; global
    atomic: without what L2 takes for the row's eight sectors."""
    return {
        "special": rows("latency", "mufu.ex2 latency"),
        "double": rows("latency", "dfma latency"),
        "exchange": rows("latency", "shfl latency"),
        "constant": rows("constant", "ldc latency"),
        "shared atomic": rows("shared", "atoms.add latency"),
        "ldsm": rows("shared", "ldsm.x1 latency"),
        "global": global_latency(rows),
        "global atomic": rows("global", "atomg.add latency")
        - 8 * atomic_cycles(rows, multiprocessors)["integer"],
    }  # fmt: skip


def global_latency(rows: Rows) -> float:
    return rows("global", "ldg.64, lanes 16 bytes apart, l1 latency") - 3 * per_line(rows)


def shared_latency(rows: Rows) -> dict[int, float]:
    """By bytes of a lane; beyond 4 the further wavefronts are taken off, which come with per_wavefront."""
    return {
        width // 8: rows("shared", f"lds.{width} latency") - (width // 32 - 1) * per_wavefront(rows)
        for width in (32, 64, 128)
    }


def per_wavefront(rows: Rows) -> float:
    most, one = (rows("shared", f"lds.32{text} latency") for text in (" of 32 wavefronts", ""))
    return (most - one) / 31


def per_line(rows: Rows) -> float:
    """Of 32 lines against 4."""
    most, few = (rows("global", f"ldg.64, lanes {n} bytes apart, l1 latency") for n in (128, 16))
    return (most - few) / 28


def path_cycles(rows: Rows) -> dict[str, float]:
    """Loads of 128 bits of one warp, 4 registers each; copies of one warp in each sub-core."""
    return {
        "shared": rows("shared", "lds.128 rate, 1 warps") / 4,
        "global": rows("global", "ldg.128 rate, l1, 1 warps") / 4,
        "copy": rows("cp.async", "cp.async.cg of 16, each with 0 ldsm.x4, 4 warps"),
    }


def store_cycles(rows: Rows) -> float:
    return rows("shared", "sts.128 rate, 1 warps") - 4 * path_cycles(rows)["shared"]


def l2_latency(rows: Rows) -> tuple[float, ...]:
    """One line at a time, from every SM to as many lines."""
    found = rows("gpu", "latency of L2 from every SM to every line", "percentiles")
    return tuple(each - global_latency(rows) for each in found)


def dram_latency(rows: Rows) -> float:
    """By turns that wait for 8 KiB. Of the many lines of a burst the last one counts, so that it is more than
    the latency of one line at a time. Both with the farthest lines of L2."""
    near, far = (
        rows("burst", f"burst of 2 and 6 x 4096 bytes, contiguous, shared by 1{cold}, 8 warps, 1 SMs", "turn")
        for cold in ("", ", cold")
    )
    return l2_latency(rows)[-1] + far[0] - near[0]


def in_rows(rows: Rows, width: int, cold: str = "") -> float:
    """Cycles that a further 4096 bytes of a turn take, in rows of so many bytes."""
    name = (
        f"burst of 1 and 4 x 4096 bytes, rows of {width} bytes 4096 apart, shared by 1{cold}, 8 warps, 1 SMs"
    )
    return rows("burst", name)


def part_cycles(rows: Rows) -> float:
    """Of 128 sectors, each of another line."""
    return in_rows(rows, 32) / 128


def page_cycles(rows: Rows) -> float:
    """Of 64 pages, each with 64 bytes, beyond what they take in L2."""
    return (in_rows(rows, 64, ", cold") - in_rows(rows, 64)) / 64


def copy_page_cycles(rows: Rows) -> float:
    """The same of copies to shared memory, which are not slower from DRAM than from L2 on an H100."""
    name = (
        "burst of 1 and 4 x 4096 bytes, rows of 64 bytes 4096 apart, shared by {}, by cp.async 0 ahead,"
        " 8 warps, {}"
    )
    cold, warm = (rows("burst", name.format(*form)) for form in (("1, cold", "1 SMs"), ("8", "all SMs")))
    return max(0.0, cold - warm) / 64


def box_page_cycles(rows: Rows) -> float:
    """Of 32 lines in pages of their own, beyond what they take next to each other."""
    name = "burst of 2 and 6 x 4096 bytes, contiguous, shared by 1, cold, 8 warps, 1 SMs"
    return (in_rows(rows, 128, ", cold") - rows("burst", name)) / 32


def box_dram_more(rows: Rows) -> float:
    """What the first box of 64 lines in pages of their own takes more than loads into registers, both against
    what L2 has. Its lines are shared by eight SMs, so that DRAM is not busy."""
    name = "1 and 5 tensor loads of boxes of 8192 bytes, shared by 8{}, every SM"
    cold, warm = (rows("tma", name.format(state), "turn")[0] for state in (", cold", ""))
    return cold - warm - (dram_latency(rows) - l2_latency(rows)[-1]) - 64 * box_page_cycles(rows)


def copy_dram_more(rows: Rows) -> float:
    """The same of copies to shared memory, of 64 rows of 64 bytes."""
    name = "burst of 1 and 4 x 4096 bytes, rows of 64 bytes 4096 apart, shared by 8{}, by cp.async 0 ahead"
    cold, warm = (
        rows("burst", name.format(state) + ", 8 warps, all SMs", "turn")[0] for state in (", cold", "")
    )
    return cold - warm - (dram_latency(rows) - l2_latency(rows)[-1])


def read_bytes(rows: Rows) -> dict[str, float]:
    names = {"alone": "own lines, 1 SMs", "own": "own lines, all SMs", "same": "the same lines, all SMs"}
    return {key: ROW_BYTES / rows("gpu", f"L2 read, {name}") for key, name in names.items()}


def write_bytes(rows: Rows) -> float:
    return ROW_BYTES / rows("gpu", "L2 write, own lines, all SMs")


def part_write_cycles(rows: Rows) -> float:
    """Of 1024 bytes in rows of 16, half a sector each."""
    return rows("gpu", "L2 write, rows of 16 bytes, all SMs") / 64


def atomic_cycles(rows: Rows, multiprocessors: int) -> dict[str, float]:
    """One lane of each of 8 warps of every SM at one word; 32 lanes of each at four sectors of their own."""
    word, own = (
        "red.{} of one word of one lane rate, 8 warps, all SMs",
        "red.add of own lines rate, 8 warps, {}",
    )
    kinds = {"integer": "add", "float": "add.f32"}
    sectors = {"sector": "1 SMs", "sector, all SMs": "all SMs"}
    return {kind: rows("global", word.format(add)) / (8 * multiprocessors) for kind, add in kinds.items()} | {
        name: rows("global", own.format(who)) / (8 * 4) for name, who in sectors.items()
    }


def dram_write_cost(rows: Rows) -> float:
    """From a copy: what is left for the bytes written, if those read come at their own rate."""
    both, read = (
        rows("gpu", name, "gb_per_s") for name in ("DRAM copy, bytes read and written", "DRAM read")
    )
    return 2 * read / both - 1


def dram_wait(rows: Rows, multiprocessors: int) -> float:
    """Cycles that a request waits for others if DRAM is busy half of the time. It grows as u / (1 - u) of the
    share u in which DRAM is busy. Turns of 16 KiB of each SM against those of one SM."""
    name = "DRAM stream, 1 read and 0 written, 1 x 16 KiB of a block, {} blocks"
    alone, all_ = (rows("gpu", name.format(blocks), "gb_per_s") for blocks in (1, multiprocessors))
    share = all_ / rows("gpu", "DRAM read", "gb_per_s")
    longer = (multiprocessors / all_ - 1 / alone) * ROW_BYTES * clock(rows) / 1e3
    return longer * (1 - share) / share


def queue_of(rows: Rows, opcode: str) -> int:
    """Entries: the most instructions of 16 wavefronts that one warp issues before the next takes twice the
    usual time, without those that have left by then; all that were tried where none is held."""
    counts = sorted(
        (int(name.split()[0]), row["cycles"]) for (group, name), row in rows.rows.items()
        if group == "queue" and f" {opcode} " in name
    )  # fmt: skip

    def served(cycles: float) -> int:
        return int(cycles / (16 * path_cycles(rows)["shared"])) + 1

    usual = counts[1][1] - counts[0][1]
    for (few, begin), (more, end) in zip(counts, counts[1:]):
        if end - begin > 2 * usual * (more - few):
            return few - served(begin)
    return counts[-1][0] - served(counts[-1][1])


def barrier(rows: Rows) -> tuple[float, float]:
    """What follows the last arrival, and what each arrival takes."""
    one, all_ = (rows("barrier", f"bar.sync, {warps} warps") for warps in (1, 32))
    each = (all_ - one) / 31
    return one - each, each


RETURNS, STORES, STORES_CYCLES = "kernel that returns", "empty kernel, 1 blocks of 1 warps", 105
"""Two kernels that are launched in a row, and the simulated cycles of the second, which stores its clock."""


def launch_us(rows: Rows, figure: str = "in_graph") -> dict[int, float]:
    """By warps of the grid, up to those of one wave, where beginning is not the blocks' own time. A launch of
    one warp takes as long as that of a kernel that stores, without its own cycles, because kernels store.
    More warps take as much longer as they do in a kernel that returns."""
    shapes = {1: "1 blocks of 1 warps", 528: "132 blocks of 4 warps", 4224: "132 blocks of 32 warps"}
    found = {warps: rows("gpu", f"{RETURNS}, {name}", figure) for warps, name in shapes.items()}
    more = max(0.0, rows("gpu", STORES, figure) - STORES_CYCLES / clock(rows) - found[1])
    return {warps: us + more for warps, us in found.items()}


def returns(rows: Rows, multiprocessors: int, each: int, warps: int) -> float:
    """Cycles of a launch with so many blocks for each SM, that return at once."""
    name = f"{RETURNS}, {each * multiprocessors} blocks of {warps} warps"
    return rows("gpu", name, "in_graph") * clock(rows)


def block_cycles(rows: Rows, multiprocessors: int) -> float:
    """256 blocks for each SM against 32: the fewer the warps, the less of it is the SM's own time."""
    many, few = returns(rows, multiprocessors, 256, 1), returns(rows, multiprocessors, 32, 4)
    return (many - few) / ((256 - 32) * multiprocessors)


def first_block_cycles(rows: Rows) -> float:
    """The same while SMs have room: from the first to the last of the blocks that run at once, a quarter."""
    name = "blocks of 8 warps, 0 bytes of shared memory"
    blocks = rows("gpu", name, "blocks") / QUARTERS
    return rows("gpu", name, "first_wave_ns") * clock(rows) / 1e3 / blocks


def gap(rows: Rows, multiprocessors: int) -> float:
    """Of blocks of 32 warps, of which an SM has two at once, what a turn takes."""
    many, one = (returns(rows, multiprocessors, each, 32) for each in (256, 1))
    return (many - one) / (256 / 2 - 1)


def units(rows: Rows) -> dict[str, float]:
    """Latencies from issue to issue, and cycles by name. Empty for a GPU without these units.

    A turn of a probe is what is measured and the stall cycles that ptxas wrote in its loop: those are taken
    off. Assumptions: wake, from the end of a phase to the issue of a warp that waits for it, is half of a
    wait for a phase that is over; remote, until an arrival is at another block, half of the way there and
    back.
    """
    if not any(group == "wgmma" for group, _ in rows.rows):
        return {}

    def turn(group: str, name: str, stalls: int) -> float:
        return rows(group, name, "turn")[0] - stalls

    copy = "tensor load of a box of {}, swizzle {}"
    box_row = rows("tma", copy.format("256x16", 32)) / 256
    large, larger = (rows("tma", f"tensor store of a box of {n}x64, swizzle 128") for n in (128, 256))
    multicast = "tensor load of a box of 128x64 to both blocks of a cluster, every SM"
    try_wait = rows("mbarrier", "mbarrier arrive and wait, 1 warps") - 17
    wake = try_wait / 2
    store_byte = (larger - large) / 16384
    product = "wgmma.n8.f32.f16, A from {}, {} warpgroups"
    return {
        "try_wait": try_wait,
        "wake": wake,
        "mbarrier": rows("mbarrier", "mbarrier.arrive"),
        "remote": rows("cluster", "atom.shared::cluster latency") / 2,
        "box load": turn("tma", copy.format("8x64", 128), 44) - 8 * box_row - wake,
        "bulk load": turn("tma", "bulk load of 16 bytes", 44) - wake,
        "copy accepted": rows("tma", copy.format("8x64", 128)) - 24.5,
        "box row": box_row,
        "box byte": rows("tma", copy.format("256x64", 128)) / 32768,
        "box byte, all SMs": rows("tma", copy.format("256x64", 128) + ", every SM") / 32768,
        "multicast byte, all SMs": rows("cluster", multicast) / 32768,
        "box store": turn("tma", "tensor store of a box of 8x64, swizzle 128", 21) - 1024 * store_byte,
        "bulk store": turn("tma", "bulk store of 16 bytes", 21),
        "store byte": store_byte,
        "store each": large - 16384 * store_byte,
        "product, A from shared memory": turn("wgmma", product.format("shared memory", 1), 22) - 4,
        "product, A from registers": turn("wgmma", product.format("registers", 1), 24) - 4,
        "product of registers": rows("wgmma", product.format("registers", 2), "turn")[1] / 18,
        "membar.cta": rows("barrier", "membar.cta"),
        "membar.gl": rows("barrier", "membar.gl") - 8,
    }


def cluster_latency(rows: Rows) -> dict[int, float]:
    """By blocks: from the last arrival to what follows the wait."""
    if not any(group == "cluster" for group, _ in rows.rows):
        return {}
    name = "barrier.cluster of {} blocks, relaxed"
    return {blocks: rows("cluster", name.format(blocks)) - 2 for blocks in (2, 4, 8)}


def bodies(rows: Rows) -> list[tuple[int, float]]:
    """KiB of each loop that one warp was timed in, and its cycles for an instruction."""
    found = [
        row for (group, _), row in rows.rows.items() if group == "instruction cache" and row["warps"] == 1
    ]
    return sorted((row["kib"], row["cycles"]) for row in found)


def code_bytes(rows: Rows) -> int:
    """The largest loop that runs at less than half of what the next level slows it down to."""
    return max(kib for kib, cycles in bodies(rows) if cycles - 1 < (fetch_cycles(rows) - 1) / 2) << 10


def fetch_cycles(rows: Rows) -> float:
    """Of a loop of 64 KiB."""
    return dict(bodies(rows))[64]


def tensor_products(rows: Rows) -> float:
    """Of m64n256k16 by two warpgroups, one product each."""
    return 2 * 64 * 256 * 16 / rows("wgmma", "wgmma.n256.f32.f16, A from shared memory, 2 warpgroups")


def clock(rows: Rows) -> float:
    clocks = sorted(rows("gpu", "clock under FFMA", "mhz"))
    return clocks[len(clocks) // 2]


def loaded_mhz(rows: Rows) -> float:
    clocks = sorted(rows("gpu", "clock under wgmma.n256 on random numbers", "mhz"))
    return clocks[len(clocks) // 2]


LENT = ("dram_wait", "box_dram_more")
"""Figures of rows that an older profile does not have."""


def table_of(profile: Mapping[str, Any], lender: Mapping[str, Any] | None = None) -> GpuTable:
    """The table of the GPU that a profile was measured on. lender: a profile of a GPU alike, for the figures
    LENT."""
    rows, device = Rows(profile), profile["device"]
    latency, each = barrier(rows)
    data_kib, carve_outs = CARVE_OUTS[device["arch"]]
    told = ("data_kib", "carve_outs_kib")
    lent, other = LENT if lender else (), lender or profile
    return GpuTable(
        device=device["name"], driver=device["driver_version"], git_revision=profile["git_revision"],
        arch=device["arch"], multiprocessors=device["multiprocessors"], l2_bytes=device["l2_bytes"],
        mhz=clock(rows), intervals=intervals(rows),
        latencies=latencies(rows, device["multiprocessors"]),
        shared_latency=shared_latency(rows), per_wavefront=per_wavefront(rows), per_line=per_line(rows),
        path_cycles=path_cycles(rows), store_cycles=store_cycles(rows),
        l2_latency=l2_latency(rows), dram_latency=dram_latency(rows), read_bytes=read_bytes(rows),
        part_cycles=part_cycles(rows), page_cycles=page_cycles(rows),
        copy_page_cycles=copy_page_cycles(rows), box_page_cycles=box_page_cycles(rows),
        box_dram_more=box_dram_more(Rows(other)), copy_dram_more=copy_dram_more(rows),
        write_bytes=write_bytes(rows), part_write_cycles=part_write_cycles(rows),
        atomic_cycles=atomic_cycles(rows, device["multiprocessors"]),
        dram_gb_per_s=rows("gpu", "DRAM read", "gb_per_s"),
        dram_write_cost=dram_write_cost(rows),
        dram_wait=dram_wait(Rows(other), other["device"]["multiprocessors"]),
        queue_loads=queue_of(rows, "lds.32"), queue_stores=queue_of(rows, "sts.32"),
        barrier_latency=latency, barrier_per_warp=each, launch_us=launch_us(rows),
        early_us=launch_us(rows, "in_graph_programmatic"),
        block_cycles=block_cycles(rows, device["multiprocessors"]),
        first_block_cycles=first_block_cycles(rows),

        code_bytes=code_bytes(rows), fetch_cycles=fetch_cycles(rows),
        gap=gap(rows, device["multiprocessors"]),
        tensor_products=tensor_products(rows), loaded_mhz=loaded_mhz(rows),
        units=units(rows), cluster_latency=cluster_latency(rows),
        data_kib=data_kib, carve_outs_kib=carve_outs,
        sources=(
            Source(
                figures=tuple(name for name in FIGURES if name not in (*told, *lent)),
                text=f"rows of a profile by {profile['command'].partition(' ')[0]}", verified=True,
            ),
            *(
                Source(
                    figures=(name,), text=f"rows of a profile of an {other['device']['name']}", verified=False
                )
                for name in lent
            ),
            Source(figures=told, text="CUDA Programming Guide, compute capabilities", verified=True),
        ),
    )  # fmt: skip


def known_tables() -> tuple[str, ...]:
    """Names of GPUs that tables are shipped for."""
    folder = resources.files("tir_schedules.timing") / "tables"
    return tuple(sorted(each.name.removesuffix(".json") for each in folder.iterdir()))


def find_table(name: str) -> GpuTable:
    """A shipped table, such as that of "h100". BadInput for another name.

    A table without a profile names another one that it is based on, in `based_on`, and the figures that
    differ, each with a source; the others are of that table, and not verified.
    """
    if name not in known_tables():
        raise BadInput(f"there is no table of the GPU {name!r}; there are: {', '.join(known_tables())}")
    path = resources.files("tir_schedules.timing") / "tables" / f"{name}.json"
    return as_table(parse_json(path.read_bytes(), f"{name}.json", "install the package again"))


def as_table(text: Json) -> GpuTable:
    if "based_on" not in text:
        return GpuTable.model_validate(text)
    own = dict(text)
    base = find_table(own.pop("based_on"))
    sources = [Source.model_validate(each) for each in own.pop("sources")]
    told = {name for each in sources for name in each.figures}
    rest = tuple(name for name in FIGURES if name not in told)
    sources.append(Source(figures=rest, text=f"those of {base.device}", verified=False))
    return GpuTable.model_validate(base.model_dump() | own | {"sources": sources})
