"""``python -m synth fetch``: a cell library and the timer."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from hbfp.command import Parser, run
from hbfp.values import choice

from ..tools import library, nangate45, opensta
from ..tools.errors import FAILURES
from .options import make_console

#: Library -> what fetches it.
LIBRARIES = {"osu018": lambda: library.fetch(), "nangate45": lambda: nangate45.fetch()}
EXAMPLES = """\
examples:
  python -m synth fetch                        OSU018, by Debian's apt-get and dpkg
  python -m synth fetch --library nangate45    Nangate45, typical corner, by pip
"""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(prog="python -m synth fetch", epilog=EXAMPLES, description="Fetch a cell library into build/lib, "
                    "and OpenSTA (Debian's apt-get and dpkg); nothing is installed.")
    parser.add_argument("--library", metavar="NAME", default="osu018",
                        help=f"one of {', '.join(LIBRARIES)} (default: osu018)")
    return parser


def prepare(args: argparse.Namespace) -> Callable[[], None]:
    """From parsed arguments to the work; OptionError if a value is not valid."""
    return partial(work, choice("library", args.library, LIBRARIES))


def work(name: str) -> None:
    """Fetch both, in sight of the user."""
    console = make_console()
    path = LIBRARIES[name]()
    console.print(f"{path}: {library.load(path).name}", soft_wrap=True)
    if library.fetch_timer(opensta.OPENSTA):
        console.print(f"{opensta.find()}: OpenSTA, for --timing", soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), prepare, argv, FAILURES)
