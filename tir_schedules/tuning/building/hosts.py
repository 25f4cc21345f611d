"""Other computers that OpenSSH reaches: a process there is asked through `ssh` as one here through pipes."""

from __future__ import annotations

import json
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from tir_schedules import processes
from tir_schedules.errors import BadInput, CheckFailed, MissingTool, one_line
from tir_schedules.provenance import git_revision, software_versions

UNREACHED = 255
"""Exit code of ssh when it does not reach a host, or loses it."""

SECONDS = 60
"""What a host may take to say what it has."""

OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15")
"""No terminal, no questions, and 45 seconds without a sign of life are the end."""

ALIKE = ("tir_schedules", "apache-tvm", "nvidia-cuda-nvcc")
"""Packages whose versions must be those of this computer: kernels and the code that times them travel."""


@dataclass(frozen=True)
class Host:
    """A computer that ssh reaches. name: as ssh takes it. python: what has this package there."""

    name: str
    python: str = "python3"

    def command(self, module: str, environment: Mapping[str, str] = {}) -> list[str]:
        """What runs a module there. Its exit code is ssh's own, 128 and more where a signal ends it."""
        variables = (f"{name}={value}" for name, value in environment.items())
        there = ("sh", "-c", '"$@"; exit $?', "sh", "env", *variables, self.python, "-m", module)
        return ["ssh", *OPTIONS, "--", self.name, shlex.join(there)]


@dataclass(frozen=True)
class About:
    """What a host has. gpus: CUDA_VISIBLE_DEVICES for each that is like the first; may be empty.

    arch, device: of the first GPU, empty without one. cores: of its CPU. versions: of ALIKE and this project.
    """

    gpus: list[str]
    arch: str
    device: str
    cores: int
    versions: dict[str, str]


class Hosts:
    """Computers that measure, or build where they have no GPU; all of them have GPUs of one name, or none.

    name, arch, device_name: as a machine has them. found: what each has. BadInput for a host that cannot be
    reached or cannot run this package, CheckFailed when they differ.
    """

    def __init__(self, names: Sequence[str]) -> None:
        hosts = [host_of(name) for name in names]
        with ThreadPoolExecutor(len(hosts)) as pool:
            self.found = dict(zip(hosts, pool.map(about_of, hosts)))
        kinds = {host.name: one.device or "no GPU" for host, one in self.found.items()}
        if len(set(kinds.values())) > 1:
            listed = "; ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise CheckFailed(f"the hosts differ, so their times cannot be compared: {listed}")
        first = self.found[hosts[0]]
        self.arch, self.device_name = first.arch, first.device
        self.name = "gpu" if first.gpus else "cpu"


def host_of(text: str) -> Host:
    """ "gpu1" or "me@gpu1:/opt/venv/bin/python". BadInput for what ssh would take for an option."""
    name, colon, python = text.partition(":")
    if not name or name.startswith("-") or (colon and not python):
        raise BadInput(f"--on takes HOST or HOST:PYTHON such as gpu1:/opt/venv/bin/python, not {text!r}")
    return Host(name, python or Host.python)


def about_of(host: Host) -> About:
    """What a host says of itself."""
    advice = f"`ssh {host.name} {host.python} -m tir_schedules doctor` has to work"
    try:
        done = processes.run(host.command("tir_schedules.tuning.measure.about"), timeout=SECONDS)
    except FileNotFoundError:
        raise MissingTool("--on needs ssh, which is not installed: install OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise BadInput(f"{host.name} does not answer within {SECONDS} s: {advice}") from None
    said = one_line(done.stderr.strip().rpartition("\n")[2])
    if done.returncode:
        fault = "cannot be reached" if done.returncode == UNREACHED else "cannot measure"
        raise BadInput(f"{host.name} {fault} ({said or f'exit code {done.returncode}'}): {advice}")
    try:
        found = About(**json.loads(done.stdout.strip().rpartition("\n")[2]))  # a shell may greet before
    except (ValueError, TypeError):
        raise BadInput(f"{host.name} answers {done.stdout[-60:]!r}: {advice}") from None
    check_alike(host, found.versions)
    return found


def check_alike(host: Host, there: Mapping[str, str]) -> None:
    """BadInput where this package or a compiler has another version."""
    for name, here in versions().items():
        if here and there.get(name) and here != there[name]:
            raise BadInput(f"{host.name} has {name} {there[name]}, this computer {here}: install one there")


def versions() -> dict[str, Any]:
    """Versions of ALIKE here, and this project's revision, which is empty outside git."""
    known = software_versions()
    return {"revision": git_revision()} | {name: known.get(name, "") for name in ALIKE}
