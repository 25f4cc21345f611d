# pyright: strict
"""`layout` of an array in global memory: which thread loads or stores which element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Sequence

from tir_schedules.api.checking import requests_for
from tir_schedules.api.options import Asking, AskingAll, check_names
from tir_schedules.api.problems import job_of, options_of
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import CODE, OWN, RUNG, Subject, as_rung, kind_of
from tir_schedules.check.options import only
from tir_schedules.check.preparing import Request
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, to_json
from tir_schedules.insight.files.views import map_of_file, ready_for
from tir_schedules.insight.threads.mapping import (
    ACTS,
    ALL,
    BY,
    Asked,
    ThreadMap,
    check_selection,
    launches_of_rung,
    thread_map,
)
from tir_schedules.insight.threads.views import Shown
from tir_schedules.ladders.problems import SMALL_SHAPES, Job
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.run import launches

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, repr=False)
class Layout(Result):
    """Who accesses an array in global memory. map: `map.accesses` is a numpy array with a row for each time a
    thread accesses an element: element, block, warp, lane, step."""

    shown: Shown

    @property
    def map(self) -> ThreadMap:
        return self.shown.found

    def __repr__(self) -> str:
        return f"Layout({self.shown.title})"

    def show(self) -> None:
        self.shown.print()

    def to_json(self) -> Json:
        return to_json(self.shown.as_json())

    def page(self) -> str:
        """A self-contained HTML page."""
        return self.shown.document(".html")


def map_of_rung(job: Job, asked: Asked, arch: str, twin: bool) -> ThreadMap:
    """Who accesses an array of a rung's launches."""
    rung, workload = job
    make = load_twin if twin else lower
    binaries = [compile_kernel(kernel) for kernel in launches(make, rung, workload, arch)]
    return thread_map(launches_of_rung(binaries, workload, asked), asked, str(workload))


def map_of_request(request: Request, asked: Asked) -> ThreadMap:
    """Who accesses an array of kernels of one's own. Raises CheckFailed if these do not compile."""
    ready = ready_for(request)
    if isinstance(ready, CheckFailed):
        raise ready
    return map_of_file(ready, asked, request.source.file)


def layout(
    subject: Subject,
    array: str,
    *,
    twin: bool = False,
    by: str | None = None,
    at: Sequence[int] | None = None,
    warp: int | None = None,
    lane: int | None = None,
    tile: int | str | None = None,
    access: str = "",
    columns: int = 0,
    launch: int | None = None,
    arch: str = CPU_ARCH,
    **asked: Unpack[AskingAll],
) -> Layout:
    """Which thread loads or stores which element of an array in global memory, as executed, with no GPU.

    - subject: a rung by name or as an object; or one path of CUDA or PTX, or one Schedule, PrimFunc or
      IRModule of TVM, with the options of `check`.
    - array: its name, such as "C".
    - twin: take the hand-written twin of the rung.
    - by: what colours elements in pictures: "block" (all blocks), "warp", "scheduler", "lane" or "step". None
      gives three pictures: a block by warp, one of its warps by lane, and one lane by step.
    - at: the block (x, y, z); None for the first.
    - warp, lane: which warp and lane; None for the first that access the array, and for all with `by`.
    - tile: the accesses up to the next barrier, counted from 0, or "all". None takes the first tile of loads,
      and all tiles of stores.
    - access: "store", "update" or "load"; "" for the first of these that occurs.
    - columns: elements in a row of the picture, for an array of one dimension.
    - launch: the number of the launch, from 1 on. None takes the last launch that uses an output of a rung,
      or else the first launch that accesses the array.

    Raises BadInput if a name does not exist or the block does not access the array, and CheckFailed if a
    kernel does not compile.
    """
    if not isinstance(array, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"array is {array!r}; it takes the name of an array such as 'C'")
    if by not in (None, *BY):
        raise BadInput(f"by is {by!r}; it can be {', '.join(BY)}")
    if access not in ("", *ACTS):
        raise BadInput(f"access is {access!r}; it can be {', '.join(ACTS)}")
    if tile is not None and tile != "all" and not (isinstance(tile, int) and tile >= 0):
        raise BadInput(f"tile is {tile!r}; it takes a number from 0 on, or 'all'")
    kind = kind_of(subject, "layout", RUNG, OWN, CODE)
    check_arch(arch)
    if at is not None and (not 1 <= len(at) <= 3 or not all(hasattr(one, "__index__") for one in at)):
        raise BadInput(f"at is {at!r}; it takes up to three integers such as (0, 1, 0)")
    if launch is not None and not isinstance(launch, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"launch is {launch!r}; it takes a number from 1 on")
    check_selection(by, {"at": at, "warp": warp, "lane": lane})
    x, y, z = (*map(int, at or (0,)), 0, 0)[:3]
    block = None if by == "block" else (x, y, z)
    wanted = Asked(array, block, access, ALL if isinstance(tile, str) else tile, columns, launch)
    given: dict[str, Any] = dict(asked)
    if kind == RUNG:
        options = options_of(given, "layout", arch=arch)
        found = map_of_rung(
            job_of(as_rung(subject), options, "layout", SMALL_SHAPES, arch), wanted, arch, twin
        )
    else:
        check_names(given, Asking, "layout")
        if twin:
            raise BadInput("twin is for rungs")
        found = map_of_request(only(requests_for(subject, arch, given, None), "layout"), wanted)
    return Layout(Shown(found, by, warp, lane))
