"""The inputs that a kernel is run with, so that no wrong kernel hides in a tolerance.

Random numbers come first. Whole numbers follow, whose sums are exact. Then a sample of the elements of every
input is left out of the expected values, one at a time: where that stays within the tolerance of all runs, a
run with single large numbers is added. Last come NaN, infinity, -0 and denormal numbers in single places.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import (
    KINDS,
    NEGATIVE,
    OUT,
    QUARTERS,
    SHRINK,
    SPARSE,
    WHOLE,
    Argument,
    borders,
    impulses,
    is_real,
    sampled_places,
    seed_of,
    special_values,
    whole_numbers,
    wide_numbers,
)
from tir_schedules.check.expecting import (
    VISIBLE,
    Expected,
    Question,
    SpecialTruth,
    Truth,
    refuse_vague,
    values_of,
)
from tir_schedules.check.expressions import functions_in, nodes_in, numbers_in
from tir_schedules.check.functions import SELECTING, TO_INTEGERS, compares
from tir_schedules.check.types import LARGEST, format_of
from tir_schedules.errors import BadInput
from tir_schedules.model.verify import difference, element

MOST_WORK = 1 << 26
"""Elements that may be handled to find out which inputs matter."""


NOISE = 1e-12
"""Smaller changes, as a share, are rounding errors of float64."""

LOOSE = 0.25
"""Share of the sampled elements. If tolerances hide so many, a kernel is not called verified."""

SHARE = 0.5
"""Share of the values that depend on an element. In a softmax x[j] decides only y[j], and has a small part in
all other values of its row. So a change of y[j] says nothing about the sum."""

FEWEST, MOST = 6, 24
"""Elements that are sampled of each input."""

MOST_RUNS, FEW_RUNS, FEW_ELEMENTS = 8, 3, 1 << 17
"""Runs with single large numbers: of inputs with up to so many elements in all, and of larger ones."""


@dataclass(frozen=True)
class Trial:
    """Inputs, and what outputs should be. arguments: arrays by name. kind: of inputs, in words; "" for random
    ones. special: whether NaN and the like are among them. note: which ones, in words."""

    arguments: Mapping[str, Argument]
    truths: Mapping[str, Truth]
    kind: str = ""
    special: bool = False
    note: str = ""


@dataclass(frozen=True)
class Trials:
    """What a kernel is run on. unshown: inputs that no run can show to matter, and why, in words. loose:
    whether rounding errors are the reason for some."""

    runs: tuple[Trial, ...]
    unshown: tuple[str, ...] = ()
    loose: bool = False


def finite_trials(question: Question, arrays: Mapping[str, Argument]) -> Trials:
    """Random inputs, and what has to follow them. BadInput where an expression fails on the first, or where
    rounding errors may be larger than its values and no other inputs tell more."""
    first = Trial(arrays, question.truths(arrays, bounded=False))
    by_expression = question.expect and all(isinstance(one.value, str) for one in question.expect)
    if not by_expression or question.tolerance is not None:
        return Trials((first,))
    exact = exact_trials(question, arrays)
    if not exact:
        refuse_vague(first.truths)
    return Sensitivity(question, [first, *exact]).completed()


def with_values(arrays: Mapping[str, Argument], values: Mapping[str, np.ndarray]) -> dict[str, Argument]:
    return {**arrays, **{name: replace(arrays[name], value=value) for name, value in values.items()}}


def whole_arrays(
    question: Question, arrays: Mapping[str, Argument], kind: str, drawn: Mapping[str, Argument]
) -> dict[str, Argument]:
    """With whole numbers in some of them."""
    return redrawn(question, arrays, kind, drawn, lambda one, seed: whole_numbers(one, kind, seed))


def redrawn(
    question: Question,
    arrays: Mapping[str, Argument],
    kind: str,
    drawn: Mapping[str, Argument],
    draw: Callable[[Argument, int], np.ndarray],
) -> dict[str, Argument]:
    """With other numbers in those that are drawn, each with a seed of its own."""
    values = {name: draw(one, seed_of(f"{name} {kind}", question.seed)) for name, one in drawn.items()}
    return with_values(arrays, values)


def exact_trials(question: Question, arrays: Mapping[str, Argument]) -> list[Trial]:
    """A trial with whole numbers whose sums are exact; one with negative numbers where the expression
    compares, one with quarters where it rounds."""
    kinds: list[Sequence[str]] = [KINDS]
    kinds += [(NEGATIVE,)] if question.compares() else []
    kinds += [(QUARTERS,)] if any(functions_in(one.value) & TO_INTEGERS for one in question.expect) else []
    found = [telling_trial(question, arrays, each) for each in kinds]
    found += [border_trial(question, arrays)] if question.compares() else []
    in_halves = question.arithmetic.narrow  # which are soon infinite
    found += [wide_trial(question, arrays)] if question.is_curved() and not in_halves else []
    return [trial for trial in found if trial]


def trial_of(question: Question, arrays: Mapping[str, Argument], kind: str, note: str = "") -> Trial | None:
    """A trial with these inputs; None where the expressions say nothing about their outputs."""
    try:
        return Trial(arrays, question.truths(arrays), kind, note=note)
    except BadInput:
        return None


def wide_trial(question: Question, arrays: Mapping[str, Argument]) -> Trial | None:
    """A trial with random numbers up to WIDE, for functions that kernels cut off; None where some value is
    too large for its format."""
    drawn = {name: one for name, one in question.drawn_reals(arrays).items() if one.has_no_limit}
    changed = redrawn(question, arrays, "wide", drawn, wide_numbers)
    trial = trial_of(question, changed, "wide") if drawn else None
    if trial is None:
        return None
    _, overflows = question.values_and_overflow(values_of(changed))
    small = not overflows and all(
        np.all(np.abs(truth.value) < LARGEST.get(format_of(arrays[one.output].value.dtype), np.inf))
        for one, truth in zip(question.expect, trial.truths.values())
    )
    floor = np.finfo(np.float32).tiny  # which functions may take for 0
    truths = {key: replace(truth, allowed=truth.allowed + floor) for key, truth in trial.truths.items()}
    return replace(trial, truths=truths) if small else None


def border_trial(question: Question, arrays: Mapping[str, Argument]) -> Trial | None:
    """A trial with the numbers that an expression compares with, and their neighbours; None where there is
    none."""
    numbers = {number for one in question.expect for number in numbers_in(one.value)}
    numbers |= {value for _, value in question.given_reals()}
    drawn = question.drawn_freely(arrays) if numbers else {}
    every = sorted(numbers | {0.0})
    changed = redrawn(question, arrays, "borders", drawn, lambda one, seed: borders(one, every, seed))
    trial = trial_of(question, changed, "border") if drawn else None
    overflows = trial and any(wraps(question, one, values_of(changed)) for one in question.expect)
    return None if overflows else trial


def telling_trial(question: Question, arrays: Mapping[str, Argument], kinds: Sequence[str]) -> Trial | None:
    """A trial with the first kind of whole numbers whose sums are exact; None where there is none. Integers
    are drawn anew where the expression compares: all of one sign, they have another largest and least."""
    drawn = question.drawn_freely(arrays) if question.compares() else question.drawn_reals(arrays)
    for kind in kinds if drawn else ():
        changed = whole_arrays(question, arrays, kind, drawn)
        trial = trial_of(question, changed, "small whole" if kind in KINDS else kind)
        if trial and all(truth.telling for truth in trial.truths.values()):
            return trial
    return None


# ---- every input must matter ---
@dataclass
class Sensitivity:
    """Finds elements of inputs that trials cannot show to matter, and makes trials that can."""

    question: Question
    trials: list[Trial]
    sampled: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Elements of each input that are tried."""

    effects: dict[tuple[str, tuple[int, ...]], tuple[float, float]] = field(default_factory=dict)
    """Element -> the largest change of an output when it is left out that the tolerance there hides, and that
    tolerance."""

    def completed(self) -> Trials:
        """The trials with those that are needed besides, and what still cannot be shown."""
        first = self.trials[0]
        names = self.question.names()
        mentioned = [name for name, one in first.arguments.items() if name in names and one.role != OUT]
        work = sum(truth.work for truth in first.truths.values()) + 1
        count = min(MOST, MOST_WORK // (work * max(1, len(mentioned)) * len(self.trials)))
        blind: dict[str, list[tuple[int, ...]]] = {}
        if count < FEWEST:
            return Trials(tuple(self.trials))
        for name in mentioned:
            draw = np.random.default_rng(seed_of(f"{name} sampled", self.question.seed))
            places = sampled_places(first.arguments[name].value.shape, count, draw)
            self.sampled[name] = places
            left = [place for place in places if not self.is_shown(name, place, self.trials)]
            if left or self.question.compares():
                blind[name] = left
        added = self.impulse_trials(blind)
        self.trials += added
        hidden = {
            name: [each for each in places if (name, each) in self.effects] for name, places in blind.items()
        }
        loose = any(
            len(places) >= LOOSE * len(self.sampled[name]) for name, places in hidden.items() if places
        )
        unshown = [self.told(name, places) for name, places in hidden.items() if places]
        unshown += [
            f"no expected value depends on {name} in any run"
            for name, places in blind.items()
            if len(places) == len(self.sampled[name]) and not hidden[name] and not self.depends(name)
        ]
        unshown += self.unshown_constants()
        return Trials(tuple(self.trials), tuple(unshown), loose)

    def depends(self, name: str) -> bool:
        """Whether an expected value depends on an array, also on elements that are not sampled."""
        for trial in self.trials:
            arrays = values_of(trial.arguments)
            array = arrays[name]
            other = array + np.ones_like(array) if np.all(array == array.flat[:1]) else np.roll(array, 1)
            try:
                values = self.question.values({**arrays, name: other})
            except BadInput:
                return True
            if any(
                not np.array_equal(values[key], truth.value, equal_nan=True)
                for key, truth in trial.truths.items()
            ):
                return True
        return False

    def unshown_constants(self) -> list[str]:
        """Reals of the expressions that no trial shows to matter, also not one with small numbers, which is
        added where it shows some."""
        found = list(self.question.other_constants())
        blind = [each for each in found if not any(self.tells(trial, each[1]) for trial in self.trials)]
        small = small_trial(self.question, self.trials[0].arguments) if blind else None
        left = [each for each in blind if not (small and self.tells(small, each[1]))]
        self.trials += [small] if small and len(left) < len(blind) else []
        return [f"no run shows whether the kernel uses {shown}" for shown, _ in left]

    def tells(self, trial: Trial, other: Question) -> bool:
        """Whether a trial tells the expected values from those of another question."""
        try:
            values = other.values(values_of(trial.arguments))
        except BadInput:
            return True
        with np.errstate(all="ignore"):
            return any(
                bool(np.any(np.abs(distance(values[key], truth.value)) > VISIBLE * truth.allowed))
                for key, truth in trial.truths.items()
            )

    def impulse_trials(self, blind: dict[str, list[tuple[int, ...]]]) -> list[Trial]:
        """Trials that show elements to matter, which leave `blind`. Where the expression compares, all that
        were sampled are also the least, because it may have the largest and the least."""
        first, added = self.trials[0].arguments, []
        elements = sum(one.value.size for one in first.values())
        runs = MOST_RUNS if elements <= FEW_ELEMENTS else FEW_RUNS
        compares = self.question.compares()
        for name in [name for name in blind if name in self.question.drawn(first)]:
            for sign in (1, -1) if compares else (1,):
                left = list(blind[name] if sign == 1 else self.sampled[name])
                for _ in range(runs // len(blind) // (1 + compares)):
                    trial, shown = self.impulse_trial(name, left, sign)
                    if trial is None:
                        break
                    added.append(trial)
                    left = [place for place in left if place not in shown]
                blind[name] = left if sign == 1 else blind[name]
        return added

    def is_shown(self, name: str, place: tuple[int, ...], trials: Sequence[Trial]) -> bool:
        """Whether a trial shows that an element is left out."""
        return any(self.shows(trial, name, place) for trial in reversed(trials))

    def shows(self, trial: Trial, name: str, place: tuple[int, ...]) -> bool:
        """Whether leaving an element out changes most of the values that depend on it by more than their
        tolerance. It becomes 0; where the expression compares, also another element of the array, because 0
        may be the largest."""
        array = trial.arguments[name].value
        others = array[array != array[place]][:1] if self.question.compares() else []
        return all(self.moves(trial, name, place, by) for by in (0 if array[place] else 1, *others))

    def moves(self, trial: Trial, name: str, place: tuple[int, ...], value: Any) -> bool:
        """The same with a value in the element's place."""
        arrays = values_of(trial.arguments)
        without = np.array(arrays[name])
        without[place] = value
        try:
            changed = self.question.values({**arrays, name: without})
        except BadInput:
            return True
        depend = seen = 0
        for key, truth in trial.truths.items():
            with np.errstate(all="ignore"):
                moved = np.abs(distance(changed[key], truth.value))
                moved = np.where(np.isnan(moved), np.where(np.isnan(truth.value), 0.0, np.inf), moved)
                depends = moved > NOISE * np.abs(truth.value)
                visible = depends & (moved > VISIBLE * truth.allowed)
            depend, seen = depend + int(depends.sum()), seen + int(visible.sum())
            if (depends & ~visible).any():
                at = int(np.argmax(np.where(visible, 0, moved)))
                allowed = float(np.broadcast_to(truth.allowed, moved.shape).flat[at])
                before = self.effects.get((name, place), (0.0, 0.0))
                self.effects[name, place] = max(before, (float(moved.flat[at]), allowed))
        return bool(depend) and seen >= SHARE * depend

    def impulse_trial(
        self, name: str, places: Sequence[tuple[int, ...]], sign: int
    ) -> tuple[Trial | None, list[tuple[int, ...]]]:
        """A trial in which some elements of an array are large, each a different number, and those elements
        that it shows to matter. The trial is None if no trial shows more. sign: -1 for negative numbers."""
        first = self.trials[0].arguments
        best: tuple[Trial | None, list[tuple[int, ...]]] = None, []
        for kind in (SPARSE, WHOLE, "") if places else ():
            drawn = self.question.drawn(first) if kind else {}
            background = whole_arrays(self.question, first, kind, drawn)
            for value in impulses(first[name], sign):
                array = np.array(background[name].value)
                for number, place in enumerate(places):
                    array[place] = value * (1 - number / 64)
                changed = with_values(background, {name: array})
                note = f"{element(name, places[0])} is {value:g}"
                trial = trial_of(self.question, changed, "single large", note)
                if trial is None:
                    continue
                shown = [place for place in places if self.shows(trial, name, place)]
                if len(shown) > len(best[1]):
                    best = trial, shown
                if len(shown) >= len(places) / 2 or shown and self.question.compares():
                    return best
        return best

    def told(self, name: str, places: Sequence[tuple[int, ...]]) -> str:
        """Why some elements cannot be shown to matter."""
        place = max(places, key=lambda one: self.effects.get((name, one), (0.0, 0.0)))
        effect, allowed = self.effects.get((name, place), (0.0, 0.0))
        others = f" and {len(places) - 1} other elements of {name} that were tried" if len(places) > 1 else ""
        return (
            f"no run shows whether the kernel uses {element(name, place)}{others}: without it an expected"
            f" value changes by {effect:.2g}, and rounding explains {allowed:.2g}"
        )


def small_trial(question: Question, arrays: Mapping[str, Argument]) -> Trial | None:
    """A trial with random numbers that are small beside constants; None where there is none."""
    drawn = {name: one for name, one in question.drawn_reals(arrays).items() if one.has_no_limit}
    small = {name: (one.value * np.asarray(SHRINK, one.value.dtype)) for name, one in drawn.items()}
    return trial_of(question, with_values(arrays, small), "small") if small else None


def distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Differences of values, also of integers, as reals."""
    if one.dtype.kind in "iub" and other.dtype.kind in "iub":
        return difference(one, other)
    return one.astype(float) - other.astype(float)


# ---- NaN, infinity, -0, denormal numbers and the largest power of two, in single places ---
# IEEE arithmetic judges them: an output that depends on NaN or infinity has to be what the expression gives.
# Four things are not judged, because right kernels differ in them: the result of a comparison with NaN; a
# value that overflows in float32 on the way; an element that the expression multiplies by 0, which a kernel
# may skip; and a comparison of sums of integers that do not fit their format.
Places = Mapping[str, Sequence[tuple[int, ...]]]

SHOWN = 1
"""Special numbers that a message names."""

FINITE_AT = 2
"""Special numbers of an array that are replaced by finite ones, each by itself."""

FINITE = (-1.0, 1.0, 0.3)
"""What takes the place of special numbers, in fourth roots of the largest: a value that is the same with all
three does not depend on it."""

SMALL_INTEGER = 50
"""What takes the place of the largest integers."""

ALIKE = 1e-4
"""How far apart, as a share, a value in float32 and one in float64 may be that do not overflow on the way."""


def special_trials(question: Question, trials: Sequence[Trial]) -> Iterator[Trial]:
    """A trial with NaN, -0 and a denormal number; one with infinity and the largest power of two; one with
    the negatives of these. trials: those before. The first of them gives all other numbers."""
    arrays = trials[0].arguments
    names = question.names() if all(isinstance(one.value, str) for one in question.expect) else set()
    arithmetic = question.arithmetic
    small = [] if arithmetic.flushes else ["denormal"]
    large = [] if arithmetic.added | arithmetic.cut else ["largest"]
    kinds = (
        ("NaN", ["nan", "-0.0", *small], question.drawn_reals(arrays)),
        ("infinite", ["inf", *large], question.drawn(arrays)),
        ("negative infinite", ["-inf", *(f"-{one}" for one in large)], question.drawn(arrays)),
    )
    for kind, values, drawn in kinds:
        used = {name: one for name, one in drawn.items() if name in names and one.has_no_limit}
        changed, places = special_values(used, values, seed_of(kind, question.seed))
        try:
            truths = special_truths(question, arrays, changed, places, kind == "NaN") if changed else {}
        except BadInput:  # the expression has no value for these
            continue
        if truths:
            yield Trial(with_values(arrays, changed), truths, kind, True, noted(changed, places))


def noted(changed: Mapping[str, np.ndarray], places: Places) -> str:
    """Which elements are special, as far as there is room: "x[3] is nan"."""
    found = [
        f"{element(name, each)} is {changed[name][each]:g}" for name, some in places.items() for each in some
    ]
    return ", ".join(found[:SHOWN])


def special_truths(
    question: Question,
    arrays: Mapping[str, Argument],
    changed: Mapping[str, np.ndarray],
    places: Places,
    nan: bool,
) -> dict[str, SpecialTruth]:
    """What outputs should be, and which of them are judged."""
    special = {**values_of(arrays), **changed}
    in_float32, overflows = question.values_and_overflow(special)
    as_reals = {one.key: in_reals(question, one, special) for one in question.expect}
    ends = [[question.values(moved(arrays, places, at, by)) for by in FINITE] for at in range(FINITE_AT)]
    found = {}
    for one, (key, truth) in zip(
        question.expect, question.truths(with_values(arrays, changed), False).items()
    ):
        with np.errstate(all="ignore"):
            depends, on_largest = (
                ~np.all([end[key] == each[0][key] for end in each], axis=0) for each in ends
            )
            finite, real = np.isfinite(truth.value), truth.value.dtype.kind == "f"
            wrapped = False
            in_float64 = as_reals[key]
            if real and in_float64 is not None:  # integers of the expression may overflow
                wrapped = ~np.isclose(in_float64, truth.value, ALIKE, 0) & finite
            known = np.isclose(in_float32[key], truth.value, ALIKE, 0) & np.isfinite(truth.allowed)
            known &= is_of_format(truth.value, arrays[one.output].value.dtype)
        free = finite & ~known | ~finite & ~depends | wrapped
        if arrays[one.output].value.dtype.kind in "iu" and any(map(is_real, changed.values())):
            converts = bool(functions_in(one.value) & TO_INTEGERS)
            free |= ~finite | converts & (depends | on_largest)  # a cast of these has no value in C++
        if compares(one.value):
            free |= depends if nan else np.isnan(truth.value)
            if wraps(question, one, special):
                around = question.values({**special, **wrapped_around(changed, places)})
                free |= around[key] != truth.value
        if overflows:
            free |= on_largest
        if real and not nan:
            free |= depends & on_largest  # a product that overflows first meets infinity
        infinite = ~finite & (not selects(one.value))
        allowed = np.where(np.isfinite(truth.allowed), truth.allowed, 0.0)
        if real and not functions_in(one.value) <= SELECTING:  # which may lose numbers that are not normal
            allowed = allowed + np.finfo(np.float32).tiny
        found[key] = SpecialTruth(truth.value, allowed, truth.flat, free=free, infinite=infinite)
    return found


def wraps(question: Question, one: Expected, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether a part of an expression for integers has values that the widest format of integers among the
    arrays has not: a kernel that adds in it compares others. Not where the expression has a number at the
    format's end, because then it is about what becomes of those values."""
    if arrays[one.output].dtype.kind not in "iu":
        return False
    limit = float(max(np.iinfo(array.dtype).max for array in arrays.values() if array.dtype.kind in "iu"))
    largest, number = question.widest(one, arrays)
    return largest > limit + 1 and number < limit


def wrapped_around(changed: Mapping[str, np.ndarray], places: Places) -> dict[str, np.ndarray]:
    """Special integers with what arithmetic in their format cannot tell from them."""
    found = {}
    for name, array in changed.items():
        if array.dtype.kind in "iu":
            found[name] = array.astype(np.int64)
            for place in places[name]:
                found[name][place] -= np.sign(found[name][place]) << 8 * array.itemsize
    return found


def is_of_format(values: np.ndarray, dtype: Any) -> Any:
    """Which values an output can have. Above the largest power of two only what is made the largest number,
    by nan_to_num."""
    size = np.abs(values)
    if dtype.kind in "iu":
        return (values.dtype.kind != "f") | (size < np.iinfo(dtype).max)
    format = format_of(dtype)
    return (size < LARGEST.get(format, np.inf)) | (size == np.finfo(np.float32).max)


def in_reals(question: Question, one: Expected, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """An expected value with reals in the place of integers; None where the expression needs integers."""
    reals = {
        name: array.astype(float) if array.dtype.kind in "iu" else array for name, array in arrays.items()
    }
    try:
        return replace(question, expect=[one]).values(reals)[one.key]
    except BadInput:
        return None


def moved(arrays: Mapping[str, Argument], places: Places, at: int, by: float) -> dict[str, np.ndarray]:
    """The arrays with other finite numbers where a special one will be: an expected value that does not
    change does not depend on it. at: 0 for NaN and infinity, 1 for the largest."""
    found = values_of(arrays)
    for name, chosen in places.items():
        found[name] = np.array(found[name])
        largest = LARGEST.get(format_of(found[name].dtype), SMALL_INTEGER**4) ** 0.25
        if at < len(chosen):
            found[name][chosen[at]] = np.array(by * largest).astype(found[name].dtype)
    return found


def selects(expression: str) -> bool:
    """Whether an expression moves and chooses elements, without arithmetic."""
    return ast.BinOp not in nodes_in(expression) and functions_in(expression) <= SELECTING
