"""What a pack's manifest holds."""

# A field that may be left out but not be null has None for its default, and a Literal takes a tuple:
# pydantic knows both, type checkers do not.
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import base64
import re
from math import prod
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from tir_schedules.errors import shown
from tir_schedules.machines.tensor_map import MOST_DIMENSIONS, faults_of
from tir_schedules.model.gpus import MAX_BLOCK, MAX_CLUSTER, MAX_THREADS, find_sm
from tir_schedules.model.launch import MOST_BLOCKS, TensorMap
from tir_schedules.subjects.schemas.kinds import (
    Arch,
    Bytes,
    Count,
    Exact,
    Form,
    Many,
    Name,
    Open,
    Source,
    Task,
    matching,
)
from tir_schedules.subjects.schemas.results import Access, Point, Refused
from tir_schedules.subjects.subject import vendors_of

ENTRY = re.compile(r"[A-Za-z_$][\w$]*", re.A)
CUBIN = re.compile(r"cubins/[0-9a-f]{64}\.cubin")
MOST_SHARED = find_sm("sm_90").shared_limit
"""Bytes of shared memory of a block, on the architecture that has most of it."""


def within(extents: list[int], last: tuple[int, ...]) -> list[int]:
    for axis, extent, most in zip("xyz", extents, last):
        if extent > most:
            raise ValueError(f"{axis} is {extent}; CUDA takes at most {most}")
    return extents


Three = Annotated[
    list[Annotated[int, Field(ge=1, lt=2**31)]], Field(min_length=3, max_length=3, fail_fast=True)
]


Extents = Annotated[list[Annotated[int, Field(ge=0, lt=2**53)]], Field(max_length=MOST_DIMENSIONS)]


class PackedMap(Exact):
    """A tensor map among the parameters, such as CUDA takes it."""

    name: Name
    of: Name
    element: Name
    shape: Extents
    pitches: Extents
    box: Extents
    swizzle: Bytes
    promotion: Bytes

    @model_validator(mode="after")
    def as_cuda_takes_it(self) -> "PackedMap":
        for fault in faults_of(TensorMap(**self.model_dump())):
            raise ValueError(fault)
        return self


def a_copy(workspace: list[str | list[int]]) -> list[str | list[int]]:
    """ValueError unless it is the name of a copy of A or B, and its rows and columns."""
    name, shape = workspace
    if name not in ("A_rows", "B_rows") or not isinstance(shape, list) or len(shape) != 2:
        raise ValueError(f"a workspace is A_rows or B_rows, and its rows and columns, not {shown(workspace)}")
    return workspace


Workspace = Annotated[
    list[Name | Extents], Field(min_length=2, max_length=2, fail_fast=True), AfterValidator(a_copy)
]


class PackedKernel(Exact):
    """A kernel's launch, within the limits of CUDA."""

    label: Name
    entry: Annotated[str, Field(max_length=1000), matching(ENTRY, "the name of a function")]
    params: Many[Name]
    grid: Annotated[Three, AfterValidator(lambda grid: within(grid, MOST_BLOCKS))]
    block: Annotated[Three, AfterValidator(lambda block: within(block, MAX_BLOCK))]
    arch: Arch
    dynamic_shared: Annotated[int, Field(ge=0, le=MOST_SHARED)]
    cluster: Three = [1, 1, 1]
    maps: Many[PackedMap] = []
    parts: Count = 1
    workspaces: Many[Workspace] = []
    early: bool = False

    @model_validator(mode="after")
    def parts_are_blocks_along_z(self) -> "PackedKernel":
        if self.parts not in (1, self.grid[2]):
            raise ValueError(f"{self.parts} parts of a grid {self.grid}; there is one for each block along z")
        return self

    @field_validator("block")
    @classmethod
    def of_a_block(cls, block: list[int]) -> list[int]:
        if prod(block) > MAX_THREADS:
            raise ValueError(f"{prod(block)} threads; CUDA takes at most {MAX_THREADS} in a block")
        return block

    @model_validator(mode="after")
    def in_whole_clusters(self) -> "PackedKernel":
        if prod(self.cluster) > MAX_CLUSTER:
            raise ValueError(f"{prod(self.cluster)} blocks in a cluster; CUDA takes at most {MAX_CLUSTER}")
        if any(extent % size for extent, size in zip(self.grid, self.cluster)):
            raise ValueError(f"the grid {self.grid} is not a multiple of the cluster {self.cluster}")
        return self

    @model_validator(mode="after")
    def maps_are_parameters(self) -> "PackedKernel":
        names = [tensor.name for tensor in self.maps]
        for name in names:
            if self.params.count(name) != 1 or names.count(name) != 1:
                raise ValueError(f"the tensor map {shown(name)} is not one of the parameters, once")
        return self


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
        vendors = vendors_of(self.family)
        if self.form == "vendor" and (self.name not in vendors or self.launches):
            known = " or ".join(vendors)
            raise ValueError(f"the vendor's library of {self.family} is {known}, without launches")
        if self.form != "vendor" and not self.launches:
            raise ValueError("it has no launches")
        return self


class Case(Exact):
    """What a pack says of a subject whose accesses are to be counted. Lists have an entry per launch."""

    flawed: bool
    predicted: Many[dict[Name, Access]] | None
    copies_under_p0: Many[Count] = []
    waits: Many[Count] = []


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
            for what in (case.predicted, case.copies_under_p0, case.waits):
                if what and len(what) != len(subject.launches):
                    raise ValueError(
                        f"case {number} has counters of {len(what)} launches; its subject has"
                        f" {len(subject.launches)}"
                    )
        return self
