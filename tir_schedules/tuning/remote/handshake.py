"""A listening socket for TVM's RPC server and its tracker that hands on only clients that shake hands.

TVM reads one connection until it has said who it is, however long that takes. A `HandshakeListener` takes the
place of its listening socket. It closes all other connections: at once those that say something else, after
SECONDS those that say nothing.
"""

from __future__ import annotations

import math
import os
import select
import selectors
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Callable, cast

SECONDS = 10
"""How long a connection may take to shake hands."""

MOST = 256
"""Connections that may be at it, or wait to be handed on; of more the oldest is closed."""

MAGIC, TRACKER_MAGIC = 0xFF271, 0x2F271
LONGEST_KEY = 1024

Greeting = Callable[[bytes], int]
"""How many bytes of a connection are needed to go on, given the first; 0 when these are a whole handshake,
ValueError when they never will be."""


def client_greeting(data: bytes) -> int:
    """What a server's client says: the magic number, the length of a key, "client:NAME -timeout=SECONDS"."""
    if len(data) < 4:
        return 4
    check_magic(data, MAGIC)
    if len(data) < 8:
        return 8
    (length,) = struct.unpack_from("<i", data, 4)
    if not 0 < length <= LONGEST_KEY:
        raise ValueError(f"a key has no {length} bytes")
    if len(data) < 8 + length:
        return 8 + length
    name, *options = data[8 : 8 + length].decode("utf-8").split() or [""]
    if not name.startswith("client:"):
        raise ValueError("it is no client's key")
    limit_timeout(options)
    return 0


def tracker_greeting(data: bytes) -> int:
    """What the tracker's clients and servers say: its magic number alone."""
    if len(data) < 4:
        return 4
    check_magic(data, TRACKER_MAGIC)
    return 0


def check_magic(data: bytes, magic: int) -> None:
    if struct.unpack_from("<i", data)[0] != magic:
        raise ValueError("another magic number")


def limit_timeout(options: list[str], most: float = math.inf) -> dict[str, float]:
    """The time-out of a session that a client's key asks for, at most `most`. ValueError for one that is no
    time."""
    asked = [option for option in options if option.startswith("-timeout=")]
    seconds = [float(option.removeprefix("-timeout=")) for option in asked]
    if any(not 0 < each < math.inf for each in seconds):
        raise ValueError("a session takes some time")
    return {"timeout": min([*seconds, most])}


class HandshakeListener:
    """As much of a listening socket as TVM uses: fileno, which can be read when `accept` has something,
    accept, setblocking, close."""

    def __init__(self, listening: socket.socket, greeting: Greeting, seconds: float = SECONDS) -> None:
        self.listening, self.greeting, self.seconds, self.blocking = listening, greeting, seconds, True
        self.waiting: dict[socket.socket, float] = {}  # when it is too late, oldest first
        self.greeted: deque[tuple[socket.socket, object]] = deque()
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        listening.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(listening, selectors.EVENT_READ)
        os.register_at_fork(after_in_child=self.forget)
        threading.Thread(target=self.run, name="handshakes", daemon=True).start()

    def fileno(self) -> int:
        return self.reading

    def setblocking(self, blocking: bool) -> None:
        self.blocking = bool(blocking)
        os.set_blocking(self.reading, self.blocking)

    def accept(self) -> tuple[socket.socket, object]:
        """A connection that has shaken hands, with what it said still to be read.

        In the place of one that has gone meanwhile: a closed one with zeros, which TVM passes over.
        """
        os.read(self.reading, 1)
        connection, address = self.greeted.popleft()
        if not gone(connection):
            return connection, address
        close(connection)
        here, there = socket.socketpair()
        there.sendall(bytes(8))
        there.close()
        return here, address

    def close(self) -> None:
        self.listening.close()

    def forget(self) -> None:
        """In a session's process: the connections are not its own, and would stay open with it."""
        for connection in [self.listening, *list(self.waiting), *(each for each, _ in list(self.greeted))]:
            connection.close()

    def run(self) -> None:
        """The thread that reads handshakes."""
        while True:
            now = time.monotonic()
            for connection in [each for each, late in list(self.waiting.items()) if late <= now]:
                self.reject(connection)
            for key, _ in self.selector.select(min(self.waiting.values(), default=now + 60) - now):
                connection = cast(socket.socket, key.fileobj)
                try:
                    self.welcome() if connection is self.listening else self.hear(connection)
                except (OSError, ValueError):
                    if connection is not self.listening:
                        self.reject(connection)
                    elif self.listening.fileno() < 0:
                        return
                    elif self.waiting:  # too many files are open
                        self.reject(next(iter(self.waiting)))
                    else:
                        time.sleep(0.1)

    def welcome(self) -> None:
        """Take a connection that has not said anything yet."""
        connection, _ = self.listening.accept()
        if len(self.waiting) >= MOST:
            self.reject(next(iter(self.waiting)))
        self.waiting[connection] = time.monotonic() + self.seconds
        connection.setblocking(False)
        self.selector.register(connection, selectors.EVENT_READ)
        self.wait_for(connection, self.greeting(b""))

    def hear(self, connection: socket.socket) -> None:
        """Hand it on, or wait for more. What it says is read here, not taken: TVM reads it again."""
        said = connection.recv(8 + LONGEST_KEY, socket.MSG_PEEK)
        needed = self.greeting(said)
        if needed and len(said) < connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT):
            raise ValueError("it has closed before it said enough")
        if needed:
            self.wait_for(connection, needed)
            return
        if len(self.greeted) >= MOST:
            raise ValueError("too many wait")
        self.selector.unregister(connection)
        del self.waiting[connection]
        self.wait_for(connection, 1)
        connection.setblocking(True)
        address = connection.getpeername()
        unused = socket.socket(fileno=connection.detach())  # Python closes it once TVM drops it
        self.greeted.append((unused, address))
        os.write(self.writing, b"\0")

    @staticmethod
    def wait_for(connection: socket.socket, count: int) -> None:
        """Be told of a connection once so many bytes have come, or it has been closed."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def reject(self, connection: socket.socket) -> None:
        self.waiting.pop(connection, None)
        with suppress(KeyError, ValueError):
            self.selector.unregister(connection)
        close(connection)


def gone(connection: socket.socket) -> bool:
    """Whether the other side has closed it."""
    waiting = select.poll()
    waiting.register(connection, select.POLLRDHUP)
    return bool(waiting.poll(0))


def close(connection: socket.socket) -> None:
    """Close it for good: a process that was forked meanwhile may have it, too."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
