"""The roofline of a GPU by its datasheet, and where workloads and kernels stand under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from tir_schedules.errors import BadInput, nearest
from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, Metrics
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.workload import Workload


@dataclass(frozen=True)
class Gpu:
    """Figures of a datasheet.

    fp32: TFLOPS. fp16, mixed: dense TFLOPS of tensor cores on fp16, with fp16 and with fp32 accumulators; 0
    where there are none. Of the RTX 4060 these are a quarter and an eighth of the datasheet's 242 AI TOPS,
    which are of sparse fp8. bandwidth: GB/s. multiprocessors: how many SMs.
    """

    name: str
    fp32: float
    fp16: float
    mixed: float
    bandwidth: float
    multiprocessors: int

    def peak(self, workload: Workload) -> float:
        """TFLOPS at most in the arithmetic of a workload. BadInput without the tensor cores it needs."""
        form = getattr(workload, "form", None)  # of a SplitGemm: each product is one or several of parts
        accumulate = getattr(workload, "accumulate", "float32" if form else None)
        peak = {None: self.fp32, "float16": self.fp16, "float32": self.mixed}[accumulate]
        peak = peak * 2 / form.size / len(form.products) if form else peak
        if not peak:
            raise BadInput(f"the {self.name} has no tensor cores: name a later GPU for {workload}")
        return peak


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
    "rtx4060": Gpu("GeForce RTX 4060", 15.1, 60.5, 30.2, 272, 24),
    "rtx3090": Gpu("GeForce RTX 3090", 35.6, 142, 71, 936, 82),
    "gtx1080ti": Gpu("GeForce GTX 1080 Ti", 11.3, 0, 0, 484, 28),
}
DEFAULT_GPU = "h200"
GPU_OF = {
    "sm_75": "t4",
    "sm_80": "a100",
    "sm_86": "rtx3090",
    "sm_89": "rtx4090",
    "sm_90": "h200",
    "sm_100": "b200",
    "sm_120": "rtx5090",
}
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
    """The named GPU, else one of the architecture ("sm_90", "sm_90a"). BadInput where there is none."""
    if name:
        return find_gpu(name)
    known = GPU_OF.get(arch.rstrip("af"))
    if not known:
        raise BadInput(
            f"there are no datasheet figures of a GPU of {arch}; name one with --gpu: {', '.join(GPUS)}"
        )
    return find_gpu(known)


def clock(gpu: Gpu, arch: str) -> float:
    """Cycles per second, as the datasheet's fp32 rate implies."""
    return gpu.fp32 * 1e12 / (2 * gpu.multiprocessors * find_sm(arch).lanes)


def bound(gpu: Gpu, workload: Workload) -> dict[str, object]:
    """The shortest time by the roofline: all arithmetic at peak, or compulsory bytes at full bandwidth."""
    arithmetic, memory = workload.flops / gpu.peak(workload) / 1e6, workload.bytes / gpu.bandwidth / 1e3
    shortest = max(arithmetic, memory)
    rate, unit = (
        (workload.flops / shortest / 1e6, "TFLOPS")
        if len(workload.shape) > 1
        else (workload.bytes / shortest / 1e3, "GB/s")
    )
    limited = "arithmetic" if arithmetic >= memory else "memory"
    return {"shape": str(workload), "least_us": shortest, "rate": rate, "unit": unit, "limited_by": limited}


def ridge(gpu: Gpu, workload: Workload) -> float:
    """Arithmetic intensity (flop/byte) from which on arithmetic is the limit, not memory."""
    return gpu.peak(workload) * 1e3 / gpu.bandwidth


@dataclass(frozen=True)
class Roofline:
    """Where a kernel stands under the roofline.

    ridge: arithmetic intensity (flop/byte) from which on arithmetic is the limit. compulsory_bytes: every
    element moved once. moved_bytes: what its accesses ask of the L1 cache, 32 per sector; caches serve part
    of it.
    """

    gpu: Gpu
    ridge: float
    flops: int
    compulsory_bytes: int
    moved_bytes: int

    @property
    def intensity(self) -> float:
        """Arithmetic intensity of the compulsory bytes: the highest there can be."""
        return self.flops / self.compulsory_bytes

    @property
    def moved_intensity(self) -> float:
        """Arithmetic intensity of the bytes through L1: the lowest there can be, where no cache helps."""
        return self.flops / self.moved_bytes

    def limit(self, intensity: float) -> str:
        return "arithmetic" if intensity >= self.ridge else "memory"

    def as_json(self) -> dict[str, object]:
        return {
            "gpu": self.gpu.name,
            "ridge": self.ridge,
            "flops": self.flops,
            "least_bytes": self.compulsory_bytes,
            "moved_bytes": self.moved_bytes,
            "intensity": self.intensity,
            "moved_intensity": self.moved_intensity,
            "limited_by": self.limit(self.intensity),
            "moved_limited_by": self.limit(self.moved_intensity),
        }


def roofline(gpu: Gpu, workload: Workload, launches: Sequence[Metrics]) -> Roofline:
    """launches: metrics of all that the workload takes."""
    sectors = sum(launch.access(*GLOBAL).cost for launch in launches)
    return Roofline(gpu, ridge(gpu, workload), workload.flops, workload.bytes, SECTOR * sectors)
