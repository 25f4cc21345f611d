"""The verb `check`: anybody's kernel, run on given arguments, its faults and what it costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Sequence

from tir_schedules.check.options import Parser, add_subject
from tir_schedules.cli.options import Options, Verbs, add_arch, add_dry_run, add_path
from tir_schedules.cli.run import ORDERS
from tir_schedules.errors import BadInput
from tir_schedules.files import check_page
from tir_schedules.machines.choice import CPU_ARCH, MACHINES

EPILOG = """\
examples:
  tir-schedules check examples/saxpy.cu --let n=1000 --grid 'cdiv(n,256)' --block 256 \\
      --arg a=2 --arg x='f32[n]' --arg y='f32[n]' --expect y='a*x + y'
  tir-schedules check examples/gemm.cu --kernel 'tiled_matmul<128, 128, 8, 8, 8>' --as sgemm \\
      --mnk 256,256,64 --grid 'N//128,M//128' --block 256
  tir-schedules check examples/sum.cu --let N=10000 --launch 'sum[40,256](X, part, N)' \\
      --launch 'sum[1,256](part, Y, 40)' --arg X='f32[N]' --arg part='f32[40]:out' --arg Y='f32[1]:out' \\
      --expect Y='sum(X)'
  tir-schedules check examples/kernel.ptx --grid 4 --block 128 --arg 'f32[512]' --arg 'f32[512]:out' --arg 512

arguments, by name or, without NAME=, in the order of the parameters that are left:
  A=f32[M,K]            random numbers; formats: f16 bf16 f32 f64, i8 to i64, u8 to u64
  A=[M,K]               in the format of the pointer
  A=f32[M]:zeros        filled: zeros, ones, iota, nan, a number, or LOW..HIGH (random between)
  C=f32[M,N]:inout      read and written; :out, a read of what nothing wrote is found; :in, a store is found.
                        What is not said is found from the run; const pointers are inputs.
  A=data.npy  n=512  n=M*K  p=null     an array of a file, numbers, a null pointer
  W=f32[9]              also a __constant__ or __device__ variable of that name
  tma='A[64,64] swizzle 128'    a tensor map of the array A, which copies boxes of 64 x 64
A parameter takes the --let of its name. Sizes are expressions of --let names, with cdiv(a,b), ceil, min, max.
Without --block the launch, and scalars that it passes, are read from the file's own k<<<grid, block>>>(...).

a Triton kernel of a Python file, where Triton is installed (comments begin with # check:):
  tir-schedules check examples/triton_kernels.py --kernel matmul --let m=128,n=96,k=64 \\
      --grid 'cdiv(m,BM),cdiv(n,BN)' --arg a='f16[m,k]' --arg b='f16[k,n]' --arg c='f32[m,n]:out' \\
      --expect c='a @ b' --constexpr BM=64 --constexpr BN=32 --constexpr BK=32 --num-warps 4 --num-stages 3

comments in the file:
  // check: --let n=1000 --grid cdiv(n,256) --block 256 --arg a=2
  // check: --arg x=f32[n] --arg y=f32[n] --expect y='a*x + y'
Lines that follow one another are one check, and options of the command win over them. With --kernel only
those of that kernel are run. Of several files each is checked by its comments:
  tir-schedules check kernels/*.cu --sarif kernels.sarif
"""


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "check",
        help="run anybody's CUDA or PTX kernel: verdict, faults and bank conflicts",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    files = "CUDA source, PTX text, or Python with Triton kernels; several take the checks in their comments"
    add_path(verb, "files", nargs="+", help=files)
    add_subject(verb)
    add_arch(verb, None, f"the GPU's own; {CPU_ARCH} on the CPU machine")
    verb.add_argument(
        "--machine", choices=MACHINES, default="cpu", help="the machine that executes (default cpu)"
    )
    orders = f"orders in which blocks and warps take turns on the CPU machine (default {ORDERS})"
    verb.add_argument("--orders", type=int, metavar="N", default=ORDERS, help=orders)
    page = "write a self-contained HTML page as well: the source with its counters, pictures of banks"
    add_path(verb, "-o", "--page", help=page)
    advice = (
        "accesses that cost more than necessary, and cheaper ones: replayed, and tried in a copy if possible"
    )
    verb.add_argument("--advice", action="store_true", help=advice)
    verb.add_argument(
        "--time", action="store_true", help="predict the time on an H100 as well, as `time` does"
    )
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_path(verb, "--sarif", help="write the findings as SARIF 2.1.0, for code review")
    again = "check again whenever a file, or what it includes, has changed, until Ctrl-C"
    verb.add_argument("--watch", action="store_true", help=again)
    verb.set_defaults(verb=run)


def run(options: Options) -> int:
    from tir_schedules.cli.several import check_files, watched_files
    from tir_schedules.cli.watching import watch

    if len(options.files) > 1:
        check_several(options)
    for file in filter(None, (options.page, options.sarif)):
        check_written(file, options.files)
    if options.watch:
        return watch(lambda: check_files(options), lambda: watched_files(options))
    return check_files(options)


OF_ALL = ("defines", "includes", "flags", "seed", "finite")
"""Options that hold for several files."""


def check_several(options: Options) -> None:
    """BadInput where several files are named, with what is said of one."""
    reader = Parser(add_help=False)
    add_subject(reader)
    for name in (*vars(reader.parse_args([])), "page"):
        if name not in OF_ALL and getattr(options, name) is not None:
            spelled = "as" if name == "ladder" else name.replace("_", "-")
            raise BadInput(f"--{spelled} is for one file: several are checked by the comments in them")


def check_written(written: Path, files: Sequence[Path]) -> None:
    """BadInput for a page or log that cannot be written, or that would be written over a file."""
    if written.absolute() in [file.absolute() for file in files]:
        raise BadInput(f"{written} would be written over: name another file, such as page.html")
    check_page(written)
