"""How far C is from the exact product: SGEMM by products of parts on tensor cores, and by FMA in order.

    python experiments/split_precision.py [-o FILE.json]
        executes the rungs on the CPU machine, whose wgmma has the bits of an H200; needs TVM and nvcc
    python experiments/split_precision.py --write
        put the tables of results/split_precision/ into the READMEs: errors, and errors beside rates
    python experiments/split_precision.py --plot FILE.svg
        draw it

Errors are those of C of 32x32 in units of |A| |B|, the largest and the root mean square, for inputs of six
kinds. FMA in order is what a thread of a rung without tensor cores does.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Sequence

import numpy as np
from scripts import README, add_recorded_options, check_alone, exit_code
from writing import update

from tir_schedules.errors import BadInput
from tir_schedules.files import Json, plain_json, read_bytes, write_text
from tir_schedules.subjects.results import about, as_text

EXTENT = 32  # rows and columns of C
LENGTHS = (64, 256, 1024, 4096, 16384, 65536)
RUNGS = (
    "tf32", "split_bf16", "promoted", "bf16x6", "fp16x3", "bf16x6_mma", "fp16x3_mma", "bf16x6_fused"
)  # fmt: skip
FMA = "FMA in order"
RESULTS = Path(__file__).parent / "results" / "split_precision"
RECORDED = RESULTS / "cpu.json"
RATES = RESULTS / "rungs_h200.json"
"""What `tir-schedules bench` wrote of these rungs."""

PEERS = RESULTS / "peers_h200.json"
"""What split_peers.py wrote."""

MAIN_README = Path(__file__).parents[1] / "README.md"
BESIDE = ("normal", "positive")  # kinds of inputs whose errors stand beside rates
ARCH = "sm_90a"
SCHEMA = 1
REMEDY = "make it again with split_precision.py -o"

Pair = tuple[np.ndarray, np.ndarray]


def wide(rng: Any, shape: tuple[int, int]) -> np.ndarray:
    """Magnitudes from 2^-20 to 2^20, each power of two as likely as another."""
    return 2.0 ** rng.uniform(-20, 20, shape) * rng.choice([-1.0, 1.0], shape)


def cancelling(rng: Any, k: int) -> Pair:
    """Every term is followed by one that is nearly its opposite."""
    a, b = rng.normal(size=(EXTENT, k // 2)), rng.normal(size=(k // 2, EXTENT))
    near = 1 + 2.0**-12 * rng.normal(size=a.shape)
    return np.stack((a, -a * near), 2).reshape(EXTENT, k), np.repeat(b, 2, axis=0)


def ill_conditioned(rng: Any, k: int) -> Pair:
    """Singular values from 1 to 1e-6, the large ones of A on the small ones of B."""
    basis, _ = np.linalg.qr(rng.normal(size=(k, EXTENT)))
    values = np.logspace(0, -6, EXTENT)
    left, _ = np.linalg.qr(rng.normal(size=(EXTENT, EXTENT)))
    right, _ = np.linalg.qr(rng.normal(size=(EXTENT, EXTENT)))
    return left * values @ basis.T, basis * values[::-1] @ right


def both(draw: Callable[[Any, tuple[int, int]], np.ndarray]) -> Callable[[Any, int], Pair]:
    return lambda rng, k: (draw(rng, (EXTENT, k)), draw(rng, (k, EXTENT)))


KINDS: dict[str, Callable[[Any, int], Pair]] = {
    "uniform": both(lambda rng, shape: rng.uniform(-1, 1, shape)),
    "positive": both(lambda rng, shape: rng.uniform(0, 1, shape)),
    "normal": both(lambda rng, shape: rng.normal(size=shape)),
    "wide": both(wide),
    "cancelling": cancelling,
    "ill-conditioned": ill_conditioned,
}


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C by FMA along K, each rounded to float32. The product of two float32 is exact in float64."""
    c = np.zeros((len(a), b.shape[1]), np.float32)
    a, b = a.astype(np.float64), b.astype(np.float64)
    for k in range(a.shape[1]):
        c = (np.outer(a[:, k], b[k]) + c).astype(np.float32)
    return c


def by_rung(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C by what the schedule of a rung becomes, executed on the CPU machine."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.ladders.registry import find
    from tir_schedules.machines.cpu import CpuMachine
    from tir_schedules.machines.execution import execute
    from tir_schedules.run import launches
    from tir_schedules.workloads.split_gemm import SplitGemm

    (rung,) = find(f"sgemm/{name}")
    gemm = SplitGemm(EXTENT, EXTENT, a.shape[1], rung.config.products)
    rung = rung.fitted(gemm)
    binaries = [compile_kernel(kernel) for kernel in launches(lower, rung, gemm, ARCH)]
    return execute(CpuMachine(), gemm, binaries, gemm.arguments() | {"A": a, "B": b})[-1][1]["C"]


def errors(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The largest error and the root mean square, in units of |A| |B|."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    relative = (c.astype(np.float64) - a @ b) / (np.abs(a) @ np.abs(b))
    return float(np.abs(relative).max()), float(np.sqrt(np.mean(relative**2)))


def measured(lengths: Sequence[int]) -> list[Json]:
    """A row for each rung, kind of inputs and extent along K."""
    rows = []
    for kind, draw in KINDS.items():
        for k in lengths:
            a, b = (matrix.astype(np.float32) for matrix in draw(np.random.default_rng(k), k))
            found = {FMA: in_order(a, b)} | {name: by_rung(name, a, b) for name in RUNGS}
            for name, c in found.items():
                largest, rms = errors(c, a, b)
                rows.append({"rung": name, "kind": kind, "k": k, "max": largest, "rms": rms})
            print(f"{kind}, K = {k}", file=sys.stderr)
    return rows


def recorded(path: Path) -> list[Json]:
    """The rows of a file. BadInput for any other."""
    found = plain_json(read_bytes(path, REMEDY))
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or "rows" not in found:
        raise BadInput(f"{path} is not what split_precision.py or split_peers.py wrote")
    return found["rows"]


def table(rows: list[Json], k: int) -> str:
    """Errors at one extent along K, and how many times those of FMA in order they are."""
    names = (FMA, *RUNGS)
    lines = [
        f"| K = {k}: max, rms | {' | '.join(names)} |",
        f"| --- |{' --: |' * len(names)}",
    ]
    for kind in KINDS:
        cells = []
        for name in names:
            (row,) = (r for r in rows if (r["rung"], r["kind"], r["k"]) == (name, kind, k))
            cells.append(f"{row['max']:.1e}, {row['rms']:.1e}")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rates_of(path: Path) -> dict[str, dict[int, float]]:
    """Name of a rung, or of the vendor's library -> size -> the most TFLOPS that were measured."""
    found: dict[str, dict[int, float]] = {}
    remedy = "make it with tir-schedules bench"
    for row in plain_json(read_bytes(path, remedy))["rows"]:
        rates = found.setdefault(row["name"].removeprefix("sgemm/").partition(":")[0], {})
        size = row["workload"]["m"]
        rates[size] = max(row["rate"], rates.get(size, 0.0))
    return found


def beside_rates(rows: list[Json], rates: dict[str, dict[int, float]], peers: list[Json], k: int) -> str:
    """Errors at one extent along K, and TFLOPS. The error of a peer is that on normal numbers; its rates are
    those of `bench`, if that timed it. Rungs that `bench` did not time are left out, and ways of Triton that
    are less accurate than FMA."""
    sizes = sorted({size for of_rung in rates.values() for size in of_rung})
    lines = [
        f"| rms error / \\|A\\| \\|B\\|, K = {k}; TFLOPS | {' | '.join([*BESIDE, *map(str, sizes)])} |",
        f"| --- |{' --: |' * (len(BESIDE) + len(sizes))}",
    ]

    def add(name: str, errors: Sequence[float | None], of_sizes: dict[int, float]) -> None:
        cells = ["" if error is None else f"{error:.1e}" for error in errors]
        cells += [f"{of_sizes[size]:.3g}" if size in of_sizes else "" for size in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")

    accurate = 0.0
    for name in (FMA, *(name for name in RUNGS if name in rates)):
        own = {row["kind"]: row["rms"] for row in rows if (row["rung"], row["k"]) == (name, k)}
        accurate = own["normal"] if name == FMA else accurate
        add(name, [own[kind] for kind in BESIDE], rates.get(name, {}))
    for name in dict.fromkeys(row["name"] for row in peers):
        own = {row["size"]: row for row in peers if row["name"] == name}
        error = own[k]["rms"]
        if error > accurate and not name.startswith("cuBLAS"):
            continue
        add(name, [error, None], rates.get(name) or {size: row["tflops"] for size, row in own.items()})
    return "\n".join(lines)


def draw_plot(rows: list[Json], path: Path) -> None:
    """The root mean square over K, a part for each kind of inputs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, parts = pyplot.subplots(2, 3, figsize=(11, 6.5), sharex=True, sharey=True)
    for kind, axes in zip(KINDS, parts.flat):
        for name in (FMA, *RUNGS):
            own = [row for row in rows if (row["rung"], row["kind"]) == (name, kind)]
            style = "k--" if name == FMA else "-"
            axes.loglog([row["k"] for row in own], [row["rms"] for row in own], style, marker=".", label=name)
        axes.set(title=kind, xlabel="K", ylabel="rms error / |A| |B|")
        axes.minorticks_off()
    figure.legend(*parts.flat[0].get_legend_handles_labels(), ncols=len(RUNGS) + 1, loc="lower center")
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "precision"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def perform(options: Namespace) -> int:
    if options.write or options.check:
        check_alone("--write or --check", options, ["output", "plot"])
        rows = recorded(options.recorded or RECORDED)
        changed = update(options.readme, "precision", lambda k: table(rows, int(k)), options.check)
        if options.readme != README:
            return changed

        def section(k: str) -> str:
            return beside_rates(rows, rates_of(RATES), recorded(PEERS), int(k))

        return update(MAIN_README, "rates and errors", section, options.check) or changed
    if options.plot or options.recorded:
        rows = recorded(options.recorded or RECORDED)
    else:
        rows = measured(options.lengths)
        if options.output:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            content = {"schema": SCHEMA, **about("experiments/split_precision.py"), "rows": rows}
            write_text(options.output, as_text(content))
    if options.plot:
        draw_plot(rows, options.plot)
    else:
        print("\n\n".join(table(rows, k) for k in sorted({row["k"] for row in rows})))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_recorded_options(parser, RECORDED)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the errors as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them: .svg or .png")
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=LENGTHS, metavar="K", help="extents along K, even numbers"
    )
    return exit_code(perform, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
