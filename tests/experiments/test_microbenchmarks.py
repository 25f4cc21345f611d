"""Probes of a GPU, without one: they assemble to what they are to repeat, the CPU machine executes them, and
figures follow from clocks."""

import json

import micro_arithmetic
import micro_memory
import micro_short
import micro_streams
import micro_system
import micro_units
import microbenchmarks
import numpy as np
import pytest
from micro_probes import DATA, OUT, SINK, TURNS_NAME, Probe, measure

from tir_schedules.machines.cpu import CpuMachine

EVERYWHERE = "|".join([
    "^latency/(ffma|iadd3|shfl)", "^shared/(lds.128 latency|ldsm.x4 latency)", "^wgmma/wgmma.n64.f32.f16",
    "^tma/tensor load of a box of 64x64, swi",
])  # fmt: skip


def test_probes_repeat_what_they_are_to_repeat(capsys):
    assert microbenchmarks.main(["check", "--only", EVERYWHERE]) == 0
    assert "probes repeat what they are to repeat" in capsys.readouterr().out


def test_one_that_does_not_is_named(monkeypatch, capsys):
    """ptxas drops an addition of zero."""
    body = "    add.u32 %r0, %r0, 0;"
    lost = Probe("lost", "latency", "IADD", lambda i: body, "    mov.u32 %r0, y;", sink=("%r0",))
    monkeypatch.setitem(microbenchmarks.FAMILIES, "arithmetic", lambda: iter([lost]))
    assert microbenchmarks.main(["check", "--only", "lost"]) == 1
    assert "lost: 0 IADD between the clocks, not 32" in capsys.readouterr().err


def test_names_are_unique():
    for family in microbenchmarks.FAMILIES.values():
        names = [(probe.group, probe.name) for probe in family()]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "name",
    ["mbarrier/mbarrier arrive and wait, 4", "tma/bulk load of 1024",
     "tma/tensor load of a box of 64x64, swizzle 128$",
     "tma/tensor store of a box of 64x64, swizzle 128$", "cluster/ld.shared::cluster of 4 bytes latency",
     "global/ldg.128 rate, l1, 16", "cp.async/cp.async.ca of 4, l1, 16", "barrier/bar.sync, 4",
     "global/.* lines of l2, 8", "cp.async/.*rows of 64 to rows of 80, 2 and 3 under way, 16",
     "cp.async/.*own places, rows of 64 .*each with 2 ldsm.x4, 8", "issued/6 .*rows of 64 .*80, 8"],
)  # fmt: skip
def test_the_cpu_machine_executes_it_to_its_end(name):
    """And finds nothing out of bounds, misaligned, or waiting in vain."""
    of = microbenchmarks.probes
    (probe,) = (probe for family in microbenchmarks.FAMILIES for probe in of(family, "sm_90a", name))
    binary = microbenchmarks.built(probe, probe.copies[1], "sm_90a", 2)
    blocks = binary.kernel.grid[0]
    arguments = {
        OUT: np.zeros((blocks, probe.warps, 4), np.int64), SINK: np.zeros(probe.warps * 32, np.int32),
        DATA: np.zeros(probe.data_bytes // 4, np.int32), TURNS_NAME: 3,
    }  # fmt: skip
    execution = CpuMachine().run(binary, arguments, [OUT, SINK, DATA])
    kinds = {finding.kind for finding in execution.findings}
    assert not kinds & {"out_of_bounds", "misaligned", "deadlock", "endless_loop", "mbarrier_misuse"}
    assert (arguments[OUT][..., 1] >= arguments[OUT][..., 0]).all()


@pytest.mark.parametrize("width, down", [(4, True), (16, False), (128, True)])
def test_tiles_cover_a_matrix(monkeypatch, width, down):
    """All words are written, by as many turns as the probe is timed with."""
    monkeypatch.setattr(micro_streams, "PITCH", 1 << 11)
    size, turn = 1 << 20, micro_streams.TILES_A_TURN * 2 * 4096
    probe = micro_streams.tiles("write", width, down, size, 1)
    assert touched(probe, size // turn, size) == 1
    assert touched(probe, size // turn // 2, size) == 0.5


def test_short_launches_move_each_word_and_add_once_for_each_warp():
    tile = micro_short.tile("rows of a tile", "rows of the tile across")
    words = micro_short.ARRAY // 4
    data = np.concatenate([np.arange(1, words + 1), np.zeros(words, int)]).astype(np.int32)
    launched_once(tile, data)
    matrix = data[:words].reshape(micro_short.SIDE // 32, 32, micro_short.SIDE // 32, 32)
    assert (data[words:].reshape(matrix.shape) == matrix.transpose(2, 1, 0, 3)).all()
    adding = micro_short.adding(0, "an integer added")
    assert launched_once(adding, data)[0] == micro_short.ADDING_BLOCKS * micro_short.ADDING_WARPS


def launched_once(probe, data):
    """What a launch leaves in its result."""
    binary = microbenchmarks.built(probe, probe.copies[0], "sm_90a", 1)
    arguments = {
        OUT: np.zeros((1, probe.warps, 4), np.int64), SINK: np.zeros(probe.warps * 32, np.int32),
        DATA: data, TURNS_NAME: 1,
    }  # fmt: skip
    execution = CpuMachine().run(binary, arguments, [OUT, SINK, DATA])
    assert not {finding.kind for finding in execution.findings} & {"out_of_bounds", "misaligned", "race"}
    return arguments[SINK]


def touched(probe, turns, size):
    """The share of the words that a probe writes."""
    binary, data = microbenchmarks.built(probe, probe.copies[0], "sm_90a", 1), np.zeros(size // 4, np.int32)
    blocks = binary.kernel.grid[0]
    arguments = {
        OUT: np.zeros((blocks, probe.warps, 4), np.int64), SINK: np.zeros(probe.warps * 32, np.int32),
        DATA: data, TURNS_NAME: turns,
    }  # fmt: skip
    execution = CpuMachine().run(binary, arguments, [OUT, SINK, DATA])
    assert not execution.findings
    return np.count_nonzero(data) / data.size


class Clocked:
    """A GPU on which a turn takes 10 cycles and each of its copies 4, and a launch 1000."""

    def __init__(self):
        self.xp = np

    def turns(self, copies, turns):
        return 1000 + turns * (10 + 4 * copies)


def test_a_figure_holds_neither_start_nor_loop(monkeypatch):
    machine = Clocked()
    monkeypatch.setattr(
        "micro_probes.elapsed", lambda machine, probe, binary, turns: machine.turns(binary, turns)
    )
    probe = next(micro_arithmetic.arithmetic())
    row = measure(machine, probe, probe.copies)
    assert row["cycles"] == 4 and row["turn"] == [10 + 4 * copies for copies in probe.copies]


def test_gaps_are_between_an_end_and_the_begin_in_its_place():
    begin, end = np.array([0, 1, 110, 121]), np.array([100, 101, 200, 220])
    assert micro_system.gaps_between(begin, end) == ([10, 20], 2)


def test_a_profile_is_written_and_shown(tmp_path, capsys):
    rows = {"latency": [{"name": "ffma latency", "opcode": "FFMA", "cycles": 4.00001}]}
    path = tmp_path / "profile.json"
    path.write_text(microbenchmarks.as_text({"date": "today", "failed": [], "rows": rows}))
    assert json.loads(path.read_text())["rows"]["latency"][0]["cycles"] == 4.0
    assert microbenchmarks.main(["table", str(path)]) == 0
    assert "ffma latency: cycles 4.0" in capsys.readouterr().out
    path.write_text(microbenchmarks.as_text({"failed": ["chase: no memory"], "rows": rows}))
    assert microbenchmarks.main(["table", str(path)]) == 1
    assert "not measured: chase: no memory" in capsys.readouterr().err


def test_a_file_that_is_no_profile_is_refused(tmp_path, capsys):
    path = tmp_path / "other.json"
    path.write_text("[]")
    assert microbenchmarks.main(["table", str(path)]) == 2
    assert "is not a profile: name a JSON file that `run` wrote" in capsys.readouterr().err


def test_what_an_architecture_lacks_is_left_out():
    assert not [probe for probe in micro_units.probes() if probe.needs == "sm_75"]
    older = microbenchmarks.probes("memory", "sm_80", None)
    assert older and not any(probe.name.startswith("stsm") for probe in older)
    assert len(older) < len([*micro_memory.probes()])
