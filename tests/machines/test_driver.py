"""Tensor maps on a GPU: what CUDA's driver is asked for, on a driver that is none, and what a kernel is
given."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cupy import FakeCupy

from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.machines import driver, gpu
from tir_schedules.machines.driver import encoded
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import TensorMap

A_MAP = TensorMap("A_map", "A", "float16", (100, 72), (144,), (64, 32), 64, 256)
C_MAP = TensorMap("C_map", "C", "float32", (3, 5, 8), (160, 32), (1, 2, 8))


class FakeDriver:
    """Writes what it is asked for into the map, as text."""

    def __init__(self, error=0, cluster=(0, 0, 0)):
        self.asked, self.error, self.cluster = [], error, cluster

    def cuFuncGetAttribute(self, extent, attribute, function):
        assert function.value == 5
        extent._obj.value = self.cluster[attribute.value - 11]
        return self.error

    def cuLaunchKernelEx(self, config, function, values, extra):
        launch = config._obj
        attribute = launch.attributes[0]
        pointers = [values[place] for place in range(len(values))]
        self.asked.append((function.value, list(launch.grid), list(launch.block), launch.dynamic_shared,
                           launch.stream, launch.count, attribute.id, attribute.value[0], extra))  # fmt: skip
        self.given = [ctypes.string_at(pointer, size) for pointer, size in zip(pointers, (8, 128, 4))]
        return self.error

    def cuTensorMapEncodeTiled(self, place, element, rank, address, shape, pitches, box, steps, *codes):
        assert place.value % 64 == 0
        lists = [list(each) for each in (shape, pitches, box, steps)]
        numbers = [each.value for each in (element, rank, address)]
        self.asked.append((*numbers, *lists, *(code.value for code in codes)))
        assert [each._type_ for each in (shape, pitches, box, steps)] == [ctypes.c_uint64] * 2 + [
            ctypes.c_uint32
        ] * 2
        ctypes.memmove(place.value, f"map of {address.value}".encode().ljust(128), 128)
        return self.error


@pytest.fixture
def fake(monkeypatch):
    """fake(error): a driver in place of CUDA's."""

    def make(error=0, cluster=(0, 0, 0)):
        made = FakeDriver(error, cluster)
        monkeypatch.setattr(driver, "load_driver", lambda: made)
        return made

    encoded.cache_clear()
    yield make
    encoded.cache_clear()


def test_extents_go_innermost_first_and_options_by_their_codes(fake):
    asked = fake().asked
    assert encoded(A_MAP, 4096).tobytes() == b"map of 4096".ljust(128)
    assert encoded(C_MAP, 16).tobytes() == b"map of 16".ljust(128)
    assert asked == [
        (6, 2, 4096, [72, 100], [144], [32, 64], [1, 1], 0, 2, 3, 0),
        (7, 3, 16, [8, 5, 3], [32, 160], [8, 2, 1], [1, 1, 1], 0, 0, 2, 0),
    ]


def test_cupy_gets_an_array_with_one_element_of_128_bytes(fake):
    fake()
    made = encoded(A_MAP, 0)
    assert made.size == 1 and made.dtype.kind == "V" and made.itemsize == 128


def test_a_map_is_made_once_for_an_array_and_again_for_another(fake):
    asked = fake().asked
    for address in (256, 512, 256):
        encoded(A_MAP, address)
    assert [each[2] for each in asked] == [256, 512]


def test_no_driver_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(driver, "LIBRARY", "libno_such.so.1")
    driver.load_driver.cache_clear()
    with pytest.raises(MissingTool, match="libno_such.so.1 of CUDA 12 or later .* or use --machine cpu"):
        driver.load_driver()


def binary(maps=(A_MAP, C_MAP), params=("A_map", "N", "C_map")):
    kernel = Kernel("test/map (twin)", "", "map", params, (2, 1, 1), (64, 1, 1), "sm_90a", maps=maps)
    return Binary(kernel, "", b"cubin", Resources(8, 0))


@pytest.fixture
def machine(monkeypatch):
    launched = []
    cupy = FakeCupy(kernels={b"cubin": lambda *given: launched.append(given)})
    monkeypatch.setattr(gpu, "import_cupy", lambda: cupy)
    made = GpuMachine()
    made.launched = launched
    return made


def arguments():
    return {"A": np.zeros((100, 72), np.float16), "C": np.zeros((3, 5, 8), np.float32), "N": 7}


def test_a_kernel_takes_maps_of_its_arrays_in_its_order(fake, machine):
    asked = fake().asked
    machine.run(binary(), arguments(), ("C",))
    ((a_map, n, c_map),) = machine.launched
    assert [each[2] for each in asked] == [int(each.tobytes().split()[-1]) for each in (a_map, c_map)]
    assert n == 7 and asked[0][2] != asked[1][2]


def test_an_array_that_is_known_by_its_map_alone_comes_back(fake, machine):
    fake()
    there = []
    asarray = machine.cupy.asarray
    machine.cupy.asarray = lambda host: there.append(asarray(host)) or there[-1]
    machine.cupy.kernels[b"cubin"] = lambda *given: there[-1].host.fill(3)
    given = arguments()
    machine.run(binary(), given, ("C",))
    assert (given["C"] == 3).all() and not given["A"].any()


def test_what_cuda_refuses_is_one_line_that_names_the_kernel(fake, machine):
    fake(error=1)
    with pytest.raises(
        CheckFailed, match=r"^test/map \(twin\): cuTensorMapEncodeTiled refuses .*A_map.* error 1$"
    ):
        machine.run(binary(), arguments(), ("C",))


def test_what_is_known_to_be_wrong_is_said_before_cuda_is_asked(fake, machine):
    asked = fake().asked
    odd = TensorMap("A_map", "A", "float16", (100, 71), (142,), (64, 32), 64)
    with pytest.raises(CheckFailed, match=r"^test/map \(twin\): tensor map A_map: a pitch of 142 bytes: "):
        machine.run(binary(maps=(odd, C_MAP)), arguments(), ("C",))
    assert not asked and not machine.launched


def test_a_map_of_an_array_that_there_is_not_is_one_line(fake, machine):
    fake()
    other = TensorMap("A_map", "B", "float16", (100, 72), (144,), (64, 32), 64)
    with pytest.raises(CheckFailed, match=r"^test/map \(twin\): the kernel asks for 'B'; there is A, C, N"):
        machine.run(binary(maps=(other, C_MAP)), arguments(), ("C",))


def test_graphs_keep_maps(fake, machine):
    asked = fake().asked
    there = {name: machine.cupy.asarray(value) for name, value in arguments().items() if name != "N"}
    machine.capture(lambda stream: machine.enqueue(binary(), {**there, "N": 7}, stream))(machine.stream)
    assert len(asked) == 2 and machine.cupy.log[-1] == ("graph", 1)


class OnGpu:
    """An array there, as CuPy has it."""

    class data:
        ptr = 1 << 40


EARLY = Kernel(
    "test/sum (tir)", "", "sum", (), (6, 2, 1), (64, 1, 1), "sm_90", dynamic_shared=512, early=True
)


def test_a_launch_that_begins_early_is_given_what_any_is(fake):
    asked, values = fake(), (OnGpu, encoded(A_MAP, 4096), np.int32(7))
    asked.asked.clear()
    driver.launch_early(5, EARLY, values, 77)
    assert asked.asked == [(5, [6, 2, 1], [64, 1, 1], 512, 77, 1, 6, 1, None)]
    numbers = [(1 << 40).to_bytes(8, "little"), b"map of 4096".ljust(128), (7).to_bytes(4, "little")]
    assert asked.given == numbers
    fake(1)
    with pytest.raises(RuntimeError, match="refuses test/sum .*, with error 1"):
        driver.launch_early(5, EARLY, values, 77)


FEW, BETWEEN, MANY = (6, 2, 1), (133, 1, 1), (1 << 16, 1, 1)
HALF, MORE, NEARLY_ALL = (66, 1, 1), (67, 1, 1), (116, 1, 1)
FILLING = 114 << 10  # an SM has room for one block with so many bytes of shared memory
SMALL, LARGE = 1 << 12, 17 << 20  # bytes of an array


@pytest.mark.parametrize("follows, early, grid, shared, footprint, begun", [
    (True, True, FEW, 512, LARGE, 512), (True, False, FEW, 512, SMALL, 0), (True, True, MANY, 512, SMALL, 0),
    (False, True, FEW, 512, LARGE, FILLING), (False, False, FEW, 512, SMALL, 0),
    (False, True, HALF, 512, LARGE, FILLING), (False, True, MORE, 512, LARGE, 0),
    (False, True, MORE, 512, SMALL, FILLING), (True, True, MORE, 512, LARGE, 512),
    (False, True, NEARLY_ALL, 512, LARGE, FILLING), (False, True, BETWEEN, 512, SMALL, 0),
    (True, True, BETWEEN, 512, SMALL, 512), (False, True, BETWEEN, FILLING, LARGE, FILLING),
    (False, True, MANY, FILLING, SMALL, 0),
])  # fmt: skip
def test_who_waits_by_himself_begins_early_where_all_fit_and_his_blocks_come_to_sms_of_their_own(
    fake, machine, monkeypatch, follows, early, grid, shared, footprint, begun
):
    """begun: bytes of dynamic shared memory with which it is launched, 0 if it does not begin early."""
    began = []
    monkeypatch.setattr(gpu, "launch_early", lambda function, kernel, *_: began.append(kernel.dynamic_shared))
    monkeypatch.setattr(GpuMachine, "resident_threads", 132 * 2048)
    monkeypatch.setattr(GpuMachine, "multiprocessors", 132)
    kernel = Kernel(
        "test/map (twin)", "", "map", ("N", "A"), grid, (64, 1, 1), "sm_90",
        dynamic_shared=shared, early=early,
    )  # fmt: skip
    launched = Binary(kernel, "", b"cubin", Resources(8, 0))
    machine.stream.ptr = 77
    given = {"N": 7, "A": SimpleNamespace(nbytes=footprint, ndim=1)}
    machine.enqueue(launched, given, machine.stream, follows)
    assert (began, len(machine.launched)) == (([begun], 0) if begun else ([], 1))


def in_clusters(*cluster):
    kernel = Kernel("test/map (twin)", "", "map", ("N",), (4, 1, 1), (64, 1, 1), "sm_90a", cluster=cluster)
    return Binary(kernel, "", b"cubin", Resources(8, 0))


def test_clusters_are_launched_as_the_kernel_declares_them(fake, machine):
    fake(cluster=(2, 0, 0))
    machine.run(in_clusters(2, 1, 1), {"N": 7}, ())
    assert machine.launched == [(7,)]


@pytest.mark.parametrize("cluster", [(0, 0, 0), (4, 1, 1)])
def test_clusters_that_a_kernel_does_not_declare_are_refused(fake, machine, cluster):
    fake(cluster=cluster)
    with pytest.raises(CheckFailed, match=r"^test/map \(twin\): .* write __cluster_dims__\(2, 1, 1\) at"):
        machine.run(in_clusters(2, 1, 1), {"N": 7}, ())
    assert not machine.launched


def test_kernels_without_clusters_do_not_ask_the_driver(monkeypatch, machine):
    monkeypatch.setattr(driver, "load_driver", lambda: pytest.fail("asks"))
    machine.run(in_clusters(1, 1, 1), {"N": 7}, ())
