"""Ctrl-C before a command has begun: Python is still loading what it needs."""

import sys


def end_silently():
    """From now on an interrupt that nobody handles ends the process without a traceback, as the signal does."""
    usual = sys.excepthook

    def hook(kind, error, trace):
        if not issubclass(kind, KeyboardInterrupt):
            usual(kind, error, trace)

    sys.excepthook = hook
