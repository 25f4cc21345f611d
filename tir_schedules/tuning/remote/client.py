"""The client of the servers that `tir-schedules serve` starts, all of them at once, through TVM's RPC."""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Semaphore
from types import ModuleType
from typing import TYPE_CHECKING, Callable, cast

from tir_schedules.errors import BadInput, CheckFailed, TirSchedulesError, one_line, shown
from tir_schedules.numerals import integer
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.records.timesheet import AWAITING_SERVER, SERVED, Timesheet
from tir_schedules.tuning.remote.answers import Json
from tir_schedules.tuning.remote.server import ANSWER, KEPT, SECONDS

if TYPE_CHECKING:
    from tvm.rpc import RPCSession, TrackerSession

ATTEMPTS = 2
"""How often a request is made whose server's process ends: a second time it is the request's own fault."""

ENDED = "the server's process ended"


class ServersLost(TirSchedulesError):
    """No server answers any more, so that nothing can be said of any candidate."""


@dataclass
class Session:
    """A server of our own until it is dropped. remote: TVM's. seconds: what a request may take.

    function: the one that answers, asked for once: freeing it waits for an answer with Python's lock held.
    """

    remote: RPCSession
    seconds: float
    since: float = field(default_factory=time.monotonic)
    function: Callable[[str, bytes], str] | None = None

    def answer(self, request: Json, payload: bytes = b"") -> Json | None:
        """{"error": one line} when it takes too long; None when the server's process ends."""
        try:
            self.function = self.function or self.remote.get_function(ANSWER)
            return json.loads(self.function(json.dumps(request), payload))
        except RuntimeError as error:
            slow = "RPCSessionTimeoutError" in f"{type(error).__name__} {error}"
            return {"error": f"not done after {self.seconds:g} s"} if slow else None


class Servers:
    """The servers of a tracker that have a key. Safe to use from several threads.

    name, arch, device_name: as a machine has them ("gpu", "sm_90", "NVIDIA H200"); arch is empty for the CPU
    machine. count: how many servers there are. `close` gives back those that are kept for further requests.
    BadInput when there is no tracker at the address or no
    server with the key, CheckFailed when servers differ.
    """

    def __init__(self, address: str, key: str, seconds: float = SECONDS) -> None:
        self.address, self.key, self.seconds = parse_address(address), key, seconds
        self.count = self.registered()
        if not self.count:
            advice = f"start some with `tir-schedules serve --key {key}`"
            raise BadInput(f"the tracker at {address} knows no server with key {key!r}: {advice}")
        self.free = Semaphore(self.count)
        self.idle = deque(self.session() for _ in range(self.count))
        about = self.about(address)
        self.name, self.arch, self.device_name = about["machine"], about["arch"], about["device"]

    def about(self, address: str) -> Json:
        """What all servers say of themselves. CheckFailed when they differ or cannot measure."""
        answers = [session.answer({"what": "about"}) or {"error": ENDED} for session in self.idle]
        different = {json.dumps(answer, sort_keys=True) for answer in answers}
        if len(different) > 1:
            listed = "; ".join(sorted(different))
            raise CheckFailed(f"the servers at {address} differ, so their times cannot be compared: {listed}")
        if "error" in answers[0]:
            raise CheckFailed(f"a server at {address} cannot measure: {answers[0]['error']}")
        return answers[0]

    def registered(self) -> int:
        """How many servers with the key the tracker knows."""
        tracker = self.tracker()
        try:
            return count_servers(tracker, self.key)
        finally:
            tracker.close()

    def tracker(self) -> TrackerSession:
        """A connection to the tracker. BadInput when nothing of the kind is there."""
        rpc = import_rpc()
        host, port = self.address
        try:
            socket.create_connection(self.address, timeout=10).close()  # TVM would try for a minute
            tracker = rpc.connect_tracker(host, port)
            tracker._sock.settimeout(2 * self.seconds)
            return tracker
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadInput(
                f"there is no tracker at {host}:{port} ({reason}): start one with `tir-schedules serve`"
            ) from None

    def answer(self, request: Json, payload: bytes, spent: Timesheet | None = None) -> Json:
        """The answer of the next server that is free; {"error": one line} when the request takes too long or
        ends the server's process. spent: where the time is added."""
        spent = spent or Timesheet()
        with spent.during(AWAITING_SERVER):
            self.free.acquire()
        try:
            with spent.during(SERVED):
                return self.ask_one(request, payload)
        finally:
            self.free.release()

    def ask_one(self, request: Json, payload: bytes) -> Json:
        """The answer of a server; some server is free."""
        for _ in range(ATTEMPTS):
            session = self.young() or self.session()
            answer = session.answer(request, payload)
            if answer:
                if not (answer.get("error") or answer.get("broken")):
                    self.idle.append(session)
                return answer
        return {"error": f"{ENDED}, {ATTEMPTS} times"}

    def young(self) -> Session | None:
        """A session that is kept; None when there is none. Older ones are dropped."""
        with suppress(IndexError):
            while True:
                session = self.idle.pop()
                if time.monotonic() - session.since < KEPT * self.seconds:
                    return session
        return None

    def session(self) -> Session:
        """The next server that no other client has. ServersLost when there is none any more."""
        tracker = self.tracker()
        try:
            timeout = cast(int, (1 + KEPT) * self.seconds)  # TVM takes parts of a second, too
            return Session(tracker.request(self.key, session_timeout=timeout, max_retry=1), self.seconds)
        except RuntimeError as error:
            raise ServersLost(
                f"no server with key {self.key!r} answers ({one_line(error)}): is `serve` still running?"
            ) from None
        finally:
            tracker.close()

    def close(self) -> None:
        """Give back all servers; the next request asks for one again."""
        self.idle.clear()


def import_rpc() -> ModuleType:
    """The module tvm.rpc."""
    import_tvm()
    from tvm import rpc

    return rpc


def count_servers(tracker: TrackerSession, key: str) -> int:
    """How many servers with a key a tracker knows."""
    return sum(info.get("key") == f"server:{key}" for info in tracker.summary()["server_info"])


def parse_address(text: str) -> tuple[str, int]:
    """ "127.0.0.1:9190" as host and port."""
    host, _, port = text.rpartition(":")
    try:
        number = integer(port)
    except ValueError:
        number = 0
    if not host or not 0 < number < 65536:
        raise BadInput(f"--tracker takes HOST:PORT such as 127.0.0.1:9190, not {shown(text)}")
    return host, number
