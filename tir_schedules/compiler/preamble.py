"""What TVM prints above a kernel, without what the kernel does not use.

TVM writes for NVRTC, for Windows and for GPUs before Volta, too, and brings functions for halves whether or
not they are called. nvcc makes the same instructions of what is left. Kernels are compiled with all of it, as
TVM prints them; this is for people who read them.
"""

from __future__ import annotations

import re

KERNEL = re.compile(r'^extern "C" __global__ ', re.M)
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
    start = KERNEL.search(source)
    if not start:
        return source
    above, kernel = source[: start.start()], DECLARED.sub("", source[start.start() :])
    for pattern in ELSEWHERE:
        above = pattern.sub(lambda match: re.sub(r"^ +", "", match[1], flags=re.M), above)
    for pattern, used in TOGETHER:
        found = pattern.search(above)
        if found and not used.search(above[: found.start()] + above[found.end() :] + kernel):
            above = above[: found.start()] + above[found.end() :]
    parts = parts_of(above)
    while True:
        kept = [part for part in parts if is_used(part, [each for each in parts if each is not part], kernel)]
        if len(kept) == len(parts):
            break
        parts = kept
    above = re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip("\n")
    return f"{above}\n\n{kernel}".lstrip("\n") if above else kernel


def parts_of(text: str) -> list[str]:
    """Its includes, definitions and functions, each with the comments and blank lines above it. Conditional
    parts stay whole."""
    parts, part, braces, conditions = [], "", 0, 0
    for line in text.splitlines(keepends=True):
        part += line
        bare = line.split("//")[0].strip()
        braces += bare.count("{") - bare.count("}")
        conditions += bare.startswith("#if") - bare.startswith("#endif")
        ended = bare.endswith((";", "}")) or bare.startswith("#") and not bare.endswith("\\")
        if bare and ended and not braces and not conditions:
            parts.append(part)
            part = ""
    return [*parts, part] if part.strip() else parts


def is_used(part: str, others: list[str], kernel: str) -> bool:
    """Whether the kernel, or another part, uses what a part defines; a part that is not understood is."""
    rest = "".join(others) + kernel
    header = re.search(r"^#include <([\w./]+)>", part, re.M)
    if header:
        used = HEADERS.get(header[1])
        return used is None or bool(re.search(used, rest))
    name = next((found[1] for pattern in NAMES if (found := pattern.search(part))), None)
    return name is None or bool(re.search(rf"\b{re.escape(name)}\b", rest))
