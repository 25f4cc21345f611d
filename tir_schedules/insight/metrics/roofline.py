"""The roofline of a GPU, from its datasheet, and where a workload or a kernel stands under it. Bounds, not
predictions of a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from tir_schedules.errors import BadInput, nearest
from tir_schedules.insight.metrics.metrics import GLOBAL, SECTOR, Metrics
from tir_schedules.model.gpus import find_sm


@dataclass(frozen=True)
class Gpu:
    """Figures of a datasheet. TFLOPS of fp32, and of dense fp16 products on tensor cores with fp16 and with
    fp32 sums; GB/s of memory; how many multiprocessors."""

    name: str
    fp32: float
    fp16: float
    mixed: float
    bandwidth: float
    multiprocessors: int

    def peak(self, workload: Any) -> float:
        """TFLOPS for the arithmetic of a workload."""
        accumulate = getattr(workload, "accumulate", None)
        return {None: self.fp32, "float16": self.fp16, "float32": self.mixed}[accumulate]


GPUS = {
    "b200": Gpu("B200 SXM", 75, 2250, 2250, 7700, 148),
    "h200": Gpu("H200 SXM", 66.9, 989, 989, 4800, 132),
    "h100": Gpu("H100 SXM", 66.9, 989, 989, 3350, 132),
    "a100": Gpu("A100 SXM 80 GB", 19.5, 312, 312, 2039, 108),
    "l40s": Gpu("L40S", 91.6, 362, 362, 864, 142),
    "l4": Gpu("L4", 30.3, 121, 121, 300, 58),
    "t4": Gpu("T4", 8.1, 65, 65, 320, 40),
    "rtx5090": Gpu("GeForce RTX 5090", 104.8, 419, 209.5, 1792, 170),
    "rtx4090": Gpu("GeForce RTX 4090", 82.6, 330.3, 165.2, 1008, 128),
    "rtx3090": Gpu("GeForce RTX 3090", 35.6, 142, 71, 936, 82),
}
DEFAULT_GPU = "h200"
GPU_OF = {
    "sm_75": "t4", "sm_80": "a100", "sm_86": "rtx3090", "sm_89": "rtx4090", "sm_90": "h200", "sm_100": "b200",
    "sm_120": "rtx5090"
}  # fmt: skip
"""Architecture -> the GPU whose figures stand for it where none is named."""


def find_gpu(name: str) -> Gpu:
    """A GPU of the table; BadInput with the nearest name when there is none."""
    key = (name or DEFAULT_GPU).lower().replace(" ", "").replace("-", "")
    if key not in GPUS:
        raise BadInput(
            f"there are no datasheet figures of {name!r}{nearest(key, GPUS)}; there are those of"
            f" {', '.join(GPUS)}"
        )
    return GPUS[key]


def gpu_for(arch: str, name: str | None = None) -> Gpu:
    """The GPU that is named, else one of the architecture ("sm_90", "sm_90a"). BadInput where there are no
    figures of any."""
    if name:
        return find_gpu(name)
    known = GPU_OF.get(arch.rstrip("af"))
    if not known:
        raise BadInput(
            f"there are no datasheet figures of a GPU of {arch}; name one with --gpu: {', '.join(GPUS)}"
        )
    return find_gpu(known)


def clock(gpu: Gpu, arch: str) -> float:
    """Cycles per second, those of the datasheet's rate of fp32."""
    return gpu.fp32 * 1e12 / (2 * gpu.multiprocessors * find_sm(arch).lanes)


def bound(gpu: Gpu, workload: Any) -> dict[str, Any]:
    """The least time a workload can take by the roofline model: all arithmetic at peak, or every byte moved
    once."""
    arithmetic, memory = workload.flops / gpu.peak(workload) / 1e6, workload.bytes / gpu.bandwidth / 1e3
    least = max(arithmetic, memory)
    rate, unit = (
        (workload.flops / least / 1e6, "TFLOPS")
        if hasattr(workload, "k")
        else (workload.bytes / least / 1e3, "GB/s")
    )
    limited = "arithmetic" if arithmetic >= memory else "memory"
    return {"shape": str(workload), "least_us": least, "rate": rate, "unit": unit, "limited_by": limited}


def ridge(gpu: Gpu, workload: Any) -> float:
    """Flops per byte from which on arithmetic is the bound, for the arithmetic of a workload."""
    return gpu.peak(workload) * 1e3 / gpu.bandwidth


@dataclass(frozen=True)
class Roofline:
    """Where a kernel stands. ridge: flops per byte from which on arithmetic is the bound. least_bytes: every
    element moved once.
    moved_bytes: what its accesses ask of the L1 cache, sectors of 32 bytes; caches serve part of it."""

    gpu: Gpu
    ridge: float
    flops: int
    least_bytes: int
    moved_bytes: int

    @property
    def intensity(self) -> float:
        """Flops per byte where caches serve every byte but the first time: the most there can be."""
        return self.flops / self.least_bytes

    @property
    def moved_intensity(self) -> float:
        """Flops per byte where no cache serves any: the least there can be."""
        return self.flops / self.moved_bytes

    def limit(self, intensity: float) -> str:
        return "arithmetic" if intensity >= self.ridge else "memory"

    def as_json(self) -> dict[str, Any]:
        figures = {"gpu": self.gpu.name, "ridge": self.ridge}
        figures |= {"flops": self.flops, "least_bytes": self.least_bytes, "moved_bytes": self.moved_bytes}
        figures |= {"intensity": self.intensity, "moved_intensity": self.moved_intensity}
        return figures | {
            "limited_by": self.limit(self.intensity),
            "moved_limited_by": self.limit(self.moved_intensity),
        }


def roofline(gpu: Gpu, workload: Any, launches: Sequence[Metrics]) -> Roofline:
    """launches: metrics of all that the workload takes."""
    sectors = sum(launch.access(*GLOBAL).cost for launch in launches)
    return Roofline(gpu, ridge(gpu, workload), workload.flops, workload.bytes, SECTOR * sectors)
