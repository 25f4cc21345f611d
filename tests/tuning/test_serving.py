"""The verb `serve`: what it refuses, which servers it starts, and that no process outlives it."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tir_schedules.cli.main import main
from tir_schedules.errors import MissingTool
from tir_schedules.machines import gpu
from tir_schedules.tuning.remote import serving

pytest.importorskip("tornado")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--servers", "0"], "--servers is 0; it takes at least 1"),
        (["--servers", "1", "--host", "0.0.0.0"], "no address that a client could be told"),
        (["--servers", "1", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1:0"),
        (["--servers", "1", "--port", "70000"], "--port is 70000; ports go up to 65535"),
    ],
)
def test_serve_refuses_what_cannot_be(arguments, message, capsys):
    assert main(["serve", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_serve_without_a_gpu_names_servers(monkeypatch):
    def none():
        raise MissingTool("CUDA shows no GPU: install NVIDIA's driver, or use --machine cpu")

    monkeypatch.setattr(gpu, "import_cupy", none)
    with pytest.raises(
        MissingTool, match=r"CUDA shows no GPU: install NVIDIA's driver; --servers N starts servers"
    ):
        serving.places_of(None)


def test_a_server_per_gpu_that_is_visible(monkeypatch):
    runtime = SimpleNamespace(getDeviceCount=lambda: 2)
    monkeypatch.setattr(gpu, "import_cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [place.visible for place in serving.places_of(None)] == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-abc")
    assert [place.visible for place in serving.places_of(None)] == ["3", "GPU-abc"]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_no_process_outlives_serve(how):
    command = [sys.executable, "-m", "tir_schedules", "serve", "--servers", "1"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert re.match(
            r"1 server \(CPU machine\) at 127\.0\.0\.1:\d+; Ctrl-C ends them", started.stdout.readline()
        )
        assert "tune sgemm --tracker 127.0.0.1:" in started.stdout.readline()
        children = children_of(started.pid)
        assert len(children) == 2 and all(map(alive, children))
        started.send_signal(how)
        assert started.wait(60) == (-9 if how == signal.SIGKILL else 128 + how)
        deadline = time.monotonic() + 60
        while any(map(alive, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, children))
        assert started.stderr.read() == ""
    finally:
        started.kill()
        started.wait()
