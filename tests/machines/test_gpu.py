"""The GPU machine: on a fake CuPy what it asks of CUDA and what becomes of errors; on a GPU, where there is
one, the ladders."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fake_cupy import FakeCupy

from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.ladders.own import at_path
from tir_schedules.ladders.registry import every_rung, find
from tir_schedules.machines import choice, gpu
from tir_schedules.machines.choice import arch_for, choose
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.gpu import GpuMachine, packed, runs_on
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.verify import checks_of
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


def binary(params=("X", "N", "Y"), dynamic_shared=0, shared=0, cubin=b"double", arch="sm_90"):
    kernel = Kernel("test/double (twin)", "", "double", params, (3, 2, 1), (64, 1, 1), arch, dynamic_shared)
    return Binary(kernel, "", cubin, Resources(8, shared))


def double(x, n, y):
    y[:n] = 2 * x[:n]
    x[0] = 99


def arguments():
    return {"X": np.arange(4, dtype=np.float32), "Y": np.full(4, np.nan, np.float32), "N": 3}


@pytest.fixture
def on(monkeypatch):
    """A GpuMachine on a fake CuPy: on(errors={"launch": error})."""

    def make(**facts):
        fake = FakeCupy(**({"kernels": {b"double": double}} | facts))
        monkeypatch.setattr(gpu, "import_cupy", lambda: fake)
        return GpuMachine(), fake

    return make


def test_outputs_are_written_in_place_and_inputs_are_not(on):
    machine, _ = on()
    given = arguments()
    execution = machine.run(binary(), given, ("Y",))
    assert given["Y"][:3].tolist() == [0, 2, 4] and np.isnan(given["Y"][3]) and given["X"][0] == 0
    assert execution.findings == () and execution.counters is None and execution.seconds == 0.0015
    assert execution.writers("Y") is None


def test_arguments_go_in_the_kernels_order_with_numbers_as_32_bits():
    values = packed(binary(("N", "F", "X")).kernel, {"X": "array", "F": 0.5, "N": 7})
    assert values == (np.int32(7), np.float32(0.5), "array") and [type(value) for value in values] == [
        np.int32,
        np.float32,
        str,
    ]


def test_an_argument_that_does_not_exist_is_one_line(on):
    machine, fake = on()
    with pytest.raises(CheckFailed, match=r"test/double \(twin\): the kernel asks for 'Z'; there is X, Y, N"):
        machine.run(binary(("X", "Z")), arguments(), ("Y",))
    assert ("launch", (3, 2, 1), (64, 1, 1), 0) not in fake.log


def test_a_cubin_is_loaded_once_and_launched_as_its_kernel_says(on):
    machine, fake = on()
    for _ in range(2):
        machine.run(binary(dynamic_shared=1000), arguments(), ("Y",))
    assert [step for step in fake.log if step[0] in ("load", "get_function", "launch", "attribute")] == [
        ("load", b"double"),
        ("get_function", "double"),
        ("launch", (3, 2, 1), (64, 1, 1), 1000),
        ("launch", (3, 2, 1), (64, 1, 1), 1000),
    ]


def test_more_than_48_kib_of_shared_memory_is_asked_for(on):
    machine, fake = on()
    machine.run(binary(dynamic_shared=48 << 10), arguments(), ("Y",))
    assert not [step for step in fake.log if step[0] == "attribute"]
    machine.run(binary(dynamic_shared=100_000), arguments(), ("Y",))
    machine.run(binary(dynamic_shared=48_000, shared=2_000), arguments(), ("Y",))
    assert [step for step in fake.log if step[0] == "attribute"] == [
        ("attribute", 5, 8, 100_000),
        ("attribute", 5, 8, 48_000),
    ]


@pytest.mark.parametrize(
    "made, line",
    [
        (
            binary(dynamic_shared=232448, shared=1),
            "232449 bytes of shared memory per block; NVIDIA H200 has 232448",
        ),
        (binary(arch="sm_80"), r"compiled for sm_80, which NVIDIA H200 \(sm_90\) does not run"),
    ],
)
def test_what_the_gpu_cannot_run_is_refused_before_it_is_loaded(on, made, line):
    machine, fake = on()
    with pytest.raises(CheckFailed, match=rf"test/double \(twin\): {line}"):
        machine.run(made, arguments(), ("Y",))
    assert not [step for step in fake.log if step[0] == "load"]


def test_counting_is_for_the_cpu_machine(on):
    with pytest.raises(BadInput, match="--machine cpu"):
        on()[0].run(binary(), arguments(), ("Y",), count=True)


@pytest.mark.parametrize(
    "step, error, line",
    [
        (
            "load",
            RuntimeError("CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image"),
            "does not run on NVIDIA H200; .* --arch sm_90",
        ),
        (
            "launch",
            RuntimeError("CUDA_ERROR_INVALID_VALUE: invalid argument"),
            "CUDA_ERROR_INVALID_VALUE: invalid argument$",
        ),
        ("launch", MemoryError("Out of memory allocating 9 bytes"), "Out of memory allocating 9 bytes$"),
    ],
)
def test_an_error_of_cuda_is_one_line_that_names_the_kernel(on, step, error, line):
    machine, fake = on(errors={step: error})
    with pytest.raises(CheckFailed, match=rf"^test/double \(twin\): .*{line}"):
        machine.run(binary(), arguments(), ("Y",))
    fake.errors.clear()
    assert machine.run(binary(), arguments(), ("Y",)).findings == ()


LOST = [
    "cudaErrorIllegalAddress",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_FAILED",
    "cudaErrorMisalignedAddress",
]


@pytest.mark.parametrize("code", LOST)
def test_after_an_error_that_ends_the_context_nothing_more_is_launched(on, code):
    machine, fake = on(errors={"synchronize": RuntimeError(f"{code}: it went wrong\nmore")})
    with pytest.raises(CheckFailed) as caught:
        machine.run(binary(), arguments(), ("Y",))
    assert str(caught.value).startswith(
        f"test/double (twin): it went wrong ({code}); --machine cpu"
    ) and "\n" not in str(caught.value)
    fake.errors.clear()
    launches = len(fake.log)
    with pytest.raises(CheckFailed, match=rf"not run; test/double \(twin\) \({code}\) left the GPU unusable"):
        machine.run(binary(), arguments(), ("Y",))
    assert len(fake.log) == launches


def test_threads_take_turns(on):
    inside = []

    def kernel(x, n, y):
        inside.append(1)
        time.sleep(0.001)
        assert len(inside) == 1
        double(x, n, y)
        inside.pop()

    machine, _ = on(kernels={b"double": kernel})
    with ThreadPoolExecutor(8) as pool:
        given = [arguments() for _ in range(64)]
        list(pool.map(lambda one: machine.run(binary(), one, ("Y",)), given))
    assert all(one["Y"][2] == 4 for one in given)


def test_work_before_keeps_the_gpu_busy_outside_the_time(on):
    machine, fake = on()
    fake.log.clear()
    note = lambda name: lambda stream=None: fake.step(name)  # noqa: E731
    around = note("first"), note("last")
    assert machine.seconds(note("work"), note("before"), note("during"), around) == 0.0015
    steps = ["before", "first", "record", "work", "record", "last", "during", "synchronize"]
    assert [step[0] for step in fake.log] == steps


def test_a_graph_holds_what_was_enqueued_and_a_failed_capture_is_ended(on):
    machine, fake = on()
    call = machine.capture(
        lambda stream: [machine.enqueue(binary(), {"X": 1, "Y": 2, "N": 3}, stream) for _ in range(3)]
    )
    call(machine.stream)
    assert fake.log[-1] == ("graph", 3)
    with pytest.raises(ZeroDivisionError):
        machine.capture(lambda stream: 1 / 0)
    assert fake.capturing is None


def test_the_machine_knows_its_gpu(on):
    machine, _ = on()
    assert (machine.arch, machine.device_name, machine.l2_bytes, machine.free_bytes) == (
        "sm_90",
        "NVIDIA H200",
        60 << 20,
        100,
    )
    assert machine.bus_id == "0000:17:00.0"
    facts = {
        "name": "NVIDIA H200",
        "arch": "sm_90",
        "multiprocessors": 132,
        "cuda_driver": "13.0",
        "cuda_runtime": "12.9",
    }
    assert facts.items() <= machine.describe().items()


@pytest.mark.parametrize(
    "arch, device, runs",
    [
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_90", "sm_90", True),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", True),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
        ("sm_100", "sm_120", False),
        ("sm_120", "sm_121", True),
        ("ampere", "sm_80", False),
    ],
)
def test_which_code_runs_on_which_gpu(arch, device, runs):
    assert runs_on(arch, device) is runs


def test_no_cupy_and_a_broken_cupy_are_named_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingTool, match="CuPy.*: pip install"):
        GpuMachine()
    monkeypatch.delitem(sys.modules, "cupy")
    (tmp_path / "cupy.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingTool, match="CuPy does not load .*no_such_library.*: pip install"):
        GpuMachine()


NO_DEVICE = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")


@pytest.mark.parametrize("facts", [{"count": 0}, {"errors": {"count": NO_DEVICE}}])
def test_no_gpu_is_named_and_auto_then_takes_the_cpu(on, monkeypatch, facts):
    with pytest.raises(MissingTool, match="CUDA shows no GPU.*--machine cpu"):
        on(**facts)
    with pytest.raises(MissingTool):
        choose("gpu")
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: name)
    assert isinstance(choose("auto"), CpuMachine)


def test_auto_takes_the_gpu_that_there_is_and_cpu_never_does(on, monkeypatch):
    on()
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: name)
    assert isinstance(choose("auto"), GpuMachine) and isinstance(choose("cpu"), CpuMachine)
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    assert isinstance(choose("auto"), CpuMachine)


def test_the_architecture_is_the_gpus_own_unless_another_that_it_runs_is_named(on):
    machine, _ = on(capability="86")
    assert [arch_for(machine, asked) for asked in (None, "sm_80")] == ["sm_86", "sm_80"]
    with pytest.raises(
        BadInput, match="NVIDIA H200 is sm_86 and does not run code for sm_90: leave out --arch"
    ):
        arch_for(machine, "sm_90")
    assert [arch_for(CpuMachine(), asked) for asked in (None, "sm_90")] == ["sm_80", "sm_90"]


def test_a_wrong_result_points_to_the_machine_that_names_the_line(on):
    machine, _ = on(kernels={b"double": lambda *_: None})
    workload = Gemm(4, 4, 4)
    source = 'extern "C" __global__ void nothing(float* C) {}'
    made = Kernel("test/nothing (twin)", source, "nothing", ("C",), (1, 1, 1), (1, 1, 1), "sm_90")
    machine.enqueue = lambda *_, **__: None
    (fault,) = outcome_of([made], workload, machine).faults
    assert fault.endswith(
        "16 of 16 elements wrong with exact inputs; --machine cpu names the line that stores it"
    )


WORKLOADS = {
    "sgemm": (Gemm(256, 256, 256), Gemm(129, 127, 65)),
    "reduce": (Reduction(70004),),
    "hgemm": (HalfGemm(256, 256, 128),),
}


@pytest.mark.gpu
@pytest.mark.parametrize("rung", every_rung(), ids=lambda rung: rung.id)
def test_every_rung_and_twin_is_right_on_the_gpu(rung):
    machine = GpuMachine()
    workloads = WORKLOADS[rung.family]
    if rung.family == "hgemm":
        workloads = [HalfGemm(256, 256, 128, "nt", rung.config.accumulators[0])]
    for verdict in run([(rung, workload) for workload in workloads], machine.arch, machine):
        assert verdict.faults == () and verdict.twin is not None


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_formats_of_16_bits_on_the_gpu(dtype):
    """Arrays that CuPy draws and judges, and those that come from numpy and go back."""
    machine, gemm = GpuMachine(), HalfGemm(64, 48, 136, "nt", "float32", dtype, dtype)
    (rung,) = at_path(str(Path(__file__).parents[1] / "ladders" / "formats.py"))
    (verdict,) = run([(rung, gemm)], machine.arch, machine)
    assert verdict.faults == ()
    for check in checks_of(gemm, 0, machine.xp):
        once = check.truth["C"].astype(check.inputs["C"].dtype)
        assert (
            check.mismatch({"C": once}) is None
            and check.mismatch({"C": check.inputs["C"]}).count == once.size
        )


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["sgemm/naive", "sgemm/vectorized", "reduce/shuffle"])
def test_tvms_own_executable_gives_the_same_bits(name, tmp_path):
    """The same schedule compiled, loaded and launched by TVM alone."""
    from tir_schedules.compiler.lower import lower, scheduled, target
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.tir.tvm import import_tvm

    tvm = import_tvm()
    if not tvm.cuda(0).exist:
        pytest.skip("this TVM has no CUDA runtime")
    machine, (rung,) = GpuMachine(), find(name)
    workload = Reduction(1 << 16, "float32") if rung.family == "reduce" else Gemm(129, 127, 65)
    kernel = lower(rung, workload, machine.arch)
    ours = workload.prepared(workload.arguments(), kernel.grid)
    machine.run(compile_kernel(kernel), ours, workload.outputs)
    module = scheduled(rung, workload).mod
    tvm.compile(module, target=target(machine.arch), tir_pipeline="s_tir").export_library(
        str(tmp_path / "kernel.so")
    )
    given = workload.prepared(workload.arguments(), kernel.grid)
    there = {
        name: tvm.runtime.tensor(given[name], tvm.cuda(0)) for name in (*workload.inputs, *workload.outputs)
    }
    tvm.runtime.load_module(str(tmp_path / "kernel.so"))[rung.entry](*there.values())
    for output in workload.outputs:
        assert np.array_equal(there[output].numpy(), ours[output])
