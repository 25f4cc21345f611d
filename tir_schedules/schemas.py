"""What files from elsewhere must hold: packs, results, sweeps, recorded counters, tuning records. See files.py for how one is checked.

Only what is read is described; a file may say more, unless a schema is `Exact`. Text has no line breaks or other control characters,
unless it is `Prose`.
"""
from __future__ import annotations

import base64
import re
from typing import Annotated, Any, Literal, TypeVar

from tir_schedules.bench.subjects import VENDORS
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.rung import FAMILIES
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS, workload_class

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
except ImportError as error:
    raise MissingTool(f"files are checked by pydantic, which does not load ({error}): pip install 'pydantic>=2.8'") from None

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
ARCH = re.compile(r"sm_\d{2,3}[af]?")
ENTRY = re.compile(r"[A-Za-z_$][\w$]*", re.A)
CUBIN = re.compile(r"cubins/[0-9a-f]{64}\.cubin")
EXTENT = r"[1-9]\d{0,9}"
KINDS = {"sgemm": "", "hgemm": rf" ({'|'.join(LAYOUTS)}) ({'|'.join(ACCUMULATORS)})", "reduce": " (int32|float32)"}
SHAPES = {family: re.compile((EXTENT if family == "reduce" else "x".join([EXTENT] * 3)) + kind) for family, kind in KINDS.items()}
LAST_GRID = (2**31 - 1, 65535, 65535)
LAST_BLOCK = (1024, 1024, 64)
MOST_THREADS = 1024
MOST_SHARED = 227 << 10
"""CUDA's limits of a launch: x, y and z of the grid and of a block, threads of a block, and its bytes of shared memory (sm_90)."""


def without_control(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError(f"{text[:40]!r} has control characters")
    return text


def matching(pattern: re.Pattern, example: str) -> AfterValidator:
    """Text that is as a whole what a pattern says."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text[:80]!r} is not such as {example}")
        return text

    return AfterValidator(check)


def scalar(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise ValueError(f"{'an object' if isinstance(value, dict) else 'a list'} is no single value")
    return without_control(value) if isinstance(value, str) else value


Prose = Annotated[str, Field(max_length=1 << 20)]
Text = Annotated[str, Field(max_length=1 << 16), AfterValidator(without_control)]
Item = TypeVar("Item")
Many = Annotated[list[Item], Field(fail_fast=True)]
"""A list of which the first wrong item is enough: of millions each would fill memory with its errors."""

Name = Annotated[Text, Field(min_length=1, max_length=400)]
Arch = Annotated[str, matching(ARCH, "sm_90")]
Extent = Annotated[int, Field(ge=1, lt=2**31)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Bytes = Annotated[int, Field(ge=0, lt=2**31)]
Micros = Annotated[float, Field(gt=1e-6, lt=1e12, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, lt=1e6, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=1e-9, lt=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]
Counter = Annotated[float, Field(ge=0, lt=2**53, allow_inf_nan=False)]
Scalar = Annotated[Any, AfterValidator(scalar)]
Family = Literal[FAMILIES]
Form = Literal["schedule", "twin", "vendor"]
Versions = dict[Name, Text]


class Open(BaseModel):
    """An object that may have more keys. Nothing is converted: 1.5, "1" and true are no integers."""

    model_config = ConfigDict(strict=True, extra="ignore")


class Exact(BaseModel):
    """An object that has these keys alone."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Workload(Exact):
    """The fields of any family's; which of them a family has is checked where the family is known."""

    m: Extent = None
    n: Extent = None
    k: Extent = None
    layout: Literal[LAYOUTS] = None
    accumulate: Literal[ACCUMULATORS] = None
    dtype: Literal["int32", "float32"] = None


def workload_of(family: str, fields: Workload) -> Any:
    """The workload itself. ValueError where the family has none with these fields."""
    given = fields.model_dump(exclude_unset=True)
    try:
        return workload_class(family)(**given)
    except (TypeError, BadInput) as error:
        raise ValueError(f"{given} is no workload of {family}: {error}") from None


class Task(Open):
    """What something was done for."""

    family: Family
    workload: Workload

    @field_validator("workload")
    @classmethod
    def fits(cls, workload: Workload, info: ValidationInfo) -> Workload:
        if "family" in info.data:
            workload_of(info.data["family"], workload)
        return workload


class Named(Open):
    """A row of what could be or could not be done, as tables find their way to it."""

    family: Family
    name: Name
    form: Form
    shape: Text

    @field_validator("shape")
    @classmethod
    def of_the_family(cls, shape: str, info: ValidationInfo) -> str:
        family = info.data.get("family")
        if family and not SHAPES[family].fullmatch(shape):
            examples = {"sgemm": "64x64x64", "hgemm": "64x64x64 nt float16", "reduce": "1024 int32"}
            raise ValueError(f"{shape[:80]!r} is no shape of {family}, such as {examples[family]!r}")
        return shape


class Refused(Named):
    reason: Text


class Row(Task, Named):
    """What was timed."""

    samples_us: Annotated[list[Micros], Field(min_length=1, fail_fast=True)]
    median_us: Micros
    spread: Share
    rate: Rate
    unit: Literal["GB/s", "TFLOPS"]
    sm_mhz: Annotated[list[Count], Field(max_length=2, fail_fast=True)] | None = None
    throttled: Many[Text] = []

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


class Device(Open):
    name: Name = None
    driver_version: Text = None
    arch: Arch = None


class Source(Open):
    """Where and how something was made."""

    command: Text = None
    date: Text = None
    versions: Versions = {}
    git_revision: Text = None
    arch: Arch = None


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


class Point(Swept):
    """The same with all that its table shows."""

    @model_validator(mode="after")
    def known_or_not(self) -> "Point":
        missing = [name for name in ("registers", "spill_bytes", "shared_bytes", "occupancy") if getattr(self, name) is None]
        if missing and self.cannot is None:
            raise ValueError(f"{missing[0]!r} is missing, and no reason stands under 'cannot'")
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
    predicted: dict[Name, Access] = None
    measured: dict[Name, Counter] = None

    @model_validator(mode="after")
    def counted_as_a_whole(self) -> "Launch":
        from tir_schedules.insight.nsight import METRICS

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


def within(extents: list[int], last: tuple[int, ...]) -> list[int]:
    for axis, extent, most in zip("xyz", extents, last):
        if extent > most:
            raise ValueError(f"{axis} is {extent}; CUDA takes at most {most}")
    return extents


Three = Annotated[list[Annotated[int, Field(ge=1, lt=2**31)]], Field(min_length=3, max_length=3, fail_fast=True)]


class PackedKernel(Exact):
    """A kernel's launch, within the limits of CUDA."""

    label: Name
    entry: Annotated[str, Field(max_length=1000), matching(ENTRY, "the name of a function")]
    params: Many[Name]
    grid: Annotated[Three, AfterValidator(lambda grid: within(grid, LAST_GRID))]
    block: Annotated[Three, AfterValidator(lambda block: within(block, LAST_BLOCK))]
    arch: Arch
    dynamic_shared: Annotated[int, Field(ge=0, le=MOST_SHARED)]

    @field_validator("block")
    @classmethod
    def of_a_block(cls, block: list[int]) -> list[int]:
        x, y, z = block
        if x * y * z > MOST_THREADS:
            raise ValueError(f"{x * y * z} threads; CUDA takes at most {MOST_THREADS} in a block")
        return block


class PackedResources(Exact):
    registers: Annotated[int, Field(ge=0, le=255)]
    shared: Annotated[int, Field(ge=0, le=MOST_SHARED)]
    stack: Bytes = 0
    spill_stores: Bytes = 0
    spill_loads: Bytes = 0
    barriers: Annotated[int, Field(ge=0, le=16)] = 0


class PackedLaunch(Exact):
    kernel: PackedKernel
    resources: PackedResources
    cubin: Annotated[str, matching(CUBIN, "cubins/SHA-256.cubin")]


class PackedSubject(Task):
    model_config = ConfigDict(extra="forbid")

    name: Name
    form: Form
    launches: Many[PackedLaunch]

    @model_validator(mode="after")
    def of_its_form(self) -> "PackedSubject":
        vendor = VENDORS[self.family]
        if self.form == "vendor" and (self.name != vendor or self.launches):
            raise ValueError(f"the vendor's library of {self.family} is {vendor}, without launches")
        if self.form != "vendor" and not self.launches:
            raise ValueError("it has no launches")
        return self


class Case(Exact):
    """What a pack says of a subject whose accesses are to be counted. Lists have an entry per launch."""

    flawed: bool
    predicted: Many[dict[Name, Access]] | None
    copies_under_p0: Many[Count] = []


def base64_of(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"it is not base64: {error}") from None
    return text


class Probe(Exact):
    cubin: Annotated[str, AfterValidator(base64_of)]
    resources: PackedResources


class Probes(Exact):
    """Single accesses of experiments/counter_probes.py: cubins by label, counters by name."""

    binaries: dict[Name, Probe]
    predicted: dict[Name, Many[dict[Name, Access]]]


class Cases(Open):
    cases: Many[Case]
    probes: Probes = None


class PackedSource(Source):
    """refused: what could not be compiled. points: of sweeps. counters: of what a profiler is to count."""

    refused: Many[Refused] = []
    points: Many[Point] = []
    counters: Cases = None


class Library(Exact):
    """The library with CUB's sums that lies in a pack."""

    sha256: Annotated[str, matching(re.compile("[0-9a-f]{64}"), "a SHA-256 in hex")]


class Manifest(Open):
    """What is in a pack."""

    about: PackedSource
    cub: Library = None
    subjects: Many[PackedSubject]

    @model_validator(mode="after")
    def a_case_for_each(self) -> "Manifest":
        cases = self.about.counters.cases if self.about.counters else None
        if cases is not None and len(cases) != len(self.subjects):
            raise ValueError(f"there are {len(cases)} cases of counters for {len(self.subjects)} subjects")
        for number, (case, subject) in enumerate(zip(cases or (), self.subjects)):
            for what in (case.predicted, case.copies_under_p0):
                if what and len(what) != len(subject.launches):
                    raise ValueError(f"case {number} has counters of {len(what)} launches; its subject has {len(subject.launches)}")
        return self


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
        said = {"dlight": ("rule",), "MetaSchedule": ("trials", "refused", "search_s")}.get(self.role, ("config",))
        for name in said:
            if getattr(self, name) is None:
                raise ValueError(f"{name!r} is missing")
        return self


class Tuners(Results):
    """What experiments/tuners.py writes."""

    points: Many[Contestant]
