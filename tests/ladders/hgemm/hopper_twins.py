"""Twins of the rungs on Hopper with the launches that their heads tell, of any shape and configuration."""

from importlib import resources
from pathlib import Path

from tir_schedules.compiler.signature import argument_names, find_signature
from tir_schedules.compiler.twin import with_headers
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import TensorMap, ceil_div
from tir_schedules.workloads import element_type
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
FOLDER = Path(str(resources.files("cuda_reference"))) / "hgemm"
DEFAULTS = {"BM": 128, "BN": 256, "CONSUMERS": 2, "STAGES": 4, "PROGRAMS": 132, "CLUSTER": 2, "GROUP": 16}
TWINS = {
    "wgmma": (), "wgmma_async": (), "tma": ("A", "B"), "warp_specialized": ("A", "B"),
    "persistent": ("A", "B"), "tma_store": ("A", "B", "C"), "cluster": ("A", "B", "C"),
}  # fmt: skip
"""Twin -> the matrices that it takes by tensor maps."""

PERSISTENT = ("persistent", "tma_store", "cluster")
SLAB, SLAB_ROW = 64, 128  # elements, bytes


def twin(name: str, gemm: HalfGemm, **config: int) -> Kernel:
    """The twin of hgemm/`name` for a workload. config: macros other than their defaults, such as BM."""
    given = {**DEFAULTS, "STAGES": 3 if "C" in TWINS[name] else 4, **config}
    bm, bn, blocks = given["BM"], given["BN"], given["CLUSTER"] if name == "cluster" else 1
    rows, columns = ceil_div(gemm.m, bm * blocks), ceil_div(gemm.n, bn)
    grid = (columns, rows, 1)
    if name in PERSISTENT:
        grid = (min(given["PROGRAMS"] // blocks, rows * columns) * blocks, 1, 1)
    slots = 1 if name == "wgmma" else given["STAGES"]
    shared = slots * (bm + bn) * SLAB_ROW
    if "C" in TWINS[name]:
        shared += bm * bn * element_type(gemm.result).itemsize
    block = (128, given["CONSUMERS"] + ("warp_specialized", *PERSISTENT).count(name), 1)
    source = with_headers(configured(name, gemm, config), FOLDER)
    maps = tuple(map_of(matrix, gemm, bm, bn, blocks) for matrix in TWINS[name])
    entry = f"hgemm_{name}"
    params = argument_names(find_signature(source, entry), entry, gemm.parameters, gemm.outputs, maps)
    return Kernel(
        f"hgemm/{name} (twin)", source, entry, params, grid, block, ARCH, shared, own=True,
        cluster=(blocks, 1, 1), maps=maps,
    )  # fmt: skip


def configured(name: str, gemm: HalfGemm, config: dict[str, int]) -> str:
    """The text of a twin with the macros of a workload and configuration: a whole block of them or none."""
    text = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    given = dict(gemm.macros)
    if config:
        block = text[text.index("#ifndef BM") :]
        words = [
            line.split() for line in block[: block.index("#endif")].splitlines() if line.startswith("#d")
        ]
        given |= {word[1]: config.get(word[1], word[2]) for word in words}
    lines = "".join(f"#define {macro} {value}\n" for macro, value in given.items())
    place = text.index("#ifndef NT")
    return text[:place] + lines + text[place:]


def map_of(matrix: str, gemm: HalfGemm, bm: int, bn: int, blocks: int) -> TensorMap:
    """The tensor map of a matrix, as the heads of the twins have it."""
    m, n, k = gemm.m, gemm.n, gemm.k
    shape, box, element = {
        "A": ((m, k), (bm, SLAB), gemm.dtype),
        "B": ((n, k), (bn // blocks, SLAB), gemm.dtype)
        if gemm.transposed
        else ((k, n), (SLAB, 64), gemm.dtype),
        "C": ((m, n), (64, SLAB_ROW // element_type(gemm.result).itemsize), gemm.result),
    }[matrix]
    pitch = shape[1] * element_type(element).itemsize
    return TensorMap(f"{matrix}_map", matrix, element, shape, (pitch,), box, 128, 256)
