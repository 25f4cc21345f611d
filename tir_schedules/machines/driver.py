"""What CUDA's driver is asked without CuPy, which has no functions for it: tensor maps, clusters that a
kernel declares, and launches that begin before the one before them has ended.

A kernel takes a tensor map by value. CuPy passes a numpy array with one element of any size so, such as 128
bytes.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from tir_schedules.errors import MissingTool
from tir_schedules.machines.tensor_map import ELEMENT_BYTES, PROMOTIONS, SWIZZLES
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import Dim3, TensorMap

LIBRARY = "libcuda.so.1"
MAP_BYTES, MAP_ALIGNMENT = 128, 64
NO_INTERLEAVE, ZEROS_OUTSIDE = 0, 0
CLUSTER_ATTRIBUTES = (11, 12, 13)
"""CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, _HEIGHT and _DEPTH; 0 where a kernel declares none."""

MOST_KEPT = 1 << 14
"""Maps of as many arrays and kernels as a benchmark of one workload takes turns with."""


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_*


def launch_early(function: int, kernel: Kernel, values: tuple[Any, ...], stream: int) -> None:
    """Launch a kernel that may begin while the launch before it on the stream still runs.

    function: its CUfunction. values: of its parameters, as `gpu.packed` has them. stream: the CUstream.
    RuntimeError as `encoded`.
    """
    held = [as_parameter(value) for value in values]
    places = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
    early = Attribute(id=PROGRAMMATIC_STREAM_SERIALIZATION)
    early.value[0] = 1
    config = LaunchConfig(
        (ctypes.c_uint * 3)(*kernel.grid),
        (ctypes.c_uint * 3)(*kernel.block),
        kernel.dynamic_shared,
        stream,
        ctypes.pointer(early),
        1,
    )
    error = load_driver().cuLaunchKernelEx(ctypes.byref(config), ctypes.c_void_p(function), places, None)
    if error:
        raise RuntimeError(f"cuLaunchKernelEx refuses {kernel.label}, with error {error}")


def as_parameter(value: Any) -> Any:
    """A kernel's parameter in memory of this computer: the address of an array on the GPU, a number, or a
    tensor map."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ctypes.create_string_buffer(value.tobytes(), value.nbytes)
    return ctypes.c_uint64(value.data.ptr)


@lru_cache(maxsize=1)
def load_driver() -> Any:
    """CUDA's driver. MissingTool where there is none, or one from before there were tensor maps."""
    try:
        driver = ctypes.CDLL(LIBRARY)
        driver.cuTensorMapEncodeTiled.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise MissingTool(
            f"kernels for Hopper need {LIBRARY} of CUDA 12 or later ({error}): install NVIDIA's driver,"
            " or use --machine cpu"
        ) from None
    return driver


@lru_cache(maxsize=MOST_KEPT)
def encoded(tensor: TensorMap, address: int) -> np.ndarray:
    """The map of the array at an address on the GPU, as an array with one element that a kernel is given.

    RuntimeError, as CuPy raises it for whatever CUDA refuses; `check_tensor_map` knows why.
    """
    rank = len(tensor.shape)
    room = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
    place = -(-ctypes.addressof(room) // MAP_ALIGNMENT) * MAP_ALIGNMENT

    def innermost_first(kind: Any, values: tuple[int, ...]) -> Any:
        return (kind * len(values))(*reversed(values))

    error = load_driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(place),
        ctypes.c_int(list(ELEMENT_BYTES).index(tensor.element)),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        innermost_first(ctypes.c_uint64, tensor.shape),
        innermost_first(ctypes.c_uint64, tensor.pitches),
        innermost_first(ctypes.c_uint32, tensor.box),
        innermost_first(ctypes.c_uint32, (1,) * rank),
        ctypes.c_int(NO_INTERLEAVE),
        ctypes.c_int(SWIZZLES.index(tensor.swizzle)),
        ctypes.c_int(PROMOTIONS.index(tensor.promotion)),
        ctypes.c_int(ZEROS_OUTSIDE),
    )
    if error:
        raise RuntimeError(f"cuTensorMapEncodeTiled refuses {tensor} at {address:#x}, with error {error}")
    return np.frombuffer(ctypes.string_at(place, MAP_BYTES), f"V{MAP_BYTES}")


def declared_cluster(function: int) -> Dim3:
    """The `__cluster_dims__` of a kernel. function: its CUfunction. RuntimeError as `encoded`."""
    extents = []
    for attribute in CLUSTER_ATTRIBUTES:
        extent = ctypes.c_int()
        error = load_driver().cuFuncGetAttribute(
            ctypes.byref(extent), ctypes.c_int(attribute), ctypes.c_void_p(function)
        )
        if error:
            raise RuntimeError(f"cuFuncGetAttribute does not tell clusters, with error {error}")
        extents.append(extent.value or 1)
    return extents[0], extents[1], extents[2]
