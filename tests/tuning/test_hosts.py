"""Other computers, by way of an `ssh` that runs its command on this one: what they say of themselves, what is
asked of them, and what becomes of one that is lost."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from killing import wait_for

from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.tuning.building import hosts, workers
from tir_schedules.tuning.building.hosts import About, Host, Hosts, about_of, host_of
from tir_schedules.tuning.building.pool import Ended, Late, Lost, Place, Pool, answering
from tir_schedules.tuning.measure import about, evaluator
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm

SSH = """#!{python}
# As OpenSSH: the command is one text for a shell, in a session that loses its pipes when the client ends.
import os, subprocess, sys, threading
name, command = sys.argv[sys.argv.index("--") + 1 :]
open({log!r}, "a").write(name + " " + command + chr(10))
if name == "gone" or os.path.exists({lost!r}):
    sys.exit(255)
def copy(source, target):
    while part := os.read(source, 1 << 16):
        os.write(target, part)
    os.close(target)
pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
there = subprocess.Popen(["sh", "-c", command], **pipes)
threading.Thread(target=copy, args=(0, os.dup(there.stdin.fileno())), daemon=True).start()
there.stdin.close()
copy(there.stdout.fileno(), 1)
code = there.wait()
os._exit(255 if code < 0 else code)
"""
"""Where a signal ends what it runs, ssh says 255, as if the host were lost."""


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """log: what was asked of it, a line each. lost: a file; once it is there, no host is reached any more."""
    (tmp_path / "bin").mkdir()
    program, log, lost = (tmp_path / name for name in ("bin/ssh", "log", "lost"))
    program.write_text(SSH.format(python=sys.executable, log=str(log), lost=str(lost)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")]))
    return SimpleNamespace(log=log, lost=lost)


HERE = Host("here", sys.executable)
HERE_TOO = f"here:{sys.executable}"


def answer(request):
    """What the processes of these tests do with a request: this module is theirs, too."""
    if request == "crash":
        os.kill(os.getpid(), 11)
    if isinstance(request, Path):
        request.write_text(str(os.getpid()))
        time.sleep(600)
    return os.getpid(), os.environ["PLACE"]


@pytest.fixture
def pool_of(ssh):
    made = []

    def make(*names, **more):
        places = [
            Place({"PLACE": f"{at}'s $HOME"}, replace(HERE, name=name)) for at, name in enumerate(names)
        ]
        made.append(Pool("test_hosts", places, Timesheet(), "waiting", "working", **more))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def test_a_process_elsewhere_is_asked_as_one_here_and_no_shell_reads_its_variables(pool_of):
    pool = pool_of("one")
    first = pool.ask(0)
    assert first == pool.ask(0) and first[1] == "0's $HOME"


def test_a_process_that_a_signal_ends_is_no_lost_host(pool_of):
    pool = pool_of("one")
    with pytest.raises(Ended, match="^exit code 139$"):
        pool.ask("crash")
    assert pool.ask(0)


def test_a_lost_host_is_given_up_and_its_request_goes_to_another(pool_of, ssh, capsys):
    pool = pool_of("gone", "one")
    assert pool.ask(0)[1] == "1's $HOME"
    assert "gone cannot be reached any more; the others go on without it" in capsys.readouterr().err
    pool.close()
    ssh.lost.touch()
    with pytest.raises(
        Lost, match="^one cannot be reached any more, and there is no other: --resume goes on$"
    ):
        pool.ask(0)


def ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("how", ["close", "late"])
def test_a_process_elsewhere_that_works_ends_when_nobody_waits_for_it(pool_of, tmp_path, how):
    """The end of ssh does not end it: it has to see that itself."""
    pool, told = pool_of("one", seconds=2 if how == "late" else None), tmp_path / "told"
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(pool.ask, told)
        wait_for(lambda: told.exists() and told.read_text())
        if how == "close":
            pool.close()
        with pytest.raises(Late if how == "late" else Ended):
            asked.result()
    wait_for(lambda: ended(int(told.read_text())))


def test_hosts_without_a_gpu_build_what_is_built_here(ssh):
    found = Hosts([HERE_TOO])
    assert (found.name, found.arch) == ("cpu", "")
    away, here = evaluator.Predictor([HERE]), evaluator.Predictor()
    space, gemm = space_of("sgemm/multistage"), Gemm(64, 64, 64)
    rung = space.rung_at(space.point_of(space.rung.configs["32x32"]))
    try:
        assert away.builders == 1
        assert away.evaluate(rung, gemm, "sm_90") == here.evaluate(rung, gemm, "sm_90")
    finally:
        away.close()
        here.close()
    asked = [shlex.split(line) for line in ssh.log.read_text().splitlines()]
    assert [words[-1] for words in asked] == [about.__name__, workers.__name__]


H200 = About(["0", "3"], "sm_90", "NVIDIA H200", 32, {})


def told(found, monkeypatch):
    """Have hosts say that of themselves, by name."""
    monkeypatch.setattr(hosts, "about_of", lambda host: found[host.name])


def test_every_gpu_of_every_host_measures(monkeypatch):
    told({"a": H200, "b": replace(H200, gpus=["1"])}, monkeypatch)
    made = evaluator.evaluator_for(Hosts(["a", "b:/opt/python"]))
    assert (made.kind, made.device, made.places) == ("measured", "NVIDIA H200", 3)
    assert [(place.host, place.environment) for place in made.gpus.all] == [
        (Host("a"), {"CUDA_VISIBLE_DEVICES": "0"}),
        (Host("a"), {"CUDA_VISIBLE_DEVICES": "3"}),
        (Host("b", "/opt/python"), {"CUDA_VISIBLE_DEVICES": "1"}),
    ]
    made.close()


def test_every_core_of_hosts_without_a_gpu_builds(monkeypatch):
    told({"a": About([], "", "", 3, {}), "b": About([], "", "", 2, {})}, monkeypatch)
    made = evaluator.evaluator_for(Hosts(["a", "b"]))
    assert (made.kind, made.builders, made.places) == ("predicted", 5, 0)
    assert [place.host.name for place in made.workers.all] == ["a"] * 3 + ["b"] * 2
    made.close()


def test_hosts_that_differ_are_refused(monkeypatch):
    told({"a": H200, "b": About([], "", "", 3, {})}, monkeypatch)
    with pytest.raises(CheckFailed, match="hosts differ, .*: a: NVIDIA H200; b: no GPU$"):
        Hosts(["a", "b"])


def test_what_this_computer_has(monkeypatch):
    gpu = SimpleNamespace(name="gpu", arch="sm_90", device_name="NVIDIA H200", alike=lambda: ["0", "3"])
    monkeypatch.setattr(about, "choose", lambda name: gpu)
    found = about.about()
    assert (found.gpus, found.arch, found.device) == (["0", "3"], "sm_90", "NVIDIA H200")
    assert found.versions.keys() == {"revision", *hosts.ALIKE} and found.versions["apache-tvm"]


def answers(monkeypatch, out="", err="", code=0):
    """Have ssh answer that."""
    done = subprocess.CompletedProcess([], code, out, err)
    monkeypatch.setattr(hosts.processes, "run", lambda command, **more: done)
    monkeypatch.setattr(hosts, "versions", dict)


def test_a_host_may_greet_before_it_answers(monkeypatch):
    answers(monkeypatch, f"Welcome to {{gpu1}}!\n{json.dumps(asdict(H200))}\n")
    assert about_of(Host("gpu1")) == H200


@pytest.mark.parametrize("out, err, code, reason", [
    ("", "a\nssh: no route\n", 255, r"^gpu1 cannot be reached \(ssh: no route\): `ssh gpu1 python3 -m"),
    ("", "sh: 1: python3: not found\n", 127, r"^gpu1 cannot measure \(sh: 1: python3: not found\): "),
    ("", "", 139, r"^gpu1 cannot measure \(exit code 139\): "),
    ("Welcome!\n", "", 0, r"^gpu1 answers 'Welcome!\\n': "),
    ('{"gpus": []}\n', "", 0, "^gpu1 answers "),
])  # fmt: skip
def test_a_host_that_cannot_measure_is_one_line(monkeypatch, out, err, code, reason):
    answers(monkeypatch, out, err, code)
    with pytest.raises(BadInput, match=reason) as error:
        about_of(Host("gpu1"))
    assert "\n" not in str(error.value)


def test_a_host_that_says_nothing_or_an_ssh_that_is_missing_is_one_line(monkeypatch):
    def late(command, timeout=None, **more):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(hosts.processes, "run", late)
    with pytest.raises(BadInput, match="gpu1 does not answer within 60 s"):
        about_of(Host("gpu1"))
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match="needs ssh, which is not installed"):
        about_of(Host("gpu1"))


@pytest.mark.parametrize("there, fits", [
    ({}, True),
    ({"revision": "", "apache-tvm": "1.0"}, True),
    ({"revision": "b" * 40}, False),
    ({"apache-tvm": "2.0"}, False),
])  # fmt: skip
def test_a_host_has_the_versions_of_this_computer(monkeypatch, there, fits):
    monkeypatch.setattr(hosts, "versions", lambda: {"revision": "a" * 40, "apache-tvm": "1.0", "gone": ""})
    if fits:
        hosts.check_alike(Host("gpu1"), there)
        return
    with pytest.raises(BadInput, match="^gpu1 has (revision b+|apache-tvm 2.0), this computer (a+|1.0): "):
        hosts.check_alike(Host("gpu1"), there)


def test_a_host_is_named_as_ssh_takes_it():
    assert host_of("me@gpu1") == Host("me@gpu1", "python3")
    assert host_of("gpu1:/opt/v/bin/python") == Host("gpu1", "/opt/v/bin/python")
    for wrong in ("", "-oProxyCommand=x", "gpu1:", ":python3"):
        with pytest.raises(BadInput, match="HOST:PYTHON"):
            host_of(wrong)


if __name__ == "__main__":
    answering(answer, str)
