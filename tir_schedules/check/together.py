"""Several checks: a file is compiled once for all that compile it alike."""

from __future__ import annotations

from typing import Iterator, Sequence

from tir_schedules.check.building import Built, Options, build
from tir_schedules.check.preparing import Prepared, Request, prepare
from tir_schedules.check.session import Checked, failed_check, perform
from tir_schedules.check.triton.checking import judge, prepare_triton
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.execution import warm
from tir_schedules.model.machine import Machine
from tir_schedules.source import Source


def check_together(requests: Sequence[Request], machine: Machine) -> Iterator[Checked]:
    """Each request's result, in order. A file that does not compile, and a kernel that the machine does not
    know, are results as well; BadInput and MissingTool are raised."""
    for request, ready in prepare_together(requests, machine):
        yield run_prepared(request, ready, machine)


def prepare_together(
    requests: Sequence[Request], machine: Machine
) -> Iterator[tuple[Request, Prepared | CheckFailed]]:
    """Each request ready to run, in order, or why it is not."""
    warm(machine)
    files: dict[tuple[Source, Options], Built | CheckFailed] = {}
    for request in requests:
        python = request.source.file.endswith(".py")
        alike = request.source, request.options
        if not python and alike not in files:
            files[alike] = build_for_all(request, requests)
        try:
            ready = prepare_triton(request) if python else prepare(request, built_or_raise(files[alike]))
        except BadInput as error:
            raise request.locate_error(error) from None
        except CheckFailed as error:
            ready = error
        yield request, ready


def built_or_raise(built: Built | CheckFailed) -> Built:
    if isinstance(built, CheckFailed):
        raise built
    return built


def run_prepared(request: Request, ready: Prepared | CheckFailed, machine: Machine) -> Checked:
    """What becomes of it when it is run."""
    label = request.launches[0].kernel or request.source.file
    if isinstance(ready, CheckFailed):
        return failed_check(label, ready)
    try:
        return (judge if request.source.file.endswith(".py") else perform)(ready, machine)
    except CheckFailed as error:
        return failed_check(label, error)


def build_for_all(request: Request, requests: Sequence[Request]) -> Built | CheckFailed:
    """The file with what all that compile it alike launch."""
    alike = [each for each in requests if (each.source, each.options) == (request.source, request.options)]
    try:
        return build(request.source, [one.kernel for each in alike for one in each.launches], request.options)
    except CheckFailed as error:
        return error
