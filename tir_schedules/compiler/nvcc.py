"""From a `Kernel` to a `Binary`: nvcc compiles the CUDA source to PTX, ptxas assembles exactly that PTX.

Every kernel is assembled, also where its PTX alone is executed: what ptxas refuses runs on no GPU, and must
not be called right. The flags are the same for a scheduled kernel and its hand-written twin, and none of them
trades accuracy for speed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Iterable, NamedTuple

from tir_schedules import processes
from tir_schedules.compiler import front_end
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.dependent_launch import begins_early
from tir_schedules.compiler.inputs import environment, host_compiler, identity, reads_files
from tir_schedules.compiler.places import Links, is_plain, plain_links
from tir_schedules.compiler.source_text import file_name, is_ptx, place_in_ptx, rename_file, shown_name
from tir_schedules.compiler.toolchain import (
    INSTALL,
    REPLACE,
    Toolchain,
    check_arch,
    find_toolchain,
    toolkit_folder,
)
from tir_schedules.errors import CheckFailed, MissingTool, printable
from tir_schedules.model.attributes import (
    attributes_of,
    check_attributes,
    check_block,
    check_local,
    check_shared,
)
from tir_schedules.model.gpus import REGISTERS, WARP, warps_by_registers
from tir_schedules.model.kernel import Binary, Kernel, Resources

FLAGS = ("-O3", "-lineinfo", "-std=c++17")
PTX, CUBIN, REPORT, PREPROCESSED = "kernel.ptx", "kernel.cubin", "ptxas.txt", "kernel.ii"
DEFINES = "defines.h"
LINES_SHOWN = 10
COMPILE_SECONDS = 1800

BESIDE = "beside"
"""The name by which nvcc knows the folder of the source's own headers."""

SEARCHED = "searched"
"""The same of the folders that a user adds, before their numbers."""


class Compiled(NamedTuple):
    """What a source compiles to: PTX text, a cubin, and the report of `ptxas -v`."""

    ptx: str
    cubin: bytes
    report: str


# nvcc puts hashes of path and text, around the file's name, into the names of static functions and of what
# anonymous namespaces hold: as text in symbols, and in the line table as character codes, which a line break
# and `.b8` may split.
BETWEEN_CODES = r"(?:,|\s*\.b8 )"


def codes_of(text: str) -> str:
    """A pattern of the text as character codes, `.` being any code."""
    return BETWEEN_CODES.join(r"\d+" if letter == "." else str(ord(letter)) for letter in text)


HEX_CODE = r"(?:4[89]|5[0-7]|9[789]|10[012])\b"
HASH_MARKERS = ("_INTERNAL_", "_GLOBAL__N__")
MARKERS_IN_CODES = "|".join(codes_of(marker) for marker in HASH_MARKERS)
HASH_CODES, NAME_CODES = codes_of("." * 8), rf"(?:{BETWEEN_CODES}\d+){{1,130}}?"
HASHES_IN_TEXT = [
    re.compile(rf"({'|'.join(HASH_MARKERS)})[0-9a-f]{{8}}(?=_)"),
    re.compile(rf"((?:{'|'.join(HASH_MARKERS)})0{{8}}_\w+?_cu_)[0-9a-f]{{8}}"),
]
HASHES_IN_CODES = [
    re.compile(rf"((?:{MARKERS_IN_CODES}){BETWEEN_CODES})({HASH_CODES})"),
    re.compile(
        rf"((?:{MARKERS_IN_CODES}){NAME_CODES}{BETWEEN_CODES}{codes_of('_cu_')}{BETWEEN_CODES})"
        rf"((?:{HEX_CODE}{BETWEEN_CODES}){{7}}{HEX_CODE})"
    ),
]
FILE_DIRECTIVE = re.compile(r'^(\s*\.file\s+\d+\s+")((?:[^"\\\n]|\\.)+)"', re.M)
PTX_COMPLAINT = re.compile(rf"ptxas {PTX}, line (\d+); (.*)")
REPORTED = {
    "registers": r"Used (\d+) registers",
    "shared": r"(\d+) bytes smem",
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "barriers": r"used (\d+) barriers",
}
NO_HOST_COMPILER = (
    "Failed to preprocess host compiler properties",
    "cc1plus",
    "Host compiler targets unsupported OS",
)
UNDONE = re.compile(
    r"^.*?(?:\(C\d+\) )?((?:Potential Performance Loss: )?(?:wgmma\.mma_async|setmaxnreg).*)$", re.M
)
"""What ptxas says where it does not let wgmma run beside the threads, or ignores setmaxnreg."""

ERROR_LINE = re.compile(r"\berror\b|\bfatal\b|undefined reference", re.I)


def flags_of(kernel: Kernel) -> tuple[str, ...]:
    """The flags that nvcc is given for a kernel: FLAGS, and those of its own, which win."""
    given = {flag.lstrip("-")[:2] for flag in kernel.flags if re.match(r"-O\d|--?std=", flag)}
    return (*(flag for flag in FLAGS if flag.lstrip("-")[:2] not in given), *kernel.flags)


def compile_kernel(kernel: Kernel) -> Binary:
    """Compile for the kernel's architecture; the result is kept in the cache.

    In the PTX, `.file` names the source after the kernel's label (sgemm_naive_tir.cu) and `.loc` counts lines
    of `kernel.source`. CheckFailed shows nvcc's own lines when the source does not compile, or says how the
    launch is not as the kernel asks or exceeds what the architecture has; BadInput for an unknown
    architecture; MissingTool when there is no nvcc or no host compiler.
    """
    check_block(kernel)
    return binary_of(kernel, compile_source(kernel))


def compile_source(kernel: Kernel) -> Compiled:
    """All that its source compiles to, from the cache where it is there; what is launched does not matter."""
    toolchain, cache = find_toolchain(), default_cache()
    key = "\0".join(
        [kernel.source, file_name(kernel), kernel.entry, kernel.arch, *flags_of(kernel), identity(toolchain)]
        + [front_end.CODE] * kernel.own
        + [f"#define {line}" for line in kernel.defines]
    )
    seen = None
    if with_files(kernel):
        with cache.workplace() as folder:
            seen = preprocess(kernel, toolchain, folder)
        key += f"\0{seen}"
    return cache.load("kernel", key, lambda folder: build(kernel, toolchain, folder, seen), read_build)


def with_files(kernel: Kernel) -> bool:
    """Whether what the kernel becomes may depend on files of the user's."""
    return bool(kernel.includes) or reads_files(kernel.source)


def binary_of(kernel: Kernel, made: Compiled) -> Binary:
    """One of the kernels that a source compiled to. CheckFailed as `compile_kernel` has it."""
    ptx, cubin, report = made
    resources = parse_resources(kernel, report)
    check_attributes(kernel, attributes_of(ptx, kernel.entry))
    check_launch(kernel, resources)
    if kernel.own and "wgmma.mma_async" in ptx:
        check_products(kernel, report, resources)
    return Binary(replace(kernel, early=begins_early(ptx, kernel.entry)), ptx, cubin, resources)


def compile_kernels(kernels: Iterable[Kernel]) -> list[Binary]:
    """Compile many, one per processor at a time; binaries come in the order of the kernels."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(compile_kernel, kernels))


def build(kernel: Kernel, toolchain: Toolchain, folder: Path, seen: str | None = None) -> None:
    """Leave the PTX, the cubin and the report of ptxas in the folder. seen: what `preprocess` said of a
    source with files of the user's."""
    check_arch(kernel.arch)
    source = write_source(kernel, folder)
    if not front_end.compile_ptx(kernel, toolchain, FLAGS, folder, PTX):
        nvcc(kernel, toolchain, folder, *flags_of(kernel), "-ptx", source, "-o", PTX)
    assemble(kernel, toolchain, folder)
    if seen is not None and preprocess(kernel, toolchain, folder) != seen:
        raise CheckFailed(
            f"{kernel.label}: a file that it includes changed while it was compiled: run it again"
        )


def assemble(kernel: Kernel, toolchain: Toolchain, folder: Path) -> None:
    """Leave the cubin of the PTX in the folder, and the report of ptxas; the PTX is the same wherever it was
    compiled."""
    flags = flags_of(kernel)
    ptx = (folder / PTX).read_text(encoding="utf-8", errors="replace")
    (folder / PTX).write_text(without_place(ptx), encoding="utf-8")
    report = front_end.assemble(kernel.arch, toolchain, flags, folder, PTX, CUBIN)
    if report is None:
        report = nvcc(kernel, toolchain, folder, *flags, "-Xptxas", "-v", "-cubin", PTX, "-o", CUBIN)
    (folder / REPORT).write_text(report, encoding="utf-8")


def write_source(kernel: Kernel, folder: Path) -> str:
    """The source as a file in the folder; its name."""
    name = file_name(kernel)
    (folder / name).write_text(kernel.source, encoding="utf-8")
    if kernel.defines:
        lines = "".join(f"#define {line}\n" for line in kernel.defines)
        (folder / DEFINES).write_text(lines, encoding="utf-8")
    os.utime(folder / name, (0, 0))  # ptxas writes this time into the cubin
    return name


def preprocess(kernel: Kernel, toolchain: Toolchain, folder: Path) -> str:
    """A hash of the source with all it includes, as nvcc's compiler proper sees it."""
    text = expand_includes(kernel, toolchain, folder)
    return hashlib.sha256(text.replace(os.fsencode(folder), b"")).hexdigest()


def expand_includes(kernel: Kernel, toolchain: Toolchain, folder: Path) -> bytes:
    """The source as the preprocessor leaves it, with all it includes, made in the folder."""
    check_arch(kernel.arch)
    nvcc(kernel, toolchain, folder, *flags_of(kernel), "-E", write_source(kernel, folder), "-o", PREPROCESSED)
    text = (folder / PREPROCESSED).read_bytes()
    (folder / PREPROCESSED).unlink()
    return text


def source_after_preprocessing(kernel: Kernel) -> str:
    """The same as text."""
    with default_cache().workplace() as folder:
        return expand_includes(kernel, find_toolchain(), folder).decode("utf-8", "replace")


def check_launch(kernel: Kernel, resources: Resources) -> None:
    """CheckFailed when a block asks for more threads, shared memory or registers than the architecture can
    give it, or a thread for more local memory."""
    check_block(kernel)
    check_local(kernel.label, resources.stack)
    check_shared(kernel, resources.shared)
    if resources.registers and kernel.threads > WARP * warps_by_registers(resources.registers):
        raise CheckFailed(
            f"{kernel.label}: {resources.registers} registers x {kernel.threads} threads is more than the"
            f" {REGISTERS} of a block, given out to four warps at a time: use"
            f" __launch_bounds__({kernel.threads}) or smaller tiles"
        )


def check_products(kernel: Kernel, report: str, resources: Resources) -> None:
    """CheckFailed for a kernel of wgmma that ptxas has spoilt: one product waits for the other, or sums are
    in memory. It computes the right thing, and is not what its rung is about."""
    undone = UNDONE.search(report)
    if undone:
        raise CheckFailed(f"{kernel.label}: ptxas says: {undone[1]}")
    spilled = resources.spill_stores + resources.spill_loads
    if spilled:
        raise CheckFailed(
            f"{kernel.label}: {spilled} bytes are spilled to memory; sums of wgmma must stay in registers:"
            " use a smaller tile, or more warpgroups"
        )


def read_build(folder: Path) -> Compiled:
    return Compiled(
        (folder / PTX).read_text(encoding="utf-8"),
        (folder / CUBIN).read_bytes(),
        (folder / REPORT).read_text(encoding="utf-8"),
    )


def without_place(ptx: str) -> str:
    """The same PTX for the same source, wherever on whatever machine it was compiled."""
    ptx = FILE_DIRECTIVE.sub(shorten_path, ptx)
    for pattern in HASHES_IN_TEXT:
        ptx = pattern.sub(rf"\g<1>{'0' * 8}", ptx)
    for pattern in HASHES_IN_CODES:
        ptx = pattern.sub(lambda match: match[1] + zeros(match[2]), ptx)
    return ptx


def zeros(codes: str) -> str:
    """The character 0 as often as there are codes, divided as they are."""
    return re.sub(r"(?<![b\d])\d+", str(ord("0")), codes)


def shorten_path(directive: re.Match) -> str:
    """A `.file` directive with the kernel's file name, or with a CUDA header's path below include/, in
    letters that need no quoting."""
    opening, path = directive.groups()
    _, include, header = path.rpartition("/include/")
    return opening + re.sub(r"[^\w./+ -]", "_", header if include else Path(path).name) + '"'


def nvcc(kernel: Kernel, toolchain: Toolchain, folder: Path, *arguments: str) -> str:
    """Run nvcc in the folder, which has a plain name, and return what it reports; raise its errors.

    The last argument is the file that it is to write.
    """
    chosen = os.environ.get("NVCC_CCBIN") and host_compiler()
    with plain_links(folder) as links:
        # nvcc and gcc keep their own temporary files in TMPDIR: in here they go when a killed build is
        # cleaned up.
        variables = environment() | {"TMPDIR": str(folder)}
        if chosen:
            variables["NVCC_CCBIN"] = str(links.where_needed("host-compiler", chosen))
        arguments = (*including(kernel, links), *arguments)
        command = [plain_nvcc(toolchain, links), f"-arch={kernel.arch}", *arguments]
        try:
            result = processes.run(command, timeout=COMPILE_SECONDS, cwd=folder, env=variables)
        except subprocess.TimeoutExpired:
            raise CheckFailed(
                f"{kernel.label}: nvcc {toolchain.version} is not done after {COMPILE_SECONDS // 60} minutes"
            ) from None
        except OSError as error:
            raise MissingTool(
                f"{printable(toolchain.nvcc)} does not run ({error.strerror}): {REPLACE}"
            ) from None
        output = with_paths(result.stdout + result.stderr, kernel)
        if result.returncode:
            raise failure(kernel, toolchain, output, folder)
        if not (folder / arguments[-1]).is_file():
            raise MissingTool(
                f"{printable(toolchain.nvcc)} reports no error, and does not write {arguments[-1]}: {REPLACE}"
            )
        return output


def including(kernel: Kernel, links: Links) -> list[str]:
    """The words by which nvcc finds what a kernel includes; folders of the user's are links."""
    words = ["-include", DEFINES] if kernel.defines else []
    words += [f"-I{links.always(f'{SEARCHED}{at}', path)}" for at, path in enumerate(kernel.includes)]
    if kernel.folder and with_files(kernel):
        words += ["-Xcompiler", f"-iquote,{links.always(BESIDE, kernel.folder)}"]
    return words


def with_paths(output: str, kernel: Kernel) -> str:
    """What a compiler says, with the user's folders in place of their links."""
    output = output.replace(f"{BESIDE}/", "")
    for at, path in enumerate(kernel.includes):
        output = output.replace(f"{SEARCHED}{at}/", f"{path}/")
    return output


def plain_nvcc(toolchain: Toolchain, links: Links) -> str:
    """A path of nvcc from which it derives plain paths of its own parts."""
    folder = toolkit_folder(toolchain.nvcc)
    if is_plain(folder) and (folder / "nvcc").is_file():
        return str(toolchain.nvcc)
    if toolchain.nvcc.parent != folder or not is_plain(folder.name):
        raise MissingTool(
            f"nvcc at {printable(toolchain.nvcc)} is in a folder whose name a shell reads otherwise:"
            f" {REPLACE}"
        )
    return str(links.where_needed("toolkit", folder.parent) / folder.name / toolchain.nvcc.name)


def failure(kernel: Kernel, toolchain: Toolchain, output: str, folder: Path) -> Exception:
    """nvcc's complaint as the error it is: something missing on this machine, or something wrong in the
    source."""
    if "No space left on device" in output:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if any(sign in output for sign in NO_HOST_COMPILER):
        return MissingTool(
            "nvcc needs a C++ compiler and finds no working gcc on PATH: install g++"
            " (`apt install g++`, `dnf install gcc-c++`), or set NVCC_CCBIN to one"
        )
    if "Unsupported .version" in output and not is_ptx(kernel.source):
        return MissingTool(
            f"the parts of nvcc {toolchain.version} come from different CUDA releases: {INSTALL}"
        )
    unsupported = re.search(r"unsupported GNU version! (gcc versions .*? are not supported)", output)
    if unsupported:
        return MissingTool(
            f"nvcc {toolchain.version}: {unsupported[1]}; install an older g++ and set NVCC_CCBIN to it"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ERROR_LINE.search(line)] or lines or ["nvcc says nothing"]
    more = [f"... and {len(errors) - LINES_SHOWN} more lines"] if len(errors) > LINES_SHOWN else []
    shown = [
        rename_file(locate_in_source(line, kernel, folder), kernel) for line in errors[:LINES_SHOWN]
    ] + more
    what = f"nvcc {toolchain.version} does not compile it for {kernel.arch}"
    return CheckFailed("\n  ".join([f"{kernel.label}: {what}:", *shown]))


def locate_in_source(line: str, kernel: Kernel, folder: Path) -> str:
    """A complaint of ptxas about a PTX line, with the CUDA line that the PTX line comes from."""
    if is_ptx(kernel.source):
        return line.replace(f"ptxas {PTX},", f"ptxas {shown_name(kernel)},")
    complaint = PTX_COMPLAINT.fullmatch(line)
    if not complaint:
        return line
    ptx_line, message = int(complaint[1]), complaint[2]
    place = place_in_ptx((folder / PTX).read_text(encoding="utf-8"), ptx_line, kernel)
    return f"{place[0]}({place[1]}): {message} (ptxas, PTX line {ptx_line})" if place else line


def parse_resources(kernel: Kernel, report: str) -> Resources:
    """Resources of the kernel in the report of `ptxas -v`, which may tell of several functions."""
    for section in report.split("Compiling entry function ")[1:]:
        if not section.startswith(f"'{kernel.entry}'"):
            continue
        found = {name: re.search(pattern, section) for name, pattern in REPORTED.items()}
        return Resources(**{name: int(match[1]) if match else 0 for name, match in found.items()})
    names = re.findall(r"Compiling entry function '(.*?)'", report)
    there = (
        f"; what it has is {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        if names
        else ""
    )
    raise CheckFailed(
        f'{kernel.label}: the source has no extern "C" __global__ function named {kernel.entry}{there}'
    )
