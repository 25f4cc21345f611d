"""Markup that no template makes: elements, with texts and attributes escaped."""

from __future__ import annotations

from markupsafe import Markup, escape


def element(tag: str, /, *content: object, **attributes: object) -> Markup:
    """An element of HTML or SVG. content: elements, and text, which is escaped.

    attributes: by name, with class_ for class and text_anchor for text-anchor; None leaves one out.
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), value)
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(map(escape, content))
    return (
        Markup("<{}{}>{}</{}>").format(tag, given, inside, tag)
        if content
        else Markup("<{}{}/>").format(tag, given)
    )
