"""The diagnosis of this machine, and of machines on which something is missing."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from cached import entry

from tir_schedules import doctor
from tir_schedules.compiler.cache import default_cache
from tir_schedules.doctor import clear_cache, diagnose

NEEDED = ["Python", "apache-tvm", "apache-tvm-ffi", "numpy", "nvcc", "ptxas", "C++ compiler", "cache"]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def diagnosis() -> dict[str, doctor.Item]:
    return {item.name: item for item in diagnose()}


def versions(monkeypatch, **changed: str | None) -> None:
    """Pretend that packages have other versions, or are not installed; `_` stands for `-` in their names."""
    real = metadata.version

    def version(package: str) -> str:
        found = changed.get(package.replace("-", "_"), package)
        if found is None:
            raise metadata.PackageNotFoundError(package)
        return real(package) if found == package else found

    monkeypatch.setattr(doctor.metadata, "version", version)


def test_this_machine_has_what_is_needed():
    items = diagnosis()
    assert [(name, items[name].status, items[name].remedy) for name in NEEDED] == [
        (name, "ok", "") for name in NEEDED
    ]
    assert {item.status for item in items.values()} <= {"ok", "optional"}
    assert all("\n" not in item.detail + item.remedy and item.detail for item in items.values())


def test_nothing_heavy_is_imported():
    code = "import sys, tir_schedules.doctor as d; d.diagnose(); print({'tvm', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_pins_are_those_of_the_package():
    dependencies = Path(__file__).parents[1].joinpath("pyproject.toml").read_text()
    for package, version in doctor.PINNED.items():
        assert f'"{package}=={version}"' in dependencies
    own = re.search(r"^dependencies = \[(.*?)^\]", dependencies, re.S | re.M)[1]
    libraries = [
        name for name in re.findall(r'^ *"([\w-]+)', own, re.M) if not name.startswith(("cuda-", "nvidia-"))
    ]
    assert sorted(libraries) == sorted([*doctor.PINNED, *doctor.NEEDED])


def test_a_cache_without_the_library_that_finds_it(monkeypatch):
    monkeypatch.delenv("TIR_SCHEDULES_CACHE")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    item = diagnosis()["cache"]
    assert (item.status, item.remedy) == ("missing", "pip install platformdirs")


def test_a_tvm_ffi_that_crashes_is_named(monkeypatch):
    versions(monkeypatch, apache_tvm_ffi="0.1.15.post2")
    item = diagnosis()["apache-tvm-ffi"]
    assert item.status == "missing" and "0.1.15.post2" in item.detail
    assert item.remedy == "pip install apache-tvm-ffi==0.1.14.post1"


def test_what_is_not_installed(monkeypatch):
    absent = ["apache_tvm", "numpy", "xgboost_cpu", "xgboost", "cupy", "cupy_cuda12x", "cupy_cuda13x"]
    versions(monkeypatch, **dict.fromkeys(absent))
    items = diagnosis()
    status = {name: items[name].status for name in ("apache-tvm", "numpy", "xgboost", "cupy")}
    assert status == {"apache-tvm": "missing", "numpy": "missing", "xgboost": "optional", "cupy": "optional"}
    assert all(items[name].remedy.startswith("pip install ") for name in status)


def test_either_package_of_a_library_will_do(monkeypatch):
    versions(monkeypatch, xgboost_cpu=None, xgboost="3.1.0", cupy_cuda12x=None, cupy_cuda13x="13.6.0")
    items = diagnosis()
    assert items["xgboost"].detail == "3.1.0 (xgboost)" and items["cupy"].detail == "13.6.0 (cupy-cuda13x)"


def test_compiler_parts_of_different_releases(monkeypatch):
    for variable in ("TIR_SCHEDULES_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert diagnosis()["nvcc"].status == "ok"
    versions(monkeypatch, nvidia_nvvm="13.5.37")
    item = diagnosis()["nvcc"]
    assert item.status == "missing" and "nvidia-nvvm 13.5.37" in item.detail and "cuda-toolkit" in item.remedy


def test_an_assembler_of_another_release(monkeypatch, tmp_path):
    for name, version in (("nvcc", "13.4.1"), ("ptxas", "13.0.88"), ("nvdisasm", "13.4.1")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho V{version}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(tmp_path / "nvcc"))
    items = diagnosis()
    assert items["nvcc"].detail == f"13.4.1 at {tmp_path / 'nvcc'} (from TIR_SCHEDULES_NVCC)"
    assert items["ptxas"].status == "missing"
    assert items["ptxas"].detail == f"13.0.88 at {tmp_path / 'ptxas'}, but nvcc is 13.4.1"
    assert items["nvdisasm"].detail == f"13.4.1 at {tmp_path / 'nvdisasm'}"


def test_a_wrong_variable_is_told_with_its_remedy(monkeypatch):
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", "/nowhere/nvcc")
    item = diagnosis()["nvcc"]
    assert item.status == "missing" and "/nowhere/nvcc" in item.detail and "unset it" in item.remedy


def test_disassemblers_are_optional(monkeypatch):
    candidates = doctor.Toolchain.candidates
    only_ptxas = lambda self, name: candidates(self, name) if name == "ptxas" else iter(())  # noqa: E731
    monkeypatch.setattr(doctor.Toolchain, "candidates", only_ptxas)
    items = diagnosis()
    assert {items[name].status for name in ("nvdisasm", "cuobjdump")} == {"optional"}
    assert "pip install" in items["nvdisasm"].remedy and "--sass" in items["nvdisasm"].detail


def test_no_host_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    item = diagnosis()["C++ compiler"]
    assert item.status == "missing" and item.detail == "no gcc and no g++ on PATH" and "g++" in item.remedy


@pytest.mark.parametrize(
    "answer, status, detail",
    [
        ("echo NVIDIA H200, 580.65.06", "ok", "NVIDIA H200, driver 580.65.06"),
        ("echo it has failed; exit 9", "optional", "none seen"),
    ],
)
def test_gpu(monkeypatch, tmp_path, answer, status, detail):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (item,) = doctor.gpu()
    assert item.status == status and detail in item.detail


def test_cache_is_shown_and_cleared(cache_folder):
    entry(default_cache(), "kernel", "a", lambda folder: (folder / "data").write_bytes(bytes(3 << 20)))
    assert diagnosis()["cache"].detail == f"3.0 of at most 1024 MiB in {cache_folder}"
    assert clear_cache() > 3 << 20
    assert diagnosis()["cache"].detail == f"0.0 of at most 1024 MiB in {cache_folder}"


def test_a_cache_that_cannot_be_used(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "file" / "below"))
    item = diagnosis()["cache"]
    assert item.status == "missing" and "TIR_SCHEDULES_CACHE" in item.remedy
    monkeypatch.setenv("TIR_SCHEDULES_CACHE_LIMIT", "much")
    item = diagnosis()["cache"]
    assert item.status == "missing" and "'much'" in item.detail
