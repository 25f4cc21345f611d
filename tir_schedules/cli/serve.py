"""The verb `serve`: TVM's RPC tracker and one server per GPU, or several that use the CPU machine, until it
is interrupted."""

from __future__ import annotations

from tir_schedules.cli.options import Options, Verbs
from tir_schedules.numerals import integer_for
from tir_schedules.tuning.remote import KEY, LOOPBACK


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `serve` to those of the other verbs."""
    verb = verbs.add_parser(
        "serve", help="measure for `tune --tracker`: a server for every GPU of this computer"
    )
    servers_help = "N servers that use the CPU machine, for a computer without a GPU"
    verb.add_argument("--servers", metavar="N", type=integer_for("--servers", 2), help=servers_help)
    danger = "whoever reaches its ports can run any code here"
    verb.add_argument(
        "--host",
        default=LOOPBACK,
        help=f"address to listen on (default {LOOPBACK}: this computer only); {danger}",
    )
    verb.add_argument(
        "--port",
        metavar="N",
        type=integer_for("--port", 9190),
        default=0,
        help="the tracker's port (default: a free one)",
    )
    verb.add_argument("--key", default=KEY, help=f"what clients ask the tracker for (default {KEY})")
    verb.set_defaults(verb=serve)


def serve(options: Options) -> int:
    """Run the verb until it is interrupted."""
    from tir_schedules.tuning.remote.serving import run_servers

    run_servers(options.servers, options.host, options.port, options.key)
