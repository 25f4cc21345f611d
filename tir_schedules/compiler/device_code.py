"""The device code of somebody's file: what compiles of it where the host's libraries are missing.

Only kernels run here, so host code may fail to compile. nvcc's own steps are run one by one. A header that is
not found is replaced by one of `stand_ins/`, which has what device code may use of it. Host code in which
the compiler finds an error is left out (host_code.py), and the compiler runs again, until it has no complaint
or one about device code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple, Sequence

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import hash_of
from tir_schedules.compiler.front_end import (
    PREPROCESSED,
    WORD,
    Commands,
    Refused,
    commands_of,
    run,
    set_options,
)
from tir_schedules.compiler.host_code import DEVICE, HostCode, LeftOut, is_users, segments
from tir_schedules.compiler.inputs import identity
from tir_schedules.compiler.nvcc import (
    BESIDE,
    PTX,
    Compiled,
    assemble,
    compile_source,
    failure,
    flags_of,
    including,
    read_build,
    with_files,
    with_paths,
    write_source,
)
from tir_schedules.compiler.places import is_plain, plain_links
from tir_schedules.compiler.signature import blank_literals
from tir_schedules.compiler.source_text import file_name, rename_file
from tir_schedules.compiler.toolchain import (
    Toolchain,
    check_arch,
    find_toolchain,
    number_of,
    toolkit_folder,
)
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel

STAND_INS = Path(__file__).parent / "stand_ins"
FAMILIES = {
    r"(torch|ATen|c10|THC|TH|pybind11|caffe2)/.*|pybind11\.h": "torch.h",
    r"helper_math\.h": "helper_math.h",
    r"(cu(blas|blasLt|blasXt|solver\w*|sparse|fft\w*|dnn\w*|rand|tensor)(_\w+)?|nccl)\.h": "nvidia_library.h",
    r"helper_\w+\.h|exception\.h": "any.h",
}
"""Headers by their names, and what stands in for their device code."""

OTHERS = "any.h"
"""What stands in for other headers: the standard library's that such headers include."""

DEEP = "stand_ins/" + "/".join("abcdefgh")
"""Where stand-ins lie: an include of "../../x.h" stays below the working folder."""

LAUNCH_BOUNDS = re.compile(r"__attribute__\s*\(\(\s*launch_bounds\s*(\((?:[^()]|\([^()]*\))*\))\s*\)\)")
ERROR = re.compile(
    r"^ *([^\s(][^\n(]*)\((\d+)\): (?:catastrophic )?error\b([^\n]*(?:\n(?! *\S+\(\d+\):|\n).*)*)", re.M
)
UNKNOWN = re.compile(r'(?:identifier|has no member) "(\w+)"')
AT_LINE = re.compile(r"at line (\d+)(?: of \"?([^\"\n]+?)\"?)?\s*$", re.M)
FLAG_ASKED_FOR = re.compile(r"(?:flag|requires|specify) [\"'`]?(--?(?:expt-|extended-)[a-z-]+)")
ARCH_ASKED_FOR = re.compile(r"requires \.target '?(sm_\d+[af]?)'? or higher")
OTHER_ARCH = re.compile(r"not supported (?:on \.target|for this GPU architecture)")
HOPPER = "sm_90a"
"""The architecture that is tried where the compiler says only that another is needed."""


TESTING = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.M)
DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
OF_SYSTEMS = re.compile(r"_|WIN32|USE_ROCM|HIP|NDEBUG|NVCC_PREPROCESSOR|true|false")
"""How names begin that compilers and systems define, or that mean them."""

ROUNDS = 30
ERROR_LIMIT = "100000"
"""Most errors of one call of the compiler; nvcc's limit is 100."""

USERS_TEXT, NOTES = "users.cu", "notes.json"
CODE = "".join(map(hash_of, ("compiler/device_code.py", "compiler/host_code.py", "compiler/front_end.py")))


class DeviceCode(NamedTuple):
    """compiled: of the device code. text: what the user wrote, in the file and in what it includes, after the
    preprocessor. arch: that it is compiled for. notes: what was left out, replaced or added."""

    compiled: Compiled
    text: str
    arch: str
    notes: tuple[str, ...]


class NoDeviceCode(CheckFailed):
    """Device code does not compile. missing: the headers that were not found."""

    def __init__(self, message: str, missing: Sequence[str] = ()):
        super().__init__(message)
        self.missing = tuple(missing)


class Expanded(NamedTuple):
    """A file after the preprocessor. missing: headers that were not found. commands: nvcc's, for it. tested:
    macros that the file tests and that these headers may define."""

    text: str
    missing: tuple[str, ...]
    commands: Commands
    tested: tuple[str, ...] = ()


def compile_device_code(kernel: Kernel, fixed: bool = True) -> DeviceCode:
    """All that the device code of a CUDA file compiles to, kept in the cache.

    A flag that nvcc names in its complaint (`--expt-relaxed-constexpr`) is added. The architecture is taken
    that ptxas names; if it is fixed, only a variant of the same GPU (sm_90a). NoDeviceCode, with nvcc's
    lines, where device code does not compile; CheckFailed, BadInput and MissingTool as `compile_kernel` has
    them.
    """
    check_arch(kernel.arch)
    toolchain, cache = find_toolchain(), default_cache()
    with cache.workplace() as folder:
        expanded = None
        if with_files(kernel):
            expanded = expand(kernel, toolchain, folder)
            if expanded is None:
                return by_nvcc(kernel)
            seen = hashlib.sha256(expanded.text.replace(str(folder), "").encode(errors="surrogateescape"))
            text = seen.hexdigest()
        else:
            text = "\0".join([kernel.source, *(f"#define {line}" for line in kernel.defines)])
        options = [kernel.arch, str(fixed), *flags_of(kernel)]
        key = "\0".join([text, file_name(kernel), *options, identity(toolchain), CODE])

        def make(work: Path) -> None:
            build(kernel, toolchain, work, expanded, fixed)

        try:
            return cache.load("device", key, make, read_device_code)
        except Unknown:
            return by_nvcc(kernel)


class Unknown(Exception):
    """nvcc's steps are other ones than those known here."""


def by_nvcc(kernel: Kernel) -> DeviceCode:
    """What nvcc makes of a file as it is."""
    return DeviceCode(compile_source(kernel), kernel.source, kernel.arch, ())


def build(kernel: Kernel, toolchain: Toolchain, folder: Path, expanded: Expanded | None, fixed: bool) -> None:
    """Leave PTX, cubin, the user's text and notes in the folder."""
    added: list[str] = []
    scalars = True
    while True:
        try:
            text, notes = build_once(kernel, toolchain, folder, expanded, scalars)
            break
        except CheckFailed as error:
            kernel, note = as_asked_for(kernel, str(error), fixed)
            if not note and not (scalars and "scalar_t" in kernel.source):
                raise
            scalars, expanded, added = scalars and bool(note), None, [*added, *filter(None, [note])]
    (folder / USERS_TEXT).write_text(users_text(text), encoding="utf-8", errors="surrogateescape")
    (folder / NOTES).write_text(json.dumps({"arch": kernel.arch, "notes": added + notes}), encoding="utf-8")


def as_asked_for(kernel: Kernel, said: str, fixed: bool) -> tuple[Kernel, str]:
    """A kernel with what the compiler says is missing, and a note of it; "" where it says nothing of the
    kind."""
    flag = FLAG_ASKED_FOR.search(said)
    if flag and flag[1] not in kernel.flags:
        note = f"compiled with {flag[1]}, which nvcc asks for"
        return replace(kernel, flags=(*kernel.flags, flag[1])), note
    asked = [*ARCH_ASKED_FOR.findall(said), *(HOPPER for _ in OTHER_ARCH.findall(said))]
    newest = max(asked, key=number_of, default="")
    arch = HOPPER if number_of(newest) == number_of(HOPPER) else newest
    newer = number_of(arch) - number_of(kernel.arch)
    if newer < 0 or (fixed and newer) or arch in ("", kernel.arch):
        return kernel, ""
    return replace(kernel, arch=arch), f"compiled for {arch}, as some of its instructions need"


def build_once(
    kernel: Kernel, toolchain: Toolchain, folder: Path, expanded: Expanded | None, scalars: bool
) -> tuple[str, list[str]]:
    """Leave PTX and cubin in the folder; the preprocessed text that was compiled, and notes. scalars: whether
    `scalar_t` is float in host code that is left out."""
    work = folder / "front"
    work.mkdir()
    try:
        expanded = expanded or expand(kernel, toolchain, work)
        if expanded is None:
            raise Unknown
        text, left_out = compile_rounds(kernel, toolchain, work, expanded, scalars)
        (work / PTX).replace(folder / PTX)
    finally:
        shutil.rmtree(work)
    unknown = [name for name in expanded.missing if not family_of(name)]
    notes = []
    if unknown:
        notes.append(f"{', '.join(unknown)} {are_missing(unknown)}: host code that needs it is left out")
    elif left_out and not expanded.missing:
        notes.append(f"host code that does not compile is left out: {left_out}")
    if expanded.tested:
        several = "are" if len(expanded.tested) > 1 else "is"
        notes.append(
            f"{', '.join(expanded.tested)} {several} tested by #if and not defined, because"
            f" {', '.join(expanded.missing)} {are_missing(expanded.missing)}: say -D if it should be"
        )
    write_source(kernel, folder)
    assemble(kernel, toolchain, folder)
    return text, notes


def are_missing(names: Sequence[str]) -> str:
    return "is not found" if len(names) == 1 else "are not found"


def read_device_code(folder: Path) -> DeviceCode:
    notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    text = (folder / USERS_TEXT).read_text(encoding="utf-8", errors="surrogateescape")
    return DeviceCode(read_build(folder), text, notes["arch"], tuple(notes["notes"]))


# ---- the preprocessor, with headers in place of those that are missing ---
def expand(kernel: Kernel, toolchain: Toolchain, folder: Path) -> Expanded | None:
    """The file after the preprocessor; None where nvcc is to say what is wrong."""
    if os.environ.get("NVCC_CCBIN") or not is_plain(toolkit_folder(toolchain.nvcc)):
        return None
    missing: list[str] = []
    (folder / DEEP).mkdir(parents=True, exist_ok=True)
    name = write_source(kernel, folder)
    with plain_links(folder) as links:
        own = f"-idirafter,{DEEP},-fmacro-prefix-map={BESIDE}/="  # the second is for __FILE__
        words = (*flags_of(kernel), *including(kernel, links), "-Xcompiler", own)
        commands = commands_of(toolchain.nvcc, kernel.arch, words)
        if commands is None:
            return None
        preprocess = [name if word == "k.cu" else word for word in commands.preprocess]
        while True:
            try:
                run(set_options(preprocess, {"-o": PREPROCESSED}), folder)
                break
            except Refused as refused:
                try:
                    new = [each for each in missing_headers(preprocess, folder) if each not in missing]
                except Refused as other:
                    raise failure(kernel, toolchain, with_paths(str(other), kernel), folder) from None
                if not new and missing:
                    raise failure(kernel, toolchain, with_paths(str(refused), kernel), folder) from None
                if not new:
                    return None
                for each in new:
                    write_stand_in(folder, each)
                missing += new
        tested = undefined_macros(kernel.source, preprocess, folder) if missing else ()
    text = (folder / PREPROCESSED).read_text(encoding="utf-8", errors="surrogateescape")
    return Expanded(text, tuple(missing), commands, tested)


def undefined_macros(source: str, preprocess: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Macros that a file tests by #if and the like but that nothing defines, except those of compilers and
    systems."""
    lines = TESTING.findall(blank_literals(source))
    tested = {name for line in lines for name in WORD.findall(line) if name != "defined"}
    if not tested:
        return ()
    try:
        run(set_options([*preprocess, "-dM"], {"-o": "macros"}), folder)
    except Refused:
        return ()
    listed = (folder / "macros").read_text(encoding="utf-8", errors="replace")
    known = set(DEFINED.findall(listed)) | set(DEFINED.findall(source))
    return tuple(sorted(name for name in tested - known if not OF_SYSTEMS.match(name)))


def missing_headers(preprocess: Sequence[str], folder: Path) -> list[str]:
    """What the preprocessor would include and does not find; gcc's -MG takes a missing header as one that is
    still to be made. Refused for another fault."""
    listing = [option for word in preprocess for option in (("-M", "-MG") if word == "-E" else (word,))]
    run(set_options(listing, {"-o": "found.d"}), folder)
    found = (folder / "found.d").read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    names = found.partition(":")[2].split()
    return [each for each in names if not (folder / each).exists() and not os.path.isabs(each)]


def family_of(header: str) -> str:
    """What stands in for a header that is known; "" for another."""
    return next((file for name, file in FAMILIES.items() if re.fullmatch(name, header)), "")


def write_stand_in(folder: Path, header: str) -> None:
    path = Path(os.path.normpath(folder / DEEP / header))
    if path.is_relative_to(folder):
        file = family_of(header) or OTHERS
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((STAND_INS / file).read_text(encoding="utf-8"), encoding="utf-8")


# ---- the compiler, without the host code that it refuses ---
def compile_rounds(
    kernel: Kernel, toolchain: Toolchain, folder: Path, expanded: Expanded, scalars: bool
) -> tuple[str, str]:
    """Leave the PTX in the folder; the text that it was made of, and the first complaint about host code."""
    name, code = file_name(kernel), HostCode(expanded.text, scalars)
    complaints: dict[tuple[str, int], str] = {}
    files = {
        "-o": PTX,
        "--orig_src_file_name": name,
        "--orig_src_path_name": str(folder / name),
        "--module_id_file_name": "k.module_id",
    }
    command = set_options(expanded.commands.compile, files)
    command[1:1] = ["--error_limit", ERROR_LIMIT]
    for _ in range(ROUNDS):
        (folder / PREPROCESSED).write_text(code.text, encoding="utf-8", errors="surrogateescape")
        try:
            run(command, folder)
            break
        except Refused as refused:
            said = str(refused)
        for each in ERROR.finditer(said):
            complaints.setdefault((each[1], int(each[2])), each[0].split("\n")[0].strip())
        if not code.leave_out(set(faults_in(said)), set(UNKNOWN.findall(said))):
            error = failure(kernel, toolchain, with_paths(said, kernel), folder)
            if not isinstance(error, CheckFailed):
                raise error
            words = set(WORD.findall(said))
            causes = (one for one in code.left_out if one.matters and one.names & words)
            raise NoDeviceCode(
                "\n  ".join([str(error), *reasons(causes, complaints, kernel)]), expanded.missing
            )
    missed = code.missed()
    if missed:
        why = reasons([missed], complaints, kernel)
        raise NoDeviceCode(f"{kernel.label}: device code may need {why[0]}", expanded.missing)
    return code.text, next(iter(complaints.values()), "")


def reasons(left_out: Iterable[LeftOut], complaints: dict[tuple[str, int], str], kernel: Kernel) -> list[str]:
    """What is left out, and why, in the order of the file."""
    found = []
    for one in left_out:
        said = (
            text
            for (file, line), text in complaints.items()
            if file == one.file and one.line <= line <= one.last
        )
        where = rename_file(f"{one.file.removeprefix(f'{BESIDE}/')}({one.line})", kernel)
        names = ", ".join(sorted(one.names)) or "a declaration"
        why = rename_file(next(said, "it does not compile"), kernel)
        found.append(f"{names} of {where}, which is left out: {why}")
    return found


def faults_in(said: str) -> Iterator[tuple[str, int]]:
    """File and line of each error; of one in a header of others, the user's line that led the compiler
    there."""
    for file, line, more in ERROR.findall(said):
        led = ((of or file, int(at)) for at, of in AT_LINE.findall(more))
        yield from islice((fault for fault in ((file, int(line)), *led) if is_users(fault[0])), 1)


def users_text(text: str) -> str:
    """What the user wrote, with CUDA's own words."""
    parts = "".join(text[start:end] for start, end, own in segments(text) if own)
    return LAUNCH_BOUNDS.sub(r"__launch_bounds__\1", DEVICE.sub(r"__\1__", parts))
