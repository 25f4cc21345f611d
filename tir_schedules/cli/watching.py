"""`check --watch`: a command again whenever a file that it reads has changed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Callable, Sequence

from tir_schedules import interrupts
from tir_schedules.cli.endings import NAME, report_error
from tir_schedules.console import print_line

INTERVAL = 0.3
"""Seconds between two looks at the files."""

Stamps = dict[Path, "tuple[int, int] | None"]


def watch(perform: Callable[[], int], files: Callable[[], Sequence[Path]]) -> int:
    """Does not return: Ctrl-C ends it, as it ends any command. files: what is watched, asked anew before each
    time."""
    while True:
        before = stamps_of(files())
        attempt(perform)
        names = ", ".join(path.name for path in before)
        print_line(f"watching {names}; Ctrl-C ends")
        sys.stdout.flush()
        while not changed(before):
            time.sleep(INTERVAL)


def attempt(perform: Callable[[], int]) -> None:
    """Perform it; of an error one line, for the next change may mend it."""
    try:
        perform()
    except Exception as error:
        if interrupts.stopping():
            raise
        report_error(error, False, NAME)


def changed(before: Stamps) -> bool:
    """Whether a file is another; not while an editor is about to replace one."""
    now = stamps_of([*before])
    return now != before and all(now[path] or not before[path] for path in now)


def stamps_of(paths: Sequence[Path]) -> Stamps:
    return {path: stamp(path) for path in paths}


def stamp(path: Path) -> tuple[int, int] | None:
    """When it was written, and its bytes; None where it is not."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
