"""What is compiled here and launched where the GPU is: arguments in a .zip, several at once, and notes."""

from __future__ import annotations

import io
import time
import zipfile
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence, TypeVar

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.files import Json, parse_json, read_json
from tir_schedules.machines.gpu import GpuMachine, packed
from tir_schedules.model.kernel import Binary
from tir_schedules.subjects.results import about

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def saved(arguments: dict[str, Any]) -> bytes:
    """Arguments as the content of a file."""
    content = io.BytesIO()
    np.savez_compressed(content, **arguments)
    return content.getvalue()


def loaded(archive: zipfile.ZipFile, name: str) -> dict[str, np.ndarray]:
    """Arguments that `saved` made a file of a pack."""
    return dict(np.load(io.BytesIO(archive.read(name))))


def by_value(value: np.ndarray) -> Any:
    """What CuPy passes by value: a number, or an array that is one struct."""
    return value if value.dtype.kind == "V" else value[()]


def launched(
    machine: GpuMachine,
    binary: Binary,
    before: dict[str, np.ndarray],
    blank: Sequence[str] = (),
    cooperative: bool = False,
) -> dict[str, np.ndarray]:
    """Arguments after a launch; what has no dimension is passed by value. blank: arrays that nothing has
    written, and that are not written here either. Each array has memory of its own: initcheck and memcheck
    see what a kernel does to it."""
    cupy, kernel = machine.cupy, binary.kernel
    cupy.cuda.set_allocator(None)
    with machine.explaining(kernel.label), machine.device:
        there = {
            name: cupy.empty(value.shape, value.dtype) if name in blank else cupy.asarray(value)
            for name, value in before.items()
            if value.ndim
        }
        machine.synchronize()  # the copies were not enqueued on the machine's own stream
        given = packed(kernel, {name: there.get(name, by_value(value)) for name, value in before.items()})
        machine.load(binary)(
            kernel.grid, kernel.block, given, kernel.dynamic_shared, machine.stream, cooperative
        )  # fmt: skip
        machine.synchronize()
        return {name: array.get() for name, array in there.items()}


def manifest_of(path: Path, name: str, what: str, remedy: str) -> Json:
    """The manifest of a pack. BadInput for a file that is none. what: "the corpus"."""
    try:
        with zipfile.ZipFile(path) as archive:
            return parse_json(archive.read(name), path, remedy)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} is not a pack of {what} ({error}): {remedy}") from None


def read_result(path: Path, what: str, remedy: str) -> Json:
    """An earlier result, which has `cases`. BadInput for a file that is something else."""
    result = read_json(path, remedy)
    if not isinstance(result, dict) or not isinstance(result.get("cases"), dict):
        raise BadInput(f"{path} is not a result of {what}: {remedy}")
    return result


def at_once(
    do: Callable[[Task], Outcome], tasks: Iterable[Task], jobs: int
) -> Iterator[tuple[Task, Outcome]]:
    """Each task and what `do` makes of it, as they end; so many at a time."""
    pool = ThreadPoolExecutor(jobs)
    try:
        under_way = {pool.submit(do, task): task for task in tasks}
        for done in as_completed(under_way):
            yield under_way[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def noting(result: Json, command: str, options: Namespace) -> Callable[[], None]:
    """Add a run to the notes of a result; what is returned brings its seconds and launches up to date, at
    each launch."""
    begun, note = time.monotonic(), {**about(command), "jobs": options.jobs, "seconds": 0.0, "launches": 0}
    result.setdefault("runs", []).append(note)

    def once_more() -> None:
        note["launches"] += 1
        note["seconds"] = round(time.monotonic() - begun, 1)

    return once_more


def positive(text: str) -> int:
    """A number of jobs, for argparse. ValueError for anything else, which becomes a line."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def cells(*values: object) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(map(str, values))} |"
