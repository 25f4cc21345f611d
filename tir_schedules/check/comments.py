"""Options that stand in the file that is checked, as comments:

    // check: --kernel saxpy --grid cdiv(N,256) --block 256 --let N=1000
    // check: --arg x=f32[N] --arg y=f32[N] --expect y='a*x + y'

Lines that follow one another are one check. In a Python file they begin with `#`.
"""

from __future__ import annotations

import re
import shlex

from tir_schedules.errors import BadInput, shown

LINE = re.compile(r"[ \t]*(?://|#)[ \t]*check:(.*)")


def blocks(text: str, file: str) -> list[tuple[str, list[str]]]:
    """Where each check in a file begins, and its words as a shell would take them. BadInput for a quote that
    is not closed."""
    found: list[tuple[str, list[str]]] = []
    within = False
    for number, line in enumerate(text.split("\n"), 1):
        match = LINE.fullmatch(line.rstrip())
        if match:
            if not within:
                found.append((f"{file}:{number}", []))
            try:
                found[-1][1].extend(shlex.split(match[1]))
            except ValueError as error:
                raise BadInput(f"{file}:{number}: {shown(match[1].strip())}: {error}") from None
        within = bool(match)
    return found
