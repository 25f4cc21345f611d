"""wgmma, mbarriers, TMA and clusters on a simulated SM: small programs by hand whose cycles are known."""

import numpy as np
import pytest
from test_simulation import ALU, TABLE, path, program, reason

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import abi as cpu_abi
from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.model.machine import Steps
from tir_schedules.timing.abi import Reason
from tir_schedules.timing.simulation import Outside, simulate

UNITS = TABLE.units
BUSY = ("SHF.L.U32 R0, R1, 0x1, R2", {"stall": 1})
TRY = ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3", {"writes": 0})
AFTER = ("FADD R4, R4, R4", {"waits": (0,)})
ARRIVE, EXPECT = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ", "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2"
LOAD, STORE = "UTMALDG.2D [UR8], [UR6]", "UTMASTG.2D [UR8], [UR4]"
FLUSH, FLUSHED = ("UTMACMDFLUSH", {"reads": 0}), "DEPBAR.LE SB0, 0x0"
MULTIPLIED = "WARPGROUP.DEPBAR.LE gsb0, 0x{}"


def product(n, last=True, left="gdesc[UR4]"):
    sums = "R24, gdesc[UR4], R24" if left.startswith("gdesc") else f"R24, {left}, gdesc[UR4], R24"
    return f"HGMMA.64x{n}x16.F32 {sums}{', gsb0' * last}"


def rows(*made):
    """Steps of (what happens, figures), each a dictionary of fields of MADE. Copies move whole lines."""
    table = np.zeros(len(made), cpu_abi.MADE)
    table["counter"], table["lanes"], table["width"] = cpu_abi.NONE, 1, 1
    for row, (what, fields) in zip(table, made):
        row["what"] = what
        for name, value in fields.items():
            row[name] = value
    copies = np.isin(table["what"], (Happening.BEGUN, Happening.STORED))
    table["pieces"][copies] = table["cost"][copies] // 128
    table["first_piece"] = np.cumsum(table["pieces"]) - table["pieces"]
    pieces = np.zeros(table["pieces"].sum(), cpu_abi.LINE_PIECE)
    pieces["line"], pieces["sectors"] = np.arange(len(pieces)), 15
    return Steps(np.empty(0, cpu_abi.STEP), table, pieces, (), ())


def mbarrier(count, *made):
    """The same behind the beginning of an mbarrier that expects so many arrivals."""
    return rows((Happening.INITIALISED, {"cost": count}), *made)


def arrived(count=1):
    return (Happening.ARRIVED, {"cost": count})


def expected(size):
    return (Happening.EXPECTED, {"cost": size})


def passed(phase):
    return (Happening.PASSED, {"source_cost": phase & 0xFFFFFFFF})


def begun(size, high, blocks=1):
    return (Happening.BEGUN, {"cost": size, "source_cost": high, "width": blocks})


def alone(code, steps, accesses=None, **given):
    numbers = [*range(len(code))]
    return simulate(code, [path(numbers, accesses)], steps, TABLE, **given)


def a_turn(lines, warps, few=11, more=21):
    """Cycles of a turn of warps that repeat lines."""
    return (together(lines, warps, more) - together(lines, warps, few)) / (more - few)


def together(lines, warps, times=1):
    """Cycles of warps that all execute lines so often."""
    code = program(*lines)
    paths = [path([*range(len(code))] * times, warp=warp) for warp in range(warps)]
    return simulate(code, paths, rows(), TABLE).cycles


# ---- products of warpgroups ---
@pytest.mark.parametrize(
    ("n", "left", "cycles"),
    [(256, "gdesc[UR4]", 128), (64, "gdesc[UR4]", 32), (8, "gdesc[UR4]", 18), (8, "R4", 13), (128, "R4", 64)],
)
def test_tensor_cores_take_products_at_the_measured_rate(n, left, cycles):
    """Rows of wgmma with two warpgroups: half a cycle a column, or as long as factors take to come."""
    nine = [product(n, False, left)] * 8 + [product(n, True, left), MULTIPLIED.format(0)]
    assert a_turn(nine, 8) / 18 == pytest.approx(cycles, abs=0.2)


def test_a_product_takes_what_the_probe_says():
    """From issue to the end of the wait; and with A in registers ten cycles less."""
    for left, name in (("gdesc[UR4]", "shared memory"), ("R4", "registers")):
        alike = a_turn([product(64, True, left), MULTIPLIED.format(0)], 4)
        assert alike == pytest.approx(32 + UNITS[f"product, A from {name}"] + 1, abs=1)


def test_a_product_begins_when_four_warps_have_issued_it():
    code = program(product(64), MULTIPLIED.format(0), *[BUSY] * 300)
    late = [*range(2, 302), 0, 1]
    paths = [path([0, 1], warp=w) for w in range(3)] + [path(late, warp=3)]
    found = simulate(code, paths, rows(), TABLE)
    assert found.cycles == pytest.approx(300 * ALU + 32 + 50, abs=4)
    assert reason(found, Reason.PRODUCTS) > 3 * 300 * ALU


def test_a_wait_may_leave_groups_open():
    one, none = (together([product(256), product(256), MULTIPLIED.format(n)], 4) for n in (1, 0))
    assert none - one == 128


# ---- mbarriers ---
def test_a_wait_ends_when_the_last_has_arrived():
    code = program(*[BUSY] * 100, ARRIVE, TRY, AFTER)
    steps = mbarrier(64, arrived(32), passed(0))
    early, late = path([100, 101, 102], [1, 2, -1]), path([*range(101)], [*[-1] * 100, 1], warp=1)
    found = simulate(code, [early, late], steps, TABLE)
    assert found.cycles == pytest.approx(100 * ALU + UNITS["wake"] + 4, abs=4)
    assert reason(found, Reason.MBARRIER) > 90 * ALU


def test_a_phase_that_is_over_is_not_waited_for():
    """Nor is the one before the first, as a producer asks for."""
    code = program(TRY, AFTER)
    found = alone(code, mbarrier(1, passed(-1)), [1, -1])
    assert found.cycles == pytest.approx(UNITS["try_wait"] + 1, abs=1)
    with pytest.raises(CheckFailed, match="wait for each other"):
        alone(code, mbarrier(1, passed(0)), [1, -1])


def test_phases_follow_each_other():
    code = program(ARRIVE, TRY, AFTER)
    with pytest.raises(CheckFailed, match="wait for each other"):
        alone(code, mbarrier(1, arrived(), passed(1)), [1, 2, -1])
    steps = mbarrier(1, arrived(), passed(0), arrived(), passed(1), arrived(), passed(2))
    numbers, accesses = [0, 1, 2] * 3, [1, 2, -1, 3, 4, -1, 5, 6, -1]
    found = simulate(code, [path(numbers, accesses)], steps, TABLE)
    assert found.cycles == pytest.approx(3 * (UNITS["try_wait"] + 2), abs=30)


def test_an_arrival_from_another_block_is_later():
    near, far = (
        alone(program(text, TRY, AFTER), mbarrier(1, arrived(), passed(0)), [1, 2, -1]).cycles
        for text in (ARRIVE, ARRIVE.replace("A1T0", "RED.A1T0"))
    )
    assert far - near > UNITS["remote"] - UNITS["try_wait"]


def test_blocks_have_mbarriers_of_their_own():
    code = program(ARRIVE, TRY, AFTER)
    found = alone(code, mbarrier(1, arrived(), passed(0)), [1, 2, -1], slots=2, blocks=3)
    assert found.issued.tolist() == [3, 3, 3]


def test_a_copy_of_a_block_that_is_over_does_not_reach_the_next():
    steps = mbarrier(1, arrived(), passed(0), begun(1024, 8))
    code = program(ARRIVE, TRY, AFTER, LOAD, *[BUSY] * 20)
    found = alone(code, steps, [1, 2, -1, 3, *[-1] * 20], blocks=2)
    assert found.issued.tolist() == [2] * 24


def test_mbarriers_are_told_apart_by_their_place():
    """Of two the second expects two arrivals."""
    begin = [(Happening.INITIALISED, {"cost": count, "first": 8 * count}) for count in (1, 2)]
    far = [(Happening.ARRIVED, {"cost": 1, "first": 16})] * 2
    wait = (Happening.PASSED, {"first": 16})
    code = program(ARRIVE, ARRIVE, TRY, AFTER)
    assert alone(code, rows(*begin, *far, wait), [2, 3, 4, -1]).issued.sum() == 4
    near = (Happening.ARRIVED, {"cost": 1, "first": 8})
    with pytest.raises(CheckFailed, match="wait for each other"):
        alone(code, rows(*begin, far[0], near, wait), [2, 3, 4, -1])


# ---- copies ---
def load(*boxes, size=None):
    """Expect bytes, copy boxes, wait."""
    total = size or sum(box[1]["cost"] * box[1]["width"] for box in boxes)
    code = program(EXPECT, *[LOAD] * len(boxes), TRY, AFTER)
    accesses = [1, *range(3, 3 + len(boxes)), 2, -1]
    return alone(code, mbarrier(1, expected(total), passed(0), *boxes), accesses).cycles


def test_a_box_takes_its_rows_and_its_bytes():
    """Rows of 128 bytes and more at the rate of bytes, shorter ones a row a cycle."""
    small, wide, narrow = load(begun(1024, 8)), load(begun(32768, 256)), load(begun(8192, 256))
    taken = UNITS["mbarrier"] + UNITS["box load"] + 8 * 1.2 + UNITS["wake"]
    assert small == pytest.approx(taken, abs=3)
    assert wide - small == pytest.approx(31744 * UNITS["box byte"], abs=2)
    assert narrow - small == pytest.approx(256 - 1024 * UNITS["box byte"], abs=2)


def test_boxes_come_one_after_another():
    one, two = load(begun(16384, 128)), load(begun(16384, 128), begun(16384, 128))
    assert two - one == pytest.approx(16384 * UNITS["box byte"], abs=2)


def test_a_phase_waits_for_all_bytes():
    with pytest.raises(CheckFailed, match="wait for each other"):
        load(begun(1024, 8), size=2048)


def test_a_box_for_two_blocks_brings_as_much_from_the_other():
    """Bytes that go to several blocks come at a rate of their own."""
    own, shared = load(begun(8192, 64)), load(begun(8192, 64, blocks=2))
    taken = 2 * 8192 * UNITS["multicast byte, all SMs"]
    assert shared - own == pytest.approx(taken - 8192 * UNITS["box byte"], abs=2)


def test_boxes_share_the_port_to_l2():
    code = program(EXPECT, LOAD, TRY, AFTER)
    steps = mbarrier(1, expected(16384), passed(0), begun(16384, 128))
    slow, fast = (alone(code, steps, [1, 3, 2, -1], outside=Outside(rate)).cycles for rate in (32, 64))
    assert slow - fast == pytest.approx(256, abs=2)
    far = alone(code, steps, [1, 3, 2, -1], outside=Outside(64, cold=(1,))).cycles
    pages = 16384 / 1024 * TABLE.box_page_cycles
    more = TABLE.dram_latency - TABLE.l2_latency[-1] + pages + TABLE.box_dram_more
    assert far - fast == pytest.approx(more, abs=2)


def test_a_store_of_half_a_sector_takes_as_long_as_two():
    code = program(STORE, FLUSH, FLUSHED)
    whole, ragged = (
        alone(code, rows((Happening.STORED, {"cost": 4096, "source_cost": parts})), [0, -1, -1]).cycles
        for parts in (0, 64)
    )
    assert ragged - whole == 64 * 32 * UNITS["store byte"]


def test_stores_are_read_before_the_group_is_over():
    code = program(STORE, FLUSH, FLUSHED)
    found = [alone(code, rows((Happening.STORED, {"cost": size})), [0, -1, -1]) for size in (1024, 2048)]
    assert found[0].cycles == pytest.approx(1024 * UNITS["store byte"] + UNITS["box store"], abs=3)
    assert found[1].cycles - found[0].cycles == 1024 * UNITS["store byte"]
    assert reason(found[0], Reason.COPIES) > 60 and found[1].written == 2048


# ---- barriers ---
def test_a_cluster_meets_when_all_warps_of_the_block_have_come():
    code = program("UCGABAR_ARV", "UCGABAR_WAIT", *[BUSY] * 100)
    paths = [path([0, 1]), path([*range(2, 102), 0, 1], warp=1)]
    for blocks in (2, 8):
        found = simulate(code, paths, rows(), TABLE, cluster=blocks)
        assert found.cycles == pytest.approx(100 * ALU + TABLE.cluster_latency[blocks], abs=3)
    assert reason(found, Reason.CLUSTER) > 100 * ALU


def test_a_barrier_whose_number_is_in_a_register_is_the_one_that_the_machine_met():
    """Two barriers of two warps each. Were they one, the first warp would go on with the third, and not wait
    for the second, which comes late."""
    code = program("BAR.SYNC R4, 0x40", *[BUSY] * 200)
    first, late, others = [0, *range(1, 201)], [*range(1, 201), 0], [0]
    paths = [
        path(first, [0, *[-1] * 200]), path(late, [*[-1] * 200, 1], warp=1), path(others, [2], warp=2),
        path(others, [3], warp=3),
    ]  # fmt: skip
    steps = rows(*((Happening.MET, {"cost": number}) for number in (1, 1, 2, 2)))
    assert simulate(code, paths, steps, TABLE).cycles > 2 * 200 * ALU


def test_a_fence_of_the_gpu_holds_its_warp():
    code = program("MEMBAR.SC.GPU", "FADD R0, R0, R0")
    assert alone(code, rows()).cycles == pytest.approx(UNITS["membar.gl"] + 1, abs=1)
