"""A pack: subjects compiled on one computer, to be timed on another that has a GPU but neither TVM nor nvcc.

One .zip: manifest.json says what is launched and how; the cubins lie beside it, each once, named after their content.
"""
from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Sequence

from tir_schedules.bench.subjects import VENDORS, Subject
from tir_schedules.emit import write_bytes
from tir_schedules.errors import BadInput, one_line
from tir_schedules.kernel import Binary, Kernel, Resources
from tir_schedules.workloads import workload_class

FORMAT, SCHEMA = "tir_schedules bench pack", 1
MANIFEST, CUB = "manifest.json", "cub_sum.so"
LAUNCH_FIELDS = ("label", "entry", "params", "grid", "block", "arch", "dynamic_shared")
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member, so that the same kernels make the same file


@dataclass(frozen=True)
class Pack:
    """What a pack holds. about: the packing side's provenance. cub: a shared library for the reductions, where there are any."""

    subjects: list[Subject]
    about: dict[str, Any]
    cub: bytes | None = field(default=None, repr=False)


def save_pack(subjects: Sequence[Subject], about: dict[str, Any], path: Path, cub: bytes | None = None) -> None:
    """Write a pack, whole or not at all. PTX and CUDA source are left out."""
    members = {}
    for subject in subjects:
        members |= {member(binary.cubin): binary.cubin for binary in subject.binaries}
    manifest = {"format": FORMAT, "schema": SCHEMA, "about": about, "subjects": [described(subject) for subject in subjects]}
    members[MANIFEST] = json.dumps(manifest, indent=1).encode()
    if cub:
        members[CUB] = cub
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), members[name], zipfile.ZIP_DEFLATED)
    write_bytes(path, buffer.getvalue())


def load_pack(path: Path) -> Pack:
    """Read a pack; every cubin is compared with its name. BadInput for a file that is none, or is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            if manifest["format"] != FORMAT:
                raise ValueError(f"its format is {manifest['format']!r}")
            if manifest["schema"] != SCHEMA:
                raise BadInput(f"{path} is a pack of schema {manifest['schema']}; this version reads schema {SCHEMA}: pack it again")
            subjects = [restored(entry, archive) for entry in manifest["subjects"]]
            cub = archive.read(CUB) if CUB in archive.namelist() else None
            return Pack(subjects, dict(manifest["about"]), cub)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}; name a pack that `bench --pack` wrote") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise BadInput(f"{path} is no pack that `bench --pack` wrote: {one_line(error)}") from None


def member(cubin: bytes) -> str:
    """A cubin's name in a pack."""
    return f"cubins/{hashlib.sha256(cubin).hexdigest()}.cubin"


def described(subject: Subject) -> dict[str, Any]:
    """A subject as the manifest has it."""
    launches = []
    for binary in subject.binaries:
        launch = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
        launches.append({"kernel": launch, "resources": asdict(binary.resources), "cubin": member(binary.cubin)})
    names = {"family": subject.family, "name": subject.name, "form": subject.form}
    return names | {"workload": asdict(subject.workload), "launches": launches}


def restored(entry: dict[str, Any], archive: zipfile.ZipFile) -> Subject:
    """The subject of a manifest entry. KeyError, TypeError or ValueError where it is not as `described` writes it."""
    if entry["family"] not in VENDORS:
        raise ValueError(f"there is no ladder {entry['family']!r}")
    workload = workload_class(entry["family"])(**entry["workload"])
    binaries = []
    for launch in entry["launches"]:
        cubin = archive.read(launch["cubin"])
        if member(cubin) != launch["cubin"]:
            raise ValueError(f"the content of {launch['cubin']} has changed")
        fields = dict(launch["kernel"])
        for name in ("params", "grid", "block"):
            fields[name] = tuple(fields[name])
        binaries.append(Binary(Kernel(source="", **fields), "", cubin, Resources(**launch["resources"])))
    return Subject(entry["family"], entry["name"], entry["form"], workload, tuple(binaries))
