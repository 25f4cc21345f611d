"""The kernels beside this file, in the style of public ladders and of exercises: the sound ones pass by the
comments that stand in them, in each of the broken ones what its head says is found, at its line."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "kernels"
SOUND = ("basics", "reductions", "matrices")
LEAST = 30

HEAD = re.compile(r"--kernel '?(\w+).*?^// finds: ([\w ]+)$", re.M | re.S)


@pytest.fixture(scope="module")
def broken():
    """Name of a kernel -> the kinds of which one must be found, and the number of the marked line."""
    text = (FOLDER / "broken.cu").read_text()
    found = {}
    for match in HEAD.finditer(text):
        line = text.count("\n", 0, text.index("// @here", match.end())) + 1
        found[match[1]] = (set(match[2].split()), line)
    return found


def results(tool, file, *options):
    code, out, err = tool("check", str(file), "--json", *options)
    assert not err, err
    return code, json.loads(out)


@pytest.mark.parametrize("name", SOUND)
def test_sound_kernels_pass(name, tool):
    code, told = results(tool, FOLDER / f"{name}.cu")
    assert [(one["kernel"], one["faults"]) for one in told if not one["ok"]] == []
    assert code == 0 and len(told) >= 10


def test_there_are_enough_of_them():
    texts = [(FOLDER / f"{name}.cu").read_text() for name in SOUND]
    kernels = {name for text in texts for name in re.findall(r"(?:--kernel '?|--launch ')([\w:]+)", text)}
    assert len(kernels) >= LEAST


def test_broken_twins_are_found_at_their_lines(tool, broken):
    code, told = results(tool, FOLDER / "broken.cu")
    assert code == 1 and len(told) == len(broken) >= 10
    for one in told:
        kinds, line = broken[one["kernel"].partition("<")[0]]
        if "wrong" in kinds and not one["findings"]:
            assert f"broken.cu:{line} " in one["wrong"][0], one["faults"]
            continue
        places = [
            place
            for finding in one["findings"]
            if finding["kind"] in kinds
            for place in (finding["location"], finding["other"])
            if place
        ]
        assert any(place["line"] == line for place in places), one["faults"]
        assert all(place["file"].endswith("broken.cu") for place in places)


def test_one_kernel_of_a_file_can_be_named(tool):
    for name, launches in (("saxpy", 1), ("halve", 2)):
        code, (told,) = results(tool, FOLDER / "basics.cu", "--kernel", name)
        assert code == 0 and [one["kernel"] for one in told["launches"]] == [name] * launches


def test_options_of_the_command_win_over_those_of_the_file(tool):
    options = ("--kernel", "vector_add", "--let", "n=77", "--grid", "1", "--block", "128")
    _, (told,) = results(tool, FOLDER / "basics.cu", *options)
    (launch,) = told["launches"]
    assert told["ok"] and launch["grid"] == [1, 1, 1] and launch["block"] == [128, 1, 1]
    assert launch["accesses"]["global_load"]["requests"] == 2 * 3  # three warps of 77 threads


def test_a_c_in_float16_may_have_to_be_added_up_in_float32(tool):
    options = ("--kernel", "hgemm_simple", "--accumulate", "float32")
    _, (told,) = results(tool, FOLDER / "matrices.cu", *options)
    assert told["verdict"] == "fail"
    code, _, err = tool(
        "check", str(FOLDER / "matrices.cu"), "--kernel", "hgemm_bfloat", "--accumulate", "float16"
    )
    assert code == 2 and "`__nv_bfloat16* C`: accumulate is 'float16'; of bfloat16" in err


def test_what_is_right_can_be_said_anew(tool):
    file = FOLDER / "basics.cu"
    _, (told,) = results(tool, file, "--kernel", "vector_add", "--expect", "c=a - b")
    assert told["verdict"] == "fail"
    _, (told,) = results(tool, FOLDER / "matrices.cu", "--kernel", "square_matmul", "--arg", "d_A=[64,64]",
        "--arg", "d_B=[64,64]", "--arg", "d_C=[64,64]:out", "--arg", "width=64", "--expect", "d_C=d_A @ d_B",
    )  # fmt: skip
    assert told["ok"]


def test_a_macro_reaches_the_kernel(tool):
    _, (told,) = results(tool, FOLDER / "basics.cu", "--kernel", "scale_doubles", "-D", "SCALE=4")
    assert told["verdict"] == "fail" and "basics.cu:" in told["wrong"][0]


def test_verdicts_prints_and_conflicts_are_shown(tool):
    code, out, _ = tool("check", str(FOLDER / "basics.cu"), "--kernel", "says")
    assert code == 0 and "says prints:\nx is 7\n" in out
    assert "no expected value given: 0 hazards" in out and "verified" not in out
    code, out, _ = tool("check", str(FOLDER / "matrices.cu"), "--kernel", "sgemm_naive")
    assert re.search(r"^global +loads +\d+ +\d+ +\d+ +\d+\.\d\d +sectors$", out, re.M)
    assert re.search(r"matrices\.cu:\d+: global loads take \d+ sectors where \d+ would do", out)
