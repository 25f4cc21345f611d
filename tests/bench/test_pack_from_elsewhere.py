"""Packs that somebody else made: what is wrong with one is said in one line with its place, before anything
of it runs or fills memory."""

import hashlib
import json
import tracemalloc
import warnings
import zipfile
from types import SimpleNamespace

import made_up
import pytest

from tir_schedules.bench import session, vendor
from tir_schedules.cli import main as cli
from tir_schedules.errors import BadInput
from tir_schedules.subjects import packs as pack
from tir_schedules.subjects.packs import load_pack, save_pack

LIBRARY = b"a shared library"


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """Of a sound pack."""
    path = tmp_path_factory.mktemp("packs") / "a.zip"
    save_pack(made_up.packed_subjects(), {**made_up.SOURCE, "arch": "sm_90", "refused": []}, path, LIBRARY)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, members, **how):
    with zipfile.ZipFile(path, "w", **how) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that stand twice
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return path


def complaint(path):
    with pytest.raises(BadInput) as error:
        load_pack(path)
    message = str(error.value)
    assert str(path) in message and "\n" not in message
    return message


def test_a_pack_comes_back_with_its_library(members, tmp_path):
    found = load_pack(written(tmp_path / "a.zip", members))
    assert found.subjects == made_up.packed_subjects() and found.cub == LIBRARY


LAUNCH = "subjects[0].launches[0]"


def at(*steps):
    """Changes the last step of a path into a manifest."""

    def changed(value):
        def change(manifest):
            part = manifest
            for step in steps[:-1]:
                part = part[step]
            part[steps[-1]] = value

        return change

    return changed


def launch(*steps):
    return at("subjects", 0, "launches", 0, *steps)


@pytest.mark.parametrize("change, reason", [
    (at("subjects", 0, "workload", "m")(1.5), "subjects[0].workload.m: 1.5 is not an integer"),
    (at("subjects", 0, "workload", "m")(True), "subjects[0].workload.m: true is not an integer"),
    (at("subjects", 0, "workload", "m")(2**31), "subjects[0].workload.m: 2147483648"),
    (at("subjects", 2, "workload", "dtype")("int8"), "subjects[2].workload.dtype: 'int8'"),
    (at("subjects", 0, "family")([]), "subjects[0].family: []"),
    (at("subjects", 0, "form")("other"), "subjects[0].form: 'other'"),
    (at("subjects", 3, "name")("cuSPARSE"), "subjects[3]: the vendor's library of reduce is CUB"),
    (at("subjects", 0, "form")("vendor"), "subjects[0]: the vendor's library of sgemm is cuBLAS or cuBLASLt"),
    (at("subjects", 0, "launches")([]), "subjects[0]: it has no launches"),
    (at("subjects")({}), "subjects: {} is not a list"),
    (launch("kernel", "grid")([2**31, 1, 1]), f"{LAUNCH}.kernel.grid[0]: 2147483648"),
    (launch("kernel", "grid")([1, 65536, 1]), f"{LAUNCH}.kernel.grid: y is 65536; CUDA takes at most 65535"),
    (launch("kernel", "grid")([1, 1]), f"{LAUNCH}.kernel.grid"),
    (launch("kernel", "grid")([0, 1, 1]), f"{LAUNCH}.kernel.grid[0]: 0"),
    (launch("kernel", "grid")("111"), f"{LAUNCH}.kernel.grid: '111' is not a list"),
    (launch("kernel", "block")([32, 1, 128]), f"{LAUNCH}.kernel.block: z is 128; CUDA takes at most 64"),
    (launch("kernel", "block")([64, 32, 1]), f"{LAUNCH}.kernel.block: 2048 threads; CUDA takes at most 1024"),
    (launch("kernel", "dynamic_shared")(232449), f"{LAUNCH}.kernel.dynamic_shared: 232449"),
    (launch("kernel", "entry")("a b"), f"{LAUNCH}.kernel.entry: 'a b'"),
    (launch("kernel", "arch")("sm_"), f"{LAUNCH}.kernel.arch: 'sm_' does not look like sm_90"),
    (launch("kernel", "params")([1]), f"{LAUNCH}.kernel.params[0]: 1 is not a text"),
    (launch("kernel", "label")("a\nb"), f"{LAUNCH}.kernel.label: 'a\\nb' has control characters"),
    (launch("kernel", "source")("x"), f"{LAUNCH}.kernel: 'source' is too much"),
    (launch("resources", "registers")(256), f"{LAUNCH}.resources.registers: 256"),
    (launch("cubin")("../../etc/passwd"), f"{LAUNCH}.cubin: '../../etc/passwd'"),
    (launch("cubin")("manifest.json"), f"{LAUNCH}.cubin: 'manifest.json'"),
    (at("about", "versions")([]), "about.versions: [] is not an object"),
    (at("about", "refused")([{}]), "about.refused[0]: 'family' is missing"),
    (at("about", "counters")({"cases": []}), "0 cases of counters for 4 subjects"),
    (at("about", "counters")({"cases": [{"flawed": 1, "predicted": None}]}),
     "about.counters.cases[0].flawed: 1 is neither true nor false"),
    (at("cub")({"sha256": "f00"}), "cub.sha256: 'f00'"),
    (at("cub")({"sha256": "0" * 64}), "the content of cub_sum.so has changed"),
    (lambda manifest: manifest.pop("cub"), "does not have the SHA-256 of cub_sum.so"),
    (at("schema")(True), "schema true"),
    (at("about")(float("nan")), "about: not a finite number"),
])  # fmt: skip
def test_a_manifest_that_is_wrong_is_refused_with_the_place(members, tmp_path, change, reason):
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    path = written(tmp_path / "a.zip", members | {"manifest.json": json.dumps(manifest)})
    assert reason in complaint(path)


@pytest.mark.parametrize("change, reason", [
    (lambda members: members | {"cub_sum.so": b"another library"}, "the content of cub_sum.so has changed"),
    (lambda members: {name: text for name, text in members.items() if name != "cub_sum.so"}, "no item named"),
    (lambda members: members | {"manifest.json": b"[" * 100_000}, "nested deeper"),
    (lambda members: members | {"manifest.json": b"\xff"}, "can't decode"),
    (lambda members: [*members.items(), *members.items()], "the same name"),
])  # fmt: skip
def test_an_archive_that_is_wrong_is_refused(members, tmp_path, change, reason):
    assert reason in complaint(written(tmp_path / "a.zip", change(members)))


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused_before_it_unpacks(members, tmp_path, how):
    assert "another method" in complaint(written(tmp_path / "a.zip", members, compression=how))


def test_an_encrypted_member_is_refused(members, tmp_path):
    path = written(tmp_path / "a.zip", members)
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\1\2")
    content[directory + 8] |= 1
    path.write_bytes(content)
    assert "encrypted" in complaint(path)


@pytest.mark.parametrize("name", ["manifest.json", "cub_sum.so", "ballast"])
def test_an_archive_of_a_few_bytes_does_not_fill_the_memory(members, tmp_path, name):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for other, content in members.items():
            if other != name:
                archive.writestr(other, content)
        with archive.open(name, "w") as file:
            for _ in range(1 + (pack.LARGEST >> 24)):
                file.write(bytes(1 << 24))
    assert path.stat().st_size < 4 << 20
    tracemalloc.start()
    try:
        assert "MiB" in complaint(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_member_that_says_it_is_small_is_not_unpacked_beyond_that(members, tmp_path, monkeypatch):
    """The size in the directory of the archive is a claim."""
    large = bytes(64 << 20)
    path = written(tmp_path / "a.zip", members | {"manifest.json": large}, compression=zipfile.ZIP_DEFLATED)
    content, size = path.read_bytes(), len(large).to_bytes(4, "little")
    path.write_bytes(content.replace(size, (1000).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        complaint(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_cubin_that_many_launches_name_is_read_once(members, tmp_path, monkeypatch):
    manifest = json.loads(members["manifest.json"])
    manifest["subjects"][0]["launches"] *= 500
    path = written(tmp_path / "a.zip", members | {"manifest.json": json.dumps(manifest)})
    binaries = load_pack(path).subjects[0].binaries
    assert len(binaries) == 500 and len({id(binary.cubin) for binary in binaries}) == 1


def test_loading_a_pack_executes_nothing_and_timing_says_what_will_run(
    members, tmp_path, capsys, monkeypatch
):
    path = written(tmp_path / "a.zip", members)
    monkeypatch.setattr(vendor, "load_library", lambda content: pytest.fail("executes the library of a pack"))
    monkeypatch.setattr(session, "gpu_machine", lambda: SimpleNamespace(device_name="Made-up GPU"))
    row = made_up.row_of(made_up.packed_subjects()[0], 10.0)
    seen = SimpleNamespace(rows=[row], refused=[], limits=[], notes=[], device=made_up.DEVICE)
    monkeypatch.setattr(
        session, "measure_subjects", lambda machine, subjects, policy, cub: (seen, session_policy())
    )
    assert cli.main(["bench", str(path)]) == 0
    err = capsys.readouterr().err
    digest = hashlib.sha256(LIBRARY).hexdigest()[:12]
    assert (
        f"CUB's library in {path} (SHA-256 {digest}) runs on this computer's CPU" in err
        and "only packs you trust" in err
    )
    assert err.count("\n") == 1


def session_policy():
    from tir_schedules.bench.measure import Policy

    return Policy()


@pytest.mark.parametrize("verb", ["bench", "profile"])
def test_the_verbs_say_it_in_one_line(members, tmp_path, capsys, verb, monkeypatch):
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: pytest.fail("looks for a GPU"))
    path = written(tmp_path / "a.zip", members | {"cub_sum.so": b"other"})
    assert cli.main([verb, str(path)]) == 2
    err = capsys.readouterr().err
    assert "the content of cub_sum.so has changed" in err and err.count("\n") == 1
