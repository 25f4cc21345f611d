"""Every command that a page prints can be given: its options exist, and so do the rungs and files it names.

What pages show as output is held against it in check/test_documented.py.
"""

import re
import shlex
from pathlib import Path

import pytest

from tir_schedules.cli.main import main, parser
from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import is_ladder
from tir_schedules.ladders.registry import find
from tir_schedules.source import EXAMPLES

ROOT = Path(__file__).parents[1]
TEXTS = [
    ROOT / "README.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    *(
        page
        for name in ("tir_schedules", "experiments", "cuda_reference")
        for page in (ROOT / name).rglob("*.md")
    ),
]
PRINTED = re.compile(r"^ {4,}(?:- run: )?tir-schedules ((?:.*\\\n)*.*)$|`tir-schedules ([^`]+)`", re.M)
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}(?:_[A-Z]+)*\b|\$|\.\.\.|…|\{")
"""What a reader puts something of their own for, or a shell fills in."""

OWN = re.compile(r"^(?:\./|kernels/|mine\b)|\.(?:cu|cuh|ptx|py|zip|json|jsonl)$")
"""Files that the reader has, or that a command before has written."""

LOOKING = ("list", "emit", "doctor")
"""Verbs that are done as printed. Others have --dry-run, need a GPU, or are done by tests of their own."""


def commands_of(page):
    """The words of each command of a page without a placeholder, once."""
    found = [(one or other).replace("\\\n", " ") for one, other in PRINTED.findall(page.read_text())]
    told = (
        shlex.split(text.replace("\n", " "), comments=True) for text in found if not PLACEHOLDER.search(text)
    )
    return list(dict.fromkeys(tuple(words) for words in told if words))


PAGES = [page for page in TEXTS if commands_of(page)]
NAMES = {page: str(page.relative_to(ROOT)) for page in PAGES}


def is_mention(words):
    """Whether only a verb is named, such as `tir-schedules bench`, or an option of all."""
    return len(words) == 1 or words[0].startswith("-")


def names_in(options):
    """Rungs, ladders and files of a command."""
    given = [
        getattr(options, name, None) or () for name in ("names", "rung", "name", "family", "files", "file")
    ]
    return [name for each in given for name in ([each] if isinstance(each, (str, Path)) else each)]


def check_name(name):
    """Raises BadInput for a rung or shipped file that does not exist."""
    if name.startswith("examples/") and "*" not in name:
        assert (EXAMPLES / name.removeprefix("examples/")).is_file(), name
    elif not OWN.search(name) and not is_ladder(name):
        find(name)


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_options_rungs_and_files_exist(page):
    for words in commands_of(page):
        if is_mention(words):
            continue
        try:
            options = parser().parse_args(words)
            for name in names_in(options) if words[0] not in ("learn", "new") else ():
                check_name(str(name))
        except (BadInput, SystemExit) as error:
            pytest.fail(f"tir-schedules {shlex.join(words)}: {error}")


def test_commands_are_found_and_wrong_ones_fail(tmp_path):
    assert sum(len(commands_of(page)) for page in PAGES) > 100
    page = tmp_path / "page.md"
    for wrong in ("    tir-schedules run sgemm --no-option", "`tir-schedules emit\nsgemm/naiv`",
                  "    tir-schedules check examples/no.cu \\\n        --let n=1"):  # fmt: skip
        page.write_text(f"text\n{wrong}   # why\n")
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            test_options_rungs_and_files_exist(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_commands_that_only_look_work_as_printed_and_others_can_be_planned(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in commands_of(page):
        if is_mention(words) or words[-1] == "--tuned" or "--on" in words:  # with one's own records, or hosts
            continue
        if words[0] == "bench" and all(word[0] == "-" for word in words[1:]):  # an option in a sentence
            continue
        if any(OWN.search(word) for word in words[1:] if "examples/" not in word):
            continue
        planned = "--dry-run" in known_options(words[0]) and "--dry-run" not in words
        if words[0] in LOOKING or planned:
            assert main([*words, *["--dry-run"] * planned]) == 0, words


def known_options(verb):
    """The options of a verb, by their long names."""
    verbs = next(action for action in parser()._actions if action.choices)
    return {option for action in verbs.choices[verb]._actions for option in action.option_strings}
