"""The faults that are put into the code, and the script that runs the tests on them."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mutations
import pytest
from mutation_runs import LIST, Mutation, copy_tree, load_mutations

from tir_schedules.machines.cpu import codegen

ROOT = Path(__file__).parents[2]
ALL = load_mutations(LIST)


def test_ids_are_different_and_there_are_40():
    assert len({one.id for one in ALL}) == len(ALL) == 40
    assert all(re.fullmatch(r"[a-z0-9-]+", one.id) for one in ALL)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.id)
def test_it_applies_and_the_file_is_still_a_program(one):
    text = one.applied(ROOT)
    assert one.file.startswith("tir_schedules/") and one.near
    assert [path for path in one.near if not (ROOT / path).exists()] == []
    if one.file.endswith(".py"):
        before = ast.dump(ast.parse((ROOT / one.file).read_text()))
        assert ast.dump(ast.parse(text)) != before, "only a comment or the layout changes"


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in ALL if one.file.endswith(".cpp")], ids=lambda one: one.id)
def test_the_cpu_machine_with_it_compiles(one, tmp_path):
    source = tmp_path / "source.cpp"
    source.write_text(one.applied(ROOT))
    for name, text in codegen.generated().items():
        (tmp_path / name).write_text(text)
    core = ROOT / "tir_schedules/machines/cpu/core"
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", f"-I{core}", f"-I{tmp_path}", source]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


SOURCE = """def larger(a, b):
    if a > b:
        return a
    return b
"""
TEST = """from tir_schedules.core import larger


def test_larger():
    assert larger(1, 2) == 2
"""
PROJECT = """[tool.pytest.ini_options]
addopts = "-m 'not slow' -p no:hypothesispytest -p no:xdist -p no:xdist.looponfail"
markers = ["slow: slow"]
"""  # without plugins, which take seconds to import
OTHER = "from tir_schedules.core import larger\n\n\ndef test_equal():\n    assert larger(3, 2) == 3\n"


def row(id, old, new):
    near = ["tests/near", "tests/gone"]
    return {
        "id": id,
        "file": "tir_schedules/core.py",
        "what": f"[{id}]",
        "near": near,
        "old": old,
        "new": new,
    }


ROWS = [
    row("near", "a > b", "a < b"),
    row("far", "return a", "return None"),
    row("harmless", "a > b", "a >= b"),
    row("hangs", "    if a > b:\n", "    while a > 0:\n        pass\n    if a > b:\n"),
    row("elsewhere", "a != b", "a == b"),
]


@pytest.fixture
def tree(tmp_path):
    """A small project and a list of faults."""
    files = {
        "tir_schedules/__init__.py": "",
        "tir_schedules/core.py": SOURCE,
        "tests/near/test_near.py": TEST,
        "tests/test_other.py": OTHER,
        "pyproject.toml": PROJECT,
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "list.json").write_text(json.dumps(ROWS))
    return tmp_path / "tree"


@pytest.fixture
def call(calling, tree):
    """The script on the small project."""
    run = calling(mutations.main)
    return lambda *arguments: run("--tree", tree, "--list", tree.parent / "list.json", *arguments)


def test_what_finds_a_fault_and_what_nothing_finds(call, tree):
    file = tree.parent / "found.json"
    code, out, err = call("--only", "near", "far", "harmless", "--jobs", 3, "--out", file)
    assert (code, err) == (1, "")
    found = json.loads(file.read_text())
    results = {row["id"]: row["results"]["default"] for row in found["rows"]}
    assert {name: (ran["outcome"], ran["scope"], ran["test"]) for name, ran in results.items()} == {
        "near": ("found", "near", "tests/near/test_near.py::test_larger"),
        "far": ("found", "layer", "tests/test_other.py::test_equal"),
        "harmless": ("survived", "layer", ""),
    }
    assert found["layer"] == "default" and found["git_revision"] == ""
    assert all(ran["seconds"] > 0 for ran in results.values())
    assert "default layer: 2 of 3 faults found" in out
    assert (tree / "tir_schedules" / "core.py").read_text() == SOURCE

    code, out, _ = call("--table", file)
    cells = [re.split(r"  +", line) for line in out.splitlines()]
    assert code == 0 and cells[:4] == [
        ["fault", "file", "default"],
        ["[near]", "core.py", "near/test_near.py::test_larger"],
        ["[far]", "core.py", "test_other.py::test_equal"],
        ["[harmless]", "core.py", "survived"],
    ]


def test_both_layers_and_two_revisions_in_a_table(call, tree):
    first, second = tree.parent / "first.json", tree.parent / "second.json"
    (tree / "tests" / "test_slow.py").write_text(
        f"import pytest\n{TEST}".replace("def", "@pytest.mark.slow\ndef")
    )
    shutil.rmtree(tree / "tests" / "near")
    (tree / "tests" / "test_other.py").write_text("def test_nothing():\n    pass\n")
    assert call("--only", "near", "--layer", "both", "--out", first)[0] == 0
    found = json.loads(first.read_text())
    ran = found["rows"][0]["results"]
    assert [ran[layer]["outcome"] for layer in ("default", "slow")] == ["survived", "found"]
    second.write_text(json.dumps(found | {"git_revision": "0123456789abcdef"}))
    out = call("--table", first, second)[1].splitlines()
    assert re.split(r"  +", out[0]) == ["fault", "file", "default", "slow"] + [
        f"{layer} 0123456789ab" for layer in ("default", "slow")
    ]
    assert re.split(r"  +", out[1])[2:] == ["survived", "test_slow.py::test_larger"] * 2


def test_tests_that_hang_find_a_fault(call):
    code, out, _ = call("--only", "hangs", "--timeout", 1.5)
    assert code == 0 and "hangs: default, near: timeout not done after 1.5 s" in out


def test_a_tree_with_a_fault_of_its_own_is_refused(call, tree):
    (tree / "tests" / "test_other.py").write_text(OTHER.replace("== 3", "== 4"))
    code, _, err = call("--only", "near", "--check-clean")
    assert (code, err) == (1, "without any fault the default layer fails: tests/test_other.py::test_equal\n")
    assert (
        call("--only", "harmless", "--check-clean", "--deselect", "tests/test_other.py::test_equal")[0] == 1
    )


def test_another_package_than_that_of_the_copy_is_never_tested(call, tree):
    (tree / "tir_schedules").rename(tree / "experiments")
    rows = [one | {"file": "experiments/core.py"} for one in ROWS]
    (tree.parent / "list.json").write_text(json.dumps(rows))
    code, out, err = call("--only", "near")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert "pytest failed with exit code 97, but no test did: tir_schedules would be imported from" in err


def test_a_test_that_cannot_be_imported_finds_a_fault(call, tree):
    (tree.parent / "list.json").write_text(json.dumps([row("broken", "def larger", "def smaller")]))
    code, out, _ = call()
    assert code == 0 and "broken: default, near: found tests/near/test_near.py" in out


def test_what_does_not_apply_is_said(call, tree):
    file = tree.parent / "found.json"
    code, out, err = call("--only", "near", "elsewhere", "--out", file)
    why = "tir_schedules/core.py has the text to replace 0 times, not once"
    assert code == 2 and err == f"some do not apply to {tree}: elsewhere: {why}\n"
    assert "default layer: 1 of 1 faults found, 1 do not apply" in out
    rows = json.loads(file.read_text())["rows"]
    assert [row["applies"] for row in rows] == [True, False] and rows[1]["reason"] == why
    assert "does not apply" in call("--table", file)[1]


BAD = {
    "unknown id": (["--only", "nera"], "there is no mutation 'nera', did you mean 'near'?"),
    "nothing applies": (["--only", "elsewhere"], "nothing to do: elsewhere: tir_schedules/core.py has"),
    "no list": (["--list", "no.json"], "cannot read no.json"),
    "no results": (["--table", LIST], "has no results of mutations"),
    "no file of results": (["--table", "no.json"], "cannot read no.json"),
    "no checkout": (["--tree", "no"], "is not a checkout"),
    "jobs": (["--jobs", "0"], "--jobs is 0; it must be at least 1"),
    "timeout": (["--timeout", "nan"], "--timeout is nan; it must be more than 0 seconds"),
    "nowhere to write": (["--out", "no/no.json"], "cannot write no/no.json"),
}


@pytest.mark.parametrize("arguments, said", BAD.values(), ids=BAD)
def test_bad_input_is_one_line(call, arguments, said):
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


@pytest.mark.parametrize(
    "text, said",
    [
        ("{}", "is not a list of mutations"),
        ("[1]", "[0] should have file, id, near, new, old, what"),
        (json.dumps([ROWS[0] | {"new": 1}]), "[0] should have texts alone"),
        (json.dumps([ROWS[0] | {"new": "a > b"}]), "[0] changes nothing"),
        (json.dumps([ROWS[0] | {"file": "../x"}]), "or a file outside the tree"),
        (json.dumps([ROWS[0] | {"id": "/tmp/x"}]), "[0] has the id '/tmp/x'; it takes letters"),
        (json.dumps([ROWS[0] | {"id": "a\n"}]), "[0] has the id 'a\\n'; it takes letters"),
        (json.dumps([ROWS[0], ROWS[0]]), "several mutations with the id 'near'"),
    ],
)
def test_a_list_of_something_else_is_refused(call, tree, text, said):
    (tree.parent / "list.json").write_text(text)
    code, _, err = call()
    assert (code, err.count("\n")) == (2, 1) and said in err


def test_a_copy_has_what_git_tracks_as_it_is_now(tree, tmp_path):
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    (tree / "tir_schedules" / "core.py").write_text("changed = True\n")
    (tree / "tests" / "test_other.py").unlink()
    (tree / "untracked.txt").write_text("")
    copy_tree(tree, tmp_path / "copy")
    assert (tmp_path / "copy" / "tir_schedules" / "core.py").read_text() == "changed = True\n"
    names = {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*.*")}
    assert names == {
        "pyproject.toml", "tests/near/test_near.py", "tir_schedules/__init__.py", "tir_schedules/core.py",
    }  # fmt: skip


def test_a_copy_lacks_the_tests_of_the_list_itself(tree, tmp_path):
    own = tree / "tests" / "experiments" / "test_mutations.py"
    own.parent.mkdir()
    own.write_text("")
    copy_tree(tree, tmp_path / "copy")
    assert (tmp_path / "copy" / "tests").is_dir() and not (tmp_path / "copy" / own.relative_to(tree)).exists()


def test_ctrl_c_ends_the_tests_it_started(tree):
    """And leaves no copy behind."""
    mark = tree.parent / "started"
    (tree / "tests" / "near" / "test_near.py").write_text(
        f"import os, time\n\n\ndef test_long():\n    open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, mutations.__file__, "--tree", tree, "--list", tree.parent / "list.json"]
    environment = {**os.environ, "TMPDIR": str(tree.parent)}
    with subprocess.Popen([*command, "--only", "near"], env=environment, stderr=subprocess.PIPE) as script:
        until = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        script.send_signal(signal.SIGINT)
        assert script.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
    assert list(tree.parent.glob("tir_schedules-*")) == []


def test_a_mutation_says_why_it_does_not_apply(tree):
    twice = Mutation("twice", "tir_schedules/core.py", "", (), "return", "")
    with pytest.raises(ValueError, match="2 times, not once"):
        twice.applied(tree)


def test_a_file_behind_a_link_is_never_written(tree, tmp_path):
    (tmp_path / "outside.py").write_text("return\n")
    (tree / "tir_schedules" / "link.py").symlink_to(tmp_path / "outside.py")
    (tree / "linked").symlink_to(tmp_path)
    for file in ("tir_schedules/link.py", "linked/outside.py"):
        with pytest.raises(ValueError, match="is a link, or lies behind one"):
            Mutation("linked", file, "", (), "return", "").applied(tree)


@pytest.mark.parametrize("change", [{"layer": None}, {"layer": ["default"]}, {"layer": "fast"}])
def test_results_of_another_layer_are_refused(call, tmp_path, change):
    row = {
        "id": "a",
        "file": "b",
        "what": "c",
        "applies": True,
        "results": {"fast": {"outcome": "", "test": ""}},
    }
    found = {"git_revision": "", "layer": "default", "rows": [row]} | change
    for rows in ([row], [row | {"applies": False, "results": {}}] if change["layer"] != "fast" else [row]):
        (tmp_path / "found.json").write_text(json.dumps(found | {"rows": rows}))
        code, _, err = call("--table", tmp_path / "found.json")
        assert code == 2 and "has no results of mutations" in err
