"""The verb `serve`: TVM's RPC tracker and one server per GPU, or several that use the CPU machine, until it
is interrupted."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Iterator, NoReturn

from tir_schedules import interrupts
from tir_schedules.cli.options import Options, Verbs
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.numerals import integer_for

LOOPBACK, KEY = "127.0.0.1", "tir_schedules"
ANYWHERE = ("0.0.0.0", "::", "")
START_SECONDS = 60
MOST = 256
MODULE = "tir_schedules.tuning.remote.rpc_server"


@dataclass(frozen=True)
class Place:
    """What one server uses. machine: "gpu" or "cpu". visible: the value of CUDA_VISIBLE_DEVICES."""

    machine: str
    visible: str = ""


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `serve` to those of the other verbs."""
    verb = verbs.add_parser(
        "serve", help="measure for `tune --tracker`: a server for every GPU of this computer"
    )
    servers_help = "N servers that use the CPU machine, for a computer without a GPU"
    verb.add_argument("--servers", metavar="N", type=integer_for("--servers", 2), help=servers_help)
    danger = "whoever reaches its ports can run any code here"
    verb.add_argument(
        "--host",
        default=LOOPBACK,
        help=f"address to listen on (default {LOOPBACK}: this computer only); {danger}",
    )
    verb.add_argument(
        "--port",
        metavar="N",
        type=integer_for("--port", 9190),
        default=0,
        help="the tracker's port (default: a free one)",
    )
    verb.add_argument("--key", default=KEY, help=f"what clients ask the tracker for (default {KEY})")
    verb.set_defaults(verb=serve)


def serve(options: Options) -> int:
    """Run the verb until it is interrupted."""
    from tir_schedules.console import print_error, print_line, print_whole

    places = places_of(options.servers)
    try:
        with serving(places, options.host, options.port, options.key) as (port, processes):
            if options.host not in (LOOPBACK, "localhost"):
                print_error(
                    f"listening on {options.host}: TVM's RPC asks for no password, whoever reaches the ports"
                    " can run any code here"
                )
            each = "GPU" if places[0].machine == "gpu" else "CPU machine"
            print_line(
                f"{len(places)} server{'s' if len(places) > 1 else ''} ({each}) at {options.host}:{port};"
                " Ctrl-C ends them"
            )
            key = f" --key {options.key}" if options.key != KEY else ""
            print_whole(f"use: tir-schedules tune sgemm --tracker {options.host}:{port}{key}")
            sys.stdout.flush()
            watch(processes)
    except KeyboardInterrupt:  # as it is meant to end
        interrupts.told()
        raise


def watch(processes: list[subprocess.Popen]) -> NoReturn:
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
    from tir_schedules.machines.gpu import first_device, import_cupy

    try:
        cupy = import_cupy()
        first_device(cupy)
    except MissingTool as error:
        reason = str(error).replace(", or use --machine cpu", "")
        raise MissingTool(f"{reason}; --servers N starts servers that use the CPU machine") from None
    count = cupy.cuda.runtime.getDeviceCount()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [
        Place("gpu", name) for name in (visible.split(",")[:count] if visible else map(str, range(count)))
    ]


@contextmanager
def serving(
    places: list[Place], host: str = LOOPBACK, port: int = 0, key: str = KEY
) -> Iterator[tuple[int, list[subprocess.Popen]]]:
    """The tracker and a server per place as processes that end with the context, or with this process. Yields
    the tracker's port.

    port: 0 for a free one. BadInput when it cannot be had; MissingTool without tornado, which TVM's tracker
    needs.
    """
    check_tornado()
    if host in ANYWHERE:
        raise BadInput(
            f"--host {host!r} is no address that a client could be told: name the one by which other"
            " computers reach this one"
        )
    with ExitStack() as stack:
        tracking = stack.enter_context(listener(host, port))
        port = tracking.getsockname()[1]
        processes = [stack.enter_context(process(tracking, {}, "tracker"))]
        for place in places:
            listening = stack.enter_context(listener(host, 0))
            extra = {"CUDA_VISIBLE_DEVICES": place.visible} if place.machine == "gpu" else {}
            own = str(listening.getsockname()[1])
            processes.append(
                stack.enter_context(
                    process(listening, extra, "server", own, key, place.machine, host, str(port))
                )
            )
        for started in processes:
            if started.stdout.readline() != "ready\n":
                raise CheckFailed("a server or the tracker does not start; what it printed is above")
        await_servers(host, port, key, len(places))
        yield port, processes


def await_servers(host: str, port: int, key: str, count: int) -> None:
    """Wait until the tracker knows so many servers. CheckFailed when it does not in time."""
    from tir_schedules.tuning.remote.rpc import import_rpc, registered

    tracker, deadline = import_rpc().connect_tracker(host, port), time.monotonic() + START_SECONDS
    while registered(tracker, key) < count:
        if time.monotonic() > deadline:
            raise CheckFailed(
                f"the servers do not reach the tracker at {host}:{port} within {START_SECONDS} s"
            )
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
def process(
    listening: socket.socket, extra: dict[str, str], role: str, *rest: str
) -> Iterator[subprocess.Popen]:
    """MODULE as a process that is killed at the end. extra: environment variables."""
    from tir_schedules.compiler.cache import default_root

    descriptor = listening.fileno()
    command = [sys.executable, "-m", MODULE, role, str(descriptor), *rest]
    environment = {
        **os.environ,
        "TIR_SCHEDULES_CACHE": str(default_root()),
        **extra,
    }  # a session's folder is another
    started = subprocess.Popen(
        command,
        pass_fds=[descriptor],
        env=environment,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
