"""Text of results is nothing but text in the page of a report, whatever it says."""

import json
import re
from html.parser import HTMLParser

import pytest
from browser import opened
from report_pages import FILE, SIZES, counters, made, made_up, swept

from tir_schedules.report.plots import embed_svg
from tir_schedules.subjects.results import save_results

# Names as long as this one leave a drawing its room.
pytestmark = pytest.mark.filterwarnings("error:constrained_layout")

HOSTILE = (
    r"""$\frac{$"'><script>document.title = "hacked"</script>"""
    r"""<img src=x onerror='document.title = "hacked"'>&amp;<!-- \g<0> {{ 7 * 7 }}"""
)
FIXED = ("family", "form", "shape", "unit", "arch", "layout", "accumulate", "dtype", "output", "date")
"""What a schema takes only as it is."""


def spoilt(value, key=""):
    """A document with hostile text in all of its strings that are free."""
    if isinstance(value, dict):
        return {name: spoilt(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [spoilt(each, key) for each in value]
    if not isinstance(value, str) or key in FIXED or value in ("copy bandwidth", "fp32 peak"):
        return value
    return value.replace(",skew=", f"{HOSTILE},skew=") if ",skew=" in value else value + HOSTILE


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page of results with hostile text wherever they have text."""
    folder = tmp_path_factory.mktemp("hostile")
    refuse = {
        "refuse": lambda subject: "wrong" if subject.form == "twin" else "",
        "change": lambda row: {**row, "throttled": ["power"]},
    }
    save_results(spoilt(made_up.results("sgemm/naive", sizes=SIZES, **refuse)), folder / "sgemm.json")
    save_results(spoilt(swept((0, 8))), folder / "sweeps.json")
    entry = spoilt({**counters("sgemm/naive (tir)", 1000, 1500.0), "workload": {"m": 8, "kind": "nt"}})
    (folder / "counters.json").write_text(
        json.dumps({**spoilt(made_up.SOURCE), "device": spoilt(made_up.DEVICE), "kernels": [entry]})
    )
    assert made(folder, "--quick")[0] == 0
    return folder / FILE


class Elements(HTMLParser):
    """tags: of all elements; events: attributes that would run something."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.events = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.events += [
            name for name, value in attributes if name.startswith("on") or "javascript:" in (value or "")
        ]


def test_text_of_results_is_nothing_but_text_in_the_page(hostile):
    text = hostile.read_text()
    found = Elements(text)
    assert not found.tags & {"script", "img"} and not found.events
    assert text.count("&lt;script&gt;") > 20 and "49" not in re.findall(r"\\g&lt;0&gt; (\S+)", text)
    for said in ("Made-up GPU", "sgemm/naive", "power", "wrong", "fp32 peak"):
        assert said in text


def test_no_script_of_results_runs(hostile, browser):
    with opened(browser, hostile, {"width": 800, "height": 600}, "light") as (page, noticed):
        page.wait_for_timeout(100)
        assert page.title() == "GPU kernels as ladders of schedules" and noticed == []


@pytest.mark.parametrize("key", ["shape", "family", "form", "unit"])
def test_what_names_an_element_of_the_page_is_refused(tmp_path, capsys, key):
    document = made_up.results("sgemm/naive", sizes=SIZES)
    document["rows"][0] = document["rows"][0] | {key: document["rows"][0][key] + HOSTILE}
    save_results(document, tmp_path / "a.json")
    assert made(tmp_path, "--quick") == (2, None)
    err = capsys.readouterr().err
    assert "rows[0]" in err and err.count("\n") == 1


def test_a_figure_escapes_its_label_and_its_name():
    text = embed_svg('<svg width="1" viewBox="0 0 1 1"><g id="a"/></svg>', HOSTILE, HOSTILE)
    found = Elements(text)
    assert found.tags == {"svg", "g"} and not found.events and "\\g&lt;0&gt;" in text
