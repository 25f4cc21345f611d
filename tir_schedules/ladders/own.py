"""Rungs and ladders of the user: a file with a rung, or a folder with a ladder, found by its path.

The names of their modules say where they are, so that every process that imports this module can import them.
Functions and configurations go to workers by these names.
"""

from __future__ import annotations

import copyreg
import importlib
import os
import sys
from dataclasses import is_dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Sequence, cast

from tir_schedules.errors import BadInput, raised_in
from tir_schedules.ladders.known import (
    FAMILIES,
    GROUP,
    LOADED,
    ladder_of,
    loaded,
    package_rungs,
    rung_names,
    rungs_beside,
)
from tir_schedules.model.ladder import Ladder
from tir_schedules.model.rung import Rung

PREFIX = "tir_schedules_at_"
PACKAGE_FILE = "__init__.py"
OURS = Path(__file__).parent

RUNGS: dict[str, Rung] = {}
"""Rungs from elsewhere that this process uses, by their ids."""

SOURCES: dict[str, bytes] = {}
"""What files had in them when their modules were loaded, by the names of the modules."""


class Loader(SourceFileLoader):
    """Compiles the file each time: what Python keeps of it is a second old at worst, which is too old."""

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        SOURCES[fullname] = source
        return self.source_to_code(source, self.path)


class Finder(MetaPathFinder):
    """Finds modules by the path that is in their names, and those of a package that was found so."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        if path is None:
            place = Path(os.fsdecode(bytes.fromhex(fullname.removeprefix(PREFIX))))
        else:
            place = Path(next(iter(path)), fullname.rpartition(".")[2])
            place = place if place.is_dir() else place.with_suffix(".py")
        file = place / PACKAGE_FILE if place.is_dir() else place
        folders = [str(place)] if place.is_dir() else None
        if not file.is_file():
            return None
        return spec_from_file_location(
            fullname, file, loader=Loader(fullname, str(file)), submodule_search_locations=folders
        )


sys.meta_path.append(Finder())


def is_path(name: str) -> bool:
    """Whether a name says where a rung or a ladder is: my_rung.py, ./my_rung.py:config, ./my_ladder."""
    place = split(name)[0]
    return place.endswith(".py") or os.sep in place and Path(place).is_dir() or place in (".", "..")


def split(name: str) -> tuple[str, str]:
    """A path, and the configuration after it."""
    place, dot, variant = name.partition(".py:")
    return (f"{place}.py", variant) if dot else (name, "")


def at_path(name: str) -> list[Rung]:
    """The rung in a file, or those of the ladder in a folder; `find` takes care of the configuration.
    BadInput where there is none, or it does not load."""
    path = Path(os.path.abspath(split(name)[0]))
    if path.is_dir():
        return rungs_of(ladder_at(path))
    if not path.is_file():
        raise BadInput(f"there is no file {split(name)[0]}; a rung of your own is a Python file with a RUNG")
    if path.parent.parent == OURS and path.parent.name in FAMILIES:
        family = path.parent.name
        found = [rung for rung in (*package_rungs(family), *rungs_beside(family)) if rung.name == path.stem]
        return found or [rung_at(path)]
    return [rung_at(path)]


def rung_at(path: Path) -> Rung:
    """The rung in a file, which may be one of a ladder's folder."""
    package = path.parent / PACKAGE_FILE
    if package.is_file() and "LADDER" in package.read_text(encoding="utf-8", errors="replace"):
        return rung_in(module_named(f"{ladder_at(path.parent).package}.{path.stem}", path), path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # what lies beside it can be imported, as in `python my_rung.py`
    return rung_in(module_named(name_of(path), path), path)


def ladder_at(place: Path | str) -> Ladder:
    """The ladder of a folder. BadInput where it has none."""
    path = Path(os.path.abspath(place))
    file = path / PACKAGE_FILE
    if not file.is_file():
        raise BadInput(f"{path} is not a ladder: it has no {PACKAGE_FILE} with LADDER = Ladder(...)")
    return loaded(module_named(name_of(path), file), str(file))


def rungs_of(ladder: Ladder) -> list[Rung]:
    """All rungs of a ladder from elsewhere."""
    folders = getattr(importlib.import_module(ladder.package), "__path__", ())
    found = []
    for name in ladder.rungs:
        path = Path(next(iter(folders), ladder.package), f"{name}.py")
        if not path.is_file():
            raise BadInput(f"the ladder {ladder.name} names the rung {name!r}, but there is no {path}")
        found.append(rung_in(module_named(f"{ladder.package}.{name}", path), path))
    return found


def ladder_rungs(family: str) -> list[Rung]:
    """The rungs of a ladder in the order they build on each other, each in its default configuration."""
    return package_rungs(family) if family in FAMILIES else rungs_of(ladder_of(family))


def name_of(path: Path) -> str:
    """The name of the module of a file or folder."""
    return PREFIX + os.fsencode(path).hex()


def module_named(name: str, file: Path) -> ModuleType:
    """A module as its file is now. BadInput, with the line, for one that fails."""
    try:
        if name in sys.modules and name in SOURCES and SOURCES[name] != file.read_bytes():
            for other in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[other]
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{file} cannot be loaded: {raised_in(error, str(file))}") from error


def rung_in(module: ModuleType, path: Path) -> Rung:
    """The one rung of a module, with what it leaves open. BadInput where there is no
    rung, several, or one that cannot be."""
    found = {id(value): (name, value) for name, value in vars(module).items() if is_own(value)}
    if len(found) != 1:
        names = ", ".join(name for name, _ in found.values())
        raise BadInput(
            f"{path} has {f'{len(found)} rungs, {names}' if found else 'no rung'}: it takes one,"
            ' such as RUNG = Rung("sgemm", schedule=schedule)'
        )
    ((_, rung),) = found.values()
    name = rung.name or path.stem
    check(rung, name, path)
    summary = rung.summary or next(iter((module.__doc__ or "").strip().splitlines()), "").removesuffix(".")
    twinned = rung.twinned and path.with_suffix(".cu").is_file()
    whole = replace(rung, name=name, summary=summary, twinned=twinned, file=str(path))
    RUNGS[whole.id] = whole
    return whole


def reduce_for_pickle(rung: Rung) -> Any:
    """How a rung goes to another process: one from elsewhere as its file, which that process loads. Its
    functions may be of any kind then."""
    if rung.file:
        return again, (rung.file, rung.config, rung.variant, rung.twinned)
    return object.__reduce_ex__(rung, 2)


def again(file: str, config: Any, variant: str, twinned: bool) -> Rung:
    (rung,) = at_path(file)
    return replace(rung, config=config, variant=variant, twinned=twinned)


copyreg.pickle(Rung, reduce_for_pickle)


def is_own(value: Any) -> bool:
    """Whether it is a rung, and not one that was imported from this package."""
    return isinstance(value, Rung) and not any(
        value is getattr(module, "RUNG", None)
        for name, module in sys.modules.copy().items()
        if name.startswith(f"{GROUP}.")
    )


def check(rung: Rung, name: str, path: Path) -> None:
    """BadInput for what no rung can have."""
    if not isinstance(rung.family, str) or not (rung.family in FAMILIES or rung.family in LOADED):
        try:
            ladder_of(str(rung.family))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None
    if not name.isidentifier():
        raise BadInput(
            f"{path}: a rung's name is letters, digits and _, not {name!r}: name the file so, or say"
            f" Rung({rung.family!r}, name=...)"
        )
    if rung.family in FAMILIES and name in (*rung_names(rung.family), *ladder_of(rung.family).beside):
        raise BadInput(f"{path}: there is a rung {rung.family}/{name} already: give this one another name")
    for each in (rung.config, *rung.configs.values()):
        if not is_dataclass(each) or isinstance(each, type):
            raise BadInput(f"{path}: a configuration is a dataclass such as Config(), not {each!r}")
    for field, values in rung.values.items():
        if not hasattr(rung.config, field) or not isinstance(values, (tuple, list)) or not values:
            raise BadInput(
                f"{path}: values has for each field of the configuration a tuple of what to try, such as"
                f' {{"bm": (32, 64)}}, not {{{field!r}: {values!r}}}'
            )
    if not isinstance(cast(Any, rung.min_arch), int):
        raise BadInput(f"{path}: min_arch is {rung.min_arch!r}; it is a number such as 80, of sm_80")
    if not callable(rung.schedule):
        raise BadInput(
            f"{path}: schedule is {rung.schedule!r}, not a function schedule(sch, workload, config)"
        )
