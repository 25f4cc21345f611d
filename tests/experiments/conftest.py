"""What tests of the scripts share."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("experiments", "tests/bench", "tests/tuning")]


@pytest.fixture
def calling(capsys):
    """Of a script's main, what calls it and returns exit code, standard output, standard error."""

    def calling(main):
        return lambda *arguments: (main(list(map(str, arguments))), *capsys.readouterr())

    return calling
