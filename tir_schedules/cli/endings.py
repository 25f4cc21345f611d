"""How a command ends: an exit code, and at most one line that says why. Only here does an exception
become that line."""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
import traceback
from typing import Any, Callable

from tir_schedules import interrupts
from tir_schedules.compiler.code import KEEP
from tir_schedules.errors import CheckFailed, TirSchedulesError, one_line, printable

NAME = "tir-schedules"
FAULT = 70
"""Exit code of an unforeseen error."""

REASON_SHOWN = 300

NEW_OBJECTS = 50_000
"""How many more there are before Python looks for cycles among them. A kernel is lowered to tens of thousands
that stay until it is done: with Python's own measure, 700, they are looked through again and again, which
takes a sixth of the time."""


class OutputLost(TirSchedulesError):
    """Standard output cannot be written: the disk is full, or it is closed."""

    exit_code = 2


def code_of(perform: Callable[[], int], debug: bool = False, name: str = NAME) -> int:
    """The exit code of what is performed. An error is one line on standard error, after `name`; debug: with
    the traceback of an unforeseen one."""
    try:
        return flush_output(catch_errors(perform, debug, name))
    except OutputLost as error:
        say(name, str(error))
        return error.exit_code
    except BrokenPipeError:  # of an output that is not `Output`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def catch_errors(perform: Callable[[], int], debug: bool, name: str) -> int:
    try:
        return perform()
    except Exception as error:
        if interrupts.stopping():  # what an interrupted library makes of it
            return interrupts.exit_code()
        return report_error(error, debug, name)
    except KeyboardInterrupt:
        if not interrupts.State.guarded:
            say(name, "interrupted")
        return interrupts.exit_code()


def report_error(error: Exception, debug: bool, name: str) -> int:
    """Tell the user of an error; returns the exit code."""
    if isinstance(error, (OutputLost, BrokenPipeError)):
        raise error
    if isinstance(error, TirSchedulesError):
        # Only errors with the words of a compiler have several lines. Others have names of files and words of
        # the user, which may have any character.
        say(name, printable(str(error), "\n\t" if isinstance(error, CheckFailed) else ""))
        return error.exit_code
    if isinstance(error, MemoryError):
        say(name, f"there is not enough memory ({one_line(error) or 'it is used up'}): choose a smaller size")
        return 3
    if debug:
        traceback.print_exception(error)
    module = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if module not in ("", "tir_schedules"):
        say(
            name,
            f"the Python module {module} is missing or broken ({one_line(error)}): `tir-schedules doctor`"
            " says what to install",
        )
        return 3
    say(name, unforeseen(error, debug))
    return FAULT


def unforeseen(error: Exception, debug: bool) -> str:
    """The line of an unforeseen error."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return (
            f"no space left on device{f' for {error.filename}' if error.filename else ''}: free some, and try"
            " again"
        )
    reason = f"{type(error).__name__}: {one_line(error)}"
    shown = reason if len(reason) <= REASON_SHOWN else f"...{reason[-REASON_SHOWN:]}"
    how = "" if debug else " run it again with --debug, and"
    return (
        f"a fault of tir-schedules itself ({shown}):{how} report what it prints, with the command and what"
        " `tir-schedules doctor` prints"
    )


def say(name: str, message: str) -> None:
    message = printable(message, besides="\n\t")
    print(f"{name}: {message}" if name else message, file=sys.stderr)


def flush_output(code: int) -> int:
    """The same code, once all is written."""
    if sys.stdout:
        sys.stdout.flush()
    return code


def command(perform: Callable[[], int], debug: bool = False, name: str = NAME) -> int:
    """`code_of` for the process's own command, which signals end."""
    os.environ.setdefault(KEEP, "1")
    gc.set_threshold(NEW_OBJECTS)
    try:
        guard_streams()
        interrupts.guard()
        code = code_of(lambda: run_to_end(perform), debug, name)
        interrupts.State.over = True
    except KeyboardInterrupt:
        code = interrupts.exit_code()
    if interrupts.stopping():
        interrupts.leave()
    if any(thread.is_alive() for thread in interrupts.State.aside):
        interrupts.end(code)
    return code


def run_to_end(perform: Callable[[], int]) -> int:
    """The exit code, also of argparse, which ends by itself after --help."""
    try:
        return perform()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0


class Output(io.FileIO):
    """Standard output, whose errors say that they are its own."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), self.fileno()
            )  # what is still in buffers has a place to go
            if isinstance(error, BrokenPipeError):
                interrupts.stop(signal.SIGPIPE)
                interrupts.unwind()
                return len(data)
            raise OutputLost(
                f"cannot write standard output ({os.strerror(error.errno or 0)}): send it to a place that"
                " takes it"
            ) from None


class Unheard(io.FileIO):
    """Standard error. If it cannot be written, there is no way left to say so."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard_streams() -> None:
    """Standard output and error that take any character and every fault. A closed one is opened, so that no
    file takes its number: what is written to standard output fails then, what is written to standard error
    goes nowhere."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, mode), descriptor)
    if not all(isinstance(text, (io.TextIOWrapper, type(None))) for text in (sys.stdout, sys.stderr)):
        return  # somebody else's already
    sys.stdout = over(sys.stdout, Output(1, "w", closefd=False))
    sys.stderr = over(sys.stderr, Unheard(2, "w", closefd=False))


def over(text: Any, raw: io.FileIO) -> io.TextIOWrapper:
    """Text like another stream, which may be None, written to a file."""
    encoding = text.encoding if text else "utf-8"
    buffering = text.line_buffering if text else False
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=buffering or raw.fileno() == 2,
        write_through=text.write_through if text else False,
    )  # fmt: skip
