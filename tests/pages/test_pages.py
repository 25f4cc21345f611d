"""The frame of every page, and the browser checks themselves: each kind of fault is found."""

import re
from pathlib import Path

import jinja2
import pytest
from browser import faults_of, opened

from tir_schedules import pages
from tir_schedules.pages import element, environment, render

BODY = """
<h2 id="one">One</h2><p>Words, <a href="#one">a link</a>, <code>code</code>,
<span class="quiet">asides</span>, <span class="better">better</span> and <span class="worse">worse</span>,
<span class="tag">a tag</span>.</p>
<p class="note">A note.</p><p class="warn">A warning.</p>
<div class="cards"><div class="card"><b>1</b><span>figure</span></div></div>
<details><summary>more</summary>
<pre class="diff"><span class="hunk">@@</span><span class="add">+ a</span><span class="del">- b</span>
<span class="same">c</span></pre></details>
<div class="scroll"><table><caption>numbers</caption>
<thead><tr><th>x</th></tr></thead>
<tbody><tr><td class="number better">1</td></tr></tbody></table></div>
"""


POLICY = '<meta http-equiv="Content-Security-Policy"[^>]*>'
"""Where a page says what may run and be loaded."""


def page_of(content: str, script: str = "") -> str:
    head = '{% extends "base.html.j2" %}{% block nav %}<a href="#one">One</a>{% endblock %}'
    source = (
        head
        + "{% block content %}"
        + content
        + "{% endblock %}{% block script %}"
        + script
        + "{% endblock %}"
    )
    return environment().from_string(source).render(title="A <page>", provenance=["made up"])


def test_text_is_escaped_and_a_missing_value_is_an_error():
    assert "<h1>A &lt;page&gt;</h1>" in page_of(BODY)
    with pytest.raises(jinja2.UndefinedError):
        render("base.html.j2", title="no provenance")


def test_an_element_escapes_its_texts_and_attributes():
    hostile = """"'><b>&"""
    made = element("text", hostile, element("b", 1), class_=hostile, text_anchor="end", y=None)
    escaped = "&#34;&#39;&gt;&lt;b&gt;&amp;"
    assert made == f'<text class="{escaped}" text-anchor="end">{escaped}<b>1</b></text>'
    assert element("rect", x=3) == '<rect x="3"/>'


def test_what_is_no_markup_is_escaped_wherever_a_template_puts_it():
    sources = {path.name: path.read_text() for path in Path(pages.__file__).parent.glob("*.j2")}
    kept = {
        (name, part) for name, text in sources.items() for part in re.findall(r"([^{ (]+)\|\s*safe", text)
    }
    assert kept == {
        ("base.html.j2", "css"),
        ("report.html.j2", '"_<wbr>"'),
    }


def test_the_script_of_a_page_runs_and_no_other(browser, tmp_path):
    path = tmp_path / "page.html"
    injected = (
        "<script>document.title = 'injected'</script><b onclick='0'><img src=x onerror=\"document.title ="
        " 'injected'\">"
    )
    path.write_text(page_of(injected, "<script>document.body.dataset.own = 'ran'</script>"))
    with opened(browser, path, {"width": 800, "height": 600}, "light") as (page, noticed):
        page.wait_for_timeout(100)
        assert page.title() == "A <page>" and page.evaluate("document.body.dataset.own") == "ran"
        refused = [line for line in noticed if "Content Security Policy" in line]
        assert len(refused) >= 2 and not [
            line for line in noticed if line.startswith("network: asks for http")
        ]


def test_a_page_without_a_script_runs_none():
    assert "script-src &#39;none&#39;" in re.search(POLICY, page_of(BODY))[0]


def test_the_frame_and_every_class_of_the_style_look_right(check_page):
    check_page(page_of(BODY))


BROKEN = {
    "phone, light: wider than the screen: <div>": "<div style='width:1500px'>wide</div>",
    "tiny text: <p>": "<p style='font-size:10px'>small</p>",
    "tiny text: <text>": (
        "<svg viewBox='0 0 1000 100' width='390'><text y='50' font-size='20' fill='#888'>scaled"
        " down</text></svg>"
    ),
    "low contrast: <p>": "<p style='color:#888;background:#999'>grey</p>",
    'phone, light: low contrast: <text> "black on black"': (
        "<svg width='99' height='40'><rect width='99' height='40' fill='#333'/>"
        "<text y='20' font-size='16' fill='#222'>black on black</text></svg>"
    ),
    "phone, dark: low contrast: <b>": "<b style='color:#222'>only in the dark</b>",
    "link beyond the screen: <a>": "<nav style='white-space:nowrap'><a>" + "x " * 900 + "</a></nav>",
    "head that scrolls away: <thead>": (
        "<div class='scroll'><table><thead style='position:static'><tr><th>h</th></tr></thead></table></div>"
    ),
    "row wider than any screen: <tr>": (
        "<div class='scroll'><table><tr><td style='min-width:3000px'>r</td></tr></table></div>"
    ),
    "row taller than the screen: <tr>": "<table><tr style='height:2000px'><td>r</td></tr></table>",
    "id used twice: <p>": "<p id='one'>again</p>",
    "link to nowhere: <a>": "<a href='#two'>two</a>",
    "empty picture: <svg>": "<svg width='0' height='10'></svg>",
    "console: said wrong": "<script>console.error('said wrong')</script>",
    "script: thrown": "<script>throw Error('thrown')</script>",
    "network: asks for http://localhost/x.png": "<img src='http://localhost/x.png' alt=''>",
}


def test_the_browser_checks_find_each_kind_of_fault(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(re.sub(POLICY, "", page_of(BODY + "".join(BROKEN.values()))))
    found = faults_of(browser, path)
    assert [fault for fault in BROKEN if not any(fault in line for line in found)] == [], found
