"""HTML pages: one self-contained file each, from a jinja2 template on `base.html.j2`, with `style.css`
inside."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any


def render(template: str, **values: Any) -> str:
    """A page of a template of this folder, such as "report.html.j2".

    values: what the template names; everything but `title` and `provenance` is the template's own. Text is
    escaped; what `markup.element` makes stands as it is. jinja2.UndefinedError for a name that is not given.
    """
    return environment().get_template(template).render(**values)


@lru_cache
def environment() -> Any:
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
    """A page's content security policy: of scripts those of the template run, nothing is loaded, nothing is
    sent.

    scripts: the template's <script> elements.
    """
    digests = [
        sha256(script.encode()).digest() for script in re.findall(r"<script>(.*?)</script>", scripts, re.S)
    ]
    allowed = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests) or "'none'"
    nothing = "; ".join(f"{what} 'none'" for what in ("default-src", "base-uri", "form-action"))
    return f"{nothing}; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
