"""What users of other tools asked for: in each wrong kernel of `kernels/wishes.cu` what its head says is
found at its line, and nothing at all in its right twin."""

import json
import re
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "kernels" / "wishes.cu"
HEAD = re.compile(r"--kernel '((\w+)<[^>]*>)'.*?^// (?:(passes)|finds: (\w+))$", re.M | re.S)
PAIRS = {kernel: (base, finds) for kernel, base, _, finds in HEAD.findall(FILE.read_text())}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Kernel -> what is found: (rule, line)."""
    from tir_schedules.cli.main import main

    log = tmp_path_factory.mktemp("wishes") / "log.sarif"
    assert main(["check", str(FILE), "--sarif", str(log)]) == 1
    told = {}
    for result in json.loads(log.read_text())["runs"][0]["results"]:
        line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        kernel = result["message"]["text"].partition(": ")[0]
        told.setdefault(kernel, []).append((result["ruleId"], line))
    return told


def test_there_is_a_pair_of_each():
    sound = {base for base, finds in PAIRS.values() if not finds}
    assert sound == {base for base, finds in PAIRS.values() if finds} and len(sound) == 6


@pytest.mark.parametrize("kernel", PAIRS)
def test_the_wrong_one_is_found_at_its_line_and_the_right_one_passes(kernel, found):
    base, finds = PAIRS[kernel]
    if not finds:
        assert kernel not in found
        return
    marked = [at for at, line in enumerate(FILE.read_text().split("\n"), 1) if f"// @{base}" in line]
    assert (finds, marked[0]) in found[kernel]
