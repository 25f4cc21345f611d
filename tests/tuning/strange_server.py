"""A server whose requests take long, end its process or say who answers. The tests of the client start it."""

import os
import sys
import time
from pathlib import Path

from tir_schedules.tuning.remote import answers, server


def sleep(task, payload, machine):
    start = time.monotonic()
    time.sleep(task["seconds"])
    who = {"process": os.getpid(), "parent": os.getppid()}
    return {
        "bytes": len(payload),
        **who,
        "during": (start, time.monotonic()),
        "broken": task.get("broken", ""),
    }


def die(task, payload, machine):
    """End the process the first time; with `always` every time."""
    mark = Path(task["mark"])
    if task.get("always") or not mark.exists():
        mark.touch()
        os._exit(3)
    return {"alive": True}


def fail(task, payload, machine):
    raise ValueError("two\nlines")


answers.ANSWERS |= {"sleep": sleep, "die": die, "fail": fail}
server.main(*sys.argv[1:])
