"""The guide in ladders/README.md as its readers do it: files to save, and commands with what they print."""

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parents[2] / "tir_schedules" / "ladders" / "README.md"
PART = re.compile(r"<!-- (file: \S+|run) -->\n\n((?:    .*\n|\n)+)")
NUMBER = re.compile(r"\d+\\\.\d+$")


def parts():
    """(what, text) of each marked part: ("file: my_rung.py", its lines) or ("run", commands)."""
    return [(what, re.sub(r"^    ", "", text, flags=re.M)) for what, text in PART.findall(PAGE.read_text())]


def write_files(folder):
    """Save every file of the guide in a folder."""
    for what, text in parts():
        if what != "run":
            path = folder / what.removeprefix("file: ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.strip("\n") + "\n")


def commands():
    """(arguments, lines that it prints among others) of each command."""
    found = []
    for what, text in parts():
        for line in text.splitlines() if what == "run" else ():
            if line.startswith("tir-schedules "):
                found.append((shlex.split(line)[1:], []))
            elif line:
                found[-1][1].append(line)
    return found


def missing(lines, printed):
    """The lines that were not printed, in their order; seconds at the end of one may be others."""
    rest = printed
    for line in lines:
        pattern = NUMBER.sub(r"\\d+\\.\\d+", re.escape(line))
        match = re.search(f"^{pattern}", rest, re.M)
        if not match:
            return [line]
        rest = rest[match.end() :]
    return []
