"""A pack: subjects compiled on one computer, to be timed on another that has a GPU but neither TVM nor nvcc.

One .zip: manifest.json says what is launched and how; the cubins lie beside it, each once, named after their
content, and CUB's sums as a shared library, whose SHA-256 is in the manifest. These hashes show damage and
mistakes. They are not a signature: who changes a pack can change them, too, and a pack is code that runs, its
kernels on the GPU, CUB's library on the CPU. Only packs of those one trusts are to be timed.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Sequence

from tir_schedules.errors import BadInput, one_line, shown
from tir_schedules.files import LIMIT, Json, fault_of, lists_to_tuples, plain_json, read_bytes, write_bytes
from tir_schedules.ladders.known import workload_class
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import TensorMap
from tir_schedules.subjects.subject import Subject

FORMAT, SCHEMA = "tir_schedules bench pack", 1
MANIFEST, CUB = "manifest.json", "cub_sum.so"
LAUNCH_FIELDS = ("label", "entry", "params", "grid", "block", "arch", "dynamic_shared")
ALONE = (1, 1, 1)
"""The cluster of a kernel that is launched without one; a pack leaves it out, as earlier versions did."""

LARGEST = 256 << 20
"""Most bytes of a pack, and of all that it unpacks to. Of all kernels of a ladder at six sizes it is less
than an eighth."""

REMEDY = "name a pack that `bench --pack` wrote"
BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, KeyError, OSError,
    OverflowError, RuntimeError, ValueError
)  # fmt: skip
"""What zipfile raises for archives that are damaged, encrypted or packed by other methods."""

ENCRYPTED = 1  # the bit of a member's flags
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member, so that the same kernels make the same file


@dataclass(frozen=True)
class Pack:
    """What a pack holds. about: the packing side's provenance. cub: a shared library for the reductions,
    where there are any."""

    subjects: list[Subject]
    about: Json
    cub: bytes | None = field(default=None, repr=False)


def save_pack(subjects: Sequence[Subject], about: Json, path: Path, cub: bytes | None = None) -> None:
    """Write a pack, whole or not at all. PTX and CUDA source are left out."""
    members = {}
    for subject in subjects:
        members |= {member(binary.cubin): binary.cubin for binary in subject.binaries}
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "about": about,
        "subjects": [describe_subject(subject) for subject in subjects],
    }
    if cub:
        members[CUB] = cub
        manifest["cub"] = {"sha256": hashlib.sha256(cub).hexdigest()}
    members[MANIFEST] = json.dumps(manifest, indent=1).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), members[name], zipfile.ZIP_DEFLATED)
    write_bytes(path, buffer.getvalue())


def load_pack(path: Path) -> Pack:
    """Read a pack; cubins are compared with their names, CUB's library with its hash. Nothing of it is
    executed.

    BadInput, in one line with the place, for a file that is not a pack, is damaged, or is larger than LARGEST
    when it is unpacked.
    """
    content = read_bytes(path, REMEDY, LARGEST)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_members(archive)
            manifest = manifest_in(archive, path)
            cubins: dict[str, bytes] = {}
            subjects = [restore_subject(entry, archive, cubins) for entry in manifest["subjects"]]
            return Pack(subjects, dict(manifest["about"]), cub_in(archive, manifest))
    except BROKEN as error:
        raise BadInput(
            f"{path} is not a pack that `bench --pack` wrote: {one_line(error) or type(error).__name__};"
            f" {REMEDY}"
        ) from None


def check_members(archive: zipfile.ZipFile) -> None:
    """ValueError for members that `save_pack` does not write, or too much of them. Nothing is unpacked."""
    members = archive.infolist()
    names = {info.filename for info in members}
    if len(names) < len(members):
        raise ValueError("two of its members have the same name")
    for info in members:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & ENCRYPTED:
            raise ValueError(
                f"{shown(info.filename)} is encrypted or compressed by another method than deflate"
            )
        if info.filename == MANIFEST and info.file_size > LIMIT:
            raise ValueError(f"its manifest has more than {LIMIT >> 20} MiB")
    if sum(info.file_size for info in members) > LARGEST:
        raise ValueError(f"it unpacks to more than {LARGEST >> 20} MiB")


def content_of(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member, unpacked no further than the size it claims, which `check_members` has allowed."""
    with archive.open(name) as file:
        return file.read(archive.getinfo(name).file_size)


def manifest_in(archive: zipfile.ZipFile, path: Path) -> Json:
    """The manifest, as its schema says. BadInput for one of another version, ValueError for anything else."""
    from tir_schedules.subjects.schemas import Manifest

    manifest = plain_json(content_of(archive, MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(
            f"its format is {shown(manifest.get('format')) if isinstance(manifest, dict) else 'not said'}"
        )
    if type(manifest.get("schema")) is not int or manifest["schema"] != SCHEMA:
        schema = shown(manifest.get("schema"))
        raise BadInput(
            f"{path} is a pack of schema {schema}; this version reads schema {SCHEMA}: pack it again"
        )
    fault = fault_of(manifest, Manifest)
    if fault:
        raise ValueError(f"{MANIFEST}: {fault}")
    return manifest


def cub_in(archive: zipfile.ZipFile, manifest: Json) -> bytes | None:
    """CUB's library, if it is the one that was packed; None where there is none. ValueError for another, and
    one without its hash."""
    if CUB not in archive.namelist() and "cub" not in manifest:
        return None
    if "cub" not in manifest:
        raise ValueError(f"{MANIFEST} does not have the SHA-256 of {CUB}: pack it again")
    library = content_of(archive, CUB)
    if hashlib.sha256(library).hexdigest() != manifest["cub"]["sha256"]:
        raise ValueError(f"the content of {CUB} has changed")
    return library


def member(cubin: bytes) -> str:
    """A cubin's name in a pack."""
    return f"cubins/{hashlib.sha256(cubin).hexdigest()}.cubin"


def describe_subject(subject: Subject) -> Json:
    """A subject as the manifest has it."""
    launches = []
    for binary in subject.binaries:
        launch = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
        if binary.kernel.cluster != ALONE:
            launch["cluster"] = binary.kernel.cluster
        if binary.kernel.parts > 1:
            launch["parts"] = binary.kernel.parts
        if binary.kernel.early:
            launch["early"] = True
        if binary.kernel.workspaces:
            launch["workspaces"] = binary.kernel.workspaces
        if binary.kernel.maps:
            launch["maps"] = [asdict(tensor) for tensor in binary.kernel.maps]
        launches.append(
            {"kernel": launch, "resources": asdict(binary.resources), "cubin": member(binary.cubin)}
        )
    names = {"family": subject.family, "name": subject.name, "form": subject.form}
    return names | {"workload": asdict(subject.workload), "launches": launches}


def restore_subject(entry: Json, archive: zipfile.ZipFile, cubins: dict[str, bytes]) -> Subject:
    """The subject of a manifest entry, which its schema allows. cubins: those read so far. ValueError for a
    cubin that has changed."""
    binaries = []
    for launch in entry["launches"]:
        name = launch["cubin"]
        if name not in cubins:
            cubins[name] = content_of(archive, name)
            if member(cubins[name]) != name:
                raise ValueError(f"the content of {name} has changed")
        fields = lists_to_tuples(launch["kernel"])
        fields["maps"] = tuple(TensorMap(**tensor) for tensor in fields.get("maps", ()))
        binaries.append(
            Binary(Kernel(source="", **fields), "", cubins[name], Resources(**launch["resources"]))
        )
    workload = workload_class(entry["family"])(**entry["workload"])
    return Subject(entry["family"], entry["name"], entry["form"], workload, tuple(binaries))
