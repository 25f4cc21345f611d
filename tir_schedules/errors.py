"""The errors a user can cause or meet, and what their messages are made of. Each is one line that says what
was wrong and what would be right."""

import difflib
import os
import re
import traceback
from textwrap import wrap
from typing import Any, Iterable

DIGITS = re.compile(r"\d")
SHOWN = 60  # characters of a value in a message


class TirSchedulesError(Exception):
    """Base of all errors with a message meant for the user; `exit_code` is what the command line returns."""

    exit_code = 1


class CheckFailed(TirSchedulesError):
    """Something ran and was found wrong: a kernel, a comparison, a compilation of our own source."""

    exit_code = 1


class BadInput(TirSchedulesError):
    """The user asked for something that does not exist or cannot be."""

    exit_code = 2


class TooLarge(BadInput):
    """A shape beyond what a grid or an index can count; other tiles may do."""


class MissingTool(TirSchedulesError):
    """Something needed is not installed; the message names it and how to get it."""

    exit_code = 3


def one_line(text: object) -> str:
    """An error or another text without its line breaks."""
    return " ".join(str(text).split())


def place_in(error: BaseException, file: str) -> str:
    """The line of a file that an error came by, such as my_rung.py:12."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines = [error.lineno]
    return os.path.basename(file) + (f":{lines[-1]}" if lines else "")


def raised_in(error: BaseException, file: str) -> str:
    """An error of code of the user, after the line of their file that it came by: "my_rung.py:12: NameError:
    ..."."""
    said = error.msg if isinstance(error, SyntaxError) else one_line(error)
    return f"{place_in(error, file)}: {type(error).__name__}: {said}"


def printable(text: object, besides: str = "") -> str:
    """A path or another text without commands for a terminal. Characters that do not print are escaped,
    except for those in `besides`."""
    return "".join(
        letter if letter.isprintable() or letter in besides else ascii(letter)[1:-1] for letter in str(text)
    )


def fold_paragraph(text: str, width: int) -> list[str]:
    """Lines of a paragraph on a terminal so wide, all but the first with an indent."""
    return wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)


def shown(value: Any) -> str:
    """A value as a message has it: not long, and whatever it is, nothing that a terminal would obey."""
    if isinstance(value, (dict, list)) and value:
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def is_near(name: str, known: str) -> bool:
    """Whether a name may be another with letters left out, added or changed, one in four, and one of a short
    name; with other digits, or with its end left out."""
    if len(name) > 2 and known.startswith(name) or DIGITS.sub("", name) == DIGITS.sub("", known):
        return True
    changed = sum(
        max(end - start, other_end - other)
        for what, start, end, other, other_end in difflib.SequenceMatcher(None, name, known).get_opcodes()
        if what != "equal"
    )
    swapped = len(name) == len(known) and sorted(name) == sorted(known) and changed <= 2
    return swapped or changed <= max(1, len(name) // 4)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as ", did you mean 'sgemm/naive'?", or nothing when no known name is close."""
    known = list(known)
    close = [one for one in difflib.get_close_matches(name, known) if is_near(name, one)]
    if not close:  # a rung named without its family, or a name in other letters
        close = [k for k in known if k.split("/")[-1] == name or k.lower() == name.lower()][:1]
    return f", did you mean {close[0]!r}?" if close else ""
