"""Measuring on several servers at once, those that `tir-schedules serve` starts, through TVM's RPC."""
from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, Sequence

from tir_schedules.compiler.tvm import import_tvm
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.tuning.rpc_server import ANSWER

SECONDS = 120
"""Most that one request may take; the server then kills it."""

ATTEMPTS = 2
"""How often a request is made whose server's process ends: a second time it is the request's own fault."""


class RpcRunner:
    """The servers of a tracker.

    name, arch, device_name: as a machine has them ("gpu", "sm_90", "NVIDIA H200"); arch is empty for the CPU machine. workers: how many
    servers there are. BadInput when there is no tracker at the address or no server with the key, CheckFailed when servers differ.
    """

    def __init__(self, address: str, key: str, seconds: float = SECONDS):
        self.address, self.key, self.seconds = parse_address(address), key, seconds
        self.workers = self.servers()
        if not self.workers:
            raise BadInput(f"the tracker at {address} knows no server with key {key!r}: start some with `tir-schedules serve --key {key}`")
        found = {json.dumps(about, sort_keys=True) for about in self.ask([({"what": "about"}, b"")] * self.workers)}
        if len(found) > 1:
            raise CheckFailed(f"the servers at {address} differ, so their times cannot be compared: {'; '.join(sorted(found))}")
        about = json.loads(found.pop())
        if "error" in about:
            raise CheckFailed(f"a server at {address} cannot measure: {about['error']}")
        self.name, self.arch, self.device_name = about["machine"], about["arch"], about["device"]

    def servers(self) -> int:
        """How many servers with the key the tracker knows."""
        tracker = self.tracker()
        try:
            return registered(tracker, self.key)
        finally:
            tracker.close()

    def tracker(self) -> Any:
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
            raise BadInput(f"there is no tracker at {host}:{port} ({reason}): start one with `tir-schedules serve`") from None

    def ask(self, requests: Sequence[tuple[dict[str, Any], bytes]]) -> Iterator[dict[str, Any]]:
        """Answers to requests and their payloads, in order, as they are ready; all servers work at once."""
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            yield from pool.map(lambda request: self.answer(*request), requests)

    def answer(self, request: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """The answer of the next server that is free; {"error": one line} when the request takes too long or ends the server's process."""
        for _ in range(ATTEMPTS):
            session = self.session()
            try:
                return json.loads(session.get_function(ANSWER)(json.dumps(request), payload))
            except RuntimeError as error:
                if "RPCSessionTimeoutError" in f"{type(error).__name__} {error}":
                    return {"error": f"not done after {self.seconds:g} s"}
        return {"error": f"the server's process ended, {ATTEMPTS} times"}

    def session(self) -> Any:
        """A server of our own until it is dropped. CheckFailed when there is none any more."""
        tracker = self.tracker()
        try:
            return tracker.request(self.key, session_timeout=self.seconds, max_retry=1)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise CheckFailed(f"no server with key {self.key!r} answers ({reason}): is `serve` still running?") from None
        finally:
            tracker.close()


def import_rpc() -> Any:
    """The module tvm.rpc."""
    import_tvm()
    from tvm import rpc

    return rpc


def registered(tracker: Any, key: str) -> int:
    """How many servers with a key a tracker knows."""
    return sum(info.get("key") == f"server:{key}" for info in tracker.summary()["server_info"])


def parse_address(text: str) -> tuple[str, int]:
    """ "127.0.0.1:9190" as host and port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"--tracker takes HOST:PORT such as 127.0.0.1:9190, not {text!r}")
    return host, int(port)
