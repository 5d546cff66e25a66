"""Values that users give: every command reads them here, strictly, and complains of them in one line."""

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EACCES, EISDIR, ENAMETOOLONG, ENOTDIR
from pathlib import Path

#: Characters of a value that a message shows.
SHOWN = 120
#: Most bytes of a file with options.
TEXT_LIMIT = 1 << 20
#: Most bytes of one name in a path, on every file system in common use.
NAME_LIMIT = 255
#: Processes that a user may ask for.
JOBS_RANGE = (1, 4096)
#: Twenty digits are more than any range needs, and few enough to be read quickly.
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?")


class OptionError(ValueError):
    """A value that a user gave is not valid; the message is one line for them."""


class ContradictionError(OptionError):
    """Values that are valid by themselves do not go together."""


def shown(value: object, most: int = SHOWN) -> str:
    """A value as a message shows it: on one line, the middle of a long one left out."""
    try:
        text = str(value)
    except (ValueError, RecursionError):    # an integer of thousands of digits; lists in lists without end
        text = f"(a value too long to show, {type(value).__name__})"
    if len(text) > most:
        end = most // 3
        text = f"{text[:most - end - 3]}...{text[-end:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def given(value: object) -> str:
    """A value as the message of a function shows it: as Python writes it, on one line and not too long."""
    try:
        return shown(repr(value))
    except ValueError:    # an integer of thousands of digits
        return shown(value)


def flag(name: str) -> str:
    """The option's name as users write it; one in capitals is what help calls a value without an option."""
    return name if name.isupper() else f"--{name.replace('_', '-')}"


def refuse(name: str, value: object, rule: str) -> OptionError:
    """The :class:`OptionError` that says which option has which value, and what is valid."""
    return OptionError(f"{flag(name)} {shown(value)}: {rule}")


def whole(name: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """A whole number, in ``low..high`` where these are given, from ASCII digits or an int that a file gave.

    Raises
    ------
    OptionError
        If it is none, or out of range.
    """
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or (
            low is not None and high is not None and not low <= value <= high):
        raise refuse(name, value, "must be a whole number" if low is None else f"must be {low} to {high}")
    return value


def number(name: str, value: str, low: float, high: float) -> float:
    """A float in ``low..high`` from decimal notation in ASCII; raises as :func:`whole`."""
    result = float(value) if _NUMBER.fullmatch(value) else math.nan
    if not low <= result <= high:
        raise refuse(name, value, f"must be {low:g} to {high:g}")
    return result


def pair(name: str, value: object, low: int, high: int) -> tuple[int, int]:
    """Two whole numbers, ``A,B`` or ``AxB`` or a list of a file; raises as :func:`whole`."""
    parts = re.split("[,x]", value) if isinstance(value, str) else value
    rule = f"must be two numbers such as 1,32, each {low} to {high}"
    if not isinstance(parts, (list, tuple)) or len(parts) != 2:
        raise refuse(name, value, rule)
    try:
        first, second = (whole(name, part, low, high) for part in parts)
        return first, second
    except OptionError:
        raise refuse(name, value, rule) from None


def choice(name: str, value: object, choices: Iterable[str]) -> str:
    """``value`` if it is one of ``choices``; raises as :func:`whole`."""
    if not isinstance(value, str) or value not in choices:
        raise refuse(name, value, f"must be one of {', '.join(choices)}")
    return value


def words_of(name: str, text: str) -> list[str]:
    """The words of a list with commas between, one at least; raises as :func:`whole`."""
    words = [word for word in text.split(",") if word]
    if not words:
        raise refuse(name, text, "must name one at least")
    return words


def several(name: str, text: str, choices: Iterable[str]) -> list[str]:
    """The words of a list with commas between, none or more, each one of ``choices``; raises as :func:`whole`."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in choices:
            raise refuse(name, word, f"must be of {', '.join(choices)}")
    return words


def address(name: str, value: str | None) -> str | None:
    """An address that is not empty, or None; raises as :func:`whole`."""
    if value == "":
        raise refuse(name, value, "must be an address such as tcp://host:8786")
    return value


def cannot(act: str, name: str, path: object, reason: str | int) -> OptionError:
    """The :class:`OptionError` of a path; ``reason`` is text or an errno."""
    return refuse(name, path, f"cannot be {act} ({os.strerror(reason) if isinstance(reason, int) else reason})")


def readable_file(name: str, path: str | os.PathLike[str]) -> Path:
    """The :class:`Path` of a file that can be read to its end: no folder, device or pipe.

    Raises
    ------
    OptionError
        If it is not there, or is none.
    """
    path = Path(path)
    try:
        path.stat()
        if path.is_dir():
            raise cannot("read", name, path, EISDIR)
        if not path.is_file():
            raise cannot("read", name, path, "not a regular file")
        with open(path, "rb"):
            return path
    except OSError as error:
        raise cannot("read", name, path, error.strerror or str(error)) from None


def read_file(name: str, path: str | os.PathLike[str], most: int = TEXT_LIMIT) -> bytes:
    """The bytes of a file of at most ``most``; raises as :func:`readable_file`."""
    with open(readable_file(name, path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise cannot("read", name, path, f"longer than {most} bytes")
    return data


def _check_writable(name, path, folder):
    """Raise OptionError unless ``folder``, there already, is one that files can be made in."""
    if not folder.is_dir():
        raise cannot("written", name, path, ENOTDIR)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise cannot("written", name, path, EACCES)


def writable_file(name: str, value: str | os.PathLike[str]) -> Path:
    """The :class:`Path` of a file that can be written: its folder is there, and nothing but a file in its place.

    Raises
    ------
    OptionError
        If it cannot be written, as far as can be known before it is.
    """
    path = Path(value)
    try:
        path.parent.stat()
        _check_writable(name, value, path.parent)
        if value == "" or path.is_dir():
            raise cannot("written", name, value, EISDIR)
        if os.path.lexists(path):
            if not path.is_file():
                raise cannot("written", name, value, "not a regular file")
            if not os.access(path, os.W_OK):
                raise cannot("written", name, value, EACCES)
        elif len(os.fsencode(path.name)) > NAME_LIMIT:
            raise cannot("written", name, value, ENAMETOOLONG)
    except OSError as error:
        raise cannot("written", name, value, error.strerror or str(error)) from None
    return path


def writable_folder(name: str, value: str | os.PathLike[str]) -> Path:
    """The :class:`Path` of a folder that is there or can be made; raises as :func:`writable_file`."""
    path = Path(value)
    if not os.fspath(value):
        raise cannot("written", name, value, "no name of a folder")
    if any(len(os.fsencode(part)) > NAME_LIMIT for part in path.parts):
        raise cannot("written", name, value, ENAMETOOLONG)
    try:
        for place in (path, *path.parents):
            if os.path.lexists(place):
                place.stat()
                if place == path and not path.is_dir():
                    raise cannot("written", name, value, "File exists")
                _check_writable(name, value, place)
                break
    except OSError as error:
        raise cannot("written", name, value, error.strerror or str(error)) from None
    return path


@contextmanager
def writing(name: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """What fails inside with an OSError is an :class:`OptionError` of the option that named the path."""
    try:
        yield
    except OSError as error:
        raise cannot("written", name, path, error.strerror or str(error)) from None


def make_folder(name: str, path: Path) -> None:
    """Make a folder that :func:`writable_folder` has let pass; raises as that."""
    with writing(name, path):
        path.mkdir(parents=True, exist_ok=True)
