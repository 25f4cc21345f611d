"""Results of instructions_on_gpu.py: the GPU's bits beside the CPU machine's, by launch and by line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Iterator, Sequence

import numpy as np
from packs import cells

from tir_schedules.files import Json
from tir_schedules.machines.cpu.catalogue import Entry, entries, expanded

EQUAL, DIFFERS, REFUSED, FAILED, UNTRIED = "equal", "differs", "ptxas refuses", "failed", "not tried"
KEPT = 512
"""Words of an output that a result has whole, where it differs."""

OUTCOMES = (EQUAL, DIFFERS, REFUSED, FAILED, UNTRIED)


# ---- one launch ---
def compared(
    entry: Json, before: dict[str, np.ndarray], after: dict[str, np.ndarray], got: dict[str, np.ndarray],
    mask: np.ndarray | None,
) -> Json:  # fmt: skip
    """How the GPU's outputs compare with the CPU machine's. Two NaN are equal, whichever they are."""
    row: Json = {"outcome": EQUAL}
    for name, ours in after.items():
        width = width_of(entry["number"], ours)
        a, b = (as_words(array, width) for array in (ours, got[name]))
        told = as_words(mask, width) if mask is not None else ~np.zeros_like(a)
        different = (a ^ b) & told != 0
        if entry["number"]:
            nans = is_nan(a, entry["number"]) & is_nan(b, entry["number"])
            if (different & nans).any():
                row["other_nans"] = row.get("other_nans", 0) + int((different & nans).sum())
            different &= ~nans
        if different.any():
            at = int(np.flatnonzero(different)[0])
            example = {"output": name, "element": at, "ours": hex(int(a[at])), "gpu": hex(int(b[at]))}
            example |= operands(entry, before, at * width // 64)
            row["outcome"] = DIFFERS
            row["differing"] = row.get("differing", 0) + int(different.sum())
            row["of"] = row.get("of", 0) + int(a.size)
            row.setdefault("example", example)
            row.setdefault("outputs", []).append(name)
            if a.size <= KEPT:
                row.setdefault("gpu", {})[name] = [hex(word) for word in b.tolist()]
            if entry["number"]:
                row["ulp"] = furthest(a[different], b[different], entry["number"])
    return row


def width_of(number: Sequence[int] | None, array: np.ndarray) -> int:
    """Bits of the words to compare."""
    width = number[0] if number else 8 * array.dtype.itemsize
    return width if width in (8, 16, 32, 64) and array.nbytes % (width // 8) == 0 else 8


def as_words(array: np.ndarray, width: int) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).view(f"u{width // 8}")


def is_nan(words: np.ndarray, number: Sequence[int]) -> np.ndarray:
    """number: bits of a number, of its exponent and of its mantissa."""
    width, exponent, mantissa = number
    if words.dtype.itemsize * 8 != width:
        return np.zeros(words.shape, bool)
    infinity = words.dtype.type(((1 << exponent) - 1) << mantissa)
    return words & words.dtype.type((1 << width - 1) - 1) > infinity


def furthest(ours: np.ndarray, theirs: np.ndarray, number: Sequence[int]) -> int | None:
    """The largest difference in units in the last place; None where one of two is NaN."""
    if (is_nan(ours, number) | is_nan(theirs, number)).any():
        return None
    return max(abs(place(x, number[0]) - place(y, number[0])) for x, y in zip(ours.tolist(), theirs.tolist()))


def place(bits: int, width: int) -> int:
    """Of a number among all of its type."""
    size = bits & (1 << width - 1) - 1
    return -size if bits >> width - 1 else size


def operands(entry: Json, before: dict[str, np.ndarray], lane: int) -> dict[str, Any]:
    """What a lane reads, for an opcode of the table."""
    rows = before["X"].reshape(-1, before["X"].shape[-1]) if entry["operands"] else None
    return (
        {}
        if rows is None
        else {"operands": [f"{k} {int(rows[row, lane]):#x}" for k, row in entry["operands"]]}
    )


# ---- all of them ---
def together(results: Sequence[Json]) -> Json:
    """Results of several packs as one; of a launch that two have, the later. packed: of each pack."""
    first, *others = results
    if not others:
        return first
    return {
        **first,
        "packed": [result["packed"] for result in results],
        "runs": [run for result in results for run in result["runs"]],
        "cases": {name: row for result in results for name, row in result["cases"].items()},
    }


def by_opcode(cases: dict[str, Json]) -> dict[str, str]:
    """Opcode -> the outcome of its launches. An opcode is held against the GPU by each launch that is equal
    and has it. One that differs speaks of its subject alone; where it may differ, of the opcodes it has that
    are modelled in all their forms."""
    known = [(line.precision, opcode) for line in entries() for opcode in expanded(line.opcodes)]
    exact, modelled = ({o for precision, o in known if precision == p} for p in ("exact", "modelled"))
    found: dict[str, str] = {}
    for outcome in (FAILED, REFUSED, EQUAL, DIFFERS):
        for row in cases.values():
            if row["outcome"] == outcome:
                told = row["opcodes"] if outcome == EQUAL else [row["subject"]]
                if outcome == DIFFERS and row["lenient"]:
                    told = [opcode for opcode in row["opcodes"] if opcode in modelled - exact]
                found |= dict.fromkeys(told, outcome)
    return found


def counts(cases: dict[str, Json]) -> Iterator[tuple[Entry, Counter[str]]]:
    """Lines of the instruction table that the CPU machine executes, and the outcomes of their opcodes."""
    found = by_opcode(cases)
    for line in entries():
        if line.precision != "refused":
            yield line, Counter(found.get(opcode, UNTRIED) for opcode in expanded(line.opcodes))


def lines(cases: dict[str, Json]) -> Iterator[str]:
    """A row for each of these lines, and their sum."""
    total = Counter[str]()
    yield cells("opcodes", "precision", "opcodes of it", "held against the GPU", *OUTCOMES)
    yield cells("---", "---", *["--:"] * (2 + len(OUTCOMES)))
    for line, counted in counts(cases):
        yield cells(line.opcodes, line.precision, *numbers(counted))
        total += counted
    yield cells("all", "", *numbers(total))


def record(result: Json) -> str:
    """JSON of a result without its launches: a row for each of these lines."""
    kept = {key: value for key, value in result.items() if key != "cases"}
    rows = [
        {
            "opcodes": line.opcodes, "precision": line.precision, "of": counted.total(),
            "held": counted[EQUAL] + counted[DIFFERS], "differs": counted[DIFFERS],
            "refused": counted[REFUSED],
        }
        for line, counted in counts(result["cases"])
    ]  # fmt: skip
    listed = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return f'{json.dumps(kept, indent=1)[:-2]},\n "lines": [\n{listed}\n ]\n}}\n'


def read_record(path: Path) -> list[Json]:
    return json.loads(path.read_text(encoding="utf-8"))["lines"]


def wrong_lines(rows: Iterable[Json]) -> list[str]:
    """Lines of a record that are exact and differ."""
    return [row["opcodes"] for row in rows if row["precision"] == "exact" and row["differs"]]


def numbers(counted: Counter[str]) -> list[int]:
    held = counted[EQUAL] + counted[DIFFERS]
    return [counted.total(), held, *(counted[outcome] for outcome in OUTCOMES)]


def remarks(cases: dict[str, Json]) -> Iterator[str]:
    """Launches that differ or failed, what ptxas says of those it refuses, and NaN of other bits."""
    for name, row in cases.items():
        if row["outcome"] == DIFFERS:
            ulp = f", up to {row['ulp']} ulp" if row.get("ulp") is not None else ""
            why = f" ({row['lenient']})" if row["lenient"] else ""
            example = ", ".join(f"{key} {value}" for key, value in row["example"].items())
            where = f" in {', '.join(row['outputs'])}" if "outputs" in row else ""
            told = f"{row['differing']} of {row['of']}{where} differ{ulp}: {example}"
            yield f"- {row['subject']}{why}: {told}; {name}"
        elif row["outcome"] == FAILED:
            yield f"- {row['subject']}: {row['why']}; {name}"
    reasons: dict[str, list[str]] = {}
    for name, row in cases.items():
        if row["outcome"] == REFUSED:
            reasons.setdefault(row["why"], []).append(name.removeprefix("table: "))
    for why, names in reasons.items():
        yield f"- ptxas refuses {', '.join(names)}: {why}"
    nans = sorted({row["subject"] for row in cases.values() if row.get("other_nans")})
    if nans:
        yield f"- NaN of other bits: {', '.join(nans)}"


def wrong(cases: dict[str, Json]) -> list[str]:
    """Launches that differ though each of their instructions is exact."""
    return [name for name, row in cases.items() if row["outcome"] == DIFFERS and not row["lenient"]]
