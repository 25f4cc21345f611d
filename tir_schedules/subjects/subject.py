"""What a benchmark times: kernels compiled for one architecture, and the vendor library's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from tir_schedules.errors import one_line
from tir_schedules.files import Json
from tir_schedules.ladders.known import OfLadders, ladder_of
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Workload

VENDORS = OfLadders(lambda ladder: ladder.vendor)
"""Family -> the library its kernels are timed beside; "" for none."""

SEVERAL = {"cuBLAS": ("cuBLAS", "cuBLASLt")}
"""A library that is timed in several ways -> the names of these."""

Row = Json
"""A row of results as JSON has it."""


def vendors_of(family: str) -> tuple[str, ...]:
    """Names of the vendor's subjects that kernels of a ladder are timed beside."""
    vendor = VENDORS[family]
    return SEVERAL.get(vendor, (vendor,)) if vendor else ()


@dataclass(frozen=True)
class Candidate:
    """One of the algorithms by which a vendor's library can do its work.

    index: among `of`; 0 is the one that the library thinks fastest. algorithm, tile, stages, cluster: the
    library's numbers for them. split_k: parts that k is split into. reduction: how their
    sums come together, 2 in the format of the sums, 4 in that of C, which rounds them.
    """

    index: int
    of: int
    algorithm: int
    tile: int
    stages: int
    split_k: int
    cluster: int
    workspace_bytes: int
    reduction: int = 0

    def __str__(self) -> str:
        return f"candidate {self.index + 1} of {self.of}"

    @property
    def facts(self) -> Json:
        """All but its place."""
        return {name: value for name, value in asdict(self).items() if name not in ("index", "of")}


@dataclass(frozen=True)
class Subject:
    """One thing that is timed on one workload.

    family: of the rung, such as "sgemm". name: a rung's id such as "sgemm/warp_tiling:128x128", or "cuBLAS",
    "cuBLASLt", "CUB".
    form: "schedule", "twin" (it takes sizes at run time), FIXED_TWIN (it is compiled for the workload) or
    "vendor". binaries: one per launch, in order; none for a vendor's library. candidate: of a library that
    leaves the choice to its callers.
    """

    family: str
    name: str
    form: str
    workload: Workload
    binaries: tuple[Binary, ...] = field(default=(), repr=False)
    candidate: Candidate | None = None

    @property
    def label(self) -> str:
        """How messages name it: "sgemm/naive (schedule)", "cuBLAS", "cuBLASLt, candidate 1 of 8"."""
        if self.form != "vendor":
            return f"{self.name} ({self.form})"
        return f"{self.name}, {self.candidate}" if self.candidate else self.name

    def refused(self, reason: str) -> Row:
        """The row of results that says why it was not timed; one line."""
        return {
            "family": self.family,
            "name": self.name,
            "form": self.form,
            "shape": str(self.workload),
            "reason": one_line(reason),
        }

    def identity(self) -> Row:
        """The part of a row of results that says what was timed."""
        names = {"family": self.family, "name": self.name, "form": self.form}
        return names | {"shape": str(self.workload), "workload": asdict(self.workload)}


def rate_of(family: str, workload: Workload, micros: float) -> tuple[float, str]:
    """The rate of a workload that takes so many microseconds, and its unit: "GB/s" of sums, "TFLOPS" of
    GEMMs."""
    return ladder_of(family).rate(workload, micros)
