"""What a kernel was lowered to is kept, and served again for the same PTX, entry and code alone."""

import pickle
import zlib
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from ptx_kernels import module

from tir_schedules.compiler.cache import MANIFEST, damage, write_manifest
from tir_schedules.compiler.code import hash_of
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import kernels
from tir_schedules.machines.cpu.kernels import FILE, link, lowered_kernel, made
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

BODY = """.shared .align 16 .b8 tile[64]; .reg .b32 a, b; .reg .pred p;
mov.u32 a, %tid.x; setp.lt.u32 p, a, 16; @p st.shared.v2.u32 [tile], {a, 7}; ld.shared.u32 b, [tile+4];
bar.sync 0;"""
PTX = module("first", ["X"], BODY) + module("second", ["X"], BODY.replace("7", "8")).partition(".visible")[2]
OTHER = PTX.replace("16;", "17;")


@pytest.fixture
def lowered(monkeypatch, tmp_path):
    """PTX and entry of each kernel that is lowered from here on, not read, in a cache of its own."""
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    found = []

    def noted(ptx, entry):
        found.append((ptx, entry))
        return made(ptx, entry)

    monkeypatch.setattr(kernels, "made", noted)
    return found


def same(one, other):
    pairs = [(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)]
    assert all(type(a) is type(b) for a, b in pairs)
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


def test_each_kernel_is_lowered_once(lowered):
    asked = [(PTX, "first"), (PTX, "second"), (OTHER, "first")]
    for _ in range(2):
        found = [lowered_kernel(*each) for each in asked]
        assert all(same(kernel, made(*each)) for kernel, each in zip(found, asked))
    assert lowered == asked
    assert not same(found[0], found[1]) and not same(found[0], found[2])


@pytest.mark.parametrize("what", ["CODE", "sys.version", "np.__version__"])
def test_what_other_code_lowered_is_not_served(what, lowered, monkeypatch):
    lowered_kernel(PTX, "first")
    monkeypatch.setattr(f"tir_schedules.machines.cpu.kernels.{what}", "another")
    lowered_kernel(PTX, "first")
    assert len(lowered) == 2


def test_the_code_is_that_of_the_machine(monkeypatch, tmp_path):
    """A changed, an added and a moved file each give another hash; another kind of file does not."""
    monkeypatch.setattr("tir_schedules.compiler.code.resources.files", lambda package: tmp_path)
    places, hashes = ["cpu/parser.py", "cpu/instructions/bits.py", "cpu/parser.py", "cpu/README.md"], []
    (tmp_path / "cpu/instructions").mkdir(parents=True)
    for number, place in enumerate(places):
        (tmp_path / place).write_text(str(number))
        hash_of.cache_clear()
        hashes.append(hash_of("cpu"))
    hash_of.cache_clear()
    assert len(set(hashes)) == 3 and hashes[2] == hashes[3]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        zlib.compress(b"no pickle"),
        zlib.compress(pickle.dumps(made(PTX, "first"))[:-100]),
        zlib.compress(b"cno_such_module\nname\n."),
        zlib.compress(pickle.dumps("something else")),
    ],
    ids=["empty", "no archive", "no pickle", "cut off", "unknown class", "another class"],
)
def test_what_cannot_be_read_is_lowered_again(content, lowered, tmp_path):
    lowered_kernel(PTX, "first")
    (entry,) = tmp_path.iterdir()
    (entry / FILE).write_bytes(content)
    (entry / MANIFEST).unlink()
    write_manifest(entry)
    assert damage(entry) is None
    assert same(lowered_kernel(PTX, "first"), made(PTX, "first"))
    assert len(lowered) == 2


def test_linking_leaves_what_was_lowered_as_it_is():
    kernel, library = made(PTX, "first"), SimpleNamespace(function=lambda name: 1)
    library.lane_functions = lambda signatures: {signature.text: 2 for signature in signatures}
    first, second = (link(library, kernel) for _ in range(2))
    assert same(kernel, made(PTX, "first"))
    assert {*first.arrays[0]["run"]} == {*second.arrays[0]["run"]} == {1, 2}


def test_errors_are_not_kept(lowered, tmp_path):
    unknown = PTX.replace("bar.sync 0", "bar.arrive 0")
    for _ in range(2):
        with pytest.raises(UnsupportedInstruction, match="bar.arrive .without a number of threads"):
            lowered_kernel(unknown, "first")
        with pytest.raises(CheckFailed, match="^the PTX has no entry third$"):
            lowered_kernel(PTX, "third")
    assert len(lowered) == 4 and list(tmp_path.iterdir()) == []


def test_a_kernel_runs_where_nothing_can_be_kept(lowered, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "file"))
    assert same(lowered_kernel(PTX, "first"), made(PTX, "first"))
