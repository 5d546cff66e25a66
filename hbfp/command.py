"""What every command line of ours has in common: one line for bad input, and how a command ends."""

import argparse
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .extras import missing
from .values import OptionError, shown

#: Exit statuses: bad input; the reader of our output has gone; Ctrl-C.
BAD_INPUT, NO_READER, INTERRUPTED = 2, 1, 130
#: Characters of a whole complaint.
LINE = 1000


def as_called(text: str) -> str:
    """A text in which commands are called as the user called this one: ``python -m gen`` or ``hbfp gen``."""
    return re.sub(r"python -m (?=\w)", "hbfp ", text) if Path(sys.argv[0]).stem == "hbfp" else text


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in which every option names its default, unless its text does, or there is none."""

    def _get_help_string(self, action):
        plain = action.default in (None, False, "", argparse.SUPPRESS) or "default" in action.help
        return action.help if plain else f"{action.help} (default %(default)s)"


class Parser(argparse.ArgumentParser):
    """An argument parser whose every complaint is one line and exit status 2."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **kwargs)
        self.prog = as_called(self.prog)

    def format_help(self) -> str:
        return as_called(super().format_help())

    def _get_values(self, action, arg_strings):
        if action.option_strings and arg_strings == ["--"]:    # of --name=-- some versions of argparse drop the value
            return self._get_value(action, *arg_strings)
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {shown(message, LINE)}", file=sys.stderr)
        sys.exit(BAD_INPUT)


#: Before the line of an error, show where it was raised: any command takes it.
TRACEBACK = "--traceback"


def perform(job: Callable[[], int | None]) -> int:
    """Do the work that a command line asks for; the exit status."""
    return job() or 0


def _drop_output():
    """Send what is still to be written nowhere: Python flushes once more when it ends."""
    if sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _trace(error, shows):
    if shows:
        traceback.print_exception(error)


def run(parser: Parser, prepare: Callable[[argparse.Namespace], Callable[[], int | None]],
        argv: Sequence[str] | None = None, failures: Mapping[type[Exception], int] | None = None) -> int:
    """Run a command; return its exit status.

    Parameters
    ----------
    parser : Parser
        Reads the command line.
    prepare : callable
        From parsed arguments to the work, a callable that returns an exit status or None. All that can be said of
        the user's values is said here, before anything long begins: it raises :class:`OptionError`.
    argv : list of str, optional
        ``sys.argv[1:]`` by default.
    failures : dict, optional
        Exception -> exit status, of work that fails with a message of one line.

    Raises
    ------
    SystemExit
        With status 2 after one line on standard error: bad input, output that cannot be written, or a library of an
        extra that is not installed.
    """
    failures = failures or {}
    given = list(sys.argv[1:] if argv is None else argv)
    shows, given = TRACEBACK in given, [each for each in given if each != TRACEBACK]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):    # names of files may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        status = perform(prepare(parser.parse_args(given)))
        sys.stdout.flush()
        return status
    except OptionError as error:
        _trace(error, shows)
        parser.error(str(error))
    except ModuleNotFoundError as error:
        line = missing(error, parser.prog)
        if line is None:
            raise
        parser.error(line)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return NO_READER
    except OSError as error:
        if error.filename is None:
            _drop_output()
        parser.error(f"{error.filename or 'output'}: {error.strerror or error}")
    except tuple(failures) as error:
        _trace(error, shows)
        print(f"{parser.prog}: error: {shown(error, LINE)}", file=sys.stderr)
        return next(status for kind, status in failures.items() if isinstance(error, kind))
