"""A rung: one optimisation step, written twice (a TensorIR schedule and its CUDA twin), and the registry of all rungs."""
from __future__ import annotations

import difflib
import importlib
import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable

from tir_schedules.errors import BadInput
from tir_schedules.kernel import Dim3

FAMILIES = ("sgemm", "reduce", "hgemm")


@dataclass(frozen=True)
class Launch:
    """Grid and block (x, y, z), and bytes of dynamic shared memory."""

    grid: Dim3
    block: Dim3
    dynamic_shared: int = 0


def ceil_div(extent: int, part: int) -> int:
    """How many parts cover an extent."""
    return -(-extent // part)


@dataclass(frozen=True)
class Rung:
    """One step of a ladder.

    family, name: "sgemm", "warp_tiling"; also the names of the module under `tir_schedules` and of the twin's .cu file.
    summary: one line, what this rung adds to the one before it. article: where it comes from.
    config: frozen dataclass of the constants, the article's as defaults; the twin gets each as a macro in capitals.
    configs: further settings by name; `variant` is the name of the one in use, empty for the default.
    schedule(sch, workload, config): applies schedule primitives to a Schedule of the workload's PrimFunc.
    choose(workload): name of the configuration to take when none is named; without it, always `config`.
    launch(workload, config): grid and block, the same for both twins.
    shapes: which shapes take the fast path and what happens to others. min_arch: the first sm it runs on.
    pass_config: options for TVM's lowering. passes: those of this project that it wants, see passes/pipeline.py.
    dtypes: of the workloads it is run with, where the family has a choice.
    prim_func(workload, config, name): the algorithm, in place of the workload's own; `explicit` when it already says what each
    thread does, because primitives cannot reach the form.
    flawed: configurations shown for what is wrong with them: name -> kind of finding. They run only when asked for by name.
    twinned: whether the twin takes the configuration in use.
    """

    family: str
    name: str
    summary: str
    article: str
    config: Any
    schedule: Callable[[Any, Any, Any], None] = field(repr=False)
    launch: Callable[[Any, Any], Launch] = field(repr=False)
    configs: dict[str, Any] = field(default_factory=dict, repr=False)
    choose: Callable[[Any], str] | None = field(default=None, repr=False)
    variant: str = ""
    shapes: str = "any"
    min_arch: int = 75
    pass_config: dict[str, Any] = field(default_factory=dict, repr=False)
    passes: tuple[str, ...] = field(default=(), repr=False)
    dtypes: tuple[str, ...] = ()
    prim_func: Callable[[Any, Any, str], Any] | None = field(default=None, repr=False)
    explicit: bool = False
    flawed: dict[str, str] = field(default_factory=dict, repr=False)
    twinned: bool = True

    @property
    def id(self) -> str:
        """How users name it: "sgemm/warp_tiling", or "sgemm/warp_tiling:128x128" for a further configuration."""
        return self.base_id + (f":{self.variant}" if self.variant else "")

    @property
    def base_id(self) -> str:
        """Its id without a variant."""
        return f"{self.family}/{self.name}"

    @property
    def entry(self) -> str:
        """Name of the `__global__` function of both twins."""
        return f"{self.family}_{self.name}"

    def variants(self, flawed: bool = False) -> list["Rung"]:
        """This rung in its default and in every further configuration; in the flawed ones too if so asked."""
        names = [name for name in self.configs if flawed or name not in self.flawed]
        return [self, *(replace(self, config=self.configs[name], variant=name) for name in names)]

    def fitted(self, workload: Any) -> "Rung":
        """The rung in the configuration it takes for a workload: the one in use, unless none is named and the shape chooses."""
        if self.variant or self.choose is None:
            return self
        name = self.choose(workload)
        return replace(self, config=self.configs[name], variant=name)

    def check_arch(self, arch: str) -> None:
        """BadInput when the rung cannot run on `arch` ("sm_80")."""
        number = int(re.sub(r"\D", "", arch) or 0)
        if number < self.min_arch:
            raise BadInput(f"{self.id} needs sm_{self.min_arch} or later, not {arch}; name another with --arch")


def ladder(family: str) -> list[Rung]:
    """The rungs of a family in the order they build on each other, each in its default configuration."""
    names = importlib.import_module(f"tir_schedules.{family}").LADDER
    return [importlib.import_module(f"tir_schedules.{family}.{name}").RUNG for name in names]


def every_rung(*families: str) -> list[Rung]:
    """All rungs of the families, by default of all, in all their configurations but the flawed ones."""
    return [variant for family in families or FAMILIES for rung in ladder(family) for variant in rung.variants()]


def find(name: str) -> list[Rung]:
    """The rungs `name` stands for: "sgemm" the whole ladder, "sgemm/naive" one rung, "sgemm/warp_tiling:128x128" one variant.

    BadInput with the nearest name when there is none.
    """
    if name in FAMILIES:
        return ladder(name)
    by_id = {rung.id: rung for family in FAMILIES for base in ladder(family) for rung in base.variants(flawed=True)}
    if name in by_id:
        return [by_id[name]]
    raise BadInput(f"there is no rung {name!r}{nearest(name, [*FAMILIES, *by_id])}; `tir-schedules list` shows all")


def find_one(name: str, verb: str) -> Rung:
    """The one rung `name` stands for. BadInput for a whole ladder, which the verb does not take."""
    rungs = find(name)
    if name in FAMILIES:
        raise BadInput(f"{verb} takes one rung, such as {rungs[0].id}, not the whole ladder {name!r}")
    return rungs[0]


def find_each(names: Iterable[str], configs: bool = False) -> list[Rung]:
    """All rungs that are named, each once. configs: in every configuration but the flawed ones."""
    rungs = (variant for name in names for rung in find(name) for variant in (rung.variants() if configs else [rung]))
    return list({rung.id: rung for rung in rungs}.values())


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as ", did you mean 'sgemm/naive'?", or nothing when no known name is close."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    if not close:  # a rung named without its family
        close = [k for k in known if k.split("/")[-1] == name][:1]
    return f", did you mean {close[0]!r}?" if close else ""
