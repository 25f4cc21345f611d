"""TVM's RPC tracker and its servers, each a process: one per GPU, or several that use the CPU machine."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Iterator, NoReturn, cast

from tir_schedules import interrupts
from tir_schedules.compiler.cache import default_root
from tir_schedules.console import print_error, print_line, print_whole
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.tuning.remote import KEY, LOOPBACK

ANYWHERE = ("0.0.0.0", "::", "")
START_SECONDS = 60
MOST = 256
MODULE = "tir_schedules.tuning.remote.server"

Process = subprocess.Popen[str]


@dataclass(frozen=True)
class Place:
    """What one server uses. machine: "gpu" or "cpu". visible: the value of CUDA_VISIBLE_DEVICES."""

    machine: str
    visible: str = ""


def run_servers(servers: int | None, host: str, port: int, key: str) -> NoReturn:
    """Start servers, say how to use them, and wait for Ctrl-C. servers: as for places_of."""
    places = places_of(servers)
    try:
        with serving(places, host, port, key) as (port, processes):
            if host not in (LOOPBACK, "localhost"):
                danger = "TVM's RPC asks for no password, whoever reaches the ports can run any code here"
                print_error(f"listening on {host}: {danger}")
            each = "GPU" if places[0].machine == "gpu" else "CPU machine"
            count = f"{len(places)} server{'s' if len(places) > 1 else ''} ({each})"
            print_line(f"{count} at {host}:{port}; Ctrl-C ends them")
            own_key = f" --key {key}" if key != KEY else ""
            print_whole(f"use: tir-schedules tune sgemm --tracker {host}:{port}{own_key}")
            sys.stdout.flush()
            watch(processes)
    except KeyboardInterrupt:  # as it is meant to end
        interrupts.told()
        raise


def watch(processes: list[Process]) -> NoReturn:
    """Wait until one of the processes ends, which none does by itself. CheckFailed then."""
    while all(process.poll() is None for process in processes):
        time.sleep(0.5)
    raise CheckFailed("one of the processes has ended, so all do: start `tir-schedules serve` again")


def places_of(servers: int | None) -> list[Place]:
    """One place per GPU that CUDA shows, or `servers` times the CPU machine. MissingTool for neither."""
    if servers is not None:
        if servers < 1:
            raise BadInput(f"--servers is {servers}; it takes at least 1")
        if servers > MOST:
            raise BadInput(f"--servers is {servers}; it takes at most {MOST}, each is a process of its own")
        return [Place("cpu")] * servers
    from tir_schedules.machines.gpu import first_device, import_cupy, visible

    try:
        cupy = import_cupy()
        first_device(cupy)
    except MissingTool as error:
        reason = str(error).replace(", or use --machine cpu", "")
        raise MissingTool(f"{reason}; --servers N starts servers that use the CPU machine") from None
    return [Place("gpu", name) for name in visible(cupy)]


@contextmanager
def serving(
    places: list[Place], host: str = LOOPBACK, port: int = 0, key: str = KEY
) -> Iterator[tuple[int, list[Process]]]:
    """The tracker and a server per place as processes that end with the context, or with this process. Yields
    the tracker's port.

    port: 0 for a free one. BadInput when it cannot be had; MissingTool without tornado, which TVM's tracker
    needs.
    """
    check_tornado()
    if host in ANYWHERE:
        advice = "name the one by which other computers reach this one"
        raise BadInput(f"--host {host!r} is no address that a client could be told: {advice}")
    with ExitStack() as stack:
        tracking = stack.enter_context(listener(host, port))
        port = tracking.getsockname()[1]
        processes = [stack.enter_context(process(tracking, {}, "tracker"))]
        for place in places:
            listening = stack.enter_context(listener(host, 0))
            extra = {"CUDA_VISIBLE_DEVICES": place.visible} if place.machine == "gpu" else {}
            own = str(listening.getsockname()[1])
            server = process(listening, extra, "server", own, key, place.machine, host, str(port))
            processes.append(stack.enter_context(server))
        for started in processes:
            if cast(IO[str], started.stdout).readline() != "ready\n":
                raise CheckFailed("a server or the tracker does not start; what it printed is above")
        await_servers(host, port, key, len(places))
        yield port, processes


def await_servers(host: str, port: int, key: str, count: int) -> None:
    """Wait until the tracker knows so many servers. CheckFailed when it does not in time."""
    from tir_schedules.tuning.remote.client import count_servers, import_rpc

    tracker, deadline = import_rpc().connect_tracker(host, port), time.monotonic() + START_SECONDS
    while count_servers(tracker, key) < count:
        if time.monotonic() > deadline:
            seconds = f"within {START_SECONDS} s"
            raise CheckFailed(f"the servers do not reach the tracker at {host}:{port} {seconds}")
        time.sleep(0.05)
    tracker.close()


def check_tornado() -> None:
    """MissingTool without what TVM's tracker is written with."""
    if importlib.util.find_spec("tornado") is None:
        raise MissingTool(
            "TVM's tracker needs tornado, which is not installed: pip install 'tir_schedules[tune]'"
        )


def listener(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 for any. BadInput when the address cannot be had."""
    if not 0 <= port < 65536:
        raise BadInput(f"--port is {port}; ports go up to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise BadInput(
            f"cannot listen on {host}:{port} ({error.strerror or error}); choose another --host or --port"
        ) from None
    listening.listen()
    return listening


@contextmanager
def process(listening: socket.socket, extra: dict[str, str], role: str, *rest: str) -> Iterator[Process]:
    """MODULE as a process that is killed at the end. extra: environment variables."""
    descriptor = listening.fileno()
    command = [sys.executable, "-m", MODULE, role, str(descriptor), *rest]
    environment = {
        **os.environ,
        "TIR_SCHEDULES_CACHE": str(default_root()),
        **extra,
    }  # sessions change folder
    started = subprocess.Popen(
        command,
        pass_fds=[descriptor],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        cast(IO[str], started.stdout).close()
