"""Processes that answer pickled requests, each one at a time: whoever asks gets one that is free."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from queue import LifoQueue
from typing import Any, BinaryIO, Callable, Iterator, Sequence, cast

from tir_schedules import interrupts, processes
from tir_schedules.compiler.cache import default_root
from tir_schedules.errors import TirSchedulesError
from tir_schedules.tuning.records.timesheet import Timesheet

NO_ANSWER = (EOFError, BrokenPipeError, ValueError, pickle.UnpicklingError)
"""What half an answer raises, and pipes that `close` has closed."""


class Ended(Exception):
    """A process ended without an answer."""


class Late(Ended):
    """It was killed, because its answer took too long."""


@dataclass(eq=False)
class Place:
    """Where one process runs. environment: variables of its own."""

    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None


class Pool:
    """At most one process for each environment, begun when it is needed: the one that was free last is asked
    first. They end with `close`, or when this process ends.

    module: what they run; its main is `answering`. waiting, working: what the time until one is free is
    counted as, and that until it has answered, unless it is None. seconds: what an answer may take.
    """

    def __init__(
        self,
        module: str,
        environments: Sequence[dict[str, str]],
        spent: Timesheet,
        waiting: str,
        working: str | None = None,
        seconds: float | None = None,
    ) -> None:
        self.module, self.spent, self.seconds = module, spent, seconds
        self.waiting, self.working = waiting, working
        self.all = [Place(environment) for environment in environments]
        self.free: LifoQueue[Place] = LifoQueue()
        for place in reversed(self.all):
            self.free.put(place)

    def ask(self, request: object) -> Any:
        """The answer of a process that is free. Ended, with its exit code, when that ends meanwhile; Late
        when it was killed."""
        with self.spent.during(self.waiting):
            place = self.free.get()
        try:
            with self.spent.during(self.working) if self.working else nullcontext():
                return self.asked(place, request)
        finally:
            self.free.put(place)

    def asked(self, place: Place, request: object) -> Any:
        if place.process and place.process.poll() is not None:  # it had enough
            processes.end(place.process)
            place.process = None
        process = place.process = place.process or self.start(place)
        requests, answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        late = threading.Event()
        try:
            with self.killed_late(process, late):
                pickle.dump(request, requests)
                requests.flush()
                return pickle.load(answers)
        except NO_ANSWER:
            interrupts.check()
            place.process = None
            code = process.wait()
            processes.end(process)
            if late.is_set():
                raise Late(f"not done after {self.seconds:g} s") from None
            raise Ended(f"exit code {code}") from None

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
        environment = {**os.environ, **place.environment, "TIR_SCHEDULES_CACHE": str(default_root())}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return processes.begin([sys.executable, "-m", self.module], env=environment, **pipes)

    def close(self) -> None:
        """End all processes; who asks later has new ones."""
        for place in self.all:
            process, place.process = place.process, None
            if process:
                processes.end(process)


def answering(
    answer: Callable[[Any], Any],
    unread: Callable[[Exception], Any],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Answer requests from the standard input until it ends, or there have been enough.

    unread: the answer to a request that cannot be loaded.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is no answer
    while not enough():
        try:
            request = pickle.load(requests)  # which loads the file of a rung from elsewhere
        except EOFError:
            return
        except (TirSchedulesError, ImportError, AttributeError) as error:
            found = unread(error)
        else:
            found = answer(request)
        with suppress(BrokenPipeError):
            pickle.dump(found, answers)
            answers.flush()
