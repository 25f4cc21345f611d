"""A trace as JSON has it."""

from __future__ import annotations

from dataclasses import asdict

from tir_schedules.files import Json
from tir_schedules.insight.ring import printing
from tir_schedules.insight.trace.diffs import unified
from tir_schedules.insight.trace.states import State, Trace


def as_json(trace: Trace) -> Json:
    """Everything that is known of each state, with its texts and what changed in them."""
    return {
        "rung": trace.rung.id,
        "workload": asdict(trace.workload),
        "arch": trace.arch,
        "first_kernel": trace.first_kernel,
        "right": trace.right,
        "refusal": trace.refusal,
        "ring": printing.as_json(trace.ring) if trace.ring else None,
        "states": [state_json(trace, state) for state in trace.states],
        **({"why": trace.rung.why} if trace.rung.why else {}),
    }


def state_json(trace: Trace, state: State) -> Json:
    """A state; without "measured" where it does not compile, and "metrics" of it null where it was not
    executed."""
    step, measured = state.step, state.measured
    before = trace.states[max(0, state.number - 1)]
    found: Json = {"number": state.number}
    if step:
        found |= {
            "primitive": step.primitive,
            "annotation": step.annotation,
            "call": step.call,
            "what": step.what,
        }
        found["places"] = [asdict(place) for place in step.places]
    found |= {"tir": state.tir, "tir_diff": unified(before.tir, state.tir), "reason": state.reason}
    found |= {
        "cuda": state.cuda,
        "cuda_diff": unified(trace.cuda_before(state), state.cuda) if state.cuda else "",
        "same": state.same,
    }
    if measured:
        resources = asdict(measured.binary.resources)
        metrics = measured.metrics and measured.metrics.as_json()
        found["measured"] = {
            "right": measured.right,
            "wrong": measured.wrong,
            "outside": measured.outside,
            "unknown": measured.unknown,
        }
        found["measured"] |= {"resources": resources, "metrics": metrics}
    return found
