"""What CUDA asks of tensor maps, and boxes of them copied by the CPU machine, against numpy."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from warpgroup_kernels import entry, launch

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.invocation import encoded
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.machines.tensor_map import ELEMENT_BYTES, check_tensor_map
from tir_schedules.model.launch import TensorMap

SOUND = TensorMap("A_map", "A", "float16", (100, 200), (400,), (32, 64), 128)

FAULTS = [
    ({"element": "float8"}, "elements of float8: they can be uint8"),
    ({"shape": (), "pitches": (), "box": ()}, "0 dimensions: there can be 1 to 5"),
    ({"shape": (8,) * 6, "pitches": (16,) * 5, "box": (8,) * 6}, "6 dimensions"),
    ({"box": (64,)}, "needs 2 extents of the box and 1 pitches, and has 1 and 1"),
    ({"pitches": ()}, "has 2 and 0"),
    ({"shape": (0, 200)}, "an extent of 0"),
    ({"shape": (2**32 + 1, 200)}, "an extent of 4294967297"),
    ({"box": (257, 64)}, "a box of 257 elements"),
    ({"box": (0, 64)}, "a box of 0 elements"),
    ({"pitches": (408,)}, "a pitch of 408 bytes: it has to be a multiple of 16"),
    ({"pitches": (2**40,)}, "below 2**40"),
    ({"pitches": (0,)}, "a pitch of 0 bytes"),
    ({"swizzle": 16}, "a swizzle of 16 bytes"),
    ({"promotion": 32}, "a promotion to 32 bytes"),
    ({"box": (32, 4), "swizzle": 0}, "rows of the box have 8 bytes: make it a multiple of 16"),
    ({"box": (32, 72)}, "rows of the box have 144 bytes, and the swizzle 128: at most 64 elements fit"),
]


def box_bytes(tensor):
    """Bytes of shared memory that one copy takes, of parts beyond the tensor, too."""
    return prod(tensor.box) * ELEMENT_BYTES[tensor.element]


@pytest.mark.parametrize("changes, message", FAULTS, ids=[message for _, message in FAULTS])
def test_what_cuda_refuses(changes, message):
    with pytest.raises(CheckFailed) as error:
        check_tensor_map("k", replace(SOUND, **changes))
    assert str(error.value).startswith("k: tensor map A_map: ") and message in str(error.value)


def test_what_it_takes():
    check_tensor_map("k", SOUND, 1 << 40)
    check_tensor_map("k", replace(SOUND, shape=(2**32, 1), box=(256, 64)))
    with pytest.raises(CheckFailed, match="the array begins at 0x8: align it to 16 bytes"):
        check_tensor_map("k", SOUND, 8)


def test_encoding_has_the_innermost_dimension_first():
    (there,) = np.frombuffer(encoded("k", SOUND, 1 << 40), abi.TENSOR_MAP)
    assert there["address"] == 1 << 40 and there["rank"] == 2 and there["element"] == 2
    assert [*there["shape"]] == [200, 100, 0, 0, 0] and [*there["box"]] == [64, 32, 0, 0, 0]
    assert (
        [*there["pitches"]] == [400, 0, 0, 0] and there["swizzle"] == 128 and abi.TENSOR_MAP.itemsize == 128
    )


def test_rows_shorter_than_the_swizzle_are_not_known():
    with pytest.raises(
        UnsupportedInstruction, match="rows of 64 bytes in a swizzle of 128: take boxes of 64"
    ):
        encoded("k", replace(SOUND, box=(32, 32)), 1 << 40)


# ---- boxes ---
LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
PREFETCH = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile"
STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
START = """.shared .align 8 .b8 full[8]; .reg .b32 f, sh, n; .reg .b64 m; setp.eq.u32 q, t, 0;
mov.u64 wide, s; cvt.u32.u64 sh, wide; mov.u64 wide, full; cvt.u32.u64 f, wide;
@!q bra END;
"""
COPY_OUT = """shl.b32 o, t, 2; END:
"""


def loading(tensor, at, into=0):
    """One box to shared memory at byte `into`, whose bytes then go to Y."""
    rank, size = len(tensor.shape), box_bytes(tensor)
    coordinates = ", ".join(map(str, at[::-1]))
    return entry(
        f"""{START}mbarrier.init.shared::cta.b64 [f], 1; fence.mbarrier_init.release.cluster;
mov.b64 m, {tensor.name}; cvta.param.u64 m, m; prefetch.tensormap [m];
mbarrier.arrive.expect_tx.shared::cta.b64 _, [f], {size};
{LOAD.format(rank=rank)} [sh+{into}], [m, {{{coordinates}}}], [f];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [f], 0; @!p bra WAIT;
mov.u32 n, 0;
MORE: ld.shared.v4.b32 {{v0, v1, v2, v3}}, [sh+{into}]; st.global.v4.b32 [y], {{v0, v1, v2, v3}};
add.s32 sh, sh, 16; add.s64 y, y, 16; add.s32 n, n, 16; setp.lt.u32 p, n, {size}; @p bra MORE; END:""",
        ("Y",),
        (tensor.name,),
    )


def prefetched(text, opcode, at):
    """What `loading` gives, with a box prefetched before."""
    coordinates = ", ".join(map(str, at[::-1]))
    return text.replace("[m];", f"[m]; {opcode} [m, {{{coordinates}}}];", 1)


def storing(tensor, at, size):
    """X to shared memory, from where one box goes to the tensor."""
    rank, coordinates = len(tensor.shape), ", ".join(map(str, at[::-1]))
    return entry(
        f"""{START}mov.u32 n, 0; mov.b32 o, sh;
MORE: ld.global.v4.b32 {{v0, v1, v2, v3}}, [x]; st.shared.v4.b32 [o], {{v0, v1, v2, v3}};
add.s32 o, o, 16; add.s64 x, x, 16; add.s32 n, n, 16; setp.lt.u32 p, n, {size}; @p bra MORE;
fence.proxy.async.shared::cta; mov.b64 m, {tensor.name}; cvta.param.u64 m, m;
{STORE.format(rank=rank)} [m, {{{coordinates}}}], [sh];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:""",
        ("X",),
        (tensor.name,),
    )


def swizzled(rows, span, begins=0):
    """Bytes of rows in the order of memory, where pieces of 16 change places by their line of 128 bytes."""
    if not span:
        return rows.ravel()
    flat = rows.reshape(-1, 16)
    at = begins + np.arange(len(flat)) * 16
    to = (at ^ (at // 128 % (span // 16) * 16)) - begins
    out = np.empty_like(flat)
    out[to // 16] = flat
    return out.ravel()


def map_of(array, box, swizzle=0, name="A_map"):
    element = {2: "float16", 4: "float32", 1: "uint8"}[array.itemsize]
    return TensorMap(name, name[0], element, array.shape, array.strides[:-1], box, swizzle)


def box_of(array, box, at):
    """Elements of a box, zeros outside the array."""
    index = np.meshgrid(*(np.arange(size) + first for size, first in zip(box, at)), indexing="ij")
    inside = np.all([(i >= 0) & (i < extent) for i, extent in zip(index, array.shape)], axis=0)
    clipped = tuple(np.clip(i, 0, extent - 1) for i, extent in zip(index, array.shape))
    return np.where(inside, array[clipped], 0).astype(array.dtype)


def numbered(shape, dtype):
    return (np.arange(np.prod(shape)) % 251 + 1).astype(dtype).reshape(shape)


BOXES = [
    ((40,), (16,), (8,), 0, np.float32),
    ((24, 96), (8, 64), (3, 8), 128, np.float16),
    ((24, 96), (8, 64), (-3, 40), 128, np.float16),
    ((24, 96), (16, 32), (3, -8), 64, np.float16),
    ((24, 96), (32, 8), (2, 92), 32, np.float32),
    ((24, 96), (16, 8), (30, 88), 32, np.float32),
    ((24, 96), (4, 16), (1, 8), 0, np.float16),
    ((24, 96), (8, 64), (100, 0), 128, np.float16),
    ((24, 60), (8, 32), (0, 100), 128, np.float32),
    ((5, 6, 48), (2, 3, 32), (4, -1, 20), 128, np.float32),
    ((3, 4, 5, 16), (2, 2, 2, 16), (1, 3, -1, 0), 0, np.uint8),
    ((2, 3, 4, 5, 16), (1, 2, 2, 2, 16), (1, 2, 3, 4, 0), 32, np.float16),
]


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("shape, box, at, swizzle, dtype", BOXES)
def test_loads(shape, box, at, swizzle, dtype, copies):
    array = numbered(shape, dtype)
    tensor = map_of(array, box, swizzle)
    got = np.zeros(box_bytes(tensor), np.uint8)
    text = loading(tensor, at)
    execution = launch(text, {"Y": got, "A": array}, ("Y",), 32, (tensor,), copies=copies, params=("Y",))
    assert execution.findings == ()
    rows = box_of(array, box, at).view(np.uint8)
    np.testing.assert_array_equal(got, swizzled(rows, swizzle))


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("shape, box, at, swizzle, dtype", BOXES)
def test_stores(shape, box, at, swizzle, dtype, copies):
    """What lies outside is dropped, and what the box does not cover stays."""
    at = tuple(max(0, first) for first in at)
    tiles = numbered(box, dtype)
    content = swizzled(tiles.view(np.uint8), swizzle)
    array = np.zeros(shape, dtype)
    tensor = map_of(array, box, swizzle)
    arguments = {"X": content, "A": array}
    text = storing(tensor, at, content.nbytes)
    execution = launch(text, arguments, ("A",), 32, (tensor,), copies=copies, params=("X",), given=("A",))
    assert execution.findings == ()
    expected = np.zeros(shape, dtype)
    for index in np.ndindex(*box):
        place = tuple(i + first for i, first in zip(index, at))
        if all(0 <= i < extent for i, extent in zip(place, shape)):
            expected[place] = tiles[index]
    np.testing.assert_array_equal(array, expected)


def test_an_extent_that_ends_within_a_piece():
    """Of 16 bytes, as on an H200: what is beyond it reads as 0, and is written."""
    array = numbered((24, 96), np.float16)
    tensor = replace(map_of(array, (8, 64), 128), shape=(24, 85))
    got = np.zeros(box_bytes(tensor), np.uint8)
    arguments = {"Y": got, "A": array}
    execution = launch(loading(tensor, (20, 40)), arguments, ("Y",), 32, (tensor,), params=("Y",))
    rows = box_of(array[:, :85], (8, 64), (20, 40)).view(np.uint8)
    np.testing.assert_array_equal(got, swizzled(rows, 128))
    assert execution.findings == ()
    tiles = numbered((8, 64), np.float16)
    content, written = swizzled(tiles.view(np.uint8), 128), np.zeros_like(array)
    arguments = {"X": content, "A": written}
    text = storing(tensor, (20, 40), content.nbytes)
    assert launch(text, arguments, ("A",), 32, (tensor,), params=("X",), given=("A",)).findings == ()
    np.testing.assert_array_equal(written[20:, 40:88], tiles[:4, :48])
    assert not written[:, 88:].any() and not written[:20].any() and not written[:, :40].any()


def test_a_store_whose_last_piece_reaches_beyond_the_array():
    tiles, written = numbered((64,), np.float16), np.zeros(90, np.float16)
    tensor = map_of(written, (64,))
    arguments = {"X": tiles.view(np.uint8), "A": written}
    execution = launch(
        storing(tensor, (40,), 128), arguments, ("A",), 32, (tensor,), params=("X",), given=("A",)
    )
    (found,) = execution.findings
    assert found.kind == "out_of_bounds"
    np.testing.assert_array_equal(written[40:88], tiles[:48])
    assert not written[88:].any()


WRONG_PLACES = [
    (np.float16, (8, 64), (0, 4), "load", "the innermost coordinate is 4, of elements of 2 bytes"),
    (np.float32, (8, 32), (0, -2), "load", "coordinate is -2, of elements of 4 bytes, so -8 bytes"),
    (np.float32, (8, 32), (0, 2), "store", "it has to be a multiple of 16 bytes, of 4 elements"),
    (np.float16, (8, 64), (0, 4), "prefetch", "so 8 bytes: it has to be a multiple of 16 bytes, of 8"),
    (np.float16, (8, 64), (-1, 0), "store", "a store begins at coordinate -1"),
    (np.float16, (8, 64), (0, -8), "store", "a store begins at coordinate -8"),
]
"""Boxes with which an H200 ends the kernel."""


@pytest.mark.parametrize("dtype, box, at, how, message", WRONG_PLACES)
def test_boxes_that_begin_where_none_can(dtype, box, at, how, message):
    array = numbered((24, 96), dtype)
    tensor = map_of(array, box, 128)
    if how != "store":
        arguments = {"Y": np.zeros(box_bytes(tensor), np.uint8), "A": array}
        text = loading(tensor, at if how == "load" else (0, 0))
        text = text if how == "load" else prefetched(text, PREFETCH, at)
        execution = launch(text, arguments, ("Y",), 32, (tensor,), params=("Y",))
    else:
        arguments = {"X": np.zeros(box_bytes(tensor), np.uint8), "A": array}
        text = storing(tensor, at, box_bytes(tensor))
        execution = launch(text, arguments, ("A",), 32, (tensor,), params=("X",), given=("A",))
    told = [one.message for one in execution.findings if one.kind == "bad_tensor_map"]
    assert len(told) == 1 and message in told[0]


def test_sectors_are_those_of_the_rows_inside():
    array = numbered((24, 96), np.float16)
    tensor = map_of(array, (8, 64), 128)
    got = np.zeros(1024, np.uint8)
    arguments = {"Y": got, "A": array}
    text = loading(tensor, (20, 40))
    counters = launch(text, arguments, ("Y",), 32, (tensor,), count=True, params=("Y",)).counters
    access = counters.accesses["tma_load"]  # four rows of 112 bytes, from byte 80 of 192 on
    assert (access.requests, access.cost, access.ideal) == (1, 4 * 4, 14)
    assert counters.mix["tma"] == 1


# ---- faults ---
ARRAY = numbered((24, 96), np.float16)
TENSOR = map_of(ARRAY, (8, 64), 128)
BROKEN = [
    ("no map", ("mov.b64 m, A_map;", "mov.b64 m, Y;"), "there is no tensor map at the address"),
    ("rank", ("{0, 0}]", "{0, 0, 0}]"), "3 coordinates, and the tensor 2 dimensions"),
    ("alignment", ("[sh+0], [m", "[sh+64], [m"), "of shared memory is not a multiple of 128"),
]


@pytest.mark.parametrize("what, change, message", BROKEN, ids=[what for what, *_ in BROKEN])
def test_copies_that_do_not_fit(what, change, message):
    text = loading(TENSOR, (0, 0))
    assert change[0] in text
    text = text.replace(*change).replace("2d.shared", "3d.shared" if what == "rank" else "2d.shared")
    text = text.replace("bra WAIT", "bra WAIT") if what == "alignment" else text
    arguments = {"Y": np.zeros(1024, np.uint8), "A": ARRAY}
    findings = launch(text, arguments, ("Y",), 32, (TENSOR,), params=("Y",)).findings
    told = [one.message for one in findings if one.kind == "bad_tensor_map"]
    assert len(told) == 1 and message in told[0]


def test_a_map_that_the_kernel_may_write():
    """It may have done so: a copy needs a fence.proxy.tensormap before, which is not known."""
    there = np.frombuffer(encoded("test", TENSOR, 2 << 40), np.uint8)
    arguments = {"Y": np.resize(there, 1024), "A": ARRAY}
    text = loading(TENSOR, (0, 0)).replace("mov.b64 m, A_map; cvta.param.u64 m, m;", "mov.b64 m, y;")
    findings = launch(text, arguments, ("Y",), 32, (TENSOR,), params=("Y",), given=("Y",)).findings
    assert "lies in memory that the kernel may write" in findings[0].message


def test_a_box_of_an_array_that_is_shorter_than_its_map():
    tensor = replace(TENSOR, shape=(25, 96))
    arguments = {"Y": np.zeros(1024, np.uint8), "A": ARRAY}
    findings = launch(loading(tensor, (20, 0)), arguments, ("Y",), 32, (tensor,), params=("Y",)).findings
    assert "out_of_bounds" in {finding.kind for finding in findings}


def test_a_launch_without_the_array_of_a_map():
    with pytest.raises(CheckFailed, match="tensor map A_map is of A, which is not an array of the launch"):
        launch(loading(TENSOR, (0, 0)), {"Y": np.zeros(1024, np.uint8)}, ("Y",), 32, (TENSOR,))


def test_elements_have_the_sizes_of_numpy():
    for name, size in ELEMENT_BYTES.items():
        assert name == "bfloat16" or np.dtype(name).itemsize == size
