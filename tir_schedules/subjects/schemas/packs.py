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

from tir_schedules.model.gpus import MAX_BLOCK, MAX_THREADS, find_sm
from tir_schedules.model.launch import MOST_BLOCKS
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


class PackedKernel(Exact):
    """A kernel's launch, within the limits of CUDA."""

    label: Name
    entry: Annotated[str, Field(max_length=1000), matching(ENTRY, "the name of a function")]
    params: Many[Name]
    grid: Annotated[Three, AfterValidator(lambda grid: within(grid, MOST_BLOCKS))]
    block: Annotated[Three, AfterValidator(lambda block: within(block, MAX_BLOCK))]
    arch: Arch
    dynamic_shared: Annotated[int, Field(ge=0, le=MOST_SHARED)]

    @field_validator("block")
    @classmethod
    def of_a_block(cls, block: list[int]) -> list[int]:
        if prod(block) > MAX_THREADS:
            raise ValueError(f"{prod(block)} threads; CUDA takes at most {MAX_THREADS} in a block")
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
                    raise ValueError(
                        f"case {number} has counters of {len(what)} launches; its subject has"
                        f" {len(subject.launches)}"
                    )
        return self
