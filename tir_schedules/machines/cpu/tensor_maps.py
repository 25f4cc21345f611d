"""The 128 bytes that the CPU machine has a tensor map in: a TensorMap of core/abi.h."""

from __future__ import annotations

import numpy as np

from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.machines.tensor_map import ELEMENT_BYTES, check_tensor_map
from tir_schedules.model.launch import TensorMap


def encoded(label: str, tensor: TensorMap, address: int) -> bytes:
    """A map of an array at an address of the machine. CheckFailed for what CUDA refuses, and
    UnsupportedInstruction for what is known of no GPU: how rows lie that are shorter than the swizzle."""
    check_tensor_map(label, tensor, address)
    element = ELEMENT_BYTES[tensor.element]
    row = tensor.box[-1] * element
    if tensor.swizzle and row != tensor.swizzle:
        raise UnsupportedInstruction(
            f"{label}: tensor map {tensor.name}: the CPU machine does not know rows of {row} bytes in a"
            f" swizzle of {tensor.swizzle}: take boxes of {tensor.swizzle // element} elements"
        )
    rank = len(tensor.shape)
    content = np.zeros(1, abi.TENSOR_MAP)
    content["mark"], content["address"], content["rank"] = abi.MAP_MARK, address, rank
    content["element"], content["swizzle"] = element, tensor.swizzle
    content["shape"][0, :rank] = tensor.shape[::-1]
    content["box"][0, :rank] = tensor.box[::-1]
    content["pitches"][0, : rank - 1] = tensor.pitches[::-1]
    return content.tobytes()
