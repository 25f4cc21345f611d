"""Processes that answer pickled requests, each one at a time. A caller gets a process that is free. They are
on this computer, or on others that ssh reaches.

concurrent.futures' pool does not serve: where one process dies, it ends all of them, and a process cannot
have variables of its own.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from queue import LifoQueue
from typing import Any, BinaryIO, Callable, Iterator, Sequence, cast

from tir_schedules import interrupts, processes
from tir_schedules.compiler.cache import default_root
from tir_schedules.console import print_error
from tir_schedules.errors import TirSchedulesError
from tir_schedules.tuning.building.hosts import UNREACHED, Host
from tir_schedules.tuning.records.timesheet import Timesheet

NO_ANSWER = (EOFError, BrokenPipeError, ValueError, pickle.UnpicklingError)
"""What half an answer raises, and pipes that `close` has closed."""

ENDING = 5.0
"""Seconds for a process to end by itself that gave no answer, so that it has an exit code of its own."""


class Ended(Exception):
    """A process ended without an answer."""


class Late(Ended):
    """It was killed, because its answer took too long."""


class Useless(Exception):
    """The answer of a process that can do nothing: no other takes its place."""


class Lost(TirSchedulesError):
    """Nothing that could answer is left, so that nothing can be said of any candidate."""


@dataclass(eq=False)
class Place:
    """Where one process runs. environment: variables of its own. host: another computer."""

    environment: dict[str, str]
    host: Host | None = None
    process: subprocess.Popen[bytes] | None = None


class Pool:
    """At most one process for each place, begun when it is needed: the one that was free last is asked
    first. They end with `close`, or when this process ends.

    module: what they run; its main is `answering`. waiting, working: what the time until one is free is
    counted as, and that until it has answered, unless it is None. seconds: what an answer may take.
    """

    def __init__(
        self,
        module: str,
        places: Sequence[Place],
        spent: Timesheet,
        waiting: str,
        working: str | None = None,
        seconds: float | None = None,
    ) -> None:
        self.module, self.spent, self.seconds = module, spent, seconds
        self.waiting, self.working, self.lock = waiting, working, threading.Lock()
        self.all = list(places)
        self.free: LifoQueue[Place] = LifoQueue()
        for place in reversed(self.all):
            self.free.put(place)

    def ask(self, request: object) -> Any:
        """The answer of a process that is free. Ended, with its exit code, when that ends meanwhile; Late
        when it was killed. Lost when no place is left where one is of use."""
        while True:
            with self.spent.during(self.waiting):
                place = self.free.get()
            given_up = False
            try:
                with self.spent.during(self.working) if self.working else nullcontext():
                    found = self.asked(place, request)
                given_up = isinstance(found, Useless) and self.goes_on_without(place)
            finally:
                if not given_up:
                    self.free.put(place)
            if not isinstance(found, Useless):
                return found
            if not given_up:
                raise Lost(f"{found}, and there is no other: --resume goes on")
            print_error(f"{found}; the others go on without it")

    def goes_on_without(self, place: Place) -> bool:
        """Give a place up, unless it is the last one: who waits for one has to hear of it."""
        self.end(place)
        with self.lock:
            if len(self.all) > 1:
                self.all.remove(place)
        return place not in self.all

    def asked(self, place: Place, request: object) -> Any:
        if place.process and place.process.poll() is not None:  # since its last answer
            self.end(place)
        process = place.process = place.process or self.start(place)
        requests, answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        late = threading.Event()
        try:
            with self.killed_late(process, late):
                pickle.dump(request, requests)
                requests.flush()
                found, enough = pickle.load(answers)
        except NO_ANSWER:
            interrupts.check()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)
            self.end(place)
            if late.is_set():
                raise Late(f"not done after {self.seconds:g} s") from None
            if place.host and process.returncode == UNREACHED:
                return Useless(f"{place.host.name} cannot be reached any more")
            raise Ended(f"exit code {process.returncode}") from None
        if enough:
            self.end(place)
        if place.host and isinstance(found, Useless):
            return Useless(f"{place.host.name}: {found}")
        return found

    @contextmanager
    def killed_late(self, process: subprocess.Popen[bytes], late: threading.Event) -> Iterator[None]:
        """Kill a process that is not done in time, and set `late`."""
        if self.seconds is None:
            yield
            return

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def start(self, place: Place) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        if place.host:
            return processes.begin(place.host.command(self.module, place.environment), **pipes)
        environment = {**os.environ, **place.environment, "TIR_SCHEDULES_CACHE": str(default_root())}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        return processes.begin([sys.executable, "-m", self.module], env=environment, **pipes)

    def close(self) -> None:
        """End all processes; who asks later has new ones."""
        for place in self.all:
            self.end(place)

    def end(self, place: Place) -> None:
        """End the process of a place, if there is one."""
        process, place.process = place.process, None
        if process:
            processes.end(process)


def answering(
    answer: Callable[[Any], Any],
    unread: Callable[[Exception], Any],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Answer requests from the standard input until it ends.

    unread: the answer to a request that cannot be loaded. enough: asked after each answer, whether this
    process shall have no other request.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is not an answer
    threading.Thread(target=end_unasked, daemon=True).start()
    while True:
        try:
            request = pickle.load(requests)  # which loads the file of a rung from elsewhere
        except EOFError:
            return
        except (TirSchedulesError, ImportError, AttributeError) as error:
            found = unread(error)
        else:
            found = answer(request)
        with suppress(BrokenPipeError):
            pickle.dump((found, enough()), answers)
            answers.flush()


def end_unasked() -> None:
    """End this process once the one that it answers is gone: after a lost connection that cannot end it."""
    waiting = select.poll()
    waiting.register(0, select.POLLRDHUP)
    waiting.poll()
    os._exit(0)
