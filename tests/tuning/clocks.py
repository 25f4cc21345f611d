"""A clock that tests turn, in place of the module `time` of a module."""

import time


class Clock:
    def __init__(self, now: float = 0.0):
        self.now = now

    def monotonic(self) -> float:
        return self.now

    sleep = staticmethod(time.sleep)
