"""An SM, simulated: small programs by hand whose cycles are known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sass import sass

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import abi as cpu_abi
from tir_schedules.model.machine import Steps
from tir_schedules.timing.abi import HINTED, Kind, Reason
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.listing import Control, parsed
from tir_schedules.timing.paths import WarpPath
from tir_schedules.timing.simulation import Outside, rows_of, simulate

TABLE = find_table("h100")
ALU, MUFU = TABLE.intervals["alu"], TABLE.intervals["special"]
LOAD = TABLE.shared_latency[4]
PROFILE = Path(__file__).parents[2] / "experiments" / "results" / "profile_h100.json"
ROWS = json.loads(PROFILE.read_text())["rows"]
MEASURED = {row["name"]: row["cycles"] for row in ROWS["global"]}
ADDRESSES = {row["name"]: row["cycles"] for row in ROWS["addresses"]}


def program(*lines):
    """Instructions from texts, each with what its control code says beside: ("LDS R0, [R1]", {"writes": 0}),
    or a text alone, whose next instruction may follow in the next cycle."""
    texts = [line if isinstance(line, str) else line[0] for line in lines]
    given = [{} if isinstance(line, str) else line[1] for line in lines]
    plain = Control(1, False, None, None, (), 0)
    return [
        replace(one, control=replace(plain, **control))
        for one, control in zip(parsed(sass(*texts), "k"), given)
    ]


def steps(costs=(), pieces=(), parts=0):
    """Accesses with so many wavefronts, and the (line, sectors) that each touches, so many in part."""
    made = np.zeros(len(costs), cpu_abi.MADE)
    made["cost"], made["what"], made["source_counter"] = costs, cpu_abi.NONE, cpu_abi.NONE
    made["source_cost"] = parts
    made["pieces"][: len(pieces)], made["first_piece"][: len(pieces)] = 1, np.arange(len(pieces))
    rows = np.array([(line, sectors, 0) for line, sectors in pieces], cpu_abi.LINE_PIECE)
    return Steps(np.empty(0, cpu_abi.STEP), made, rows, (), ())


def path(numbers, accesses=None, warp=0):
    places = np.full(len(numbers), -1) if accesses is None else np.array(accesses)
    return WarpPath(warp, np.array(numbers, np.int32), places.astype(np.int64), 0, 0, 0)


def run(code, warps=1, times=1, costs=(), pieces=(), accesses=None, slots=1, **given):
    """Warps that all execute the same."""
    numbers = [*range(len(code))] * times
    paths = [path(numbers, accesses, warp) for warp in range(warps)]
    return simulate(code, paths, steps(costs, pieces), TABLE, slots, **given)


def reason(simulated, of):
    return int(simulated.stalls[:, of].sum())


# ---- issue ---
def test_who_waits_while_another_issues_was_not_selected():
    """Warp 4 tries once more when its pipe is not free; from then on warp 0 issues in every cycle."""
    code = program("MUFU.EX2 R0, R1", "FFMA R0, R0, R1, R1")
    paths = [path([1] * 100), *(path([1], warp=warp) for warp in (1, 2, 3)), path([0, 0], warp=4)]
    found = simulate(code, paths, steps(), TABLE)
    assert found.cycles > 100
    assert reason(found, Reason.PIPE) == 1 and found.stalls[0, Reason.NOT_SELECTED] >= 98


def test_a_chain_takes_the_sum_of_its_stalls():
    code = program(*[("FFMA R0, R0, R1, R2", {"stall": 4})] * 10, "EXIT")
    found = run(code)
    assert found.cycles == 4 * 10 + 1 and reason(found, Reason.DEPENDENCY) == 3 * 10
    assert found.issued.tolist() == [1] * 11


def test_warps_of_one_sub_core_fill_the_stalls_of_each_other():
    """Warps 0 and 4 share a sub-core, 0 to 3 do not. Of five the four youngest take every cycle, so that the
    oldest begins when they are done."""
    code = program(*[("FFMA R0, R0, R1, R1", {"stall": 4})] * 10)
    four, eight, twenty = (run(code, warps) for warps in (4, 8, 20))
    assert four.cycles == run(code).cycles and eight.cycles == four.cycles + 1
    assert twenty.cycles == 4 * 10 + 37 and not reason(eight, Reason.NOT_SELECTED)


def test_a_warp_that_yields_lets_another_come():
    """Greedy otherwise: the warp that issued last goes on."""
    plain = program(*["FADD R0, R1, R1"] * 8)
    yielding = [replace(one, control=replace(one.control, yields=True)) for one in plain]
    greedy, fair = run(plain, 8), run(yielding, 8)
    assert greedy.cycles == fair.cycles == 16
    assert not reason(greedy, Reason.NOT_SELECTED) and reason(fair, Reason.NOT_SELECTED) == 4 * (7 + 7)


# ---- pipes and registers ---
def test_two_warps_share_a_pipe():
    code = program(*["SHF.L.U32 R0, R1, 0x1, R2"] * 16)
    one, two = run(code, 1), run(code, 8)
    assert one.cycles == ALU * 15 + 1 and two.cycles == ALU * 31 + 1


def test_pipes_work_side_by_side():
    """The special pipe takes eight cycles, in which others go on."""
    special = ("MUFU.EX2 R8, R9", {"writes": 0})
    code = program(*[special, *["FADD R0, RZ, R1"] * 7] * 8)
    assert run(code).cycles - TABLE.latencies["special"] == MUFU * 7


def test_products_of_integers_take_one_half_of_fma():
    integers, floats = program(*["IMAD R0, R1, R1, RZ"] * 16), program(*["FMUL R0, R1, R1"] * 16)
    assert (run(integers).cycles, run(floats).cycles) == (2 * 15 + 1, 16)


def test_a_bank_gives_one_register_a_cycle():
    """Three sources in one bank take three cycles; in both, where one is kept, less."""
    same = program(*["FFMA R10, R0, R2, R4"] * 32)
    both = program(*["FFMA R10, R0, R1, RZ"] * 32)
    assert 3 * 30 <= run(same).cycles <= 3 * 32 and run(both).cycles == 32
    assert reason(run(same), Reason.BANKS) > 50


def test_who_cannot_read_its_registers_holds_up_its_sub_core():
    """Warp 0 needs no register, and comes when warp 4 is done. Sub-cores beside it go on."""
    code = program("FFMA R10, R0, R2, R4", ("NOP", {"stall": 4}))
    conflicts, others = path([0] * 32, warp=4), [path([1] * 32, warp=warp) for warp in range(4)]
    found = simulate(code, [*others, conflicts], steps(), TABLE)
    assert found.cycles >= 3 * 30 + 4 * 31


def test_a_register_in_the_operand_cache_is_not_read():
    kept = program(*[("FFMA R10, R0, R2, R1", {"reuse": 0b1})] * 32)
    read = program(*["FFMA R10, R0, R2, R1"] * 32)
    assert run(kept).cycles == 32 and run(read).cycles >= 2 * 30


# ---- instructions ---
def test_a_loop_that_the_cache_does_not_hold_is_fetched_each_turn():
    """As the probe of 64 KiB says; of a quarter of that nothing is fetched again."""
    for kib, cycles in ((16, 1.0), (64, TABLE.fetch_cycles)):
        code = program(*["FADD R0, R1, R1"] * (kib * 64))
        few, more = (run(code, times=times) for times in (2, 4))
        assert (more.cycles - few.cycles) / (2 * len(code)) == pytest.approx(cycles, rel=0.02)
        assert bool(reason(more, Reason.FETCH)) == (kib > 32)


# ---- scoreboards ---
def test_a_reader_waits_for_the_scoreboard():
    code = program(("LDS R0, [R1]", {"writes": 2}), ("FADD R0, R0, R0", {"waits": (2,)}))
    found = run(code, costs=[1], accesses=[0, -1])
    assert found.cycles == LOAD + 1 and reason(found, Reason.SHORT_BOARD) == LOAD - 1
    free = program(("LDS R0, [R1]", {"writes": 2}), ("FADD R0, R0, R0", {"waits": (3,)}))
    assert run(free, costs=[1], accesses=[0, -1]).issued.sum() == 2
    assert reason(run(free, costs=[1], accesses=[0, -1]), Reason.SHORT_BOARD) == 0


def test_a_load_that_misses_l1_counts_as_long():
    code = program(("LDG.E R0, [R2.64]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)}))
    once = run(code, costs=[4], pieces=[(7, 0b1111)], accesses=[0, -1])
    twice = run(code, costs=[4], pieces=[(7, 0b1111)], accesses=[0, -1, 0, -1], times=2)
    hit, near, far = TABLE.latencies["global"], TABLE.l2_latency[0], TABLE.l2_latency[-1]
    assert hit + near <= once.cycles <= hit + far + 4 and once.missed == twice.missed == 128
    assert hit <= twice.cycles - once.cycles <= hit + 2 and twice.requested == 256
    assert reason(once, Reason.LONG_BOARD) > near


LOAD_AND_WAIT = ("LDG.E R0, [R2.64]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)})
COLD = Outside(cold=(1 << Kind.OWN,))


@pytest.mark.parametrize("form, missed", [("", 1), (".STRONG.SM", 1), (".STRONG.GPU", 2), (".STRONG.SYS", 2)])
def test_l1_does_not_answer_a_load_of_what_other_sms_may_have_written(form, missed):
    code = program((f"LDG.E.64{form} R0, [R2.64]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)}))
    found = run(code, costs=[1], pieces=[(7, 0b1)], accesses=[0, -1, 0, -1], times=2)
    assert found.missed == 32 * missed and (found.cycles > 2 * TABLE.l2_latency[0]) == (missed == 2)


def test_lines_of_l2_are_near_or_far():
    """As many by each percentile as the profile says."""
    code = program(*LOAD_AND_WAIT)
    found = [run(code, costs=[1], pieces=[(line, 1)], accesses=[0, -1]).cycles for line in range(200)]
    away = np.array(found) - TABLE.latencies["global"] - TABLE.part_cycles - 1
    assert np.percentile(away, [1, 25, 50, 75, 99]) == pytest.approx(
        [TABLE.l2_latency[k] for k in (0, 2, 3, 4, 6)], abs=5
    )


def test_what_l2_lacks_comes_from_dram_64_bytes_at_a_time():
    """Bypassing L1: of four sectors of a line, the first and the third are waited for."""
    copy = ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {})
    code = program(copy, ("LDGDEPBAR", {"writes": 0}), "DEPBAR.LE SB0, 0x0")
    given = dict(costs=[1] * 4, pieces=[(7, 1 << s) for s in range(4)])

    def cycles(n, outside):
        accesses = [each for k in range(n) for each in (k, -1, -1)]
        return run(code * n, accesses=accesses, outside=outside, **given).cycles

    warm, cold = ([cycles(n, each) for n in (1, 2, 3, 4)] for each in (Outside(), COLD))
    more = TABLE.dram_latency - TABLE.l2_latency[-1]
    assert cold[0] - warm[0] >= more and cold[2] - cold[1] - (warm[2] - warm[1]) >= more
    assert abs(np.diff(cold)[::2] - np.diff(warm)[::2]).max() <= 2


def test_only_lines_of_a_kind_that_is_cold_come_from_dram():
    code = program(*LOAD_AND_WAIT)
    for kind in Kind:
        shared = steps([4], [(7, 15)])
        shared.pieces["kind"] = kind
        found = [
            simulate(code, [path([0, 1], [0, -1])], shared, TABLE, outside=Outside(cold=(1 << each,))).cycles
            for each in Kind
        ]  # fmt: skip
        assert [cycles > TABLE.dram_latency for cycles in found] == [each == kind for each in Kind]


def test_later_blocks_have_a_state_of_their_own():
    """The second block in a slot finds its lines; the state of the last stands for a third."""
    code = program(*LOAD_AND_WAIT)
    given = dict(costs=[4], pieces=[(7, 15)], accesses=[0, -1])
    warm, cold, first = (
        [run(code, blocks=n, outside=Outside(cold=state), **given).cycles for n in (1, 2, 3)]
        for state in ((0,), (1,), (1, 0))
    )
    assert first[0] == cold[0] > warm[0] and cold[2] - cold[1] > first[2] - first[1]
    assert first[1] - first[0] == pytest.approx(warm[1] - warm[0], abs=40)


def test_who_shares_a_line_asks_for_it_when_the_first_warp_does():
    """A warp that comes later finds on its way what one of another block asked for."""
    code = program(*["SHF.L.U32 R0, R1, 0x1, R2"] * 100, *LOAD_AND_WAIT)
    paths = [path([100, 101], [0, -1]), path([*range(102)], [*[-1] * 100, 1, -1], warp=1)]
    found = {}
    for kind in (Kind.OWN, Kind.ALONG_X):
        both = steps([4, 4], [(7, 15), (80, 15)])
        both.pieces["kind"] = kind
        found[kind] = simulate(code, paths, both, TABLE, outside=Outside(cold=(1 << kind,))).cycles
    assert found[Kind.OWN] - found[Kind.ALONG_X] == pytest.approx(100 * ALU, abs=10)


NO_WAITS = TABLE.model_copy(update={"dram_wait": 0.0})


def test_who_asks_a_busy_dram_waits_for_others():
    """Longer than in proportion to the share of time in which DRAM is busy, and not where it never is."""
    code = program(*LOAD_AND_WAIT)
    made = steps([4] * 64, [(line, 15) for line in range(64)])
    paths = [path([0, 1] * 64, [each for k in range(64) for each in (k, -1)])]
    idle, half, most = (
        simulate(code, paths, made, table, outside=Outside(dram_bytes=rate, cold=(1,))).cycles
        - simulate(code, paths, made, NO_WAITS, outside=Outside(dram_bytes=rate, cold=(1,))).cycles
        for table, rate in ((TABLE, 1e6), (TABLE, 0.3), (TABLE, 0.17))
    )
    assert idle == 0 and 64 * 0.6 * TABLE.dram_wait < half < 64 * TABLE.dram_wait and most > 1.8 * half


def test_blocks_of_an_sm_begin_in_turn():
    """As far apart as the grid's blocks begin, and no later where the one before ends later."""
    code = program("FADD R0, R0, R0")
    found = [
        run(code, slots=slots, blocks=4, outside=Outside(block_cycles=500, first_cycles=400)).cycles
        for slots in (1, 2, 4)
    ]
    assert found[0] == found[1] == found[2] + 300 and 1500 <= found[0] < 1520
    assert run(code, slots=1, blocks=4, outside=Outside(block_cycles=1)).cycles == run(code, blocks=4).cycles


def test_bytes_that_all_sms_ask_for_take_their_share():
    """An SM that asked for less before gets more; in the long run it has its share."""
    code = program(*LOAD_AND_WAIT)
    given = dict(costs=[4] * 8, pieces=[(line, 15) for line in range(8)], accesses=None)
    for name, state in (("l2_bytes", (0,)), ("dram_bytes", (1,))):

        def cycles(size, n, cold=state, name=name):
            paths = [path([0, 1] * n, [each for k in range(n) for each in (k, -1)])]
            outside = Outside(**{name: size}, cold=cold)
            return simulate(
                code, paths, steps(given["costs"], given["pieces"]), NO_WAITS, outside=outside
            ).cycles

        assert 0 <= cycles(1.0, 8) - cycles(64.0, 8) <= 128
        assert cycles(0.1, 8) - cycles(0.1, 4) == pytest.approx(4 * 128 / 0.1, rel=0.02)


@pytest.mark.parametrize("sectors, kind, missing", [(3, 0, True), (3, HINTED, False), (15, 0, False)])
def test_a_hint_brings_the_other_half_of_a_line(sectors, kind, missing):
    """A load of a half, and then one of the other half; L1 keeps neither."""
    code = program(*LOAD_AND_WAIT, *LOAD_AND_WAIT)

    def cycles(state):
        both = steps([4, 4], [(7, sectors), (7, 12)])
        both.pieces["kind"] = kind
        outside = Outside(cold=(state,))
        return simulate(code, [path([0, 1, 2, 3], [0, -1, 1, -1])], both, TABLE, outside=outside).cycles

    longer = TABLE.dram_latency - TABLE.l2_latency[len(TABLE.l2_latency) // 2]
    assert cycles(1) - cycles(0) == pytest.approx((1 + missing) * longer, rel=0.15)


def test_parts_of_lines_and_pages_of_dram_take_a_port():
    """8 loads of 64 lines each, in pages of 8 lines or in one each; a sector of each line, or all."""
    loads = [("LDG.E R4, [R2.64]", {"writes": 0})] * 8
    code = program(*loads, ("FADD R0, R4, R4", {"waits": (0,)}))
    places = [*range(8), -1]

    def cycles(apart, sectors, outside):
        made = steps([1] * 8)
        made.made["pieces"], made.made["first_piece"] = 64, np.arange(8) * 64
        pieces = np.zeros(512, cpu_abi.LINE_PIECE)
        pieces["line"], pieces["sectors"] = np.arange(512) * apart, sectors
        every = replace(made, pieces=pieces)
        return simulate(code, [path([*range(9)], places)], every, TABLE, outside=outside).cycles

    near, far = (cycles(step, 1, COLD) for step in (1, 8))
    assert far - near == pytest.approx((512 - 64) * TABLE.page_cycles, rel=0.5)
    parts, whole = (cycles(1, sectors, Outside()) for sectors in (1, 15))
    assert parts - whole == pytest.approx(
        512 * (TABLE.part_cycles - 128 / TABLE.read_bytes["alone"]), rel=0.2
    )


def test_what_l2_sent_takes_the_data_path_again():
    """Loads that miss ask a line a cycle, and come back a line a cycle beside what is stored."""
    code = program(*[("LDG.E.128 R4, [R2.64]", {"writes": 0})] * 4, ("STS [R1], R4", {"waits": (0,)}), "EXIT")
    pieces = [(line, 15) for line in range(16)]
    made = steps([4] * 4 + [1], [])
    made.made["first_piece"][:4], made.made["pieces"][:4] = np.arange(4) * 4, 4
    made = replace(made, pieces=np.array([(line, s, 0) for line, s in pieces], cpu_abi.LINE_PIECE))
    paths = [path([*range(6)], [0, 1, 2, 3, 4, -1], warp) for warp in range(8)]
    found = simulate(code, paths, made, TABLE)
    assert found.wavefronts == 8 * (16 + 1)
    assert found.cycles > TABLE.l2_latency[3] + 8 * 16


def test_loads_that_l1_lacks_ask_at_once():
    """Another load passes their registers, which keep the way back when they come."""
    loads = [("LDG.E.128 R4, [R2.64]", {"writes": 0})] * 4
    code = program(*loads, ("LDS R8, [R1]", {"writes": 1}), ("FADD R9, R8, R8", {"waits": (1,)}), "EXIT")
    made = steps([4] * 4 + [1], [])
    made.made["first_piece"][:4], made.made["pieces"][:4] = np.arange(4) * 4, 4
    made = replace(made, pieces=np.array([(line, 15, 0) for line in range(16)], cpu_abi.LINE_PIECE))
    found = simulate(code, [path([*range(7)], [0, 1, 2, 3, 4, -1, -1])], made, TABLE, issues=7)
    issued = dict(zip(found.issues["number"].tolist(), found.issues["cycle"].tolist()))
    back = 4 * 4 * TABLE.path_cycles["global"]
    assert issued[5] - issued[4] < TABLE.shared_latency[4] + 6 < back


def test_a_copy_that_dram_has_is_there_later():
    copy = ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {})
    code = program(copy, ("LDGDEPBAR", {"writes": 0}), "DEPBAR.LE SB0, 0x0")
    given = [path([0, 1, 2], [0, -1, -1])], steps([1], [(7, 15)])
    none = TABLE.model_copy(update={"copy_dram_more": 0.0})
    found = {
        outside: [simulate(code, *given, table, outside=outside).cycles for table in (TABLE, none)]
        for outside in (COLD, Outside())
    }
    assert found[COLD][0] - found[COLD][1] == pytest.approx(TABLE.copy_dram_more, abs=1)
    assert len({*found[Outside()]}) == 1


def test_what_is_stored_makes_a_full_l2_write_back():
    """As many bytes as are stored, or come in beside them, which loads from DRAM wait for; none where L2 has
    room."""
    code = program(*LOAD_AND_WAIT, "STG.E [R2.64], R4")
    made = steps([4] * 8, [(line, 15) for line in range(8)])

    def cycles(turns, cold, back, evict=np.inf):
        places = [each for k in range(turns) for each in (k, -1, k)]
        outside = Outside(dram_bytes=0.1, cold=(cold,), back_bytes=back, evict_bytes=evict)
        return simulate(code, [path([0, 1, 2] * turns, places)], made, NO_WAITS, outside=outside).cycles

    with_stores, alone, warm, beside = (
        cycles(8, *given) - cycles(4, *given) for given in ((1, 0.1), (1, np.inf), (0, 0.1), (1, np.inf, 0.1))
    )
    assert beside == pytest.approx(with_stores, rel=0.02) and alone == pytest.approx(4 * 1280, rel=0.02)
    assert with_stores == pytest.approx(2 * alone, rel=0.02) and warm < alone / 2


PAST_L1 = ("LDG.E.64.STRONG.GPU R0, [R2.64]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)})


def test_l2_keeps_the_lines_of_an_sm_as_long_as_they_fit():
    """Of lines that are read in turn the one that is needed next has always left, if one does not fit."""
    lines = 16

    def second(held):
        """Cycles of a second turn."""
        outside = replace(COLD, held=held)
        first, both = (
            run(
                program(*PAST_L1), times=turns * lines, costs=[4] * lines,
                pieces=[(line, 15) for line in range(lines)],
                accesses=[each for _ in range(turns) for line in range(lines) for each in (line, -1)],
                outside=outside,
            ).cycles
            for turns in (1, 2)
        )  # fmt: skip
        return both - first

    fits, lacks = second(128 * lines), second(128 * (lines - 1))
    assert lacks - fits > 0.9 * lines * (TABLE.dram_latency - TABLE.l2_latency[-1])
    assert fits < lines * (TABLE.latencies["global"] + TABLE.l2_latency[-1] + 8)


def test_what_is_stored_is_in_l2():
    code = program("STG.E [R2.64], R4", *PAST_L1)
    found = run(code, costs=[4], pieces=[(7, 15)], accesses=[0, 0, -1], outside=COLD)
    assert found.cycles < TABLE.dram_latency


def test_dram_takes_back_half_a_line_once_and_whole():
    """Stores to one sector, to both of a half, to one again and again, and to either half."""
    code = program(*PAST_L1, *["STG.E [R2.64], R4"] * 4, *PAST_L1)
    outside = Outside(dram_bytes=1e9, cold=(1,), back_bytes=0.02)

    def cycles(*sectors):
        made = steps([1] * 6, [(1, 15), *((7, each) for each in sectors), (2, 15)])
        numbers, accesses = range(len(code)), [0, -1, 1, 2, 3, 4, 5, -1]
        return simulate(code, [path(numbers, accesses)], made, NO_WAITS, outside=outside).cycles

    one, again, half, both = cycles(1, 1, 1, 1), cycles(1, 2, 1, 2), cycles(3, 3, 3, 3), cycles(1, 4, 1, 4)
    assert one == pytest.approx(again, abs=20) and one == pytest.approx(half, abs=20)
    assert both - one == pytest.approx(64 / 0.02, rel=0.02)


def test_a_word_of_a_threads_own_memory_is_a_line():
    """L1 answers a load; a store goes on to L2 (probes "local memory")."""
    loads, stores = (
        [run(program(*[text] * n)).cycles for n in (64, 128)] for text in ("LDL.64 R0, [R1]", "STL [R1], R4")
    )
    assert loads[1] - loads[0] == pytest.approx(64 * 2 * TABLE.path_cycles["global"], rel=0.05)
    assert stores[1] - stores[0] == pytest.approx(64 * 128 / TABLE.write_bytes, rel=0.02)


def test_a_sector_that_is_written_in_part_takes_longer():
    """As rows of 16 bytes do in the probe, against those of whole sectors."""
    code = program(*["STG.E [R2.64], R4"] * 64)
    found = [
        simulate(
            code, [path(range(64), range(64))], steps([1] * 64, [(n, 15) for n in range(64)], parts), TABLE
        )
        for parts in (0, 4)
    ]
    more = 64 * 4 * (TABLE.part_write_cycles - 32 / TABLE.write_bytes)
    assert found[1].cycles - found[0].cycles == pytest.approx(more, rel=0.02) and more > 450
    assert found[0].written == found[1].written == 64 * 128


def test_blocks_touch_lines_of_their_own():
    code = program(("LDG.E R0, [R2.64]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)}))
    given = dict(costs=[4], pieces=[(7, 0b1111)], accesses=[0, -1])
    assert run(code, 4, **given).missed == 128 and run(code, 4, slots=2, **given).missed == 256


def test_groups_of_copies_end_in_order():
    """A wait that leaves one group open waits for the first of two alone."""
    copy, commit = "LDGSTS.E [R0], [R2.64]", ("LDGDEPBAR", {"writes": 0})
    leaves_one = program(copy, commit, copy, commit, "DEPBAR.LE SB0, 0x1", "EXIT")
    leaves_none = program(copy, commit, copy, commit, "DEPBAR.LE SB0, 0x0", "EXIT")
    waits = {}
    for far in (0, 1):  # the copy that comes from DRAM
        made = steps([4, 4], [(7, 15), (8, 15)])
        made.pieces["kind"][far] = Kind.ALONG_X
        paths, outside = [path([*range(6)], [0, -1, 1, -1, -1, -1])], Outside(cold=(1 << Kind.ALONG_X,))
        for code in (leaves_one, leaves_none):
            found = simulate(code, paths, made, TABLE, outside=outside)
            waits[far, code is leaves_none] = reason(found, Reason.LONG_BOARD) > TABLE.dram_latency - 20
    assert waits == {(0, False): True, (0, True): True, (1, False): False, (1, True): True}


def test_a_block_begins_where_one_has_ended():
    """Three blocks in one slot and in two; a load that nothing waited for does not lower another's board."""
    code = program(("LDG.E R0, [R2.64]", {"writes": 0}), *["SHF.L.U32 R4, R5, 0x1, R6"] * 50, "EXIT")
    given = dict(costs=[4], pieces=[(7, 15)], accesses=[0, *[-1] * 51])
    one, three, beside = (run(code, slots=s, blocks=b, **given) for s, b in ((1, 1), (1, 3), (2, 3)))
    assert three.issued.tolist() == beside.issued.tolist() == [3] * 52 and three.missed == 3 * 128
    own = 50 * ALU
    spread = TABLE.l2_latency[-1] - TABLE.l2_latency[0]
    assert three.cycles - one.cycles == pytest.approx(2 * (own + TABLE.gap), abs=spread)
    assert beside.cycles - one.cycles == pytest.approx(own + TABLE.gap, abs=60)


# ---- atomics ---
RED, FLOAT = "REDG.E.ADD.STRONG.GPU [R2.64], R4", "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R4"
EVERY_SM = {"kind": Kind.ALONG_BOTH, "outside": Outside(meeting=(1, 1, 1, 132))}
OWN_LINES = {"outside": Outside(atomic_cycles=TABLE.atomic_cycles["sector, all SMs"])}


def a_copy(line, times, pieces, warps=8, kind=Kind.OWN, **given):
    """Cycles of a further atomic of each warp. times: how often L2 goes over its sectors. pieces: of each
    warp in turn, what it touches."""
    code = program(line)

    def cycles(turns):
        made = steps([1] * len(pieces), (), times)
        rows = [(*piece, kind) for of_warp in pieces for piece in of_warp]
        made = replace(made, pieces=np.array(rows, cpu_abi.LINE_PIECE))
        made.made["pieces"] = [len(each) for each in pieces]
        made.made["first_piece"] = np.cumsum([0, *(len(each) for each in pieces[:-1])])
        paths = [path([0] * turns, [warp % len(pieces)] * turns, warp) for warp in range(warps)]
        return simulate(code, paths, made, TABLE, **given).cycles

    return (cycles(60) - cycles(20)) / 40


WORD = [[(7, 1)]]
LINES = [[(8 + warp, 1)] for warp in range(8)]


@pytest.mark.parametrize(
    "name, error, given",
    [
        ("red.add of one word rate, 8 warps, 1 SMs", 0.01, (RED, 32, WORD)),
        ("red.add of one word rate, 8 warps, all SMs", 0.01, (RED, 32, WORD, 8)),
        ("red.add of one word of one lane rate, 8 warps, all SMs", 0.01, (RED, 1, WORD, 8)),
        ("red.add.f32 of one word of one lane rate, 8 warps, all SMs", 0.01, (FLOAT, 1, WORD, 8)),
        ("red.add.f32 of one word rate, 8 warps, all SMs", 0.01, (FLOAT, 32, WORD, 8)),
        ("red.add.f32 of one word rate, 8 warps, 1 SMs", 0.01, (FLOAT, 32, WORD)),
        ("red.add of one word rate, 16 warps", 0.01, (RED, 32, WORD, 16)),
        ("red.add rate, 16 warps", 0.01, (RED, 8, [[(8, 15), (9, 15)]], 16)),
        ("red.add of own words of one line of one lane rate, 8 warps, all SMs", 0.2, (RED, 1, WORD, 8)),
        ("red.add of eight lines of one lane rate, 8 warps, all SMs", 0.05, (RED, 1, LINES, 8)),
        ("red.add of own lines rate, 8 warps, 1 SMs", 0.01, (RED, 4, [[(4 * n, 15)] for n in range(8)])),
        ("red.add of own lines rate, 8 warps, all SMs", 0.01, (RED, 4, [[(4 * n, 15)] for n in range(8)])),
    ],
)
def test_atomics_take_as_long_as_the_probes(name, error, given):
    """Of lanes, warps and SMs at one word, at lines side by side, and at lines of their own."""
    others = OWN_LINES if "own lines" in name else EVERY_SM
    found = a_copy(*given[:4], **others if "all SMs" in name else {})
    assert found == pytest.approx(MEASURED[name], rel=error)


def test_what_an_atomic_returns_comes_when_it_is_done():
    """Within 8 % of the probe of lanes at one word; exact for words of their own."""

    def cycles(times, pieces):
        code = program(
            ("ATOMG.E.ADD.STRONG.GPU PT, R0, [R2.64], R4", {"writes": 0}),
            ("FADD R0, R0, R0", {"waits": (0,)}),
        )
        made = replace(steps([1], (), times), pieces=np.array(pieces, cpu_abi.LINE_PIECE))
        made.made["pieces"] = len(pieces)
        few, more = (simulate(code, [path([0, 1] * n, [0, -1] * n)], made, TABLE).cycles for n in (4, 12))
        return (more - few) / 8

    own = cycles(8, [(7, 15, 0), (8, 15, 0)])
    assert own == pytest.approx(MEASURED["atomg.add latency"], rel=0.02)
    word = cycles(32, [(7, 1, 0)])
    assert word == pytest.approx(MEASURED["atomg.add of one word latency"], rel=0.08) and word > own + 30


def test_one_lane_does_the_atomic_that_ptxas_gathered():
    """Where instructions that count or add up lanes belong to the same line of PTX."""
    plain, gathered = (
        simulate(
            [*parsed(sass("5| REDG.E.ADD.STRONG.GPU [R2.64], R4", *more), "k")],
            [path([0] * 20, [0] * 20)], steps([1], [(7, 1)], 32), TABLE,
        ).cycles
        for more in ((), ("5| POPC R4, R5",))
    )  # fmt: skip
    assert plain - gathered == pytest.approx(19 * 31 * TABLE.atomic_cycles["integer"], rel=0.05)


def test_a_launch_ends_when_its_atomics_are_done():
    outside = Outside(meeting=(1, 1, 1, 132))
    made = steps([1], [(7, 1)], 32)
    made.pieces["kind"] = Kind.ALONG_BOTH
    found = simulate(program(RED), [path([0], [0])], made, TABLE, outside=outside)
    assert found.cycles == pytest.approx(132 * 32 * TABLE.atomic_cycles["integer"], rel=0.02)


def test_what_a_block_stores_at_its_end_is_written():
    """Though its successor has begun when the store leaves the queue."""
    code = program(*["STG.E [R2.64], R4"] * 4)
    found = [
        simulate(code, [path(range(4), range(4))], steps([1] * 4, [(n, 15) for n in range(4)], 4), TABLE,
                 1, blocks)
        for blocks in (1, 3)
    ]  # fmt: skip
    assert [each.written for each in found] == [4 * 128, 3 * 4 * 128]


# ---- shared memory ---
def test_conflicts_take_the_data_path_for_as_many_cycles():
    """A wavefront a cycle, whichever warps of however many sub-cores."""
    code = program("LDS R0, [R1]")
    for fronts in (1, 4, 32):
        found = run(code, 16, times=20, costs=[fronts], accesses=[0] * 20)
        assert found.wavefronts == 16 * 20 * fronts
        assert found.wavefronts <= found.cycles <= found.wavefronts + LOAD + 2 * fronts + 8


def test_a_further_wavefront_comes_two_cycles_later():
    code = program(("LDS R0, [R1]", {"writes": 0}), ("FADD R0, R0, R0", {"waits": (0,)}))
    one, many = (run(code, costs=[fronts], accesses=[0, -1]).cycles for fronts in (1, 32))
    assert many - one == TABLE.per_wavefront * 31


def test_words_that_many_lanes_read_take_their_wavefronts_alone():
    """lds.128 of one place has two wavefronts, and a warp issues it twice as often as one of four."""
    code = program(*[("LDS.128 R4, [R1]", {"writes": 0})] * 16)
    wide, narrow = (
        [run(code, costs=[fronts], accesses=[0] * 16 * n, times=n).cycles for n in (2, 4)]
        for fronts in (4, 2)
    )
    each = TABLE.path_cycles["shared"]
    assert (wide[1] - wide[0]) / 32 == pytest.approx(4 * each, rel=0.1)
    assert (narrow[1] - narrow[0]) / 32 == pytest.approx(2 * each, rel=0.1)


def test_copies_leave_the_data_path_to_loads_until_their_bytes_come():
    """A copy of four wavefronts and four LDSM of four: 20 cycles a warp, as the probe beside ldmatrix."""
    copy = ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {})
    empty = "LDS RZ, [RZ]"
    code = program(copy, empty, empty, *[("LDSM.16.M88.4 R4, [R4]", {"writes": 0})] * 4)

    def cycles(turns):
        pieces = np.array([(line, 15, 0) for line in range(4 * turns)], cpu_abi.LINE_PIECE)
        made = replace(steps([4] * (turns + 1)), pieces=pieces)
        made.made["pieces"], made.made["first_piece"] = 4, np.r_[np.arange(turns) * 4, 0]
        made.made["pieces"][turns] = 0
        places = [place for turn in range(turns) for place in (turn, -1, -1, *[turns] * 4)]
        paths = [path([*range(7)] * turns, places, warp) for warp in range(16)]
        return simulate(code, paths, made, TABLE).cycles

    assert (cycles(24) - cycles(12)) / 12 == pytest.approx(16 * 20, rel=0.03)


def test_wavefronts_of_a_copy_delay_other_copies_alone():
    """A copy of 15 wavefronts is as fast as one of four, with four LDSM of four beside it, and by itself."""
    copies = program(
        ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {}), *[("LDSM.16.M88.4 R4, [R4]", {"writes": 0})] * 40,
        ("LDGDEPBAR", {"writes": 1}), ("DEPBAR.LE SB1, 0x0", {}),
    )  # fmt: skip

    def cycles(fronts, loads, warps=8):
        lines = np.array([(line, 15, 0) for line in range(4)], cpu_abi.LINE_PIECE)
        made = replace(steps([fronts, 4]), pieces=lines)
        made.made["pieces"] = 4, 0
        numbers = [*range(1 + loads), 41, 42]
        paths = [path(numbers, [0, *[1] * loads, -1, -1], warp) for warp in range(warps)]
        return simulate(copies, paths, made, TABLE).cycles

    assert cycles(15, 40) == cycles(4, 40)
    assert cycles(15, 0) - cycles(4, 0) == 7 * 11
    assert cycles(15, 0, warps=1) == cycles(4, 0, warps=1)


def test_copies_to_rows_that_conflict_fill_the_queue():
    """Of 12 copies of each sub-core the last waits for room. A warp of the probe has issued its own after 32
    cycles if copies have 4 wavefronts, and after 107 if they have 15."""
    code = program(*[("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {"stall": 4})] * 3)
    numbers = [*range(3)]

    def issued(fronts):
        lines = np.array([(line, 15, 0) for line in range(4)], cpu_abi.LINE_PIECE)
        made = replace(steps([fronts]), pieces=lines)
        made.made["pieces"] = 4
        paths = [path(numbers, [0] * 3, warp) for warp in range(16)]
        return int(simulate(code, paths, made, TABLE, issues=48).issues["cycle"].max())

    assert issued(4) < 60 and issued(15) > 107


@pytest.mark.parametrize("kind, words", [("lds.32", "LDS R4, [R1]"), ("sts.32", "STS [R1], R0")])
def test_registers_are_read_at_issue(kind, words):
    """The sum of an address waits for its request alone, whatever the queue holds, as in the probes."""
    request = (words, {"stall": 2, "reads": 1})
    loads = [("LDS R5, [R2]", {"stall": 4})] * 3
    after = ("IADD3 R1, R1, 0x1, RZ", {"waits": (1,), "stall": 7})

    def cycles(*ahead):
        code = program(*ahead, request, after)
        found = run(code, costs=[16], accesses=[*[0] * (len(code) - 1), -1], issues=9).issues
        return int(found["cycle"][-1] - found["cycle"][0])

    behind = [ADDRESSES[f"address of {kind}, behind {ahead} requests"] for ahead in (0, 3)]
    assert cycles(*loads) - cycles() == behind[1] - behind[0]


def test_a_warp_issues_copies_as_fast_as_the_probe():
    code = program(*[("LDGSTS.E.BYPASS.128 [R0], [R2.64]", {})] * 8)
    few, more = (run(code, times=n, costs=[4], pieces=[(7, 15)], accesses=[0] * 8 * n).cycles for n in (2, 4))
    assert (more - few) / 16 == pytest.approx(TABLE.path_cycles["copy"], rel=0.1)


def test_the_queue_holds_only_so_many_stores():
    """A warp issues stores of 16 wavefronts until the queue is full: ten before it waits, as in the probe."""
    code = program(*[("STS [R1], R0", {"stall": 4})] * (TABLE.queue_stores + 4))
    found = run(code, costs=[16], accesses=[0] * len(code))
    assert np.flatnonzero(found.stalls[:, Reason.QUEUE])[0] == 10


# ---- barriers ---
def test_a_barrier_opens_when_all_have_come():
    """One warp comes late; a barrier of 1 and of 8 warps takes what the probe says."""
    late = program(*["SHF.L.U32 R0, R1, 0x1, R2"] * 100, "BAR.SYNC 0x0", "EXIT")
    paths = [path([*range(102)]), path([100, 101], warp=1)]
    found = simulate(late, paths, steps(), TABLE)
    assert found.cycles > 100 * ALU + TABLE.barrier_latency
    assert reason(found, Reason.BARRIER) > 100 * ALU
    code = program("BAR.SYNC.DEFER_BLOCKING 0x0")
    for warps, cycles in ((1, 14), (8, 28), (32, 76)):
        more, few = (run(code, warps, times=times).cycles for times in (21, 11))
        assert (more - few) / 10 == pytest.approx(cycles, abs=1)


def test_a_warp_whose_predicate_is_false_does_not_arrive():
    """Two warps meet. One of them passes over an arrival for both, which would open the barrier too soon."""
    code = program("@!P0 BAR.ARV 0x1, 0x40", "BAR.SYNC 0x1, 0x40", "NOP")
    made = steps((1, 1, 1))
    made.made["what"] = cpu_abi.Happening.MET
    paths = [path([0, 1, 2], [-1, 0, -1], 0), path([0, 2], [1, -1], 1)]
    assert simulate(code, paths, made, TABLE, 1).cycles < 200
    with pytest.raises(CheckFailed, match="wait for each other without end"):
        simulate(code, [paths[0], path([2], [-1], 1)], made, TABLE, 1)
    both = rows_of(program("BAR.ARV 0x1, 0x40", "@!P0 BAR.ARV 0x1, 0x40"), TABLE)
    assert both["told"].tolist() == [0, 1]


def test_a_barrier_of_some_warps_does_not_wait_for_others():
    code = program("BAR.SYNC 0x1, 0x40", "EXIT", *["SHF.L.U32 R0, R1, 0x1, R2"] * 200)
    paths = [path([0, 1]), path([0, 1], warp=1), path([*range(2, 202)], warp=2)]
    assert reason(simulate(code, paths, steps(), TABLE), Reason.BARRIER) < 100


def test_who_waits_for_ever_is_told():
    code = program("BAR.SYNC 0x1, 0x80", "EXIT")
    with pytest.raises(CheckFailed, match="wait for each other"):
        run(code)


def test_what_the_first_block_issues_is_kept_with_what_it_stalled_for():
    waits = ("LDS R0, [R1]", {"writes": 0}), ("FADD R2, R0, R1", {"waits": (0,)})
    code, accesses = program(*waits, "MOV R4, R5"), [0, -1, -1]
    done = run(code, warps=2, costs=[1], accesses=accesses, slots=2, issues=9)
    rows = done.issues
    assert sorted(rows["number"].tolist()) == [0, 0, 1, 1, 2, 2] and set(rows["warp"].tolist()) == {0, 1}
    assert (np.diff(rows["cycle"].astype(int)) >= 0).all() and rows["cycle"][0] == 0
    late, last = (rows[rows["number"] == number] for number in (1, 2))
    assert set(late["reason"].tolist()) == {Reason.SHORT_BOARD} and (late["stalled"] >= LOAD - 5).all()
    assert set(rows["reason"][:2].tolist()) == {Reason.REASONS} == set(last["reason"].tolist())
    assert len(run(code, warps=2, costs=[1], accesses=accesses, issues=3).issues) == 3
    assert not len(run(code, warps=2, costs=[1], accesses=accesses).issues)


def test_what_is_not_modelled_is_told():
    with pytest.raises(CheckFailed, match="STAS, UTMAREDG"):
        run(program("STAS [UR8], R4", "UTMAREDG.2D.ADD [UR8], [UR4]"))


@pytest.mark.parametrize("strong", ["", ".STRONG.SYS"])
def test_a_load_without_a_space_from_shared_memory_costs_its_wavefronts(strong):
    """Whether it would pass L1 by or not."""
    code = program(
        (f"LD.E{strong} R4, desc[UR4][R2.64]", {"writes": 0}), ("FADD R5, R4, R4", {"waits": (0,)})
    )
    made = np.zeros(2, cpu_abi.MADE)
    made["what"], made["source_counter"], made["cost"] = cpu_abi.NONE, cpu_abi.NONE, (1, 32)
    steps = Steps(np.empty(0, cpu_abi.STEP), made, np.empty(0, cpu_abi.LINE_PIECE), (), ())
    one, many = (simulate(code, [path([0, 1], [row, -1])], steps, TABLE).cycles for row in (0, 1))
    assert many - one == pytest.approx(31 * TABLE.per_line, abs=2)
