"""Servers and the client: several at once, what goes wrong in a session, and that no process outlives its
parent."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tir_schedules.cli import serve as serving
from tir_schedules.cli.main import main
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.tuning.remote import rpc
from tir_schedules.tuning.remote.handshake import MAGIC, TRACKER_MAGIC

pytest.importorskip("tornado")


@pytest.fixture(scope="module")
def torch(tmp_path_factory):
    """A folder with a package torch, which leaves a file there when it is imported."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "torch.py").write_text(f"open({str(folder / 'imported')!r}, 'w')\n")
    return folder


@pytest.fixture(scope="module")
def tracker(torch):
    """Address of a tracker with two servers of strange_server.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "MODULE", "strange_server")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(torch), str(Path(__file__).parent), *sys.path]))
        with serving.serving([serving.Place("cpu")] * 2, key="strange") as (port, _):
            yield f"127.0.0.1:{port}"


def ask(runner, *requests):
    return ask_with(runner, *[(request, b"") for request in requests])


def ask_with(runner, *requests):
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(lambda request: runner.answer(*request), requests))


def test_all_servers_work_at_once_and_answers_keep_their_order(tracker):
    runner = rpc.RpcRunner(tracker, "strange")
    assert (runner.workers, runner.name, runner.device_name) == (2, "cpu", "CPU machine")
    lengths = (1.5, 0.1, 1, 0.2)
    requests = [
        ({"what": "sleep", "seconds": seconds}, b"\0\xff" * 50_000 * index)
        for index, seconds in enumerate(lengths)
    ]
    answers = ask_with(runner, *requests)
    assert [answer["bytes"] for answer in answers] == [0, 100_000, 200_000, 300_000]
    assert len({answer["parent"] for answer in answers}) == 2
    (start, end), (other, _) = answers[0]["during"], answers[2]["during"]
    assert start < other < end, "the third runs while the first does"


def test_servers_do_not_import_torch_which_would_take_the_gpu_from_their_sessions(tracker, torch):
    """It asks CUDA for its devices; CUDA does not survive a fork after that."""
    assert rpc.RpcRunner(tracker, "strange").workers == 2
    assert not (torch / "imported").exists()


def test_what_goes_wrong_in_a_session_is_one_line_and_the_server_lives(tracker, tmp_path):
    runner = rpc.RpcRunner(tracker, "strange", seconds=3)
    once, always = (
        {"what": "die", "mark": str(tmp_path / "once")},
        {
            "what": "die",
            "mark": str(tmp_path / "always"),
            "always": True,
        },
    )
    failed, unknown, slow, revived, dead = ask(
        runner, {"what": "fail"}, {"what": "dance"}, {"what": "sleep", "seconds": 9}, once, always
    )
    assert failed == {"error": "ValueError: two lines", "fault": True}
    assert unknown["error"].startswith("a server answers about, ")
    assert slow == {"error": "not done after 3 s"}
    assert revived == {"alive": True}
    assert dead == {"error": "the server's process ended, 2 times"}
    after = ask(runner, *[{"what": "sleep", "seconds": 0.5}] * 4)
    assert len({answer["parent"] for answer in after}) == 2, "both servers still answer"


def test_silence_and_garbage_keep_nobody_from_the_servers(tracker):
    """Before a client comes, and while its sessions last; to the servers and to the tracker."""
    address = rpc.parse_address(tracker)
    summary = rpc.import_rpc().connect_tracker(*address).summary()
    ports = [address[1], *(info["addr"][1] for info in summary["server_info"])]
    magics = (struct.pack("<i", magic) for magic in (MAGIC, TRACKER_MAGIC))
    said = [
        b"",
        b"\x71",
        b"GET / HTTP/1.0\r\n\r\n",
        bytes(9),
        *(magic + b"\xff\xff\xff\x7f" for magic in magics),
    ]
    said += [struct.pack("<ii", magic, 5) + b"\xff" * 5 for magic in (MAGIC, TRACKER_MAGIC)]
    strangers = []
    for port in ports:
        for text in said:
            strangers.append(socket.create_connection((address[0], port), timeout=5))
            strangers[-1].sendall(text)
    begin = time.monotonic()
    answers = ask(rpc.RpcRunner(tracker, "strange"), *[{"what": "sleep", "seconds": 0.5}] * 2)
    assert len({answer["parent"] for answer in answers}) == 2 and time.monotonic() - begin < 20
    for stranger in strangers:
        stranger.close()


def test_a_session_serves_further_requests_until_it_is_old_or_something_went_wrong(tracker):
    runner = rpc.RpcRunner(tracker, "strange")

    def process(**more):
        (answer,) = ask(runner, {"what": "sleep", "seconds": 0, **more})
        return answer["process"]

    first = process(broken="a kernel left the GPU unusable")
    second = process()
    assert second == process() != first
    ask(runner, {"what": "fail"})
    third = process()
    assert third != second and third == process()
    for session in runner.idle:
        session.since -= rpc.KEPT * runner.seconds
    assert process() != third
    runner.close()


def test_a_client_that_is_closed_holds_no_server(tracker):
    both = ask(rpc.RpcRunner(tracker, "strange"), *[{"what": "sleep", "seconds": 0.5}] * 2)
    runner = rpc.RpcRunner(tracker, "strange")
    runner.close()
    begin = time.monotonic()
    again = ask(rpc.RpcRunner(tracker, "strange"), *[{"what": "sleep", "seconds": 0.5}] * 2)
    assert {answer["parent"] for answer in again} == {answer["parent"] for answer in both}
    assert time.monotonic() - begin < rpc.SECONDS / 2, (
        "sessions that nobody gives back end only after more than that"
    )


def test_addresses_that_lead_nowhere_are_one_clear_line(tracker):
    with pytest.raises(BadInput, match=r"HOST:PORT such as .*, not 'nowhere'"):
        rpc.RpcRunner("nowhere", "strange")
    with pytest.raises(
        BadInput,
        match=r"no tracker at 127\.0\.0\.1:1 \(Connection refused\): start one with `tir-schedules serve`",
    ):
        rpc.RpcRunner("127.0.0.1:1", "strange")
    with pytest.raises(
        BadInput, match=r"no server with key 'other': start some with `tir-schedules serve --key other`"
    ):
        rpc.RpcRunner(tracker, "other")


def test_a_tracker_without_servers_left_is_told_not_recorded(tracker, monkeypatch):
    runner = rpc.RpcRunner(tracker, "strange")
    runner.close()
    runner.key, runner.seconds = "gone", 0.2
    with pytest.raises(rpc.ServersLost, match="no server with key 'gone' answers"):
        ask(runner, {"what": "about"})


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
    from tir_schedules.machines import gpu

    def none():
        raise MissingTool("CUDA shows no GPU: install NVIDIA's driver, or use --machine cpu")

    monkeypatch.setattr(gpu, "import_cupy", none)
    with pytest.raises(
        MissingTool, match=r"CUDA shows no GPU: install NVIDIA's driver; --servers N starts servers"
    ):
        serving.places_of(None)


def test_a_server_per_gpu_that_is_visible(monkeypatch):
    from types import SimpleNamespace

    from tir_schedules.machines import gpu

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


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
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
        assert started.wait(10) == (-9 if how == signal.SIGKILL else 128 + how)
        assert started.stderr.read() == ""
        deadline = time.monotonic() + 5
        while any(map(alive, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, children))
    finally:
        started.kill()
        started.wait()
