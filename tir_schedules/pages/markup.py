"""The one place where markup is made that no template makes: elements, whose texts and attributes are
escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup


def element(tag: str, /, *content: Any, **attributes: Any) -> Markup:
    """An element of HTML or SVG. content: elements, and text, which is escaped.

    attributes: by name, class as class_, text-anchor as text_anchor; those that are None are left out.
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(content)
    return (
        Markup("<{}{}>{}</{}>").format(tag, given, inside, tag)
        if content
        else Markup("<{}{}/>").format(tag, given)
    )
