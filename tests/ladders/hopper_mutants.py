"""Small faults put into the PTX of kernels with asynchronous units on purpose, one instruction at a time:
nothing is compiled anew, and each call of a helper is a place of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Sequence

ROUND = 8
"""Bytes from the mbarrier of a stage to that of the next."""

PATTERN = 1024
"""Bytes of the pattern of a swizzle."""


@dataclass(frozen=True)
class Mutant:
    """Mutated PTX. what: the fault; line: of the PTX, 1-based; text: what stood there."""

    what: str
    line: int
    text: str
    ptx: str

    @property
    def name(self) -> str:
        return f"{self.what}, PTX line {self.line}: {shortened(self.text)}"


Changed = Callable[[re.Match[str]], Optional[str]]


@dataclass(frozen=True)
class Fault:
    """What is changed of an instruction that a pattern finds: `changed` makes the text in its place, None
    where that would be the same."""

    what: str
    pattern: re.Pattern[str]
    changed: Changed


def fault(what: str, pattern: str, changed: str | Changed) -> Fault:
    """changed: the text in its place, with groups of the pattern as \\1, or what makes it."""
    make = changed if callable(changed) else lambda match: match.expand(changed)
    return Fault(what, re.compile(pattern), make)


def computed(operation: str, number: int) -> Callable[[re.Match[str]], str]:
    """The instruction with the register in `<register>` replaced by what the operation makes of it."""

    def changed(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("register"))
        text = match[0][:start] + "changed" + match[0][end:]
        return f"{{ .reg .b32 changed; {operation} changed, {match['register']}, {number}; {text} }}"

    return changed


def counted(step: int) -> Callable[[re.Match[str]], str]:
    """The number in `<number>` of an instruction, changed."""
    return lambda match: match[0].replace(f"{match['number']};", f"{int(match['number']) + step};")


def alone(match: re.Match[str]) -> str | None:
    """A copy for several blocks as one for this block."""
    text = match[0].replace(".multicast::cluster", "")
    return re.sub(r", %rs\d+;", ";", text) if text != match[0] else None


def own_block(match: re.Match[str]) -> str | None:
    """The address in another block as that in this one, where a cluster has more than one."""
    return match.expand(r"mov.b32 \1, \2;") if "multicast" in match.string else None


REGISTER = r"(?P<register>%r\d+)"
TEST = r"mbarrier\.try_wait(?:\.parity)?\.shared::cta\.b64 over, "
ARRIVE = r"mbarrier\.arrive\.shared::c\w+\.b64 "
ANNOUNCE = r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, "
ARRIVE_AT = "mbarrier.arrive.shared::cta.b64 _,"
EXPECT = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64"
LOAD = r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global[\w.:]* "
STORE = r"cp\.async\.bulk\.tensor\.2d\.global\S* "

FAULTS = (
    fault("init: one arrival more", rf"mbarrier\.init\S+ \[%r\d+\], {REGISTER};", computed("add.s32", 1)),
    fault("init: one arrival less", rf"mbarrier\.init\S+ \[%r\d+\], {REGISTER};", computed("add.s32", -1)),
    fault("init: none", r"mbarrier\.init[^;]+;", ""),
    fault("init: no fence", r"fence\.mbarrier_init[^;]+;", ""),
    fault("wait: none", TEST + r"[^;]+;", "setp.eq.u32 over, 0, 0;"),
    fault("wait: other parity", TEST + rf"\[%r\d+\], {REGISTER};", computed("xor.b32", 1)),
    fault("wait: stage before", TEST + rf"\[{REGISTER}\][^;]+;", computed("add.s32", -ROUND)),
    fault("arrive: none", ARRIVE + r"_, [^;]+;", ""),
    fault("arrive: none", ARRIVE + r"(%rd\d+), [^;]+;", r"mov.b64 \1, 0;"),
    fault("arrive: twice", "(" + ARRIVE + r")(\S+), ([^;]+);", r"\1_, \3; \1\2, \3;"),
    fault("arrive: other stage", ARRIVE + rf"\S+, \[{REGISTER}\];", computed("add.s32", ROUND)),
    fault("arrive: at this block", r"mapa\S+ (%r\d+), (%r\d+), %r\d+;", own_block),
    fault("announce: none", ANNOUNCE + r"[^;]+;", ""),
    fault("announce: no bytes", ANNOUNCE + r"(\[%r\d+\])[^;]+;", rf"{ARRIVE_AT} \1;"),
    fault("announce: no arrival", ANNOUNCE + r"([^;]+);", rf"{EXPECT} \1;"),
    fault("announce: twice", ANNOUNCE + r"[^;]+;", r"\g<0> \g<0>"),
    fault("announce: 16 bytes more", ANNOUNCE + rf"\[%r\d+\], {REGISTER};", computed("add.s32", 16)),
    fault("announce: 16 bytes less", ANNOUNCE + rf"\[%r\d+\], {REGISTER};", computed("add.s32", -16)),
    fault("announce: other stage", ANNOUNCE + rf"\[{REGISTER}\], [^;]+;", computed("add.s32", ROUND)),
    fault("load: twice", LOAD + r"[^;]+;", r"\g<0> \g<0>"),
    fault("load: to the next rows", LOAD + rf"\[{REGISTER}\], [^;]+;", computed("add.s32", PATTERN)),
    fault("load: unaligned", LOAD + rf"\[{REGISTER}\], [^;]+;", computed("add.s32", 16)),
    fault("load: tells other stage", LOAD + rf"[^}}]+}}\], \[{REGISTER}\][^;]*;", computed("add.s32", ROUND)),
    fault("load: for this block", LOAD + r"[^;]+;", alone),
    fault("load: for one block", "(" + LOAD + r"[^;]+), (%rs\d+);",
          r"{ .reg .b16 changed; and.b16 changed, \2, 1; \1, changed; }"),
    fault("load: for other blocks", "(" + LOAD + r"[^;]+), (%rs\d+);",
          r"{ .reg .b16 changed; and.b16 changed, \2, 2; \1, changed; }"),
    fault("products: no fence", r"wgmma\.fence[^;]+;", ""),
    fault("products: no commit", r"wgmma\.commit_group[^;]+;", ""),
    fault("products: no wait", r"wgmma\.wait_group[^;]+;", ""),
    fault("products: a group more", r"wgmma\.wait_group[^;]+ (?P<number>\d);", counted(1)),
    fault("proxy: no fence", r"fence\.proxy\.async[^;]+;", ""),
    fault("copies: no commit", r"cp\.async\.commit_group;", ""),
    fault("copies: no wait", r"cp\.async\.wait_group[^;]+;", ""),
    fault("copies: a group more", r"cp\.async\.wait_group (?P<number>\d);", counted(1)),
    fault("store: no commit", r"cp\.async\.bulk\.commit_group;", ""),
    fault("store: no wait", r"cp\.async\.bulk\.wait_group[^;]+;", ""),
    fault("store: a group more", r"cp\.async\.bulk\.wait_group\S* (?P<number>\d);", counted(1)),
    fault("barrier: none", r"bar\.sync[^;]+;", ""),
    fault("barrier: of all warpgroups", r"bar\.sync\s+%r\d+, 128;", "bar.sync 9, 128;"),
    fault("barrier: for two warps", r"bar\.sync\s+(%r\d+), 128;", r"bar.sync \1, 64;"),
    fault("cluster: none", r"barrier\.cluster\.arrive;\s*barrier\.cluster\.wait;", ""),
    fault("cluster: no arrival", r"barrier\.cluster\.arrive;", ""),
    fault("cluster: no wait", r"barrier\.cluster\.wait;", ""),
    fault("registers: not given up", r"setmaxnreg\.dec[^;]+;", ""),
    fault("registers: too many", r"(setmaxnreg\.inc\S+) 240;", r"\1 248;"),
)  # fmt: skip
"""Every fault of every instruction that orders what happens. Numbers alone would tell of copies of other
elements, and of products left out."""


def hopper_mutants(ptx: str, faults: Sequence[Fault] = FAULTS) -> Iterator[Mutant]:
    """The PTX with each fault at each place."""
    start = ptx.index(".entry")
    for fault in faults:
        for match in fault.pattern.finditer(ptx, start):
            changed = fault.changed(match)
            if changed is None:
                continue
            line = ptx.count("\n", 0, match.start()) + 1
            yield Mutant(fault.what, line, match[0], ptx[: match.start()] + changed + ptx[match.end() :])


def shortened(text: str) -> str:
    """An instruction without its long lists of registers."""
    return re.sub(r"\{[^}]{60,}\}", "{...}", " ".join(text.split()))
