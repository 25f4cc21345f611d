"""Files of the user's where other verbs take rungs: which names are files, and what is asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tir_schedules.api.subjects import is_code
from tir_schedules.check.options import PART, add_subject, only, requests_of
from tir_schedules.cli.options import Options, Parser
from tir_schedules.errors import BadInput, printable
from tir_schedules.source import read_source

if TYPE_CHECKING:
    from tir_schedules.check.preparing import Request

FILE_HELP = "or a .cu, .ptx or Triton file with the options of `check`"
OWN = (
    *PART, "then", "launch", "let", "arg", "defines", "includes", "constexpr",
    "num_warps", "num_stages", "flags", "expect", "tolerance", "ladder",
)  # fmt: skip
"""Options of files alone."""

SPELLED = {"defines": "-D", "includes": "-I", "flags": "--nvcc", "ladder": "--as"}


def add_file(verb: Parser, block: bool = True, numbers: str = "") -> None:
    """The options of a verb that takes files besides rungs, and has those of a problem already, and perhaps a
    --block. numbers: what the help says of a number as --launch, where the verb takes one."""
    add_subject(verb, problem=False, block=block, numbers=numbers)


def the_file(names: Sequence[str], verb: str) -> Path | None:
    """The one file that is named; None for rungs. BadInput for several, or both."""
    files = [name for name in names if is_code(name)]
    if files and len(names) > 1:
        raise BadInput(f"{verb} takes one file at a time, or rungs: name {printable(files[0])} alone")
    return Path(files[0]) if files else None


def check_ending(name: str) -> None:
    """BadInput for a file of another kind where a rung is named."""
    if Path(name).is_file() and Path(name).suffix != ".py":
        raise BadInput(
            f"{printable(name)} is a file: what is taken is a rung, or a file that ends in .cu, .ptx or .py"
        )


def check_no_file(options: Options, name: str) -> None:
    """BadInput for options of files where a rung is named."""
    for option in OWN:
        if getattr(options, option, None) not in (None, []):
            spelled = SPELLED.get(option, f"--{option.replace('_', '-')}")
            raise BadInput(f"{spelled} is for files, a .cu, .ptx or Triton file; {printable(name)} is a rung")


def file_requests(options: Options, path: Path, arch: str) -> list[Request]:
    """What is asked of a file: by the command, and by the comments in it."""
    for name in ("dtype", "result", "shape"):
        if getattr(options, name, None) is not None:
            raise BadInput(f"--{name} is for rungs; {printable(path)} is a file")
    return requests_of(options, read_source(path), arch)


def words_of(options: Options, path: Path) -> list[str]:
    """A file and its options as `check` takes them."""
    words = [str(path)]
    for part in getattr(options, "then", None) or ():
        words += [*(f"--{name}={value}" for name, value in part.items() if value), "--then"]
    for name in (*OWN, "mnk", "n", "layout", "accumulate", "arch", "seed"):
        if name == "then":
            continue
        given = getattr(options, name, None)
        for value in given if isinstance(given, list) else [] if given is None else [given]:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            spelled = SPELLED.get(name, f"--{name.replace('_', '-')}")
            words.append(f"{spelled}{text}" if len(spelled) == 2 else f"{spelled}={text}")
    return words


def one_request(options: Options, path: Path, arch: str, verb: str, named_by: str = "--kernel") -> Request:
    """The same where a verb takes one kernel. named_by: what names it."""
    return only(file_requests(options, path, arch), verb, named_by)
