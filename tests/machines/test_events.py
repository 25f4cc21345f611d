"""What units of a watched block do, in order, and the steps that follow: by PTX written by hand."""

import numpy as np
import pytest
from test_units import MULTICAST, RING
from unit_kernels import THREADS, text

from tir_schedules.files import to_json
from tir_schedules.insight.ring.timeline import timeline
from tir_schedules.insight.ring.views import barriers_of, cell_of, timeline_svg
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.machine import Watch

STUCK = RING.replace("mbarrier.arrive.shared.b64 _, [free];", "")


def events_of(body, cluster=1, block=(0, 0, 0), limit=1 << 16, **how):
    """What happens in a block of 64 threads, two of which are a cluster where that is 2."""
    source = text(body)
    kernel = Kernel(
        "test", source, "k", ("X", "Y"), (2, 1, 1), (THREADS, 1, 1), "sm_90a", cluster=(cluster, 1, 1)
    )
    given = {"X": np.arange(2 * THREADS, dtype=np.uint32), "Y": np.zeros(2 * THREADS, np.uint32)}
    watch = Watch(block, limit=limit, units=True)
    execution = CpuMachine(**how).run(
        Binary(kernel, source, b"", Resources(0, 0)), given, ("Y",), watch=watch
    )
    assert execution.events is not None
    return execution.events


def steps(found, name):
    row = next(row for row in found.rows if row.name == name)
    return [(mark.begins, mark.step, mark.text) for mark in row.marks]


@pytest.mark.parametrize("how", [{}, {"copies": "early"}, {"warp_order": "reverse"}], ids=str)
def test_steps_are_those_that_mbarriers_force_in_whatever_order_it_runs(how):
    """A slot that is filled twice: the second copy waits until the slot is free again."""
    found = timeline(events_of(RING, **how))
    assert barriers_of(found) == "mbarriers: full 0-0, 1 arrival each; empty 0-0, 32 arrivals each"
    assert steps(found, "copies") == [(3, 3, "128 B: full 0, phase 0"), (8, 8, "128 B: full 0, phase 1")]
    assert steps(found, "warp 0") == [
        (0, 0, "meets: barrier 0"),
        (1, 1, "waits: empty 0, unused"),
        (2, 2, "copies: X to slot 0"),
        (3, 6, "waits: empty 0, phase 0"),
        (7, 7, "copies: X to slot 0"),
        (8, 11, "waits: empty 0, phase 1"),
    ]
    assert steps(found, "warp 1") == [
        (0, 0, "meets: barrier 0"),
        (1, 4, "waits: full 0, phase 0"),
        (5, 5, "arrives: empty 0, phase 0"),
        (6, 9, "waits: full 0, phase 1"),
        (10, 10, "arrives: empty 0, phase 1"),
    ]
    assert found.steps == 12 and not found.cut


def test_who_waits_for_ever_is_told():
    found = timeline(events_of(STUCK))
    last = [row.marks[-1] for row in found.rows if row.name.startswith("warp")]
    assert [(mark.text, mark.over) for mark in last] == [
        ("STUCK: empty 0, phase 0", False),
        ("STUCK: full 0, phase 1", False),
    ]
    assert ">stuck 0<" in timeline_svg(found)


def test_blocks_of_a_cluster_are_told_apart():
    """Rank 0 copies to both; of rank 1 the copy is another block's."""
    found = timeline(events_of(MULTICAST, cluster=2, block=(1, 0, 0)))
    names = [row.name for row in found.rows]
    assert names[0] == "copies" and "block 0, warp 0" in names
    assert [text for _, _, text in steps(found, "block 0, warp 0")] == ["copies: X to slot 0 of blocks 0, 1"]
    assert [text for _, _, text in steps(found, "copies")] == ["256 B: full 0, phase 0"]


def test_what_is_kept_has_a_limit():
    events = events_of(RING, limit=5)
    assert len(events.table) == 5 < events.met
    assert timeline(events).cut


def test_nothing_is_kept_that_is_not_asked_for_and_no_mbarrier_is_no_ring():
    assert not timeline(events_of("st.global.b32 [yt], 1;\n")).rows
    kept = events_of(RING)
    order = [Happening(what) for what in kept.table["what"]]
    assert order.index(Happening.BEGUN) < order.index(Happening.LANDED) < order.index(Happening.PASSED, 10)


def test_a_picture_has_each_mark_and_json_all():
    found = timeline(events_of(RING))
    drawn = timeline_svg(found)
    marks = sum(len(row.marks) for row in found.rows)
    assert drawn.count("<g>") == marks and drawn.count('class="wait"') == 4
    assert [cell_of(found.rows[1], step) for step in (2, 4, 6)] == [
        "copies: X to slot 0", "...", "waits: empty 0, phase 0"
    ]  # fmt: skip
    told = to_json(found)
    assert told["barriers"][0]["name"] == "full 0" and told["rows"][0]["marks"][0]["kind"] == "landed"
