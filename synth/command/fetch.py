"""``python -m synth fetch``: the cell library and the timer."""

from collections.abc import Sequence

from hbfp.command import Parser, run

from ..tools import library, opensta
from ..tools.errors import FAILURES
from .options import make_console


def make_parser() -> Parser:
    """The command line."""
    return Parser(prog="python -m synth fetch", description="Fetch the OSU018 cell library (Debian's apt-get and "
                  "dpkg) into build/lib, and OpenSTA.")


def work() -> None:
    """Fetch both, in sight of the user."""
    console = make_console()
    path = library.fetch()
    console.print(f"{path}: {library.load(path).name}", soft_wrap=True)
    if library.fetch_timer(opensta.OPENSTA):
        console.print(f"{opensta.find()}: OpenSTA, for --timing", soft_wrap=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    return run(make_parser(), lambda args: work, argv, FAILURES)
