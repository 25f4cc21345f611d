"""The door of RPC servers and the tracker: what is said there, by whom and how slowly, with raw connections
to this computer alone."""

import select
import socket
import struct
import subprocess
import sys
import time

import pytest

from tir_schedules.tuning.remote.handshake import (
    MAGIC,
    MOST,
    TRACKER_MAGIC,
    Door,
    client_greeting,
    limited,
    tracker_greeting,
)

KEY = b"client:strange:0.5 -timeout=150"
GREETING = struct.pack("<ii", MAGIC, len(KEY)) + KEY


def open_door(missing, seconds):
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    return Door(listening, missing, seconds)


@pytest.fixture
def door():
    """A server's, which waits for a second."""
    opened = open_door(client_greeting, 1)
    yield opened
    opened.close()


def connected(door, said=b""):
    connection = socket.create_connection(door.listening.getsockname(), timeout=10)
    if said:
        connection.sendall(said)
    return connection


def closed(connection, within):
    """Whether the door closes the connection in time."""
    connection.settimeout(within)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def handed_on(door, within=5):
    """The next connection that is handed on, as TVM takes it."""
    assert select.select([door], [], [], within)[0], "nobody is let in"
    return door.accept()[0]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(100),
        struct.pack("<i", TRACKER_MAGIC),
        struct.pack("<ii", MAGIC, 0),
        struct.pack("<ii", MAGIC, -5),
        struct.pack("<ii", MAGIC, 2**31 - 1),
        struct.pack("<ii", MAGIC, 4) + b"\xff\xfe\xfd\xfc",
        struct.pack("<ii", MAGIC, 3) + b"   ",
        struct.pack("<ii", MAGIC, 8) + b"server:x",
        struct.pack("<ii", MAGIC, 21) + b"client:x -timeout=nan",
        struct.pack("<ii", MAGIC, 20) + b"client:x -timeout=-1",
        struct.pack("<ii", MAGIC, 20) + b"client:x -timeout=ab",
    ],
)
def test_garbage_is_closed_at_once(said):
    door = open_door(client_greeting, 60)
    assert closed(connected(door, said), within=5)
    door.close()


@pytest.mark.parametrize("said", [b"", GREETING[:2], GREETING[:4], GREETING[:6], GREETING[:-1]])
def test_who_does_not_finish_is_closed_in_time(door, said):
    begin = time.monotonic()
    assert closed(connected(door, said), within=8)
    assert time.monotonic() - begin > 0.9, "a slow one has a second"


def test_nobody_waits_for_those_who_say_nothing():
    door = open_door(client_greeting, 60)
    silent = [connected(door, GREETING[: number % 9]) for number in range(50)]
    with connected(door, GREETING):
        assert handed_on(door).recv(100) == GREETING
    assert not any(select.select(silent, [], [], 0)[0])
    door.close()


def test_a_greeting_in_pieces_is_one():
    door = open_door(client_greeting, 60)
    with connected(door) as connection:
        for piece in (GREETING[:3], GREETING[3:7], GREETING[7:20], GREETING[20:]):
            connection.sendall(piece)
            time.sleep(0.05)
        taken = handed_on(door)
        assert taken.getblocking() and taken.recv(100) == GREETING
        taken.sendall(b"welcome")
        assert connection.recv(100) == b"welcome"
    door.close()


def test_who_has_gone_meanwhile_is_a_stranger(door):
    connected(door, GREETING).close()
    time.sleep(0.2)
    taken = handed_on(door)
    assert taken.recv(4) == bytes(4)


def test_a_flood_leaves_the_door_open():
    door = open_door(client_greeting, 60)
    flood = [connected(door) for _ in range(MOST + 20)]
    with connected(door, GREETING):
        assert handed_on(door).recv(100) == GREETING
    assert len(door.waiting) <= MOST and closed(flood[0], within=5)
    for connection in flood:
        connection.close()
    door.close()


def test_the_tracker_wants_its_own_number():
    door = open_door(tracker_greeting, 60)
    door.setblocking(0)
    with pytest.raises(BlockingIOError):
        door.accept()
    assert closed(connected(door, GREETING), within=5)
    with connected(door, struct.pack("<i", TRACKER_MAGIC)):
        assert handed_on(door).recv(100) == struct.pack("<i", TRACKER_MAGIC)
    door.close()


def test_a_session_has_a_time_out_whatever_its_client_says():
    assert limited([], 150) == limited(["-timeout=9999"], 150) == {"timeout": 150}
    assert limited(["-timeout=3"], 150) == {"timeout": 3}


def test_a_session_without_requests_ends():
    code = (
        "import time; from tir_schedules.tuning.remote import rpc_server; rpc_server.IDLE = 0.3; activity ="
        " rpc_server.Activity();activity.watch(); activity.during(time.sleep, 1); print('answered',"
        " flush=True); time.sleep(60)"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "answered\n",
        "",
    ) and time.monotonic() - begin < 40
