"""Shapes of GEMMs drawn by a seed, of kinds that say where they come from: none of them was chosen.

Extents are as likely to be between 64 and 128 as between 4096 and 8192. Kinds take turns, and so do formats
and layouts, one for each shape. A longer list with the same seed begins with the shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeVar

from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.problems import Problem, possible

MNK = ("M", "N", "K")
MOST_SHAPES, MOST_SEED = 1000, 2**32
MOST_ELEMENTS = 2**28
"""Most elements of a matrix: 1 GiB of float32."""
MOST_FLOPS = 2 * 8192**3
"""1.1 TFLOP, 20 ms of an H200 in fp32."""

HEAD_DIMS = (64, 128)
HIDDEN = (768, 1024, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192)
MLPS = (
    *((hidden, 4 * hidden) for hidden in HIDDEN),
    (4096, 11008),
    (4096, 14336),
    (5120, 13824),
    (8192, 28672),
)
"""Hidden and inner size of multilayer perceptrons: four times, and as in models with gates."""

Shape = tuple[int, int, int]
Value = TypeVar("Value")


class Dice(Random):
    """Draws by `random` alone, whose values are the same in all versions of Python."""

    def extent(self, least: int, most: int, step: int = 1) -> int:
        """A multiple of `step`, log-uniform between two others, both included."""
        first, last = least // step, most // step
        return step * min(last, int(first * ((last + 1) / first) ** self.random()))

    def one_of(self, values: Sequence[Value]) -> Value:
        return values[int(self.random() * len(values))]


def square(dice: Dice) -> Shape:
    """Half of them multiples of 8: rows of others are not multiples of 16 bytes in a format of 16 bits."""
    size = dice.extent(64, 8192, dice.one_of((1, 8)))
    return size, size, size


def aligned(dice: Dice) -> Shape:
    """Multiples of 8, or of 64."""
    step = dice.one_of((8, 64))
    return dice.extent(64, 8192, step), dice.extent(64, 8192, step), dice.extent(64, 8192, step)


def odd(dice: Dice) -> Shape:
    return dice.extent(32, 6000) | 1, dice.extent(32, 6000) | 1, dice.extent(32, 6000) | 1


def thin(dice: Dice) -> Shape:
    """M or N of 1 to 64. Half of the others are multiples of 8."""
    step = dice.one_of((1, 8))
    few, many, k = dice.extent(1, 64), dice.extent(512, 16384, step), dice.extent(256, 16384, step)
    return dice.one_of(((few, many, k), (many, few, k)))


def long_k(dice: Dice) -> Shape:
    """Half of them multiples of 8."""
    step = dice.one_of((1, 8))
    return dice.extent(16, 512, step), dice.extent(16, 512, step), dice.extent(8192, 2**18, step)


def attention(dice: Dice) -> Shape:
    """Scores, queries by keys of a head, or their product with its values. Half of the sequences are filled
    up to multiples of 64."""
    step, head = dice.one_of((1, 64)), dice.one_of(HEAD_DIMS)
    queries, keys = dice.extent(128, 16384, step), dice.extent(128, 16384, step)
    return dice.one_of(((queries, keys, head), (queries, head, keys)))


def mlp(dice: Dice) -> Shape:
    """1 to 8192 tokens by a weight of an MLP, up or down."""
    tokens, (hidden, inner) = dice.extent(1, 8192), dice.one_of(MLPS)
    return dice.one_of(((tokens, inner, hidden), (tokens, hidden, inner)))


KINDS: dict[str, Callable[[Dice], Shape]] = {
    "square": square,
    "aligned": aligned,
    "odd": odd,
    "thin": thin,
    "long K": long_k,
    "attention": attention,
    "MLP": mlp,
}


@dataclass(frozen=True)
class Drawn:
    """kind: one of KINDS. shape: M, N, K."""

    kind: str
    shape: Shape


def within_bounds(shape: Shape) -> bool:
    m, n, k = shape
    return max(m * k, k * n, m * n) <= MOST_ELEMENTS and 2 * m * n * k <= MOST_FLOPS


def draw(count: int, seed: int) -> list[Drawn]:
    """So many shapes, all different. BadInput for a number or a seed that cannot be."""
    if not 1 <= count <= MOST_SHAPES:
        raise BadInput(f"--random takes a number of shapes from 1 to {MOST_SHAPES}, not {count}")
    if not 0 <= seed < MOST_SEED:
        raise BadInput(f"--seed takes a whole number from 0 to {MOST_SEED - 1}, not {seed}")
    dice, kinds = Dice(seed), [*KINDS.items()]
    found: dict[Shape, str] = {}
    while len(found) < count:
        kind, shape_of = kinds[len(found) % len(kinds)]
        shape = shape_of(dice)
        if within_bounds(shape):
            found.setdefault(shape, kind)
    return [Drawn(kind, shape) for shape, kind in found.items()]


def drawn_problems(ladder: str, count: int, seed: int, asked: Mapping[str, str | None]) -> list[Problem]:
    """A problem for each shape, with one value of each kind that the ladder has. asked: kinds that are the
    same in all. BadInput for a ladder that is not a GEMM."""
    extents = ladder_of(ladder).extents
    if extents != MNK:
        raise BadInput(f"--random draws M, N and K; {ladder} has {', '.join(extents)}")
    turns = numerics(ladder, asked)
    return [
        Problem(ladder, drawn.shape, **turns[place % len(turns)])
        for place, drawn in enumerate(draw(count, seed))
    ]


def numerics(ladder: str, asked: Mapping[str, str | None]) -> Sequence[Mapping[str, str]]:
    """Kinds that shapes take in turn: of those that the ladder names the ones with all that is asked for; or
    all that can be, where it names none of these."""
    of, given = ladder_of(ladder), {name: value for name, value in asked.items() if value}
    named = [turn for turn in of.in_turn if given.items() <= turn.items()]
    if named:
        return named
    values = {name: [given[name]] if name in given else kind.values for name, kind in of.kinds.items()}
    workloads = possible(Problem(ladder, of.shape), values)
    return [{name: getattr(workload, name) for name in of.kinds} for workload in workloads]


def note_on(count: int, seed: int, workloads: Iterable[Any]) -> Json:
    """What results say of drawn shapes: seed, number, and the kind of each."""
    kinds = {drawn.shape: drawn.kind for drawn in draw(count, seed)}
    found = {str(workload): kinds[workload.shape] for workload in workloads if workload.shape in kinds}
    return {"shapes": count, "seed": seed, "kinds": found}
