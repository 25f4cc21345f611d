"""Paths of the user's whose names mean something to a shell: nothing of them is executed, and results are the
same."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cached import entry

from tir_schedules.compiler import places
from tir_schedules.compiler.cache import Cache, default_cache
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.places import is_plain, new_folder, scratch_folders
from tir_schedules.compiler.toolchain import find_toolchain, toolkit_folder
from tir_schedules.errors import BadInput
from tir_schedules.machines.cpu.library import load_library
from tir_schedules.model.kernel import Kernel

KERNEL = Kernel(
    "k",
    'extern "C" __global__ void k(float* a) { a[threadIdx.x] = 1.f; }',
    "k",
    ("a",),
    (1, 1, 1),
    (32, 1, 1),
    "sm_80",
)
ODD = "x$(touch ran)x\"'`touch ran`;&\n\\ü"
"""A folder's name with most of what a shell and a quoted string read otherwise."""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The places of temporary folders are one of the test's own; it is the current folder, too, where a shell
    would leave `ran`."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(places, "PLACES", (str(place),))
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.chdir(place)
    return place


def test_plain_names(tmp_path):
    plain = ["/home/a_b/c-d/e.f+1", "relative", "/"]
    odd = ["a b", 'a"b', "a$b", "a\nb", "a\n", "/a/-b", "-a", "a:b", "a,b", "é", "a\\b", "~a", "a\udcff"]
    assert [path for path in plain + odd if is_plain(path)] == plain
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    assert is_plain(tmp_path) and not is_plain(tmp_path / "link")


def test_nothing_in_a_path_is_executed_and_the_binary_is_the_same(monkeypatch, tmp_path, elsewhere):
    """Cache, temporary folder, host compiler and toolkit, all of them in a folder of an odd name."""
    expected, odd = compile_kernel(KERNEL), tmp_path / ODD
    odd.mkdir()
    (odd / "toolkit").symlink_to(toolkit_folder(find_toolchain().nvcc).parent)
    (odd / "gcc").symlink_to(shutil.which("gcc"))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(odd / "cache"))
    monkeypatch.setenv("TMPDIR", str(odd))
    monkeypatch.setenv("NVCC_CCBIN", str(odd / "gcc"))
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(odd / "toolkit/bin/nvcc"))
    assert compile_kernel(KERNEL) == expected
    assert [path.name.partition("-")[0] for path in (odd / "cache").iterdir()] == ["kernel"]
    assert sorted(os.listdir(odd)) == ["cache", "gcc", "toolkit"] and os.listdir(elsewhere) == []
    assert not list(tmp_path.rglob("ran"))


def test_a_link_does_not_hide_an_odd_name(tmp_path, elsewhere):
    """nvcc asks the system for the name of its folder, and that is told with links resolved."""
    (tmp_path / ODD).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ODD)
    seen = []
    entry(Cache(tmp_path / "link"), "kernel", "a", seen.append)
    assert [folder.parent for folder in seen] == [elsewhere] and os.listdir(elsewhere) == []


def test_no_place_at_all_is_one_line_with_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "PLACES", (str(tmp_path / "nowhere"),))
    monkeypatch.setenv("TMPDIR", str(tmp_path / ODD))
    (tmp_path / ODD).mkdir()
    with pytest.raises(
        BadInput, match="nothing can be compiled in /.* nor in .*/nowhere: set TMPDIR or TIR_SCHEDULES_CACHE"
    ) as caught:
        entry(Cache(tmp_path / ODD), "kernel", "a", lambda folder: None)
    assert "\n" not in str(caught.value)


def test_a_failed_build_leaves_nothing_in_either_place(tmp_path, elsewhere):
    def build(folder):
        (folder / "half").write_text("")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        entry(Cache(tmp_path / ODD), "kernel", "a", build)
    assert os.listdir(elsewhere) == os.listdir(tmp_path / ODD) == []


@pytest.fixture
def left(tmp_path, elsewhere):
    """A folder of a build in an odd cache that was killed, with 100 bytes in it."""
    with new_folder("", tmp_path / ODD) as folder:
        (folder / "data").write_bytes(bytes(100))
        os.utime(folder, (0, 0))
        yield folder


def test_what_a_killed_build_left_outside_the_cache_is_removed(tmp_path, elsewhere, left):
    (elsewhere / "others").mkdir()
    os.utime(elsewhere / "others", (0, 0))
    precious = tmp_path / "precious"
    precious.mkdir()
    link = elsewhere / f"{places.own_prefix()}link"
    link.symlink_to(precious)
    os.utime(precious, (0, 0))
    with new_folder("", tmp_path / ODD) as at_work:
        assert scratch_folders() == sorted([left, at_work])
        assert Cache(tmp_path / "cache").size() == 100
        entry(Cache(tmp_path / "cache"), "kernel", "a", lambda folder: None)
        assert sorted(elsewhere.iterdir()) == sorted([at_work, link, elsewhere / "others"])
    assert precious.is_dir()


def test_clearing_the_cache_frees_what_killed_builds_left_outside(tmp_path, elsewhere, left):
    assert Cache(tmp_path / "cache").clear() == 100 and os.listdir(elsewhere) == []


def test_messages_about_an_odd_cache_have_one_line(tmp_path, elsewhere):
    (tmp_path / ODD).write_text("a file")
    with pytest.raises(BadInput, match="cannot be used") as caught:
        entry(Cache(tmp_path / ODD), "kernel", "a", lambda folder: None)
    assert "\n" not in str(caught.value)


def test_a_home_that_is_not_known(monkeypatch):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", "~nobody-of-this-name/cache")
    with pytest.raises(BadInput, match="TIR_SCHEDULES_CACHE is '~nobody-of-this-name/cache'"):
        default_cache()


def test_a_relative_cache_in_a_folder_that_is_gone(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", "cache")
    with pytest.raises(
        BadInput, match="TIR_SCHEDULES_CACHE is 'cache': .*No such file or directory; name a folder"
    ):
        default_cache()


def test_the_machines_library_loads_from_a_path_that_the_loader_would_change(tmp_path):
    folder = tmp_path / "$LIB"
    folder.mkdir()
    command = ["gcc", "-shared", "-x", "c", "-", "-o", str(folder / "library.so")]
    subprocess.run(command, input=b"int answer(void) { return 42; }", check=True)
    with pytest.raises(OSError):
        ctypes.CDLL(str(folder / "library.so"))
    assert load_library(folder / "library.so").answer() == 42
    assert load_library(Path(shutil.copy(folder / "library.so", tmp_path))).answer() == 42
