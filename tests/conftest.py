"""Options of the tests."""
import json
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the recorded facts from what the code does now")


@pytest.fixture
def golden(request):
    """golden(path, key, facts): facts equal those recorded under the key of a JSON file; with --update-golden they are recorded."""

    def check(path: Path, key: str, facts):
        facts = json.loads(json.dumps(facts))
        recorded = json.loads(path.read_text()) if path.exists() else {}
        if request.config.getoption("--update-golden"):
            path.write_text(json.dumps(dict(sorted((recorded | {key: facts}).items())), indent=1) + "\n")
        else:
            assert facts == recorded.get(key), "run pytest --update-golden (without -n) if the change is wanted"

    return check
