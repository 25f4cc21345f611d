"""Damaged files of each kind that verbs read, and what the verbs say of them.

    python tests/fuzz/fuzzing.py [COUNT] [SEED]

damages COUNT files of each kind (default 2000; a tenth of it for reports, which are drawn) and prints how
many were read and how many refused. Damage: bits flipped, bytes cut out, doubled and cut off, values of other
types, keys missing, twice and unknown, deep nests, numbers that are none, line ends lost.
"""

from __future__ import annotations

import io
import json
import random
import sys
import warnings
import zipfile
from collections import Counter
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable
from unittest import mock

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "tuning")]

import made_up  # noqa: E402
from made_records import record  # noqa: E402

from tir_schedules.bench import session  # noqa: E402
from tir_schedules.bench.measure import Policy  # noqa: E402
from tir_schedules.cli import main as cli  # noqa: E402
from tir_schedules.insight.profile import results as counted_results  # noqa: E402
from tir_schedules.model.counters import METRICS  # noqa: E402
from tir_schedules.subjects.packs import save_pack  # noqa: E402
from tir_schedules.subjects.results import as_text  # noqa: E402
from tir_schedules.tuning.records import journal  # noqa: E402

ODD = (
    None, True, False, 0, 1, -1, 1.5, 1e308, -1e308, 10**19, 10**30, 2**31, 2**63, "", "1", "\0", "a\nb",
    "\x1b[2J", "\ud800", "é" * 300,
    "../../x", "$\\frac{$", "<script>", "x" * 100_000, [], [[]], [None], {}, {"": {}}, {"a": 1.5},
    float("nan"), float("inf"), "sgemm", "sm_90",
)  # fmt: skip


def parts(value: Any, found: list | None = None) -> list[tuple[Any, Any]]:
    """All places in a JSON value: a list or an object and an index or key."""
    found = [] if found is None else found
    for key, each in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        found.append((value, key))
        parts(each, found)
    return found


def change_value(rng: random.Random, value: Any) -> str:
    """JSON in which one to three places are other than they were."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice(parts(value) or [([0], 0)])
        what = rng.random()
        if what < 0.6:
            holder[key] = rng.choice(ODD)
        elif what < 0.75:
            del holder[key]
        elif what < 0.9 and isinstance(holder, dict):
            holder[rng.choice(("", "more", "m", "points", "cub", "schema"))] = rng.choice(ODD)
        elif isinstance(holder, list):
            holder.append(rng.choice(ODD))
    text = json.dumps(value)
    if rng.random() < 0.05:
        depth, (start, end) = rng.choice((10, 63, 65, 500, 20_000)), rng.choice((("[", "]"), ('{"a":', "}")))
        text = f'{text[:-1]}, "deep": {start * depth}1{end * depth}}}'
    if rng.random() < 0.03:
        text = text.replace(",", ', "schema": 1,', 1)
    return text


def change_bytes(rng: random.Random, content: bytes) -> bytes:
    """Content with bits flipped, a piece missing or doubled, or its end cut off."""
    content, what, at = bytearray(content), rng.random(), rng.randrange(len(content))
    if what < 0.5:
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif what < 0.65:
        del content[at:]
    elif what < 0.8:
        del content[at : at + rng.choice((1, 2, 100))]
    elif what < 0.9:
        content[at:at] = content[at : at + rng.choice((1, 50))]
    else:
        content[at:at] = rng.choice(
            (
                b"\0",
                b"\xff",
                b"\r",
                b"\n",
                b"\xef\xbb\xbf",
                b"NaN",
                b"{",
                b"]",
                b'"',
                b"\x1f\x8b",
                b"9" * 5000,
            )
        )
    return bytes(content)


def change_text(rng: random.Random, value: Any, written: str) -> bytes:
    return change_bytes(rng, written.encode()) if rng.random() < 0.4 else change_value(rng, value).encode()


class Kind:
    """name: of the kind. suffix: of its files. make(rng): a damaged file. arguments(path): how a verb is made
    to read one."""

    def __init__(self, name: str, suffix: str, make: Callable[[random.Random], bytes], *arguments: str):
        self.name, self.suffix, self.make, self.arguments = name, suffix, make, arguments


def refuse(subject: Any) -> str:
    return "wrong" if subject.form == "twin" else ""


def results(rng: random.Random) -> bytes:
    document = made_up.results("sgemm/naive", "reduce/shuffle", sizes=(64,), n=(64,), refuse=refuse)
    return change_text(rng, document, as_text(document))


def sweeps(rng: random.Random) -> bytes:
    """What a report draws: a ladder and, where its command is that of a sweep, points."""
    document = made_up.results(
        "hgemm/wmma_padded", sizes=(64, 128), layout="nt", accumulate="float16", refuse=refuse
    )
    identity = {key: document["rows"][0][key] for key in ("family", "form", "shape", "workload")}
    access = {"requests": 9, "cost": 70, "ideal": 7}
    facts = {
        "registers": 9,
        "spill_bytes": 0,
        "shared_bytes": 9,
        "occupancy": {"blocks": 3},
        "reads": access,
        "writes": access,
    }
    points = [
        {**identity, "name": f"hgemm/wmma_padded:article_004,skew={value}", **facts} for value in (0, 8)
    ]
    refused = {"name": "hgemm/wmma_padded:article_004,skew=2", "cannot": "rows are misaligned"}
    points.append({**identity, **refused})
    document |= {
        "command": rng.choice(("bench hgemm", "experiments/sweeps.py padding")),
        "arch": "sm_90",
        "points": points,
    }
    return change_text(rng, document, as_text(document))


def launch(label: str, loads: int, **facts: Any) -> dict[str, Any]:
    predicted = {"shared_load": {"requests": 9, "cost": loads, "ideal": 9}, "global_store": {"cost": 8}}
    measured = dict.fromkeys(METRICS, 9.0)
    return {
        "label": label,
        "workload": {"m": 64, "n": 64, "k": 64},
        "predicted": predicted,
        "measured": measured,
        **facts,
    }


def profiles(rng: random.Random) -> bytes:
    twin = launch("sgemm/naive (twin)", 10, launch=1, copies_under_p0=2)
    kernels = [launch("sgemm/naive (tir)", 9), twin, launch("p", 9, probe="a load")]
    document = {**made_up.SOURCE, "packed": made_up.SOURCE, "device": made_up.DEVICE, "kernels": kernels}
    return change_text(rng, document, counted_results.as_text(document))


def records(rng: random.Random) -> bytes:
    """Half of the time the checksums are made to fit."""
    entries = [asdict(record(trial)) for trial in range(3)] + [asdict(record(3, seconds=(), error="a race"))]
    if rng.random() < 0.5:
        entries = [json.loads(json.dumps(entry)) for entry in entries]
        try:
            changed = json.loads(change_value(rng, rng.choice(entries)))
            return b"".join(map(journal.line_of, [*entries, changed]))
        except (ValueError, RecursionError, AttributeError):
            pass
    content = b"".join(map(journal.line_of, entries))
    what = rng.random()
    if what < 0.2:
        return content.replace(b"\n", rng.choice((b"", b"\r", b"\r\n", b" ", b"\n\n")))
    return change_bytes(rng, content)


def members() -> dict[str, bytes]:
    """Of a sound pack, with what a profiler is to count."""
    path, subjects = Path(members.folder) / "sound.zip", made_up.packed_subjects()
    predicted = [[{"shared_load": {"cost": 1}} for _ in one.binaries] for one in subjects]
    cases = [{"flawed": False, "predicted": each, "copies_under_p0": []} for each in predicted]
    refused = [subjects[0].refused("wrong")]
    save_pack(
        subjects,
        {**made_up.SOURCE, "arch": "sm_90", "refused": refused, "counters": {"cases": cases}},
        path,
        b"library",
    )
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packs(rng: random.Random) -> bytes:
    found, what = members(), rng.random()
    if what < 0.5:
        found["manifest.json"] = change_text(
            rng, json.loads(found["manifest.json"]), found["manifest.json"].decode()
        )
    elif what < 0.6:
        name = rng.choice(list(found))
        found[name] = change_bytes(rng, found[name])
    elif what < 0.65:
        del found[rng.choice(list(found))]
    buffer = io.BytesIO()
    method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(buffer, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in found.items():
            archive.writestr(name, content)
        if what > 0.97:
            archive.writestr(rng.choice(("manifest.json", "../x", "x" * 60_000)), b"x")
    return change_bytes(rng, buffer.getvalue()) if 0.65 < what < 0.97 else buffer.getvalue()


KINDS = {
    kind.name: kind
    for kind in (
        Kind("packs", ".zip", packs, "bench"),
        Kind("results", ".json", results, "bench", "--from"),
        Kind("records", ".jsonl", records, "tune", "--show", "--records"),
        Kind("profiles", ".json", profiles, "profile", "--from"),
        Kind("counter packs", ".zip", packs, "profile"),
        Kind("reports", ".json", sweeps, "report", "--quick", "-o", "/dev/null", "--results"),
    )
}


def fuzz(name: str, count: int, seed: int, folder: Path) -> tuple[Counter, list[str]]:
    """How many of so many damaged files were read and refused; and what no user is to see, a line each."""
    kind, rng, found, faults = KINDS[name], random.Random(f"{name} {seed}"), Counter(), []
    members.folder = folder
    path = folder / f"damaged{kind.suffix}"
    with without_gpu():
        for number in range(count):
            path.write_bytes(kind.make(rng))
            before = path.read_bytes()
            code, fault = outcome([*kind.arguments, str(path)])
            if path.read_bytes() != before:
                fault = fault or "the reader wrote"
            if fault:
                faults.append(f"{name} {number}: {fault}")
                (folder / f"{name}_{number}{kind.suffix}").write_bytes(before)
            found["refused" if code == 2 else "read"] += 1
    return found, faults


def outcome(arguments: list[str]) -> tuple[int, str]:
    """Exit code of a command, and what is wrong with how it ended."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.main(arguments)
    except BaseException as error:
        return -1, f"{type(error).__name__}: {error}"
    said = err.getvalue()
    if code not in (0, 1, 2):
        return code, f"exit code {code}"
    if code == 2 and (
        said.count("\n") != 1
        or not said.startswith("tir-schedules: ")
        or arguments[-1] not in said
        or len(said) > 1500
    ):
        return code, f"it says {said!r}"
    return code, "it gives a terminal commands" if "\x1b" in out.getvalue() + said else ""


def without_gpu() -> Any:
    """In place of a GPU one that times every subject of a pack alike, and counts what was predicted."""

    def timed(machine: Any, subjects: Any, policy: Any, cub: bytes | None) -> Any:
        rows = [made_up.row_of(subject, 10.0) for subject in subjects]
        return SimpleNamespace(
            rows=rows, refused=[], limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
        ), Policy()

    def verified(machine: Any, cases: Any) -> Any:
        from tir_schedules.insight.profile.cases import entries_of

        return [], [entry for case in cases for entry in entries_of(case)]

    def counted(entries: Any, command: Any) -> None:
        for entry in entries:
            entry["measured"] = dict.fromkeys(METRICS, 0.0)

    gpu = SimpleNamespace(name="gpu", arch="sm_90", device_name=made_up.DEVICE["name"])
    stack = ExitStack()
    stack.enter_context(mock.patch.multiple(session, gpu_machine=lambda: gpu, measure_subjects=timed))
    for what, fake in {
        "insight.profile.session.gpu_machine": lambda: gpu,
        "insight.profile.session.verify_cases": verified,
        "insight.profile.session.count_launches": counted,
        "insight.profile.session.tool": str,
    }.items():
        stack.enter_context(mock.patch(f"tir_schedules.{what}", fake))
    return stack


def main(count: int = 2000, seed: int = 0) -> int:
    import tempfile

    bad = 0
    for name in KINDS:
        folder = Path(tempfile.mkdtemp(prefix="fuzz_"))
        found, faults = fuzz(name, count if name != "reports" else count // 10, seed, folder)
        counts = f"{found['read']} read, {found['refused']} refused, {len(faults)} faults"
        print(f"{name}: {sum(found.values())} files, {counts}; {folder}", flush=True)
        for fault in faults[:20]:
            print(f"  {fault[:300]}")
        bad += len(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
