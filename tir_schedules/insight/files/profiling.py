"""A file's kernels counted by Nsight Compute, beside what the CPU machine predicts."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Sequence, cast

from tir_schedules.check.preparing import Request
from tir_schedules.check.together import performed
from tir_schedules.errors import CheckFailed, one_line
from tir_schedules.insight.files.views import View, ready_for, viewed
from tir_schedules.insight.profile.cases import cubin_name, peculiarities, predictions
from tir_schedules.insight.profile.nsight import Entry, nsight_counters
from tir_schedules.insight.profile.results import Result, document
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.subjects.packs import LAUNCH_FIELDS
from tir_schedules.subjects.results import about


def profiled_file(machine: GpuMachine, request: Request, words: Sequence[str], command: str) -> Result:
    """Count the launches of a check on this computer's GPU. words: those of the `check` that makes them.
    CheckFailed for a kernel that does not run there, or leaves what is wrong."""
    ready = ready_for(request)
    if isinstance(ready, CheckFailed):
        raise ready
    on_gpu = performed(request, ready, machine)
    (view,) = viewed([request])
    for outcome in (on_gpu.outcome, view.checked.outcome):
        if outcome.error or outcome.wrong:
            raise CheckFailed(f"it is not counted: {one_line(outcome.faults[0])}")
    entries = entries_of(view)
    kernels = [step.binary.kernel.entry for step in ready.steps] * len(ready.trials)
    check = [sys.executable, "-m", "tir_schedules", "check", *words, "--machine", "gpu"]
    for entry, measured in zip(entries, nsight_counters(check, kernels)):
        entry["measured"] = measured
    return document(command, {**about(command), "arch": request.options.arch}, entries)


def entries_of(view: View) -> list[Entry]:
    """One of each launch, with the predicted counters."""
    entries = []
    for number, (launch, predicted) in enumerate(zip(view.launches, predictions(view.launches))):
        binary = launch.binary
        entry: dict[str, object] = {name: getattr(binary.kernel, name) for name in LAUNCH_FIELDS}
        entry |= {"cubin": cubin_name(binary), "resources": asdict(binary.resources), "predicted": predicted}
        entry |= {"launch": number} if len(view.launches) > 1 else {}
        entry |= {name: value for name, value in peculiarities(binary).items() if value}
        entries.append(cast(Entry, entry))
    return entries
