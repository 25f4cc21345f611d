"""Tensor maps as arguments: of arrays that are not parameters, by value and by pointer, for loads and stores;
and maps that CUDA would refuse."""

import re
from pathlib import Path

import pytest

FILE = str(Path(__file__).parent / "kernels" / "tensor_maps.cu")
LOADED = ["--arch", "sm_90a", "--block", "64", "--let", "width=64", "--arg", "A=f32[64,64]", "--arg",
    "out=f32[64,64]:out", "--expect", "out=A", "--grid", "2,2"]  # fmt: skip


@pytest.mark.parametrize("kernel", ["by_value", "by_pointer"])
def test_a_box_is_loaded(kernel, tool):
    code, out, err = tool("check", FILE, *LOADED, "--kernel", kernel, "--arg", "map=A[32,32] swizzle 128")
    assert code == 0 and "TMA loads" in out and "1 of 1 verified" in out, out + err


def test_a_box_is_stored(tool):
    options = ("--kernel", "store_box", "--arch", "sm_90a", "--block", "32", "--arg", "x=f32[32,32]", "--arg",
        "y=f32[32,32]:out", "--arg", "map=y[32,32]")  # fmt: skip
    code, out, err = tool("check", FILE, *options, "--expect", "y=x")
    assert code == 0 and "TMA stores" in out and "1 of 1 verified" in out, out + err
    code, out, _ = tool("check", FILE, *options, "--expect", "y=2*x")
    assert code == 1 and re.search(r"wrong value, stored by \S*tensor_maps\.cu:", out)


def test_a_map_is_of_a_part_of_its_array(tool):
    part = "map=A[32,32] swizzle 128 shape [64,32] strides [256]"
    options = [*LOADED[:-1], "1,2", "--kernel", "by_value", "--arg", part]
    options[options.index("out=A")] = "out[:,:32]=A[:,:32]"
    code, out, err = tool("check", FILE, *options)
    assert code == 0, out + err


WRONG = {
    "map=A[16,32] swizzle 128": "2048 bytes are missing",
    "map=A[64,32] swizzle 128": "out_of_bounds",
    "map=A[32,32]": "wrong value",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_box_is_found(text, tool):
    code, out, _ = tool("check", FILE, *LOADED, "--kernel", "by_value", "--arg", text)
    assert code == 1 and WRONG[text] in out


REFUSED = {
    "map=A[512,32] swizzle 128": "a box of 512 elements along a dimension: there can be 1 to 256",
    "map=A[32,64] swizzle 128": "rows of the box have 256 bytes, and the swizzle 128: at most 32 elements",
    "map=A[32,33]": "rows of the box have 132 bytes: make it a multiple of 16",
    "map=A[32]": "A has 2 extents, and box stands for 1",
    "map=A[32,32] strides [256,4]": "A has 2 extents, and strides (bytes, all but the last) stands for 3",
    "map=A[32,32] strides [100]": "a pitch of 100 bytes: it has to be a multiple of 16",
    "map=A[32,32] strides [512]": "it reaches up to byte 32512 of A, which has 16384",
    "map=A[32,32] swizzle 48": "a swizzle of 48 bytes: it can be 0, 32, 64, 128",
    "map=A[32,32] fill nan": "that fill with zeros",
    "map=A[32,32] interleave 16": "maps without interleave",
    "map=A[32,32] colour red": "'colour red' is not taken; a map is such as 'A[64,64] swizzle 128'",
    "map=B[32,32] swizzle 128": "there is no array 'B'",
    "map=u8[128]": "is a tensor map; 'u8[128]' is given: say one such as 'A[64,64] swizzle 128'",
    "width=A[32,32]": "is not a tensor map; 'A[32,32]' is given",
    "": "nothing is given for `CUtensorMap_st map`",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_map_that_cannot_be_is_one_line(text, tool):
    given = ["--arg", text] if text else []
    if text.startswith("width"):
        given += ["--arg", "map=A[32,32]"]
    code, out, err = tool("check", FILE, *LOADED, "--kernel", "by_value", *given)
    assert code == 2 and not out and REFUSED[text] in err and err.count("\n") == 1, err
