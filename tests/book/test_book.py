"""The book: its pages of a few chapters, its links, search, commands and numbers."""

import inspect
import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import browser as looking
import pytest

from tir_schedules.book import records, site
from tir_schedules.book.chapters import SENTENCE, chapter_rungs, module_of, proven
from tir_schedules.book.records import ABSENT, find_records
from tir_schedules.book.site import HERE, Book, Entry, build, commands_of, write
from tir_schedules.book.text import check_numbers, read_glossary
from tir_schedules.cli.main import main
from tir_schedules.errors import BadInput
from tir_schedules.lessons.lesson import all_lessons

CHAPTERS = ("sgemm/naive", "reduce/interleaved", "hgemm/wgmma_async", "hgemm/tma")
"""Of each ladder; with bank conflicts, with warps in time, with a ring."""

WORDS = "wavefront sector twin rung lane tile stage occupancy roofline".split()


@pytest.fixture(scope="module")
def book():
    """A book of some chapters, and its pages."""
    made = Book(find_records(None), CHAPTERS)
    return made, build(made)


@pytest.fixture(scope="module")
def folder(book, tmp_path_factory):
    place = tmp_path_factory.mktemp("book") / "site"
    write(book[1], place)
    return place


class Links(HTMLParser):
    """What a page links to, the ids it has, and what it would load."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.loads = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found["id"]} if "id" in found else set()
        if tag == "a":
            self.links.append(found["href"])
        elif "src" in found or tag == "link" and not found.get("href", "").startswith("data:"):
            self.loads.append(found)


def dead_links(folder):
    pages = {path: Links(path.read_text()) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if link.startswith("https://"):
                continue
            if target not in pages or anchor and anchor not in pages[target].ids:
                yield f"{path.relative_to(folder)}: {link}"


def test_every_link_leads_somewhere_and_nothing_is_loaded(folder):
    assert [*dead_links(folder)] == []
    assert [one for path in folder.rglob("*.html") for one in Links(path.read_text()).loads] == []


def test_every_page_links_to_the_glossary_and_the_search(folder):
    for path in folder.rglob("*.html"):
        links = {link.rpartition("/")[2].partition("#")[0] for link in Links(path.read_text()).links}
        assert {"glossary.html", "search.html", "index.html"} <= links, path


def test_a_dead_link_is_found(folder, tmp_path):
    write([Entry("a.html", "", '<a href="b.html"></a><a href="#x"></a>', "")], tmp_path)
    assert [*dead_links(tmp_path)] == ["a.html: b.html", "a.html: #x"]


def test_the_glossary_has_the_words_of_the_field():
    ids = read_glossary(site.PACKAGE / "lessons" / "GLOSSARY.md").ids
    assert [word for word in WORDS if word not in ids] == []


def test_a_chapter_has_its_parts(book):
    made, entries = book
    pages = {one.title: one.html for one in entries}
    for chapter in made.chapters:
        page = pages[chapter.name]
        assert page.partition("<main>")[2].count("<figure>") == len(chapter.figures) > 0
        assert [code.title for code in chapter.codes] == [
            "The schedule", "The CUDA that TVM emits", "The twin, by hand",
        ]  # fmt: skip
        assert "predicted by" in page and "measured, " in page and "What to try next" in page
        assert all(any(any(line.cells) for line in code.lines) for code in chapter.codes[1:])
    titles = {one.name: [figure.title for figure in one.figures] for one in made.chapters}
    assert "Who computes what" in titles["sgemm/naive"]
    assert "Shared memory, bank by bank" in titles["reduce/interleaved"]
    assert "The pipeline, cycle by cycle" in titles["hgemm/wgmma_async"]
    assert "The pipeline" in titles["hgemm/tma"]
    assert "8 wavefronts each, 1 without bank conflicts" in pages["reduce/interleaved"]


def test_counts_are_those_of_the_execution(book):
    """A warp of `naive` reads a column of A in 32 sectors, and one element of B: 16.5 on average."""
    naive = next(one for one in book[0].chapters if one.name == "sgemm/naive")
    assert [line.cells[3] for line in naive.codes[1].lines if line.cells and line.cells[3]][0] == "16.5"


def test_the_search_has_what_pages_say(book):
    search = next(one for one in book[1] if one.address == "search.html")
    index = json.loads(
        re.search(r'data-index="([^"]*)"', search.html)[1]
        .replace("&#34;", '"')
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
    )
    assert {address for address, _, _ in index} >= {one.address for one in book[1]} - {"search.html"}
    found = [address for address, title, text in index if "bank conflict" in f"{title} {text}".lower()]
    assert {"rungs/reduce-interleaved.html", "articles/004.html", "glossary.html#bank"} <= {*found}


def test_a_reader_finds_bank_conflicts(browser, folder):
    viewport = {"width": 1280, "height": 900}
    with looking.opened(browser, folder / "rungs" / "sgemm-naive.html", viewport, "light") as (page, noticed):
        page.fill("input[type=search]", "bank conflict")
        page.keyboard.press("Enter")
        page.wait_for_selector("#found li a")
        shown = page.eval_on_selector_all("#found li a", "all => all.map(one => one.getAttribute('href'))")
        assert "articles/004.html" in shown and "pages with" in page.inner_text("#told")
        assert not [line for line in noticed if not line.startswith("network: asks for file:")]


LOOKED_AT = ("index", "search", "rungs/reduce-interleaved", "rungs/hgemm-wgmma_async")
FURTHER = ("glossary", "lessons", "articles/004", "guides/validation", "guides/own-rung", "guides/reference",
           "rungs/sgemm-naive", "rungs/hgemm-tma")  # fmt: skip


@pytest.mark.parametrize(
    "name", [*LOOKED_AT, *(pytest.param(name, marks=pytest.mark.slow) for name in FURTHER)]
)
def test_pages_look_right_on_a_phone_and_on_wide_screens(browser, folder, name, monkeypatch):
    monkeypatch.setitem(looking.SCREENS, "wide", (1920, 1080))
    assert looking.faults_of(browser, folder / f"{name}.html") == []


@pytest.mark.parametrize("screen", looking.SCREENS)
def test_pictures_are_whole_or_scroll_sideways_and_say_so(browser, folder, screen):
    width, height = looking.SCREENS[screen]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto((folder / "rungs/hgemm-wgmma_async.html").as_uri())
    boxes = page.evaluate("""() => [...document.querySelectorAll("figure .scroll")].map(box => [
        box.scrollHeight > box.clientHeight, box.scrollWidth > box.clientWidth,
        box.parentElement.querySelector(".sideways").getBoundingClientRect().height > 0])""")
    page.close()
    assert boxes and not any(cut for cut, _, _ in boxes)
    assert all(told == wider for _, wider, told in boxes)
    assert any(wider for _, wider, _ in boxes) == (screen == "phone")


# ---- numbers
@pytest.mark.parametrize(
    "text",
    [
        "It is 3 times as fast.",
        "- 12.5 TFLOPS",
        "It has {{ 32 }} banks.",
        "It has {{ '32' }} banks.",
        "| sgemm | 3 |",
    ],
)
def test_a_number_in_the_text_fails_the_build(text):
    with pytest.raises(BadInput, match=r"page.md:3: the number .* is in the text"):
        check_numbers(f"# Title\n\n{text}\n", "page.md")


def test_names_code_and_what_is_looked_up_may_have_digits():
    check_numbers(
        "An H100, fp32, thread_tile_2d, article 003, `x[3]`, {{ rate('4096') }}\n\n1. One\n", "page.md"
    )


def test_a_number_that_is_not_recorded_fails_the_build(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text('It has {{ rate("sgemm", "sgemm/naive", "77") }}.\n')
    monkeypatch.setattr(site, "HERE", tmp_path)
    monkeypatch.setattr(site, "PACKAGE", tmp_path / "package")
    with pytest.raises(BadInput, match="nothing is recorded of sgemm/naive at 77"):
        Book(find_records(None)).check_texts()


def test_measured_figures_of_docstrings_are_left_out():
    text = "Tiles.\n\nIt copies ahead. On an H200 that is worth 3 %. So it stays.\n\nA block has 8 warps."
    assert proven(text) == "Tiles.\n\nIt copies ahead.\n\nA block has 8 warps."
    assert proven("Measured on an H200 at 4096: 694 TFLOPS, 1.01 times the 684 of `x`.") == ""


# ---- an installed package
@pytest.mark.parametrize("rung", chapter_rungs(), ids=lambda rung: rung.id)
def test_no_reason_is_left_out_with_a_figure(rung):
    """A sentence that is left out has a figure, and does not say why something is as it is."""
    text = inspect.getdoc(module_of(rung))
    kept = " ".join(proven(text).split())
    for paragraph in text.split("\n\n"):
        for sentence in (" ".join(one.split()) for one in SENTENCE.split(paragraph)):
            if sentence.removesuffix(":") not in kept:
                assert re.search(r"\d", sentence)
                assert not re.search(r"\bbecause\b|\bso that\b|^So\b", sentence)


def test_what_announces_a_list_that_is_left_out_ends():
    assert (
        proven("Rates:\n\n- one: 3 GB/s") == "Rates." and proven("Parts:\n\n    a b") == "Parts:\n\n    a b"
    )


def test_texts_link_to_the_fastest_rung_and_chapters_to_their_lessons():
    written = Book(None).writer(HERE, "../", "sgemm").inline("`sgemm/fastest` or `fastest`")
    assert written.count('href="../guides/fastest.html"') == 2
    lessons = [one.id for one in all_lessons() if one.one("rung") == "sgemm/tf32"]
    assert lessons == ["beyond/split_precision"]


def test_without_recorded_results_chapters_say_so(book, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "DEFAULT_FOLDER", tmp_path / "none")
    assert find_records(None) is None
    bare = Book(None, CHAPTERS, book[0].chapters)
    bare.check_texts()
    pages = {one.address: one.html for one in bare.pages()}
    chapter = pages["rungs/sgemm-naive.html"]
    assert ABSENT.split(".")[0] in chapter and "TFLOPS" not in chapter.partition('id="gains"')[2]
    assert "times the rate" not in pages["articles/003.html"]


def test_chapters_show_results_of_ones_own_and_prose_does_not(tmp_path):
    """A folder with one recording of one ladder is enough."""
    own = tmp_path / "mine"
    own.mkdir()
    name = "bench_sgemm_h200.json"
    (own / name).write_bytes((records.DEFAULT_FOLDER / name).read_bytes())
    found = find_records(own)
    made = Book(found)
    made.check_texts()
    assert not made.values["recorded"] and made.values["times"]
    assert [gain.title for gain in found.gains("sgemm/naive", [])] == ["sgemm"]
    assert [*found.gains("reduce/shuffle", [])] == found.predicted("sgemm/naive") == []


def test_the_package_has_the_sources_of_the_book():
    import tomllib

    told = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())
    kinds = {one.removeprefix("*") for one in told["tool"]["setuptools"]["package-data"]["*"]}
    assert {path.suffix for path in HERE.rglob("*") if path.is_file()} - {".py", ".pyc"} <= kinds


# ---- the command
@pytest.mark.parametrize(
    "words, told",
    [
        (["--only", "sgemm/naiv"], "the book has no chapter 'sgemm/naiv', did you mean 'sgemm/naive'?"),
        (["-o", "full"], "full has other files than a book: name a new folder, such as -o site/"),
        (["-o", "/proc/book"], "cannot make /proc/book: "),
        (["-o", "full/file/site"], "cannot write full/file/site: "),
        (["-o", "full/file"], "full/file is a file: name a folder for the book, such as -o site/"),
        (["--results", "none"], "--results none: there is no such folder"),
        (["--results", "full"], "no times of a ladder in full"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert main(["book", *words]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1
    assert [*tmp_path.rglob("*.html")] == []


def test_one_chapter_is_a_book(tmp_path, capsys):
    assert main(["book", "-o", str(tmp_path / "site"), "--only", "sgemm/naive", "sgemm/naive"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1 chapter: ") and "index.html" in said
    assert [path.name for path in (tmp_path / "site" / "rungs").iterdir()] == ["sgemm-naive.html"]
    assert [*dead_links(tmp_path / "site")] == []


def test_pages_that_are_no_more_go_and_nothing_else(tmp_path):
    write([Entry("a.html", "", "1", ""), Entry("rungs/b.html", "", "2", "")], tmp_path / "site")
    (tmp_path / "site" / "notes.html").write_text("mine")
    (tmp_path / "kept.html").write_text("mine")
    made = json.loads((tmp_path / "site" / "book.json").read_text())
    (tmp_path / "site" / "book.json").write_text(json.dumps([*made, "../kept.html", 3]))
    write([Entry("a.html", "", "3", "")], tmp_path / "site")
    left = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.html")}
    assert left == {"site/a.html": "3", "site/notes.html": "mine", "kept.html": "mine"}


INLINE = re.compile(r"`tir-schedules ([^`]+)`")
NOT_RUN = ("bench", "profile", "tune", "book", "report", "learn", "time")
"""Those that need a GPU or minutes, or are not a whole command."""


def commands_in_texts():
    texts = [path.read_text() for path in HERE.rglob("*.md")]
    found = dict.fromkeys(one for text in texts for one in INLINE.findall(text))
    return [one for one in found if one.split()[0] not in NOT_RUN]


@pytest.mark.parametrize("command", commands_in_texts())
def test_commands_of_the_texts_work_as_printed(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


@pytest.mark.slow
def test_the_whole_book(tmp_path):
    assert main(["book", "-o", str(tmp_path / "site")]) == 0
    assert [*dead_links(tmp_path / "site")] == []
    for rung in chapter_rungs():
        page = (tmp_path / "site" / site.address_of(rung)).read_text()
        assert "<figure>" in page and "The twin, by hand" in page and "The CUDA that TVM emits" in page, (
            rung.id
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reduce/interleaved", "sgemm/gemv", "hgemm/tma", "sgemm/stream_k"])
def test_commands_of_a_chapter_work_as_printed(name, tmp_path, monkeypatch):
    """Also of a rung that takes another shape, and of one with further configurations."""
    monkeypatch.chdir(tmp_path)
    made = Book(None, [name])
    build(made)
    commands = commands_of(made.chapters[0])
    assert [one.split()[1] for one in commands][:5] == ["emit", "inspect", "layout", "time", "trace"]
    assert [one for one in commands if main(shlex.split(one)[1:])] == []


def test_the_texts_are_there_for_every_article():
    assert {path.stem for path in Path(HERE / "articles").glob("*.md")} == {*site.ARTICLES}


def test_chapters_of_split_products_show_their_recorded_times():
    """They are in a folder of their own beside the other results."""
    found = find_records(None)
    assert found and [gain.title.split()[0] for gain in found.gains("sgemm/bf16x6", [])] == ["sgemm"]
