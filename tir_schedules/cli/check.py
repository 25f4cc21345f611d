"""The verb `check`: anybody's kernel, run on given arguments, its faults and what it costs."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

from tir_schedules.cli.options import Options, Parser, Verbs, add_arch, add_dry_run
from tir_schedules.cli.problems import parse_length, parse_shape
from tir_schedules.cli.run import ORDERS
from tir_schedules.errors import BadInput, MissingTool, shown
from tir_schedules.files import check_folder, write_text
from tir_schedules.machines.choice import CPU_ARCH, MACHINES
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS

if TYPE_CHECKING:
    from tir_schedules.check.preparing import Request
    from tir_schedules.source import Source

EPILOG = """\
examples:
  tir-schedules check saxpy.cu --let n=1000 --grid 'cdiv(n,256)' --block 256 \\
      --arg a=2 --arg x='f32[n]' --arg y='f32[n]' --expect y='a*x + y'
  tir-schedules check gemm.cu --kernel 'sgemm<128, 8>' --as sgemm --mnk 256,256,64 \\
      --grid 'N//128,M//128' --block 256
  tir-schedules check sum.cu --let N=10000 --arg X='f32[N]' --arg part='f32[40]:out' --arg Y='f32[1]:out' \\
      --launch 'sum[40,256](X, part, N)' --launch 'sum[1,256](part, Y, 40)' --expect Y='sum(X)'
  tir-schedules check kernel.ptx --grid 4 --block 128 --arg 'f32[512]' --arg 'f32[512]:out' --arg 512

arguments, by name or, without NAME=, in the order of the parameters that are left:
  A=f32[M,K]            random numbers; formats: f16 bf16 f32 f64, i8 to i64, u8 to u64
  A=[M,K]               in the format of the pointer
  A=f32[M]:zeros        filled: zeros, ones, iota, nan, a number, or LOW..HIGH (random between)
  C=f32[M,N]:inout      read and written; :out, a read of what nothing wrote is found; :in, a store is found.
                        What is not said is found from the run; const pointers are inputs.
  A=data.npy  n=512  n=M*K  p=null     an array of a file, numbers, a null pointer
  W=f32[9]              also a __constant__ or __device__ variable of that name
A parameter takes the --let of its name. Sizes are expressions of --let names, with cdiv(a,b), ceil, min, max.

a Triton kernel of a Python file, where Triton is installed (comments begin with # check:):
  tir-schedules check kernels.py --kernel mm --grid 'cdiv(M,BM),cdiv(N,BN)' --let M=128,N=128,K=64 \\
      --arg a='f16[M,K]' --arg b='f16[K,N]' --arg c='f32[M,N]:out' --expect c='a @ b' \\
      --constexpr BM=64 --constexpr BN=64 --constexpr BK=32 --num-warps 4 --num-stages 3

comments in the file:
  // check: --let n=1000 --grid cdiv(n,256) --block 256 --arg a=2
  // check: --arg x=f32[n] --arg y=f32[n] --expect y='a*x + y'
Lines that follow one another are one check, and options of the command win over them. With --kernel only
those of that kernel are run.
"""


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "check",
        help="run anybody's CUDA or PTX kernel: verdict, faults and bank conflicts",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument(
        "file", metavar="FILE", type=Path, help="CUDA source, PTX text, or Python with Triton kernels"
    )
    add_subject(verb)
    add_arch(verb, None, f"the GPU's own; {CPU_ARCH} on the CPU machine")
    verb.add_argument("--machine", choices=MACHINES, default="cpu", help="what executes (default cpu)")
    orders = f"orders in which blocks and warps take turns on the CPU machine (default {ORDERS})"
    verb.add_argument("--orders", type=int, metavar="N", default=ORDERS, help=orders)
    page = "write a self-contained HTML page as well: the source with its counters, pictures of banks"
    verb.add_argument("-o", "--page", metavar="FILE", type=Path, help=page)
    advice = "what costs more than it would ideally, and what costs less: replayed, and tried where it can be"
    verb.add_argument("--advice", action="store_true", help=advice)
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=run)


def add_subject(verb: Parser, problem: bool = True, block: bool = True) -> None:
    """The options that say what of a file is launched, on what, and what is right. problem, block: with
    --mnk, --n, --layout and --accumulate, and with --block, which other verbs have already."""
    own = verb.add_argument_group("what is launched")
    own.add_argument(
        "--kernel", metavar="NAME", help="such as 'sgemm<128, 8>'; not needed where there is one"
    )
    own.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks (default 1)")
    if block:
        own.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a block")
    own.add_argument("--shared", metavar="BYTES", help="dynamic shared memory (default 0)")
    launch = "several launches in order, in place of the four above: 'kernel[grid, block, shared](A, B, N)'"
    own.add_argument("--launch", metavar="LAUNCH", action="append", help=launch)
    own.add_argument(
        "--let", metavar="NAME=NUMBER", action="append", help="a size that others are written with"
    )
    own.add_argument(
        "--arg", metavar="[NAME=]WHAT", action="append", help="what a parameter is given; see below"
    )
    own.add_argument("-D", metavar="NAME[=VALUE]", action="append", dest="defines", help="a macro for nvcc")
    own.add_argument("-I", metavar="FOLDER", action="append", dest="includes", help="where headers are")
    own.add_argument("--seed", type=int, default=0, metavar="N", help="of random arguments (default 0)")
    add_triton(verb)
    right = verb.add_argument_group("what is right (nothing: hazards only)")
    expect = "an expression of arguments as they were before, with numpy's functions, or a .npy file"
    right.add_argument("--expect", metavar="C=WHAT", action="append", help=expect)
    right.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="|error| up to T + T |value| (default: what rounding explains)",
    )
    finite = "leave out the runs with NaN, infinity, -0 and denormal numbers in single places"
    right.add_argument("--finite", action="store_true", help=finite)
    usual = "inputs, truth and tolerance of a ladder, for kernels such as (A, B, C, M, N, K), (X, Y, N)"
    right.add_argument("--as", dest="ladder", choices=("sgemm", "hgemm", "reduce"), help=usual)
    if not problem:
        return
    right.add_argument("--mnk", metavar="M,N,K", type=parse_shape, help="shape for --as sgemm and hgemm")
    right.add_argument("--n", metavar="N", type=parse_length, help="length for --as reduce")
    right.add_argument(
        "--layout", choices=LAYOUTS, help="--as hgemm: B is stored NxK (nt, the default) or KxN (nn)"
    )
    sums = "--as hgemm: format of the sums (default: float16 where A, B and C are, else float32)"
    right.add_argument("--accumulate", choices=ACCUMULATORS, help=sums)


def run(options: Options) -> int:
    from tir_schedules.api.checking import check_requests
    from tir_schedules.api.results import finish
    from tir_schedules.machines.choice import arch_for, choose

    if options.page:
        check_page(options.page, options.file)
    machine = choose(options.machine, options.orders)
    arch = arch_for(machine, options.arch)
    requests = requests_of(options, arch)
    if options.dry_run:
        from tir_schedules.api.plans import plan_of_requests

        where = "the CPU machine" if machine.name == "cpu" else machine.device_name
        return finish(plan_of_requests(requests, f"{len(requests)} to check on {where}"), options.json, 2)
    found = check_requests(requests, machine, options.advice)
    done = [one for _, one in found.checked]
    if len(done) == 1 and done[0].unsupported:
        raise MissingTool(done[0].outcome.error)
    if options.page:
        write_text(options.page, found.page())
    return finish(found, options.json, 2)


def requests_of(options: Options, arch: str) -> list[Request]:
    """What a command asks for, and the comments of its file."""
    from tir_schedules.source import read_source

    source = read_source(options.file)
    found = [
        (place, parse_comment(words, place)) for place, words in commented_checks(source.text, source.file)
    ]
    if options.kernel:
        found = [pair for pair in found if is_for(pair[1], options.kernel)]
    every = [(place, merge_options(own, options)) for place, own in found] or [("", options)]
    requests = []
    for place, each in every:
        try:
            requests.append(replace(request_of(each, source, arch), place=place))
        except BadInput as error:
            raise BadInput(f"{place}: {error}" if place else str(error)) from None
    return requests


def parse_comment(words: Sequence[str], place: str) -> Options:
    """Options from a comment."""
    reader = Parser(add_help=False, allow_abbrev=False)
    add_subject(reader)
    try:
        return reader.parse_args(list(words))
    except BadInput as error:
        reason = str(error).partition("; see `")[0]
        raise BadInput(f"{place}: {reason}; see `tir-schedules check --help`") from None


def is_for(own: Options, kernel: str) -> bool:
    from tir_schedules.check.target import base, plain

    called = [own.kernel, *(text.partition("[")[0] for text in own.launch or ())]
    return any(name and (plain(name) == plain(kernel) or base(name) == kernel) for name in called)


def merge_options(own: Options, command: Options) -> Options:
    """The options of a comment, over which those of the command win. Those that may be repeated are joined,
    but for launches."""
    both = dict(vars(command))
    for name, value in vars(own).items():
        given = both.get(name)
        if name in ("let", "arg", "defines", "includes", "expect", "constexpr"):
            both[name] = [*(value or ()), *(given or ())]
        elif name in ("seed", "finite"):
            both[name] = given or value
        elif name == "kernel" and value and given:
            both[name] = value if "<" in value and "<" not in given else given
        elif given is None:
            both[name] = value
    if command.grid or command.block:
        both["launch"] = command.launch
    elif own.launch:
        both["kernel"] = None
    if command.ladder:
        both["expect"] = command.expect
    elif command.expect:
        both |= dict.fromkeys(("ladder", "mnk", "n", "layout", "accumulate"))
    return Options(**both)


def request_of(options: Options, source: Source, arch: str) -> Request:
    from tir_schedules.check.arguments import parse_argument, sizes_of
    from tir_schedules.check.building import Compiling
    from tir_schedules.check.expecting import parse_expectation
    from tir_schedules.check.expressions import launch_of_options, parse_launch
    from tir_schedules.check.preparing import Request
    from tir_schedules.check.usual import Usual

    usual = None
    if options.ladder:
        shape = (options.n,) if options.ladder == "reduce" else options.mnk
        if not shape or shape == (None,):
            raise BadInput(
                f"--as {options.ladder} needs --{'n N' if options.ladder == 'reduce' else 'mnk M,N,K'}"
            )
        usual = Usual(options.ladder, tuple(shape), options.layout or "nt", options.accumulate or "")
    elif options.mnk or options.n or options.layout or options.accumulate:
        raise BadInput("--mnk, --n, --layout and --accumulate are for --as")
    if usual and options.expect:
        raise BadInput("--as says what is right: leave out --expect")
    sizes = {**(usual.sizes if usual else {}), **sizes_of(options.let or [])}
    if options.launch and (options.grid or options.block or options.kernel):
        raise BadInput("--launch names kernel, grid and block: leave out --kernel, --grid and --block")
    triton = triton_of(options, source)
    sizes |= {name: value for name, value in triton.items() if isinstance(value, (int, float))}
    python = source.file.endswith(".py")
    if options.launch:
        launches = [parse_launch(text, sizes) for text in options.launch]
    elif not (options.block or python):
        raise BadInput(
            "say how it is launched: --grid and --block, such as --grid 4 --block 256, or --launch"
        )
    else:
        launches = [
            launch_of_options(
                options.kernel or "", options.grid or "1", options.block or "1", options.shared or "0", sizes
            )
        ]  # fmt: skip
    every = [parse_expectation(text, Path(source.folder or ".")) for text in options.expect or ()]
    expect = {(one.output, one.where): one for one in every}.values()
    compiling = Compiling(arch, tuple(options.includes or ()), tuple(options.defines or ()))
    return Request(
        source, tuple(launches), sizes, tuple(map(parse_argument, options.arg or ())), {}, tuple(expect),
        usual, options.tolerance, compiling, options.seed, options.finite, triton,
    )  # fmt: skip


def check_page(page: Path, file: Path) -> None:
    """BadInput for a page that cannot be written, or that would be written over the file."""
    if page.absolute() == file.absolute():
        raise BadInput(f"the page would be written over {page}: name another file, such as page.html")
    check_folder(page)


def add_triton(verb: Parser) -> None:
    """--constexpr, --num-warps, --num-stages."""
    own = verb.add_argument_group("a Triton kernel, of FILE.py")
    what = "a constexpr: a number, True, None, 'text', or a type such as tl.float16"
    own.add_argument("--constexpr", metavar="NAME=VALUE", action="append", help=what)
    own.add_argument("--num-warps", type=int, metavar="N", help="warps of a program (default Triton's)")
    own.add_argument("--num-stages", type=int, metavar="N", help="of software pipelining (default Triton's)")


def triton_of(options: Options, source: Source) -> dict[str, Any]:
    """Constexprs and what Triton is asked for: what `@triton.autotune` has first, and over it what the
    command says."""
    python = source.file.endswith(".py")
    found = constants_of(options.constexpr or [])
    asked = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    found |= {name: value for name, value in asked.items() if value is not None}
    if found and not python:
        raise BadInput("--constexpr, --num-warps and --num-stages are for Triton kernels, of a FILE.py")
    if not python:
        return {}
    if options.block or options.shared or options.launch:
        raise BadInput(
            "Triton chooses blocks and shared memory: say --kernel, --grid and --num-warps, and leave out"
            " --block, --shared and --launch"
        )
    from tir_schedules.check.triton.checking import configuration

    return {**configuration(source, options.kernel or ""), **found}


TYPE = re.compile(r"(?:tl|triton\.language)\.(\w+)")
CONSTANT_FORM = "a number, True, False, None, 'text', or a type such as tl.float16"


def constants_of(texts: Sequence[str]) -> dict[str, Any]:
    """`--constexpr` by name; of two with one name the last. BadInput for what is no constant."""
    from tir_schedules.check.arguments import NAMED

    found = {}
    for text in texts:
        match = NAMED.fullmatch(text)
        if not match:
            raise BadInput(f"--constexpr takes NAME=VALUE such as BM=64, not {shown(text)}")
        found[match[1]] = constant(match[2].strip(), f"--constexpr {match[1]}=")
    return found


def constant(text: str, what: str) -> Any:
    """The value of one: "64", "True", "'relu'" or "tl.float16"."""
    type_ = TYPE.fullmatch(text)
    if type_:
        from tir_schedules.check.triton.library import part

        language = part("triton.language")
        made = getattr(language, type_[1], None)
        if not isinstance(made, language.dtype):
            raise BadInput(f"{what} {shown(text)}: triton.language has no such type")
        return made
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadInput(f"{what} {shown(text)}: it takes {CONSTANT_FORM}") from None
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise BadInput(f"{what} {shown(text)}: it takes {CONSTANT_FORM}")
    return value


COMMENT = re.compile(r"[ \t]*(?://|#)[ \t]*check:(.*)")


def commented_checks(text: str, file: str) -> list[tuple[str, list[str]]]:
    """Where each check in a file's comments begins, and its words as a shell would take them: lines of
    `// check: OPTIONS` that follow one another are one check. BadInput for a quote that is not closed."""
    found: list[tuple[str, list[str]]] = []
    within = False
    for number, line in enumerate(text.split("\n"), 1):
        match = COMMENT.fullmatch(line.rstrip())
        if match:
            if not within:
                found.append((f"{file}:{number}", []))
            try:
                found[-1][1].extend(shlex.split(match[1]))
            except ValueError as error:
                raise BadInput(f"{file}:{number}: {shown(match[1].strip())}: {error}") from None
        within = bool(match)
    return found
