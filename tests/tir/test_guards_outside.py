"""Guards of C's rows in front of the loops over columns, and main loops of copies in whole tiles."""

import re

import pytest
from lowered import source
from test_wrapped_edges import guards

from tir_schedules.workloads.gemm import Gemm

TILES = ("64x64,filled=1,splits=1", "64x128,filled=1,splits=2")
SHAPE = Gemm(133, 139, 101)
AROUND_COLUMNS = re.compile(r"if \([^\n]* < 133\) \{\n(?:#pragma unroll\n| )*for ")
AT_ONCE = re.compile(r"< 133\) && ")


@pytest.mark.parametrize("tile", TILES)
def test_rows_are_asked_for_once(tile):
    name = f"sgemm/split_k:{tile}"
    before, text = source(name, SHAPE, ["guards_outside"]), source(name, SHAPE)
    assert AT_ONCE.search(before) and not AROUND_COLUMNS.search(before)
    assert AROUND_COLUMNS.search(text) and not AT_ONCE.search(text)


@pytest.mark.parametrize("tile", TILES)
def test_copies_of_whole_tiles_have_no_guards(tile):
    assert not guards(source(f"sgemm/split_k:{tile}", SHAPE))
    assert guards(source(f"sgemm/split_k:{tile.replace('filled=1', 'filled=0')}", SHAPE))
