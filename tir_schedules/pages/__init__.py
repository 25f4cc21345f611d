"""HTML pages: self-contained files from jinja2 templates on `base.html.j2`, with `style.css` inside, and
elements that no template makes."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    import jinja2


def render(template: str, **values: object) -> str:
    """A page of a template of this folder, such as "report.html.j2".

    values: what the template names; all have `title` and `provenance`. Text is escaped; what `element`
    makes stands as it is. jinja2.UndefinedError for a name that is not given.
    """
    return environment().get_template(template).render(**values)


@lru_cache
def environment() -> jinja2.Environment:
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("tir_schedules.pages", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals["css"] = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    found.globals["policy"] = policy
    return found


def policy(scripts: str) -> str:
    """A page's content security policy: only the template's scripts run, nothing is loaded or sent.

    scripts: the template's <script> elements.
    """
    digests = [
        sha256(script.encode()).digest() for script in re.findall(r"<script>(.*?)</script>", scripts, re.S)
    ]
    allowed = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests) or "'none'"
    nothing = "; ".join(f"{what} 'none'" for what in ("default-src", "base-uri", "form-action"))
    return f"{nothing}; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


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
