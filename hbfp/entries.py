"""Cache entries: folders that are made once and checked whenever they are used.

An entry is made under a lock by one process while others wait, renamed into place when it is complete, and listed
file by file with SHA-256 in a record of its own. Whoever uses it checks the record first; what does not fit is made
again, which is said in one line on standard error.
"""

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .files import lock

#: Seconds for which the log of something that failed is kept.
KEPT = 24 * 3600
_RECORD = ".entry.json"


def entry(path: str | os.PathLike[str], make: Callable[[Path], object], stamp: str = "") -> Path:
    """A cache entry: the folder ``path``, filled by ``make(folder)`` if it is not there as it should be.

    Parameters
    ----------
    path : Path
        Of the folder; its name stands for all that decides the content, or for what ``stamp`` does not say.
    make : callable
        Called with an empty folder to fill. It runs in one process at a time; others wait for its result.
        Files that come into the folder later are no part of the entry.
    stamp : str
        What else decides the content: an entry of the same name with another stamp is replaced.

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    Exception
        What ``make`` raises. Its folder stays as ``NAME.failed`` for a day, and the message names that folder, so
        that a log in it can be read.
    """
    path = Path(path)
    if not _complaint(path, stamp):
        return path
    with lock(path):
        complaint = _complaint(path, stamp)
        if not complaint:    # made by another process in the meantime
            return path
        if path.exists() and complaint is not _STALE:
            print(f"{path}: {complaint}; making it again", file=sys.stderr)
        _clear(path.parent)
        _make(path, make, stamp)
    return path


def value(path: str | os.PathLike[str], make: Callable[[], Any], stamp: str = "") -> Any:
    """The JSON value in a cache entry; if it is not there, that of ``make()``."""
    def fill(folder):
        (folder / "value.json").write_text(json.dumps(make()))
    return json.loads((entry(path, fill, stamp) / "value.json").read_text())


def intact(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is an entry that holds what was put there."""
    return _complaint(Path(path), None) is None


def remove(path: str | os.PathLike[str]) -> None:
    """Remove an entry."""
    with lock(path):
        shutil.rmtree(path, ignore_errors=True)


_STALE = "made by another version"


def _complaint(path, stamp):
    """What is wrong with an entry in words, or None; any ``stamp`` will do where None is asked for."""
    try:
        record = json.loads((path / _RECORD).read_text())
        if stamp is not None and record["stamp"] != stamp:
            return _STALE
        wrong = next((name for name, digest in record["files"].items() if _digest(path / name) != digest), None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "its record is missing or cannot be read"
    return None if wrong is None else f"{wrong} is not as it was made"


def _digest(path):
    """SHA-256 of a file, or None without one; not worked out again while the file looks as it did."""
    try:
        looks = _looks(path)
        if _known.get(path, (None,))[0] == looks:
            return _known[path][1]
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
    if time.time() - looks[-1] / 1e9 > _COARSE:    # a change from now on shows
        _known[path] = looks, digest
    return digest


#: File -> what it looked like, and its SHA-256.
_known: dict[Path, tuple[tuple[int, ...], str]] = {}
#: Seconds within which a file system may give two changes the same time.
_COARSE = 2


def _looks(path):
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _make(path, make, stamp):
    """Fill a new folder and put it in the place of ``path``; the caller holds the lock."""
    work, failed = _work(path), path.with_name(f"{path.name}.failed")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(failed, ignore_errors=True)
    work.mkdir()
    try:
        make(work)
        files = {str(each.relative_to(work)): _digest(each) for each in sorted(work.rglob("*")) if each.is_file()}
        (work / _RECORD).write_text(json.dumps({"stamp": stamp, "files": files}, indent=1) + "\n")
    except Exception as error:
        if not any(work.iterdir()):    # nothing to look at: the message says all
            work.rmdir()
            raise
        os.replace(work, failed)
        error.args = tuple(arg.replace(str(work), str(failed)) if isinstance(arg, str) else arg for arg in error.args)
        raise
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    os.replace(work, path)


def _work(path):
    return path.with_name(f"{path.name}.new")


def _clear(folder):
    """Remove what killed runs left in a folder of entries, and logs of failures that are older than :data:`KEPT`."""
    for each in os.scandir(folder):
        path = Path(each.path)
        try:
            if path.suffix == ".failed" and time.time() - each.stat().st_mtime > KEPT:
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".new":
                # Whoever makes an entry holds its lock.
                with lock(path.with_suffix(""), wait=0):
                    shutil.rmtree(path, ignore_errors=True)
        except (OSError, TimeoutError):
            continue
