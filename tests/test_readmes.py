"""READMEs name files and functions that exist."""

import re
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
