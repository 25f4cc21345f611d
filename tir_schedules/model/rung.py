"""A rung: one optimisation step, written twice (a TensorIR schedule and its CUDA twin)."""

from __future__ import annotations

import os
import re
import runpy
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Generic, Mapping, Protocol, Sequence, TypeVar, cast

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Launch
from tir_schedules.model.schedule import PrimFunc, Schedule

if TYPE_CHECKING:  # a plain Rung is one of any workload and configuration
    from typing_extensions import TypeVar as TypeVarOf

    W = TypeVarOf("W", default=Any)
    C = TypeVarOf("C", default=Any)
else:
    W = TypeVar("W")
    """The class of a rung's workloads."""

    C = TypeVar("C")
    """The class of its configurations."""

NextW = TypeVar("NextW")
NextC = TypeVar("NextC")


@dataclass(frozen=True)
class NoConfig:
    """The configuration of a rung without constants."""


NO_CONFIG = NoConfig()


@dataclass(frozen=True)
class Preparation:
    """A launch before a rung's own or after it, which leaves something for that or takes what that left.

    rung, workload: what is launched. names: of its parameters, and which of the arguments they are: X is
    copied to Y, and X_2, where there is one, to Y_2.
    """

    rung: "Rung"
    workload: Any
    names: dict[str, str]

    @property
    def copies(self) -> dict[str, str]:
        """Arrays that it takes, and which it copies them to."""
        return {self.names[x]: self.names[y] for x, y in (("X", "Y"), ("X_2", "Y_2")) if x in self.names}


def no_launches(workload: Any, config: Any) -> Sequence[Preparation]:
    """Neither before nor after."""
    return ()


@dataclass(frozen=True)
class Around(Generic[W, C]):
    """Launches besides a rung's own.

    before(workload, config), after(workload, config): those before it and behind it. then: the rung that does
    the launches that are left, where that is not the rung itself.
    """

    before: Callable[[W, C], Sequence[Preparation]] = no_launches
    after: Callable[[W, C], Sequence[Preparation]] = no_launches
    then: Rung[Any, Any] | None = None


def as_it_is(sch: Schedule, workload: Any, config: Any) -> None:
    """The schedule of an algorithm that already says what each thread does."""


class BlockTiled(Protocol):
    """A configuration with a block tile bm x bn."""

    @property
    def bm(self) -> int: ...

    @property
    def bn(self) -> int: ...


class Tiled(BlockTiled, Protocol):
    """A configuration with a block tile and K tiles, bk deep."""

    @property
    def bk(self) -> int: ...


def configs_as(kind: Callable[..., C], configs: Mapping[str, Any], **changes: Any) -> dict[str, C]:
    """A rung's configurations by name as those of another rung, whose class `kind` has all their fields.
    changes: fields that differ in each."""
    return {name: kind(**{**vars(config), **changes}) for name, config in configs.items()}


@dataclass(frozen=True)
class Rung(Generic[W, C]):
    """One step of a ladder.

    - family, name: "sgemm", "warp_tiling"; also the names of the module under `tir_schedules` and of the .cu
      file of the twin. A rung in a file of your own has the file's name if it gives none.
    - summary: one line, what this rung adds to the one before it.
    - article: where it comes from.
    - config: frozen dataclass of the constants, with the article's values as defaults. The twin gets each
      field as a macro in capitals.
    - configs: further configurations by name.
    - variant: the name of the configuration in use; empty for the default.
    - schedule(sch, workload, config): applies schedule primitives to a Schedule of the workload's PrimFunc.
      Without it the PrimFunc is already the kernel.
    - choose(workload): the configuration, or its name, that is taken when no configuration is named. Without
      it, `config` is taken.
    - ranked(workload): the configurations that are worth timing for a workload, the fastest first by
      estimate. `choose` takes the first. Without it, all `configs` are worth timing.
    - launch(workload, config): grid and block of both twins. Without it, those of the schedule are taken.
    - refuses(workload, config): one line that says why a configuration is not possible; empty if it is
      possible.
    - values: fields of the configuration, each with the values that `tune` tries. Rungs of this package have
      theirs in tuning/space.
    - shapes: which shapes take the fast path, and what happens to others.
    - min_arch: the number of the first sm that it runs on.
    - arch: the one architecture it is compiled for, such as "sm_90a", if it has instructions that no other
      architecture has; "" if it runs on any from min_arch on.
    - dtypes, outputs: formats of inputs and of C that it is run with, if the family has a choice. Without
      outputs, C has only the format of the sums.
    - around: the launches before and after its own, if there are any.
    - prim_func(workload, config, name): the algorithm, in place of the workload's. If primitives cannot reach
      a form, it already says what each thread does.
    - flawed: configurations that exist to show a fault: name -> kind of finding. They run only when they are
      named.
    - twinned: whether there is a twin that takes the configuration in use.
    - file: the file that a rung from outside this package was loaded from.
    - why: if a `StandIn` chose this rung, the name of the `StandIn` and the reason; otherwise empty.
    """

    family: str
    name: str = ""
    summary: str = ""
    article: str = ""
    config: C = cast(Any, NO_CONFIG)
    schedule: Callable[[Schedule, W, C], None] = field(default=as_it_is, repr=False)
    launch: Callable[[W, C], Launch] | None = field(default=None, repr=False)
    configs: dict[str, C] = field(default_factory=dict, repr=False)
    choose: Callable[[W], str | C] | None = field(default=None, repr=False)
    ranked: Callable[[W], Sequence[C]] | None = field(default=None, repr=False)
    variant: str = ""
    shapes: str = "any"
    min_arch: int = 75
    arch: str = ""
    dtypes: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    prim_func: Callable[[W, C, str], PrimFunc] | None = field(default=None, repr=False)
    around: Around[W, C] | None = field(default=None, repr=False)
    flawed: dict[str, str] = field(default_factory=dict, repr=False)
    twinned: bool = True
    refuses: Callable[[W, C], str] | None = field(default=None, repr=False)
    values: dict[str, tuple[int | str, ...]] = field(default_factory=dict, repr=False)
    file: str = ""
    why: str = field(default="", repr=False, compare=False)

    def followed_by(
        self,
        name: str,
        summary: str,
        schedule: Callable[[Schedule, NextW, NextC], None] | None = None,
        **differences: Any,
    ) -> Rung[NextW, NextC]:
        """The next rung of a ladder: this one with another schedule and other fields. It has no
        configurations besides the default and no twin of its own unless the fields name them. If it has
        `choose`, its default is the first of its configurations, unless the fields give another."""
        own: dict[str, Any] = dict(
            configs={}, choose=None, ranked=None, flawed={}, values={}, variant="", twinned=True
        )
        own |= {"schedule": schedule} if schedule else {}
        if differences.get("choose"):
            own["config"] = next(iter(differences["configs"].values()))
        return cast(Any, replace(self, name=name, summary=summary, **own | differences))

    @property
    def id(self) -> str:
        """How users name it: "sgemm/warp_tiling", or "sgemm/warp_tiling:128x128" for a further
        configuration."""
        return self.base_id + (f":{self.variant}" if self.variant else "")

    @property
    def base_id(self) -> str:
        """Its id without a variant."""
        return f"{self.family}/{self.name}"

    @property
    def typed(self) -> str:
        """How a command names it: its id, or the file it is from."""
        place = os.path.relpath(self.file) if self.file else self.base_id
        return place + (f":{self.variant}" if self.variant else "")

    @property
    def entry(self) -> str:
        """Name of the `__global__` function of both twins."""
        return f"{self.family}_{self.name}"

    def variants(self, flawed: bool = False) -> list["Rung[W, C]"]:
        """This rung in its default and in every further configuration, with flawed=True also in the flawed
        ones."""
        names = [name for name in self.configs if flawed or name not in self.flawed]
        return [self, *(replace(self, config=self.configs[name], variant=name) for name in names)]

    def fitted(self, workload: Any) -> "Rung[Any, Any]":
        """The rung in the configuration it takes for a workload: the one in use, unless none is named and the
        shape chooses."""
        if self.variant or self.choose is None:
            return self
        chosen: Any = self.choose(workload)
        if isinstance(chosen, type(self.config)):
            return replace(self, config=chosen, variant=self.variant_of(chosen))
        if chosen not in self.configs:
            raise BadInput(f"{self.id}: choose returns {chosen!r}; its configs are {', '.join(self.configs)}")
        return replace(self, config=self.configs[chosen], variant=chosen)

    def worth_timing(self, workload: Any) -> "list[Rung[Any, Any]]":
        """The rung in each configuration of `ranked`. Without `ranked` it is in its default and in each of
        `configs`. A rung that does not choose keeps its configuration."""
        if self.variant or self.choose is None:
            return [self]
        if self.ranked is None:
            return self.variants()
        found = self.ranked(workload)
        return [replace(self, config=config, variant=self.variant_of(config)) for config in found]

    def variant_of(self, config: C) -> str:
        """The name of a configuration, or the fields in which it differs from the default, as users type
        them."""
        named = next((name for name, each in self.configs.items() if each == config), "")
        values, default = vars(config), vars(self.config)
        changed = [name for name in values if values[name] != default[name]]
        return named or ",".join(f"{name}={values[name]}" for name in changed)

    def settled(self, workload: Any, arch: str) -> "tuple[Rung[Any, Any], Any]":
        """The rung that is run for a workload on an architecture, and what it is run on. A rung returns
        itself and the workload, except for a `StandIn`. Raises BadInput if there is no rung for them."""
        return self, workload

    def all_settled(self, workload: Any, arch: str) -> "list[tuple[Rung[Any, Any], Any]]":
        """Rungs and workloads as `settled` returns them: one for each candidate of a `StandIn`, else one."""
        return [self.settled(workload, arch)]

    def declared(self, workload: Any) -> Launch:
        """The launch of a rung that declares one, as those of this package do."""
        assert self.launch, f"{self.id} declares no launch"
        return self.launch(workload, self.config)

    def others(self, workload: Any) -> tuple[Sequence[Preparation], Sequence[Preparation]]:
        """The launches before its own and after it."""
        rung = self.fitted(workload)
        if rung.around is None:
            return (), ()
        return rung.around.before(workload, rung.config), rung.around.after(workload, rung.config)

    @property
    def then(self) -> Rung[Any, Any]:
        """The rung of the launches that follow its own."""
        return self.around.then or self if self.around else self

    def given(self, workload: Any, parameters: Sequence[str]) -> tuple[str, ...]:
        """The arguments for the parameters of its own kernel. If a launch before copies an array, this is the
        copy."""
        before, _ = self.others(workload)
        copies = {name: copy for each in before for name, copy in each.copies.items()}
        return tuple(copies.get(name, name) for name in parameters)

    def check_arch(self, arch: str) -> None:
        """Raises BadInput if the rung cannot run on `arch` ("sm_80")."""
        if self.arch:
            if arch not in (self.arch, self.arch[:-1]) and not isinstance(arch, Unasked):
                raise BadInput(f"{self.base_id} needs {self.arch}, not {arch}")
            return
        number = int(re.sub(r"\D", "", arch) or 0)
        if number < self.min_arch:
            raise BadInput(
                f"{self.id} needs sm_{self.min_arch} or later, not {arch}; name another with --arch"
            )

    def arch_for(self, arch: str) -> str:
        """The architecture that its kernels are compiled for when others are compiled for `arch`. Raises
        BadInput as `check_arch`."""
        self.check_arch(arch)
        return self.arch or str(arch)


@dataclass(frozen=True)
class StandIn(Rung[W, C]):
    """A name for several rungs, such as "sgemm/fastest". meant(workload, arch): the rung that is run for it,
    and the workload that it is run on, whose open options are chosen. first(workload, arch, count): the first
    `count` candidates, in the same form; what is meant is the first of them. candidates: how many are
    timed."""

    meant: Callable[[W, str], tuple[Rung[Any, Any], Any]] | None = field(default=None, repr=False)
    first: Callable[[W, str, int], Sequence[tuple[Rung[Any, Any], Any]]] | None = field(
        default=None, repr=False
    )
    candidates: int = 1

    def fitted(self, workload: Any) -> Rung[Any, Any]:
        raise BadInput(f"{self.id} stands for another rung: Rung.settled(workload, arch) says which")

    def settled(self, workload: Any, arch: str) -> tuple[Rung[Any, Any], Any]:
        assert self.meant
        found, workload = self.meant(workload, arch)
        return replace(found, twinned=found.twinned and self.twinned), workload

    def all_settled(self, workload: Any, arch: str) -> list[tuple[Rung[Any, Any], Any]]:
        if self.candidates == 1:
            return [self.settled(workload, arch)]
        assert self.first
        return [
            (replace(found, twinned=found.twinned and self.twinned), settled)
            for found, settled in self.first(workload, arch, self.candidates)
        ]


class Unasked(str):
    """An architecture that the user did not name: a rung that is for one architecture takes that."""


def run_as_script(rung: Rung) -> None:
    """What a rung's module does when it is run, as `python -m` or as a file: it starts `tir-schedules emit
    RUNG` in its place, with the same options."""
    caller = sys._getframe(1).f_globals
    sys.argv[1:1] = ["emit", rung.id if caller.get("__spec__") else caller["__file__"]]
    runpy.run_module("tir_schedules", run_name="__main__", alter_sys=True)
