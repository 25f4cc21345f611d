"""Instructions that are refused, each with what would be right in its place."""

from __future__ import annotations

from tir_schedules.machines.cpu.forms import Form, refused
from tir_schedules.machines.cpu.refusals import INSTRUCTIONS

FORMS: dict[str, Form] = {name: refused(remedy) for name, remedy in INSTRUCTIONS.items()}
