"""Kernels of public repositories that the authors of the model of time never looked at: timed on a GPU, and
then predicted, once.

    python experiments/unseen_kernels.py pack LIST.json PACK.zip --arch sm_90   # needs nvcc, no GPU
    python experiments/unseen_kernels.py time PACK.zip RESULT.json              # needs a GPU and CuPy
    python experiments/unseen_kernels.py predict PACK.zip RESULT.json           # needs neither
    python experiments/unseen_kernels.py record RESULT.json RECORDED.json       # what may be committed

LIST.json has for each kernel: family, repository, commit, file (below src/ beside the list), kernel, size,
and the words of `tir-schedules check` that launch it. It and the pack stay outside this repository: a result
has names, hashes, launches and times alone.

Times are taken as `bench` takes them: CUDA graphs of launches over rotating buffers that together are twice
as large as L2. A kernel that fails ends its process; the next one begins in another.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import zipfile
from argparse import Namespace
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence, cast

import numpy as np
from packs import manifest_of, read_result
from scripts import exit_code

from tir_schedules import processes
from tir_schedules.bench.binding import timing_buffers
from tir_schedules.bench.clocks import Cycles, open_monitor, summary
from tir_schedules.bench.measure import Bench
from tir_schedules.bench.sampling import Policy, Trial, microseconds, sample_in_turns, settle, spread
from tir_schedules.check.arguments import Given, make_argument, seed_of
from tir_schedules.check.options import Parser, add_subject, only, requests_of
from tir_schedules.check.preparing import Step, prepare
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.files import Json, check_folder, lists_to_tuples, read_json, write_text
from tir_schedules.machines.choice import choose
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.machine import Watch
from tir_schedules.model.workload import Workload
from tir_schedules.source import read_source
from tir_schedules.subjects.results import about, as_text, device_facts
from tir_schedules.subjects.subject import Subject

PACK = ("unseen.json", "unseen kernels", "name a file that `experiments/unseen_kernels.py pack` wrote")
POLICY = Policy(settle_s=0.2, min_samples=5, max_samples=11, budget_s=0.5)
FAULTS = ("out_of_bounds", "misaligned", "deadlock", "endless_loop")
"""What a launch of other arguments than its authors' may have. Hazards of theirs are left as they are."""

SECONDS, MOST = 60, 16
"""Most time and most kernels of a process."""

LAUNCH = ("entry", "params", "grid", "block", "dynamic_shared", "arch")
SAID = ("family", "repository", "commit", "file", "kernel", "size")


@dataclass(frozen=True)
class Arrays:
    """Arguments in place of a workload. The right outputs are not known."""

    given: Mapping[str, Any]
    outputs: tuple[str, ...]

    inputs, workspaces = (), ()

    def arguments(self, seed: int = 0, xp: Any = np) -> dict[str, Any]:
        return {
            name: there(value, xp) if isinstance(value, np.ndarray) else value if xp is np else bits(value)
            for name, value in self.given.items()
        }

    def prepared(self, arguments: dict[str, Any], grid: Any) -> dict[str, Any]:
        return arguments


def there(array: np.ndarray, xp: Any) -> Any:
    """An array of a module; of formats that only ml_dtypes has, the bits."""
    return xp.asarray(bits(array))


def bits(value: Any) -> Any:
    """An array or a number; of formats that numpy lacks, and of structures, the bits."""
    return value.view(f"u{value.dtype.itemsize}") if value.dtype.kind == "V" else value


def pack(options: Namespace) -> int:
    """Compile the kernels of a list, and write them with their launches."""
    check_folder(options.file)
    listed = read_json(options.list, "name a list of kernels")
    entries, members, failed = [], {}, []
    for number, one in enumerate(listed):
        try:
            entry, files = packed(one, options.list.parent / "src", options.arch)
        except TirSchedulesError as error:
            failed.append(f"{one['kernel']} of {one['repository']}: {str(error).splitlines()[0]}")
            print(failed[-1], flush=True)
            continue
        entries.append({"number": number, **entry})
        members |= files
    head = about(f"experiments/unseen_kernels.py pack {options.list.name} {options.file.name}")
    with zipfile.ZipFile(options.file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(PACK[0], json.dumps({**head, "arch": options.arch, "cases": entries}, indent=1))
        for name, content in members.items():
            archive.writestr(name, content)
    print(f"packed {len(entries)} of {len(listed)}")
    return 1 if failed else 0


def packed(one: Json, folder: Path, arch: str) -> tuple[Json, dict[str, bytes]]:
    """A kernel as the manifest has it, and its files. CheckFailed where the CPU machine finds a fault in its
    first or last block."""
    reader = Parser(add_help=False)
    add_subject(reader)
    path = folder / one["file"]
    asked = reader.parse_args([*one["words"], "--finite"])
    vars(asked).setdefault("arch", arch)
    prepared = prepare(only(requests_of(asked, read_source(path), arch), "pack"))
    (step,), trial = prepared.steps, prepared.trials.runs[0]
    binary = step.binary
    x, y, z = binary.kernel.grid
    arrays = {name: argument.value for name, argument in trial.arguments.items()}
    for block in dict.fromkeys([(0, 0, 0), (x - 1, y - 1, z - 1)]):
        written = step.outputs(trial)
        run = CpuMachine().run(
            binary, {**copies(arrays), **step.values}, written, given=written, watch=Watch(block, limit=1)
        )
        if faults := [each for each in run.findings if each.kind in FAULTS]:
            raise CheckFailed(f"block {block}: {faults[0]}")
    cubin, ptx = (f"{hashlib.sha256(each).hexdigest()}.{kind}" for each, kind in both(binary))
    entry = {name: one[name] for name in SAID} | {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "label": binary.kernel.label,
        "launch": {name: getattr(binary.kernel, name) for name in LAUNCH},
        "resources": asdict(binary.resources), "cubin": cubin, "ptx": ptx,
        "arrays": {name: each.text for name, each in trial.arguments.items()},
        "values": {name: [value.dtype.str, text_of(value)] for name, value in numbers(step).items()},
        "outputs": step.outputs(trial),
    }  # fmt: skip
    return entry, {cubin: binary.cubin, ptx: binary.ptx.encode()}


def both(binary: Binary) -> Iterator[tuple[bytes, str]]:
    yield binary.cubin, "cubin"
    yield binary.ptx.encode(), "ptx"


def copies(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in arrays.items()}


def numbers(step: Step) -> dict[str, np.generic]:
    """Numbers that a launch passes."""
    return {name: cast(np.generic, np.asarray(value)[()]) for name, value in step.values.items()}


def text_of(value: np.generic) -> Any:
    """A number as JSON has it; of a structure, its bytes."""
    return value.tobytes().hex() if value.dtype.kind == "V" else value.item()


def number_of(kind: str, text: Any) -> np.generic:
    """What `text_of` says."""
    return np.frombuffer(bytes.fromhex(text), kind)[0] if isinstance(text, str) else np.dtype(kind).type(text)


def restored(entry: Json, archive: zipfile.ZipFile) -> tuple[Binary, Arrays]:
    """A kernel of a pack with its arguments."""
    kernel = Kernel(entry["label"], "", **lists_to_tuples(entry["launch"]))
    binary = Binary(
        kernel, archive.read(entry["ptx"]).decode(), archive.read(entry["cubin"]),
        Resources(**entry["resources"]),
    )  # fmt: skip
    arrays = {name: array_of(name, text) for name, text in entry["arrays"].items()}
    values = {name: number_of(kind, text) for name, (kind, text) in entry["values"].items()}
    return binary, Arrays({**arrays, **values}, tuple(entry["outputs"]))


@lru_cache(maxsize=4)
def array_of(name: str, text: str) -> np.ndarray:
    """The array that the text means for `check`."""
    return make_argument(Given(name, text), {}, "", Path("."), seed_of(name, 0)).value


def time_all(options: Namespace) -> int:
    """Time what the result lacks, a process for as many kernels as go well."""
    check_folder(options.result)
    manifest = manifest_of(options.file, *PACK)
    result: Json = {
        "packed": {key: value for key, value in manifest.items() if key != "cases"},
        **about(f"experiments/unseen_kernels.py time {options.file.name} {options.result.name}"),
        "device": device_facts(choose("gpu").describe()), "cases": {}, "failed": {},
    }  # fmt: skip
    write_text(options.result, json.dumps(result, indent=1))
    names = [str(entry["number"]) for entry in manifest["cases"]]
    while left := [name for name in names if name not in result["cases"] and name not in result["failed"]]:
        command = [sys.executable, __file__, "measure", str(options.file), str(options.result)]
        try:
            done = processes.run(command, timeout=SECONDS)
            why = (done.stdout + done.stderr).strip()[-300:] if done.returncode else ""
        except subprocess.TimeoutExpired:
            why = "not done in time"
        result = read_result(options.result, *PACK[1:])
        first = next((name for name in left if name not in result["cases"]), None)
        if first is not None and why:
            result["failed"][first] = why
            print(f"{first}: {why}", flush=True)
            write_text(options.result, json.dumps(result, indent=1))
    print(f"timed {len(result['cases'])} of {len(names)}")
    return 1 if result["failed"] else 0


def measure(options: Namespace) -> int:
    """Time what the result lacks, and write it after each kernel."""
    manifest = manifest_of(options.file, *PACK)
    machine = choose("gpu")
    monitor = open_monitor(machine.bus_id)
    bench = Bench(machine, POLICY, lambda what: None, cast(Any, None), monitor, Cycles(machine))
    done = 0
    with zipfile.ZipFile(options.file) as archive:
        for entry in manifest["cases"]:
            result = read_result(options.result, *PACK[1:])
            if str(entry["number"]) in (*result["cases"], *result["failed"]):
                continue
            if done == MOST:
                break
            done += 1
            binary, arrays = restored(entry, archive)
            with machine.explaining(entry["label"]):
                row = timed(bench, binary, arrays)
            facts = {name: entry[name] for name in (*SAID, "sha256", "launch", "cubin", "ptx", "resources")}
            result["cases"][str(entry["number"])] = {**facts, "arrays": entry["arrays"], **row}
            write_text(options.result, json.dumps(result, indent=1))
            print(f"{entry['kernel']} {entry['size']}: {row['median_us']} us", flush=True)
            machine.free_memory()
    return 0


def timed(bench: Bench, binary: Binary, arrays: Arrays) -> Json:
    """The row of a kernel."""
    subject = Subject("sgemm", binary.kernel.label, "twin", cast(Workload, arrays), (binary,))
    buffers = timing_buffers(bench.machine, cast(Workload, arrays))
    trial = bench.prepare_trial(subject, buffers, 0.0)

    def take(one: Trial) -> None:
        one.samples.append(bench.time_once(one))

    settle([trial], bench.policy, take)
    sample_in_turns([trial], bench.policy, take)
    samples = microseconds(trial.samples)
    median, clock = statistics.median(samples), statistics.median(trial.clocks)
    return {
        "samples_us": samples, "median_us": round(median, 3), "spread": round(spread(samples), 5),
        "launches_per_sample": trial.launches, "sets": len(buffers), "clock_mhz": round(clock, 1),
        "cycles": round(median * clock), **summary(trial.readings),
    }  # fmt: skip


def predict_all(options: Namespace) -> int:
    """Predict each timed kernel, and write that beside its time."""
    from tir_schedules.timing.gpus import find_table
    from tir_schedules.timing.prediction import predict

    manifest, result = manifest_of(options.file, *PACK), read_result(options.result, *PACK[1:])
    table = find_table(options.table)
    with zipfile.ZipFile(options.file) as archive:
        for entry in manifest["cases"]:
            row = result["cases"].get(str(entry["number"]))
            if row is None or (options.only and options.only not in f"{entry['family']} {entry['kernel']}"):
                continue
            binary, arrays = restored(entry, archive)
            try:
                found = predict([binary], [arrays.arguments()], arrays.outputs, table, row["clock_mhz"])
                said: Json = {"us": round(found.microseconds, 3), "cycles": round(found.cycles)}
                said |= {"bound": found.launches[0].beyond.bound, "level": found.launches[0].beyond.level}
            except TirSchedulesError as error:
                said = {"refused": str(error).splitlines()[0]}
            row.setdefault("predicted", {})[options.called] = said
            write_text(options.result, json.dumps(result, indent=1))
            print(entry["family"], entry["kernel"], entry["size"], row["median_us"], said, flush=True)
    result["predicted"] = {**result.get("predicted", {}), options.called: about("predict")}
    write_text(options.result, json.dumps(result, indent=1))
    return 0


def record(options: Namespace) -> int:
    """Write what may be committed, each kernel in its half: one that may be looked at, and one that is closed
    until the model is done."""
    result = read_result(options.file, *PACK[1:])
    kept = (*SAID, "sha256", "launch", "arrays", "median_us", "spread", "clock_mhz", "cycles", "throttled")
    cases = [
        {"half": half_of(row)} | {name: row[name] for name in kept} | {"predicted": row.get("predicted", {})}
        for row in result["cases"].values()
    ]
    head = {name: result[name] for name in ("packed", "command", "date", "versions", "git_revision")}
    found = {**head, "device": result["device"], "predicted": result["predicted"], "rows": cases}
    write_text(options.result, as_text(found))
    return 0


def half_of(row: Json) -> str:
    """All sizes of a kernel are in one half."""
    name = f"{row['repository']}/{row['kernel']}"
    return "closed" if hashlib.sha256(name.encode()).digest()[-1] % 2 else "open"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=" ".join(str(__doc__).split("\n\n")[0].split()))
    verbs = top.add_subparsers(required=True, metavar="VERB")
    each = {"pack": pack, "time": time_all, "measure": measure, "predict": predict_all, "record": record}
    for verb, does in each.items():
        one = verbs.add_parser(verb, help=(does.__doc__ or "").partition(".")[0])
        one.set_defaults(does=does)
        if does is pack:
            one.add_argument("list", type=Path, metavar="LIST.json")
            one.add_argument("--arch", required=True, help="the GPU's architecture, such as sm_90")
        one.add_argument("file", type=Path, metavar="PACK.zip")
        if does is not pack:
            one.add_argument("result", type=Path, metavar="RESULT.json")
        if does is predict_all:
            one.add_argument("--table", default="h100", help="of a GPU (default h100)")
            one.add_argument("--called", default="first", help="name of this prediction (default first)")
            one.add_argument("--only", help="those whose family and name have this text")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.does(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
