"""The client of several servers at once, and what goes wrong in a session."""

import os
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.tuning.remote import client, serving
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


def ask(servers, *requests):
    return ask_with(servers, *[(request, b"") for request in requests])


def ask_with(servers, *requests):
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(lambda request: servers.answer(*request), requests))


def test_all_servers_work_at_once_and_answers_keep_their_order(tracker, tmp_path):
    servers = client.Servers(tracker, "strange")
    assert (servers.count, servers.name, servers.device_name) == (2, "cpu", "CPU machine")
    first, third = str(tmp_path / "first"), str(tmp_path / "third")
    tasks = [
        {"what": "meet", "mark": first, "other": third},
        {"what": "sleep", "seconds": 0.1},
        {"what": "meet", "mark": third, "other": first},
        {"what": "sleep", "seconds": 0.1},
    ]
    answers = ask_with(servers, *[(task, b"\0\xff" * 50_000 * index) for index, task in enumerate(tasks)])
    assert [answer["bytes"] for answer in answers] == [0, 100_000, 200_000, 300_000]
    assert answers[0]["parent"] != answers[2]["parent"]


def test_servers_do_not_import_torch_which_would_take_the_gpu_from_their_sessions(tracker, torch):
    """It asks CUDA for its devices; CUDA does not survive a fork after that."""
    assert client.Servers(tracker, "strange").count == 2
    assert not (torch / "imported").exists()


def test_what_goes_wrong_in_a_session_is_one_line_and_the_server_lives(tracker, tmp_path):
    servers = client.Servers(tracker, "strange", seconds=5)
    once, always = (
        {"what": "die", "mark": str(tmp_path / "once")},
        {
            "what": "die",
            "mark": str(tmp_path / "always"),
            "always": True,
        },
    )
    failed, unknown, slow, revived, dead = ask(
        servers, {"what": "fail"}, {"what": "dance"}, {"what": "sleep", "seconds": 60}, once, always
    )
    assert failed == {"error": "ValueError: two lines", "fault": True}
    assert unknown["error"].startswith("a server answers about, ")
    assert slow == {"error": "not done after 5 s"}
    assert revived == {"alive": True}
    assert dead == {"error": "the server's process ended, 2 times"}
    after = ask(servers, *[{"what": "sleep", "seconds": 0.5}] * 4)
    assert len({answer["parent"] for answer in after}) == 2, "both servers still answer"


BESIDE = """
import sys
from test_client import ask
from tir_schedules.tuning.remote import client
answers = ask(client.Servers(sys.argv[1], "strange"), *[{"what": "sleep", "seconds": 0.5}] * 2)
print(len({answer["parent"] for answer in answers}), "servers answer")
"""


def test_silence_and_garbage_keep_nobody_from_the_servers(tracker):
    """Before a client comes, and while its sessions last; to the servers and to the tracker. For a server
    that hears them out TVM waits for ever: so the client is a process that can be ended."""
    address = client.parse_address(tracker)
    summary = client.import_rpc().connect_tracker(*address).summary()
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
            strangers.append(socket.create_connection((address[0], port), timeout=60))
            strangers[-1].sendall(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", BESIDE, tracker]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "2 servers answer\n", done.stderr
    for stranger in strangers:
        stranger.close()


def test_a_session_serves_further_requests_until_it_is_old_or_something_went_wrong(tracker):
    servers = client.Servers(tracker, "strange")

    def process(**more):
        (answer,) = ask(servers, {"what": "sleep", "seconds": 0, **more})
        return answer["process"]

    first = process(broken="a kernel left the GPU unusable")
    second = process()
    assert second == process() != first
    ask(servers, {"what": "fail"})
    third = process()
    assert third != second and third == process()
    for session in servers.idle:
        session.since -= client.KEPT * servers.seconds
    assert process() != third
    servers.close()


def test_a_client_that_is_closed_holds_no_server(tracker):
    both = ask(client.Servers(tracker, "strange"), *[{"what": "sleep", "seconds": 0.5}] * 2)
    servers = client.Servers(tracker, "strange")
    servers.close()
    waiting = client.Servers(
        tracker, "strange", seconds=30
    )  # not as long as sessions that nobody gives back last
    again = ask(waiting, *[{"what": "sleep", "seconds": 0.5}] * 2)
    assert {answer["parent"] for answer in again} == {answer["parent"] for answer in both}


def test_addresses_that_lead_nowhere_are_one_clear_line(tracker):
    with pytest.raises(BadInput, match=r"HOST:PORT such as .*, not 'nowhere'"):
        client.Servers("nowhere", "strange")
    with pytest.raises(
        BadInput,
        match=r"no tracker at 127\.0\.0\.1:1 \(Connection refused\): start one with `tir-schedules serve`",
    ):
        client.Servers("127.0.0.1:1", "strange")
    with pytest.raises(
        BadInput, match=r"no server with key 'other': start some with `tir-schedules serve --key other`"
    ):
        client.Servers(tracker, "other")


def test_a_tracker_without_servers_left_is_told_not_recorded(tracker, monkeypatch):
    servers = client.Servers(tracker, "strange")
    servers.close()
    servers.key, servers.seconds = "gone", 0.2
    with pytest.raises(client.ServersLost, match="no server with key 'gone' answers"):
        ask(servers, {"what": "about"})
