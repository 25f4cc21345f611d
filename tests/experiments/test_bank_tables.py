"""The script prints article 004's table as it stands there, what padding and permutation cost, and one line
for what cannot be."""

import bank_tables
import pytest
from article_004 import ARTICLE


@pytest.fixture
def lines(capsys):
    """What the script prints with some arguments, cells apart by one blank."""

    def call(*arguments):
        assert bank_tables.main(list(arguments)) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    return call


@pytest.mark.parametrize("shape, others", [("m16n8k8", 1), ("m16n8k16", 3)])
def test_the_article(lines, shape, others):
    printed = lines()
    start = next(k for k, line in enumerate(printed) if line.startswith(f"{shape} A, padding 8:"))
    cells = [line.split() for line in printed[start + 2 : start + 10]]
    assert [" ".join(row[:3]) for row in cells] == ARTICLE.split("\n")[1:-1]
    for register in range(others):
        banks = [bank for row in cells for bank in between(row[3 + register])]
        assert sorted(banks) == list(range(32))  # conflict free, too


def between(ends):
    first, last = map(int, ends.split("~"))
    return range(first, last + 1)


def test_costs(lines):
    costs = {name: figures for name, *figures in (line.rsplit(" ", 4) for line in lines()[-9:])}
    assert costs["m16n8k16 A by ldmatrix"] == costs["m16n8k16 A by 32-bit loads"] == ["16", "4", "4", "4"]
    assert costs["m16n8k8 A by ldmatrix"] == ["8", "2", "2", "2"]
    assert costs["16-byte store of the tile"] == ["4", "8", "4", "4"]


def test_what_lies_in_the_banks(lines):
    printed = lines()
    assert "1.3 - [2.0] 2.1 2.2 2.3 - [3.0]" in printed and "2.1 [2.0] 2.3 2.2 3.1 [3.0] 3.3 3.2" in printed


def test_rows_that_do_not_start_on_16_bytes(lines):
    printed = lines("--pad", "2", "--pad", "8")
    assert "m16n8k16 A by ldmatrix - 4 4 4" in printed and "16-byte store of the tile - 8 4 4" in printed
    assert "m16n8k8 A by 32-bit loads 4 2 2 2" in printed
    assert any(line.startswith("20~23 85~88 21~24") for line in printed)


def test_longer_rows(lines):
    assert "m16n8k16 A by ldmatrix 32 8 4 4" in lines("--row", "64", "--pad", "0", "--pad", "16")


@pytest.mark.parametrize(
    "arguments, part",
    [
        (["--row", "40"], "--row is 40; it can be 16, 32 or a multiple of 64"),
        (["--pad", "3"], "--pad is 3; it must be an even"),
        (["--pad", "-2"], "--pad is -2"),
    ],
)
def test_bad_input(capsys, arguments, part):
    assert bank_tables.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and part in err and err.count("\n") == 1
