"""The house has one direction: a row imports only rows above it, and there is no circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "tir_schedules"

ROWS = (
    "errors version interrupts keeper numerals processes files console provenance pages embedded",
    "model",
    "workloads",
    "tir",
    "ladders",
    "compiler",
    "machines",
    "timing",
    "source verdicts faults run emit doctor",
    "check",
    "subjects",
    "bench",
    "insight",
    "tuning",
    "report",
    "lessons",
    "book",
    "api",
    "cli",
    "sgemm hgemm reduce __main__ pytest_plugin",
)
ROW = {name: number for number, names in enumerate(ROWS) for name in names.split()}


def modules(root):
    """Dotted name -> file, of all modules of the package."""
    files = (root / PACKAGE).rglob("*.py")
    names = {".".join(path.relative_to(root).with_suffix("").parts): path for path in files}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def imports(root):
    """Module -> modules of the package that it imports, also within functions and for type checkers."""
    known, found = modules(root), {}
    for name, path in known.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names if alias.name in known}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}:{node.lineno} imports relatively"
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                found[name] |= {member if member in known else node.module for member in members}
    return {name: {each for each in others if each in known} - {name} for name, others in found.items()}


def spelled(root):
    """Module -> modules of the package that a string of it names, as import_module() and `python -m` take
    them. Of an f-string the part before its first {}. The name of the package itself has other uses.
    """
    known, found = modules(root), {}
    for name, path in known.items():
        tree = ast.walk(ast.parse(path.read_text()))
        texts = (
            node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        found[name] = {text.rstrip(".") for text in texts} & known.keys() - {name, PACKAGE}
    return found


def row(module):
    """The number of the row a module stands in. The package itself is what the library offers."""
    return ROW[module.split(".")[1] if "." in module else "api"]


def upward(found):
    return [f"{name} imports {other}" for name in found for other in found[name] if row(other) > row(name)]


def test_every_arrow_points_downwards():
    assert upward(imports(ROOT)) == []
    assert upward(spelled(ROOT)) == []


def test_the_package_needs_neither_tests_nor_experiments():
    for path in modules(ROOT).values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = (
                    [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
                )
                assert not {name.split(".")[0] for name in names} & {"tests", "experiments"}, path


def test_there_is_no_circle():
    TopologicalSorter(imports(ROOT)).prepare()  # CycleError has the modules of a circle


IMPORTS = (f"from {PACKAGE}.cli.main import main", f"import {PACKAGE}.cli.main", f"from {PACKAGE} import cli")
NAMES = (f'import_module("{PACKAGE}.cli.main")', f'import_module(f"{PACKAGE}.cli.{{verb}}")')


@pytest.mark.parametrize("line", IMPORTS + NAMES)
@pytest.mark.parametrize("module", ["run.py", "bench/measure.py", "ladders/sgemm/naive.py"])
def test_what_imports_the_command_line_is_seen(module, line, tmp_path):
    path = tmp_path / PACKAGE / module
    path.parent.mkdir(parents=True)
    path.write_text(f"def later():\n    {line}\n")
    (tmp_path / PACKAGE / "cli").mkdir()
    for file in ("__init__.py", "main.py"):
        (tmp_path / PACKAGE / "cli" / file).write_text("")
    assert len(upward(spelled(tmp_path) if line in NAMES else imports(tmp_path))) == 1
