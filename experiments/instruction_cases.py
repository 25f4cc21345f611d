"""What instructions_on_gpu.py packs: opcodes of the table, and launches of tests of single instructions."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Iterable, Iterator

import numpy as np

from tir_schedules import processes
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.ptx import BITS, STATE_SPACES, Instruction, Symbol, registers_of
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.launch import TensorMap

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "machines"
FILES = tuple(
    f"test_{name}.py"
    for name in (
        "accesses", "approximations", "arithmetic", "atomics", "calls_ptx", "carries", "conversions",
        "floats", "fragments", "memory_instructions", "parameters", "ptx_faults", "tensor_cores",
        "warp_instructions",
    )
)  # fmt: skip
HOPPER = (
    "test_tensor_map.py",
    "test_unit_forms.py",
    "test_units.py::test_counts_of_arrivals",
    "test_units.py::test_what_they_do",
    "test_warpgroup.py",
    "test_warpgroup_sums.py",
)
"""Tests whose launches are packed; of instructions that sm_90a alone has, the second."""

NUMBERS = {
    "f16": (16, 5, 10),
    "bf16": (16, 8, 7),
    "tf32": (32, 8, 23),
    "f32": (32, 8, 23),
    "f64": (64, 11, 52),
}
"""Bits of a number, of its exponent and of its mantissa."""

SPECIAL = re.compile(
    r"%(clock\w*|globaltimer\w*|n?smid|n?warpid|gridid|total_smem_size|dynamic_smem_size|pm\d)"
)
"""Registers of which no two machines hold the same."""

MODELLED, VARIES, ADDRESSES = "modelled", "special registers", "addresses"
MANY = 8
"""Blocks of a body from which on each is launched by itself."""

ONE_LANE, LANE_BYTES = (0, 1, 5, 11), 16
"""Lanes of test_atomics.py whose operand one lane alone is given, and how far they are apart."""


@dataclass(frozen=True)
class Case:
    """A launch. ptx: has the kernel `entry`. before: arguments, in their order. after: outputs of the CPU
    machine.

    mask: of an output, the bits that are defined; all of them where it has none. subject: the opcode that is
    held against the GPU. lenient: why the results may differ, or "". number: what the outputs hold, a key of
    NUMBERS, where that is known. operands: type and row of X of what an opcode of the table reads. params: of
    the kernel, where they are not the arguments.
    """

    name: str
    ptx: str
    entry: str
    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    opcodes: tuple[str, ...]
    subject: str = ""
    lenient: str = ""
    number: str = ""
    mask: np.ndarray | None = None
    operands: tuple[tuple[str, int], ...] = ()
    params: tuple[str, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    maps: tuple[TensorMap, ...] = ()


# ---- opcodes of the table ---
@lru_cache(maxsize=None)
def listed() -> dict[str, str]:
    """Opcode -> its precision."""
    return {opcode: line.precision for line in entries() for opcode in expanded(line.opcodes)}


def in_table(opcode: str) -> str:
    """The opcode of the table that one of a kernel is, or the first words of it that the table has; "" for
    neither."""
    words = opcode.split(".")
    if words[0] == "wmma":  # which the table has for all memory together
        words = [word for word in words if word not in STATE_SPACES]
    names = (".".join(words[:count]) for count in range(len(words), 0, -1))
    return next((name for name in names if name in listed()), "")


def table_cases(only: Iterable[str] | None = None) -> Iterator[Case]:
    """A launch for each opcode of the table that each lane executes for itself. only: of these."""
    sys.path.insert(0, str(TESTS))
    catalogue, reference = import_module("test_catalogue"), import_module("reference")
    known = {}
    for line in catalogue.ENTRIES:
        for opcode in expanded(line.opcodes):
            if (only is None or opcode in only) and line.family in catalogue.LANE_FAMILIES:
                if line.precision == "exact":
                    known[opcode] = reference.meaning(opcode)
                elif line.precision == MODELLED and line.family == "arithmetic":
                    kind = opcode.split(".")[-1]
                    operands = (kind,) * (2 if opcode.startswith("div") else 1)
                    known[opcode] = import_module("reference_bits").Meaning(kind, operands, None)
    known = {opcode: how for opcode, how in known.items() if how}
    arguments = catalogue.executed(known)
    for (opcode, how), row in zip(known.items(), arguments["Y"]):
        yield Case(
            f"table: {opcode}", catalogue.kernel_of({opcode: how}), "test",
            {"X": arguments["X"], "Y": np.zeros_like(row)}, {"Y": row}, (1, 1, 1), (catalogue.LANES, 1, 1), 0,
            (opcode,), opcode, "" if how.of else MODELLED, number_of(how.result), defined(catalogue, how),
            tuple((kind, 4 * catalogue.KINDS.index(kind) + k) for k, kind in enumerate(how.operands)),
        )  # fmt: skip


def defined(catalogue: Any, how: Any) -> np.ndarray | None:
    """Bits of each lane's result that the reference tells."""
    if how.of is None:
        return None
    lanes = []
    for lane in range(catalogue.LANES):
        result = how.of(*catalogue.values_of(how, lane))
        parts = result if isinstance(result, list) else [result]
        one = (1 << 64 // len(parts) if len(parts) == 1 else 1 << 16) - 1
        lanes.append(sum(one << 16 * k for k, part in enumerate(parts) if not isinstance(part, str)))
    return np.array(lanes, np.uint64)


def number_of(kind: str) -> str:
    """The number that a type holds, alone or twice; "" where it holds none."""
    name = kind.removesuffix("x2")
    return name if name in NUMBERS else ""


# ---- launches of the tests ---
def recorded(files: Iterable[str], workers: int) -> list[Case]:
    """Launches of tests in which the CPU machine finds nothing. CheckFailed where a test fails."""
    with processes.temporary_folder() as folder:
        variables = os.environ | {
            "INSTRUCTION_LAUNCHES": str(folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "experiments")]),
        }
        plugins = ["-p", "instructions_plugin", "-p", "no:cacheprovider"]
        paths = [str(TESTS / name) for name in files]
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), *plugins, *paths]
        done = processes.run(command, cwd=ROOT, env=variables)
        if done.returncode:
            raise CheckFailed(f"the tests fail whose launches are packed: {done.stdout[-2000:]}{done.stderr}")
        return cases_of(folder)


def typed(types: Iterable[str], arguments: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arguments with scalars as wide as the parameters."""
    return {
        name: value
        if value.ndim or value.dtype.kind == "V"
        else value.astype(f"{'f' if kind[0] == 'f' else value.dtype.kind}{BITS[kind] // 8}")
        for kind, (name, value) in zip(types, arguments.items())
    }


def cases_of(folder: Path) -> list[Case]:
    """Cases of what the plugin wrote, each once."""
    found: dict[Any, Case] = {}
    for path in sorted(folder.glob("*.pickle")):
        name, (kernel, ptx, types, before, after) = pickle.loads(path.read_bytes())
        case = Case(
            name.removeprefix("tests/machines/"), ptx, kernel.entry, typed(types, before), after,
            kernel.grid, kernel.block, kernel.dynamic_shared, (), params=kernel.params,
            cluster=kernel.cluster, maps=kernel.maps,
        )  # fmt: skip
        launch = (ptx, kernel.grid, kernel.block, kernel.cluster, kernel.maps)
        key = (*launch, *(value.tobytes() for value in before.values()))
        found.setdefault(key, case)
    return with_subjects([described(part) for case in found.values() for part in apart(case)])


def apart(case: Case) -> list[Case]:
    """A case for each block of a body that has many, or the case itself. What blocks do with atomics one
    lane does alone too, as the order of lanes is open."""
    head, blocks, tail = blocks_of(case.ptx)
    if len(blocks) < MANY:
        return [case]
    found = []
    for number, block in enumerate(blocks):
        one = replace(case, name=f"{case.name} block {number}", ptx=f"{head}{block}{tail}")
        found += again(one)
        if re.search(r"\b(atom|red)\.", block):
            for lane in ONE_LANE:
                turned = np.roll(case.before["X"].view(np.uint8).reshape(-1), -LANE_BYTES * lane)
                before = {**case.before, "X": turned.reshape(case.before["X"].shape)}
                name = f"{one.name}, one lane with the operand of lane {lane}"
                found += again(replace(one, name=name, block=(1, 1, 1), before=before))
    return found


def again(case: Case) -> list[Case]:
    """The case with the results of what is left of its kernel; nothing where that cannot run."""
    kernel = Kernel(
        case.name, "", case.entry, tuple(case.before), case.grid, case.block, "sm_80", case.dynamic_shared
    )
    after = {name: value.copy() for name, value in case.before.items()}
    try:
        CpuMachine().run(Binary(kernel, case.ptx, b"", Resources(0, 0)), after, tuple(case.after))
    except TirSchedulesError:
        return []
    return [replace(case, after={name: after[name] for name in case.after})]


def blocks_of(ptx: str) -> tuple[str, list[str], str]:
    """Of a text with one body: what is before its blocks in braces, the blocks, and what is after them; no
    blocks where something is between them."""
    start, blocks, opened, depth = ptx.find("{") + 1, [], 0, 0
    for brace in re.finditer(r"[{}]", ptx[start:]):
        at = start + brace.start()
        if brace[0] == "{":
            if not depth:
                opened = at
            depth += 1
        elif depth:
            depth -= 1
            if not depth and ptx[start:opened].rstrip()[-1:] in (";", "}", ""):
                blocks.append((opened, at + 1))
    if any(ptx[a:b].strip() for (_, a), (b, _) in zip(blocks, blocks[1:])) or not blocks:
        return ptx, [], ""
    return ptx[: blocks[0][0]], [ptx[a:b] for a, b in blocks], ptx[blocks[-1][1] :]


def described(case: Case) -> Case:
    """The case with its opcodes, with why it may differ, and with what its outputs hold."""
    kernel = parse(case.ptx).kernels[case.entry]
    written = [
        instruction
        for block in kernel.blocks
        for instruction in [*block.instructions, *([block.end] if block.end else [])]
    ]
    opcodes = tuple(dict.fromkeys(filter(None, (in_table(instruction.opcode) for instruction in written))))
    makers = makers_of_stored(written)
    modelled = any(listed()[name] == MODELLED and not name.startswith("mov.") for name in opcodes)
    placed = any(isinstance(maker.operands[-1], Symbol) and maker.name == "mov" for maker in makers)
    lenient = VARIES if SPECIAL.search(case.ptx) else ADDRESSES if placed else MODELLED if modelled else ""
    return replace(case, opcodes=opcodes, lenient=lenient, number=held(case, makers))


def makers_of_stored(written: list[Instruction]) -> list[Instruction]:
    """Instructions that make what is stored, those of the last store first."""
    makers = {register: one for one in written for register in one.results}
    stored = [registers_of(one.operands[1:]) for one in reversed(written) if one.name == "st"]
    return [makers[register] for registers in stored for register in registers if register in makers]


def held(case: Case, makers: list[Instruction]) -> str:
    """The number that the outputs hold: as their dtype tells, or what makes the last one stored."""
    floats = {value.dtype.itemsize for value in case.after.values() if value.dtype.kind == "f"}
    if len(floats) == 1:
        return f"f{8 * floats.pop()}"
    types = [one.types[0] for one in makers if one.types and one.name not in ("ld", "mov")]
    return number_of(types[0]) if types else ""


def with_subjects(cases: list[Case]) -> list[Case]:
    """Cases whose subject is the opcode that the fewest of them have."""
    seen = Counter(opcode for case in cases for opcode in case.opcodes)
    return [
        replace(case, subject=min(case.opcodes, key=lambda opcode: seen[opcode], default=""))
        for case in cases
    ]
