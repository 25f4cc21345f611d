"""The process that tidies up after another that was killed: `processes.py` starts it as a script, it needs
nothing but Python.

Each line of standard input adds something, or takes it away: "+group 123", a process group to be killed, or
"+path 2f746d70", a file or folder to be removed, its name in hex. The end of the input is the end of the
other process: what is left on the list goes.
"""

import os
import shutil
import signal
import sys


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept = set()
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):
            (kept.add if line[:1] == b"+" else kept.discard)(line[1:-1])
    for what, _, name in sorted(each.partition(b" ") for each in kept):  # groups first: they may be writing
        (end_group if what == b"group" else remove)(name.decode())


def end_group(name: str) -> None:
    try:
        os.killpg(int(name), signal.SIGKILL)
    except OSError:
        pass


def remove(name: str) -> None:
    path = os.fsdecode(bytes.fromhex(name))
    shutil.rmtree(path, ignore_errors=True)
    try:
        os.unlink(path)
    except OSError:
        pass


if __name__ == "__main__":
    main()
