"""Processes that build candidates, several at a time: TVM lowers in one thread only, and much of the CPU
machine's work is Python.

    python -m tir_schedules.tuning.building.workers

reads pickled arguments of `build`, one after another, and writes the candidate that it returns, or the error
that it raises.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import BinaryIO, cast

from tir_schedules import interrupts, processes
from tir_schedules.compiler.cache import default_root
from tir_schedules.errors import TirSchedulesError
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.building.candidate import Candidate, Unbuilt, build

MOST = 16
"""Workers for each GPU, on a computer with many cores: each holds a TVM in memory."""

ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)

NO_ANSWER = (EOFError, BrokenPipeError, ValueError, pickle.UnpicklingError)
"""What half an answer raises, and pipes that `close` has closed."""


def at_once(gpus: int = 1) -> int:
    """How many candidates to build at a time, for so many GPUs that measure them."""
    return max(gpus, min(os.cpu_count() or 1, MOST * gpus))


class Workers:
    """A process for each thread that asks. They end with `close`, or when this process ends, once they have
    built what they are at."""

    def __init__(self) -> None:
        self.own = threading.local()
        self.all: list[subprocess.Popen[bytes]] = []

    def build(self, rung: Rung, workload: Workload, arch: str) -> Candidate:
        """As candidate.build. Unbuilt when the process ends without an answer or meets a bug."""
        process = getattr(self.own, "process", None) or self.start()
        requests, answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        try:
            pickle.dump((rung, workload, arch), requests)
            requests.flush()
            found = pickle.load(answers)
        except NO_ANSWER:
            interrupts.check()
            self.own.process = None
            raise Unbuilt(
                f"{rung.id}: the process that builds it ended without an answer (exit code {process.wait()})"
            ) from None
        if isinstance(found, Exception):
            raise found
        return found

    def start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **ONE_THREAD, "TIR_SCHEDULES_CACHE": str(default_root())}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.own.process = processes.begin([sys.executable, "-m", __name__], env=environment, **pipes)
        self.all.append(self.own.process)
        return self.own.process

    def close(self) -> None:
        """End all processes; threads that ask later have new ones."""
        for process in self.all:
            processes.end(process)
        self.own, self.all = threading.local(), []


def answer(request: tuple[Rung, Workload, str]) -> Candidate | Exception:
    """What is built, or the error: Unbuilt for those that nobody foresaw."""
    try:
        return build(*request)
    except TirSchedulesError as error:
        return error
    except Exception as error:
        return Unbuilt(f"it cannot be built: {type(error).__name__}: {error}")


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is no answer
    while True:
        try:
            request = pickle.load(requests)  # which loads the file of a rung from elsewhere
        except EOFError:
            return
        except (TirSchedulesError, ImportError, AttributeError) as error:
            pickle.dump(Unbuilt(f"it cannot be loaded: {error}"), answers)
        else:
            pickle.dump(answer(request), answers)
        answers.flush()


if __name__ == "__main__":
    main()
