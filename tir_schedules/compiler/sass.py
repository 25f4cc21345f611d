"""From a `Binary` to SASS, the machine code that the GPU executes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.inputs import fingerprint
from tir_schedules.compiler.toolchain import find_toolchain, version_of
from tir_schedules.errors import MissingTool
from tir_schedules.model.kernel import Binary

FLAGS = ("--print-code", "--print-line-info")
CUBIN, SASS = "kernel.cubin", "kernel.sass"

SECTION = re.compile(r"^\s*//-+ (\S+)\s+-+$", re.M)
NAMED = re.compile(r"[`(@]\(?([\w$.]+)\)?")
LABEL = re.compile(r"^\s*(\.L_x_\d+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")
BRANCH = re.compile(r"BRA.*?(\.L_x_\d+)")
COPY_UNDER_P0 = re.compile(r"@!?P0\s+LDGSTS|LDGSTS[^;\n]*,\s*!?P0\s*;")


def disassemble(binary: Binary) -> str:
    """The SASS of a binary's kernel and of the functions that it may call, as nvdisasm prints it, kept in the
    cache. Other kernels of the cubin are left out.

    Where the source line changes, a comment names it: `//## File "sgemm_naive_tir.cu", line 12`. MissingTool
    when there is no nvdisasm, or it is older than the cubin.
    """
    nvdisasm = find_toolchain().tool("nvdisasm")
    key = "\0".join(
        [hashlib.sha256(binary.cubin).hexdigest(), *FLAGS, version_of(nvdisasm), fingerprint(nvdisasm)]
    )

    def build(folder: Path) -> None:
        (folder / CUBIN).write_bytes(binary.cubin)
        command = [nvdisasm, *FLAGS, CUBIN]
        result = processes.run(command, cwd=folder)
        if result.returncode:
            reason = (result.stderr.strip() or "it says nothing").splitlines()[-1]
            raise MissingTool(
                f"{binary.kernel.label}: {nvdisasm} ({version_of(nvdisasm)}) cannot read the cubin"
                f" ({reason}): install one as new as nvcc"
            )
        (folder / SASS).write_text(result.stdout, encoding="utf-8")
        (folder / CUBIN).unlink()

    text = default_cache().load(
        "sass", key, build, lambda folder: (folder / SASS).read_text(encoding="utf-8")
    )
    return only(text, binary.kernel.entry)


def only(sass: str, entry: str) -> str:
    """Disassembled code of a kernel, with the functions that it names."""
    starts = [*SECTION.finditer(sass)]
    ends = [each.start() for each in starts[1:]] + [len(sass)]
    code = {each[1].removeprefix(".text."): sass[each.start() : end] for each, end in zip(starts, ends)}
    if entry not in code:
        return sass
    kept, pending = {entry}, [entry]
    while pending:
        called = set(NAMED.findall(code[pending.pop()])) & code.keys() - kept
        kept |= called
        pending += called
    return sass[: starts[0].start()] + "".join(text for name, text in code.items() if name in kept)


def instructions(sass: str) -> tuple[list[str], dict[str, int]]:
    """The instructions of disassembled code without their predicates, and for each label the number of the
    one that follows it."""
    code, labels = [], {}
    for line in sass.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(code)
        if instruction := INSTRUCTION.search(line):
            code.append(instruction[1])
    return code, labels


def loop_with_most(sass: str, opcode: str, innermost: bool = False) -> list[str]:
    """The instructions of the loop, from the target of a backward branch to the branch, that has most of an
    opcode, such as "HMMA".

    innermost: of a loop over tiles of C, which has the opcode in a loop over K and behind that once more, the
    loop over K. Empty where no loop has any.
    """
    code, labels = instructions(sass)
    loops: list[range] = []
    for position, instruction in enumerate(code):
        branch = BRANCH.match(instruction)
        if branch and labels.get(branch[1], position + 1) <= position:
            loops.append(range(labels[branch[1]], position + 1))
    counts = {loop: count_opcodes(code[loop.start : loop.stop])[opcode] for loop in loops}

    def is_around(loop: range) -> bool:
        """Whether some of the opcode, and not all, is in a loop within."""
        return any(
            loop.start <= other.start and other.stop <= loop.stop and 0 < count < counts[loop]
            for other, count in counts.items()
        )

    main = [loop for loop in loops if counts[loop] and not (innermost and is_around(loop))]
    most = max(main, key=lambda loop: counts[loop], default=range(0))
    return code[most.start : most.stop]


def count_opcodes(code: list[str]) -> Counter[str]:
    """How often each opcode stands in the code, without its modifiers: "HMMA.16816.F16" counts as "HMMA"."""
    return Counter(instruction.split()[0].split(".")[0] for instruction in code)


def copies_under_p0(sass: str) -> int:
    """How many cp.async instructions the predicate register P0 decides on: whether they execute, or whether
    they fill with zeros."""
    return len(COPY_UNDER_P0.findall(sass))
