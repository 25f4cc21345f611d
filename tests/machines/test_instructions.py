"""The table of instruction families: it is whole, and its families do not get in each other's way."""

import pkgutil

import pytest

from tir_schedules.machines.cpu import instructions
from tir_schedules.machines.cpu.instructions import FAMILIES, ROWS, row_of_opcode
from tir_schedules.machines.cpu.library import the_library

NAMES = [family.__name__.rpartition(".")[2] for family in FAMILIES]


def test_every_family_is_in_the_table():
    assert sorted(NAMES) == sorted(module.name for module in pkgutil.iter_modules(instructions.__path__))


def test_no_two_families_have_one_instruction():
    assert len(ROWS) == sum(len(family.ROWS) for family in FAMILIES)


def test_functions_of_the_core_are_found_by_name():
    library = the_library()
    names = ["ld.shared", "cp.async", "shfl", "mma", "undefined.flow"]
    assert len({library.function(name) for name in names}) == len(names)
    with pytest.raises(KeyError):
        library.function("no such function")


def test_a_longer_name_goes_before_a_shorter_one():
    assert row_of_opcode("bar.warp.sync") is ROWS["bar.warp"] is not ROWS["bar"]
    assert row_of_opcode("bar.sync") is ROWS["bar"]
    assert row_of_opcode("cp.nonsense.x") is row_of_opcode("nonsense")
    assert row_of_opcode("cp.async.bulk.tensor.1d") is ROWS["cp.async.bulk.tensor"] is not ROWS["cp.async"]
