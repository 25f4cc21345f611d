"""Programs that this process starts, and files it has not finished: all of them are gone when it has ended,
however it ended.

A program is the head of a process group of its own. So Ctrl-C on a terminal does not reach it, which would
look as if it had refused its input. When it is ended, so are the processes that it started. keeper.py does
that for a process that is killed. PR_SET_PDEATHSIG does not serve: it kills a program when the thread that
started it ends, and not what the program started.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Iterator, Sequence

from tir_schedules import interrupts, keeper

STARTING = 0.5
"""Most seconds that the end of the process waits for a program that is being started."""

_lock = threading.RLock()
_kept: set[str] = set()
_keeper: subprocess.Popen[bytes] | None = None


def run(command: Sequence[Any], timeout: float | None = None, **options: Any) -> subprocess.CompletedProcess:
    """As subprocess.run with captured text. OSError and subprocess.TimeoutExpired as there;
    interrupts.Interrupted when this process is to end, whatever the program said."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    process = begin(command, **pipes, **options)
    try:
        out, err = process.communicate(timeout=timeout)
        interrupts.check()
        return subprocess.CompletedProcess(command, process.returncode, out, err)
    finally:
        end(process)


def begin(command: Sequence[Any], **options: Any) -> subprocess.Popen:
    """As subprocess.Popen, with nothing to read unless `stdin` says so; to be ended by `end`."""
    interrupts.check()
    with interrupts.held(), _lock:  # a running program is on the list, and shutdown takes the same lock
        process = subprocess.Popen(
            command, start_new_session=True, **{"stdin": subprocess.DEVNULL, **options}
        )
        keep("group", process.pid)
    if interrupts.stopping():  # since the check above
        end(process)
        interrupts.unwind()
    return process


def end(process: subprocess.Popen) -> None:
    """Kill a program that still runs, with all that it started, and wait for it."""
    if process.poll() is None:
        keeper.end_group(str(process.pid))
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):  # what a program that died has not read
                pipe.close()
    keep("group", process.pid, False)


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """A file or folder that is removed if this process ends meanwhile. The caller makes it in this context,
    and removes or renames it.

    What is there nevertheless goes when this process ends: a signal may come at any moment, also while it is
    made or removed.
    """
    name = os.fsencode(path).hex()
    keep("path", name)
    try:
        yield
    finally:
        if not os.path.lexists(path):
            keep("path", name, False)


@contextmanager
def passing(folder: Path) -> Iterator[Path]:
    """A new folder that is gone afterwards, however this process ends. OSError where it cannot be made."""
    with unfinished(folder):
        try:
            folder.mkdir(0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for temporary files."""
    with passing(unused(Path(tempfile.gettempdir()), "tir_schedules-")) as folder:
        yield folder


def unused(place: Path, prefix: str) -> Path:
    """A path in a folder that nothing has yet. The name is known before there is anything to remove."""
    return place / f"{prefix}{os.urandom(8).hex()}"


def keep(what: str, name: object, more: bool = True) -> None:
    """Add something to what the keeper takes away, or strike it off."""
    with _lock:
        (_kept.add if more else _kept.discard)(f"{what} {name}")
        tell(f"{'+' if more else '-'}{what} {name}\n")


def tell(line: str) -> None:
    """Hand a line to the keeper. If it was not started, or has died, start it with all lines."""
    global _keeper
    if _keeper:
        with suppress(OSError):
            os.write(pipe_to(_keeper).fileno(), line.encode())
            return
    _keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0, cwd="/", start_new_session=True,
    )  # fmt: skip
    with suppress(OSError):
        os.write(pipe_to(_keeper).fileno(), "".join(f"+{each}\n" for each in sorted(_kept)).encode())


def pipe_to(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The keeper's standard input, which is always a pipe."""
    assert process.stdin
    return process.stdin


def end_programs() -> None:
    """Kill what runs. Without the lock, which a thread may hold that never goes on."""
    for name in kept("group"):
        keeper.end_group(name)


def end_all() -> None:
    """Kill what runs, also what is just being started, and remove what is unfinished."""
    _lock.acquire(timeout=STARTING)  # and never released, so that nothing starts any more
    end_programs()
    for name in kept("path"):
        keeper.remove(name)


def kept(what: str) -> list[str]:
    """Names of all of a sort."""
    return [each.removeprefix(f"{what} ") for each in _kept.copy() if each.startswith(f"{what} ")]


def forget() -> None:
    """In a process that was forked: what the other one started is not its own."""
    global _keeper, _lock
    if _keeper:
        with suppress(OSError):
            os.close(pipe_to(_keeper).fileno())
        _keeper.returncode = 0  # no child of this process
    _keeper, _lock = None, threading.RLock()
    _kept.clear()


def dismiss() -> None:
    """The keeper has nothing to do any more."""
    if _keeper:
        with suppress(OSError):
            pipe_to(_keeper).close()
        with suppress(subprocess.TimeoutExpired):
            _keeper.wait(1)


interrupts.at_stop(end_programs)
interrupts.at_end(end_all)
atexit.register(dismiss)
os.register_at_fork(after_in_child=forget)
