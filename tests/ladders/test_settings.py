"""Fields of a configuration set on the command line, wherever a rung is named."""

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.ladders.settings import value_of


@pytest.mark.parametrize(
    "name, fields",
    [
        ("sgemm/vectorized:bm=64,tm=2", {"bm": 64, "bn": 128, "tm": 2}),
        ("sgemm/transposed:32x32,bm=64", {"bk": 32, "bm": 64, "tm": 4}),
        ("sgemm/multistage:rows_first=1", {"rows_first": 1}),
        ("hgemm/wmma_padded:skew=16", {"padding": 16}),  # as the field was called once
    ],
)
def test_fields_are_set_on_top_of_a_configuration(name, fields):
    (rung,) = find(name)
    assert rung.id == name.replace("skew", "padding")
    assert {field: getattr(rung.config, field) for field in fields} == fields


@pytest.mark.parametrize(
    "name, message",
    [
        ("sgemm/vectorized:bm=64,bm=32", "sgemm/vectorized is given bm twice"),
        ("sgemm/vectorized:bx=3", "has no field 'bx'; its fields: bm, bn, bk, tm, tn"),
        ("sgemm/pipelined:wmite=3", "has no field 'wmite', did you mean 'wmiter'.*; its fields: bm, bn"),
        ("sgemm/vectorized:bm=64,tm", "takes NAME=VALUE, not 'tm'; its fields: bm"),
        ("sgemm/vectorized:bm=x", "bm of sgemm/vectorized is 128; it takes an integer from 0 to 999999999"),
        ("sgemm/vectorized:bm=-1", "integer from 0 .* not '-1'"),
        ("sgemm/vectorized:bm=", "integer from 0 .* not ''"),
        ("sgemm/split_k:splits=1000000000", "splits .* is 0; .* to 999999999, not '1000000000'"),
        ("sgemm/transposed:33x33,bm=64", "has no configuration '33x33', did you mean '32x32'"),
        ("sgemm/vectorized:bm", "there is no rung 'sgemm/vectorized:bm'"),
        ("sgemm/nothing:bm=64", "there is no rung 'sgemm/nothing:bm=64'"),
    ],
)
def test_what_cannot_be_is_one_line(name, message):
    with pytest.raises(BadInput, match=message):
        find(name)


def test_values_have_the_type_that_the_field_has():
    assert [value_of("x", True, text) for text in ("false", "1", "True")] == [False, True, True]
    assert value_of("x", 1.5, "2e3") == 2000 and value_of("x", "half", "float") == "float"
    for now, text in ((True, "2"), (1.5, "a"), ((1, 2), "3"), (1, "٣")):
        with pytest.raises(BadInput, match="^x "):
            value_of("x", now, text)


@pytest.mark.parametrize(
    "name, message",
    [
        ("sgemm/split_k:stages=2", "stages must be 3 or more"),
        ("sgemm/split_k:64x64,tm=3", "32 lanes in pairs of rows"),
        ("sgemm/vectorized:tm=3", "thread tiles must divide the block tile"),
        ("sgemm/vectorized:tm=0", "cannot be built for .*: a field that others are divided by is 0"),
        ("sgemm/vectorized:bm=512", "a block of 32x128x1 threads cannot be; CUDA allows 1 to 1024"),
        ("sgemm/multistage:bm=100", "warp tiles must divide the block tile"),
        ("sgemm/multistage:stages=2", "stages must be 3 or more"),
        ("sgemm/pipelined:padding=32", "padded by less than 32 floats, a multiple of 4"),
        ("sgemm/stream_k:padding=1", "padded by less than 32 floats, a multiple of 4"),
        ("sgemm/tma:bn=16,wn=16,wniter=1", "bn is 16: it is more than 32"),
        ("sgemm/split_k:64x64,padding=32", "padded by less than 32 floats"),
        ("sgemm/warp_tiling:tm=2", "32 lanes, tm x tn each, must cover"),
        ("sgemm/lane_quads:tm=2", "32 lanes in pairs of rows"),
        ("sgemm/tma:tm=2", "32 lanes in pairs of rows"),
        ("sgemm/tma:wm=48", "warp tiles of 48x64 do not divide"),
        ("hgemm/wmma_padded:wm=48", "warp tiles must divide the block tile"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "emit"])
def test_the_rungs_constraints_hold(verb, name, message, tool):
    code, out, err = tool(verb, name)
    assert code == 2 and err.count("\n") == 1 and not out
    with pytest.raises(BadInput, match=message):
        raise BadInput(err)


def test_schedule_and_twin_take_the_fields(tool):
    code, out, _ = tool("run", "sgemm/vectorized:bm=64,bn=64,tm=8", "--mnk", "64,64,64")
    assert code == 0 and out.splitlines()[1].split()[2:4] == ["pass", "pass"]
    assert "block 16x8x1" in tool("emit", "sgemm/vectorized:bm=64,bn=64,tm=8", "--twin")[1]
