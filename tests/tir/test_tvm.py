"""What TVM's parser of PrimFuncs is spared."""

from tir_schedules.tir.tvm import import_tvm

import_tvm()
from tvm.script import tirx as T  # noqa: E402
from tvm.script.parser.core import doc  # noqa: E402


def made(extent: int):
    @T.prim_func(s_tir=True)
    def function(a: T.handle) -> None:
        A = T.match_buffer(a, (extent,), "float32")
        for i in range(extent):
            with T.sblock("one"):
                A[i] = T.float32(1)

    return function


def test_a_function_is_read_once_and_made_with_the_values_around_it():
    first = made(4)
    read = doc.parse.cache_info().misses
    second = made(8)
    assert doc.parse.cache_info().misses == read
    assert "range(4)" in first.script() and "range(8)" in second.script()
