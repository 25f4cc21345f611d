"""Which buffer a request belongs to, which requests are alike, and what the pictures show of them."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.insight.banks.pictures import (
    caption,
    document_svg,
    pictures_of,
    place_of,
    request_picture,
    svg_of,
    text_of,
    tile_picture,
)
from tir_schedules.insight.banks.requests import Pattern, array_name, request_patterns, watch_block
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import find
from tir_schedules.model.findings import Location

SVG = "{http://www.w3.org/2000/svg}"
both = pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])


def kernel(name, make, *problem):
    rung = find(name)[0]
    workload = workload_class(rung.family)(*problem)
    return [compile_kernel(make(rung, workload, "sm_80"))], workload


@both
def test_static_arrays_hold_the_argument_they_are_named_for(make):
    patterns = request_patterns(*kernel("sgemm/transposed", make, 132, 100, 36))
    names = {(pattern.buffer, pattern.variable) for pattern in patterns}
    assert names == (
        {("A", "A_pad_shared"), ("B", "B_pad_shared")}
        if make is lower
        else {("A", "tile_a"), ("B", "tile_b")}
    )


@both
@pytest.mark.parametrize("problem", [(256, 256, 128), (200, 150, 70)], ids=str)
def test_the_parts_of_a_dynamic_array_are_told_apart(make, problem):
    """A multistage buffer, ragged tiles padded with zeros: A's requests and B's lie apart, and only zeros are
    left over."""
    binaries, workload = kernel("hgemm/wmma_register_pipelined", make, *problem)
    patterns = request_patterns(binaries, workload)
    assert {pattern.buffer for pattern in patterns} <= {"A", "B"} | (
        {"C", "zeros"} if problem[2] == 70 else set()
    )
    reads = {
        name: {p.addresses[0] for p in patterns if p.buffer == name and p.kind == "ldmatrix"} for name in "AB"
    }
    assert reads["A"] and reads["B"] and not reads["A"] & reads["B"]
    requests = watch_block(binaries[0], workload, (0, 0, 0), 0)[0].requests
    assert sum(pattern.requests for pattern in patterns) == len(requests)


@both
def test_parts_belong_to_the_matrix_that_they_are_of(make):
    """fp16x3_mma copies what a launch before has made of A and B."""
    patterns = request_patterns(*kernel("sgemm/fp16x3_mma", make, 64, 64, 64, "fp16x3"))
    assert {(pattern.buffer, pattern.kind) for pattern in patterns if pattern.buffer != "zeros"} == {
        (name, kind) for name in "AB" for kind in ("shared_cp_async", "ldmatrix")
    }


@both
def test_a_result_that_goes_through_shared_memory(make):
    patterns = request_patterns(*kernel("hgemm/wmma_staged_epilogue", make, 256, 256, 128), "C")
    assert [pattern.kind for pattern in patterns] == ["shared_store", "shared_load"]


def test_an_only_input_owns_everything():
    patterns = request_patterns(*kernel("reduce/interleaved", load_twin, 1 << 12), "tile")
    assert {(pattern.buffer, pattern.variable) for pattern in patterns} == {("X", "tile")}
    loads = [pattern for pattern in patterns if pattern.kind == "shared_load"]
    assert [pattern.wavefronts for pattern in loads] == [2, 4, 8, 8, 8, 4, 2, 1]
    assert [(pattern.stride, len(pattern.lanes)) for pattern in loads[:5]] == [
        (8, 32),
        (16, 32),
        (32, 32),
        (64, 16),
        (128, 8),
    ]


def test_patterns_are_alike_up_to_a_shift_and_keep_what_differs():
    load, store = request_patterns(*kernel("sgemm/shared_tile", load_twin, 64, 64, 64), "A")[::-1]
    # 16 bytes for all lanes, 8 of them in a row
    assert (load.requests, load.starts) == (16, (0, 4, 8, 12, 16, 20, 24, 28))
    text = "tile_a[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;"
    assert (store.requests, store.starts, [at.text for at in store.locations]) == (2, (0,), [text])
    stores = request_patterns(*kernel("sgemm/transposed", lower, 128, 128, 16), "A")[0]
    # four rows of A, transposed
    assert (stores.requests, len(stores.locations), stores.starts) == (8, 4, (0,))


def test_another_warp_of_another_block():
    binaries, workload = kernel("sgemm/shared_tile", load_twin, 64, 64, 64)
    assert request_patterns(binaries, workload, "A", (1, 1, 0), 3)[0].addresses[0] == 3 * 128
    with pytest.raises(BadInput, match="no block 2,0,0; the grid is 2,2,1"):
        request_patterns(binaries, workload, "A", (2, 0, 0))


def test_an_unknown_buffer():
    binaries, workload = kernel("sgemm/shared_tile", load_twin, 64, 64, 64)
    with pytest.raises(
        BadInput,
        match="no buffer 'tile_c' in shared memory, did you mean 'tile_.'.; it touches A, tile_a, B, tile_b$",
    ):
        request_patterns(binaries, workload, "tile_c")
    assert request_patterns(*kernel("sgemm/naive", load_twin, 64, 64, 64), "A") == []


def test_names_of_static_arrays():
    assert array_name("_ZZ16sgemm_vectorizedE12A_shared_ptr") == "A_shared"
    assert array_name("_ZZ18reduce_interleavedE4tile") == "tile"
    assert array_name("buf_dyn_shmem_ptr") == "buf_dyn_shmem"


COLUMN = Pattern(
    buffer="A",
    variable="tile",
    locations=(Location(9, "a.cu", 3, "x = tile[t][0];"), Location(12, "a.cu", 7)),
    kind="shared_load",
    width=8,
    lanes=(0, 1, 2, 16, 17),
    addresses=tuple(lane * 64 + 4096 for lane in range(32)),
    requests=6,
    starts=(0, 8),
    wavefronts=3,
    ideal=2,
)
"""Five lanes read 8 bytes each, 64 bytes apart: lanes 0 and 2 meet in bank 0."""


def test_text_of_wavefronts():
    lines = text_of(request_picture(COLUMN)).plain.splitlines()
    assert [line[:17].strip(" |") for line in lines] == ["bank", "lanes 0-2", "wait 1", "lanes 16-17"]
    assert lines[0][17:].split() == [str(bank) for bank in range(32)]
    assert [line[17:].split() for line in lines[1:]] == [
        ["0", "0", *"." * 14, "1", "1", *"." * 14],
        ["2", "2", *"." * 30],
        ["16", "16", *"." * 14, "17", "17", *"." * 14],
    ]
    assert {len(line) for line in lines} == {113}


def test_text_of_the_tile():
    rows = {
        line[:17].strip(" |"): line[17:].split() for line in text_of(tile_picture(COLUMN)).plain.splitlines()
    }
    assert list(rows) == ["bank", "byte 4096", "byte 4224", "...", "byte 5120"]
    assert rows["byte 4224"] == ["2", "2", *"." * 30] and rows["byte 5120"][16:18] == ["17", "17"]


@pytest.mark.parametrize("draw", [request_picture, tile_picture])
def test_a_narrow_terminal_has_the_banks_in_several_pictures(draw):
    picture = draw(COLUMN)
    whole = text_of(picture).plain.splitlines()
    halves = [part.splitlines() for part in text_of(picture, 80).plain.split("\n\n")]
    assert [left + right[17:] for left, right in zip(*halves)] == whole and len(halves) == 2
    assert [max(map(len, text_of(picture, width).plain.splitlines())) for width in (113, 112, 60, 20)] == [
        113,
        65,
        41,
        29,
    ]


def test_svg_of_wavefronts_and_of_the_tile():
    drawn, tile = (ElementTree.fromstring(svg_of(draw(COLUMN))) for draw in (request_picture, tile_picture))
    cells = [(rect.get("class"), int(rect.get("width"))) for rect in drawn.iter(f"{SVG}rect")]
    assert cells == [("p0", 46), ("p0", 46), ("hot", 46), ("p1", 46), ("p1", 46)]
    assert [rect.get("class") for rect in tile.iter(f"{SVG}rect")] == ["p0", "p0", "p0", "p1", "p1"]
    labels = [text.text for text in drawn.iter(f"{SVG}text")]
    assert (
        labels[:33] == ["bank", *map(str, range(32))] == [text.text for text in tile.iter(f"{SVG}text")][:33]
    )
    assert labels[33:] == ["lanes 0-2", "0", "1", "wait 1", "2", "lanes 16-17", "16", "17"]


def test_lanes_that_share_a_word_share_a_cell():
    pattern = replace(
        COLUMN,
        lanes=tuple(range(32)),
        addresses=tuple(lane // 8 * 8 for lane in range(32)),
        ideal=1,
        wavefronts=1,
    )
    assert pattern.phases[0].lanes == pattern.lanes  # pairs of lanes ask for one address: one phase
    for draw, first in ((request_picture, "lanes 0-31"), (tile_picture, "byte 0")):
        labels = [text.text for text in ElementTree.fromstring(svg_of(draw(pattern))).iter(f"{SVG}text")]
        assert labels[33:] == [first, "0-7", "8-15", "16-23", "24-31"]
    drawn = text_of(request_picture(pattern)).plain.splitlines()[1]
    assert drawn.split("|")[1].startswith(" 0+ 0+ 8+ 8+16+16+24+24+  .")


def test_captions():
    assert (
        caption(COLUMN)
        == "load of A in tile: 6 requests of 8 bytes per lane, neighbouring lanes 64 bytes apart, 3"
        " wavefronts each, 2 without bank conflicts; they begin at bank 0 or 8, the pictures show the first"
    )
    assert place_of(COLUMN) == "a.cu:3, 7: x = tile[t][0];"
    assert place_of(replace(COLUMN, locations=(Location(9, "a.cu", 3, ': "r"(x)'),))) == "a.cu:3: inline PTX"
    calm = replace(COLUMN, variable="", lanes=(0, 1), wavefronts=1, ideal=1, requests=1, starts=(0,))
    assert caption(calm).endswith(
        ": 1 request of 8 bytes per lane, neighbouring lanes 64 bytes apart, 1 wavefront each, no bank"
        " conflicts"
    )
    copy = replace(COLUMN, kind="shared_cp_async", wavefronts=5)
    assert (
        "5 wavefronts each; those of a copy depend on its source as well, its banks alone take 3"
        in caption(copy)
    )


def test_one_file_of_all_pictures():
    section = (caption(COLUMN), place_of(COLUMN)), pictures_of(COLUMN)
    drawn = ElementTree.fromstring(document_svg([section, section], "A & B"))
    below = [
        (int(part.get("y")), int(part.get("height"))) for part in drawn.iter(f"{SVG}svg") if part.get("y")
    ]
    assert len(below) == 4 and all(y + height <= after for (y, height), (after, _) in zip(below, below[1:]))
    assert sum(below[-1]) <= int(drawn.get("height")) and drawn.find(f"{SVG}title").text == "A & B"
