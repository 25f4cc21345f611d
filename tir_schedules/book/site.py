"""The pages of the book, written into a folder: contents, introductions, chapters, guides, lessons, glossary
and search."""

from __future__ import annotations

import json
import os
import posixpath
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Iterator, Sequence

from markupsafe import Markup

from tir_schedules.book.chapters import Chapter, chapter_rungs, chapters_of, nearest_below
from tir_schedules.book.figures import capital
from tir_schedules.book.records import ABSENT, Records
from tir_schedules.book.text import Page, Writer, filled, read_glossary
from tir_schedules.console import progress
from tir_schedules.errors import BadInput
from tir_schedules.files import read_json, write_text
from tir_schedules.insight.banks.wavefronts import BANKS, WORD
from tir_schedules.insight.metrics.counting import SECTOR, WARP
from tir_schedules.ladders.articles import ARTICLES, Article
from tir_schedules.ladders.known import FAMILIES, ladder_of
from tir_schedules.lessons import lesson as lessons
from tir_schedules.lessons.lesson import Lesson
from tir_schedules.model.rung import Rung
from tir_schedules.numerals import power
from tir_schedules.pages import element, render
from tir_schedules.pages.code import highlighted
from tir_schedules.provenance import named_versions
from tir_schedules.version import VERSION

HERE = Path(__file__).parent
PACKAGE = HERE.parent
MADE = "book.json"
"""The list of files in a folder with a book. When the book is built again, files that it no longer has are
removed."""

TITLE = "tir_schedules, the book"
GUIDES = {
    "own-kernel": ("Check a kernel of your own", PACKAGE / "check" / "GUIDE.md", ""),
    "own-rung": ("A rung of your own", PACKAGE / "ladders" / "README.md", "A rung of your own"),
    "own-ladder": ("A ladder of your own", PACKAGE / "ladders" / "README.md", "A ladder of your own"),
    "fastest": (
        "The fastest rung for a shape",
        PACKAGE / "ladders" / "README.md",
        "The fastest rung for a shape",
    ),
    "pass": ("What a verdict is worth", PACKAGE / "check" / "VERDICTS.md", ""),
    "validation": ("How counters and times are validated", HERE / "guides" / "validation.md", ""),
    "faq": ("Questions", HERE / "guides" / "faq.md", ""),
    "reference": ("The Python API", PACKAGE / "REFERENCE.md", ""),
}
"""Name -> title, file, and the section of it that is the guide; "" for all. Commands and numbers of files
that are not the book's are executed by the tests of those files."""


@dataclass(frozen=True)
class Entry:
    """A page. address: on the site. text: what a search looks at; parts: (address, title, text) of what it
    also finds on the page."""

    address: str
    title: str
    html: str
    text: str
    parts: tuple[tuple[str, str, str], ...] = ()


@dataclass
class Book:
    """records: None where nothing is recorded. only: names of the chapters that are wanted, none for all."""

    records: Records | None
    only: Sequence[str] = ()
    chapters: list[Chapter] = field(default_factory=list)

    @cached_property
    def rungs(self) -> list[Rung]:
        return chapter_rungs(self.only)

    @cached_property
    def glossary(self):
        return read_glossary(PACKAGE / "lessons" / "GLOSSARY.md")

    @cached_property
    def values(self) -> dict[str, Any]:
        """What prose may look up."""
        found: dict[str, Any] = {
            "recorded": self.records is not None and self.records.of_book,
            "times": self.records is not None,
            "lanes": WARP, "banks": BANKS, "word_bytes": WORD, "sector_bytes": SECTOR,
            "row_bytes": BANKS * WORD,
            "chapters": len(chapter_rungs()), "lessons": len(lessons.lesson_ids()), "articles": len(ARTICLES),
        }  # fmt: skip
        if self.records:
            names = ("rate", "gain", "device", "error", "count")
            found |= {name: getattr(self.records, name) for name in names}
        return found

    # ---- addresses
    @cached_property
    def addresses(self) -> dict[str, str]:
        """What texts link to -> address. Files by their paths; others as they are written in the book."""
        found = {f"rung:{rung.id}": address_of(rung) for rung in self.rungs}
        found |= {f"article:{number}": f"articles/{number}.html" for number in ARTICLES}
        found |= {f"guide:{name}": f"guides/{name}.html" for name in GUIDES}
        found |= {f"lesson:{id}": f"lessons.html#{id.replace('/', '-')}" for id in lessons.lesson_ids()}
        found |= {"lessons": "lessons.html", "glossary": "glossary.html", "search": "search.html"}
        whole = {file: f"guides/{name}.html" for name, (_, file, part) in GUIDES.items() if not part}
        return found | {str(file): address for file, address in whole.items()}

    def writer(self, source: Path, root: str, family: str = "") -> Writer:
        def resolve(target: str) -> str:
            if re.match(r"https?://|#", target):
                return target
            path, _, anchor = target.partition("#")
            address = self.addresses.get(path) or self.addresses.get(str((source.parent / path).resolve()))
            if not address:
                return ""
            return f"{root}{address}{f'#{anchor}' if anchor and '#' not in address else ''}"

        names = {f"{each}/fastest": f"{root}guides/fastest.html" for each in FAMILIES}
        names |= {"fastest": f"{root}guides/fastest.html"}
        names |= {rung.name: root + address_of(rung) for rung in self.rungs if rung.family == family}
        names |= {rung.id: root + address_of(rung) for rung in self.rungs}
        return Writer(self.glossary, f"{root}glossary.html", resolve, names)

    # ---- pages
    def pages(self) -> Iterator[Entry]:
        yield self.contents()
        for number, article in ARTICLES.items():
            yield self.introduction(number, article)
        for at, chapter in enumerate(self.chapters):
            yield self.chapter(at, chapter)
        for name, (title, file, part) in GUIDES.items():
            yield self.guide(name, title, file, part)
        yield self.lessons()
        yield self.words()

    def entry(
        self, address: str, title: str, written: Page, body: Markup | None = None, **more: Any
    ) -> Entry:
        """A page of text. body: its content, where that is more than the text."""
        html = render(
            "book.html.j2", title=title, sections=more.pop("sections", written.headings),
            root=root_of(address),
            chain=more.pop("chain", [("index.html", "Contents")]), before=more.pop("before", None),
            after=more.pop("after", None), body=body if body is not None else written.html,
            provenance=provenance(),
        )  # fmt: skip
        return Entry(address, title, html, written.plain, **more)

    def read(self, file: Path, root: str) -> Page:
        return self.writer(file, root).page(without_title(self.filled(file)))

    def filled(self, file: Path) -> str:
        return filled(file.read_text(encoding="utf-8"), place_of(file), self.values)

    def check_texts(self) -> None:
        """BadInput for a number that is not looked up, before anything is executed."""
        for file in sorted(HERE.rglob("*.md")):
            if file.name != "README.md":
                self.filled(file)

    def contents(self) -> Entry:
        written = self.read(HERE / "index.md", "")
        parts = [written.html]
        for family in FAMILIES:
            shown = [one for one in self.chapters if one.rung.family == family]
            if shown:
                rows = [
                    element("li", link(address_of(one.rung), one.rung.name), f": {one.rung.summary}")
                    for one in shown
                ]
                parts += [element("h2", ladder_title(family), id=family), element("ol", *rows)]
        heads = [
            (family, family) for family in FAMILIES if any(c.rung.family == family for c in self.chapters)
        ]
        guides = [element("li", link(f"guides/{name}.html", one[0])) for name, one in GUIDES.items()]
        parts += [element("h2", "Guides", id="guides"), element("ul", *guides)]
        sections = [*written.headings, *heads, ("guides", "Guides")]
        return self.entry("index.html", TITLE, written, Markup("\n").join(parts), sections=sections, chain=[])

    def introduction(self, number: str, article: Article) -> Entry:
        written = self.read(HERE / "articles" / f"{number}.md", "../")
        sizes = [power(size) for size in article.sizes if any(step.figures for step in article.steps)]
        rows = []
        for step in article.steps:
            base = step.rung.partition(":")[0]
            name = element("code", step.rung)
            address = self.addresses.get(f"rung:{base}")
            cells = [*step.figures, *[""] * (len(sizes) - len(step.figures))]
            numbers = [element("td", cell or "–", class_="number") for cell in cells]
            where = link(f"../{address}", name) if address else name
            rows.append(element("tr", element("th", step.name, scope="row"), element("td", where), *numbers))
        heads = [element("th", text, scope="col") for text in ("step", "rung")]
        heads += [element("th", f"{size}, {article.unit}", scope="col", class_="number") for size in sizes]
        table = element(
            "table", element("caption", f"The article's steps, and what it printed: {article.about}"),
            element("thead", element("tr", *heads)), element("tbody", *rows),
        )  # fmt: skip
        notes = [element("li", self.writer(HERE, "../").inline(note)) for note in article.notes]
        body = Markup("\n").join(
            [
                written.html, element("h2", "Its steps and their chapters", id="steps"),
                element("div", table, class_="scroll", tabindex="0"),
                element("h2", "What to know of its text", id="notes"), element("ul", *notes),
            ]
        )  # fmt: skip
        sections = [*written.headings, ("steps", "Its steps"), ("notes", "What to know")]
        return self.entry(
            f"articles/{number}.html", f"Article {number}: {article.title}", written, body, sections=sections
        )

    def chapter(self, at: int, chapter: Chapter) -> Entry:
        rung, root = chapter.rung, "../"
        writer = self.writer(HERE, root, rung.family)
        summary, words = writer.inline(capital(rung.summary)), writer.page(chapter.words)
        sections = [("idea", "Idea")]
        for number, figure in enumerate(chapter.figures, 1):
            if figure.title not in [one.title for one in chapter.figures[: number - 1]]:
                sections.append((f"figure-{number}", figure.title))
        sections += [("code", "Code"), ("costs", "Costs"), ("gains", "Gains"), ("next", "Try")]
        sections += [("lessons", "Lessons")] if chapter.lessons else []
        numbers = dict.fromkeys(re.findall(r"\b00\d\b", rung.article))
        title = f"{rung.id}"
        before, after = (
            (address_of(self.chapters[other].rung), self.chapters[other].name)
            if 0 <= other < len(self.chapters) else None for other in (at - 1, at + 1)
        )  # fmt: skip
        predicted = self.records.predicted(rung.id) if self.records else []
        html = render(
            "book_chapter.html.j2", title=title, sections=sections, root=root,
            chain=[("index.html", "Contents"), (f"index.html#{rung.family}", rung.family)], before=before,
            after=after, chapter=chapter, summary=summary, words=words.html, shape=shape_of(chapter),
            beyond=rung.article.startswith("beyond"),
            articles=[(number, f"article {number}") for number in numbers if number in ARTICLES],
            gains=list(self.records.gains(rung.id, nearest_below(rung))) if self.records else [],
            predicted=predicted,
            predicted_on=self.records.predicted_on(rung.id) if self.records and predicted else "",
            absent="" if self.records else ABSENT, commands=commands_of(chapter), provenance=provenance(),
        )  # fmt: skip
        text = " ".join([rung.summary, words.plain, *(one.caption for one in chapter.figures)])
        return Entry(address_of(rung), title, html, text)

    def guide(self, name: str, title: str, file: Path, part: str) -> Entry:
        if file.is_relative_to(HERE):
            written = self.read(file, "../")
        else:
            text = file.read_text(encoding="utf-8")
            text = section_of(text, part, file) if part else without_title(text)
            written = self.writer(file, "../").page(text)
        return self.entry(f"guides/{name}.html", title, written)

    def lessons(self) -> Entry:
        writer = self.writer(HERE, "")
        parts, told, sections = [], [], []
        for chapter, about in lessons.CHAPTERS.items():
            parts.append(element("h2", about[0].upper() + about[1:], id=f"chapter-{chapter}"))
            sections.append((f"chapter-{chapter}", chapter))
            for one in lessons.all_lessons():
                if one.chapter == chapter:
                    id = one.id.replace("/", "-")
                    written = writer.page(one.text)
                    rung = one.one("rung")
                    where = self.addresses.get(f"rung:{rung}")
                    read_on = link(where, rung) if where else element("code", rung)
                    parts += [
                        element("h3", one.title, id=id), written.html,
                        element("p", element("code", f"tir-schedules learn start {one.id}"), "; ", read_on),
                        element("details", element("summary", "The file to begin with"), code_block(one)),
                    ]  # fmt: skip
                    told.append((f"lessons.html#{id}", f"Lesson: {one.title}", written.plain))
        written = writer.page(
            "Each lesson is a file that you edit until it is right and cheap enough. `tir-schedules learn`"
            " lists them, and grades your file with no GPU."
        )
        body = Markup("\n").join([written.html, *parts])
        return self.entry("lessons.html", "Lessons", written, body, sections=sections, parts=tuple(told))

    def words(self) -> Entry:
        writer = self.writer(PACKAGE / "lessons" / "GLOSSARY.md", "")
        rows, told = [], []
        for id, words, meaning in self.glossary.entries:
            writer.met = {id}
            name = ", ".join(words)
            cells = element("th", name, scope="row"), element("td", writer.inline(meaning))
            rows.append(element("tr", *cells, id=id))
            told.append((f"glossary.html#{id}", f"Glossary: {name}", meaning))
        table = element("div", element("table", element("tbody", *rows)), class_="scroll", tabindex="0")
        return self.entry("glossary.html", "Glossary", Page(table), parts=tuple(told))

    def search(self, entries: Sequence[Entry]) -> Entry:
        index = [[one.address, one.title, squeezed(one.text)] for one in entries]
        index += [[*part[:2], squeezed(part[2])] for one in entries for part in one.parts]
        html = render(
            "book_search.html.j2", title="Search", sections=[], root="", chain=[("index.html", "Contents")],
            before=None, after=None, body="", provenance=provenance(),
            index=json.dumps(index, ensure_ascii=False, separators=(",", ":")),
        )  # fmt: skip
        return Entry("search.html", "Search", html, "")


def build(book: Book) -> list[Entry]:
    """All pages. BadInput for a chapter or a number that is not there."""
    book.check_texts()
    with progress(len(book.rungs), "drawing") as step:
        book.chapters = chapters_of(book.rungs, step)
    entries = [*book.pages()]
    return [*entries, book.search(entries)]


def check_place(folder: Path) -> None:
    """BadInput for a folder that has other files than those of a book, or that cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: name a folder for the book, such as -o site/")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MADE).is_file():
        raise BadInput(f"{folder} has other files than a book: name a new folder, such as -o site/")
    above = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise BadInput(f"cannot write {folder}: {above} is not a folder that may be written")


def make_folder(folder: Path) -> None:
    """BadInput where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make {folder}: {error.strerror}") from error


def write(entries: Sequence[Entry], folder: Path) -> None:
    """Write the pages, and remove those of an earlier book."""
    made = [one.address for one in entries]
    if (folder / MADE).is_file():
        before: Any = read_json(folder / MADE, "remove the folder, and build the book anew")
        for name in before if isinstance(before, list) else ():
            if isinstance(name, str) and name.endswith(".html") and name not in made and inside(name):
                (folder / name).unlink(missing_ok=True)
    for one in entries:
        path = folder / one.address
        make_folder(path.parent)
        write_text(path, one.html)
    write_text(folder / MADE, json.dumps(made, indent=1) + "\n")


def inside(name: str) -> bool:
    """Whether a page's address leads nowhere else than into the folder."""
    return not posixpath.isabs(name) and ".." not in name.split("/")


def commands_of(chapter: Chapter) -> list[str]:
    """What to try with a rung, each as it can be typed."""
    rung, name = chapter.rung, chapter.name
    shape = shape_option(chapter)
    # A row of C may be the sum of parts of K, which one of several blocks stores: B is what the others read.
    array = "X" if rung.family == "reduce" else "B" if shape else "C"
    found = [f"tir-schedules emit {name}{shape} --twin"] if "twin" in chapter.forms else []
    found += [
        f"tir-schedules inspect {name}{shape} --advice",
        f"tir-schedules layout {name} {array}{shape} -o who.html",
    ]
    found += [f"tir-schedules time {name}{shape} --html time.html"]
    found += [f"tir-schedules trace {name}{shape} -o trace.html"]
    others = [one for one in rung.configs if one not in rung.flawed]
    return found + [f"tir-schedules run {name}:{one}{shape}" for one in others[:1]]


def shape_of(chapter: Chapter) -> str:
    """The option that names its workload's shape."""
    extents = chapter.workload.split(" ")[0].replace("x", ",")
    return f" --{ladder_of(chapter.rung.family).option} {extents}"


def shape_option(chapter: Chapter) -> str:
    """The option for a shape that a rung needs named, because it does not take that of its ladder."""
    return shape_of(chapter) if chapter.workload.startswith("1x") else ""


def address_of(rung: Rung) -> str:
    return f"rungs/{rung.family}-{rung.name}.html"


def root_of(address: str) -> str:
    return "../" * address.count("/")


def place_of(file: Path) -> str:
    return str(file.relative_to(PACKAGE.parent))


def ladder_title(family: str) -> str:
    return f"The ladder {family}"


def link(address: str, content: object) -> Markup:
    return element("a", content, href=address)


def code_block(one: Lesson) -> Markup:
    return element("pre", element("code", highlighted(one.start, one.language)), tabindex="0")


def without_title(text: str) -> str:
    """Markdown without its first heading, which the page has as its title."""
    return re.sub(r"\A# .*\n", "", text)


def section_of(text: str, title: str, file: Path) -> str:
    """A section of the second level, without its heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        raise BadInput(f"{place_of(file)} has no section {title!r}")
    named = re.sub(r"<!-- file: (\S+) -->", r"`\1`:", found[1])
    return re.sub(r"^###", "##", named, flags=re.M)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def provenance() -> list[str]:
    versions = named_versions("apache-tvm", "nvidia-cuda-nvcc")
    return [
        f"Made by tir-schedules book, tir_schedules {VERSION}, {versions}.",
        "Counters and pictures come from the CPU machine or from predictions, times from recorded"
        " measurements. Making this page needed no GPU.",
    ]
