"""What may end a command before it begins, while Python loads what it needs: Ctrl-C, and a missing library."""

import sys

from .extras import missing


def watch(part: str) -> None:
    """From now on either ends the process without a traceback: Ctrl-C silently, as the signal does, and a library that
    is missing with one line and the status of bad input.

    Parameters
    ----------
    part : str
        Whose command it is, such as ``gen``.
    """
    usual = sys.excepthook

    def hook(kind, error, trace):
        line = missing(error, part)
        if line is not None:
            from .command import BAD_INPUT, as_called

            print(as_called(f"python -m {part}: error: {line}"), file=sys.stderr)
            sys.exit(BAD_INPUT)
        if not issubclass(kind, KeyboardInterrupt):
            usual(kind, error, trace)

    sys.excepthook = hook
