"""Pages of one folder: an index lists them, each links to it, and files of others stay as they are."""

from browser import opened

from tir_schedules.pages import render
from tir_schedules.pages.folder import LINK, write_page


def page(title):
    return render("base.html.j2", title=title, provenance=[])


def test_an_index_lists_the_pages_and_each_links_to_it(tmp_path, capsys):
    (tmp_path / "strange.html").write_text("<title>not ours</title>")
    write_page(tmp_path / "a b.html", page("A & <B>"))
    assert "index.html" in capsys.readouterr().err
    write_page(tmp_path / "c.html", page("C"))
    assert "index.html" not in capsys.readouterr().err
    index = (tmp_path / "index.html").read_text()
    assert '<a href="a%20b.html">A &amp; &lt;B&gt;</a>' in index and '<a href="c.html">C</a>' in index
    assert "strange" not in index and 'href="index.html"' not in index
    assert LINK in (tmp_path / "a b.html").read_text() and LINK in (tmp_path / "c.html").read_text()


def test_an_index_of_another_stays_and_has_no_link(tmp_path):
    index = tmp_path / "index.html"
    for theirs in ("<title>Pages of this folder</title>", page("a book, or -o index.html")):
        index.write_text(theirs)
        write_page(tmp_path / "c.html", page("C"))
        assert index.read_text() == theirs and LINK not in (tmp_path / "c.html").read_text()


def test_a_picture_and_a_page_of_that_name_have_no_index(tmp_path):
    write_page(tmp_path / "a.svg", "<svg/>")
    assert not (tmp_path / "index.html").exists()
    write_page(tmp_path / "index.html", page("mine"))
    assert "<title>mine</title>" in (tmp_path / "index.html").read_text()


def test_links_lead_there_and_back(browser, tmp_path, check_page):
    write_page(tmp_path / "a b.html", page("A"))
    check_page(tmp_path / "index.html")
    with opened(browser, tmp_path / "a b.html", {"width": 390, "height": 844}, "light") as (shown, _):
        for title in ("Pages of this folder", "A"):
            shown.click("a")
            assert shown.title() == title
