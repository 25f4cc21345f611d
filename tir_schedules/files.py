"""Files: those from elsewhere are read whole up to a limit and believed only as far as a schema says; ours
are written whole.

A line names the file, the place in it ("rows[3].workload.m"), what stands there and what would be right.
"""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from tir_schedules.errors import BadInput, one_line, printable, shown
from tir_schedules.processes import unfinished

if TYPE_CHECKING:
    from pydantic import BaseModel

Json = dict[str, Any]
"""An object of a JSON file, or one that is going to be written to one."""

LIMIT = 16 << 20
"""Most bytes of JSON; the largest file that this project ships has one million."""

PART = 1 << 20
"""Bytes read at once."""

DEPTH, KEYS = 64, 10_000
"""Most lists and objects inside each other, and most keys of an object."""

PLACED = 8
"""Most steps into a file that a message names."""

DIGITS = 20
"""Most digits of an integer: those of 64 bits."""


def read_bytes(path: Path, remedy: str, limit: int = LIMIT) -> bytes:
    """The content of a regular file. BadInput for what cannot be read, is a folder, a pipe or a device, or is
    too large."""
    try:
        # Without O_NONBLOCK opening a pipe waits for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise BadInput(f"cannot read {path}: it is not a regular file; {remedy}")
            content = bytearray()
            while len(content) <= limit and (part := file.read(PART)):
                content += part
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}; {remedy}") from None
    if len(content) > limit:
        raise BadInput(f"{path} is too large: more than {limit >> 20} MiB; {remedy}")
    return bytes(content)


def read_json(path: Path, remedy: str) -> Any:
    """What a JSON file holds; BadInput as `parse_json` and `read_bytes` have it."""
    return parse_json(read_bytes(path, remedy), path, remedy)


def parse_json(content: bytes, path: Path | str, remedy: str) -> Any:
    """What a JSON text holds, plain data that JSON can say again.

    BadInput for text that is not JSON. It is also raised for NaN, numbers too large for a double, a key twice
    in one object, text that is not Unicode, and nesting deeper than DEPTH.
    """
    try:
        return plain_json(content)
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({one_line(error)}); {remedy}") from None


def plain_json(content: bytes) -> Any:
    """As `parse_json`; ValueError with the reason."""
    if len(content) > LIMIT:
        raise ValueError(f"it has more than {LIMIT >> 20} MiB")
    if content[:2] == b"\x1f\x8b":
        raise ValueError("it is compressed by gzip: unpack it")
    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=object_of_pairs, parse_int=bounded_integer
        )
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEPTH}") from None
    refuse_odd(value)
    return value


def to_json(model: Any) -> Any:
    """A model as JSON has it: what its `as_json` says, else the fields of a dataclass; the same of what it
    holds."""
    if hasattr(model, "as_json"):
        return to_json(model.as_json())
    if is_dataclass(model) and not isinstance(model, type):
        return {field.name: to_json(getattr(model, field.name)) for field in fields(model)}
    if isinstance(model, Mapping):
        return {name: to_json(each) for name, each in model.items()}
    return [to_json(each) for each in model] if isinstance(model, (list, tuple)) else model


def lists_to_tuples(value: Any) -> Any:
    """JSON's lists as tuples, also in what it contains."""
    if isinstance(value, dict):
        return {name: lists_to_tuples(each) for name, each in value.items()}
    return tuple(map(lists_to_tuples, value)) if isinstance(value, list) else value


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. ValueError for a key that it has twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        found[key] = value
    return found


def bounded_integer(digits: str) -> float:
    """An integer, or infinity for one with too many digits."""
    return int(digits) if len(digits.lstrip("-")) <= DIGITS else math.inf


def refuse_odd(value: Any, where: tuple[str | int, ...] = ()) -> None:
    """ValueError with the first place of what no schema is asked about: a number that is none, broken text,
    too deep a nest."""
    fault = fault_at(value) if len(where) <= DEPTH else f"it is nested deeper than {DEPTH}"
    if fault:
        raise ValueError(f"{place(where[:PLACED])}: {fault}" if where else fault)
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        refuse_odd(each, (*where, step))


def fault_at(value: Any) -> str:
    """What is wrong with a value, whatever it holds."""
    if isinstance(value, float) and not math.isfinite(value):
        return "not a finite number, or one with too many digits"
    if isinstance(value, str) and not is_text(value):
        return f"{shown(value)} is not a text: it has half of a surrogate pair, or NUL"
    if isinstance(value, dict) and len(value) > KEYS:
        return f"an object with more than {KEYS} keys"
    if isinstance(value, dict) and not all(map(is_text, value)):
        return f"the key {shown(next(key for key in value if not is_text(key)))} is not a text"
    return ""


def is_text(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text))


def check(value: Any, schema: type[BaseModel], what: str, remedy: str) -> None:
    """BadInput with the first place at which a value is not what its schema says. what: "x.json is not a
    results file"."""
    fault = fault_of(value, schema)
    if fault:
        raise BadInput(f"{what}: {fault}; {remedy}")


def fault_of(value: Any, schema: type[BaseModel]) -> str:
    """The first place at which a value is not what its schema says, and why; empty where it is."""
    from pydantic import ValidationError

    try:
        schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return error_in_words(first, first["loc"])
    return ""


def error_in_words(error: Mapping[str, Any], where: tuple[str | int, ...]) -> str:
    """One of pydantic's errors in our words."""
    kind, given = error["type"], shown(error["input"])
    if kind in ("missing", "extra_forbidden"):
        what = "is missing" if kind == "missing" else "is too much"
        return f"{place(where[:-1]) or 'the file'}: {shown(where[-1])} {what}"
    if kind in WORDS:
        return f"{place(where) or 'the file'}: {given} is {WORDS[kind]}"
    if kind == "value_error":
        return f"{place(where) or 'the file'}: {one_line(error['ctx']['error'])}"
    return f"{place(where) or 'the file'}: {given}: {error['msg'][:1].lower()}{error['msg'][1:]}"


WORDS = {
    "bool_type": "neither true nor false",
    "dict_type": "not an object",
    "float_type": "not a number",
    "int_from_float": "not an integer",
    "int_type": "not an integer",
    "list_type": "not a list",
    "model_attributes_type": "not an object",
    "model_type": "not an object",
    "string_type": "not a text",
}
"""pydantic's kinds of errors -> what a value then is."""


def place(where: tuple[str | int, ...]) -> str:
    """A place in a file, such as "rows[3].workload.m"."""
    parts = (
        f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{shown(step)}]" for step in where
    )
    return "".join(parts).removeprefix(".")


CODE = (".cu", ".cuh", ".ptx", ".py", ".h", ".hpp", ".c", ".cpp")
"""Endings of files that users write, and no result has."""


def check_page(path: Path) -> None:
    """BadInput for a page that could not be written, or would be written over the user's source, before
    anything slow is done for it."""
    check_folder(path)
    if path.suffix in CODE and path.exists():
        raise BadInput(f"cannot write {path}: it is source code; name another file")


def check_folder(path: Path) -> None:
    """BadInput for a file that could not be written, before anything slow is done for it."""
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: name a file in a folder that exists")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. BadInput when the path cannot be written."""
    write_bytes(path, text.encode("utf-8"))


def write_output(path: Path, text: str) -> None:
    """`write_text` for a file that the user named, with a line that says so."""
    write_text(path, text)
    print_wrote(path)


def print_wrote(path: Path) -> None:
    """Say on standard error that a file was written; /dev/stdout and pipes tell by themselves."""
    if path.is_file():
        print(f"wrote {printable(str(path))}", file=sys.stderr)


def write_bytes(path: Path, content: bytes) -> None:
    """The same for any file."""
    temporary = None
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder, name a file in it")
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_bytes(content)
            return
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        with (
            unfinished(temporary),
            open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ):
            file.write(content)
            file.flush()
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~current_umask()
            os.chmod(temporary, mode)
            os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise BadInput(
            f"cannot write {path}: {error.strerror or error}; name a file in a folder that exists"
        ) from None


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
