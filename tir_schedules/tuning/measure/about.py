"""What this computer has, printed for one that searches: see building/hosts.py.

python -m tir_schedules.tuning.measure.about
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from tir_schedules.machines.choice import choose
from tir_schedules.tuning.building.hosts import About, versions

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine


def about() -> About:
    """Facts of the GPUs that are like the first."""
    machine, cores = choose("auto"), os.cpu_count() or 1
    if machine.name != "gpu":
        return About([], "", "", cores, versions())
    gpu = cast("GpuMachine", machine)
    return About(gpu.alike(), gpu.arch, gpu.device_name, cores, versions())


if __name__ == "__main__":
    print(json.dumps(asdict(about())))
