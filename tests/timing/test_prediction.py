"""Times of launches: waves, what is behind L1, what a launch costs, and what warps wait for."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import abi as cpu_abi
from tir_schedules.machines.cpu.abi import LINE_PIECE, MADE, STEP, Happening
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.machine import Steps
from tir_schedules.timing import prediction, simulation
from tir_schedules.timing.abi import Kind
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.paths import BlockPaths, follow
from tir_schedules.timing.prediction import ALL_KINDS, kinds_of, predict, shared_by, states_of

SOURCE = """\
extern "C" __global__ void tile(const float *x, float *y) {
    __shared__ float part[128];
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < 8; ++i) {
        part[threadIdx.x] = x[(blockIdx.y * 8 + i) * 128 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += part[k];
        __syncthreads();
    }
    y[(blockIdx.y * gridDim.x + blockIdx.x) * 128 + threadIdx.x] = sum;
}
"""
TABLE = find_table("h100")
SMS = TABLE.multiprocessors
HELD = 16  # blocks of four warps that an SM holds


def made(columns, rows):
    kernel = Kernel("tile", SOURCE, "tile", ("x", "y"), (columns, rows, 1), (128, 1, 1), "sm_90")
    return compile_kernel(kernel), {
        "x": np.zeros(128 * 8 * rows, np.float32), "y": np.zeros(128 * columns * rows, np.float32)
    }  # fmt: skip


def time_of(columns, rows, mhz=None, table=TABLE, cold=True):
    binary, given = made(columns, rows)
    return predict([binary], [given], ["y"], table, mhz, cold=cold)


def test_blocks_that_fit_run_at_once():
    one, all_ = time_of(1, 1).launches[0], time_of(SMS, 1).launches[0]
    assert (one.waves, one.resident, all_.waves, all_.resident) == (1, 1, 1, 1)
    assert all_.cycles == pytest.approx(one.cycles, rel=0.1)


def test_the_sm_with_the_most_blocks_decides():
    full, more = time_of(SMS * HELD, 1).launches[0], time_of(SMS * HELD + 1, 1).launches[0]
    assert (full.waves, full.resident) == (1, HELD) and (more.waves, more.resident) == (1 + 1 / HELD, HELD)
    alone = time_of(SMS, 1).launches[0].cycles
    assert full.cycles < more.cycles <= 1.05 * (full.cycles + TABLE.gap + alone)


def test_many_blocks_go_on_as_the_first_ones():
    """Nine fills of an SM are told by four."""
    few, many = (time_of(SMS * HELD * fills, 1).launches[0] for fills in (4, 9))
    half = time_of(SMS * HELD * 2, 1).launches[0]
    assert many.cycles == pytest.approx(few.cycles + 5 * (few.cycles - half.cycles) / 2)


def test_blocks_of_an_sm_begin_at_several_distances(monkeypatch):
    """The mean of them is told, and they differ."""
    monkeypatch.setattr(prediction, "kept", lambda does, *given: does(*given))
    found = {}
    for apart in (prediction.APART, *((each,) for each in prediction.APART)):
        monkeypatch.setattr(prediction, "APART", apart)
        found[apart] = time_of(2 * SMS, 1).launches[0].cycles
    mean, *each = found.values()
    assert mean == pytest.approx(np.mean(each)) and len({*each}) > 1


def test_cycles_are_not_time():
    slow, fast = time_of(SMS, 1, 1000), time_of(SMS, 1, 2000)
    assert slow.cycles == fast.cycles
    overhead = slow.launches[0].overhead_us
    assert slow.microseconds - overhead == pytest.approx(2 * (fast.microseconds - overhead))
    assert overhead == TABLE.launch_us[528]


def test_several_launches_take_one_after_the_other():
    binary, given = made(1, 1)
    one, two = predict([binary], [given], ["y"], TABLE), predict([binary] * 2, [given] * 2, ["y"], TABLE)
    assert two.microseconds == 2 * one.microseconds and two.cycles == 2 * one.cycles


def kinds_told(binary, given):
    paths = follow(binary, given, ["y"])
    paths.steps.pieces["kind"] = kinds_of(binary, given, ["y"], paths)
    return paths


def test_neighbours_read_the_same_lines():
    """Blocks along x read one row of x: all columns share a row. Each block has lines of y of its own."""
    binary, given = made(8, 16)
    paths = kinds_told(binary, given)
    lines = 8 * 4 + 4
    unique = 8 * 4 / lines * 16 + 4 / lines * 128
    assert shared_by(binary, given, ["y"], paths, 128) == pytest.approx(128 / unique)
    alone, given = made(1, 16)
    assert shared_by(alone, given, ["y"], kinds_told(alone, given), 16) == 1


def test_what_l2_does_not_hold_comes_from_dram():
    """Each of eight turns waits for lines that none read before, if L2 is too small or does not have them."""
    small = TABLE.model_copy(update={"l2_bytes": 1 << 10})
    warm, far, cold = (
        time_of(SMS, 1, table=table, cold=cold).launches[0]
        for table, cold in ((TABLE, False), (small, False), (TABLE, True))
    )
    assert [each.beyond.level for each in (warm, far, cold)] == ["l2", "dram", "dram"]
    assert warm.dram_us == cold.dram_us == 0 < far.dram_us
    more = TABLE.dram_latency - TABLE.l2_latency[-1]
    assert far.cycles - warm.cycles > 7 * more and far.cycles == cold.cycles


@pytest.mark.parametrize(
    "size, blocks, loaded, stored, moved",
    [
        (1 << 20, 100, (0, 1, 2, 3), (4, 5), (76800, 76800)),  # a part of the arrays
        (1 << 14, 100, (0, 1, 2, 3), (4, 5), (1 << 14, 1 << 14)),  # lines are shared
        (1 << 14, 100, (0, 1, 2, 3), (2, 3), (1 << 14, 24576)),  # half of what is read is written
        (1 << 14, 100, (0, 1), (0, 1), (1 << 14, 1 << 15)),  # in place
        (1 << 14, 100, (), (), (0, 0)),
    ],
)
def test_dram_moves_what_blocks_touch(size, blocks, loaded, stored, moved):
    """Whole lines, 128 bytes each, by a load and a store."""
    made_by = np.zeros(2, MADE)
    made_by["counter"] = (0, 1)
    made_by["pieces"], made_by["first_piece"] = (len(loaded), len(stored)), (0, len(loaded))
    pieces = np.zeros(len(loaded) + len(stored), LINE_PIECE)
    pieces["line"], pieces["sectors"] = [*loaded, *stored], 15
    counted = ((1, "global_load"), (2, "global_store"))
    steps = Steps(np.zeros(0, STEP), made_by, pieces, (), counted, 0, 2, len(pieces))
    assert prediction.touched_bytes(size, steps, blocks) == moved
    assert prediction.touched_bytes(size, replace(steps, pieces_met=100), blocks) == (size, size)


def test_later_blocks_find_what_earlier_ones_read():
    """Of 2 blocks at once on an SM and 4 in all. A row of blocks shares lines, and a column does."""
    both, x, y, own = (1 << kind for kind in (Kind.ALONG_BOTH, Kind.ALONG_X, Kind.ALONG_Y, Kind.OWN))
    narrow, long = (states_of((columns, 1 << 20, 1), 2, 4, TABLE, False, True) for columns in (8, 1 << 20))
    assert narrow == (ALL_KINDS, ALL_KINDS, own | x, own | x)
    assert long == (ALL_KINDS, ALL_KINDS, own | y, own | y)
    assert (
        states_of((8, 8, 1), 2, 4, TABLE, False, False)
        == (0,)
        != states_of((8, 8, 1), 2, 4, TABLE, True, False)
    )
    assert both | x | y | own == ALL_KINDS


def test_waits_are_told_by_line():
    launch = time_of(SMS, 1).launches[0]
    reasons, lines = launch.by_reason(), launch.by_line()
    assert sum(reasons.values()) == launch.stalls.sum()
    assert {sum(each.values()) for each in [*lines.values()]} and reasons["barrier"] > 0
    by_line = {line: each for (_, line), each in lines.items()}
    load = SOURCE.splitlines().index(next(text for text in SOURCE.splitlines() if "= x[" in text)) + 1
    assert max(by_line, key=lambda line: by_line[line]["long_board"]) == load
    ptx = launch.by_line("ptx")
    assert sum(each["barrier"] for each in ptx.values()) == reasons["barrier"]


def test_what_the_model_lacks_is_told(monkeypatch):
    monkeypatch.setattr(simulation, "NOT_MODELLED", re.compile("BAR"))
    with pytest.raises(CheckFailed, match="does not have BAR yet"):
        time_of(2, 1)


# ---- grids of one row ----
class Row:
    """A kernel whose blocks go over tiles in an order of their own."""

    def __init__(self, columns):
        self.kernel = Kernel("row", "", "row", (), (columns, 1, 1), (128, 1, 1), "sm_90a")


def steps_of(lines):
    """A warp that reads lines in one basic block of 10 instructions."""
    made, table = np.zeros(1, MADE), np.zeros(1, STEP)
    made["pieces"] = len(lines)
    pieces = np.array([(line, 15, 0) for line in lines], LINE_PIECE)
    return Steps(table, made, pieces, ((1,) * 10,), ())


def lines_of_tiles(columns):
    """A matrix of tiles with so many columns: block n has the line of its column and that of its row. An odd
    block of a cluster has a line of its own."""

    def executed(binary, arguments, outputs, block, budget):
        number = block[0]
        if number % 2 and binary.kernel.cluster[0] > 1:
            return steps_of([1000 + number])
        return steps_of([number % columns, 100 + number // columns])

    return executed


@pytest.mark.parametrize("number", [0, 76])
@pytest.mark.parametrize("columns, cluster, down, across", [(8, 1, 17, 8), (11, 1, 12, 11), (12, 2, 11, 6)])
def test_tiles_of_a_row_share_lines_in_any_order(monkeypatch, number, columns, cluster, down, across):
    """132 blocks: so many have the line of a column, and of a row of tiles."""
    monkeypatch.setattr(prediction, "executed", lines_of_tiles(columns))
    row = Row(132)
    row.kernel = replace(row.kernel, cluster=(cluster, 1, 1))
    steps = steps_of([number % columns, 100 + number // columns])
    down -= columns == 8 and number % columns >= 4  # 132 are 16 rows of 8, and a half
    lines, readers = prediction.readers_at_first(row, {}, steps, 132, (number, 0, 0))
    assert [*lines] == [number % columns, 100 + number // columns] and [*readers] == [down, across]
    if columns == 11:
        found = prediction.shared_in_a_row(row, {}, (), steps, 132, (number, 0, 0))
        assert found == pytest.approx(2 / (1 / down + 1 / across))


def test_lines_that_blocks_share_later_count_by_powers_of_two(monkeypatch):
    """128 blocks: 16 have the line of a column, 8 that of a row, at any time."""
    monkeypatch.setattr(prediction, "executed", lines_of_tiles(8))
    for lines, place in (([0, 100], 0), ([7, 115], 127)):
        arguments = Row(128), {}, (), np.array(lines), 128, (place, 0, 0)
        assert [*prediction.readers_by_distance(*arguments)] == [16, 8]
    monkeypatch.setattr(prediction, "readers_at_first", lambda *given: (np.array([0, 100]), np.ones(2)))
    found = prediction.shared_in_a_row(Row(128), {}, (), steps_of([0, 100]), 128, (0, 0, 0))
    assert found == pytest.approx(2 / (1 / 16 + 1 / 8))


def test_blocks_that_share_nothing_are_not_all_asked(monkeypatch):
    asked = []

    def executed(binary, arguments, outputs, block, budget):
        asked.append(block)
        return steps_of([block[0]])

    monkeypatch.setattr(prediction, "executed", executed)
    _, readers = prediction.readers_at_first(Row(1024), {}, steps_of([0]), 1024, (0, 0, 0))
    assert [*readers] == [1] and len(asked) < 150


def test_lines_that_a_block_touches_late_are_not_counted():
    """The budget is that of the warp which takes the most instructions."""
    made, table = np.zeros(3, MADE), np.zeros(3, STEP)
    made["pieces"], made["first_piece"] = 400, (0, 400, 800)
    table["warp"], table["made"] = (0, 1, 1), (0, 1, 2)
    pieces = np.zeros(1200, LINE_PIECE)
    pieces["line"] = np.arange(1200)
    lines, budget = prediction.beginning(Steps(table, made, pieces, ((1,) * 10,), ()))
    assert len(lines) == 800 and budget == prediction.LEAST_BUDGET + 4 * 10


def test_the_work_of_the_first_the_last_and_other_blocks_is_counted(monkeypatch):
    """Block x goes over a basic block of two instructions and x times over one of three, so blocks differ."""

    def executed(binary, arguments, outputs, block, again):
        table = np.array([(0,), *[(1,)] * block[0]], [("block", "u4")])
        return Steps(table, np.empty(0), np.empty(0), ((1, 2), (3, 4, 5)), ())

    monkeypatch.setattr(prediction, "executed", executed)
    works = prediction.works_of(Row(131), {}, ())
    assert [*works.items()][:3] == [((0, 0, 0), 2), ((130, 0, 0), 392), ((65, 0, 0), 197)]
    assert all(work == 2 + 3 * x for (x, _, _), work in works.items())
    assert prediction.mean_work(works) == pytest.approx(197, rel=0.05) and 35 < len(works) <= 43
    monkeypatch.setattr(prediction, "LOOKED_LONG", 1000)
    assert 3 < len(prediction.works_of(Row(131), {}, ())) < 10
    assert prediction.works_of(Row(1), {}, ()) == {(0, 0, 0): 2}


def test_places_are_the_first_blocks_of_clusters(monkeypatch):
    nothing = Steps(np.zeros(0, [("block", "u4")]), (), (), (), ())
    monkeypatch.setattr(prediction, "executed", lambda *_, again: nothing)
    binary = Row(1)
    binary.kernel = replace(binary.kernel, grid=(6, 4, 1), cluster=(2, 1, 1))
    assert [*prediction.works_of(binary, {}, ())] == [(0, 0, 0), (4, 3, 0), (2, 2, 0)]


@pytest.mark.parametrize(
    "works, at_once, place",
    [
        ((100, 91, 95), False, 0), ((100, 10, 100), False, 0), ((1, 99, 100), False, 2),
        ((0, 100, 50), False, 2), ((0, 100, 50), True, 1), ((100, 100, 80), True, 0), ((7,), True, 0),
        ((0, 0, 90, 30, 60, 20), False, 4), ((10, 30), False, 0),
    ],
)  # fmt: skip
def test_a_block_stands_for_all(works, at_once, place):
    """The first, the last, the centre, and others. With a guard that ends the first block, with a loop as
    long as the number of the block."""
    given = {(number, 0, 0): work for number, work in enumerate(works)}
    assert prediction.representative(given, at_once) == (place, 0, 0)


@pytest.mark.parametrize(
    "works, at_once, work",
    [
        ((100, 91, 95), False, 100), ((100, 10, 100), False, 100), ((0, 0, 90, 30, 60, 20), False, 50),
        ((0, 0, 90, 30), True, 90), ((10, 30), False, 20),
    ],
)  # fmt: skip
def test_blocks_that_differ_are_taken_to_do_their_mean(works, at_once, work):
    given = {(number, 0, 0): work for number, work in enumerate(works)}
    place = prediction.representative(given, at_once)
    assert prediction.work_of_each(given, place, at_once) == work


@pytest.mark.parametrize("maps, marked", [((), [0, 1, 1, 0]), ((128,), [0, 1, 1, 1]), ((64,), [0, 1, 1, 0])])
def test_accesses_that_ask_l2_for_whole_lines_are_known(maps, marked):
    """A load, a copy with a hint that touches two lines, and a box, whose tensor map may promote."""
    ptx = "ld.global.u32 %r1, [%rd1];\ncp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;\n"
    ptx += "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
    kernel = SimpleNamespace(maps=[SimpleNamespace(promotion=each) for each in maps])
    made = np.zeros(3, cpu_abi.MADE)
    made["counter"], made["first_piece"], made["pieces"] = [0, 1, 2], [0, 1, 3], [1, 2, 1]
    made["what"] = cpu_abi.NONE
    counted = tuple((line, "global_load") for line in (1, 2, 3))
    steps = Steps(np.empty(0), made, np.zeros(4, cpu_abi.LINE_PIECE), (), counted)
    assert prediction.hinted(SimpleNamespace(ptx=ptx, kernel=kernel), steps).tolist() == marked


def test_a_launch_that_begins_early_costs_less():
    assert TABLE.early_us.keys() == TABLE.launch_us.keys()
    for warps in TABLE.launch_us:
        assert prediction.overhead(TABLE, warps, True) == TABLE.early_us[warps] < TABLE.launch_us[warps]


def test_what_stands_above_the_wait_is_hidden_where_a_launch_begins_early():
    """A loop above the wait takes cycles where the launch does not begin early. Blocks of more than SMs do
    not."""
    wait = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
    above = """    int turn = 0;
    #pragma unroll 1
    for (int i = 0; i < ROUNDS; ++i) turn = turn * 5 + threadIdx.x;
    asm volatile("mov.u32 %0, %0;" : "+r"(turn));
"""
    source = SOURCE.replace("    float sum = 0;\n", f"{above}    {wait}\n    float sum = turn;\n")

    def cycles(rounds, columns, overlap):
        text = source.replace("ROUNDS", str(rounds))
        kernel = Kernel("tile", text, "tile", ("x", "y"), (columns, 1, 1), (128, 1, 1), "sm_90")
        given = {"x": np.zeros(128 * 8, np.float32), "y": np.zeros(128 * columns, np.float32)}
        made = compile_kernel(kernel)
        assert made.kernel.early
        return predict([made], [given], ["y"], TABLE, overlap=overlap).launches[0].cycles

    few, many = (cycles(rounds, 4, False) for rounds in (1, 100))
    hidden, more = (cycles(rounds, 4, True) for rounds in (1, 100))
    assert hidden < few < many - 300 and more == pytest.approx(hidden, abs=40)
    assert cycles(100, SMS + 1, True) == cycles(100, SMS + 1, False)


def test_what_comes_by_tma_is_told_apart():
    made = np.zeros(3, cpu_abi.MADE)
    made["what"], made["pieces"] = (Happening.BEGUN, cpu_abi.NONE, Happening.STORED), (6, 2, 100)
    paths = BlockPaths([], (), Steps(np.empty(0), made, np.empty(0), (), ()))
    assert prediction.copies_of(paths) == 0.75
