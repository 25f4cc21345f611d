"""A process of `tir-schedules serve`: TVM's RPC tracker, or one server. It ends with the process that started
it.

    python -m tir_schedules.tuning.remote.server tracker SOCKET
    python -m tir_schedules.tuning.remote.server server SOCKET PORT KEY MACHINE TRACKER_HOST TRACKER_PORT

SOCKET is the number of a listening socket that is handed down. Each session has a process of its own: a
kernel that hangs or breaks the GPU's context takes that process with it and nothing else.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Callable, ParamSpec, TypeVar

from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.remote.handshake import (
    HandshakeListener,
    client_greeting,
    limit_timeout,
    tracker_greeting,
)

if TYPE_CHECKING:
    from tvm.rpc.tracker import TCPEventHandler

P = ParamSpec("P")
Result = TypeVar("Result")

ANSWER = "tir_schedules.answer"
"""Name of the one function of ours that a server has; see answers.answer."""

SECONDS = 120
"""What one request may take; the server then kills it."""

KEPT = 1 / 5
"""How long a client uses a session for further requests, as a share of SECONDS.

A new session has to open the GPU first; other clients wait for the server of an old one."""

IDLE = 30
"""How long a session may be without a request, in seconds; it then ends, whatever its client is at."""

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """Have Linux kill this process when the one that started it ends, however that happens."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


def serve_tracker(listening: socket.socket) -> None:
    """Be the tracker, which knows the servers and hands them out."""
    import_tvm()
    from tvm.rpc import tracker

    for name in (tracker.logger.name, "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    handler = tracker.TCPEventHandler
    handler.on_message, handler.on_close = closing(handler.on_message), closing(handler.on_close)
    ready()
    tracker._tracker_server(HandshakeListener(listening, tracker_greeting), tracker.base.random_key("stop"))


def closing(react: Callable[..., None]) -> Callable[..., None]:
    """What the tracker does for a connection; one that sends what it cannot make sense of is closed."""

    def guarded(self: TCPEventHandler, *arguments: object) -> None:
        try:
            react(self, *arguments)
        except Exception:
            self.close()

    return guarded


def serve(listening: socket.socket, port: int, key: str, machine: str, tracker: tuple[str, int]) -> None:
    """Be a server. TVM's own loop ends when a session's process dies, or a connection breaks; this one goes
    on."""
    import_tvm()
    import tvm_ffi
    from tvm.rpc import server

    from tir_schedules.tuning.remote.answers import answer, prepare

    server.logger.setLevel("CRITICAL")
    activity = Activity()
    tvm_ffi.register_global_func(
        ANSWER, lambda request, payload: activity.during(answer, str(request), bytes(payload), machine)
    )
    loop = server._serve_loop
    server._serve_loop = lambda *arguments: (activity.watch(), loop(*arguments))
    server._parse_server_opt = lambda options: limit_timeout(options, (1 + KEPT) * SECONDS)
    os.register_at_fork(after_in_child=end_with_parent)
    prepare()
    folder, clients = os.getcwd(), HandshakeListener(listening, client_greeting)
    ready()
    while True:
        try:
            server._listen_loop(clients, port, key, tracker, "", None)
        except Exception:
            os.chdir(folder)
            for session in multiprocessing.active_children():
                session.kill()
            time.sleep(0.1)


class Activity:
    """When a session had its last request: its process ends when it is without one for too long."""

    def __init__(self) -> None:
        self.busy, self.since = 0, 0.0

    def during(self, action: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
        """What the action returns, which answers a request."""
        self.busy += 1
        try:
            return action(*arguments, **named)
        finally:
            self.busy, self.since = self.busy - 1, time.monotonic()

    def watch(self) -> None:
        """Begin to watch, in the process of a session."""
        self.busy, self.since = 0, time.monotonic()
        threading.Thread(target=self.end_when_idle, daemon=True).start()

    def end_when_idle(self) -> None:
        while self.busy or time.monotonic() - self.since < IDLE:
            time.sleep(0.25)
        os._exit(0)


def ready() -> None:
    print("ready", flush=True)


def main(role: str, descriptor: str, *rest: str) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its own
    listening = socket.socket(fileno=int(descriptor))
    if role == "tracker":
        serve_tracker(listening)
    else:
        port, key, machine, host, tracker_port = rest
        serve(listening, int(port), key, machine, (host, int(tracker_port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
