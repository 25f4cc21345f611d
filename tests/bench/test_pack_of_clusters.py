"""Packs with clusters and tensor maps: they come back, and what is wrong with them is one line."""

import json
import zipfile
from dataclasses import replace

import made_up
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import TensorMap
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.half_gemm import HalfGemm

A_MAP = TensorMap("A_map", "A", "float16", (64, 64), (128,), (64, 64), 128, 256)
KERNEL = Kernel(
    "hgemm/cluster (twin)", "", "cluster", ("A_map", "B", "C", "M"), (4, 1, 1), (128, 3, 1), "sm_90a", 2048,
    cluster=(2, 1, 1), maps=(A_MAP,),
)  # fmt: skip


def subject(kernel=KERNEL):
    binary = Binary(kernel, "", b"a cubin", Resources(168, 1024))
    return Subject("hgemm", "hgemm/cluster", "twin", HalfGemm(64, 64, 64), (binary,))


def manifest_in(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def changed(path, change):
    """The pack at a path with a change made to the kernel in its manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest["subjects"][0]["launches"][0]["kernel"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | {"manifest.json": json.dumps(manifest)}).items():
            archive.writestr(name, content)
    return path


def test_clusters_and_maps_come_back(tmp_path):
    save_pack([subject()], {}, tmp_path / "a.zip")
    (found,) = load_pack(tmp_path / "a.zip").subjects
    assert found == subject() and hash(found.binaries[0].kernel.maps) == hash(KERNEL.maps)


def test_of_kernels_without_them_a_pack_says_nothing(tmp_path):
    """Versions from before there were clusters read it."""
    save_pack(
        [subject(replace(KERNEL, cluster=(1, 1, 1), maps=())), *made_up.packed_subjects()],
        {},
        tmp_path / "a.zip",
    )
    for entry in manifest_in(tmp_path / "a.zip")["subjects"]:
        for launch in entry["launches"]:
            assert not {"cluster", "maps"} & launch["kernel"].keys()


def of_map(field, value):
    return lambda kernel: kernel["maps"][0].update({field: value})


@pytest.mark.parametrize("change, reason", [
    (lambda kernel: kernel.update(cluster=[3, 1, 1]), "the grid [4, 1, 1] is not a multiple of the cluster"),
    (lambda kernel: kernel.update(cluster=[4, 1, 4]), "16 blocks in a cluster; CUDA takes at most 8"),
    (lambda kernel: kernel.update(cluster=[2, 1]), "kernel.cluster"),
    (lambda kernel: kernel.update(cluster=[0, 1, 1]), "kernel.cluster[0]: 0"),
    (lambda kernel: kernel.update(params=["A", "B"]), "the tensor map 'A_map' is not one of the"),
    (lambda kernel: kernel.update(maps=kernel["maps"] * 2), "the tensor map 'A_map' is not one of"),
    (lambda kernel: kernel.update(maps={}), "kernel.maps: {} is not a list"),
    (lambda kernel: kernel["maps"][0].pop("of"), "kernel.maps[0]: 'of' is missing"),
    (of_map("base", 1), "kernel.maps[0]: 'base' is too much"),
    (of_map("element", "int4"), "kernel.maps[0]: elements of int4: they can be "),
    (of_map("shape", [64]), "kernel.maps[0]: shape [64] needs 1 extents of the box"),
    (of_map("shape", [64] * 6), "kernel.maps[0].shape"),
    (of_map("pitches", [100]), "kernel.maps[0]: a pitch of 100 bytes: "),
    (of_map("box", [512, 64]), "kernel.maps[0]: a box of 512 elements"),
    (of_map("swizzle", 48), "kernel.maps[0]: a swizzle of 48 bytes: "),
    (of_map("promotion", 1.5), "kernel.maps[0].promotion: 1.5 is not an integer"),
])  # fmt: skip
def test_what_cuda_does_not_launch_is_one_line(tmp_path, change, reason):
    save_pack([subject()], {}, tmp_path / "a.zip")
    with pytest.raises(BadInput) as error:
        load_pack(changed(tmp_path / "a.zip", change))
    assert reason in str(error.value) and "\n" not in str(error.value)
