"""What a benchmark times is compiled once per workload, with the vendor's library beside it, and travels in a
pack."""

import io
import json
import zipfile
from dataclasses import replace

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.subjects.compiling import subjects_of
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


def jobs(*pairs):
    return [(find(name)[0], workload) for name, workload in pairs]


@pytest.fixture(scope="module")
def subjects():
    first, second = Gemm(64, 64, 64), Gemm(64, 64, 32)
    pairs = [
        ("sgemm/naive", first),
        ("sgemm/naive", second),
        ("sgemm/coalesced", first),
        ("reduce/shuffle", Reduction(1 << 20)),
    ]
    return subjects_of(jobs(*pairs), "sm_80")[0]


def test_subjects_of_a_workload_stand_together_with_those_of_the_vendor_last(subjects):
    assert [(subject.label, str(subject.workload)) for subject in subjects] == [
        ("sgemm/naive (schedule)", "64x64x64"),
        ("sgemm/naive (twin)", "64x64x64"),
        ("sgemm/coalesced (schedule)", "64x64x64"),
        ("sgemm/coalesced (twin)", "64x64x64"),
        ("cuBLAS", "64x64x64"),
        ("cuBLASLt", "64x64x64"),
        ("sgemm/naive (schedule)", "64x64x32"),
        ("sgemm/naive (twin)", "64x64x32"),
        ("cuBLAS", "64x64x32"),
        ("cuBLASLt", "64x64x32"),
        ("reduce/shuffle (schedule)", "1048576 int32"),
        ("reduce/shuffle (twin)", "1048576 int32"),
        ("CUB", "1048576 int32"),
    ]


def test_a_reduction_has_a_binary_per_launch_and_a_vendor_none(subjects):
    launches = {subject.label: [binary.kernel.grid[0] for binary in subject.binaries] for subject in subjects}
    assert launches["reduce/shuffle (schedule)"] == launches["reduce/shuffle (twin)"] == [2048, 4, 1]
    assert launches["CUB"] == launches["cuBLAS"] == []


def test_subjects_can_be_keys(subjects):
    assert len({subject: 0 for subject in subjects}) == len(subjects)


def test_each_rung_is_reported_as_it_goes_to_the_compiler_those_that_take_longest_first():
    names = []
    subjects_of(
        jobs(("sgemm/naive", Gemm(64, 64, 64)), ("sgemm/coalesced", Gemm(64, 64, 64))), "sm_80", names.append
    )
    assert names == ["sgemm/coalesced", "sgemm/naive"]


def test_a_kernel_that_cannot_be_made_is_refused_in_one_line_and_the_others_remain():
    workload = HalfGemm(64, 64, 64)
    subjects, refused = subjects_of(
        jobs(("hgemm/mma_multistage", workload), ("hgemm/mma_xor_swizzle", workload)), "sm_86"
    )
    assert {subject.name for subject in subjects} == {"hgemm/mma_xor_swizzle", "cuBLAS", "cuBLASLt"}
    assert [(row["name"], row["form"], row["shape"]) for row in refused] == [
        ("hgemm/mma_multistage", form, "64x64x64 nt float16") for form in ("schedule", "twin")
    ]
    assert all("shared memory" in row["reason"] and "\n" not in row["reason"] for row in refused)


def test_a_reason_of_several_lines_becomes_one():
    assert Subject("sgemm", "cuBLAS", "vendor", Gemm(1, 2, 3)).refused("a:\n  b\n")["reason"] == "a: b"


def test_an_unknown_architecture_is_bad_input_before_anything_is_compiled():
    with pytest.raises(BadInput, match="sm_99"):
        subjects_of(jobs(("sgemm/naive", Gemm(64, 64, 64))), "sm_99", lambda name: pytest.fail("compiles"))


def without_texts(subject):
    binaries = (
        replace(binary, ptx="", kernel=replace(binary.kernel, source="")) for binary in subject.binaries
    )
    return replace(subject, binaries=tuple(binaries))


def test_a_pack_brings_back_all_that_a_launch_needs(subjects, tmp_path):
    half = Subject("hgemm", "cuBLAS", "vendor", HalfGemm(8, 8, 8, "nn", "float32"))
    save_pack([*subjects, half], {"arch": "sm_80"}, tmp_path / "a.zip", b"library")
    pack = load_pack(tmp_path / "a.zip")
    assert pack.subjects == [*map(without_texts, subjects), half]
    assert (pack.about, pack.cub) == ({"arch": "sm_80"}, b"library")
    assert all(binary.cubin[:4] == b"\x7fELF" for subject in pack.subjects for binary in subject.binaries)


def test_a_pack_holds_each_cubin_once_and_no_source(subjects, tmp_path):
    save_pack([*subjects, *subjects], {}, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        cubins = {binary.cubin for subject in subjects for binary in subject.binaries}
        assert len(archive.namelist()) == len(set(archive.namelist())) == len(cubins) + 1
        assert b"__global__" not in b"".join(archive.read(name) for name in archive.namelist())


def test_the_same_subjects_make_the_same_pack(subjects, tmp_path):
    for name in ("a.zip", "b.zip"):
        save_pack(subjects, {}, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {info.date_time[0] for info in archive.infolist()} == {1980}


def repacked(path, change):
    """The pack at a path with a change made to its members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())


def in_manifest(change):
    def changed(members):
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return changed


def first_cubin(members):
    return next(name for name in members if name.startswith("cubins/"))


@pytest.mark.parametrize(
    "change, part",
    [
        (lambda members: members.update({first_cubin(members): b"other"}), "has changed"),
        (lambda members: members.pop(first_cubin(members)), "no item named"),
        (lambda members: members.pop("manifest.json"), "manifest.json"),
        (lambda members: members.update({"manifest.json": b"{"}), "is not a pack"),
        (lambda members: members.update({"manifest.json": b"[]"}), "is not a pack"),
        (in_manifest(lambda manifest: manifest.update(format="other")), "'other'"),
        (in_manifest(lambda manifest: manifest.update(schema=2)), "schema 2"),
        (in_manifest(lambda manifest: manifest["subjects"][0].update(family="fft")), "'fft'"),
        (in_manifest(lambda manifest: manifest["subjects"][0].pop("workload")), "workload"),
        (in_manifest(lambda manifest: manifest["subjects"][0]["workload"].update(q=1)), "'q'"),
    ],
)
def test_a_damaged_pack_is_bad_input_in_one_line(subjects, tmp_path, change, part):
    path = tmp_path / "a.zip"
    save_pack(subjects[:2], {}, path)
    repacked(path, change)
    with pytest.raises(BadInput) as error:
        load_pack(path)
    assert part in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_pack_is_bad_input(tmp_path):
    (tmp_path / "text.zip").write_text("text")
    for name in ("text.zip", "missing.zip"):
        with pytest.raises(BadInput, match="bench --pack"):
            load_pack(tmp_path / name)
