"""Files that are none, or of another kind than their name says: one line each, nothing waited for, nothing
read without end."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from tir_schedules import files
from tir_schedules.cli import main as cli
from tir_schedules.errors import BadInput, shown
from tir_schedules.source import read_source
from tir_schedules.subjects import schemas


@pytest.mark.parametrize("make, reason", [
    (lambda path: None, "No such file"),
    (lambda path: path.mkdir(), "Is a directory"),
    (os.mkfifo, "not a regular file"),
    (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    (lambda path: path.symlink_to(path), "symbolic link"),
    (lambda path: path.write_bytes(gzip.compress(b"{}")), "compressed by gzip"),
    (lambda path: path.write_bytes(b'{"a": "\xff"}'), "can't decode byte 0xff in position 7"),
    (lambda path: path.write_bytes(b'{"a":\n 1,,}'), "line 2 column 4"),
    (lambda path: path.write_bytes(b"NaN"), "not a finite number"),
    (lambda path: path.write_bytes(b'{"a": [1, -Infinity]}'), "a[1]: not a finite number"),
    (lambda path: path.write_bytes(b'{"b c": ["x\\u0000"]}'), "['b c'][0]: 'x\\x00' is not a text"),
    (lambda path: path.touch() or os.truncate(path, files.LIMIT + 1), "more than 16 MiB"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_line_that_names_the_file(tmp_path, make, reason):
    path = tmp_path / "a.json"
    make(path)
    with pytest.raises(BadInput) as error:
        files.read_json(path, "name another")
    assert (
        reason in str(error.value)
        and str(path) in str(error.value)
        and str(error.value).endswith("; name another")
    )
    assert "\n" not in str(error.value)


def test_source_code_is_not_written_over(tmp_path):
    source, page = tmp_path / "a.cu", tmp_path / "a.html"
    files.check_page(source)  # is not there yet
    source.write_text("__global__ void k() {}")
    page.write_text("of an earlier run")
    files.check_page(page)
    with pytest.raises(BadInput, match=r"cannot write .*a\.cu: it is source code; name another file"):
        files.check_page(source)


def test_a_file_that_may_not_be_read_is_one_line(tmp_path, monkeypatch):
    def refuse(*given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(BadInput, match="Permission denied"):
        files.read_bytes(tmp_path / "a.json", "")


def test_a_million_of_wrong_items_are_one_error_and_an_object_has_not_a_million_keys():
    """A file of 16 MB holds millions of them, and a pack of 4 MB thousands of such files."""
    with pytest.raises(ValidationError) as error:
        schemas.Results.model_validate({"rows": [{}] * 100_000, "refused": [7] * 100_000})
    assert error.value.error_count() < 50
    many = json.dumps({"a": {str(number): 0 for number in range(files.KEYS + 1)}})
    with pytest.raises(ValueError, match="a: an object with more than 10000 keys"):
        files.plain_json(many.encode())


def test_a_name_with_nul_is_one_line():
    with pytest.raises(BadInput, match="null byte"):
        files.read_bytes("a\0b", "")


def test_a_value_in_a_message_is_short_and_no_terminal_obeys_it():
    assert shown("a\x1b[2J" + "b" * 1000) == r"'a\x1b[2J" + "b" * 48 + "..."
    assert files.place(("rows", 3, "a.b", "m")) == "rows[3]['a.b'].m"


@pytest.mark.parametrize("arguments", [["bench", "--from"], ["run", "sgemm/naive", "--source"]], ids=" ".join)
def test_no_terminal_obeys_the_name_of_a_file(arguments, capsys):
    assert cli.main([*arguments, "of\x1b[2J"]) == 2
    assert r"cannot read of\x1b[2J: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("make, reason", [
    (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),  # which never ends
    (os.mkfifo, "not a regular file"),
    (lambda path: path.touch() or os.truncate(path, files.LIMIT + 1), "more than 16 MiB"),
    (lambda path: path.write_bytes(b"// \0\xff"), "it is not text"),
])  # fmt: skip
def test_a_source_is_read_as_carefully(tmp_path, make, reason):
    make(tmp_path / "a.cu")
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32)); from"
        " tir_schedules.__main__ import main; main()"
    )
    command = [sys.executable, "-c", script, "run", "sgemm/naive", "--source", str(tmp_path / "a.cu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (
        reason in done.stderr
        and done.stderr.endswith("name a CUDA source file\n")
        and done.stderr.count("\n") == 1
    )


def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path):
    path, before = tmp_path / "a.json", os.umask(0o027)
    try:
        files.write_text(path, "1")
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)
        files.write_text(path, "2")
    finally:
        os.umask(before)
    assert path.read_text() == "2" and path.stat().st_mode & 0o777 == 0o604


def test_a_source_may_end_its_lines_in_another_way(tmp_path):
    (tmp_path / "a.cu").write_bytes("a\r\nb é\rc\n".encode())
    assert read_source(tmp_path / "a.cu").text == "a\nb é\nc\n"


def test_without_the_library_that_checks_files_one_line_says_how_to_get_it():
    recorded = Path(__file__).parents[1] / "experiments" / "results" / "bench_sgemm_h200.json"
    bare = (
        "import sys; sys.modules['pydantic'] = None; from tir_schedules.cli import main as cli; raise"
        " SystemExit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", bare, "bench", "--from", str(recorded)], capture_output=True, text=True
    )
    assert done.returncode == 3 and "pip install 'pydantic" in done.stderr and done.stderr.count("\n") == 1
