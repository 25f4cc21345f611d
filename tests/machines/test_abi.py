"""Structures, constants and numberings of abi.py against what the C++ core says of its own."""

import ctypes

import numpy as np
import pytest

from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.library import the_library

STRUCTURES = {
    "BasicBlock": abi.BASIC_BLOCK,
    "BlockCount": abi.BLOCK_COUNT,
    "Buffer": abi.BUFFER,
    "Counter": abi.COUNTER,
    "Event": abi.EVENT,
    "Extent": abi.EXTENT,
    "Finding": abi.FINDING,
    "LaunchArguments": abi.LaunchArguments,
    "Merge": abi.MERGE,
    "MicroOp": abi.MICRO_OP,
    "Moved": abi.MOVED,
    "Cell": abi.CELL,
    "Program": abi.Program,
    "Record": abi.RECORD,
    "Request": abi.REQUEST,
    "Said": abi.Said,
    "TensorMap": abi.TENSOR_MAP,
    "Undefined": abi.UNDEFINED,
    "Watch": abi.Watch,
}
ENUMERATIONS = (
    abi.Space,
    abi.Act,
    abi.Counting,
    abi.Exit,
    abi.Flag,
    abi.Happening,
    abi.Trait,
    abi.How,
    abi.Polls,
    abi.Scope,
)
CONSTANTS = (
    "BUFFER_SHIFT",
    "SHARED_WINDOW",
    "LOCAL_WINDOW",
    "FUNCTION_WINDOW",
    "FUNCTION_BYTES",
    "MAP_MARK",
    "NONE",
    "RANK_SHIFT",
    "RIGHT_FACTOR",
)


@pytest.fixture(scope="module")
def core():
    """Name -> numbers, as the core says them."""
    lines = the_library().core.layout().decode().splitlines()
    return {name: tuple(map(int, numbers)) for name, *numbers in map(str.split, lines)}


def layout(structure):
    """Bytes of a structure, and offset and bytes of each field."""
    if isinstance(structure, np.dtype):
        fields = {name: (offset, kind.itemsize) for name, (kind, offset, *_) in structure.fields.items()}
        return structure.itemsize, fields
    there = {name: getattr(structure, name) for name, _ in structure._fields_}
    return ctypes.sizeof(structure), {name: (field.offset, field.size) for name, field in there.items()}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(core, name):
    size, fields = layout(STRUCTURES[name])
    assert core[name] == (size,)
    there = {key: numbers for key, numbers in core.items() if key.startswith(f"{name}.")}
    assert there == {f"{name}.{field}": numbers for field, numbers in fields.items()}


@pytest.mark.parametrize("enumeration", ENUMERATIONS, ids=lambda enumeration: enumeration.__name__)
def test_enumerations(core, enumeration):
    name = enumeration.__name__
    there = {key: numbers for key, numbers in core.items() if key.startswith(f"{name}.")}
    assert there == {f"{name}.{member.name}": (member.value,) for member in enumeration}


@pytest.mark.parametrize(
    "name, members, count",
    [
        ("Kind", [kind.upper() for kind in abi.FINDING_KINDS], "KINDS"),
        ("Special", [register.upper().replace(".", "_") for register in abi.SPECIAL], "SPECIALS"),
    ],
)
def test_lists_of_names(core, name, members, count):
    there = {key: numbers for key, numbers in core.items() if key.startswith(f"{name}.")}
    assert there == {f"{name}.{member}": (k,) for k, member in enumerate(members)}
    assert core[count] == (len(members),)


def test_constants(core):
    assert {name: core[name] for name in CONSTANTS} == {name: (getattr(abi, name),) for name in CONSTANTS}


def test_nothing_is_left_out(core):
    """Every name the core says is compared by one of these tests."""
    known = {*STRUCTURES, *CONSTANTS, "Kind", "Special", *(one.__name__ for one in ENUMERATIONS)}
    assert {name.partition(".")[0] for name in core} == known | {"KINDS", "SPECIALS"}
