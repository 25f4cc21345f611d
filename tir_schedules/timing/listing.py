"""The SASS of a kernel as a list of instructions: operands, the line of PTX, and the control code in which
ptxas wrote what the instruction waits for."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Iterator, Sequence

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.inputs import fingerprint
from tir_schedules.compiler.sass import only
from tir_schedules.compiler.source_text import FILE_DIRECTIVE, LOC_DIRECTIVE, is_python
from tir_schedules.compiler.toolchain import Toolchain, find_toolchain, version_of
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.model.kernel import Binary
from tir_schedules.timing.pipes import Kind, kind_of

FLAGS = ("--print-code", "--print-line-info", "--print-line-info-ptx", "--print-instruction-encoding")
CUBIN, PTX, SASS = "kernel.cubin", "kernel.ptx", "kernel.sass"
PTX_TEXT = ".nv_debug_ptx_txt"
"""What the line table calls the PTX that the cubin was assembled from."""

NO_SCOREBOARD = 7
PLACE = re.compile(r'^\s*//## File "((?:[^"\\]|\\.)*)", line (\d+)')
LABEL = re.compile(r"^\s*([\w$.]+):")
"""Of a place in the code, or of a function that it calls."""

LINE = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?)(U?P\w+)\s+)?(\S+)\s*(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/"
)
SECOND = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
TARGET = re.compile(r"`\(([\w$.]+)\)")
SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$.]+),")
REGISTER = re.compile(r"(?<![\w.])(U?)R(\d+)(\.64)?(?:\.reuse)?\b")
PREDICATE = re.compile(r"(?<![\w.])!?(U?P\d)\b")


@dataclass(frozen=True)
class Control:
    """What ptxas wrote beside an instruction. stall: cycles until the warp may issue the next. yields:
    whether another warp should. writes, reads: the scoreboard that counts down when the result is there, and
    when the sources have been read; None for no scoreboard. waits: scoreboards that have to be 0 first.
    reuse: one bit for each source that stays in the operand cache."""

    stall: int
    yields: bool
    writes: int | None
    reads: int | None
    waits: tuple[int, ...]
    reuse: int


def control_of(encoding: int) -> Control:
    """The control code, which begins at bit 105 of an instruction's 128."""
    code = encoding >> 105
    writes, reads, waits = code >> 5 & 7, code >> 8 & 7, code >> 11 & 63
    return Control(
        code & 15, not code >> 4 & 1, None if writes == NO_SCOREBOARD else writes,
        None if reads == NO_SCOREBOARD else reads, tuple(n for n in range(6) if waits >> n & 1),
        code >> 17 & 15,
    )  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    number: in the list. address: in bytes from the beginning of its function. opcode: with modifiers, such as
    "LDS.128". operands: as nvdisasm spells them. predicate, negated: what it depends on, "" for nothing.
    target: the number of the instruction that a branch goes to, or that BSSY names; None without one.
    ptx_line: of the PTX text, 0 where the cubin tells none. source: file and line, ("", 0) likewise.
    function: that it is in: the kernel, or one that it calls.
    """

    number: int
    address: int
    opcode: str
    operands: tuple[str, ...]
    predicate: str
    negated: bool
    target: int | None
    ptx_line: int
    source: tuple[str, int]
    control: Control
    function: str

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @cached_property
    def kind(self) -> Kind:
        """Pipe and how its result is known."""
        return kind_of(self.opcode)

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    @cached_property
    def registers(self) -> tuple[tuple[str, int], ...]:
        """Registers that operands name, in order: ("R", 4), ("UR", 6)."""
        return tuple(
            (f"{uniform}R", int(number))
            for operand in self.operands
            for uniform, number, _ in REGISTER.findall(operand)
        )

    @cached_property
    def predicates(self) -> tuple[str, ...]:
        """Predicates that operands name; PT is none."""
        return tuple(name for operand in self.operands for name in PREDICATE.findall(operand))

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Operands in constant memory, "c[0x0][0x210]"."""
        return tuple(operand for operand in self.operands if "c[" in operand)

    @property
    def branches(self) -> bool:
        """Whether it may send lanes to its target. BRA.DIV goes where lanes that have to be together are not,
        which does not happen where warps are whole."""
        return self.target is not None and self.name in ("BRA", "JMP", "CALL") and not self.if_apart

    @property
    def if_apart(self) -> bool:
        return "DIV" in self.modifiers

    @property
    def ends(self) -> bool:
        """Whether what follows it is reached from elsewhere alone."""
        always = not self.predicate and not self.has_condition and not self.if_apart
        return always and self.name in ("BRA", "JMP", "EXIT", "RET", "BRX", "JMX", "BRXU", "JMXU", "KILL")

    @property
    def has_condition(self) -> bool:
        """Whether a branch has a predicate among its operands: BRA P0, `(.L_1)."""
        return self.name in ("BRA", "JMP") and any(
            PREDICATE.fullmatch(one.strip()) or one.startswith(("UP", "!UP", "."))
            for one in self.operands[:-1]
        )


def listing(binary: Binary) -> list[Instruction]:
    """The instructions of the kernel and of functions that it may call.

    Lines of PTX are in the cubin where it was compiled with -lineinfo, as this project does; a cubin without
    them is assembled once more from its PTX. MissingTool without nvdisasm; CheckFailed where it prints what
    is not known here.
    """
    toolchain = find_toolchain()
    text = only(disassembled(binary, binary.cubin, toolchain), binary.kernel.entry)
    if PTX_TEXT not in text and binary.ptx:
        text = only(disassembled(binary, assembled(binary, toolchain), toolchain), binary.kernel.entry)
    found = [*parsed(text, binary.kernel.label)]
    if not found:
        raise CheckFailed(f"{binary.kernel.label}: nvdisasm shows no instruction of {binary.kernel.entry}")
    found = placed(found, binary.ptx.splitlines())
    return with_places(found, binary.ptx) if is_python(binary.kernel) else found


def with_places(code: Sequence[Instruction], ptx: str) -> list[Instruction]:
    """The same with file and line as `.loc` of the PTX has them: of inline assembly, which Triton's loads and
    stores are, ptxas names lines that are not there."""
    files, place = dict(FILE_DIRECTIVE.findall(ptx)), ("", 0)
    places = [place]
    for line in ptx.splitlines():
        if found := LOC_DIRECTIVE.match(line):
            place = (files.get(found[1], ""), int(found[2]))
        places.append(place)
    return [replace(one, source=places[one.ptx_line]) for one in code]


COMES_FROM = {
    "HGMMA": r"wgmma\.mma_async", "IGMMA": r"wgmma\.mma_async", "QGMMA": r"wgmma\.mma_async",
    "SYNCS.EXCH": r"mbarrier\.init", "SYNCS.PHASECHK": r"mbarrier\.(try|test)_wait",
    "SYNCS.ARRIVE": r"mbarrier\.(arrive|expect_tx|complete_tx)|cp\.async\.mbarrier",
    "SYNCS.ARRIVE.A1T0": r"mbarrier\.arrive(?!\.expect_tx)", "UTMALDG": r"cp\.async\.bulk\.tensor",
    "BAR": r"\bbar(rier)?\.",
    "UTMASTG": r"cp\.async\.bulk\.tensor", "UBLKCP": r"cp\.async\.bulk\.",
    "HMMA": r"\bw?mma\.", "LDSM": r"\bldmatrix|wmma\.load", "STSM": r"\bstmatrix",
}  # fmt: skip
"""Opcode, with what tells operations on mbarriers apart -> the PTX that it comes from."""

NEAR = 64
"""Lines of PTX within which the right one is looked for."""


def placed(code: list[Instruction], ptx: list[str]) -> list[Instruction]:
    """The same with the line of PTX put right where ptxas's table has none for an instruction and nvdisasm
    shows that of the one before it: the next line that can have become this instruction, or where as many
    stand in SASS as in PTX, the one in the same place among them."""
    lines_of = {name: [n for n, text in enumerate(ptx, 1) if re.search(pattern, text)]
                for name, pattern in COMES_FROM.items()}  # fmt: skip
    in_code: dict[str, list[int]] = {name: [] for name in lines_of}
    for one in code:
        if (name := kind_of_place(one)) in in_code:
            in_code[name].append(one.number)
    found = list(code)
    for name, numbers in in_code.items():
        lines = lines_of[name]
        if not lines or all(code[number].ptx_line in lines for number in numbers):
            continue
        for place, number in enumerate(numbers):
            line = code[number].ptx_line
            if name.endswith("GMMA") and len(lines) == len(numbers):
                line = lines[place]
            elif line not in lines:
                at = bisect_left(lines, line)
                close = [each for each in (*lines[at : at + 1], *lines[max(0, at - 1) : at])
                         if abs(each - line) <= NEAR]  # fmt: skip
                line = close[0] if close else line
            found[number] = replace(code[number], ptx_line=line)
    return found


def kind_of_place(one: Instruction) -> str:
    """A name of COMES_FROM."""
    if one.name != "SYNCS":
        return one.name
    does = next((each for each in one.modifiers if each in ("EXCH", "PHASECHK")), "ARRIVE")
    return f"SYNCS.{does}" + ".A1T0" * ("A1T0" in one.modifiers)


def assembled(binary: Binary, toolchain: Toolchain) -> bytes:
    """A cubin of the binary's PTX with a line table."""
    ptxas = toolchain.tool("ptxas")
    key = "\0".join([binary.ptx, binary.kernel.arch, version_of(ptxas), fingerprint(ptxas)])

    def build(folder: Path) -> None:
        (folder / PTX).write_text(binary.ptx, encoding="utf-8")
        command = [ptxas, f"-arch={binary.kernel.arch}", "--generate-line-info", PTX, "-o", CUBIN]
        result = processes.run(command, cwd=folder)
        if result.returncode:
            reason = (result.stderr.strip() or "it says nothing").splitlines()[0]
            raise CheckFailed(f"{binary.kernel.label}: ptxas does not take its PTX: {reason}")

    return default_cache().load("lines", key, build, lambda folder: (folder / CUBIN).read_bytes())


def disassembled(binary: Binary, cubin: bytes, toolchain: Toolchain) -> str:
    """All that nvdisasm prints of a cubin, with encodings and lines."""
    nvdisasm = toolchain.tool("nvdisasm")
    key = "\0".join([hashlib.sha256(cubin).hexdigest(), *FLAGS, version_of(nvdisasm), fingerprint(nvdisasm)])

    def build(folder: Path) -> None:
        (folder / CUBIN).write_bytes(cubin)
        result = processes.run([nvdisasm, *FLAGS, CUBIN], cwd=folder)
        if result.returncode:
            reason = (result.stderr.strip() or "it says nothing").splitlines()[-1]
            raise MissingTool(
                f"{binary.kernel.label}: {nvdisasm} ({version_of(nvdisasm)}) cannot read the cubin"
                f" ({reason}): install one as new as nvcc"
            )
        (folder / SASS).write_text(result.stdout, encoding="utf-8")

    return default_cache().load("encoded", key, build, lambda folder: (folder / SASS).read_text("utf-8"))


def parsed(text: str, label: str) -> Iterator[Instruction]:
    """The instructions of disassembled text. label: of the kernel, for messages."""
    rows: list[tuple[re.Match[str], int, int, tuple[str, int], str]] = []
    labels: dict[str, int] = {}
    function, ptx_line, source, waiting = "", 0, ("", 0), None
    for line in text.splitlines():
        if place := PLACE.match(line):
            if place[1] == PTX_TEXT:
                ptx_line = int(place[2])
            else:
                source = (place[1], int(place[2]))
        elif name := SECTION.match(line):
            function, ptx_line, source = name[1], 0, ("", 0)
        elif mark := LABEL.match(line):
            labels[mark[1]] = len(rows)
        elif match := LINE.match(line):
            waiting = match
        elif waiting and (second := SECOND.match(line)):
            encoding = int(second[1], 16) << 64 | int(waiting[6], 16)
            rows.append((waiting, encoding, ptx_line, source, function))
            waiting = None
        elif re.match(r"^\s*/\*[0-9a-f]{4,}\*/", line):
            raise CheckFailed(f"{label}: nvdisasm prints a line that is not known here: {line.strip()}")
    for number, (match, encoding, ptx_line, source, function) in enumerate(rows):
        address, negated, predicate, opcode, operands, _ = match.groups()
        target = TARGET.search(operands) if not opcode.startswith("RET") else None  # RET names the caller
        yield Instruction(
            number, int(address, 16), opcode, split_operands(operands), predicate or "", negated == "!",
            labels.get(target[1]) if target else None, ptx_line, source, control_of(encoding), function,
        )  # fmt: skip


def split_operands(text: str) -> tuple[str, ...]:
    """Operands at the commas between them."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return tuple([*parts, text[begin:].strip()] if text else [])


def unknown_opcodes(code: list[Instruction]) -> list[str]:
    """Opcodes that no table has, each once: the model takes them for slow."""
    return sorted({one.name for one in code if not one.kind.known})
