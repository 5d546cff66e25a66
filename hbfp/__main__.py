"""``hbfp COMMAND ...``: the commands of all parts, for those who have installed them."""

import sys
from collections.abc import Sequence
from importlib import import_module

from . import loading
from .checkout import version
from .command import BAD_INPUT, Parser
from .values import shown

#: Command -> the part whose command it is, and the words that come first.
COMMANDS = {"gen": ("gen", ()), "cosim": ("cosim", ()), "synth": ("synth", ()), "flow": ("flow", ()),
            "golden": ("golden", ()), "train": ("golden", ("train",))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = Parser(prog="hbfp", usage=f"hbfp {'|'.join(COMMANDS)} ...",
                    description="One command for all parts; each says more with --help.")
    parser.add_argument("--version", action="store_true", help="print the version and end")
    if not words or words[0] in ("-h", "--help"):
        parser.print_help(sys.stdout if words else sys.stderr)
        return 0 if words else BAD_INPUT
    if words[0] == "--version":
        print(f"hbfp {version()}")
        return 0
    if words[0] not in COMMANDS:
        parser.error(f"command {shown(words[0])}: must be one of {', '.join(COMMANDS)}")
    part, first = COMMANDS[words[0]]
    if arguments is None:
        loading.watch(part)
    return import_module(f"hbfp.{part}.__main__").main([*first, *words[1:]])


if __name__ == "__main__":
    sys.exit(main())
