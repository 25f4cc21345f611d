"""The core's folders: each includes those below it alone, and its README names every file."""

import re
from importlib import resources

import pytest

CORE = resources.files("tir_schedules.machines.cpu") / "core"
BELOW = {
    "lanes": {"lanes"},
    "cost": {"cost", "lanes"},
    "state": {"state", "lanes"},
    "observe": {"observe", "cost", "state", "lanes"},
    "check": {"check", "state", "lanes"},
    "async": {"async", "check", "observe", "state", "lanes"},
    "exec": {"exec", "async", "check", "observe", "state", "lanes"},
}
"""Folder -> the folders that its files may include; beside these, all may include what is generated."""

GENERATED = {"abi.h", "operands.h"}
FILES = [
    f"{folder.name}/{file.name}" for folder in CORE.iterdir() if folder.is_dir() for file in folder.iterdir()
]
README = (CORE / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_file_includes_what_lies_below_it(name):
    folder = name.split("/")[0]
    for included in re.findall(r'#include "(.+)"', (CORE / name).read_text(encoding="utf-8")):
        assert included in GENERATED or included.split("/")[0] in BELOW[folder], f"{name} includes {included}"


@pytest.mark.parametrize("name", FILES)
def test_the_diagram_names_every_file(name):
    folder, file = name.split("/")
    (diagram,) = re.findall(r"```\n(.+?)```", README, re.S)
    stem = file.partition(".")[0]
    assert f"{folder}/" in diagram and (stem in diagram or file == f"{folder}.h")
