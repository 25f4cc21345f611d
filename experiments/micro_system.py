"""What is measured of the whole GPU: the path to L2 and DRAM, launches, and the clock under load."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import Any, Iterator, Sequence

import numpy as np
from micro_arithmetic import CHAINS, INSTRUCTIONS, filled, setup_of
from micro_probes import DATA, Probe, arguments, flush, notes_of
from micro_short import measured as short_launches
from micro_streams import GROUP, ROW, Build, dram_streams
from micro_units import ARRAY, DESCRIPTORS, HOPPER, wgmma

from tir_schedules.bench.clocks import Cycles, open_monitor
from tir_schedules.files import Json
from tir_schedules.machines.driver import launch_early
from tir_schedules.machines.gpu import GpuMachine, packed
from tir_schedules.model.launch import TensorMap

CHASE = Probe(
    "chase", GROUP, "LDG", lambda i: "    ld.global.cg.u64 %d0, [%d0];",
    "    ld.global.cg.u64 %d0, [data];", sink=("%d0",), copies=(1, 1),
)  # fmt: skip
"""Each turn is one load that gives the address of the next."""


def lines_of_l2(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Cycles until a load of L2 is there, for lines at many addresses: near and far halves show apart."""
    binary, array = build(CHASE, 1), machine.xp.zeros(4 << 20, "int64")
    begin = array.data.ptr
    found, sm = [], 0
    for line in range(128):
        place = line * 4111 * 16 % array.size
        array[place] = begin + 8 * place
        times = []
        for turns in (50, 250):
            notes = [notes_of(machine, CHASE, binary, turns, array[place:]) for _ in range(3)]
            times.append(min(int(one[0, 0, 1] - one[0, 0, 0]) for one in notes))
            sm = int(notes[0][0, 0, 2])
        found.append((times[1] - times[0]) / 200)
    yield {
        "name": "latency of L2 by line", "cycles": median(found), "least": min(found), "most": max(found),
        "lines": found, "sm": sm,
    }  # fmt: skip


def chase(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Cycles until a load that misses L2 is there; the lines lie in few pages, or in many."""
    binary, xp = build(CHASE, 1), machine.xp
    for name, size in (("64 MiB", 64 << 20), ("2 GiB", 2 << 30)):
        nodes = 8192
        array = xp.zeros(size // 8, "int64")
        places = np.random.default_rng(1).permutation(nodes) * (array.size // nodes)
        places = np.concatenate([[0], places[places != 0]])
        array[xp.asarray(places)] = xp.asarray(array.data.ptr + 8 * np.roll(places, -1))
        times = []
        for turns in (500, 6500):
            runs = []
            for _ in range(3):
                flush(machine)
                note = notes_of(machine, CHASE, binary, turns, array)
                runs.append(int(note[0, 0, 1] - note[0, 0, 0]))
            times.append(min(runs))
        yield {"name": f"latency of DRAM, lines in {name}", "cycles": (times[1] - times[0]) / 6000}


CHASES = Probe(
    "chases", GROUP, "LDG", lambda i: "    ld.global.cg.u64 %d0, [%d0];",
    "    mov.u32 %r10, %ctaid.x;\n    mul.wide.u32 wide, %r10, 8;\n    add.u64 at, data, wide;\n"
    "    ld.global.cg.u64 %d0, [at];", sink=("%d0",), copies=(1, 1), blocks=0,
)  # fmt: skip
"""CHASE on every SM at once, each with a line of its own."""


def near_and_far(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """CHASES of as many lines as there are SMs, from each SM to each line: which are near, and how near."""
    binary, xp = build(CHASES, 1), machine.xp
    sms = machine.attribute("MultiProcessorCount")
    array = xp.zeros(sms * 512 + 1024, "int64")
    lines = array.data.ptr + 8 * (1024 + 512 * np.arange(sms) + 16 * (np.arange(sms) * 37 % 32))
    array[xp.asarray((lines - array.data.ptr) // 8)] = xp.asarray(lines)
    cycles, turns = np.zeros((sms, sms)), 200
    for first in range(sms):
        turned = np.roll(lines, first)
        array[:sms] = xp.asarray(turned)
        notes = notes_of(machine, CHASES, binary, turns, array)
        cycles[notes[:, 0, 2], np.roll(np.arange(sms), first)] = (notes[:, 0, 1] - notes[:, 0, 0]) / turns
    counts, edges = np.histogram(cycles, np.arange(150, 1000, 10))
    yield {
        "name": "latency of L2 from every SM to every line", "cycles": float(np.median(cycles)),
        "percentiles": np.percentile(cycles, [1, 10, 25, 50, 75, 90, 99]).tolist(),
        "histogram": {int(edge): int(count) for edge, count in zip(edges, counts) if count},
        "by_sm": np.median(cycles, axis=1).tolist(), "by_line": np.median(cycles, axis=0).tolist(),
        "of_sm_0": cycles[0].tolist(),
    }  # fmt: skip


def pages(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Cycles of a load that hits L2 where the chase goes through so many pages of 2 MiB, one line in each."""
    binary, xp, page = build(CHASE, 1), machine.xp, (2 << 20) // 8
    array = xp.zeros(2048 * page, "int64")
    for count in (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        places = np.arange(count) * page + np.arange(count) * 33 * 16 % (1 << 16)
        order = np.concatenate([[0], 1 + np.random.default_rng(1).permutation(count - 1)])
        array[xp.asarray(places[order])] = xp.asarray(array.data.ptr + 8 * np.roll(places[order], -1))
        times = []
        for turns in (2 * count + 100, 4 * count + 1100):
            notes = [notes_of(machine, CHASE, binary, turns, array) for _ in range(3)]
            times.append(min(int(one[0, 0, 1] - one[0, 0, 0]) for one in notes))
        yield {"name": f"latency of L2, {count} pages", "cycles": (times[1] - times[0]) / (2 * count + 1000)}


def cold_code(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Cycles of straight code of FFMA that runs once: after itself, and after another kernel of 384 KiB."""
    sms = machine.attribute("MultiProcessorCount")

    def body(kib: int, warps: int) -> Probe:
        return Probe(
            f"once through {kib} KiB", GROUP, "FFMA",
            lambda i: filled(INSTRUCTIONS["ffma"][1], "%f", i % CHAINS), setup_of("%f", CHAINS),
            sink=tuple(f"%f{n}" for n in range(CHAINS)), copies=(kib * 64, kib * 64), warps=warps, blocks=sms,
        )  # fmt: skip

    other = body(384, 4)
    evicting = build(other, other.copies[0])
    for kib in (4, 8, 16, 32, 64):
        for warps in (4, 8):
            probe = body(kib, warps)
            binary, found = build(probe, probe.copies[0]), {}
            for name, before in (("warm", binary), ("cold", evicting)):
                times = []
                for _ in range(5):
                    notes_of(machine, other if before is evicting else probe, before, 1)
                    notes = notes_of(machine, probe, binary, 1)
                    times.append(float(np.median(notes[..., 1].max(axis=1) - notes[..., 0].min(axis=1))))
                found[name] = median(times)
            yield {"name": f"{probe.name}, {warps} warps", "instructions": kib * 64, **found}


def rows(form: str, shared_by: int, copies: tuple[int, int], blocks: int) -> Probe:
    """Blocks that read or write rows in L2, so many of them the same; 0: all."""
    own = f"div.u32 %r10, %r10, {shared_by}" if shared_by else "mov.u32 %r10, 0"
    where = {0: "the same lines", 1: "own lines"}.get(shared_by, f"lines shared by {shared_by}")
    setup = f"""\
    mov.u32 %r10, %ctaid.x;
    {own};
    mul.wide.u32 wide, %r10, {ROW * 8};
    add.u64 at, data, wide;
    mul.wide.u32 wide, thread, 16;
    add.u64 %d0, at, wide;
    mov.u32 %r0, y;
"""
    load = "ld.global.cg.v4.u32 {{%r4, %r5, %r6, %r7}}, [%d1+{0}];\n" + "".join(
        f"    xor.b32 %r0, %r0, %r{n};\n" for n in (4, 5, 6, 7)
    )
    store = "st.volatile.global.v4.u32 [%d1+{0}], {{y, z, y, z}};"
    reads = form == "read"
    return Probe(
        f"L2 {form}, {where}, {blocks or 'all'} SMs", GROUP, "LDG" if reads else "STG",
        lambda i: "    " + (load if reads else store).format(i * ROW), setup,
        before=lambda copies: (
            f"    and.b32 %r11, turn, {15 if blocks else 1};\n"
            f"    mul.wide.u32 wide, %r11, {2 << 20 if blocks else 32 << 20};\n    add.u64 %d1, %d0, wide;"
        ),
        sink=("%r0",), copies=copies, warps=32, blocks=blocks, data_bytes=(33554432 + ROW * 8 * 256),
        notes={"bytes": ROW},
    )  # fmt: skip


def l2_rates() -> Iterator[Probe]:
    """Probes of the rate at which SMs read and write lines that L2 holds."""
    for form in ("read", "write"):
        for blocks in (1, 0):
            for shared_by in (1, 0) if form == "read" else (1,):
                yield rows(form, shared_by, (2, 8), blocks)
    for shared_by in (2, 4, 8, 16, 32):
        yield rows("read", shared_by, (2, 8), 0)
    for blocks in (1, 0):
        for size in (4, 8, 16, 32, 64, 128):
            yield fragments(blocks, size)


def fragments(blocks: int, bytes_of_a_row: int) -> Probe:
    """Warps that write rows of a matrix, 4 bytes a lane, and then what lies behind in the same rows, as the
    sums of a product are written."""
    lanes = bytes_of_a_row // 4
    warp_bits = 12 + max(3, (32 // lanes).bit_length() - 1)
    setup = f"""\
    mov.u32 %r10, %ctaid.x;
    mul.wide.u32 wide, %r10, {8 << warp_bits};
    add.u64 at, data, wide;
    mov.u32 %r11, warp;
    shl.b32 %r11, %r11, {warp_bits};
    shr.u32 %r12, lane, {lanes.bit_length() - 1};
    shl.b32 %r12, %r12, 12;
    add.u32 %r11, %r11, %r12;
    and.b32 %r12, lane, {lanes - 1};
    shl.b32 %r12, %r12, 2;
    add.u32 %r11, %r11, %r12;
    cvt.u64.u32 wide, %r11;
    add.u64 %d0, at, wide;
"""
    return Probe(
        f"L2 write, rows of {bytes_of_a_row} bytes, {blocks or 'all'} SMs", GROUP, "STG",
        lambda i: f"    st.volatile.global.u32 [%d1+{i * bytes_of_a_row}], y;", setup,
        before=lambda copies: "    and.b32 %r11, turn, 1;\n    mul.wide.u32 wide, %r11, 2048;\n"
        "    add.u64 %d1, %d0, wide;",
        copies=(4, 16), warps=8, blocks=blocks, data_bytes=256 * (8 << warp_bits), notes={"bytes": 1024},
    )  # fmt: skip


def stream(form: str, multiprocessors: int) -> Probe:
    """Blocks that go through a large array, 8 rows of the grid a turn."""
    blocks = 2 * multiprocessors
    grid_row = blocks * ROW
    setup = f"""\
    mov.u32 %r10, %ctaid.x;
    mul.wide.u32 wide, %r10, {ROW};
    add.u64 at, data, wide;
    mul.wide.u32 wide, thread, 16;
    add.u64 %d0, at, wide;
    mov.u32 %r0, y;
"""
    load = "ld.global.v4.u32 {{%r{1}, %r{2}, %r{3}, %r{4}}}, [%d0+{0}];"
    store = "st.global.v4.u32 [%d0+{0}], {{y, z, y, z}};"

    def after(copies: int) -> str:
        used = [f"    xor.b32 %r0, %r0, %r{16 + n};" for n in range(32)] if form == "read" else []
        return "\n".join([*used, f"    add.u64 %d0, %d0, {8 * grid_row};"])

    return Probe(
        f"DRAM {form}", GROUP, "LDG" if form == "read" else "STG",
        lambda i: "    " + (load if form == "read" else store).format(
            i * grid_row, *(16 + 4 * i + k for k in range(4))
        ),
        setup, after=after, sink=("%r0",), copies=(8, 8), warps=32, blocks=blocks,
        notes={"bytes": 8 * grid_row},
    )  # fmt: skip


def dram_rates(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Bytes per second of an array far larger than L2."""
    size = 4 << 30
    array, other = (machine.xp.zeros(size // 4, "int32") for _ in range(2))
    for form in ("read", "write"):
        probe = stream(form, machine.attribute("MultiProcessorCount"))
        turns = size // probe.notes["bytes"]
        given = arguments(machine, probe, probe.blocks, turns) | {DATA: array}
        call = partial(machine.enqueue, build(probe, 8), given)
        seconds = min(machine.seconds(call) for _ in range(5))
        yield {"name": probe.name, "gb_per_s": turns * probe.notes["bytes"] / seconds / 1e9}
    seconds = min(machine.seconds(lambda stream: machine.copy(other, array, stream)) for _ in range(5))
    yield {"name": "DRAM copy, bytes read and written", "gb_per_s": 2 * size / seconds / 1e9}


EMPTY = Probe("empty", GROUP, "", lambda i: "", copies=(0, 0))


class Returning(Probe):
    """One instruction, in place of what a probe without copies does: it reads clocks, and stores them."""

    def ptx(self, copies: int, arch: str) -> str:
        head, _, _ = super().ptx(copies, arch).partition("{\n")
        return head + "{\n    ret;\n}\n"


KINDS = {"empty kernel": Probe, "kernel that returns": Returning}
MAPS = tuple(TensorMap(f"map{k}", "data", "float16", (64, 64), (128,), (64, 64), 128) for k in range(3))
AS_GEMMS: dict[str, Json] = {
    "3 tensor maps": {"maps": MAPS}, "208 KiB of shared memory": {"dynamic_shared": 208 << 10},
    "both": {"maps": MAPS, "dynamic_shared": 208 << 10},
}  # fmt: skip
"""What products on Hopper have, and whether a launch takes longer for it."""


def launches(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Microseconds of kernels that do nothing: one between two events, and each of many in a graph."""
    sms = machine.attribute("MultiProcessorCount")
    few, many_blocks = ((1, 1), (sms, 4), (sms, 32), (4 * sms, 8), (32 * sms, 4)), 256 * sms
    shapes = (*few, *((many_blocks, warps) for warps in (1, 4, 8, 32)))
    for name, kind in KINDS.items():
        yield from launches_of(machine, build, name, kind, shapes)
    if machine.arch == "sm_90":
        for name, more in AS_GEMMS.items():
            yield from launches_of(
                machine, build, f"kernel that returns, {name}", Returning, ((sms, 8),), more
            )


def launches_of(
    machine: GpuMachine, build: Build, name: str, kind: type[Probe], shapes: Sequence[tuple[int, int]],
    more: Json | None = None,
) -> Iterator[Json]:  # fmt: skip
    """shapes: blocks and warps of each. more: fields of the probe."""
    for blocks, warps in shapes:
        probe = kind(
            "empty", GROUP, "", lambda i: "", copies=(0, 0), warps=warps, blocks=blocks, **(more or {})
        )
        binary, given = build(probe, 0), arguments(machine, EMPTY, 1, 1)
        given |= {
            "out": machine.xp.zeros((blocks, warps, 4), "int64"),
            "sink": machine.xp.zeros(1024, "int32"),
        }
        once = partial(machine.enqueue, binary, given)

        def often(stream: Any, count: int) -> None:
            for _ in range(count):
                once(stream)

        once(machine.stream)
        alone = median(machine.seconds(once) for _ in range(21))
        many = {}
        for count in (20, 120):
            graph = machine.capture(partial(often, count=count))
            machine.seconds(graph)
            many[count] = min(machine.seconds(graph) for _ in range(5))
        function, values = machine.load(binary), packed(binary.kernel, given)

        def early(stream: Any, count: int) -> None:
            for _ in range(count):
                launch_early(function.ptr, binary.kernel, values, stream.ptr)

        dependent = [
            min(machine.seconds(machine.capture(partial(early, count=n))) for _ in range(5))
            for n in (20, 120)
        ]
        yield {
            "name": f"{name}, {blocks} blocks of {warps} warps", "microseconds": alone * 1e6,
            "in_graph": (many[120] - many[20]) / 100 * 1e6,
            "in_graph_programmatic": (dependent[1] - dependent[0]) / 100 * 1e6,
            "from_this_computer": machine.elapsed(once) * 1e6,
        }  # fmt: skip


def blocks_in_turn(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Cycles from the end of a block to the first clock of the next one in its place, and how far the first
    blocks of a launch begin apart. Blocks take as long as each other, or end apart."""
    sms = machine.attribute("MultiProcessorCount")
    for warps, shared, apart in (
        (4, 0, 0),
        (8, 0, 0),
        (8, 40960, 0),
        (32, 0, 0),
        (4, 0, 1),
        (8, 0, 1),
        (32, 0, 1),
    ):
        declare = f".shared .align 1024 .b8 large[{shared}];" if shared else ""
        setup = f"    mov.u32 %r10, %ctaid.x;\n    mul.lo.u32 %r10, %r10, {977 * apart};\n"
        probe = Probe(
            "blocks", GROUP, "NANOSLEEP", lambda i: "    nanosleep.u32 %r10;",
            f"{setup}    and.b32 %r10, %r10, 4095;\n    add.u32 %r10, %r10, 1000;\n",
            copies=(1, 1), warps=warps, blocks=sms * 2048 // (32 * warps) * 4, declare=declare,
        )  # fmt: skip
        notes = [notes_of(machine, probe, build(probe, 1), 8) for _ in range(2)][1]
        begin, end = notes[:, :, 0].min(axis=1), notes[:, :, 1].max(axis=1)
        gaps, residents = [], []
        for sm in np.unique(notes[:, 0, 2]):
            here = notes[:, 0, 2] == sm
            found, resident = gaps_between(begin[here], end[here])
            gaps += found
            residents.append(resident)
        started = notes[:, 0, 3]
        yield {
            "name": f"blocks of {warps} warps, {shared} bytes of shared memory{', that end apart' * apart}",
            "gap_cycles": median(gaps),
            "gap_quartiles": np.percentile(gaps, [25, 75]).tolist(), "blocks": len(notes),
            "first_wave_ns": int(np.sort(started)[len(started) // 4 - 1] - started.min()),
            "resident": float(np.median(residents)),
        }  # fmt: skip


def gaps_between(begin: Any, end: Any) -> tuple[list[int], int]:
    """Of the blocks of one SM: cycles from the end of one to the begin of the one that takes its place, and
    how many run at once."""
    free, gaps, most, running = [], [], 0, 0
    for time_, is_begin in sorted([(t, 1) for t in begin.tolist()] + [(t, 0) for t in end.tolist()]):
        running += 1 if is_begin else -1
        most = max(most, running)
        if not is_begin:
            free.append(time_)
        elif free:
            gaps.append(time_ - free.pop(0))
    return gaps, most


RANDOM = """\
    mov.u32 %r30, thread;
fill:
    mul.lo.u32 %r31, %r30, 0x9E3779B1;
    shr.u32 %r32, %r31, 15;
    xor.b32 %r31, %r31, %r32;
    mul.lo.u32 %r31, %r31, 0x85EBCA77;
    and.b32 %r31, %r31, 0x83ff83ff;
    or.b32 %r31, %r31, 0x38003800;
    mad.lo.u32 %r32, %r30, 4, smem;
    st.shared.u32 [%r32], %r31;
    add.u32 %r30, %r30, 256;
    setp.lt.u32 %p0, %r30, 10240;
    @%p0 bra fill;
    fence.proxy.async.shared::cta;
"""
"""PTX that fills shared memory with numbers of 16 bits between 0.5 and 1, of either sign."""


def loads() -> Iterator[Probe]:
    """What keeps every SM busy."""
    yield Probe(
        "FFMA", "clock", "FFMA", lambda i: filled(INSTRUCTIONS["ffma"][1], "%f", i % CHAINS),
        setup_of("%f", CHAINS), sink=tuple(f"%f{n}" for n in range(CHAINS)), copies=(64, 64), warps=16,
        blocks=0,
    )  # fmt: skip
    for name, fill in (("zeros", ""), ("random numbers", RANDOM)):
        sums = tuple(f"%f{at}" for at in range(128))
        yield Probe(
            f"wgmma.n256 on {name}", "clock", "HGMMA", lambda i: wgmma("f32.f16", 256, False),
            DESCRIPTORS + fill + "\n".join(f"    mov.f32 {one}, 0f00000000;" for one in sums),
            before=lambda copies: "    wgmma.fence.sync.aligned;",
            after=lambda copies: "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;",
            declare=ARRAY, sink=sums, copies=(16, 16), warps=8, blocks=0, needs=HOPPER,
        )  # fmt: skip


def clocks(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """Megahertz and watts under a load of about a second, first half and second half."""
    cycles, monitor = Cycles(machine), open_monitor(machine.bus_id)
    sms = machine.attribute("MultiProcessorCount")
    yield {"name": "limits", "nvml": vars(monitor.read() or object) if monitor.read() else None}
    for probe in loads():
        binary = build(probe, probe.copies[0])
        turns = 100_000
        given = arguments(machine, probe, sms, turns)
        machine.enqueue(binary, given, machine.stream)
        machine.synchronize()
        readings, mhz, seconds = [], [], []
        for _ in range(6):
            seconds.append(
                machine.seconds(
                    partial(machine.enqueue, binary, given), around=cycles.points,
                    during=lambda: readings.append(later(monitor)),
                )
            )  # fmt: skip
            mhz.append(cycles.mhz())
        known = [one for one in readings if one]
        yield {
            "name": f"clock under {probe.name}", "mhz": mhz, "seconds": seconds,
            "copies": turns * probe.copies[0],
            "power_w": [one.power_w for one in known], "throttled": [one.throttled for one in known],
            "nvml_mhz": [one.sm_mhz for one in known],
        }  # fmt: skip


def later(monitor: Any) -> Any:
    """A reading a moment from now."""
    time.sleep(0.03)
    return monitor.read()


MEASURES = {
    "lines of L2": lines_of_l2, "near and far": near_and_far, "pages": pages, "cold code": cold_code,
    "DRAM latency": chase, "DRAM rates": dram_rates, "DRAM streams": dram_streams,
    "short launches": short_launches, "launches": launches,
    "blocks": blocks_in_turn, "clocks": clocks,
}  # fmt: skip
