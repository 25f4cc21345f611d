"""Predicted times printed: a ladder as a table, a row for each kernel; one rung or file in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Mapping, Protocol, Sequence

from rich.markup import escape

from tir_schedules.bench.views import figures
from tir_schedules.console import print_aligned, print_left_out, print_line, print_table
from tir_schedules.insight.inspection.tables import Row
from tir_schedules.insight.metrics.formats import number, percent
from tir_schedules.insight.times.doubts import doubts_of
from tir_schedules.insight.times.timed import Target, Timed, busy_at, limit_of, main_stall
from tir_schedules.timing.gpus import FIGURES
from tir_schedules.timing.states import MEANINGS

BUSY = 0.8
"""Share of cycles from which on a unit is said to limit a kernel."""

LINES, REASONS, WIDTH = 8, 3, 100
"""Lines that are shown of a kernel, states of each, and characters."""


class Recorded(Protocol):
    """A recorded time."""

    @property
    def gpu(self) -> str: ...
    @property
    def microseconds(self) -> float: ...
    @property
    def mhz(self) -> float | None: ...


Key = tuple[str, str, str]


def key_of(timed: Timed) -> Key:
    """How a record names it."""
    return timed.name, timed.form, str(timed.workload)


def micros(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.1f}"


def short_gpu(name: str) -> str:
    """ "H100" of "NVIDIA H100 80GB HBM3"."""
    words = [word for word in name.split() if any(letter.isdigit() for letter in word)]
    return words[0] if words else name


def error_of(timed: Timed, known: Recorded | None, target: Target) -> str:
    """How far the prediction is off, in brackets where another GPU was timed."""
    if not known or not timed.microseconds:
        return "-"
    error = f"{100 * (timed.microseconds / known.microseconds - 1):+.1f} %"
    return error if known.gpu == target.table.device else f"({error})"


def limit_text(timed: Timed) -> str:
    """ "fp32 units 91 %", or what warps wait for where nothing is busy."""
    name, share = limit_of(timed)
    if share >= BUSY:
        return f"{name} {100 * share:.0f} %"
    return f"latency: {main_stall(timed.states)}; {name} {100 * share:.0f} %"


# ---- a ladder ---
def print_ladder(
    rows: Sequence[Timed],
    known: Mapping[Key, Recorded],
    target: Target,
    bounds: Mapping[str, float] = {},
) -> None:
    """A row for each kernel, and below what the columns mean. bounds: the shortest time that a datasheet
    allows, by shape."""
    unit = next((timed.rate[1] for timed in rows if timed.rate), "")
    beside = any(key_of(timed) in known for timed in rows)
    shapes = {str(timed.workload) for timed in rows if timed.workload is not None}
    columns = ["kernel", *(["shape"] if len(shapes) > 1 else []), *(["bound us"] if bounds else [])]
    columns += ["predicted us", *([unit] if unit else [])]
    columns += [*(["recorded us", f"{unit} ", "on", "error"] if beside else []), "MHz", "limited by"]
    cells = []
    for timed in rows:
        shape = [str(timed.workload or "")] if len(shapes) > 1 else []
        shape += [micros(bounds.get(str(timed.workload), 0))] if bounds else []
        cells.append([escape(timed.label), *shape, *row_of(timed, known, target, bool(unit), beside)])
    spare = ("MHz", f"{unit} ", "limited by")
    print_left_out(print_table(columns, cells, prose={"limited by": 24}, spare=spare))
    for timed in rows:
        if not timed.prediction:
            print_line(refusal(timed))
        else:
            for doubt in doubts_of(timed.prediction):
                print_line(f"{timed.label}: {doubt}")
    where = f" on {next(iter(shapes))}" if len(shapes) == 1 else ""
    print_line(f"predicted{where} for {gpu_line(target)}; nothing was timed")
    if beside:
        print_line(
            "recorded: the median of samples; an error in brackets is against another GPU than the one"
            " that is predicted"
        )


def row_of(
    timed: Timed, known: Mapping[Key, Recorded], target: Target, rated: bool, beside: bool
) -> list[str]:
    one = known.get(key_of(timed))
    if not timed.prediction or not timed.clock or not timed.microseconds:
        told = ["refused", *["-"] * rated]
    else:
        told = [micros(timed.microseconds), *([figures(timed.rate[0]) if timed.rate else "-"] * rated)]
    if beside:
        told += recorded_cells(timed, one, target)
    limits = [f"{timed.clock.mhz:.0f}", limit_text(timed)] if timed.prediction and timed.clock else ["-", "-"]
    return told + limits


def recorded_cells(timed: Timed, one: Recorded | None, target: Target) -> list[str]:
    """Time, rate, GPU and error."""
    if not one or not timed.workload:
        return ["-", "-", "-", "-"]
    from tir_schedules.subjects.subject import rate_of

    rate, _ = rate_of(timed.family, timed.workload, one.microseconds)
    return [micros(one.microseconds), figures(rate), short_gpu(one.gpu), error_of(timed, one, target)]


def gpu_line(target: Target) -> str:
    """The GPU, and where its figures are from."""
    table = target.table
    text = f"{table.device} ({table.multiprocessors} SMs)"
    verified = [figure for figure in FIGURES if table.source(figure).verified]
    if len(verified) == len(FIGURES):
        return f"{text}, by its microbenchmarks with driver {table.driver}"
    known = f"of its figures {', '.join(verified)} are verified"
    return f"{text}; {known}, and others are published ones or the H100's"


def refusal(timed: Timed) -> str:
    """Why a kernel has no prediction; what refuses it may have named it."""
    named = timed.reason.startswith(f"{timed.label}:")
    return f"not predicted: {timed.reason if named else f'{timed.label}: {timed.reason}'}"


def line_of(timed: Timed, target: Target) -> str:
    """A prediction in a line."""
    if not timed.prediction or not timed.clock:
        return refusal(timed)
    took = f"{micros(timed.microseconds or 0)} us on {short_gpu(target.table.device)}"
    text = f"predicted: {timed.label} takes {took} at {timed.clock.mhz:.0f} MHz"
    text += f", limited by {limit_text(timed)}"
    if timed.ideal:
        share = 100 * (1 - timed.ideal.microseconds / (timed.microseconds or 1))
        text += f"; without bank conflicts {micros(timed.ideal.microseconds)} us, {share:.0f} % less"
    return "; ".join((text, *doubts_of(timed.prediction)))


def rows_beside(rows: Sequence[Timed | None], target: Target) -> list[Row]:
    """A heading and rows for a table of schedule beside twin."""
    device = short_gpu(target.table.device)
    cells = [
        (micros(row.microseconds), limit_text(row), main_stall(row.states))
        if row and row.prediction and row.microseconds
        else ("refused" if row else "-", row.reason if row else "-", "-")
        for row in rows
    ]
    names = ("  microseconds", "  limited by", "  a warp waits most for")
    found = [(name, *column) for name, column in zip(names, zip(*cells))]
    return [(f"[bold]time on {device}, predicted[/bold]", *[""] * len(rows)), *found]


# ---- one in full ---
def print_full(rows: Sequence[Timed], known: Mapping[Key, Recorded], target: Target) -> None:
    """Kernels beside each other, then what each one's lines cost."""
    shown = [timed for timed in rows if timed.prediction]
    if shown:
        print_line(heading(shown[0]))
    heads = [timed.form.partition(",")[0] or escape(timed.name) for timed in shown]
    if shown:
        facts = [*facts_of(shown, known, target), *state_rows(shown)]
        print_table(("", *heads), facts, prose={"": 24, **dict.fromkeys(heads, 16)})
    told: dict[str, list[str]] = {}
    for timed in shown:
        for note in notes_of(timed, target):
            told.setdefault(note, []).append(timed.form.partition(",")[0] or timed.name)
    for note, forms in told.items():
        print_line(note if len(forms) == len(shown) else f"{' and '.join(forms)}: {note}")
    for timed in rows:
        if not timed.prediction:
            print_line(refusal(timed))
    for timed in shown:
        print_lines(timed)
    if shown:
        print_line()
        print_line(f"predicted for {gpu_line(target)}; nothing was timed")


def heading(timed: Timed) -> str:
    """What is predicted: name, size, architecture."""
    where = f" on {timed.workload}" if timed.workload is not None else ""
    return f"{timed.name}{where}, compiled for {timed.binaries[0].kernel.arch}"


def facts_of(shown: Sequence[Timed], known: Mapping[Key, Recorded], target: Target) -> Iterator[Row]:
    """Rows of a name and a cell for each kernel."""

    def row(name: str, *cells: str) -> Row:
        return name, *cells

    launches = [timed.launch for timed in shown]
    predictions = [timed.prediction for timed in shown if timed.prediction]
    yield row("predicted us", *(micros(timed.microseconds or 0) for timed in shown))
    if all(timed.rate for timed in shown):
        rates = [timed.rate for timed in shown if timed.rate]
        yield row(rates[0][1], *(figures(rate) for rate, _ in rates))
    records = [known.get(key_of(timed)) for timed in shown]
    if any(records):
        yield row(
            "recorded us",
            *(f"{micros(one.microseconds)} ({short_gpu(one.gpu)})" if one else "-" for one in records),
        )
        yield row("error", *(error_of(timed, one, target) for timed, one in zip(shown, records)))
    yield row("clock, MHz", *(f"{one.mhz:.0f}" for one in predictions))
    yield row("cycles", *(number(round(one.cycles)) for one in predictions))
    counts = [len(one.launches) for one in predictions]
    if max(counts) > 1:
        yield row("launches", *map(str, counts))
        yield row("cycles of the longest", *(number(round(one.cycles)) for one in launches))
    overheads = [sum(each.overhead_us for each in one.launches) for one in predictions]
    yield row("launch overhead, us", *map(micros, overheads))
    yield row("limited by", *map(limit_text, shown))
    yield row("blocks on an SM at once", *(str(one.resident) for one in launches))
    yield row("waves", *(f"{one.waves:.2f}" for one in launches))
    yield row("SMs' turns filled", *(percent(timed.balance) for timed in shown))
    yield row("arrays are in", *(one.beyond.level.upper() for one in launches))
    yield row("L2 at the start", *("cold" for _ in launches))
    yield row("blocks that share a line", *(f"{one.beyond.shared_by:.1f}" for one in launches))
    yield row("an SM gets at most, bytes / cycle", *(f"{one.beyond.read_bytes:.1f}" for one in launches))
    if any(one.dram_us for one in launches):
        yield row("DRAM at the least, us", *(micros(one.dram_us) for one in launches))
    yield ("[bold]busy, share of cycles[/bold]", *[""] * len(shown))
    busy = [busy_at(launch, one.mhz) for launch, one in zip(launches, predictions)]
    for name in dict.fromkeys(name for shares in busy for name in shares):
        yield row(f"  {name}", *(percent(shares.get(name, 0)) for shares in busy))


def state_rows(shown: Sequence[Timed]) -> Iterator[Row]:
    """Warp states, the longest first."""
    yield ("[bold]warp states, share of cycles[/bold]", *[""] * len(shown))
    states = [timed.states for timed in shown]
    totals = [sum(each.values()) or 1 for each in states]
    names = dict.fromkeys(
        name for each in states for name, _ in sorted(each.items(), key=lambda one: -one[1])
    )
    for name in names:
        cells = [each.get(name, 0) / total for each, total in zip(states, totals)]
        if any(cell >= 0.0005 for cell in cells):
            meaning = f": {MEANINGS[name]}" if name in MEANINGS else ""
            yield (f"  {name}{meaning}", *map(percent, cells))


def notes_of(timed: Timed, target: Target) -> Iterator[str]:
    """What else there is to know of a prediction."""
    clock = timed.clock
    assert clock is not None and timed.prediction is not None, "it was predicted"
    yield f"{clock.mhz:.0f} MHz: {clock.why}"
    if clock.mhz < target.table.mhz and not isinstance(target.clock, float):
        most = replace(timed.prediction, mhz=target.table.mhz)
        yield f"at the maximum, {most.mhz:.0f} MHz, it takes {micros(most.microseconds)} us"
    yield from doubts_of(timed.prediction)


def print_lines(timed: Timed) -> None:
    """The costliest lines, and what warps wait for there."""
    total = sum(line.cycles for line in timed.lines) or 1
    rows = [
        (percent(line.cycles / total), states_text(line.states), line.place, cut(line.text.strip()))
        for line in timed.lines[:LINES]
    ]
    print_line()
    count = len(timed.prediction.launches) if timed.prediction else 0
    which = f", the longest of {count} launches" if count > 1 else ""
    print_aligned(("cycles", "warp states", "line", f"{timed.label}{which}"), rows)


def cut(text: str) -> str:
    """At most WIDTH characters of it."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 4]} ..."


def states_text(states: Mapping[str, int]) -> str:
    """ "long scoreboard 71 %, wait 12 %"."""
    total = sum(states.values()) or 1
    kept = sorted(states.items(), key=lambda one: -one[1])[:REASONS]
    return ", ".join(f"{name} {100 * cycles / total:.0f} %" for name, cycles in kept if cycles / total > 0.05)
