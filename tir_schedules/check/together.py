"""Several checks of one file: it is compiled once for all that compile it alike."""

from __future__ import annotations

import threading
from typing import Iterator, Sequence

from tir_schedules.check.building import Built, Options, build
from tir_schedules.check.preparing import Request, prepare
from tir_schedules.check.session import Checked, failed, perform
from tir_schedules.check.triton.checking import judged, prepare_triton
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.model.machine import Machine


def check_together(requests: Sequence[Request], machine: Machine) -> Iterator[Checked]:
    """Each request's result, in order. A file that does not compile, and a kernel that the machine does not
    know, are results as well; BadInput and MissingTool are raised."""
    if machine.name == "cpu":
        threading.Thread(target=warmed, daemon=True).start()
    files: dict[Options, Built | CheckFailed] = {}
    for request in requests:
        label = request.launches[0].kernel or request.source.file
        if request.source.file.endswith(".py"):
            yield of_python(request, label, machine)
            continue
        if request.options not in files:
            files[request.options] = made(request, requests)
        found = files[request.options]
        if isinstance(found, CheckFailed):
            yield failed(label, found)
            continue
        try:
            yield perform(prepare(request, found), machine)
        except BadInput as error:
            raise request.at_its_place(error) from None
        except CheckFailed as error:
            yield failed(label, error)


def of_python(request: Request, label: str, machine: Machine) -> Checked:
    """Of a Triton kernel."""
    try:
        return judged(prepare_triton(request), machine)
    except BadInput as error:
        raise request.at_its_place(error) from None
    except CheckFailed as error:
        return failed(label, error)


def made(request: Request, requests: Sequence[Request]) -> Built | CheckFailed:
    """The file with what all that compile it alike launch."""
    alike = [each for each in requests if each.options == request.options]
    try:
        return build(request.source, [one.kernel for each in alike for one in each.launches], request.options)
    except CheckFailed as error:
        return error


def warmed() -> None:
    """The machine's own library is compiled where it is not kept, while nvcc is at work."""
    try:
        the_library()
    except Exception:  # is met, and told, where it is needed
        pass
