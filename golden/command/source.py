"""Functions that a user's Python file defines; what is wrong with it is one line."""

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hbfp import extras


class Wrong(ValueError):
    """A user's file is not what is needed; one line that names it."""


def functions(text: str, names: Sequence[str], others: Sequence[str] = ()) -> dict[str, Callable[..., Any]]:
    """The functions of these names that a file defines, and of others that it may; ValueError, one line, if not."""
    if not Path(text).is_file():
        raise Wrong(f"Model {text} is no file")
    try:
        made = runpy.run_path(text)
    except (Exception, SystemExit) as error:
        raise Wrong(f"Model {text} does not run: {line(error)}") from error
    wanted = [*names, *(name for name in others if name in made)]
    for name in wanted:
        if not callable(made.get(name)):
            raise Wrong(f"Model {text} must define {name}()")
    return {name: made[name] for name in wanted}


def called(text: str, function: Callable[..., Any], *args: Any) -> Any:
    """What a function of a file gives; ValueError, one line, if it raises an error."""
    try:
        return function(*args)
    except (Exception, SystemExit) as error:
        raise Wrong(f"Model {text} does not run: {line(error)}") from error


def line(error: BaseException) -> str:
    """An error as one line; of a library that is missing, what to install."""
    return extras.missing(error, "golden") or f"{type(error).__name__}: {' '.join(str(error).split())}"
