"""Where a result comes from: device, clocks, driver, versions, git revision."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from pathlib import Path
from typing import Mapping

from tir_schedules import processes
from tir_schedules.files import Json

PACKAGES = (
    "tir_schedules",
    "apache-tvm",
    "apache-tvm-ffi",
    "cuda-toolkit",
    "nvidia-cuda-nvcc",
    "numpy",
    "cupy-cuda13x",
)
DEVICE_FIELDS = (
    "name",
    "uuid",
    "driver_version",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "power.limit",
    "memory.total",
)


def output_of(command: list[str], folder: Path | None = None) -> str:
    """What a command prints, or nothing when it is missing or fails."""
    if not shutil.which(command[0]):
        return ""
    done = processes.run(command, cwd=folder)
    return done.stdout.strip() if done.returncode == 0 else ""


def git_revision() -> str:
    """Commit of the working tree this package is in, with "+changes" when files differ from it; empty outside
    git."""
    folder = Path(__file__).parent
    revision = output_of(["git", "rev-parse", "HEAD"], folder)
    changed = revision and output_of(["git", "status", "--porcelain", "--untracked-files=no"], folder)
    return revision + ("+changes" if changed else "")


def software_versions() -> dict[str, str]:
    """Versions of Python and of the packages a result depends on, those that are installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def named_versions(*packages: str) -> str:
    """ "apache-tvm 0.27.0, cuda-toolkit 13.0": those of the packages that are installed."""
    versions = software_versions()
    return join_known({name: versions.get(name) for name in packages})


def join_known(parts: Mapping[str, object]) -> str:
    """Names with what is known of them, in one line; a name may be empty."""
    return ", ".join(f"{name} {value}".strip() for name, value in parts.items() if value)


def device_provenance() -> Json:
    """Name, UUID, driver, clocks (MHz), power limit (W) and memory (MiB) of the first GPU as nvidia-smi says;
    empty without one."""
    line = output_of(
        ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(DEVICE_FIELDS)}", "--format=csv,noheader,nounits"]
    )
    return dict(zip(DEVICE_FIELDS, line.split(", "))) if line else {}
