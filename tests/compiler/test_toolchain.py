"""Where nvcc is looked for, what is said when it is not there, and which architectures are known."""

import os
from pathlib import Path

import pytest

from tir_schedules.compiler import toolchain
from tir_schedules.compiler.toolchain import architectures, check_arch, find_toolchain, version_of
from tir_schedules.errors import BadInput, MissingTool


def program(path: Path, version: str, *, script: str = "") -> Path:
    """A stand-in for a CUDA program that only tells its version, or does what the script says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script or f'echo Cuda compilation tools, release 0, V{version}'}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    """No CUDA but that of the PyPI packages."""
    for variable in ("TIR_SCHEDULES_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_order_of_discovery(monkeypatch, tmp_path):
    packaged = find_toolchain()
    assert packaged.origin == "PyPI packages" and "site-packages" in str(packaged.nvcc)

    on_path = program(tmp_path / "path/nvcc", "12.1.1")
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}/usr/bin:/bin")
    assert (find_toolchain().nvcc, find_toolchain().origin) == (on_path, "PATH")

    of_cuda_path = program(tmp_path / "cuda path/bin/nvcc", "12.2.2")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda path"))
    assert (find_toolchain().nvcc, find_toolchain().origin) == (of_cuda_path, "CUDA_PATH")

    of_cuda_home = program(tmp_path / "cuda home/bin/nvcc", "12.3.3")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda home"))
    assert (find_toolchain().nvcc, find_toolchain().origin) == (of_cuda_home, "CUDA_HOME")

    chosen = program(tmp_path / "chosen/my-nvcc", "13.4.4")
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(chosen))
    found = find_toolchain()
    assert (found.nvcc, found.origin, found.version, found.release) == (
        chosen,
        "TIR_SCHEDULES_NVCC",
        "13.4.4",
        (13, 4),
    )


def test_an_empty_variable_counts_as_unset(monkeypatch):
    for variable in ("TIR_SCHEDULES_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(variable, "")
    assert find_toolchain().origin == "PyPI packages"


@pytest.mark.parametrize("variable", ["TIR_SCHEDULES_NVCC", "CUDA_HOME", "CUDA_PATH"])
def test_a_variable_that_is_set_and_wrong_is_an_error(monkeypatch, tmp_path, variable):
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(BadInput, match=f"{variable} is '{tmp_path}'.*unset it") as caught:
        find_toolchain()
    assert "\n" not in str(caught.value)


def test_no_nvcc_at_all(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingTool, match="nvcc not found: pip install .*cuda-toolkit"):
        find_toolchain()


def test_an_old_nvcc_is_refused_and_a_better_one_named(monkeypatch, tmp_path):
    packaged = find_toolchain().nvcc
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    old = program(tmp_path / "bin/nvcc", "11.8.89")
    with pytest.raises(MissingTool) as caught:
        find_toolchain()
    for part in ("11.8.89", str(old), "CUDA_HOME", "12.0", str(packaged)):
        assert part in str(caught.value)
    program(tmp_path / "bin/nvcc", "12.0.76")
    version_of.cache_clear()
    assert find_toolchain().release == (12, 0)


@pytest.mark.parametrize(
    "script, said",
    [
        ("echo no toolkit >&2; exit 1", "no toolkit"),
        ("exit 0", "nothing"),
        ("exec /nowhere/nvcc", "/nowhere/nvcc"),
    ],
)
def test_an_nvcc_that_does_not_work(monkeypatch, tmp_path, script, said):
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(program(tmp_path / "nvcc", "", script=script)))
    with pytest.raises(
        MissingTool, match=f"{said}.*: set TIR_SCHEDULES_NVCC to an nvcc that works"
    ) as caught:
        find_toolchain()
    assert str(caught.value).startswith(f"{tmp_path / 'nvcc'} does not tell a CUDA version")
    assert "\n" not in str(caught.value)


def test_an_nvcc_that_tells_no_architectures(monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(program(tmp_path / "nvcc", "13.0.1")))
    with pytest.raises(
        MissingTool, match="nvcc does not tell its architectures, it says .*: set TIR_SCHEDULES_NVCC"
    ):
        check_arch("sm_80")


def test_an_nvcc_that_cannot_be_started(monkeypatch, tmp_path):
    (tmp_path / "nvcc").write_bytes(b"\x7fELF damaged")
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(tmp_path / "nvcc"))
    with pytest.raises(MissingTool, match=r"does not run \(Exec format error\)"):
        find_toolchain()


def test_tools_beside_nvcc_come_first_then_those_of_the_toolkit_behind_it_then_the_packages(
    monkeypatch, tmp_path
):
    real = tmp_path / "toolkit/bin"
    program(real / "nvcc", "", script=f"echo V12.4.1; echo '#$ _HERE_={real}'")
    wrapper = program(tmp_path / "wrappers/nvcc", "", script=f'exec {real}/nvcc "$@"')
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(wrapper))
    found = find_toolchain()
    assert "site-packages" in str(found.tool("nvdisasm"))
    assert found.tool("cuobjdump") != real / "cuobjdump"
    behind = program(real / "nvdisasm", "12.4.1")
    assert found.tool("nvdisasm") == behind
    beside = program(tmp_path / "wrappers/nvdisasm", "12.4.1")
    assert found.tool("nvdisasm") == beside


def test_tools_beside_a_link_to_nvcc_come_before_those_beside_nvcc(monkeypatch, tmp_path):
    link = tmp_path / "links/nvcc"
    link.parent.mkdir()
    link.symlink_to(program(tmp_path / "toolkit/nvcc", "12.4.1"))
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(link))
    beside_nvcc = program(tmp_path / "toolkit/nvdisasm", "12.4.1")
    assert find_toolchain().tool("nvdisasm") == beside_nvcc
    beside_link = program(tmp_path / "links/nvdisasm", "12.4.1")
    assert find_toolchain().tool("nvdisasm") == beside_link


def test_a_missing_tool_names_its_package(monkeypatch):
    found = find_toolchain()
    monkeypatch.setattr(toolchain.Toolchain, "candidates", lambda self, name: iter(()))
    with pytest.raises(MissingTool, match='nvdisasm not found: pip install "nvidia-cuda-nvdisasm'):
        found.tool("nvdisasm")
    with pytest.raises(MissingTool, match='ptxas not found: pip install "cuda-toolkit'):
        found.tool("ptxas")


def test_the_newest_of_several_packages_is_taken(monkeypatch, tmp_path):
    for release in ("cu9", "cu13", "cu12"):
        program(tmp_path / f"nvidia/{release}/bin/nvcc", "13.0.1")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_toolchain().nvcc == tmp_path / "nvidia/cu13/bin/nvcc"


def test_architectures():
    known = architectures()
    assert {"sm_80", "sm_90", "sm_90a"} < set(known)
    assert known.index("sm_90") + 1 == known.index("sm_90a") < known.index("sm_100")
    for arch in ("sm_80", "sm_90a"):
        check_arch(arch)


@pytest.mark.parametrize(
    "arch, nearest",
    [("sm_81", "sm_80"), ("sm_91a", "sm_90"), ("sm_3", "sm_75"), ("sm_9000", "sm_121")]
    + [("80", "sm_80"), ("8.9", "sm_89"), ("compute_90", "sm_90"), ("SM_80", "sm_80"), ("sm_80 ", "sm_80")]
    + [("", "sm_75"), ("hopper", "sm_75")],
)
def test_an_architecture_nvcc_does_not_know(arch, nearest):
    with pytest.raises(BadInput, match=f"did you mean {nearest}[?] Known are sm_75, ") as caught:
        check_arch(arch)
    assert "\n" not in str(caught.value) and arch in str(caught.value)


def test_a_wrong_tmpdir_is_no_obstacle(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    toolchain.known_architectures.cache_clear()
    assert "sm_80" in architectures()
