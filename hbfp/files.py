"""Files that are whole or not there: one build folder, atomic writing, and one cache that is checked when it is used.

A cache entry is a folder: made under a lock by one process while others wait, renamed into place when it is
complete, and listed file by file with SHA-256 in a record of its own. Whoever uses an entry checks the record
first; what does not fit is made again, which is said in one line on standard error.
"""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
#: Seconds for which the log of something that failed is kept.
KEPT = 24 * 3600
_RECORD = ".entry.json"


def build():
    """The folder for all that is kept: ``HBFP_BUILD`` if set, else ``build`` of the checkout.

    Without a checkout it is ``hbfp`` in the user's folder for caches.
    """
    given = os.environ.get("HBFP_BUILD")
    if given:
        return Path(given).resolve()
    if (ROOT / "pyproject.toml").exists() and os.access(ROOT, os.W_OK):
        return ROOT / "build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "hbfp"


def output(*parts):
    """Where a command writes what it was asked for, unless told otherwise: ``build`` of the current folder.

    In a checkout that is :func:`build`, as it is with ``HBFP_BUILD``.
    """
    return Path(os.environ.get("HBFP_BUILD") or "build").joinpath(*parts)


def cache(part):
    """The folder of one part's cache entries."""
    return build() / "cache" / part


def key(*parts):
    """A name for what ``parts``, strings or bytes, determine together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


# --- Single files -------------------------------------------------------------------------------


def write(path, data):
    """Write text or bytes to ``path``, whole or not at all; its folder is made if need be."""
    with replacing(path) as temporary:
        if isinstance(data, bytes):
            temporary.write_bytes(data)
        else:
            temporary.write_text(data)


def write_json(path, data):
    """Write plain data as JSON, as all reports have it."""
    write(path, json.dumps(data, indent=1) + "\n")


def write_csv(path, columns, rows):
    """Write rows, each a dict, as CSV with a line of column names; what a row lacks is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(path, text.getvalue())


@contextmanager
def replacing(path):
    """A path beside ``path`` to write to; it takes the place of ``path`` if the block ends well.

    Two processes that write the same file do not disturb each other: the last one wins.
    """
    path = Path(path)
    if path.is_dir():    # said before the work, not after it
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_partial(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.{os.getpid()}-", suffix=".new" + path.suffix)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _clear_partial(path):
    """Remove what a killed process left when it wrote ``path``."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-.*\.new{re.escape(path.suffix)}")
    for entry in os.scandir(path.parent):
        found = pattern.fullmatch(entry.name)
        if found and not _alive(int(found[1])):
            Path(entry.path).unlink(missing_ok=True)


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def scratch():
    """A folder for the length of the block, below the build folder; what killed processes left there is removed."""
    place = build() / "scratch"
    place.mkdir(parents=True, exist_ok=True)
    for left in place.iterdir():
        if not _alive(int(left.name.partition("-")[0])):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=f"{os.getpid()}-") as folder:
        yield Path(folder)


@contextmanager
def lock(path):
    """Hold the lock of ``path`` (a file or folder, there or not) among all processes and threads that ask for it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock_file(path)):
        yield


def _lock_file(path):
    return path.with_name(f".{path.name}.lock")


# --- Cache entries ------------------------------------------------------------------------------


def entry(path, make, stamp=""):
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


def value(path, make, stamp=""):
    """The JSON value in a cache entry; if it is not there, that of ``make()``."""
    def fill(folder):
        (folder / "value.json").write_text(json.dumps(make()))
    return json.loads((entry(path, fill, stamp) / "value.json").read_text())


def intact(path):
    """Whether ``path`` is an entry that holds what was put there."""
    return _complaint(Path(path), None) is None


def remove(path):
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
_known = {}
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
                with FileLock(_lock_file(path.with_suffix("")), timeout=0):
                    shutil.rmtree(path, ignore_errors=True)
        except (OSError, TimeoutError):
            continue
