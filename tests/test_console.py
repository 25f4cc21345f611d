"""What a terminal shows: code whole, numbers and names whole at any width, and a word on what is left out."""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading

import pytest

from tir_schedules.cli import main as cli
from tir_schedules.console import (
    print_left_out,
    print_line,
    print_paragraph,
    print_source,
    print_table,
    print_whole,
)

CODE = """__global__ void f(float *__restrict__ a_long_name, const float *__restrict__ another_long_name) {
// [bold] :x: longer than 80 columns

\tasm("mbarrier.init.shared.b64 [%0], 1;");
}
"""
NUMBERS = [
    ("sgemm/coalesced", "786,432", "12,345,678 (9,876,543)", "1.41x"),
    ("hgemm/wmma_register_pipelined", "-", "0", ""),
]
END = "\a"  # ends what a test's terminal is written
HEADS = ("rung", "wavefronts", "sectors (packed)", "times ideal")


@pytest.fixture
def terminal(monkeypatch):
    """terminal(columns, call): what a call writes to a terminal of so many columns, without colours."""

    def shown(columns, call, term="xterm-256color"):
        monkeypatch.setenv("TERM", term)
        for name in ("COLUMNS", "NO_COLOR"):
            monkeypatch.delenv(name, raising=False)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        written = bytearray()
        reader = threading.Thread(target=read_all, args=(master, written))
        reader.start()
        with (
            monkeypatch.context() as patch,
            io.TextIOWrapper(io.FileIO(slave, "w"), encoding="utf-8", write_through=True) as stream,
        ):
            patch.setattr(sys, "stdout", stream)
            call()
            stream.write(END)
            reader.join()  # before the terminal is closed: what nobody has read by then can be lost
        os.close(master)
        return re.sub(r"\x1b\[[\d;]*m", "", written.decode().removesuffix(END).replace("\r\n", "\n"))

    return shown


def read_all(descriptor, written):
    while not written.endswith(END.encode()):
        try:
            written += os.read(descriptor, 65536)
        except OSError:  # the other end is closed: the call failed
            return


@pytest.mark.parametrize("language", ["cuda", "text", "diff"])
def test_code_is_printed_whole(terminal, language):
    assert terminal(80, lambda: print_source(CODE, language)).expandtabs() == CODE.expandtabs()
    assert (
        terminal(80, lambda: print_source(CODE.rstrip(), language), "dumb").expandtabs() == CODE.expandtabs()
    )


def test_what_is_printed_whole_keeps_brackets_and_blanks(terminal, capsys):
    assert terminal(20, lambda: print_whole(CODE)).expandtabs() == CODE.expandtabs() + "\n"
    print_whole(CODE)
    assert capsys.readouterr().out == CODE + "\n"


def test_a_terminal_finds_no_commands_in_what_is_printed(capsys):
    hostile = "a\x1b[31m\x07b"
    for show in (print_line, print_whole, print_paragraph, lambda text: print_table(("name",), [[text]])):
        show(hostile)
        assert r"a\x1b[31m\x07b" in capsys.readouterr().out


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("columns", [120, 80, 60, 50, 30, 10, 0])
def test_numbers_and_names_are_whole_at_any_width(terminal, columns, term):
    out = terminal(columns, lambda: print_table(HEADS, NUMBERS), term)
    for cell in (cell for row in NUMBERS for cell in row if cell):
        words = cell.split() if columns < 30 else [cell]
        assert all(re.search(rf"(^|\s){re.escape(word)}(\s|$)", out, re.M) for word in words), (columns, cell)
    longest = max(len(row[0]) for row in NUMBERS)
    assert "\x1b" not in out and max(map(len, out.splitlines())) <= max(
        columns or 80, len("sectors (packed)  ") + longest
    )


def test_a_wide_table_is_cut_into_blocks_that_each_name_their_rows(terminal):
    blocks = [block.splitlines() for block in terminal(60, lambda: print_table(HEADS, NUMBERS)).split("\n\n")]
    assert [[re.split(r"\s{2,}", line) for line in block if "/" in line] for block in blocks] == [
        [["sgemm/coalesced", "786,432"], ["hgemm/wmma_register_pipelined", "-"]],
        [["sgemm/coalesced", "12,345,678 (9,876,543)", "1.41x"], ["hgemm/wmma_register_pipelined", "0"]],
    ]  # fmt: skip


def test_records_stand_on_end_where_there_is_no_room_for_columns(terminal):
    lines = terminal(40, lambda: print_table(HEADS, NUMBERS)).splitlines()
    assert lines[:5] == [
        "rung              sgemm/coalesced",
        "wavefronts        786,432",
        "sectors (packed)  12,345,678 (9,876,543)",
        "times ideal       1.41x",
        "",
    ]


def test_columns_that_can_be_spared_are_named_when_they_are_left_out(terminal, capsys):
    def show():
        print_left_out(print_table(HEADS, NUMBERS, spare=("times ideal", "wavefronts")))

    out = terminal(68, show)
    assert (
        "times ideal" not in out.splitlines()[0]
        and "wavefronts" in out.splitlines()[0]
        and "1.41x" not in out
    )
    assert (
        out.split("hgemm/")[1].split()[3:]
        == "left out for want of room: times ideal; a wider terminal or --json shows it".split()
    )
    show()
    assert "left out" not in capsys.readouterr().out


def test_prose_is_wrapped_between_words(terminal):
    words = "the next tile comes through registers while one is multiplied, /a/path/that/is/not/broken/at/all"
    out = terminal(
        50, lambda: print_table(("rung", "what"), [("sgemm/pipelined", words)], prose={"what": 20})
    )
    assert (
        " ".join(out.split()) == f"rung what sgemm/pipelined {words}"
        and max(map(len, out.splitlines())) <= 50
    )
    assert all(word in terminal(20, lambda: print_line(words)).split() for word in words.split())
    assert max(map(len, terminal(40, lambda: print_line(words)).splitlines())) <= 40


def test_a_pipe_has_a_line_for_each_row(capsys):
    print_table(HEADS, [*NUMBERS, ("x" * 20_000, "1", "2", "3")], spare=HEADS[1:], keys=0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[-1].split() == ["x" * 20_000, "1", "2", "3"]


WORDY = [("sgemm/naive", "word " * 25, "128x128 " * 12), ("sgemm/coalesced", "other", "64x64")]


@pytest.mark.parametrize("spare, lines", [(("configurations",), 3), ((), 4)])
def test_a_pipe_leaves_columns_out_before_it_wraps_and_says_so(capsys, spare, lines):
    columns = ("rung", "what", "configurations")
    print_left_out(print_table(columns, WORDY, prose={"what": 9, "configurations": 9}, spare=spare, keys=0))
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == lines and max(map(len, out.splitlines())) <= 180
    assert ("configurations" in out.splitlines()[0]) != ("configurations" in err)
    print_table(columns, WORDY, spare=spare, wide=True)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3 and "128x128 128x128" in out and not err


@pytest.mark.parametrize("of", ["sgemm", "reduce", "hgemm", "--instructions", "--articles"])
def test_lists_in_a_pipe_are_short_and_wide_ones_have_every_column(capsys, of):
    assert cli.main(["list", of]) == 0
    short, told = capsys.readouterr()
    tables = [line for line in short.splitlines() if "  " in line]
    assert tables and max(map(len, tables)) <= 180
    assert cli.main(["list", of, "--wide"]) == 0
    wide, nothing = capsys.readouterr()
    assert len(wide.splitlines()) <= len(short.splitlines()) and not nothing
    for name in re.findall(r"left out to keep lines short: (.*); --wide or --json", told):
        assert all(f"  {one}" in wide for one in name.split(", "))


@pytest.mark.parametrize("columns", [160, 120, 80, 60])
def test_the_list_of_rungs_fits_a_terminal(terminal, columns):
    out = terminal(columns, lambda: cli.main(["list", "hgemm"]))
    assert max(map(len, out.splitlines())) <= columns and out == "\n".join(
        line.rstrip() for line in out.split("\n")
    )
    assert re.search(r"^(rung +)?hgemm/wmma_register_pipelined(\s|$)", out, re.M)
    assert ("left out for want of room: configurations" in out) == (columns < 160)


@pytest.mark.parametrize("columns", [80, 60])
def test_recorded_rates_are_whole_on_a_terminal(terminal, columns, tmp_path):
    path = os.path.join(os.path.dirname(__file__), "..", "experiments", "results", "bench_sgemm_h200.json")
    out = terminal(columns, lambda: cli.main(["bench", "--from", path]))
    assert max(map(len, out.splitlines())) <= columns
    assert re.findall(r"\d+\.?\d* \(\d\.\d\dx\)", out) and "0.498 (1.00x)" in out and "thread_tile_1d" in out
