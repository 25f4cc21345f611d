"""What was measured: results of benchmarks, sweeps and tuners, recorded counters, tuning records."""

# A field that may be left out but not be null has None for its default, and a Literal takes a tuple:
# pydantic knows both, type checkers do not.
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from tir_schedules.model.counters import METRICS
from tir_schedules.subjects.schemas.kinds import (  # fmt: skip
    Arch,
    Count,
    Counter,
    Device,
    Exact,
    Family,
    Many,
    Micros,
    Name,
    Named,
    Open,
    Prose,
    Rate,
    Scalar,
    Seconds,
    Share,
    Source,
    Task,
    Text,
    Versions,
    workload_of,
)


class Refused(Named):
    reason: Text


class Candidate(Open):
    """An algorithm of a vendor's library that was tried."""

    algorithm: Count
    tile: Count
    stages: Count
    split_k: Count
    cluster: Count
    workspace_bytes: Count
    reduction: Count = None
    samples_us: Many[Micros] = None
    refused: Text = None


class VendorDetail(Open):
    """chosen: which of the candidates was timed, from 0."""

    chosen: Count
    candidates: Many[Candidate]

    @model_validator(mode="after")
    def one_of_them(self) -> "VendorDetail":
        if self.chosen >= len(self.candidates):
            raise ValueError(f"'chosen' is {self.chosen}; there are {len(self.candidates)} candidates")
        return self


class Row(Task, Named):
    """What was timed."""

    samples_us: Annotated[list[Micros], Field(min_length=1, fail_fast=True)]
    median_us: Micros
    spread: Share
    rate: Rate
    unit: Literal["GB/s", "TFLOPS"]
    sm_mhz: Annotated[list[Count], Field(max_length=2, fail_fast=True)] | None = None
    clock_mhz: Rate = None
    throttled: Many[Text] = []
    vendor_detail: VendorDetail = None
    cold_us: Annotated[Many[Micros], Field(min_length=1)] = None
    first_us: Annotated[Many[Micros], Field(min_length=1)] = None

    @field_validator("samples_us", mode="before")
    @classmethod
    def some(cls, samples: Any) -> Any:
        if samples == []:
            raise ValueError("there are no samples")
        return samples

    @model_validator(mode="after")
    def of_its_workload(self) -> "Row":
        expected = str(workload_of(self.family, self.workload))
        if self.shape != expected:
            raise ValueError(f"its shape is {self.shape!r} and its workload {expected}")
        return self


class Limit(Open):
    """A rate of nothing: what was measured was too short for the clock."""

    name: Name
    rate: Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]
    unit: Name
    sm_mhz: Count | None = None


class Results(Source):
    """What `bench --output` writes."""

    command: Text
    versions: Versions
    packed: Source = None
    device: Device
    policy: dict[Name, Scalar]
    limits: Many[Limit]
    rows: Many[Row]
    refused: Many[Refused]
    notes: Many[Text] = []


class Access(Open):
    requests: Count = 0
    cost: Count = 0
    ideal: Count = 0


class FullAccess(Access):
    requests: Count
    cost: Count
    ideal: Count


class Occupancy(Open):
    blocks: Count


class Swept(Named):
    """What is known of a point of a sweep without a GPU; or why it cannot be."""

    cannot: Text = None
    registers: Count = None
    spill_bytes: Count = None
    shared_bytes: Count = None
    occupancy: Occupancy = None
    reads: FullAccess = None
    writes: FullAccess = None
    global_reads: FullAccess = None
    block_sectors: Count = None
    warp_instructions: Count = None
    barriers: Count = None


class Point(Swept):
    """The same with all that its table shows."""

    @model_validator(mode="after")
    def known_or_not(self) -> "Point":
        missing = [
            name
            for name in ("registers", "spill_bytes", "shared_bytes", "occupancy")
            if getattr(self, name) is None
        ]
        if missing and self.cannot is None:
            raise ValueError(f"{missing[0]!r} is missing, and 'cannot' gives no reason")
        return self


class ResultsAndPoints(Results):
    """What a report reads of a sweep."""

    points: Many[Swept] = []


class Sweeps(Results):
    """What experiments/sweeps.py writes."""

    arch: Arch
    points: Many[Point]


class Launch(Open):
    """A launch of a kernel whose accesses were counted, or not."""

    label: Name
    probe: Name = None
    workload: dict[Name, Scalar] | None = None
    launch: Count = 0
    copies_under_p0: Count = 0
    waits: Count = 0
    predicted: dict[Name, Access] = None
    measured: dict[Name, Counter] = None

    @model_validator(mode="after")
    def counted_as_a_whole(self) -> "Launch":
        if self.measured is not None and self.predicted is None:
            raise ValueError("it has 'measured' without 'predicted'")
        for name in METRICS.keys() - (self.measured if self.measured is not None else METRICS).keys():
            raise ValueError(f"'measured' has no {name}")
        return self


class Counters(Source):
    """What `profile -o` and experiments/counters_on_gpu.py write."""

    packed: Source | None = None
    device: Device | None = None
    sanitizers: dict[Name, Text] = {}
    kernels: Many[Launch]


class Tried(Open):
    kind: Name
    count: Count
    reason: Prose


class Contestant(Open):
    """A kernel of experiments/tuners.py."""

    family: Family
    name: Name
    shape: Text
    role: Literal["hand-chosen", "tuned", "dlight", "MetaSchedule"]
    config: dict[Name, Scalar] = None
    rule: Text = None
    trials: Count = None
    refused: Many[Tried] = None
    search_s: Share = None

    @model_validator(mode="after")
    def in_its_role(self) -> "Contestant":
        said = {"dlight": ("rule",), "MetaSchedule": ("trials", "refused", "search_s")}.get(
            self.role, ("config",)
        )
        for name in said:
            if getattr(self, name) is None:
                raise ValueError(f"{name!r} is missing")
        return self


class Tuners(Results):
    """What experiments/tuners.py writes."""

    points: Many[Contestant]


class Search(Open):
    """A search among recorded times, or how well the cost model ranks them."""

    rung: Name
    shape: Text
    configurations: Count
    seed: Count
    search: Literal["tune", "random search"] = None
    shares: Many[Share] = None
    trained: Count = None
    spearman: float = None

    @model_validator(mode="after")
    def either(self) -> "Search":
        given = [
            name for name in ("search", "shares", "trained", "spearman") if getattr(self, name) is not None
        ]
        if given not in (["search", "shares"], ["trained", "spearman"]):
            raise ValueError("it has neither 'search' with 'shares' nor 'trained' with 'spearman'")
        return self


class Timed(Source):
    """When, and on what, times were taken."""

    device: Device


class Searches(Source):
    """What experiments/searches.py writes."""

    timed: Timed
    searches: Many[Search]


class Record(Task, Exact):
    """A line of a file of tuning records, besides what `records.Record` checks itself."""

    model_config = ConfigDict(extra="forbid")

    rung: Name
    point: dict[Name, Scalar]
    arch: Arch
    device: Name
    kind: Literal["measured", "predicted"]
    seconds: Many[Seconds]
    error: Prose
    source: Text
    versions: Versions
    revision: Text
    date: Text
    trial: Count
    metaschedule: Any = None
