"""A few opcodes and launches of tests are packed, launched on a GPU that is the CPU machine, and compared."""

import json
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

import instruction_modules
import instruction_results
import instructions_on_gpu
import numpy as np
import pytest
from instruction_results import read_record, wrong_lines

from tir_schedules.files import lists_to_tuples
from tir_schedules.machines import gpu
from tir_schedules.machines.cpu.catalogue import entries as lines_of_table
from tir_schedules.model.launch import TensorMap

TESTS = (
    "test_memory_instructions.py::test_parameters_of_every_type",
    "test_parameters.py::test_a_struct_by_value",
    "test_warp_instructions.py::test_dynamic_shared_memory_lies_behind_the_static",
    "test_conversions.py::test_signs_of_packed_halves",
)
OPCODES = ("add.u32", "sqrt.approx.f32", "add.bf16")
RECORD = Path(__file__).parents[2] / "experiments" / "results" / "instructions_h200.json"
STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A pack in which PTX that ptxas took stands for the cubins."""
    really = instruction_modules.assemble

    def assemble(module, path, ptxas, arch):
        really(module, path, ptxas, arch)
        left = {number: case for number, case in module.cases.items() if number not in module.refused}
        module.cubin = instruction_modules.joined(left, module, arch)[0].encode()

    path = tmp_path_factory.mktemp("instructions") / "i.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instruction_modules, "assemble", assemble)
        command = ["pack", str(path), "--arch", "sm_80", "--tests", *TESTS, "--opcodes", *OPCODES]
        assert instructions_on_gpu.main(command) == 0
    return path


@pytest.fixture
def entries(packed):
    """Name of a launch -> that of its kernel."""
    manifest = json.loads(zipfile.ZipFile(packed).read("instructions.json"))
    return {entry["name"]: entry["entry"] for entry in manifest["cases"] if "entry" in entry}


@pytest.fixture
def run(packed, tmp_path, monkeypatch, capsys):
    """Run the pack: the exit code, the rows, and what is printed. changed: see stand_in/cupy.py."""

    def run(changed=""):
        monkeypatch.setenv("PYTHONPATH", f"{Path.cwd()}:{STAND_IN}:{STAND_IN.parents[1] / 'machines'}")
        monkeypatch.setenv("CUPY_CHANGES", changed)
        monkeypatch.syspath_prepend(str(STAND_IN))
        monkeypatch.setitem(sys.modules, "cupy", None)  # so that none is left there afterwards
        del sys.modules["cupy"]
        monkeypatch.setattr(gpu, "import_cupy", lambda: __import__("cupy"))
        result = tmp_path / "r.json"
        code = instructions_on_gpu.main(["run", str(packed), str(result), "--jobs", "2"])
        return code, json.loads(result.read_text())["cases"], capsys.readouterr()

    return run


def test_equal_results_pass(run):
    code, rows, printed = run()
    assert code == 0, printed.err
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes.pop("table: add.bf16") == "ptxas refuses"
    assert {name.partition("[")[0] for name in outcomes if "::" in name} == {*TESTS}
    assert {*outcomes.values()} == {"equal"}
    assert len(outcomes) >= 2 + 9 + 1 + 1 + 8
    assert "- ptxas refuses add.bf16: " in printed.out


def test_a_changed_bit_fails(run, entries):
    code, rows, printed = run(entries["table: add.u32"])
    assert code == 1 and "though the table says exact: table: add.u32" in printed.err
    example = rows["table: add.u32"]["example"]
    assert int(example["ours"], 16) ^ int(example["gpu"], 16) == 1 and len(example["operands"]) == 2
    assert rows["table: add.u32"]["differing"] == 1 and "- add.u32: 1 of 64 in Y differ" in printed.out


def test_what_is_modelled_may_differ(run, entries):
    code, _, printed = run(entries["table: sqrt.approx.f32"])
    assert code == 0 and "- sqrt.approx.f32 (modelled): 1 of 128 in Y differ, up to 1 ulp" in printed.out


def test_what_stores_an_address_may_differ(run, entries):
    name = next(name for name in entries if "lies_behind_the_static" in name)
    code, rows, _ = run(entries[name])
    assert code == 0 and rows[name]["outcome"] == "differs" and rows[name]["lenient"] == "addresses"


@pytest.mark.parametrize(
    "a, b, number",
    [(0x7FFFFFFF, 0xFFC00001, [32, 8, 23]), (0x7E004568, 0x7FFF4568, [16, 5, 10])],
    ids=["float32", "a half beside another"],
)
def test_two_nan_are_equal(a, b, number):
    ours, theirs = (np.array([bits, 0x3F800000], np.uint32) for bits in (a, b))
    for held, outcome in ((number, "equal"), (None, "differs")):
        entry = {"number": held, "operands": []}
        row = instruction_results.compared(entry, {}, {"Y": ours}, {"Y": theirs}, None)
        assert row["outcome"] == outcome


def test_a_process_that_ends_early_costs_one_launch(packed, monkeypatch, tmp_path):
    """The one that it was at; the next process goes on after it."""

    def ends(command, seconds):
        numbers = command[5:]
        Path(command[4]).write_text('{"outcome": "equal"}\n' * len(numbers[:2]))
        return "an error" if len(numbers) > 2 else ""

    monkeypatch.setattr(instructions_on_gpu, "fault_of", ends)
    options = instructions_on_gpu.parser().parse_args(["run", str(packed), str(tmp_path / "r.json")])
    rows = instructions_on_gpu.outcomes([3, 5, 7, 9], options)
    assert {number: row.get("why") for number, row in rows.items()} == {
        3: None,
        5: None,
        7: "an error",
        9: None,
    }


def test_results_of_two_packs_are_one():
    one, two = (
        {"packed": {"arch": arch}, "device": {}, "runs": [arch], "cases": {"both": {"of": arch}, arch: {}}}
        for arch in ("sm_90", "sm_90a")
    )
    both = instruction_results.together([one, two])
    assert both["cases"] == {"both": {"of": "sm_90a"}, "sm_90": {}, "sm_90a": {}}
    assert both["runs"] == ["sm_90", "sm_90a"] and [p["arch"] for p in both["packed"]] == both["runs"]
    assert instruction_results.together([one]) is one


def test_clusters_are_declared_and_maps_are_packed():
    text = ".visible .entry k(\n.param .u64 X,\n.param .u64 Y)\n{\nret;\n}"
    declared = instruction_modules.in_clusters(text, (2, 1, 1))
    assert "Y) .explicitcluster .reqnctapercluster 2, 1, 1\n{" in declared
    there = TensorMap("A_map", "A", "float16", (24, 96), (192,), (8, 64), 128)
    assert TensorMap(**lists_to_tuples(json.loads(json.dumps(asdict(there))))) == there


def test_what_is_recorded_has_a_row_for_each_line(run, tmp_path):
    run()
    written = tmp_path / "lines.json"
    assert instructions_on_gpu.main(["table", str(tmp_path / "r.json"), "--write", str(written)]) == 0
    rows = {row["opcodes"]: row for row in read_record(written)}
    assert rows.keys() == {line.opcodes for line in lines_of_table() if line.precision != "refused"}
    roots = rows["sqrt.approx{,.ftz}.f32"]
    assert (roots["of"], roots["held"], roots["differs"]) == (2, 1, 0)
    assert not wrong_lines(rows.values())
    assert wrong_lines([{"opcodes": "x", "precision": "exact", "differs": 1}]) == ["x"]


def test_the_record_of_an_h200_agrees_with_the_table():
    """Lines of the record that the table still has, and calls exact."""
    if not RECORD.exists():
        pytest.skip("no result of a GPU is recorded")
    rows, exact = (
        read_record(RECORD),
        {line.opcodes for line in lines_of_table() if line.precision == "exact"},
    )
    assert not wrong_lines(row for row in rows if row["opcodes"] in exact)
    assert sum(row["held"] for row in rows) > 2000 and RECORD.stat().st_size < 100_000


def test_other_files_are_bad_input(tmp_path, capsys):
    other = tmp_path / "other"
    other.write_text("[]")
    assert (
        instructions_on_gpu.main(["table", str(other)]) == 2 and "is not a result" in capsys.readouterr().err
    )
    assert instructions_on_gpu.main(["run", str(other), str(tmp_path / "r.json")]) == 2
    assert "is not a pack" in capsys.readouterr().err
