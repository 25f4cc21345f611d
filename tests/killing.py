"""Commands that are ended from outside, and what is left of them.

    python tests/killing.py [MOMENTS] [VERB ...]

ends the verbs at so many random moments (default 20) by each signal, and prints a table.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

MARK = "TIR_SCHEDULES_TEST_MARK"
PATIENCE = 60
"""Seconds after which what has not ended is killed, and counts as left. What the tests have run takes ten
times as long."""

SLOW_NVCC = """#!/bin/sh
case "$*" in
*--version*) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
*--list-gpu-code*) echo sm_80 ;;
*--help*|*--dryrun*) ;;
*) sh -c "touch %s; sleep 600" & wait ;;
esac
"""


@dataclass
class Ended:
    """seconds: from the signal to the end of the process; gone: until nothing that it started was left, None
    when something stayed."""

    code: int
    seconds: float
    gone: float | None
    out: str
    err: str


class Victim:
    """A command of this package that runs; `code` runs instead of it, with its arguments."""

    def __init__(self, *arguments, code="", **environment):
        self.mark = uuid.uuid4().hex
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        everything = {**os.environ, "PYTHONPATH": path, MARK: self.mark, **environment}
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            *(["-c", code] if code else ["-m", "tir_schedules"]),
            *arguments,
        ]
        self.process = subprocess.Popen(
            command, env=everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )

    def marked(self) -> list[int]:
        """All processes that the command has started, and itself."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def end(self, how: int | None) -> Ended:
        """Send a signal; None closes the reader of its output."""
        begin = time.monotonic()
        if how is None:
            self.process.stdout.close()
        else:
            self.process.send_signal(how)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        seconds = time.monotonic() - begin
        while (left := self.marked()) and time.monotonic() - begin < PATIENCE:
            time.sleep(0.02)
        gone = None if left else time.monotonic() - begin
        for process in left:
            os.kill(process, signal.SIGKILL)
        out = b"" if how is None else self.process.stdout.read()
        return Ended(self.process.wait(), seconds, gone, out.decode(), self.process.stderr.read().decode())


def slow_nvcc(folder: Path) -> tuple[Path, Path]:
    """An nvcc that starts another process and waits for it, and the file that is there once it does."""
    program, started = folder / "nvcc", folder / "started"
    program.write_text(SLOW_NVCC % started)
    program.chmod(0o755)
    return program, started


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def commands(folder: Path) -> dict[str, list[str]]:
    """Verbs that take long, and write into the folder."""
    return {
        "run": ["run", "sgemm", "--mnk", "512,512,512", "--machine", "cpu"],
        "trace": ["trace", "sgemm/warp_tiling", "-o", str(folder / "trace.html")],
        "tune": [
            "tune",
            "sgemm/multistage",
            "--mnk",
            "512,512,512",
            "--machine",
            "cpu",
            "--records",
            str(folder / "records.jsonl"),
        ],
        "report": ["report", "-o", str(folder / "report.html")],
    }


SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL, "closed pipe": None}


def faults_of(verb: str, how: int | None, moment: float, folder: Path) -> tuple[list[str], Ended]:
    """What is wrong with the end of a verb, so many seconds after its start."""
    from tir_schedules.compiler.cache import BUILDING
    from tir_schedules.tuning.records.database import Database

    cache = Path(os.environ.get("TIR_SCHEDULES_CACHE") or tempfile.gettempdir())
    victim = Victim(*commands(folder)[verb], TMPDIR=str(folder))
    deadline = time.monotonic() + moment
    while time.monotonic() < deadline and victim.process.poll() is None:
        time.sleep(0.01)
    over = victim.process.poll() is not None
    ended = victim.end(how)
    early = (
        "tir_schedules" not in ended.err and "KeyboardInterrupt" in ended.err
    )  # Python itself was still starting
    done = ended.code == 0 and (folder / f"{verb}.html").exists()  # it wrote its page right before
    faults = (
        [] if over or early or done else [f"exit code {ended.code}"] * (ended.code not in expected_codes(how))
    )
    faults += ["processes are left"] * (ended.gone is None)
    faults += [f"stderr: {ended.err!r}"] * (
        not early and ("Traceback" in ended.err or ended.err.count("\n") > 1)
    )
    files = {path.name for path in folder.iterdir()} - {"trace.html", "report.html", "records.jsonl"}
    faults += [f"files are left: {sorted(files)}"] * bool(files)
    faults += [f"left in the cache: {path.name}" for path in cache.glob(f"{BUILDING}*")]
    for page in ("trace.html", "report.html"):
        if (folder / page).exists() and "</html>" not in (folder / page).read_text():
            faults.append(f"{page} is half written")
    records = folder / "records.jsonl"
    Database(records)
    if how != signal.SIGKILL and records.exists() and records.read_bytes()[-1:] not in (b"", b"\n"):
        faults.append("a record is half written")
    return faults, ended


def expected_codes(how: int | None) -> set[int]:
    """A signal that comes before Python has read our first line does what it does by default."""
    return {141} if how is None else {-how} if how == signal.SIGKILL else {128 + how, -how}


def main(moments: int = 20, verbs: tuple[str, ...] = ("run", "trace", "tune", "report")) -> None:
    rng = random.Random(1)
    print("| verb | signal | moments | seconds to end, most | until nothing runs, most | faults |")
    print("| --- | --- | --: | --: | --: | --- |", flush=True)
    for verb in verbs:
        for name, how in SIGNALS.items():
            faults, seconds, gone = [], [], []
            for _ in range(moments):
                with tempfile.TemporaryDirectory() as folder:
                    found, ended = faults_of(verb, how, rng.uniform(0.1, 8), Path(folder))
                faults += found
                seconds.append(ended.seconds)
                gone.append(ended.gone or PATIENCE)
            print(
                f"| {verb} | {name} | {moments} | {max(seconds):.2f} | {max(gone):.2f} |"
                f" {'; '.join(faults)} |",
                flush=True,
            )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 20,
        tuple(sys.argv[2:]) or ("run", "trace", "tune", "report"),
    )
