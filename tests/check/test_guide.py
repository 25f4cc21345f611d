"""The guide: its commands are run in their order, on its file, and print what it shows.

`pytest --update-golden` puts into the page what they print now.
"""

import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "tir_schedules" / "check" / "GUIDE.md"
BLOCK = re.compile(r"^    .*\n(?:(?:    .*)?\n)*", re.M)
COMMAND, COMMENT, FILE = "tir-schedules ", "// check:", "// my.cu"
CUT = "..."
"""A line in place of those between its neighbours."""

SECONDS = re.compile(r"((?:pass|FAIL|HAZARD) +)\d+\.\d\d$", re.M)


def blocks(text):
    """Indented blocks as (start, end, text) without the indent. A command and what stands below it, after an
    empty line, are two."""
    for match in BLOCK.finditer(text):
        body = match[0].rstrip("\n") + "\n"
        parts = [body]
        if body.startswith(f"    {COMMAND}"):
            parts = re.findall(r".+?\n(?=\n)|.+", body, re.S)[:1]
            parts += [body[len(parts[0]) :]] if len(parts[0]) < len(body) else []
        start = match.start()
        for part in parts:
            inner = part.lstrip("\n")
            first, start = start + len(part) - len(inner), start + len(part)
            yield first, start, "\n".join(line[4:] for line in inner.rstrip("\n").split("\n"))


def words_of(command):
    return shlex.split(command.removeprefix(COMMAND).replace("\\\n", " "), comments=True)


def shown(text):
    """What is printed, as the page has it."""
    return SECONDS.sub(r"\g<1>0.01", "\n".join(line.rstrip() for line in text.strip("\n").split("\n")))


def cut_as(page, printed):
    """What is printed, cut as the page cuts it: its parts have as many lines; the first begins where that
    begins, others where their first line stands."""
    parts = [part.strip("\n").split("\n") for part in re.split(r"^\.\.\.$", page, flags=re.M)]
    if len(parts) == 1:
        return printed
    told, found, last = printed.split("\n"), [], 0
    for part in parts:
        if part != [""]:
            last = told.index(part[0], last) if found else 0
            found += [*told[last : last + len(part)]]
        found += [CUT]
    return "\n".join(found[:-1])


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text()


def run_through(text, tool):
    """(start, end, what the page shows, what is printed) of each output."""
    found, printed = [], None
    path = Path("my.cu")
    for start, end, block in blocks(text):
        if block.startswith(FILE):
            path.write_text(block + "\n")
        elif block.startswith(COMMENT):
            path.write_text(path.read_text() + "\n" + block + "\n")
        elif block.startswith(COMMAND) and block.replace("\\\n", "").count("\n") == 0:
            assert printed is None, "the page does not show what this follows"
            code, out, error = tool(*words_of(block))
            assert code == 0 and not error, error
            printed = shown(out)
        elif not block.startswith(COMMAND):
            assert printed is not None, f"no command prints {block}"
            found.append((start, end, block, cut_as(block, printed)))
            printed = None
    return found


def test_the_commands_print_what_the_page_shows(page, tool, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    found = run_through(page, tool)
    if request.config.getoption("--update-golden"):
        text = page
        for start, end, _, printed in reversed(found):
            body = "".join(f"    {line}".rstrip() + "\n" for line in printed.split("\n"))
            text = text[:start] + body + text[end:]
        PAGE.write_text(text)
        return
    assert len(found) == 8
    for _, _, block, printed in found:
        assert printed == block, "pytest --update-golden (without -n) puts in what is printed now"


def test_what_the_page_ends_with_can_be_asked(page, tool, tmp_path, monkeypatch):
    """The last block: commands one below the other; the one for a GPU is left out."""
    monkeypatch.chdir(tmp_path)
    texts = [block for _, _, block in blocks(page)]
    file, comments = (next(one for one in texts if one.startswith(head)) for head in (FILE, COMMENT))
    Path("my.cu").write_text(f"{file}\n\n{comments}\n")
    for line in texts[-1].split("\n"):
        words = words_of(line)
        if words[0] != "profile":
            code, _, error = tool(*words)
            assert code == 0 and not error, error
    assert "transpose&lt;32, 8, 1&gt;" in Path("my.html").read_text()
