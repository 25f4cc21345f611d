"""READMEs name files and functions that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("tir_schedules", "cuda_reference", "tests", "experiments")
READMES = [
    ROOT / "README.md",
    *(page for name in FOLDERS for page in sorted((ROOT / name).rglob("README.md"))),
]
PAGES = [
    *dict.fromkeys([*READMES, *(ROOT / "tir_schedules" / "check").glob("*.md")]),
    *(ROOT / "tir_schedules" / "guides").glob("*.md"),
    ROOT / "experiments" / "RESULTS.md",
    ROOT / ".github" / "CONTRIBUTING.md",
]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PLACE = re.compile(r"`(?:\w+\.)?(\w+)`\s+in\s+`([\w/]+\.\w+)`")
"""What a file has: "`find` in `ladders/registry.py`"."""


def places(page):
    return [(name, page.parent / path) for name, path in PLACE.findall(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_items_of_lists_are_apart(page):
    """An item that begins with another list's mark was joined to others by an editor."""
    assert re.findall(r"^\s*- - .*", page.read_text(), re.M) == []


@pytest.mark.parametrize("page", READMES, ids=lambda page: str(page.relative_to(ROOT)))
def test_functions_are_where_a_page_says(page):
    missing = [
        f"{name} in {path}"
        for name, path in places(page)
        if not path.exists() or not re.search(rf"\b{name}\b", path.read_text())
    ]
    assert missing == []


def test_the_questions_of_the_package_are_answered_by_functions():
    names = [name for name, _ in places(ROOT / "tir_schedules" / "README.md")]
    assert {"find", "run_block", "WarpBarrier", "conflict_degree", "validated", "records"} <= set(names)


def test_the_ladders_are_listed_in_full():
    from tir_schedules.ladders.registry import FAMILIES, rung_names

    page = (ROOT / "tir_schedules" / "ladders" / "README.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert listed == [name for family in FAMILIES for name in rung_names(family)]


def printed_commands(text):
    """The indented lines of a page that are commands, those that a backslash continues in one."""
    return re.findall(r"^    ((?:tir-schedules|sed) (?:.*\\\n)*.*)$", text, re.M)


def test_the_five_things_of_the_readme_work_as_printed(tmp_path):
    text = (ROOT / "README.md").read_text()
    things = text[text.index("## Five things to try") : text.index("## Results")]
    commands, failing = printed_commands(things), ("--source broken.cu", "learn check")
    assert len(commands) == len(re.findall(r"^    (?:tir-schedules|sed) ", things, re.M)) > 10
    script = f'tir-schedules() {{ {sys.executable} -m tir_schedules "$@"; }}\n'
    for command in commands:
        told = f"echo 'failed: '{command.split()[1]!r} >&2; exit 99"
        script += f"{command}\ntest $? -eq {int(any(one in command for one in failing))} || {{ {told}; }}\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    start = re.search(r"^    (race: .*?) \.\.\.$", things, re.M)
    assert start and start[1] in re.sub(r"\s+", " ", done.stdout)


def test_the_readme_is_short_and_ci_calls_its_two_commands():
    text, called = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    assert text.count("\n") <= 150
    first, second = re.findall(r"^    ((?:pip|pytest) .*?) +#", text, re.M)
    for command in (*first.split(" && ")[1:], second):
        assert re.search(rf"^{re.escape(command)}\b", called, re.M), command


@pytest.mark.slow
def test_the_picture_is_what_the_machine_executes(tmp_path, monkeypatch):
    import picture

    assert picture.main(["--check"]) == 0
    changed = tmp_path / "banks.svg"
    changed.write_text(picture.PICTURE.read_text().replace("lanes 0-7", "lanes 0-8", 1))
    monkeypatch.setattr(picture, "PICTURE", changed)
    assert picture.main(["--check"]) == 1
