"""What is said to RPC servers and the tracker, by whom and how slowly: raw connections to this computer."""

import select
import socket
import struct
import subprocess
import sys
import time

import pytest
from clocks import Clock

from tir_schedules.tuning.remote import handshake
from tir_schedules.tuning.remote.handshake import (
    MAGIC,
    MOST,
    TRACKER_MAGIC,
    HandshakeListener,
    client_greeting,
    limit_timeout,
    tracker_greeting,
)

KEY = b"client:strange:0.5 -timeout=150"
GREETING = struct.pack("<ii", MAGIC, len(KEY)) + KEY
PATIENCE, LONG = 60, 600
"""Seconds after which something has not happened, and seconds of a listener for which nobody shall wait."""


def open_listener(greeting, seconds):
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    return HandshakeListener(listening, greeting, seconds)


@pytest.fixture
def listener():
    """A server's, which waits for a second."""
    opened = open_listener(client_greeting, 1)
    yield opened
    opened.close()


def connected(listener, said=b""):
    connection = socket.create_connection(listener.listening.getsockname(), timeout=PATIENCE)
    if said:
        connection.sendall(said)
    return connection


def closed(connection):
    """Whether the listener closes the connection."""
    connection.settimeout(PATIENCE)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def handed_on(listener):
    """The next connection that is handed on, as TVM takes it."""
    assert select.select([listener], [], [], PATIENCE)[0], "nobody is let in"
    return listener.accept()[0]


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
    listener = open_listener(client_greeting, LONG)
    assert closed(connected(listener, said))
    listener.close()


def test_who_does_not_finish_is_closed_in_time(monkeypatch):
    """All of them at once: each has its time beside the others."""
    clock = Clock()
    monkeypatch.setattr(handshake, "time", clock)
    listener = open_listener(client_greeting, 10)
    slow = [connected(listener, GREETING[:length]) for length in (0, 2, 4, 6, len(GREETING) - 1)]
    for clock.now, ended in ((0.0, []), (9.9, []), (10.1, slow)):
        assert closed(
            connected(listener, bytes(9))
        )  # the listener has looked at what came before, and the clock
        assert select.select(slow, [], [], 0)[0] == ended
    assert all(map(closed, slow))
    listener.close()


def test_nobody_waits_for_those_who_say_nothing():
    listener = open_listener(client_greeting, LONG)
    silent = [connected(listener, GREETING[: number % 9]) for number in range(50)]
    with connected(listener, GREETING):
        assert handed_on(listener).recv(100) == GREETING
    assert not any(select.select(silent, [], [], 0)[0])
    listener.close()


def test_a_greeting_in_pieces_is_one():
    listener = open_listener(client_greeting, LONG)
    with connected(listener) as connection:
        for piece in (GREETING[:3], GREETING[3:7], GREETING[7:20], GREETING[20:]):
            connection.sendall(piece)
            time.sleep(0.05)
        taken = handed_on(listener)
        assert taken.getblocking() and taken.recv(100) == GREETING
        taken.sendall(b"welcome")
        assert connection.recv(100) == b"welcome"
    listener.close()


def test_who_has_gone_meanwhile_is_a_stranger(listener):
    connected(listener, GREETING).close()
    time.sleep(0.2)
    taken = handed_on(listener)
    assert taken.recv(4) == bytes(4)


def test_a_flood_keeps_nobody_out():
    listener = open_listener(client_greeting, LONG)
    flood = [connected(listener) for _ in range(MOST + 20)]
    with connected(listener, GREETING):
        assert handed_on(listener).recv(100) == GREETING
    assert len(listener.waiting) <= MOST and closed(flood[0])
    for connection in flood:
        connection.close()
    listener.close()


def test_the_tracker_wants_its_own_number():
    listener = open_listener(tracker_greeting, LONG)
    listener.setblocking(0)
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert closed(connected(listener, GREETING))
    with connected(listener, struct.pack("<i", TRACKER_MAGIC)):
        assert handed_on(listener).recv(100) == struct.pack("<i", TRACKER_MAGIC)
    listener.close()


def test_a_session_has_a_time_out_whatever_its_client_says():
    assert limit_timeout([], 150) == limit_timeout(["-timeout=9999"], 150) == {"timeout": 150}
    assert limit_timeout(["-timeout=3"], 150) == {"timeout": 3}


IDLE_SESSION = """
import time

from tir_schedules.tuning.remote import server

server.IDLE = 0.3
activity = server.Activity()
activity.watch()
activity.during(time.sleep, 1)
print("answered", flush=True)
time.sleep(600)
"""


def test_a_session_without_requests_ends():
    done = subprocess.run(
        [sys.executable, "-c", IDLE_SESSION], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "answered\n", "")
