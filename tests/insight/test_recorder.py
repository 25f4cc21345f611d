"""The primitives of a schedule, recorded while it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tir_schedules.compiler.lower import scheduled
from tir_schedules.insight.trace.recorder import ANNOTATIONS, PRIMITIVES, record, script, sentence
from tir_schedules.ladders.problems import RUN_SHAPES, Problem, workload_of
from tir_schedules.ladders.registry import FAMILIES, every_rung, find, ladder
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction


def workload_for(rung, ragged=False):
    if rung.family == "reduce":
        return Reduction(*RUN_SHAPES["reduce"][1 if ragged else 0], rung.dtypes[0])
    shape = (250, 120, 72) if ragged else (256, 256, 128)
    if ragged and rung.family == "sgemm" and not rung.arch:  # rows of no multiple of 16 bytes
        shape = 250, 130, 70
    return workload_of(rung, Problem(rung.family, shape))


def test_steps_are_written_with_the_names_of_blocks_and_loops():
    (naive,) = find("sgemm/naive")
    assert [step.call for step in record(naive, Gemm(64, 64, 32)).steps] == [
        'C_local = sch.cache_write(C, 0, "local")',
        "i_0, i_1 = sch.split(i, [None, 32])",
        "j_0, j_1 = sch.split(j, [None, 32])",
        "sch.reorder(i_0, j_0, i_1, j_1, k)",
        'sch.bind(i_0, "blockIdx.x")',
        'sch.bind(j_0, "blockIdx.y")',
        'sch.bind(i_1, "threadIdx.x")',
        'sch.bind(j_1, "threadIdx.y")',
        "sch.reverse_compute_at(C_local, j_1, preserve_unit_loops=True)",
        "C_init = sch.decompose_reduction(C, k)",
    ]


def test_maps_of_indices_are_written_out():
    (rung,) = find("sgemm/warp_tiling")
    calls = [step.call for step in record(rung, Gemm(64, 64, 8)).steps]
    assert 'sch.transform_layout(A_shared, ("write", 0), lambda i, k: (k, i))' in calls
    assert any(
        call.startswith("sch.transform_block_layout(C, lambda i, j, k: (i // 32, i % 32 // 4, i % 4, ")
        for call in calls
    )


def test_a_step_knows_the_rungs_own_line_and_that_of_the_helper():
    (rung,) = find("sgemm/lane_quads")
    bind = next(step for step in record(rung, Gemm(128, 128, 8)).steps if step.primitive == "bind")
    assert [(place.file, place.function) for place in bind.places] == [
        ("sgemm/lane_quads.py", "schedule"), ("sgemm/warp_tiles.py", "split_up"),
        ("tir/schedule.py", "bind"),
    ]  # fmt: skip
    assert [place.text for place in bind.places][::2] == [
        "parts = split_up(sch, config)",
        "sch.bind(loop, axis)",
    ]


def test_a_comprehension_is_part_of_its_function():
    (rung,) = find("sgemm/warp_tiling")
    reindex = next(step for step in record(rung, Gemm(64, 64, 8)).steps if step.primitive == "reindex")
    assert [place.function for place in reindex.places] == ["schedule", "hold_in_registers"]


@pytest.mark.parametrize("name", ["sgemm/pipelined", "hgemm/mma_xor_swizzle", "reduce/vectorized"])
def test_recording_changes_nothing(name):
    (rung,) = find(name)
    workload = workload_for(rung)
    recording = record(rung, workload)
    assert not recording.refusal
    assert script(recording.steps[-1].module) == script(scheduled(rung, workload).mod)
    scripts = [script(module) for module in (recording.start, *(step.module for step in recording.steps))]
    idle = [
        step.primitive
        for step, before, after in zip(recording.steps, scripts, scripts[1:])
        if before == after
    ]
    assert set(idle) <= {"pad_einsum", "set_scope"}, "a step that is none, or a state that moved on"


def used_by(rungs, ragged=False):
    """Primitives and annotations of the rungs' schedules."""
    steps = [step for rung in rungs for step in record(rung, workload_for(rung, ragged)).steps]
    return {step.primitive for step in steps}, {step.annotation for step in steps if step.annotation}


def test_every_primitive_and_annotation_of_the_ladders_has_a_sentence():
    defaults = (rung for family in FAMILIES for rung in ladder(family))
    primitives, annotations = used_by(
        [*defaults, *find("hgemm/wmma_swizzled_grid:article"), *find("sgemm/transposed:diagonal")]
    )
    assert primitives <= set(PRIMITIVES) and annotations <= set(ANNOTATIONS)
    assert all(text.endswith(".") for text in (*PRIMITIVES.values(), *ANNOTATIONS.values()))
    assert (
        sentence("annotate", "no such note") == PRIMITIVES["annotate"] and sentence("no_such_primitive") == ""
    )


@pytest.mark.slow
def test_the_sentences_are_those_of_all_configurations_and_of_ragged_shapes():
    whole, ragged = used_by(every_rung()), used_by(every_rung(), ragged=True)
    # Stream-K shares no tiles of shapes as small as these, and products of parts cut their K into parts.
    of_larger = {"accumulate_shares", "synchronize_before"}
    assert whole[0] | ragged[0] | of_larger == set(PRIMITIVES)
    assert whole[1] | ragged[1] == set(ANNOTATIONS)


def test_a_schedule_that_is_refused_is_recorded_up_to_there():
    def schedule(sch, gemm, config):
        i, j, k = sch.get_loops(sch.get_sblock("C"))
        sch.bind(i, "blockIdx.x")
        sch.vectorize(k)

    (naive,) = find("sgemm/naive")
    recording = record(replace(naive, schedule=schedule), Gemm(8, 8, 8))
    assert [step.primitive for step in recording.steps] == ["bind"]
    assert "TVM refuses the schedule" in recording.refusal and "\n" not in recording.refusal
