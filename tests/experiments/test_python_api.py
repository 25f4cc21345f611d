"""The script that shows the Python API runs as it stands and says what the verbs say."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "experiments" / "python_api.py"


def test_it_verifies_and_counts():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    code, verdict, counted = done.stdout.splitlines()
    assert code.startswith("sgemm/warp_tiling on 256x256x128: ") and code.endswith(", grid (4, 4, 1)")
    assert verdict.startswith("pass; ")
    assert counted == "29696 requests to shared memory take 94208 wavefronts, ideal 90112"
