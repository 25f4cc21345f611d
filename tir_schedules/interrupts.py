"""How a command is ended from outside: Ctrl-C, SIGTERM, SIGHUP, and a reader of its output that has gone.

Python runs a signal's handler in the main thread alone, and only between two of its instructions. So a thread
of its own hears of the signal at once, and ends what the command has under way: programs, and launches of the
CPU machine. The main thread has GRACE seconds to unwind; then the process ends, wherever that thread is.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Iterator, NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 0.7


class Interrupted(KeyboardInterrupt):
    """The process is to end."""


class State:
    """cause: number of the signal that ends the process, SIGPIPE for a reader that has gone; None
    before one has come.

    guarded: whether this module has the signals. raised: whether the main thread has been told. held: whether
    it is told later. told: whether the user has. over: whether the command has returned. waking: what the
    watching thread reads the other end of.
    """

    cause: int | None = None
    guarded = raised = held = told = over = False
    waking: int | None = None
    aside: list[threading.Thread] = []
    at_stop: list[Callable[[], None]] = []
    at_end: list[Callable[[], None]] = []


def stopping() -> bool:
    """Whether the process is to end."""
    return State.cause is not None


def check() -> None:
    """Interrupted when the process is to end."""
    if stopping():
        raise Interrupted


def at_stop(action: Callable[[], None]) -> None:
    """Have something called, in any thread, as soon as the process is to end. What begins later asks
    `check`."""
    State.at_stop.append(action)


def at_end(action: Callable[[], None]) -> None:
    """Have something called, in any thread, right before it ends."""
    State.at_end.append(action)


def aside(work: Callable[[], None]) -> None:
    """Have something done in a thread that the end of the command does not wait for, nor for those threads
    that it starts."""
    State.aside.append(threading.Thread(target=work, daemon=True))
    State.aside[-1].start()


def told() -> None:
    """The user has been told, or need not be."""
    State.told = True


def exit_code() -> int:
    """What a shell would say of a process that the signal ended: 130 after Ctrl-C, 143 after SIGTERM, 141
    after its reader has gone."""
    return 128 + (State.cause or signal.SIGINT)


def guard() -> None:
    """Take the signals of this process, which is a command. Those that are ignored, as by nohup, stay so."""
    if State.guarded:
        return
    State.guarded = True
    reading, State.waking = os.pipe()
    os.set_blocking(State.waking, False)
    signal.set_wakeup_fd(State.waking, warn_on_full_buffer=False)
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, arrived)
    threading.Thread(target=watch, args=(reading,), name="signals", daemon=True).start()
    silence()


def arrived(number: int, frame: Any) -> None:
    """The handler: the main thread unwinds, once."""
    stop(number)
    if State.over:
        leave()
    if not State.held:
        unwind()


@contextmanager
def held() -> Iterator[None]:
    """Meanwhile a signal raises nothing in the main thread; who holds it asks `stopping` afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    State.held = True
    try:
        yield
    finally:
        State.held = False


def unwind() -> None:
    """Interrupted, in the main thread once: what is interrupted a second time does not tidy up."""
    if not State.raised or threading.current_thread() is not threading.main_thread():
        State.raised = True
        raise Interrupted


def stop(number: int) -> None:
    """End what is under way; the first cause counts."""
    if State.cause is None:
        State.cause = number
        for action in State.at_stop:
            action()
        if State.waking is not None:
            with suppress(OSError):
                os.write(State.waking, b"\0")


def watch(reading: int) -> NoReturn:
    """Wait for a signal or for the end of the output's reader, then end the process in time."""
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    if output_has_reader():
        waiting.register(1, 0)  # without an event that is asked for, its end alone is told
    while not stopping():
        for descriptor, _ in waiting.poll():
            if descriptor == reading:
                for number in os.read(reading, 64):
                    if number in ENDING:
                        stop(number)
            else:
                stop(signal.SIGPIPE)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(GRACE)
    leave()


def output_has_reader() -> bool:
    """Whether standard output is a pipe or a socket."""
    try:
        mode = os.fstat(1).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def leave() -> NoReturn:
    """End the process that is to end, and all that it began."""
    tell()
    end(exit_code())


def end(code: int) -> NoReturn:
    """End the process at once, and all that it began."""
    for action in State.at_end:
        action()
    os._exit(code)


def tell() -> None:
    """One line, once. It shows the cursor again, too, which a progress bar hides."""
    if State.told or State.cause == signal.SIGPIPE:
        return
    State.told = True
    line = "tir-schedules: interrupted\n"
    with suppress(OSError):
        os.write(2, (("\x1b[?25h" if os.isatty(2) else "") + line).encode())


def silence() -> None:
    """What is interrupted in a destructor or a thread has no one to tell, and need not: the process ends."""
    unraisable, in_thread = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda what: None if stopping() else unraisable(what)
    threading.excepthook = lambda what: None if stopping() else in_thread(what)


@contextmanager
def in_order(end: Callable[[], None]) -> Iterator[None]:
    """Meanwhile a signal calls `end`, which has the work end by itself, and raises nothing: for code that is
    called from C++."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ending(number: int, frame: Any) -> None:
        if State.guarded:
            stop(number)
        end()

    numbers = [
        number
        for number in (ENDING if State.guarded else ENDING[:1])
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, ending) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
