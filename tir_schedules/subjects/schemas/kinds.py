"""Kinds of values, and what several schemas have in common."""

# A field that may be left out but not be null has None for its default, and a Literal takes a tuple:
# pydantic knows both, type checkers do not.
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportInvalidTypeForm=false

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from tir_schedules.errors import BadInput, MissingTool, shown
from tir_schedules.ladders.known import ladder_of, workload_class
from tir_schedules.ladders.problems import Problem, possible
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS, OPERANDS, PRODUCTS, RESULTS

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
except ImportError as error:
    raise MissingTool(
        f"files are checked by pydantic, which does not load ({error}): pip install 'pydantic>=2.8'"
    ) from None

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
ARCH = re.compile(r"sm_\d{2,3}[af]?")
EXTENT = r"[1-9]\d{0,9}"


@cache
def shape_of(family: str) -> re.Pattern[str]:
    """What workloads of a ladder are written as, such as 64x64x64 nt float16."""
    ladder = ladder_of(family)
    problem, values = (
        Problem(family, ladder.shape),
        {name: kind.values for name, kind in ladder.kinds.items()},
    )
    written = (str(workload).partition(" ") for workload in possible(problem, values))
    kinds = "|".join(re.escape(space + kind) for _, space, kind in written)
    return re.compile("x".join([EXTENT] * len(ladder.extents)) + f"({kinds})")


def without_control(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError(f"{shown(text)} has control characters")
    return text


def matching(pattern: re.Pattern, example: str) -> AfterValidator:
    """Text that is as a whole what a pattern says."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{shown(text)} does not look like {example}")
        return text

    return AfterValidator(check)


def scalar(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise ValueError(f"{'an object' if isinstance(value, dict) else 'a list'} is not a single value")
    return without_control(value) if isinstance(value, str) else value


Prose = Annotated[str, Field(max_length=1 << 20)]
Text = Annotated[str, Field(max_length=1 << 16), AfterValidator(without_control)]
Item = TypeVar("Item")
Many = Annotated[list[Item], Field(fail_fast=True)]
"""A list whose check stops at the first wrong item: errors of millions of items would fill the memory."""

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
Form = Literal["schedule", "twin", FIXED_TWIN, "vendor"]
Versions = dict[Name, Text]


class Open(BaseModel):
    """An object that may have more keys. Nothing is converted: 1.5, "1" and true are not integers."""

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
    dtype: Literal[("int32", "float32", *OPERANDS)] = None
    output: Literal[RESULTS] = None
    products: Literal[PRODUCTS] = None


def workload_of(family: str, fields: Workload) -> Any:
    """The workload itself. ValueError where the family has none with these fields."""
    given = fields.model_dump(exclude_unset=True)
    try:
        return workload_class(family)(**given)
    except (TypeError, BadInput) as error:
        raise ValueError(f"{given} is not a workload of {family}: {error}") from None


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
        if family and not shape_of(family).fullmatch(shape):
            ladder = ladder_of(family)
            example = str(ladder.workload_class(*(64,) * len(ladder.extents)))
            raise ValueError(f"{shown(shape)} is not a shape of {family}, such as {example!r}")
        return shape


class Device(Open):
    name: Name = None
    driver_version: Text = None
    arch: Arch = None


class Drawing(Open):
    """Shapes that were drawn. kinds: of each. chosen: the schedule that NAME/fastest stands for, if others
    were timed beside it, by a rule or as candidates. candidates: how many were asked for. estimated:
    microseconds of all of them, by shape and name."""

    shapes: Count
    seed: Count
    kinds: dict[Text, Name]
    chosen: dict[Text, Name] = {}
    candidates: Extent = 1
    estimated: dict[Text, dict[Name, Micros]] = {}
    rule: Text = None


class Source(Open):
    """Where and how something was made."""

    command: Text = None
    date: Text = None
    versions: Versions = {}
    git_revision: Text = None
    arch: Arch = None
    drawn: Drawing = None
