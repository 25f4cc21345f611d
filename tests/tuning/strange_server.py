"""A server whose requests take long, wait for each other, end its process or say who answers.

The tests of the client start it.
"""

import os
import sys
import time
from pathlib import Path

from tir_schedules.tuning.remote import answers, handshake, server

# Longer than a test lasts: who waits for those who say nothing, or for a session without requests, hangs.
handshake.HandshakeListener.__init__.__defaults__ = (600,)
server.IDLE = 600


def sleep(task, payload, machine):
    time.sleep(task["seconds"])
    who = {"process": os.getpid(), "parent": os.getppid()}
    return {"bytes": len(payload), **who, "broken": task.get("broken", "")}


def meet(task, payload, machine):
    """Wait until the request that leaves the other mark is here, too."""
    Path(task["mark"]).touch()
    end = time.monotonic() + 60
    while not Path(task["other"]).exists():
        if time.monotonic() > end:
            raise TimeoutError("alone for 60 s")
        time.sleep(0.01)
    return {"bytes": len(payload), "parent": os.getppid()}


def die(task, payload, machine):
    """End the process the first time; with `always` every time."""
    mark = Path(task["mark"])
    if task.get("always") or not mark.exists():
        mark.touch()
        os._exit(3)
    return {"alive": True}


def fail(task, payload, machine):
    raise ValueError("two\nlines")


answers.ANSWERS |= {"sleep": sleep, "meet": meet, "die": die, "fail": fail}
server.main(*sys.argv[1:])
