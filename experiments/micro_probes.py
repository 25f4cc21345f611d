"""A probe is a kernel that repeats a few instructions and reads the clock around them; and what follows from
its times.

Each probe is assembled with two numbers of copies in the body of a loop, and runs with two numbers of turns.
What the second hundred turns take holds no start-up, and what further copies add holds no loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Callable

from tir_schedules.files import Json
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import TensorMap

ENTRY = "probe"
TURNS = (20, 120)
REPEATS = 3
WARP = 32
FLUSHED = 512 << 20
"""Bytes that are read so that L2 holds nothing else, and nothing that is to be written back."""

OUT, SINK, DATA, TURNS_NAME = "out", "sink", "data", "turns"

REGISTERS = """\
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<200>, turn, y, z, lane, warp, thread, smem, folded;
    .reg .f32 %f<288>, fy, fz;
    .reg .b64 %d<64>, out, sink, data, at, begin, end, started, wide;
    .reg .f64 %g<16>, gy, gz;
"""


@dataclass(frozen=True)
class Probe:
    """One probe.

    name: such as "lds.128 latency". group: part of the profile it belongs to. opcode: what SASS calls the
    instruction that is repeated, and per_copy how often it stands in a copy.
    body: PTX of copy number i. setup: PTX before the first clock. before, after: PTX around the copies of a
    turn, given their number. declare: PTX beside the kernel. sink: registers that hold results.
    copies: the two numbers. warps: of a block. blocks: 0 for one on each SM. needs: oldest architecture.
    turns: the two numbers. data_bytes: of the array `data`, which maps are of. cold: L2 holds nothing of it.
    Where both numbers of copies are equal, the result of the first thread is the figure. notes: more for
    the row. dynamic_shared: bytes that a block is given beside what it declares.
    """

    name: str
    group: str
    opcode: str
    body: Callable[[int], str]
    setup: str = ""
    before: Callable[[int], str] = lambda copies: ""
    after: Callable[[int], str] = lambda copies: ""
    declare: str = ""
    sink: tuple[str, ...] = ()
    copies: tuple[int, int] = (32, 96)
    warps: int = 1
    blocks: int = 1
    cluster: int = 1
    needs: str = "sm_75"
    per_copy: int = 1
    turns: tuple[int, int] = TURNS
    data_bytes: int = 1 << 16
    cold: bool = False
    maps: tuple[TensorMap, ...] = ()
    dynamic_shared: int = 0
    notes: Json = field(default_factory=dict)

    def kernel(self, copies: int, arch: str, multiprocessors: int) -> Kernel:
        """With so many copies."""
        blocks = self.blocks or max(1, multiprocessors // self.cluster) * self.cluster
        return Kernel(
            f"{self.name}, {copies} copies", self.ptx(copies, arch), ENTRY,
            (OUT, SINK, DATA, TURNS_NAME, *(one.name for one in self.maps)), (blocks, 1, 1),
            (self.warps * WARP, 1, 1), arch, self.dynamic_shared, cluster=(self.cluster, 1, 1),
            maps=self.maps, file="probe.ptx",
        )  # fmt: skip

    def ptx(self, copies: int, arch: str) -> str:
        """The source with so many copies."""
        maps = "".join(f",\n    .param .align 64 .b8 {one.name}[128]" for one in self.maps)
        cluster = f".explicitcluster\n.reqnctapercluster {self.cluster}, 1, 1\n" * (self.cluster > 1)
        kept = "".join(folded(register) for register in self.sink)
        body = "\n".join(self.body(number) for number in range(copies))
        return f"""\
.version 8.0
.target {arch}
.address_size 64
{self.declare}
.visible .entry {ENTRY}(
    .param .u64 given_{OUT},
    .param .u64 given_{SINK},
    .param .u64 given_{DATA},
    .param .u32 given_{TURNS_NAME}{maps}
)
.reqntid {self.warps * WARP}, 1, 1
{cluster}{{
{REGISTERS}
    ld.param.u64 out, [given_{OUT}];
    ld.param.u64 sink, [given_{SINK}];
    ld.param.u64 data, [given_{DATA}];
    ld.param.u32 turn, [given_{TURNS_NAME}];
    cvta.to.global.u64 out, out;
    cvta.to.global.u64 sink, sink;
    cvta.to.global.u64 data, data;
    mov.u32 thread, %tid.x;
    and.b32 lane, thread, 31;
    shr.u32 warp, thread, 5;
    add.u32 y, turn, thread;
    mul.lo.u32 z, y, turn;
    cvt.rn.f32.u32 fy, y;
    cvt.rn.f32.u32 fz, z;
    cvt.rn.f64.u32 gy, y;
    cvt.rn.f64.u32 gz, z;
{self.setup}
    bar.sync 0;
    mov.u64 started, %globaltimer;
    mov.u64 begin, %clock64;
again:
    .pragma "nounroll";
{self.before(copies)}
{body}
{self.after(copies)}
    sub.u32 turn, turn, 1;
    setp.ne.u32 %p7, turn, 0;
    @%p7 bra again;
    mov.u64 end, %clock64;
    mov.u32 folded, %ctaid.x;
    mad.lo.u32 folded, folded, {self.warps}, warp;
    mul.wide.u32 wide, folded, 32;
    add.u64 at, out, wide;
    st.global.v2.u64 [at], {{begin, end}};
    mov.u32 folded, %smid;
    cvt.u64.u32 begin, folded;
    st.global.v2.u64 [at+16], {{begin, started}};
    mov.u32 folded, 0;
{kept}
    mul.wide.u32 wide, thread, 4;
    add.u64 at, sink, wide;
    st.global.u32 [at], folded;
    bar.sync 0;
    ret;
}}
"""


def folded(register: str) -> str:
    """PTX that makes the result depend on a register."""
    if register.startswith(("%d", "%g")):
        return (
            f"    mov.b64 {{y, z}}, {register};\n    xor.b32 folded, folded, y;\n"
            "    xor.b32 folded, folded, z;\n"
        )
    return f"    xor.b32 folded, folded, {register};\n"


def measure(machine: GpuMachine, probe: Probe, binaries: tuple[Binary, Binary]) -> Json:
    """Cycles of a turn with either number of copies, and what one further copy adds."""
    fewer, more = probe.copies
    if fewer == more:
        return {"name": probe.name, "opcode": probe.opcode, "cycles": in_turn(machine, probe, binaries[0])}
    turns = [cycles_of_a_turn(machine, probe, binary) for binary in binaries]
    return {
        "name": probe.name, "opcode": probe.opcode, "cycles": (turns[1] - turns[0]) / (more - fewer),
        "copies": list(probe.copies), "turn": turns, "warps": probe.warps, **probe.notes,
    }  # fmt: skip


def in_turn(machine: GpuMachine, probe: Probe, binary: Binary) -> int:
    """What the first thread leaves as its result, cycles that it has read itself: the least of several."""
    found = []
    for _ in range(REPEATS):
        given = arguments(machine, probe, binary.kernel.grid[0], probe.turns[0])
        if probe.cold:
            flush(machine)
        launch(machine, binary, given)
        found.append(int(given[SINK][0]))
    return min(found)


def cycles_of_a_turn(machine: GpuMachine, probe: Probe, binary: Binary) -> float:
    """By the difference of two numbers of turns, each the least of several launches."""
    fewer, more = probe.turns
    times = [min(elapsed(machine, probe, binary, turns) for _ in range(REPEATS)) for turns in probe.turns]
    return (times[1] - times[0]) / (more - fewer)


def elapsed(machine: GpuMachine, probe: Probe, binary: Binary, turns: int) -> float:
    """Cycles from the first clock of a block to its last, the median of all blocks."""
    if probe.cold:
        flush(machine)
    notes = notes_of(machine, probe, binary, turns)
    return float(median((notes[..., 1].max(axis=1) - notes[..., 0].min(axis=1)).tolist()))


def notes_of(machine: GpuMachine, probe: Probe, binary: Binary, turns: int, data: Any = None) -> Any:
    """What each warp of each block notes, (blocks, warps, 4): the SM's clock before and behind, the SM, and
    nanoseconds of the GPU before. data: in place of zeros."""
    given = arguments(machine, probe, binary.kernel.grid[0], turns)
    if data is not None:
        given[DATA] = data
    launch(machine, binary, given)
    return given[OUT].get()


def launch(machine: GpuMachine, binary: Binary, given: dict[str, Any]) -> None:
    """Launch once, and wait."""
    with machine.explaining(binary.kernel.label), machine.device:
        machine.synchronize()
        machine.enqueue(binary, given, machine.stream)
        machine.synchronize()


def arguments(machine: GpuMachine, probe: Probe, blocks: int, turns: int) -> dict[str, Any]:
    """Of a launch; arrays on the GPU."""
    xp = machine.xp
    return {
        OUT: xp.zeros((blocks, probe.warps, 4), "int64"),
        SINK: xp.zeros(probe.warps * WARP, "int32"),
        DATA: data_of(machine, probe.data_bytes),
        TURNS_NAME: turns,
    }


def flush(machine: GpuMachine) -> None:
    """Fill L2 with other lines."""
    data_of(machine, FLUSHED).sum()
    machine.synchronize()


def data_of(machine: GpuMachine, size: int) -> Any:
    """Zeros on the GPU, the same for all probes of a size."""
    kept = machine.__dict__.setdefault("probe_data", {})
    if size not in kept:
        kept[size] = machine.xp.zeros(size // 4, "int32")
    return kept[size]


def repeated(sass: list[str], opcode: str) -> int:
    """How many instructions of an opcode stand between the clock reads of a probe's SASS."""
    reads = [number for number, each in enumerate(sass) if re.search(r"CS2R.*SR_CLOCK|S2UR.*SR_CLOCK", each)]
    return sum(each.split()[0].startswith(opcode) for each in sass[reads[0] : reads[-1]])
