"""The banks of shared memory: which bank serves which lane in which wavefront of a request.

A wavefront serves one word of each bank, to any number of lanes. A request is split into phases first: the
whole warp for up to 4 bytes per lane, half warps for 8, quarter warps for 16; loads whose lanes ask pairwise
for the same address take half as many. The CPU machine counts by the same rules
(machines/cpu/core/counters.cpp); here they say which lane is served when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

BANKS = 32
WORD = 4  # bytes
LANES = 32
LINE = BANKS * WORD  # bytes in which every bank has one word
PAIRING = ("shared_load",)
"""Classes of access whose lanes may pair."""


@dataclass(frozen=True)
class Served:
    """A word that a bank serves in one wavefront, and the lanes that get it. word: byte address / 4."""

    word: int
    lanes: tuple[int, ...]


Wavefront = Mapping[int, Served]
"""Bank -> what it serves."""


@dataclass(frozen=True)
class Phase:
    """Lanes that are served together: in one wavefront, unless they ask a bank for two words."""

    lanes: tuple[int, ...]
    wavefronts: tuple[Wavefront, ...]

    def as_json(self) -> dict[str, object]:
        """wavefronts: of each, the banks it uses, the word each serves and the lanes that get it."""
        served = [[{"bank": bank, **vars(one)} for bank, one in each.items()] for each in self.wavefronts]
        return {"lanes": self.lanes, "wavefronts": served}


def bank_of(word: int) -> int:
    return word % BANKS


def words_of(address: int, width: int) -> range:
    """The words that `width` bytes at an address lie in."""
    return range(address // WORD, address // WORD + max(1, width // WORD))


def split(
    addresses: Sequence[int], width: int, lanes: Sequence[int] = range(LANES), pairing: bool = False
) -> tuple[Phase, ...]:
    """The phases of a request, and their wavefronts.

    addresses: in bytes, of all 32 lanes. width: bytes per lane. lanes: the active ones. pairing: whether it
    is a load.
    """
    together = LANES // max(1, width // WORD)
    if pairing and width > WORD and any(lanes_pair(addresses, lanes, distance) for distance in (1, 2)):
        together *= 2
    groups = [tuple(lane for lane in lanes if lane // together == k) for k in range(LANES // together)]
    return tuple(Phase(group, wavefronts(addresses, width, group)) for group in groups if group)


def lanes_pair(addresses: Sequence[int], lanes: Sequence[int], distance: int) -> bool:
    """Whether every lane asks for the same address as lane ^ distance, where that lane is active."""
    return all(addresses[lane] == addresses[lane ^ distance] for lane in lanes if lane ^ distance in lanes)


def wavefronts(addresses: Sequence[int], width: int, lanes: Sequence[int]) -> tuple[Wavefront, ...]:
    """The wavefronts of a phase: a bank serves its words in the order in which lanes ask for them."""
    asked: dict[int, dict[int, list[int]]] = {}
    for lane in lanes:
        for word in words_of(addresses[lane], width):
            asked.setdefault(bank_of(word), {}).setdefault(word, []).append(lane)
    turns = max(len(words) for words in asked.values())
    found: list[dict[int, Served]] = [{} for _ in range(turns)]
    for bank, words in sorted(asked.items()):
        for turn, (word, served) in enumerate(words.items()):
            found[turn][bank] = Served(word, tuple(served))
    return tuple(found)


def cost(phases: Sequence[Phase]) -> int:
    """Wavefronts of a request."""
    return sum(len(phase.wavefronts) for phase in phases)
