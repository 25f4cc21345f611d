"""The verb `layout` as users meet it: text, JSON, page and picture, and one clear line for what it cannot
show."""

import json

import pytest

TILE = ("layout", "sgemm/shared_tile", "A", "--twin", "--mnk", "64,64,64")


def test_text(tool):
    code, out, _ = tool(*TILE)
    assert code == 0 and out.startswith("sgemm/shared_tile (twin): A, 64x64x64, warp 0 of block 0,0,0\n")
    assert out.count("lanes 0-31 |") == 1 and out.count("lanes 16-31 |") == 1
    assert out.count("bank |  0  1") == 4 and out.count("byte 0 |") == 2
    assert (
        "\nload of A in tile_a: 16 requests of 16 bytes per lane, 2 wavefronts each, no bank conflicts; they"
        " begin at" in out
    )
    assert max(len(line) for line in out.splitlines() if "|" in line) == 113 and "\x1b" not in out


def test_json(tool):
    code, out, _ = tool(*TILE, "--warp", "1", "--block", "1,0,0", "--json")
    facts = json.loads(out)
    assert code == 0 and (facts["warp"], facts["block"], facts["notes"]) == (1, [1, 0, 0], [])
    store, load = facts["patterns"]
    assert (store["buffer"], store["variable"], store["kind"], store["addresses"][:2]) == (
        "A",
        "tile_a",
        "shared_store",
        [128, 132],
    )
    assert sum(len(phase["wavefronts"]) for phase in load["phases"]) == load["wavefronts"] == 2
    assert load["phases"][1]["wavefronts"][0][0] == {"bank": 0, "word": 32, "lanes": list(range(16, 32))}


def test_a_page(tool, tmp_path, check_page):
    page = tmp_path / "page.html"
    code, out, _ = tool("layout", "sgemm/transposed", "-o", str(page), "--twin", "--mnk", "128,128,16")
    text = page.read_text()
    assert (code, out) == (0, "") and text.count('<svg class="banks"') == 2 * text.count('<h2 id="pattern-')
    assert (
        "<h1>sgemm/transposed (twin): shared memory</h1>" in text
        and "2 wavefronts each, 1 without bank conflicts" in text
    )
    check_page(page)


def test_a_picture(tool, tmp_path):
    picture = tmp_path / "picture.svg"
    assert tool(*TILE, "-o", str(picture))[0] == 0
    assert picture.read_text().startswith('<svg class="banks" xmlns="http://www.w3.org/2000/svg"')


@pytest.mark.parametrize(
    "arguments, part",
    [
        (("layout", "sgemm"), "one rung, such as sgemm/naive, not the whole ladder 'sgemm'"),
        (("layout", "sgemm/shared_tiles"), "did you mean 'sgemm/shared_tile'"),
        ((*TILE, "--block", "0,0"), "--block takes three integers X,Y,Z such as 0,1,0, not '0,0'"),
        ((*TILE, "--block", "0,0,1"), "there is no block 0,0,1; the grid is 2,2,1"),
        ((*TILE, "--warp", "32"), "there is no warp 32; a block has 32, counted from 0"),
        ((*TILE, "-o", "picture.png"), "layout writes .html or .svg, not picture.png"),
        ((*TILE, "-o", "nowhere/picture.svg"), "name a file in a folder that exists"),
        ((*TILE, "--n", "5"), "--n is for reduce"),
        (
            ("layout", "sgemm/shared_tile", "Z", "--twin"),
            "no buffer 'Z' in shared memory; it touches A, tile_a, B, tile_b; arrays in global memory are A,",
        ),
        (
            ("layout", "sgemm/shared_tile", "c", "--twin"),
            "'c' in shared memory, did you mean 'C'?",
        ),
        (("layout", "sgemm/naive", "--twin", "--mnk", "64,64,64"), "makes no request to shared memory"),
    ],
)
def test_bad_input(tool, arguments, part):
    code, out, err = tool(*arguments)
    assert (code, out) == (2, "") and part in err and err.count("\n") == 1


def test_what_cannot_be_written_is_said_before_anything_is_compiled(tool, monkeypatch):
    monkeypatch.setattr("tir_schedules.compiler.nvcc.compile_kernel", lambda kernel: pytest.fail("compiled"))
    assert tool(*TILE, "-o", "nowhere/picture.svg")[0] == 2
