"""What is asked of a kernel in words: the options of `check`, on a command line and in comments of a file."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.numerals import parse_length, parse_shape
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS

if TYPE_CHECKING:
    from tir_schedules.check.arguments import Given
    from tir_schedules.check.expressions import Asked
    from tir_schedules.check.preparing import Request
    from tir_schedules.check.usual import Usual
    from tir_schedules.source import Source

Options = argparse.Namespace


LONG, NEGATIVE = re.compile(r"--[a-z][\w-]*"), re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line. `--nvcc` takes the word behind it, also where that is an option, and
    all options take a negative number. Words that are not options are errors of the verb that they follow."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = [*(sys.argv[1:] if args is None else args)]
        joined = []
        while given:
            word = given.pop(0)
            takes = given and (word == "--nvcc" or LONG.fullmatch(word) and NEGATIVE.match(given[0]))
            joined.append(f"{word}={given.pop(0)}" if takes else word)
        found, others = super().parse_known_args(joined, namespace)
        if others:
            hint = nearest(others[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(others)}{hint}")
        return found, others

    def error(self, message: str):
        raise BadInput(f"{message}; see `{self.prog} --help`")


PART = ("kernel", "grid", "block", "shared")
"""Options of one launch."""


class Then(argparse.Action):
    """Ends a launch: what was said of it is kept in `then`, and the next one begins."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None):
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        part = {name: getattr(namespace, name, None) for name in PART}
        if not any(part.values()):
            raise BadInput(
                "--then has no launch before it: say --kernel, and --grid and --block, of the first"
            )
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), part])
        vars(namespace).update(dict.fromkeys(PART))


def add_subject(verb: Parser, problem: bool = True, block: bool = True, numbers: str = "") -> None:
    """The options that say what of a file is launched, on what, and what is right. problem, block: with
    --mnk, --n, --layout and --accumulate, and with --block, which other verbs have already."""
    own = verb.add_argument_group("what is launched")
    own.add_argument(
        "--kernel", metavar="NAME", help="such as 'sgemm<128, 8>'; needed only if there are several"
    )
    grid = "blocks (default: those of a launch in the file, else 1)"
    own.add_argument("--grid", metavar="X[,Y[,Z]]", help=grid)
    if block:
        own.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a block")
    own.add_argument("--shared", metavar="BYTES", help="dynamic shared memory (default 0)")
    then = "start another launch: --kernel, --grid, --block and --shared after it describe that one"
    own.add_argument("--then", action=Then, help=then)
    launch = "several launches in order, in place of the four above: 'kernel[grid, block, shared](A, B, N)'"
    own.add_argument("--launch", metavar="LAUNCH", action="append", help=launch + numbers)
    own.add_argument("--let", metavar="NAME=NUMBER", action="append", help="a size, for use in other options")
    own.add_argument(
        "--arg", metavar="[NAME=]WHAT", action="append", help="the value of a parameter; see below"
    )
    own.add_argument("-D", metavar="NAME[=VALUE]", action="append", dest="defines", help="a macro for nvcc")
    own.add_argument("-I", metavar="FOLDER", action="append", dest="includes", help="where headers are")
    nvcc = "flags for nvcc, such as --use_fast_math or '-maxrregcount 64'"
    own.add_argument("--nvcc", metavar="FLAGS", action="append", dest="flags", help=nvcc)
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
    finite = "leave out the runs with NaN, infinity, -0 and denormal numbers as single elements"
    right.add_argument("--finite", action="store_true", help=finite)
    usual = "take inputs, results and tolerance from a ladder; for (A, B, C, M, N, K) or (X, Y, N)"
    right.add_argument("--as", dest="ladder", choices=("sgemm", "hgemm", "reduce"), help=usual)
    if not problem:
        return
    right.add_argument("--mnk", metavar="M,N,K", type=parse_shape, help="shape for --as sgemm and hgemm")
    right.add_argument("--n", metavar="N", type=parse_length, help="length for --as reduce")
    stored = "B is stored NxK (nt, the default of --as hgemm) or KxN (nn, that of --as sgemm)"
    right.add_argument("--layout", choices=LAYOUTS, help=stored)
    sums = "--as hgemm: format of the sums (default: float16 where A, B and C are, else float32)"
    right.add_argument("--accumulate", choices=ACCUMULATORS, help=sums)


def requests_of(options: Options, source: Source, arch: str) -> list[Request]:
    """What a command asks for, and the comments of its file."""
    check_once(options.arg or ())
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


def check_once(arguments: Sequence[str]) -> None:
    """BadInput for a parameter that is given twice."""
    from tir_schedules.check.arguments import parse_argument

    names = [name for name in (parse_argument(text).name for text in arguments) if name]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"--arg {name}= is given {names.count(name)} times: leave all but one out")


def only(requests: Sequence[Request], verb: str, named_by: str = "--kernel") -> Request:
    """The one request of a file, for what takes one kernel. named_by: the option that names it."""
    if len(requests) > 1:
        names = dict.fromkeys(asked.kernel for request in requests for asked in request.launches)
        raise BadInput(
            f"{verb} takes one check of {requests[0].source.file}, which has {len(requests)}: name one by"
            f" {named_by}: {', '.join(filter(None, names)) or 'its kernels'}"
        )
    return replace(requests[0], named_by=named_by)


def parse_comment(words: Sequence[str], place: str) -> Options:
    """Options from a comment."""
    reader = Parser(add_help=False, allow_abbrev=False)
    add_subject(reader)
    reader.add_argument("--arch")
    try:
        return reader.parse_args(list(words))
    except BadInput as error:
        reason = str(error).partition("; see `")[0]
        raise BadInput(f"{place}: {reason}; see `tir-schedules check --help`") from None


def is_for(own: Options, kernel: str) -> bool:
    from tir_schedules.check.target import base, plain

    called = [own.kernel, *(part["kernel"] for part in own.then or ())]
    called += [text.partition("[")[0] for text in own.launch or ()]
    return any(name and (plain(name) == plain(kernel) or base(name) == kernel) for name in called)


def merge_options(own: Options, command: Options) -> Options:
    """The options of a comment, over which those of the command win. Those that may be repeated are joined,
    except for launches."""
    both = dict(vars(command))
    for name, value in vars(own).items():
        given = both.get(name)
        if name in ("let", "arg", "defines", "includes", "flags", "expect", "constexpr"):
            both[name] = [*(value or ()), *(given or ())]
        elif name == "arch" and given == CPU_ARCH:  # the default of most verbs
            both[name] = value or given
        elif name in ("seed", "finite"):
            both[name] = given or value
        elif name == "kernel" and value and given:
            both[name] = value if "<" in value and "<" not in given else given
        elif given is None:
            both[name] = value
    if command.grid or command.block or command.then:
        both |= {"launch": command.launch, "then": command.then}
        both |= {name: getattr(command, name) for name in PART if command.then}
    elif own.launch or own.then:
        both["kernel"] = own.kernel
    if command.ladder:
        both["expect"] = command.expect
    elif command.expect:
        both |= dict.fromkeys(("ladder", "mnk", "n", "layout", "accumulate"))
    return Options(**both)


def request_of(options: Options, source: Source, arch: str) -> Request:
    from tir_schedules.check.arguments import parse_argument, sizes_of
    from tir_schedules.check.building import Compiling
    from tir_schedules.check.expecting import parse_expectation
    from tir_schedules.check.preparing import Request
    from tir_schedules.check.usual import Usual

    usual = None
    if options.ladder:
        shape = (options.n,) if options.ladder == "reduce" else options.mnk
        if not shape or shape == (None,):
            raise BadInput(
                f"--as {options.ladder} needs --{'n N' if options.ladder == 'reduce' else 'mnk M,N,K'}"
            )
        usual = Usual(options.ladder, tuple(shape), options.layout or "", options.accumulate or "")
    elif options.mnk or options.n or options.layout or options.accumulate:
        raise BadInput("--mnk, --n, --layout and --accumulate are for --as")
    if usual and options.expect:
        raise BadInput("--as says what is right: leave out --expect")
    sizes = joined_sizes(usual, sizes_of(options.let or []))
    triton = triton_of(options, source)
    sizes |= {name: value for name, value in triton.items() if isinstance(value, (int, float))}
    given = tuple(map(parse_argument, options.arg or ()))
    launches = launches_of(options, source, sizes, given, usual)
    every = [parse_expectation(text, Path(source.folder or ".")) for text in options.expect or ()]
    expect = {(one.output, one.where): one for one in every}.values()
    own = options.arch if options.arch and options.arch != CPU_ARCH else ""
    compiling = Compiling(
        own or arch, *(tuple(given or ()) for given in (options.includes, options.defines, options.flags)),
        fixed=bool(own) or getattr(options, "machine", "cpu") != "cpu",
    )  # fmt: skip
    return Request(
        source, tuple(launches), sizes, given, {}, tuple(expect), usual, options.tolerance, compiling,
        options.seed, options.finite, triton,
    )  # fmt: skip


def joined_sizes(usual: Usual | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes of a ladder's shape, and those that are given. BadInput for one with two values."""
    own = usual.sizes if usual else {}
    for name in own.keys() & given.keys():
        if own[name] != given[name]:
            shape = "--n" if len(own) == 1 else "--mnk"
            raise BadInput(f"{name} is {own[name]} in {shape}, and {given[name]} in --let: say it once")
    return {**own, **given}


def launches_of(
    options: Options,
    source: Source,
    sizes: Mapping[str, Any],
    given: Sequence[Given],
    usual: Usual | None = None,
) -> list[Asked]:
    """Every launch, in order. BadInput where one cannot be told."""
    from tir_schedules.check.expressions import launch_of_options, parse_launch
    from tir_schedules.check.launches import Known, is_launched, read_launch

    parts: list[Mapping[str, Any]] = [*(options.then or ()), {name: getattr(options, name) for name in PART}]
    if options.launch:
        if len(parts) > 1 or any(parts[0][name] for name in ("kernel", "grid", "block")):
            raise BadInput(
                "--launch names kernel, grid and block: leave out --kernel, --grid, --block and --then"
            )
        return [parse_launch(text, sizes) for text in options.launch]
    if len(parts) > 1:
        if not any(parts[-1].values()):
            raise BadInput(
                "--then has no launch behind it: say --kernel, and --grid and --block, of the next"
            )
        if any(not one.name for one in given):
            raise BadInput("with --then arguments go by the names of parameters: --arg NAME=WHAT")
    found = []
    for kernel, *extents in (tuple(part.values()) for part in parts):
        where = source, options.includes or (), options.defines or (), kernel or ""
        if source.is_python or (extents[1] and (extents[0] or not is_launched(*where))):
            grid, block, shared = (text or default for text, default in zip(extents, "110"))
            found.append(launch_of_options(kernel or "", grid, block, shared, sizes))
        else:
            known = Known(given, sizes, tuple(extents), usual.sizes if usual else {})
            found.append(read_launch(*where, known))
    return found


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
    python = source.is_python
    found = constants_of(options.constexpr or [])
    asked = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    found |= {name: value for name, value in asked.items() if value is not None}
    if found and not python:
        raise BadInput("--constexpr, --num-warps and --num-stages are for Triton kernels, of a FILE.py")
    if not python:
        return {}
    if options.block or options.shared or options.launch or options.then:
        raise BadInput(
            "Triton chooses blocks and shared memory: say --kernel, --grid and --num-warps, and leave out"
            " --block, --shared, --launch and --then"
        )
    from tir_schedules.check.triton.checking import configuration

    return {**configuration(source, options.kernel or ""), **found}


TYPE = re.compile(r"(?:tl|triton\.language)\.(\w+)")
CONSTANT_FORM = "a number, True, False, None, 'text', or a type such as tl.float16"


def constants_of(texts: Sequence[str]) -> dict[str, Any]:
    """`--constexpr` by name; of two with one name the last. BadInput for what is not a constant."""
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
            raise BadInput(f"{what} {shown(text)}: triton.language does not have it")
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
