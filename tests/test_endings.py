"""How commands end: by signals and closed pipes, in time and with all that they started; and in one line,
whatever goes wrong."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from killing import SIGNALS, Victim, commands, faults_of, slow_nvcc, wait_for

from tir_schedules import interrupts, processes
from tir_schedules.cli import endings
from tir_schedules.cli import main as cli
from tir_schedules.compiler import places
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.console import print_error, print_line
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.cpu import machine
from tir_schedules.workloads.gemm import Gemm

EXECUTING = """
import os, sys
from tir_schedules.machines.cpu.invocation import Invocation
start = Invocation.start
def told(self, *arguments):
    os.write(1, b"executing\\n")
    start(self, *arguments)
Invocation.start = told
from tir_schedules.__main__ import main
raise SystemExit(main())
"""
UNWINDING = """
import os, sys, time
from tir_schedules import interrupts
from tir_schedules.cli.endings import command
interrupts.GRACE = float(sys.argv[1])
def perform():
    try:
        os.write(1, b"begun\\n")
        time.sleep(600)
    except KeyboardInterrupt:
        os.write(1, b"unwinding\\n")
        time.sleep(float(sys.argv[2]))
        os.write(1, b"tidied\\n")
        raise
sys.exit(command(perform))
"""
STARTING = """
import os, signal, subprocess, sys, threading, time
from tir_schedules import processes
from tir_schedules.cli.endings import command
class Signalled(subprocess.Popen):
    def __init__(self, command, **options):
        super().__init__(command, **options)
        if command[0] == "sleep":
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
def start():
    processes.run(["sleep", "600"])
def perform():
    if sys.argv[1] == "main":
        start()
    threading.Thread(target=start, daemon=True).start()
    time.sleep(600)
subprocess.Popen = Signalled
sys.exit(command(perform))
"""
ASIDE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tir_schedules import interrupts, processes
from tir_schedules.cli.endings import command
def asleep():
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            pool.submit(processes.run, ["sleep", "600"])
def perform():
    interrupts.aside(asleep)
    print("done")
    return 3
sys.exit(command(perform))
"""
LONG = """
__global__ void takes_an_hour(float* y) {
  float a = 0;
  for (unsigned i = 0; i < 4000000000u; ++i) a = a * 0.5f + 1;
  y[threadIdx.x] = a;
}
"""
TWIN = ["emit", "sgemm/naive", "--twin", "--ptx"]  # needs nvcc, and no TVM


def test_ctrl_c_ends_a_launch_of_the_cpu_machine(tmp_path):
    (tmp_path / "long.cu").write_text(LONG)
    launch = ("--grid", "64", "--block", "32", "--arg", "y=f32[32]")
    victim = Victim("check", str(tmp_path / "long.cu"), *launch, code=EXECUTING)
    assert victim.process.stdout.readline() == b"executing\n"
    ended = victim.end(signal.SIGINT)
    assert (ended.code, ended.err) == (130, "tir-schedules: interrupted\n")
    assert ended.gone


def test_a_launch_of_the_cpu_machine_can_be_stopped():
    gemm = Gemm(32, 32, 32)
    binary = compile_kernel(load_twin(find_one("sgemm/naive", "run"), gemm, "sm_80"))
    machine.STOP.value = 1
    try:
        execution = machine.CpuMachine().run(binary, gemm.arguments(), gemm.outputs)
    finally:
        machine.STOP.value = 0
    assert execution.writers("C") == () and not execution.findings
    assert machine.CpuMachine().run(binary, gemm.arguments(), gemm.outputs).writers("C")


@pytest.mark.parametrize(
    "how, code",
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9), (None, 141)],
)
def test_compilers_and_what_they_started_end_with_the_command(how, code, tmp_path):
    nvcc, started = slow_nvcc(tmp_path)
    cache = tmp_path / "cache"
    victim = Victim(*TWIN, TIR_SCHEDULES_NVCC=str(nvcc), TIR_SCHEDULES_CACHE=str(cache))
    wait_for(started.exists)
    assert len(victim.marked()) >= 3
    ended = victim.end(how)
    assert ended.code == code
    assert ended.gone, "a compiler went on"
    assert ended.err == (
        "tir-schedules: interrupted\n" if how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) else ""
    )
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("thread", ["main", "another"])
def test_a_program_that_is_being_started_ends_too(thread):
    victim = Victim(thread, code=STARTING)
    victim.process.wait(60)
    ended = victim.end(signal.SIGTERM)
    assert ended.gone and (ended.code, ended.err) == (143, "tir-schedules: interrupted\n")


def test_what_is_done_aside_ends_with_the_command():
    """Also what its threads have not begun yet, for which Python would wait."""
    victim = Victim(code=ASIDE)
    wait_for(lambda: victim.process.poll() is not None)
    assert victim.process.stdout.read() == b"done\n"
    ended = victim.end(None)
    assert (ended.code, ended.err) == (3, "") and ended.gone


@pytest.mark.parametrize("grace, takes, rest", [(60, 0.2, "tidied\n"), (interrupts.GRACE, 600, "")])
def test_the_main_thread_has_a_moment_to_unwind_which_a_second_ctrl_c_does_not_take(grace, takes, rest):
    """Nor has it more: TVM's C++ may hear of no signal."""
    victim = Victim(str(grace), str(takes), code=UNWINDING)
    assert victim.process.stdout.readline() == b"begun\n"
    victim.process.send_signal(signal.SIGINT)
    assert victim.process.stdout.readline() == b"unwinding\n"
    ended = victim.end(signal.SIGINT)
    assert (ended.code, ended.out, ended.err) == (130, rest, "tir-schedules: interrupted\n")


def interrupted_at(moment, raised):
    """Raises Interrupted at the line of that number that Python comes to, and adds the moment to `raised`."""
    lines = itertools.count(1)

    def trace(frame, event, argument):
        if event == "line" and next(lines) == moment:
            raised.append(moment)
            raise interrupts.Interrupted
        return trace

    return trace


FOLDERS = {
    "scratch": places.scratch,
    "temporary": processes.temporary_folder,
    "workplace": lambda: default_cache().workplace(),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a destructor's line
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_goes_at_whatever_moment_a_signal_comes(name, tmp_path, monkeypatch):
    """At once, or when the process ends."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))

    def use():
        with FOLDERS[name]() as path:
            Path(path, "file").write_text("")

    use()  # there is a keeper from here on
    before, raised = sys.gettrace(), []
    for moment in itertools.count(1):
        monkeypatch.setattr(processes, "_lock", threading.RLock())  # which may stay locked
        monkeypatch.setattr(processes, "_kept", set())
        sys.settrace(interrupted_at(moment, raised))
        try:
            use()
        except (interrupts.Interrupted, OSError):  # OSError: rmtree closes a folder twice then
            pass
        finally:
            sys.settrace(before)
        known = [os.fsdecode(bytes.fromhex(path)) for path in processes.kept("path")]
        assert {str(path) for path in tmp_path.iterdir()} <= set(known)
        for path in known:
            shutil.rmtree(path, ignore_errors=True)
        if moment not in raised:  # a destructor that Python happens to run swallows it
            break
    assert moment > 20


def test_an_ignored_signal_stays_ignored(tmp_path):
    nvcc, started = slow_nvcc(tmp_path)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        victim = Victim(*TWIN, TIR_SCHEDULES_NVCC=str(nvcc), TIR_SCHEDULES_CACHE=str(tmp_path / "cache"))
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_for(started.exists)
    victim.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert victim.process.poll() is None
    assert victim.end(signal.SIGTERM).code == 143


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """A cache in which nobody else builds."""
    return tmp_path_factory.mktemp("cache")


VERBS, MOMENTS = commands(Path()), (0.3, 2.9, 5.5)
ENDS = [
    (verb, name, MOMENTS[(row + column) % 3])
    for row, verb in enumerate(VERBS)
    for column, name in enumerate(SIGNALS)
]


@pytest.mark.slow
@pytest.mark.parametrize("verb, signal_name, moment", ENDS)
def test_killed_at_some_moment(verb, signal_name, moment, tmp_path, own_cache, monkeypatch):
    """killing.py does it at twenty and more."""
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(own_cache))
    faults, _ = faults_of(verb, SIGNALS[signal_name], moment, tmp_path)
    assert not faults


def tool(*arguments, redirect="", **environment):
    """The command in a shell, with its output redirected."""
    command = f'exec "$0" -m tir_schedules "$@" {redirect}'
    everything = {**os.environ, **environment}
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments], capture_output=True, text=True, env=everything
    )


@pytest.mark.parametrize(
    "arguments, redirect, reason",
    [
        (["list"], ">/dev/full", "No space left on device"),
        (["list", "--json"], ">&-", "Bad file descriptor"),
        (["list"], ">&- <&-", "Bad file descriptor"),
        (["--help"], ">/dev/full", "No space left on device"),
    ],
)
def test_output_that_cannot_be_written_is_one_line(arguments, redirect, reason):
    done = tool(*arguments, redirect=redirect)
    line = f"tir-schedules: cannot write standard output ({reason}): send it to a place that takes it\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_what_nobody_can_be_told_does_not_go_into_the_output(redirect):
    done = tool("list", "sgem", redirect=redirect)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert "sgemm/naive" in tool("list", "sgemm", redirect=redirect).stdout


def test_an_output_of_another_encoding_takes_every_character():
    code = (
        "from tir_schedules.cli.endings import command; from tir_schedules.console import print_line;"
        " command(lambda: print_line('a – b'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.stdout, done.stderr) == (b"a \\u2013 b\n", b"")


def test_a_reader_that_has_gone_is_exit_code_141():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "tir_schedules", "list"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def broken(error):
    def verb(*_):
        raise error

    return verb


@pytest.mark.parametrize(
    "error, code, part",
    [
        (
            ValueError("two\nlines"),
            70,
            "a fault of tir-schedules itself (ValueError: two lines): run it again with --debug",
        ),
        (RecursionError("maximum recursion depth exceeded"), 70, "RecursionError"),
        (KeyError("x" * 5000), 70, "(...xxx"),
        (
            MemoryError("Unable to allocate 9 TiB"),
            3,
            "not enough memory (Unable to allocate 9 TiB): choose a smaller size",
        ),
        (OSError(28, "No space left on device", "/tmp/x"), 70, "no space left on device for /tmp/x"),
        (MissingTool("no nvcc"), 3, "no nvcc"),
        (
            ModuleNotFoundError("No module named 'tvm'", name="tvm"),
            3,
            "tvm is missing or broken (No module named 'tvm'): `tir-schedules doctor",
        ),
        (
            ImportError("cannot import name 'a'", name="tir_schedules.errors"),
            70,
            "a fault of tir-schedules itself (ImportError",
        ),
        (CheckFailed("wrong"), 1, "wrong"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_whatever_goes_wrong_is_one_line(tool_in_process, error, code, part):
    found, out, err = tool_in_process(error)
    assert (found, out) == (code, "") and err.startswith("tir-schedules: ") and err.count("\n") == 1
    assert part in err and len(err) < 600


@pytest.mark.parametrize("arguments", [["--debug", "list"], ["list", "--debug"]])
def test_debug_shows_the_traceback_of_a_fault(tool_in_process, arguments):
    code, _, err = tool_in_process(ValueError("why"), *arguments)
    assert code == 70 and "Traceback (most recent call last)" in err and "in verb" in err
    assert err.splitlines()[-1].startswith(
        "tir-schedules: a fault of tir-schedules itself (ValueError: why): report"
    )


def test_no_terminal_obeys_a_name_in_an_error_and_no_name_breaks_its_line(tool_in_process):
    error = BadInput("cannot read a\x1b[31m\x9b\nb\u202e.json: é")
    assert tool_in_process(error) == (
        2,
        "",
        r"tir-schedules: cannot read a\x1b[31m\x9b\nb\u202e.json: é" + "\n",
    )
    said = CheckFailed("what nvcc says:\n  a\x1b[31m\tb")
    assert tool_in_process(said) == (1, "", "tir-schedules: what nvcc says:\n  a\\x1b[31m\tb\n")


def test_no_terminal_obeys_a_name_in_other_lines(capsys):
    print_error("records: \x1b[31m\n.json")
    print_line("records: \x1b[31m[red]")
    assert capsys.readouterr() == ("records: \\x1b[31m[red]\n", "tir-schedules: records: \\x1b[31m\\n.json\n")


@pytest.fixture
def tool_in_process(monkeypatch, capsys):
    """Calls `list` as if it raised an error."""

    def call(error, *arguments):
        monkeypatch.setattr("tir_schedules.cli.list.list_rungs", broken(error))
        code = cli.main(list(arguments) or ["list"])
        return code, *capsys.readouterr()

    return call


def test_a_command_called_from_python_leaves_its_signals_alone():
    before = signal.getsignal(signal.SIGTERM)
    assert endings.code_of(lambda: 0) == 0
    assert signal.getsignal(signal.SIGTERM) is before and not interrupts.State.guarded
