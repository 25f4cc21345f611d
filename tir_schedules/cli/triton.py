"""Options of `check` for Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tir_schedules.cli.options import Options, Parser
from tir_schedules.errors import BadInput

if TYPE_CHECKING:
    from tir_schedules.source import Source


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
    from tir_schedules.check.triton.constants import constants_of

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
