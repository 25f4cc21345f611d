"""Configurations as they are written on a command line: sgemm/transposed:32x32, sgemm/vectorized:bm=64,tm=4,
and sgemm/transposed:32x32,bm=64, which begins with a name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.model.rung import Rung

SWITCHES = {"true": True, "false": False, "1": True, "0": False}


def varied(rung: Rung, variant: str) -> Rung:
    """The rung in the configuration that a variant says. BadInput for a name or a field it does not have."""
    if not variant:
        return rung
    first, *settings = variant.split(",")
    if "=" in first:
        name, settings = "", [first, *settings]
    else:
        name = first
    if name and name not in rung.configs:
        known = f"{', '.join(rung.configs)} and " if rung.configs else ""
        raise BadInput(
            f"{rung.id} has no configuration {name!r}{nearest(name, rung.configs)}; it takes {known}"
            f"{field_names(rung.config) or 'no fields'}"
        )
    config = rung.configs[name] if name else rung.config
    changes: dict[str, Any] = {}
    for setting in settings:
        changed, value = change(rung, config, setting)
        if changed in changes:
            raise BadInput(f"{rung.id} is given {changed} twice")
        changes[changed] = value
    try:
        config = replace(config, **changes)
    except Exception as error:  # __post_init__ of a configuration may refuse it in any way
        raise BadInput(f"{rung.id}:{variant}: {error}") from error
    return replace(rung, config=config, variant=variant)


def change(rung: Rung, config: Any, setting: str) -> tuple[str, Any]:
    """A field of the configuration and its value, of "bm=64"."""
    name, equals, text = setting.partition("=")
    known = field_names(config)
    if not equals or name not in (field.name for field in fields(config)):
        wrong = f"has no field {shown(name)}" if equals else f"takes NAME=VALUE, not {shown(setting)}"
        raise BadInput(
            f"the configuration of {rung.id} {wrong}{nearest(name, known.split(', ')) if equals else ''};"
            f" its fields: {known or 'none'}"
        )
    return name, value_of(f"{name} of {rung.id}", getattr(config, name), text)


def value_of(name: str, now: Any, text: str) -> Any:
    """A value of the type that a field has now. name: of the field, for messages."""
    if isinstance(now, bool):
        if text.lower() not in SWITCHES:
            raise BadInput(f"{name} is {str(now).lower()}; it takes true or false, not {shown(text)}")
        return SWITCHES[text.lower()]
    if isinstance(now, int):
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise BadInput(f"{name} is {now}; it takes an integer from 0 to 999999999, not {shown(text)}")
        return int(text)
    if isinstance(now, float):
        try:
            return float(text)
        except ValueError:
            raise BadInput(f"{name} takes a number such as {now}, not {shown(text)}") from None
    if isinstance(now, str):
        return text
    raise BadInput(f"{name} is {shown(now)}, which no command line sets: change it in a file")


def field_names(config: Any) -> str:
    return ", ".join(field.name for field in fields(config))
