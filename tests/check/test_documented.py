"""Commands of pages about files: each is run on the files that are shipped, and prints what its page shows.

`pytest --update-golden` puts into the pages what they print now.
"""

import io
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from tir_schedules.cli.check import EPILOG
from tir_schedules.cli.main import main, parser
from tir_schedules.source import EXAMPLES

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "tir_schedules" / "check"
GUIDE = CHECK / "GUIDE.md"
PAGES = [ROOT / "README.md", ROOT / "tir_schedules" / "guides" / "commands.md", CHECK / "README.md", GUIDE,
         CHECK / "VERDICTS.md",
         ROOT / "tir_schedules" / "insight" / "README.md"]  # fmt: skip
BLOCK = re.compile(r"^    .*\n(?:(?:    .*)?\n)*", re.M)
COMMAND, CUT = "tir-schedules ", "..."
"""CUT: a line in place of those between its neighbours."""

VERBS = ("check", "inspect", "layout")
NOT_RUN = ("$TILELANG", "--watch")
"""In commands that need files of others, or do not end."""

OUTPUT = re.compile(r"\s*(?:kernel +|transpose<|examples/|\.\.\.\n)")
"""How a block begins that a command prints."""

INLINE = re.compile(rf"`({COMMAND}[^`]+)`")
FILE = re.compile(rf"{COMMAND}(?:{'|'.join(VERBS)}) (?!examples/)([^\s`]+\.(?:cu|ptx|py))\b")
OF_OTHERS = {"mm.cu", "cutlass_add*.ptx"}
"""Files that other programs write."""

SECONDS = re.compile(r"((?:pass|FAIL|HAZARD) +)\d+\.\d\d$", re.M)


def blocks(text):
    """Indented blocks as (start, end, text) without the indent. Commands and what stands below them, after an
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


def commands(block):
    """The words of each command about a file, without those that cannot be run here."""
    lines = block.replace("\\\n", " ").split("\n")
    told = [line.strip() for line in lines if line.strip().startswith(COMMAND)]
    every = [tuple(shlex.split(line.removeprefix(COMMAND), comments=True)) for line in told]
    about_files = [words for words in every if words[0] in VERBS and "examples/" in " ".join(words)]
    return [words for words in about_files if not any(part in " ".join(words) for part in NOT_RUN)]


@pytest.fixture(scope="module")
def prints(tmp_path_factory):
    """prints(words): what a command prints; each is run once."""
    folder = tmp_path_factory.mktemp("documented")

    @cache
    def run(words):
        out, told = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(told):
            patch.chdir(folder)
            patch.setenv("TRITON_CACHE_DIR", str(folder / "triton"))
            code = main(list(words))
        lines = [line for line in told.getvalue().splitlines() if not line.startswith("wrote ")]
        assert (code, lines) == (0, []), (words, out.getvalue())
        for option, file in zip(words, words[1:]):
            assert option != "-o" or (folder / file).read_text().startswith("<!doctype html>")
        return shown(out.getvalue())

    return run


def shown(text):
    """What is printed, as a page has it."""
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


def run_through(text, prints):
    """(start, end, what the page shows, what is printed) of each output. All commands are run."""
    found, last = [], []
    for command in INLINE.findall(text):
        assert all(map(prints, commands(command)))
    for start, end, block in blocks(text):
        if commands(block):
            last = [prints(words) for words in commands(block) if can_run(words)]
        elif OUTPUT.match(block) and len(last) == 1:
            found.append((start, end, block, cut_as(block, last.pop())))
    return found


def can_run(words):
    """Triton is not installed everywhere, and another version compiles otherwise."""
    if not any(word.endswith(".py") for word in words):
        return True
    try:
        import triton
    except ImportError:
        return False
    return triton.__version__ == "3.9.0"


OUTPUTS = {"GUIDE.md": 8, "/check/README.md": 3, "insight/README.md": 1}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_a_page_shows(page, prints, request):
    text = page.read_text()
    assert set(FILE.findall(text)) <= OF_OTHERS, "pages name files that are shipped"
    found = run_through(text, prints)
    if request.config.getoption("--update-golden"):
        for start, end, _, printed in reversed(found):
            body = "".join(f"    {line}".rstrip() + "\n" for line in printed.split("\n"))
            text = text[:start] + body + text[end:]
        page.write_text(text)
        return
    least = next((number for name, number in OUTPUTS.items() if str(page).endswith(name)), 0)
    assert len(found) >= least - (not can_run(["kernels.py"]))
    for _, _, block, printed in found:
        assert printed == shown(block), "pytest --update-golden (without -n) puts in what is printed now"


def test_what_the_help_names_can_be_asked(prints):
    asked = commands(EPILOG)
    assert len(asked) >= 4
    assert all(prints(words) for words in asked if can_run(words))


def test_commands_about_files_of_yours_can_be_read():
    """The same of `kernels/*.cu`, which is the reader's: their options exist."""
    page = (CHECK / "CI.md").read_text()
    lines = re.findall(r"^ +(?:- run: )?tir-schedules (check kernels/\S+.*)", page, re.M)
    assert len(lines) >= 4
    for line in lines:
        assert parser().parse_args(shlex.split(line)).files


def test_the_guide_shows_the_file_that_is_shipped():
    texts = [block for _, _, block in blocks(GUIDE.read_text())]
    file, comments = (next(one for one in texts if one.startswith(head)) for head in ("// A ", "// check:"))
    assert (EXAMPLES / "transpose.cu").read_text() == f"{file}\n\n{comments}\n"


def test_every_example_is_documented_and_says_what_it_shows():
    table = (CHECK / "README.md").read_text()
    for file in EXAMPLES.iterdir():
        if file.is_file():
            assert f"| `examples/{file.name}` |" in table
            assert file.read_text().startswith(("// ", '"""'))


def test_a_file_of_that_name_wins(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("examples")
    Path("examples/saxpy.cu").write_text("// check: --block one\n")
    code, _, told = tool("check", "examples/saxpy.cu")
    assert code == 2 and "examples/saxpy.cu:1" in told
    code, _, told = tool("check", "examples/gemmm.cu")
    assert code == 2 and "cannot read examples/gemmm.cu" in told
