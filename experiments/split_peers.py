"""What others make of float32 matrices on the GPU at hand: cuBLAS in float32 and TF32, and Triton's `tl.dot`.

    python experiments/split_peers.py [-o FILE.json]        # needs PyTorch and Triton

Triton has no split of its own: each program splits what it has loaded (`input_precision`). A precision that
its version does not know is left out. Errors are in units of |A| |B|, of a product of normal numbers, beside
one in float64. Times are the median of launches with pauses between, as `bench` makes them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Sequence

from scripts import exit_code

from tir_schedules.errors import MissingTool
from tir_schedules.files import Json, write_text
from tir_schedules.subjects.results import about, as_text

SIZES = (1024, 2048, 4096, 8192)
PRECISIONS = ("tf32", "tf32x3", "bf16x3", "bf16x6")
TILES = ((128, 128, 32, 8, 3), (128, 128, 32, 8, 2), (64, 128, 32, 4, 3), (128, 64, 32, 4, 2))
"""Rows and columns of a tile, K tile, warps and stages that are tried."""

SAMPLES, PAUSE_S = 9, 0.03


def triton_matmul(torch: Any) -> Callable[..., Any]:
    """matmul(a, b, precision, tile) by `tl.dot`."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(
        a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
    ):  # of whole tiles
        columns = n // BN
        stripe = tl.program_id(0) // (8 * columns)
        rows = 8 * stripe + tl.program_id(0) % 8
        column = tl.program_id(0) % (8 * columns) // 8
        i, j, d = rows * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
        sums = tl.zeros((BM, BN), tl.float32)
        for first in range(0, k, BK):
            left = tl.load(a + i[:, None] * k + (first + d)[None, :])
            right = tl.load(b + (first + d)[:, None] * n + j[None, :])
            sums = tl.dot(left, right, sums, input_precision=PRECISION)
        tl.store(c + i[:, None] * n + j[None, :], sums)

    def matmul(a: Any, b: Any, precision: str, tile: tuple[int, int, int, int, int]) -> Any:
        (m, k), n = a.shape, b.shape[1]
        bm, bn, bk, warps, stages = tile
        c = torch.empty((m, n), device=a.device)
        kernel[(m // bm * (n // bn),)](
            a, b, c, n, k, bm, bn, bk, precision,
            num_warps=warps, num_stages=stages,  # pyright: ignore[reportCallIssue]
        )  # fmt: skip
        return c

    return matmul


def microseconds(torch: Any, call: Callable[[], Any]) -> float:
    """Of a launch: the median of samples of at least 2 ms."""

    def sample(count: int) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(count):
            call()
        last.record()
        last.synchronize()
        return 1000 * first.elapsed_time(last) / count

    call()
    count = max(1, int(2000 / sample(2)))
    found = []
    for _ in range(SAMPLES):
        time.sleep(PAUSE_S)
        found.append(sample(count))
    return statistics.median(found)


def measured(torch: Any, sizes: Sequence[int]) -> list[Json]:
    """A row for each way and size."""
    matmul, rows = triton_matmul(torch), []
    for size in sizes:
        a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
        exact, scale = a.double() @ b.double(), a.double().abs() @ b.double().abs()

        def row(name: str, call: Callable[[], Any], **more: Any) -> Json:
            relative = (call().double() - exact) / scale
            taken = microseconds(torch, call)
            return {
                "name": name, "size": size, "us": taken, "tflops": 2 * size**3 / taken / 1e6,
                "max": float(relative.abs().max()), "rms": float(relative.square().mean().sqrt()), **more,
            }  # fmt: skip

        for name, allowed in (("cuBLAS", False), ("cuBLAS TF32", True)):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            rows.append(row(name, lambda: a @ b))
        for precision in PRECISIONS:
            tried = []
            for tile in TILES:
                try:
                    tried.append(row(f"Triton {precision}", lambda: matmul(a, b, precision, tile), tile=tile))
                except Exception as error:  # of Triton: one that it does not know, or too much shared memory
                    print(f"{precision} {tile}: {type(error).__name__}", file=sys.stderr)
            rows += sorted(tried, key=lambda each: each["us"])[:1]
    return rows


def perform(options: Namespace) -> int:
    try:
        import torch  # pyright: ignore[reportMissingImports]
        import triton
    except ImportError as error:
        raise MissingTool(f"{error.name} is missing: pip install torch, which brings Triton") from error
    rows = measured(torch, options.sizes)
    for row in rows:
        print(f"{row['size']:5} {row['name']:14} {row['tflops']:6.1f} TFLOPS, rms {row['rms']:.1e}")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        made = about("experiments/split_peers.py")
        gpu = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
        write_text(options.output, as_text({"schema": 1, **made, **gpu, "rows": rows}))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write what was measured as JSON")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="S", help="multiples of 1024")
    return exit_code(perform, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
