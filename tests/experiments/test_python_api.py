"""The script that shows the library runs as it stands, with one import of this project, in 25 lines."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "experiments" / "python_api.py"


def test_it_is_short_and_imports_the_package_alone():
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 25
    assert re.findall(r"^(?:import|from) (?:tir_schedules|numpy|tvm).*", text, re.M)[2:] == [
        "import tir_schedules as ts"
    ]


def test_it_emits_checks_counts_and_shows():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    assert "void __launch_bounds__(64) transpose(float* __restrict__ A_ptr" in done.stdout
    assert "2 of 2 verified" in done.stdout and "both leave the same, bit for bit" in done.stdout
    assert "<td>  stores: sectors (ideal)</td><td>8,192 (1,024)</td><td>8,192 (1,024)</td>" in done.stdout
