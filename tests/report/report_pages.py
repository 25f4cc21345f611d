"""Made-up results of a report, the page made of them, and what the page says."""

import json
import re
from html.parser import HTMLParser

import made_up

from tir_schedules.cli.main import main
from tir_schedules.model.counters import DATA_PIPE, INSTRUMENTED, METRICS
from tir_schedules.subjects.results import save_results

HALVES = {"layout": "nt", "accumulate": "float16"}
SIZES = (1024, 4096)
FILE = "report.html"
LOADS = (f"{INSTRUMENTED}_ld.sum", f"{DATA_PIPE}_ld.sum")


class Page(HTMLParser):
    """tables: caption -> rows of cells; words: all text outside of pictures."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.words, self.rows, self.inside = {}, "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "table":
            self.caption, self.rows = "", []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while tag in self.inside and self.inside.pop() != tag:  # tags that are not closed, such as <br>
            pass
        if tag == "table":
            self.tables[" ".join(self.caption.split())] = [
                [cell.strip() for cell in row] for row in self.rows
            ]

    def handle_data(self, data):
        if "style" in self.inside or "svg" in self.inside:
            return
        self.words += data
        if "caption" in self.inside:
            self.caption += data
        elif "td" in self.inside or "th" in self.inside:
            self.rows[-1][-1] += data

    def rows_of(self, caption):
        """First cell -> the others, of the table whose caption has these words."""
        (rows,) = [rows for name, rows in self.tables.items() if caption in name]
        return {row[0]: row[1:] for row in rows}

    def text(self):
        return re.sub(r"\s+", " ", self.words)


def made(folder, *options):
    """The exit code, and the page of a folder of results."""
    file = folder / FILE
    code = main(["report", "-o", str(file), "--results", str(folder), *options])
    return code, Page(file.read_text()) if file.exists() else None


def counters(label, loads, measured, **others):
    """A recorded launch: wavefronts of loads predicted and measured, everything else nothing."""
    entry = {
        "label": label,
        "workload": {"m": 256, "n": 256, "k": 256},
        "predicted": {"shared_load": {"cost": loads}},
    }
    return entry | {"measured": dict.fromkeys(METRICS, 0.0) | dict.fromkeys(LOADS, measured)} | others


def write_counters(path, date, entries):
    path.write_text(json.dumps({"date": date, "device": {"name": "Made-up GPU"}, "kernels": entries}))


def swept(values):
    """A sweep of the padding of one kernel, in the format of experiments/sweeps.py."""
    document = made_up.results("hgemm/wmma_padded", sizes=(4096,), **HALVES)
    (row,) = [row for row in document["rows"] if row["form"] == "schedule"]
    occupancy, reads, writes = (
        {"blocks": 3},
        {"requests": 9, "cost": 70, "ideal": 7},
        {"requests": 5, "cost": 5, "ideal": 5},
    )
    facts = {"registers": 99, "shared_bytes": 12345, "occupancy": occupancy, "reads": reads, "writes": writes}
    identity = {key: row[key] for key in ("family", "form", "shape", "workload")}
    named = {value: f"hgemm/wmma_padded:article_004,skew={value}" for value in values}
    rows = [{**row, "name": name, "median_us": 100.0 + value} for value, name in named.items()]
    points = [{**identity, "name": name, **facts} for name in named.values()]
    points.append(
        {**identity, "name": "hgemm/wmma_padded:article_004,skew=2", "cannot": "rows are misaligned"}
    )
    return document | {"command": "experiments/sweeps.py padding", "rows": rows, "points": points}


def recording(path, date, *names, sizes=SIZES):
    save_results(made_up.results(*names, sizes=sizes) | {"date": date}, path)
