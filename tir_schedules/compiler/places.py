"""Folders with plain names: nvcc hands every path it meets to a shell, and `.file` lines quote it, so it may
not see the user's own paths."""

from __future__ import annotations

import os
import re
import stat
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Iterable, Iterator

from tir_schedules.errors import BadInput, printable
from tir_schedules.processes import passing, unused

PLAIN = re.compile(r"(?!-)(?:[\w.+-]|/(?!-))*", re.A)
PLACES = ("/tmp", "/var/tmp", "/dev/shm")
SCRATCH = ".tir-schedules-"


def is_plain(path: str | Path) -> bool:
    """Whether a shell reads a path as itself, as it is written and with its links resolved: a working folder
    is known by that name."""
    return all(PLAIN.fullmatch(text) for text in (str(path), os.path.realpath(path)))


@contextmanager
def new_folder(prefix: str, root: Path) -> Iterator[Path]:
    """A new empty folder with a plain name, gone afterwards: under the root, or where that has no plain name
    or cannot be written in one of `places`.

    BadInput when none of them can be written.
    """
    own = [(str(root), prefix)] * is_plain(root)
    with first_made([*own, *((place, own_prefix()) for place in places())]) as made:
        if made is None:
            raise BadInput(
                f"nothing can be compiled in {printable(root)}, which cannot be written or has a name that a"
                f" shell reads otherwise, nor in {', '.join(PLACES)}: set TMPDIR or TIR_SCHEDULES_CACHE to a"
                " folder named in letters, digits and . _ + - alone"
            )
        yield made


@contextmanager
def first_made(candidates: Iterable[tuple[str, str]]) -> Iterator[Path | None]:
    """A new folder in the first place where one can be made, gone afterwards; None where there is none.

    candidates: places, and what the folder's name begins with there.
    """
    made = None
    with ExitStack() as stack:
        for place, prefix in candidates:
            with suppress(OSError):
                made = stack.enter_context(passing(unused(Path(place), prefix)))
                break
        yield made


def places() -> list[str]:
    """Folders for temporary files whose names are plain: TMPDIR, then what every Linux has."""
    chosen = os.environ.get("TMPDIR", "")
    return [
        place
        for place in (chosen, *PLACES)
        if os.path.isabs(place) and is_plain(place) and os.path.isdir(place)
    ]


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for what programs write in passing, gone afterwards even when they are killed; "/" where there
    is no room."""
    with first_made((place, own_prefix()) for place in places()) as made:
        yield str(made or "/")


def own_prefix() -> str:
    return f"{SCRATCH}{os.getuid()}-"


def scratch_folders() -> list[Path]:
    """This user's own folders in `places`: of builds at work and of killed ones. A link does not
    count."""
    paths = {
        Path(place, name)
        for place in places()
        for name in list_folder(place)
        if name.startswith(own_prefix())
    }
    return sorted(path for path in paths if is_own_folder(path))


def is_own_folder(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@contextmanager
def plain_links(folder: Path) -> Iterator["Links"]:
    """Plain names in the folder for paths that may have none; they are gone afterwards."""
    links = Links(folder)
    try:
        yield links
    finally:
        for name in links.names:
            (folder / name).unlink(missing_ok=True)


class Links:
    """Symbolic links in a folder. names: those it made."""

    def __init__(self, folder: Path):
        self.folder, self.names = folder, []

    def always(self, name: str, target: str | Path) -> str:
        """`name`, in the folder, for the target."""
        (self.folder / name).symlink_to(target)
        self.names.append(name)
        return name

    def where_needed(self, name: str, target: Path) -> Path:
        """The absolute path itself where it is plain, else that of a link."""
        return target if is_plain(target) else self.folder / self.always(name, target)
