"""What a rung becomes, as text: its scheduled TIR, its CUDA, or the PTX and SASS nvcc makes of either
twin.

TVM writes its CUDA for NVRTC, for Windows and for GPUs before Volta, too, and brings functions for halves
whether or not they are called. nvcc makes the same instructions without them. Kernels are compiled with all
of it, as TVM prints them; what people read is without what the kernel does not use. So line numbers are those
of what people read, see "Line numbers" in guides/commands.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Callable, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.model.gpus import STATIC_SHARED
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.model.workload import Workload, parameters_of, sizes_of

if TYPE_CHECKING:
    from tir_schedules.model.kernel import Kernel
    from tir_schedules.model.launch import TensorMap


Make = Callable[[Rung, Workload, str], "Kernel"]
"""Makes the kernel of a rung on a workload for an architecture, as `lower` and `load_twin` do."""

Line = tuple[int, str]
"""A line of text and its number in the kernel's source, from 1; 0 for one that is not there."""


@dataclass(frozen=True)
class Section:
    """A kernel in what `emit` prints, with the lines above it that say how it is launched."""

    kernel: Kernel
    lines: list[Line]


def emit_text(rung: Rung, workload: Workload, arch: str, form: str, twin: bool = False) -> str:
    """form: "cuda", "ptx", "sass" or "tir". twin: of the hand-written kernel. BadInput for the TIR of a
    twin."""
    if form == "tir":
        return scheduled_tir(rung, workload, twin)
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.sass import disassemble
    from tir_schedules.compiler.source_text import rename_file
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin

    check_arch(arch)
    make = load_twin if twin else lower
    if form == "cuda":
        sections = one_below_another(sections_of(make, rung, workload, arch))
        return "\n".join(line for one in sections for _, line in one.lines)
    kernel = (make if twin else placed_in_text(make, rung, workload, arch))(rung, workload, arch)
    binary = compile_kernel(kernel)
    if form == "ptx":
        return binary.ptx
    return "".join(rename_file(line, kernel) for line in disassemble(binary).splitlines(keepends=True))


def placed_in_text(make: Make, rung: Rung, workload: Workload, arch: str) -> Make:
    """`make` for the launches of a rung on a workload: it makes each kernel once, with `Kernel.places` in
    what `emit` prints of them. A later launch of the same rung, which is not printed with the first, has its
    places in what is printed for its own size."""
    made: dict[tuple[str, Workload], Kernel] = {}
    known: dict[int, Kernel] = {}

    def once(rung: Rung, workload: Workload, arch: str) -> Kernel:
        key = rung.id, workload
        if key not in made:
            made[key] = make(rung, workload, arch)
        return made[key]

    def place(rung: Rung, workload: Workload, arch: str) -> None:
        sections = one_below_another(sections_of(once, rung, workload, arch))
        for one, kernel in zip(sections, with_places(sections)):
            known.setdefault(id(one.kernel), kernel)

    def placed(rung: Rung, workload: Workload, arch: str) -> Kernel:
        kernel = once(rung, workload, arch)
        if id(kernel) not in known:
            place(rung, workload, arch)
        return known[id(kernel)]

    place(rung, workload, arch)
    return placed


def with_places(sections: Sequence[Section]) -> list[Kernel]:
    """The kernels of sections of one text, each with its places in that. The text has the name of the
    first."""
    from tir_schedules.compiler.source_text import file_name

    found, above, file = [], 0, file_name(sections[0].kernel)
    for one in sections:
        numbers = {row: above + at for at, (row, _) in enumerate(one.lines, 1)}
        rows = range(1, one.kernel.source.count("\n") + 2)
        found.append(replace(one.kernel, places=tuple((file, numbers.get(row, 0)) for row in rows)))
        above += len(one.lines)
    return found


def sections_of(make: Make, rung: Rung, workload: Workload, arch: str) -> list[Section]:
    """The kernels that `emit` prints: the rung's own, those of the launches before and after it, and those of
    what it leaves to another rung."""
    kernel = make(rung, workload, arch)
    before, after = rung.others(workload)
    found = [section_of(kernel, workload, before, after)]
    for each in (*before, *after):
        for one in sections_of(make, each.rung, each.workload, arch):
            named = [(number, below(each, line)) for number, line in one.lines]
            found.append(replace(one, lines=named))
    rest = workload.rest(kernel.results)
    return found + (sections_of(make, rung.then, rest, arch) if rung.then is not rung and rest else [])


def section_of(
    kernel: Kernel,
    workload: Workload,
    before: Sequence[Preparation] = (),
    after: Sequence[Preparation] = (),
) -> Section:
    """A kernel below what says how it is launched. before, after: other launches."""
    above = [(0, line) for line in head(kernel, workload, before, after).split("\n")[:-1]]
    return Section(kernel, above + (numbered(kernel.source) if kernel.places else kept_lines(kernel.source)))


def one_below_another(sections: Sequence[Section]) -> list[Section]:
    """Sections of one file. A value that one defines for the preprocessor does not hold for those
    below that define it, too, be it only where it is not defined yet. A mark without a value does: it says
    that a header stands above.
    """
    found, defined = [], set[str]()
    for one in sections:
        own = dict.fromkeys(match[1] for _, line in one.lines if (match := DEFINED.match(line)))
        undone = [(0, f"#undef {name}") for name in own if name in defined]
        found.append(replace(one, lines=[*undone, (0, ""), *one.lines]) if undone else one)
        defined |= own.keys()
    return found


def numbered(text: str) -> list[Line]:
    return [*enumerate(text.split("\n"), 1)]


def text_of(lines: Sequence[Line]) -> str:
    return "".join(f"{line}\n" for _, line in lines)


def head(
    kernel: Kernel,
    workload: Workload,
    before: Sequence[Preparation] = (),
    after: Sequence[Preparation] = (),
) -> str:
    """A comment with what it takes to compile and launch a kernel. before, after: other launches."""
    launched = f"grid {extents_text(kernel.grid)}, block {extents_text(kernel.block)}"
    if prod(kernel.cluster) > 1:
        launched += f", in clusters of {extents_text(kernel.cluster)} as it declares"
    lines = [
        f"{kernel.label} on {workload}",
        f"compile: nvcc {arch_option(kernel.arch)} -c {kernel.entry}.cu",
        f"launch:  {kernel.entry}, {launched}, {kernel.dynamic_shared} bytes of dynamic shared memory",
        *(
            f"{'takes:  ' if not place else '        '} {line}"
            for place, line in enumerate(launch_parameters(kernel, workload))
        ),
    ]
    for tensor in kernel.maps:
        lines += [f"map:     {tensor.name} of {tensor.of}, made by", f"         {encoding(tensor)}"]
    if kernel.dynamic_shared > STATIC_SHARED:
        lines.append(
            "before:  cudaFuncSetAttribute(..., cudaFuncAttributeMaxDynamicSharedMemorySize,"
            f" {kernel.dynamic_shared})"
        )
    for when, several in (("before: ", before), ("after:  ", after)):
        for each in several:
            names = ", ".join(f"{name} = {given}" for name, given in each.names.items())
            lines.append(f"{when} {name_below(each)} below, with {names}")
    rest = workload.rest(kernel.results)
    if rest is not None:
        left = kernel.parts if kernel.parts > 1 else prod(kernel.grid)
        lines.append(f"after:   its {left} results are left, for a launch on {rest}")
    return "".join(f"// {line}\n" for line in lines) + "\n"


def below(launch: Preparation, text: str) -> str:
    """The text of another launch's kernel, which may stand below that of a rung more than once."""
    return re.sub(rf"\b{launch.rung.entry}\b", name_below(launch), text)


def name_below(launch: Preparation) -> str:
    """Its kernel's name there: that with the array that it copies."""
    return f"{launch.rung.entry}_{next(iter(launch.names.values()))}"


def arch_option(arch: str) -> str:
    """nvcc's option for an architecture. Of -arch=sm_90a it would also make PTX for sm_90, which has not the
    instructions."""
    if arch[-1].isdigit():
        return f"-arch={arch}"
    return f"-gencode arch={arch.replace('sm_', 'compute_')},code={arch}"


def extents_text(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def launch_parameters(kernel: Kernel, workload: Workload) -> list[str]:
    """Parameters in their order: type and name, and the shape of an array, the value of a size, or the array
    of a tensor map."""
    shapes = {**workload.array_shapes(kernel.results), **dict(kernel.workspaces)}
    sizes = sizes_of(workload)
    kinds = parameters_of(workload, kernel.results)
    maps = {tensor.name: tensor.of for tensor in kernel.maps}
    lines = []
    for name in kernel.params:
        array = maps.get(name, name)
        # A copy has the format of what it is a copy of.
        kind = kinds[array.removesuffix("_rows")].replace("*", " *")
        shown = f"{kind}{'' if kind.endswith('*') else ' '}{array}"
        shown += f"[{']['.join(map(str, shapes[array]))}]" if array in shapes else f" = {sizes[array]}"
        lines.append(f"CUtensorMap {name}, of {shown}" if name in maps else shown)
    return lines


def encoding(tensor: TensorMap) -> str:
    """The call of CUDA's driver that makes a tensor map."""

    def innermost_first(values: Sequence[int]) -> str:
        return f"{{{', '.join(map(str, reversed(values)))}}}"

    constants = {
        "DATA_TYPE": tensor.element.upper(),
        "INTERLEAVE": "NONE",
        "SWIZZLE": f"{tensor.swizzle}B" if tensor.swizzle else "NONE",
        "L2_PROMOTION": f"L2_{tensor.promotion}B" if tensor.promotion else "NONE",
        "FLOAT_OOB_FILL": "NONE",
    }
    kind, *others = (f"CU_TENSOR_MAP_{name}_{value}" for name, value in constants.items())
    extents = (tensor.shape, tensor.pitches, tensor.box, (1,) * len(tensor.shape))
    given = [
        f"&{tensor.name}",
        kind,
        str(len(tensor.shape)),
        tensor.of,
        *map(innermost_first, extents),
        *others,
    ]
    return f"cuTensorMapEncodeTiled({', '.join(given)})"


def scheduled_tir(rung: Rung, workload: Workload, twin: bool) -> str:
    """The PrimFunc after the rung's schedule, as TVMScript."""
    if twin:
        raise BadInput(
            f"the twin of {rung.id} is hand-written CUDA and has no TIR; leave out --twin or --tir"
        )
    from tir_schedules.compiler.lower import scheduled

    return scheduled(rung, workload).mod.script()


KERNEL = re.compile(r'^extern "C" __global__ ', re.M)
DEFINED = re.compile(r" *# *define (\w+) +\S")
DECLARED = re.compile(r'^extern "C" __global__ [^{;]*;\n', re.M)

ELSEWHERE = (
    re.compile(r"#ifdef __CUDACC_RTC__\n.*?#else\n(.*?)#endif\n", re.S),
    re.compile(r"#ifdef _WIN32\n.*?#else\n(.*?)#endif\n", re.S),
    re.compile(
        r"#if !defined\(__CUDA_ARCH__\) \|\| \(__CUDA_ARCH__ >= 530\)\n(.*?)#endif // __CUDA_ARCH__ >= 530\n",
        re.S,
    ),
    re.compile(
        r"#if !defined\(__CUDA_ARCH__\) \|\| \(__CUDA_ARCH__ >= 800\)\n(.*?)#endif // __CUDA_ARCH__ >= 800\n",
        re.S,
    ),
    re.compile(r"#if defined\(__CUDA_ARCH__\) && \(__CUDA_ARCH__ < 700\)\n.*?#endif\n()", re.S),
)
"""What is for NVRTC, for Windows, for GPUs that nvcc 13 does not know, or kept from those without bfloat16,
which kernels of it are not for; the group is what stays."""

TOGETHER = (
    (
        re.compile(r"#if \(\(\(__CUDACC_VER_MAJOR__ == 11\).*?#endif\n", re.S),
        re.compile(r"\bTVM_ENABLE_L2_PREFETCH\b"),
    ),
    (
        re.compile(
            r"#define CUDA_UNSUPPORTED_HALF_MATH_BINARY.*?#undef CUDA_UNSUPPORTED_HALF_MATH_UNARY\n", re.S
        ),
        re.compile(r"\b(?:hpow|htanh|htan|hatan|herf|hexp)\s*\("),
    ),
)
"""Parts that go as a whole -> what else uses them."""

HEADERS = {
    "cstdint": r"\bu?int(?:8|16|32|64)_t\b",
    "type_traits": r"\bstd::",
    "cuda.h": r"\bCU[a-z]\w+|\bcu[A-Z]\w+",
    "cuda_fp16.h": r"half",
    "cuda_bf16.h": r"bfloat16",
    "mma.h": r"\bnvcuda\b|\bwmma\b",
}
"""Headers -> what of them is used; others stay."""

NAMES = (
    re.compile(r"^\s*#define (\w+)", re.M),
    re.compile(r"^using (\w+) =", re.M),
    re.compile(r"\bstruct (?:__align__\(\d+\) )?(\w+)"),
    re.compile(r"(\w+)\("),
)
"""How a part of the preamble names what it defines, tried in this order."""


def without_unused(source: str) -> str:
    """The source of one kernel, above it only what it uses; comments stay."""
    return "\n".join(line for _, line in kept_lines(source))


def kept_lines(source: str) -> list[Line]:
    """The same line by line."""
    start, lines = KERNEL.search(source), numbered(source)
    if not start:
        return lines
    first = source.count("\n", 0, start.start())
    above, below = lines[:first], kept_of(DECLARED, lines[first:])
    kernel = text_of(below)
    for pattern in ELSEWHERE:
        above = kept_of(pattern, above)
    for pattern, used in TOGETHER:
        rest = kept_of(pattern, above)
        if not used.search(text_of(rest) + kernel):
            above = rest
    parts = parts_of(above)
    while True:
        texts = [*map(text_of, parts)]
        kept = [
            part for at, part in enumerate(parts) if is_used(texts[at], texts[:at] + texts[at + 1 :], kernel)
        ]
        if len(kept) == len(parts):
            break
        parts = kept
    above = [line for part in parts for line in part]
    shown = [one for one, (_, before) in zip(above, [(0, ""), *above]) if one[1] or before]
    if shown and shown[-1][1]:
        shown.append((0, ""))
    return [*shown, *below]


def kept_of(pattern: re.Pattern[str], lines: list[Line]) -> list[Line]:
    """Lines of which the pattern is not found, and those of its group, without their indent."""
    text, found, done = text_of(lines), list[Line](), 0
    for match in pattern.finditer(text):
        inner = match.span(1) if pattern.groups else ()
        first, *inside, last = (text.count("\n", 0, at) for at in (match.start(), *inner, match.end()))
        found += lines[done:first]
        found += [(number, line.lstrip(" ")) for number, line in lines[slice(*inside)]] if inside else []
        done = last
    return found + lines[done:]


def parts_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Its includes, definitions and functions, each with the comments and blank lines above it. Conditional
    parts stay whole."""
    parts, part, braces, conditions = list[list[Line]](), list[Line](), 0, 0
    for line in lines:
        part.append(line)
        bare = line[1].split("//")[0].strip()
        braces += bare.count("{") - bare.count("}")
        conditions += bare.startswith("#if") - bare.startswith("#endif")
        ended = bare.endswith((";", "}")) or bare.startswith("#") and not bare.endswith("\\")
        if bare and ended and not braces and not conditions:
            parts.append(part)
            part = []
    return [*parts, part] if any(line.strip() for _, line in part) else parts


def is_used(part: str, others: list[str], kernel: str) -> bool:
    """Whether the kernel, or another part, uses what a part defines; a part that is not understood is."""
    rest = "".join(others) + kernel
    header = re.search(r"^#include <([\w./]+)>", part, re.M)
    if header:
        used = HEADERS.get(header[1])
        return used is None or bool(re.search(used, rest))
    name = next((found[1] for pattern in NAMES if (found := pattern.search(part))), None)
    return name is None or bool(re.search(rf"\b{re.escape(name)}\b", rest))
