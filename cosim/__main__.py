"""``python -m cosim``: the same work on the Verilated core and on the golden model, compared bit for bit."""

if __name__ == "__main__":
    from hbfp import interrupts

    interrupts.end_silently()    # before all that takes a while to load

import sys
from importlib import import_module

#: First word -> module of the command; a command is imported when it is called, as NumPy takes a moment.
COMMANDS = {"dispatch": "cosim.command.dispatch", "matrix": "cosim.work.regression", "random": "cosim.command.random"}


def main(argv=None):
    """Run the command; return its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    name = COMMANDS.get(argv[0]) if argv else None
    return import_module(name).main(argv[1:]) if name else import_module("cosim.command.core").main(argv)


if __name__ == "__main__":
    sys.exit(main())
