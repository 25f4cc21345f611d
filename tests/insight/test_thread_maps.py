"""`layout` of arrays in global memory: who loads and stores which element, as articles 000 and 003 draw it;
what is printed, and one clear line for what cannot be shown."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tir_schedules as ts
from tir_schedules.errors import BadInput
from tir_schedules.insight.threads import pictures
from tir_schedules.insight.threads.pictures import CUT, LESS, text_of
from tir_schedules.insight.threads.regions import Grid, filled, rectangles_of, runs_of

SMALL = {"mnk": (128, 128, 32)}


def owners(found, name):
    """What each element has of a column of the map, of an array in which one thread accesses each."""
    rows, columns = np.divmod(found.map.accesses["element"], found.map.shape[1])
    grid = np.full((rows.max() + 1, columns.max() + 1), -1)
    grid[rows, columns] = found.map.accesses[name]
    return grid


@pytest.mark.parametrize("twin", [False, True], ids=["schedule", "twin"])
def test_a_warp_tile_and_its_threads(twin):
    """Article 000, figure 2: four warp tiles of 32 x 32 in a block tile; a warp's threads have 8 rows of 4
    columns, twice beside each other; a thread has 4 x 4 elements in each and stores four at a time. The twin
    stores a piece after the other, as the article does, the schedule row by row."""
    found = ts.layout("sgemm/warp_tiling", "C", twin=twin, **SMALL)
    rows, columns = np.indices((64, 64))
    assert (owners(found, "warp") == rows // 32 * 2 + columns // 32).all()
    assert (owners(found, "lane") == rows % 32 // 4 * 4 + columns % 16 // 4).all()
    row, piece = rows % 4, columns % 32 // 16
    assert (owners(found, "step") == (piece * 4 + row if twin else row * 2 + piece)).all()
    assert found.shown.said == [
        "Block 0,0,0 (grid 2 x 2 x 1) stores 64 x 64 elements of C (128 x 128): rows 0-63, columns 0-63, each"
        " once.",
        "Warp 0 stores 32 x 32 elements: rows 0-31, columns 0-31, each once.",
        "Lane 0 of warp 0 stores 4 x 8 elements in 2 pieces of 4 x 4, the first at row 0, column 0, in 8"
        " steps of 4 elements (16 bytes).",
    ]


def test_naive_and_coalesced_differ_in_the_direction_of_a_warp():
    """Article 003, kernels 1 and 2: the lanes of a warp lie below each other, then beside each other."""
    rows, columns = np.indices((32, 32))
    for name, warp, lane in (("naive", columns, rows), ("coalesced", rows, columns)):
        found = ts.layout(f"sgemm/{name}", "C", mnk=(64, 64, 8))
        assert (owners(found, "warp") == warp).all() and (owners(found, "lane") == lane).all()


def test_elements_that_many_threads_load():
    found = ts.layout("sgemm/naive", "A", mnk=(64, 64, 8))
    assert found.shown.said[0].endswith("of A (64 x 8): rows 0-31, columns 0-7, each by 32 threads.")
    by_warp, by_lane, by_step = (text_of(one)[0].plain.splitlines() for one in found.shown.pictures)
    assert by_warp[1].split() == ["0", "*" * 8]
    assert by_lane[2].split() == ["1", "1" * 8] and by_step[1].split() == ["0", "01234567"]


def test_thread_tiles_of_two_dimensions():
    found = ts.layout("sgemm/thread_tile_2d", "C", **SMALL)
    own = found.map.accesses[(found.map.accesses["warp"] == 0) & (found.map.accesses["lane"] == 1)]
    rows, columns = np.divmod(own["element"], 128)
    assert len(own) == len({*rows}) * len({*columns}) and len({*rows}) > 1 < len({*columns})


def test_a_tile_of_loads_and_another():
    """Article 003, kernel 3: all threads load a tile of A together, which moves along K."""
    first = ts.layout("sgemm/shared_tile", "A", mnk=(64, 64, 64))
    assert (owners(first, "warp") == np.indices((32, 32))[0]).all()
    assert (first.map.tile, first.map.tiles) == (0, 2)
    second = ts.layout("sgemm/shared_tile", "A", mnk=(64, 64, 64), tile=1)
    assert (second.map.accesses["element"] == first.map.accesses["element"] + 32).all()
    every = ts.layout("sgemm/shared_tile", "A", mnk=(64, 64, 64), tile="all")
    assert len(every.map.accesses) == 2 * len(first.map.accesses)


def test_tiles_of_cp_async_are_groups():
    found = ts.layout("hgemm/mma_multistage", "A", tile=1, mnk=(256, 128, 256))
    assert "of A (256 x 256): rows 0-255, columns 64-127, each once" in found.shown.said[0]


def test_all_blocks():
    found = ts.layout("sgemm/coalesced", "C", by="block", mnk=(64, 96, 8))
    rows, columns = np.indices((64, 96))
    numbers = owners(found, "block")
    assert len(np.unique(numbers)) == 6
    assert all(len(np.unique(numbers[rows // 32 + columns // 32 * 2 == at])) == 1 for at in range(6))
    assert "block 0,0,0 stores 32 x 32 elements: rows 0-31, columns 0-31." in found.shown.said[0]


def test_a_block_at_the_edge_has_what_is_left():
    found = ts.layout("sgemm/warp_tiling", "C", at=(0, 1), mnk=(100, 37, 16))
    assert "36 x 37 elements of C (100 x 37): rows 64-99, columns 0-36" in found.shown.said[0]


def test_fragments_are_stored_in_pairs():
    found = ts.layout("hgemm/wmma_shared", "C", mnk=(256, 256, 64))
    rows, columns = np.indices((16, 16))
    assert (owners(found, "lane")[:16, :16] == rows % 8 * 4 + columns % 8 // 2).all()


def test_a_unit_copies_for_the_lane_that_tells_it_to():
    found = ts.layout("hgemm/warp_specialized", "A", arch="sm_90a", mnk=(256, 256, 128))
    assert len(np.unique(found.map.accesses[["warp", "lane", "step"]])) == 1
    assert any("in bulk" in note for note in found.map.notes)


def test_a_sum():
    found = ts.layout("reduce/interleaved", "X", n=1000)
    assert (found.map.accesses["lane"] == found.map.accesses["element"] % 32).all()
    assert (
        found.shown.said[0]
        == "Block 0,0,0 (grid 4 x 1 x 1) loads 256 elements of X (1,000 elements): 0-255, each once."
    )
    assert found.map.notes == ("this is launch 1 of 2; --launch N shows another",)


@pytest.mark.parametrize("twin", [False, True], ids=["schedule", "twin"])
def test_an_output_is_that_of_the_last_launch(twin):
    """Two launches: parts of K, and their sum, which has the shape of the workload."""
    found = ts.layout("sgemm/split_k", "C", twin=twin, mnk=(129, 127, 1000))
    assert (found.map.launch, found.map.launches, found.map.extents) == (2, 2, (129, 127))
    assert "of C (129 x 127): row 0, columns 0-126" in found.shown.said[0]
    assert found.shown.subject == "129x127x1000, launch 2 of 2, block 0,0,0"
    parts = ts.layout("sgemm/split_k", "C", twin=twin, mnk=(129, 127, 1000), launch=1, at=(0, 0, 3))
    assert "of C (13 x 129 x 128): rows 387-418" in parts.shown.said[0]
    assert "In this launch C is 13 x 129 x 128, partial results; the workload's own C is 129 x 127." in (
        parts.shown.notes
    )


def test_all_launches_of_a_sum():
    last = ts.layout("reduce/interleaved", "Y", n=1000)
    assert last.shown.said[0] == "Block 0,0,0 (grid 1 x 1 x 1) stores element 0 of Y (1 element)."
    assert not any("partial" in note for note in last.shown.notes)
    first = ts.layout("reduce/interleaved", "Y", n=1000, launch=1)
    assert "of Y (4 elements)" in first.shown.said[0] and "partial results" in first.shown.notes[1]
    loaded = ts.layout("reduce/interleaved", "X", n=1000, launch=2)
    assert "loads 4 elements of X (4 elements): 0-3" in loaded.shown.said[0]


@pytest.mark.parametrize(
    "words, part",
    [
        (("Y", "--launch", "3"), "there is no launch 3; there are 2, counted from 1"),
        (("Y", "--launch", "1", "--launch", "2"), "--launch takes one number, not 1 and 2"),
        (
            ("Y", "--block", "3,0,0"),
            "2 of 2 has no block 3,0,0; its grid is 1,1,1; launch 1 takes Y too",
        ),
        (
            ("Y", "--access", "load"),
            "never loads an element of Y; it stores it; this is launch 2 of 2",
        ),
        (("X", "--launch", "2", "--memory", "shared"), "--launch is for global memory"),
        (("X", "--launch", "k[1,1]()"), "--launch is for files"),
    ],
)
def test_launches_that_there_are_not(tool, words, part):
    code, out, error = tool("layout", "reduce/interleaved", *words, "--n", "1000")
    assert (code, out, error.count("\n")) == (2, "", 1) and part in error


def test_what_is_drawn_follows_the_warp_and_lane_that_are_named():
    def drawn(**named):
        shown = ts.layout("sgemm/warp_tiling", "C", mnk=(64, 64, 16), **named).shown
        one, page = shown.pictures[0], shown.of_page
        assert len(one.found.accesses) == {"lane": 32 * 32, "step": 4 * 8}[named["by"]]
        return [one.title, *(each.title for each in page)]

    assert drawn(by="lane", warp=1) == [
        "elements of warp 1 by lane",
        "elements of warp 1 by lane", "elements of the block by warp", "elements of warp 1 by step",
    ]  # fmt: skip
    assert drawn(by="step", warp=1, lane=3) == [
        "elements of lane 3 of warp 1 by step",
        "elements of lane 3 of warp 1 by step", "elements of the block by warp", "elements of warp 1 by lane",
    ]  # fmt: skip
    assert drawn(by="step", lane=3)[0] == "elements of lane 3 of warp 0 by step"


def test_all_blocks_have_no_warp_that_is_named():
    for named in ({"at": (0, 0)}, {"warp": 0}, {"lane": 1}):
        with pytest.raises(BadInput, match=f"all blocks are shown whole; leave out {[*named][0]}"):
            ts.layout("sgemm/naive", "C", by="block", mnk=(64, 64, 8), **named)


SOURCE = """\
__global__ void pairs(const float *A, float *C) {
  int at = (blockIdx.x * 32 + threadIdx.x) * 2;
  for (int k = 0; k < 2; ++k) C[at + k] = A[at + k];
  if (threadIdx.x == 0) { __threadfence(); ((volatile float *)C)[at] = A[at]; }
}
__global__ void last(int *ticket, float *Y) {
  if (atomicAdd(ticket, 1) == gridDim.x - 1) Y[threadIdx.x] = 1;
}
// check: --kernel pairs --grid 2 --block 32 --arg A=f32[128] --arg C=f32[128]:out --expect 'C=A'

// check: --kernel last --grid 3 --block 1 --arg ticket=i32[1]:zeros --arg Y=f32[1]:zeros

__global__ void uneven(volatile float *X, float *Y) {
  if (threadIdx.x < 2) Y[threadIdx.x] = X[0] + X[1] + X[1];
  else if (threadIdx.x >= 8 && threadIdx.x < 24) Y[threadIdx.x] = 0;
}
// check: --kernel uneven --grid 1 --block 64 --arg X=f32[2] --arg Y=f32[64]:zeros

__global__ void far(float *Y) { if (blockIdx.x % 62 == 0) Y[blockIdx.x / 62 * 4] = 1; }
// check: --kernel far --grid 63 --block 1 --arg Y=f32[8]:zeros

__global__ void waits(int *Y) { while (atomicAdd(Y, 0) == 0); }
// check: --kernel waits --grid 1 --block 1 --arg Y=i32[8]:zeros

__global__ void before(float *Y) { Y[(int)threadIdx.x - 1] = 1; }
// check: --kernel before --grid 1 --block 64 --arg Y=f32[64]:zeros

struct View { float *p; int n; };
__device__ float G[64];
__global__ void fill(View v) {
  __shared__ float room[64];
  room[threadIdx.x] = 1;
  if ((int)threadIdx.x < v.n) v.p[threadIdx.x] = G[threadIdx.x] = room[threadIdx.x];
}
__global__ void twice(View v) { if ((int)threadIdx.x < v.n) v.p[threadIdx.x] *= 2; }
// check: --kernel fill --block 64 --then --kernel twice --block 32 --arg v.p=f32[64]:zeros --arg v.n=64
"""


@pytest.fixture
def call(tmp_path, tool, monkeypatch):
    (tmp_path / "mine.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return lambda *words: tool("layout", "mine.cu", *words)


def test_a_file(call):
    code, out, _ = call("C", "--kernel", "pairs", "--at", "1,0,0", "--columns", "16")
    assert code == 0 and out.startswith("pairs: who stores C, mine.cu, block 1,0,0\n")
    assert re.search(r"^ +64  0011223344556677$", out, re.M) and re.search(
        r"^ +112  OOPPQQRRSSTTUUVV$", out, re.M
    )
    assert "64 elements of C (128 elements): 64-127, each up to twice." in out


def test_a_block_that_counts_others_is_among_them(call):
    """The last of three blocks stores: which one that is, no block tells alone."""
    _, out, _ = call("Y", "--kernel", "last", "--at", "2,0,0", "--json")
    assert json.loads(out)["accesses"] == [[0, 2, 0, 0, 0]]
    code, _, error = call("Y", "--kernel", "last")
    assert code == 2 and "block 0,0,0 never accesses an element of Y; --by block shows which" in error


def test_launches_of_a_file_and_members_of_a_struct(call):
    one = (*"--block 64 --then --kernel twice --block 32 --arg v.n=64 --arg".split(), "v.p=f32[64]:zeros")
    launches = ("--kernel", "fill", *one)
    _, out, _ = call("v.p", *launches)
    assert out.startswith("fill: who stores p, mine.cu, launch 1 of 2, block 0,0,0\n")
    _, out, _ = call("v_p", *launches, "--launch", "2")
    assert out.startswith("twice: who stores p, mine.cu, launch 2 of 2, block 0,0,0\n")
    _, out, _ = call("room", *launches)
    assert "this is launch 1 of 2; --launch N shows another" in out
    for word, part in (
        ("G", "G is a variable of the file, and layout shows arrays that a kernel is given: p"),
        ("P", "did you mean 'p'?; it touches room in line 32; arrays in global memory are p"),
    ):
        code, _, error = call(word, *launches)
        assert (code, error.count("\n")) == (2, 1) and part in error
    error = call("p", *launches, "--access", "update")[2]
    assert "twice: block 0,0,0 never updates an element of p in any launch; it stores and loads it\n" in error
    assert "makes no request to shared memory" in call("--launch", "2", *launches)[2]


def test_a_warp_that_accesses_nothing_has_no_picture(call):
    code, out, _ = call("Y", "--kernel", "uneven", "--warp", "1", "--by", "lane", "-o", "page.html")
    assert code == 0 and "By warp" in (page := Path("page.html").read_text()) and "By lane" not in page
    code, out, _ = call("Y", "--kernel", "uneven", "--warp", "1", "--by", "lane")
    assert code == 0 and "elements of warp 1" not in out and "Warp 1 stores none of them." in out


def test_sentences_are_true_where_elements_are_not_alike(call):
    _, out, _ = call("X", "--kernel", "uneven")
    assert "of X (2 elements): 0-1, each by 2 threads, by each of them up to twice." in out
    _, out, _ = call("Y", "--kernel", "uneven", "--warp", "1")
    assert (
        "stores 18 elements of Y (64 elements) in 2 pieces, 8 apart, the first at element 0, each once."
        in out
    )
    assert "Warp 1 stores none of them." in out
    _, out, _ = call("Y", "--kernel", "uneven", "--lane", "5")
    assert "Lane 5 of warp 0 stores none of them." in out


def test_accesses_outside_of_the_array_are_told(call):
    code, out, _ = call("Y", "--kernel", "before")
    assert code == 0 and "stores 63 elements of Y (64 elements): 0-62" in out
    assert "Accesses outside of every array are left out; `check` or `run` says where they are." in out


def test_a_block_that_waits_for_ever_is_told(call):
    code, out, _ = call("Y", "--kernel", "waits")
    assert code == 0 and "The launch does not come to its end; this is what is done until then." in out


@pytest.mark.parametrize(
    "words, part",
    [
        (("--columns=-5",), "--columns takes at least 1, not -5"),
        (("--columns", "0"), "--columns takes at least 1, not 0"),
        (("--tile=-1",), "there is no tile -1"),
        (("--lane", "32"), "there is no lane 32; a warp has 32, counted from 0"),
        (("--memory", "global", "--warp", "2"), "there is no warp 2; a block has 2, counted from 0"),
        (("--at", "1,0"), "--at takes three integers"),
    ],
)
def test_numbers_that_name_nothing(call, words, part):
    code, out, error = call("Y", "--kernel", "uneven", *words)
    assert (code, out, error.count("\n")) == (2, "", 1) and part in error


def test_a_row_is_no_longer_than_the_array(call):
    code, out, _ = call("Y", "--kernel", "uneven", "--columns", "2000000000", "--json")
    assert code == 0 and len(json.loads(out)["accesses"]) == 18


def test_text_fits_80_columns(tool):
    _, out, _ = tool("layout", "sgemm/vectorized", "C", "--mnk", "128,128,16", "--by", "lane")
    drawn = [line for line in out.splitlines() if re.match(r" +\d+  \S+$", line)]
    assert drawn and max(map(len, drawn)) <= 80 and "of elements, all alike" in out


def test_an_array_has_a_name():
    with pytest.raises(BadInput, match="array is None; it takes the name of an array"):
        ts.layout("sgemm/naive", None)


def test_two_keys_have_one_symbol_only_where_there_are_too_many(call):
    _, out, _ = call("Y", "--kernel", "far", "--by", "block")
    told = "0-1: blocks 0, 62; blocks are numbered with x fastest, then y, then z; .: not accessed"
    assert "      0  0...1...\n" in out and told in out


def test_what_does_not_fit_is_left_out_and_told():
    found = ts.layout("sgemm/naive", "A", by="step", mnk=(64, 64, 256))
    drawn, told = text_of(found.shown.pictures[0], 60)
    assert max(map(len, drawn.plain.splitlines())) <= 60
    assert any("48 of 256 columns are shown" in line for line in told)
    _, told = text_of(found.shown.pictures[0], 200)
    assert told[0] == "0-9 A-Z a-z: steps 0-183, z is followed by 0 again"
    assert text_of(found.shown.pictures[0], 10)[0].plain.splitlines()[1].split() == ["0", "01234567"]


def test_a_page_shows_all_where_colours_are_few(tool, tmp_path, monkeypatch):
    """A piece for each element would be 32,768; of a colour they are 1024."""
    page, words = (
        tmp_path / "page.html",
        ("layout", "sgemm/naive", "A", "--mnk", "64,64,1024", "--by", "step"),
    )
    assert "-o FILE.html shows all rows and columns.\n" in tool(*words)[1]
    assert tool(*words, "-o", str(page))[0] == 0
    assert "several warps, several lanes, step 1023: row 0-31, column 1023" in page.read_text()
    assert CUT not in page.read_text()
    monkeypatch.setattr(pictures, "MOST_RECTANGLES", 1000)
    assert f"-o FILE.html shows more, but not all. {LESS}\n" in tool(*words)[1]
    assert tool(*words, "-o", str(page))[0] == 0
    assert f"the first 1 of 32 rows and 512 of 1024 columns {CUT}. {LESS}" in page.read_text()


def test_pages_and_pictures(tool, tmp_path, check_page):
    page, picture = tmp_path / "page.html", tmp_path / "picture.svg"
    words = ("layout", "sgemm/warp_tiling", "C", "--mnk", "64,64,16")
    assert tool(*words, "-o", str(page))[0] == tool(*words, "-o", str(picture))[0] == 0
    text = page.read_text()
    assert text.count('<svg class="threads"') == 3 and "warp 3, lane 31: row 60-63, column 44-47" in text
    assert picture.read_text().startswith("<svg ")
    check_page(page)


@pytest.mark.parametrize(
    "words, part",
    [
        (("sgemm/naive", "D", "--by", "warp"), "has no array 'D' in global memory; it has A, B, C"),
        (("sgemm/naive", "Z"), "has no array 'Z' in global memory"),
        (("sgemm/naive", "C", "--block", "9,0,0"), "there is no block 9,0,0"),
        (("sgemm/naive", "A", "--access", "store"), "block 0,0,0 never stores an element of A; it loads it"),
        (("sgemm/shared_tile", "A", "--tile", "8"), "there is no tile 8 of A; there are 2, counted from 0"),
        (("sgemm/naive", "--by", "warp"), "name the array in global memory, such as C"),
        (("sgemm/naive", "C", "--columns", "3"), "--columns is for arrays of one dimension; C is 64 x 64"),
        (("sgemm/naive", "C", "--by", "lane", "--memory", "shared"), "--by is for global memory"),
    ],
)
def test_bad_input(tool, words, part):
    code, out, error = tool("layout", *words, "--mnk", "64,64,64")
    assert (code, out, error.count("\n")) == (2, "", 1) and part in error


def test_rectangles_are_joined_from_runs():
    keys = np.array([[0, 0, 1], [0, 0, 1], [-1, 0, 1]])
    found = {tuple(one) for one in rectangles_of(Grid(np.array([0, 1, 2]), 0, keys))}
    assert found == {(0, 2, 0, 2, 0), (0, 3, 2, 3, 1), (2, 3, 1, 2, 0)}
    assert len(list(rectangles_of(Grid(np.array([0, 1, 90]), 0, keys)))) == 4  # rows are left out between
    assert filled(np.array([1, 4, 90])).tolist() == [1, 2, 3, 4, 90]
    assert runs_of(np.array([1, 2, 5])) == [(1, 2), (5, 1)]
