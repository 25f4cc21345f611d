"""A process of `tir-schedules serve`: TVM's RPC tracker, or one server. It ends with the process that started it.

    python -m tir_schedules.tuning.rpc_server tracker SOCKET
    python -m tir_schedules.tuning.rpc_server server SOCKET PORT KEY MACHINE TRACKER_HOST TRACKER_PORT

SOCKET is the number of a listening socket that is handed down. Each session has a process of its own: a kernel that hangs or breaks the
GPU's context takes that process with it and nothing else.
"""
from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys

from tir_schedules.compiler.tvm import import_tvm

ANSWER = "tir_schedules.answer"
"""Name of the one function of ours that a server has; see answers.answer."""

PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """Have Linux kill this process when the one that started it ends, however that happens."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


def serve_tracker(listening: socket.socket) -> None:
    """Be the tracker, which knows the servers and hands them out."""
    import_tvm()
    from tvm.rpc import tracker

    tracker.logger.setLevel("ERROR")
    ready()
    tracker._tracker_server(listening, tracker.base.random_key("stop"))


def serve(listening: socket.socket, port: int, key: str, machine: str, tracker: tuple[str, int]) -> None:
    """Be a server. TVM's own loop ends when a session's process dies; this one goes on."""
    import_tvm()
    import tvm_ffi
    from tvm.rpc import server

    from tir_schedules.tuning.answers import answer, prepare

    server.logger.setLevel("ERROR")
    tvm_ffi.register_global_func(ANSWER, lambda request, payload: answer(str(request), bytes(payload), machine))
    os.register_at_fork(after_in_child=end_with_parent)
    prepare()
    folder = os.getcwd()
    ready()
    while True:
        try:
            server._listen_loop(listening, port, key, tracker, "", None)
        except RuntimeError:
            os.chdir(folder)


def ready() -> None:
    print("ready", flush=True)


def main(role: str, descriptor: str, *rest: str) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its processes itself
    listening = socket.socket(fileno=int(descriptor))
    if role == "tracker":
        serve_tracker(listening)
    else:
        port, key, machine, host, tracker_port = rest
        serve(listening, int(port), key, machine, (host, int(tracker_port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
