"""What tests of the scripts share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def calling(capsys):
    """Of a script's main, what calls it and returns exit code, standard output, standard error."""

    def calling(main):
        return lambda *arguments: (main(list(map(str, arguments))), *capsys.readouterr())

    return calling
