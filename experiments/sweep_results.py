"""Results of sweeps as one document: what `bench --output` writes, and in it what is known of each point
without a GPU.

"arch": what was compiled for. "points": a row for each point and form: registers, bytes of spills and of
shared memory, occupancy, what the CPU machine counts at a small size ("counted"), or why the point "cannot"
be.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Sequence

from sweep_points import Sweep

from tir_schedules.bench import session
from tir_schedules.bench.measure import Measurement
from tir_schedules.cli.options import check_pack_arch
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import current
from tir_schedules.machines.choice import arch_for
from tir_schedules.model.gpus import find_sm
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.results import about, document, load_results

SCRIPT = "experiments/sweeps.py"


def command_of(sweeps: Sequence[Sweep]) -> str:
    return " ".join([SCRIPT, *(sweep.name for sweep in sweeps)])


def pack(sweeps: Sequence[Sweep], arch: str | None, path: Path) -> tuple[str, list[dict[str, str]]]:
    """Compile and count for another computer's GPU; returns a line of what is packed, and refused rows."""
    from sweep_counting import prepared

    arch = check_pack_arch(arch)
    find_sm(arch)
    made = prepared(sweeps, arch, timed=True)
    save_pack(
        made.subjects,
        {**about(command_of(sweeps)), "arch": arch, "refused": made.refused, "points": made.points},
        path,
        session.cub_library(made.subjects, arch),
    )
    advice = f"copy {path} to where the GPU is and run `python {SCRIPT} {path.name}`"
    return f"packed {len(made.subjects)} subjects for {arch}: {advice}", made.refused


def results_here(sweeps: Sequence[Sweep], machine: Any, asked: str | None) -> dict[str, Any]:
    """The document of this computer: timed where the machine is a GPU. asked: the architecture to compile
    for, if any."""
    from sweep_counting import prepared

    gpu, arch = machine.name == "gpu", arch_for(machine, asked)
    find_sm(arch)
    made = prepared(sweeps, arch, timed=gpu)
    measurement, policy = Measurement(), {}
    if gpu:
        measurement, followed = session.measure_subjects(machine, made.subjects, session.Policy(), None)
        policy = asdict(followed)
    return document(about(command_of(sweeps)), measurement, policy, made.refused) | {
        "arch": arch,
        "points": made.points,
    }


def results_of_pack(path: Path) -> dict[str, Any]:
    """Time what a pack holds on this computer's GPU."""
    if not {"arch", "points"} <= load_pack(path).about.keys():
        raise BadInput(f"{path} is a pack of something else; name one that {SCRIPT} --pack wrote")
    results = session.measure_pack(path, f"{SCRIPT} {path.name}")
    return current(results | {key: results["packed"].pop(key) for key in ("arch", "points")})


def load_sweeps(path: Path) -> dict[str, Any]:
    """Read a document. BadInput, in one line, for a file that is none."""
    return load_results(path, "Sweeps", "name a JSON file that `experiments/sweeps.py --output` wrote")
