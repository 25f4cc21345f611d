"""How the machine is built: what is shipped, what is compiled when, and what is said when it cannot be."""

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import hopper_rungs
import kinds
import numpy as np
import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.ladders.problems import RUN_SHAPES, Problem, workloads_of
from tir_schedules.ladders.registry import FAMILIES, every_rung, find, ladder
from tir_schedules.machines.cpu import CpuMachine, machine
from tir_schedules.machines.cpu.library import shipped_signatures, the_library
from tir_schedules.machines.cpu.lowering import lower as lower_ptx
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.signatures import Signature
from tir_schedules.workloads.gemm import Gemm

SHIPPED = {signature.text for signature in shipped_signatures()}
# Other configurations of stream_k need what those of tma_store do, and what the first of stream_k does.
ALL = [rung for rung in every_rung() if rung.name != "stream_k" or rung.variant == "128x256"]


def check_shipped(chosen):
    """Otherwise the first run of a rung would compile some more; the names to add to signatures.txt are in
    the message."""
    needed = set()
    kernels = [
        make(rung, workload, rung.arch or "sm_80") for rung, workload in chosen for make in (lower, load_twin)
    ]
    for kernel in {kernel.source: kernel for kernel in kernels}.values():  # most twins serve every shape
        module = parse(compile_kernel(kernel).ptx)
        needed |= lower_ptx(module, module.kernels[kernel.entry]).lanes.keys()
    assert needed <= SHIPPED, sorted(needed - SHIPPED)


def one_job(rung, number):
    """One of a shape and kind that the tests of the ladders compile, too: whole tiles and the first kind in
    turn with ragged ones and the last kind; of HGEMM ragged ones."""
    if rung.family == "hgemm":
        if not rung.arch:
            return rung, kinds.workload(kinds.RAGGED, kinds.kinds_of(rung)[0])
        own = hopper_rungs.kind_of(rung)
        works = [hopper_rungs.workload(hopper_rungs.RAGGED, kind) for kind in (own, *hopper_rungs.KINDS)]
        return rung, next(each for each in works if hopper_rungs.taken(rung, each))
    ragged = {"sgemm": -1, "reduce": 1}[rung.family]
    ragged = ragged if number % 2 and not rung.arch and not rung.refuses else 0
    shape = RUN_SHAPES[rung.family][ragged]
    return rung, workloads_of(rung, Problem(rung.family, shape))[-(number % 2)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rungs_need_only_shipped_signatures(family):
    check_shipped([one_job(rung, number) for number, rung in enumerate(ladder(family))])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ALL)), ids=[rung.id for rung in ALL])
def test_the_ladders_need_only_shipped_signatures(number):
    check_shipped([one_job(ALL[number], number)])


def test_shipped_signatures_are_sorted_and_known():
    texts = [signature.text for signature in shipped_signatures()]
    assert texts == sorted(set(texts))
    assert all(Signature(text).source() for text in texts)


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingTool, match="'no-such-compiler': install g\\+\\+"):
        the_library()


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'machine.h:1: error: cannot do it' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingTool, match="cannot compile the CPU machine .*cannot do it"):
        the_library()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "text, reason",
    [
        ("#!/bin/sh\n", "it reports no error, and writes nothing"),
        ("#!/bin/sh\nexit 3\n", "it says nothing, exit code 3"),
        ("no program", "Exec format error"),
        (
            '#!/bin/sh\nfor last; do :; done\n[ $# = 1 ] || echo junk > "$last"\n',
            "what it wrote does not load: .*",
        ),
    ],
)
def test_a_compiler_that_is_none(monkeypatch, tmp_path, text, reason):
    (tmp_path / "odd").write_text(text)
    (tmp_path / "odd").chmod(0o755)
    monkeypatch.setenv("CXX", str(tmp_path / "odd"))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        MissingTool, match=rf"odd cannot compile the CPU machine \({reason}\): a g\+\+ of version 9 or newer"
    ):
        the_library()
    assert not (tmp_path / "cache").exists() or list((tmp_path / "cache").iterdir()) == []


def of_one_launch(rungs):
    """Those whose kernel takes a GEMM's A, B and C, on any GPU."""
    return [rung for rung in rungs if not (rung.arch or rung.then is not rung)]


each_ladder = pytest.mark.parametrize(
    "rungs",
    [
        of_one_launch(ladder("sgemm")),
        pytest.param(of_one_launch(every_rung("sgemm")), marks=pytest.mark.slow),
    ],
    ids=["ladder", "all configurations"],
)


@each_ladder
def test_threads_share_a_machine(rungs):
    gemm = Gemm(64, 64, 64)
    binaries = [compile_kernel(load_twin(rung, gemm, "sm_80")) for rung in rungs]
    arguments = [gemm.arguments() for _ in binaries]
    machine = CpuMachine()
    with ThreadPoolExecutor(8) as pool:
        executions = list(pool.map(lambda pair: machine.run(*pair, gemm.outputs), zip(binaries, arguments)))
    assert all(execution.findings == () for execution in executions)
    assert all(np.array_equal(arguments[0]["C"], other["C"]) for other in arguments[1:])


@each_ladder
def test_the_order_of_warps_changes_nothing(rungs):
    for rung in rungs:
        gemm = Gemm(100, 68, 48) if rung.refuses else Gemm(100, 70, 50)
        binary, outputs = compile_kernel(load_twin(rung, gemm, "sm_80")), []
        for order in ("forward", "reverse"):
            arguments = gemm.arguments()
            assert CpuMachine(warp_order=order).run(binary, arguments, gemm.outputs).findings == ()
            outputs.append(arguments["C"])
        assert np.array_equal(*outputs)
    with pytest.raises(BadInput, match="'sideways'"):
        CpuMachine(warp_order="sideways")


def calls_in(action):
    """How many functions Python calls in the action."""
    calls = Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls["call"] + calls["c_call"]


def test_python_does_not_see_the_work():
    """From 64^3 to 256^3 it grows 64 times, and nothing of it is done in Python."""
    rung, calls = find("sgemm/shared_tile")[0], []
    for size in (64, 256):
        gemm = Gemm(size, size, size)
        binary, arguments = compile_kernel(load_twin(rung, gemm, "sm_80")), gemm.arguments()
        CpuMachine().run(binary, arguments, gemm.outputs)  # lowers the kernel
        calls.append(calls_in(lambda: CpuMachine().run(binary, arguments, gemm.outputs)))
    assert calls[0] == calls[1] > 0


def test_the_machine_is_no_worse_than_linear_in_the_work():
    """64^3 take 7 ms, and this is 512 times the work: on a quadratic machine half an hour. There it is
    stopped, and its output is not whole."""
    gemm = Gemm(512, 512, 512)
    binary, arguments = (
        compile_kernel(load_twin(find("sgemm/shared_tile")[0], gemm, "sm_80")),
        gemm.arguments(),
    )
    timer = threading.Timer(60, lambda: setattr(machine.STOP, "value", 1))
    timer.start()
    try:
        execution = CpuMachine().run(binary, arguments, gemm.outputs)
    finally:
        timer.cancel()
        machine.STOP.value = 0
    assert execution.findings == () and np.allclose(
        arguments["C"], arguments["A"] @ arguments["B"], atol=1e-3
    )


def test_the_library_is_built_once():
    assert the_library() is the_library()
