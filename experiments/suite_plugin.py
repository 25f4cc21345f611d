"""What pytest does for suite_cost.py: where Python spends its processor time, sampled in every worker.

A hundred times a second, the time that the process used since goes to what its threads are at: of the frames
of each, the innermost that PARTS knows.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType

FOLDER = Path(os.environ["SUITE_COST"])
INTERVAL = 0.01

PARTS = {
    "imports": ("importlib", "<frozen importlib"),
    "kernels executed": ("machines/cpu/invocation.py:start",),
    "PTX parsed": ("machines/cpu/parser.py", "machines/cpu/reader.py", "machines/cpu/flow.py"),
    "PTX lowered": ("machines/cpu/",),
    "TVM": ("tvm/", "tvm_ffi/", "compiler/lower.py"),
    "headers": ("compiler/front_end.py",),
    "cache": ("compiler/cache.py",),
    "inputs and truth": ("tir_schedules/workloads/", "model/verify.py"),
    "matplotlib": ("matplotlib/",),
    "xgboost and tuning": ("xgboost/", "tir_schedules/tuning/"),
}
OTHER = "pytest and the rest"

WAITING = {
    "wait",
    "select",
    "poll",
    "acquire",
    "get",
    "read",
    "recv",
    "accept",
    "_try_wait",
    "join",
    "communicate",
}
"""Functions of the standard library in which a thread that does nothing is."""


def part_of(frame: FrameType | None) -> str:
    while frame:
        place = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        for part, marks in PARTS.items():
            if any(mark in place for mark in marks):
                return part
        frame = frame.f_back
    return OTHER


def is_waiting(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name in WAITING and "tir_schedules" not in code.co_filename


def busy_parts(own: int) -> list[str]:
    """Of all threads but our own that do not wait. Frames are kept no longer: their variables would live
    on with them."""
    frames = sys._current_frames().items()
    return [part_of(frame) for thread, frame in frames if thread != own and not is_waiting(frame)]


def sample(seconds: dict[str, float]) -> None:
    own, used = threading.get_ident(), time.process_time()
    while True:
        time.sleep(INTERVAL)
        now = time.process_time()
        parts = busy_parts(own)
        for part in parts:
            seconds[part] += (now - used) / len(parts)
        used = now


def pytest_configure(config):
    seconds: dict[str, float] = defaultdict(float)
    threading.Thread(target=sample, args=(seconds,), daemon=True).start()
    config.add_cleanup(lambda: (FOLDER / f"{os.getpid()}.json").write_text(json.dumps(seconds)))
