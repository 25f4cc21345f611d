"""Tiles in shared memory that boxes fill and wgmma reads, by the verb `layout`: the swizzle of 128 bytes as
it was executed, and who waits for whom."""

import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.banks.requests import watch_block
from tir_schedules.insight.banks.shared_tiles import find_shared_tiles
from tir_schedules.ladders.registry import find_one
from tir_schedules.workloads.half_gemm import HalfGemm

SMALL = ("--mnk", "128,128,128")


@pytest.fixture(scope="module")
def tiles():
    """Of a kernel whose boxes are loaded and stored: by buffer."""
    workload = HalfGemm(128, 128, 128)
    binary = compile_kernel(load_twin(find_one("hgemm/tma_store", "layout"), workload, "sm_90a"))
    events = watch_block(binary, workload, (0, 0, 0), 0)[0].events
    assert events is not None
    return {tile.buffer: tile.as_json() for tile in find_shared_tiles(events)}


def test_pieces_lie_where_the_swizzle_puts_them(tiles):
    """Piece p of row r is in column p ^ r % 8 of a line of 128 bytes, and no banks are asked for twice."""
    assert set(tiles) == {"A", "B", "C"}
    for tile in tiles.values():
        start = min(cell["address"] for cell in tile["cells"])
        for cell in tile["cells"]:
            line, column = divmod(cell["address"] - start, 128)
            assert (line, column // 16) == (cell["row"], cell["piece"] ^ cell["row"] % 8)
        assert tile["turns"] == 1 and tile["pieces"] == 8


def test_products_read_what_boxes_wrote(tiles):
    for name in "AB":
        assert tiles[name]["agrees"] and tiles[name]["kind"] == "box"
        assert all(cell["read_by"] == cell["piece"] // 2 for cell in tiles[name]["cells"])
    assert tiles["C"]["kind"] == "store" and tiles["C"]["agrees"] is None


def test_text_page_and_picture(tool, tmp_path, check_page):
    kernel = ("hgemm/tma_store", "--twin", *SMALL)
    code, out, _ = tool("layout", kernel[0], "A", *kernel[1:])
    assert code == 0 and "8 rows of a piece fill all 32 banks, so they have no conflicts; wgmma reads" in out
    assert "1.1a        1.0a        1.3b        1.2b" in out and "factor" not in out
    page, picture = tmp_path / "page.html", tmp_path / "ring.svg"
    assert tool("layout", *kernel, "-o", str(page))[0] == 0
    assert page.read_text().count("Rows and pieces in the banks") == 3
    check_page(page)
    assert tool("layout", *kernel, "--ring", "-o", str(picture))[0] == 0
    assert picture.read_text().count("wgmma") >= 2
    assert tool("layout", *kernel, "--ring", "-o", str(page))[0] == 0
    check_page(page)


def test_a_ring_is_printed_up_to_a_limit(tool):
    code, out, _ = tool("layout", "hgemm/tma_store", "--twin", "--ring", "--steps", "6", *SMALL)
    assert code == 0 and "\n5 " in out and "\n6 " not in out
    assert "the first 6 of" in out and "mbarriers: full 0-1, 1 arrival each" in out


@pytest.mark.parametrize("arguments, part", [
    (("sgemm/naive", "--ring", "--mnk", "64,64,64"), "has no mbarrier"),
    (("hgemm/tma_store", "Q", "--twin", *SMALL), "touches no buffer 'Q'"),
    (("hgemm/tma_store", "--ring", "--twin", "--block", "7,0,0", *SMALL), "there is no block 7,0,0"),
])  # fmt: skip
def test_what_there_is_not_is_named(tool, arguments, part):
    code, _, error = tool("layout", *arguments)
    assert code == 2 and part in error and error.count("\n") == 1
