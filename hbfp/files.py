"""Files that are whole or not there: one build folder, atomic writing, and locks among processes."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def build() -> Path:
    """The folder for all that is kept: ``HBFP_BUILD`` if set, else ``build`` of the checkout.

    Without a checkout it is ``hbfp`` in the user's folder for caches.
    """
    given = os.environ.get("HBFP_BUILD")
    if given:
        return Path(given).resolve()
    if (ROOT / "pyproject.toml").exists() and os.access(ROOT, os.W_OK):
        return ROOT / "build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "hbfp"


def output(*parts: str) -> Path:
    """Where a command writes what it was asked for, unless told otherwise: ``build`` of the current folder.

    In a checkout that is :func:`build`, as it is with ``HBFP_BUILD``.
    """
    return Path(os.environ.get("HBFP_BUILD") or "build").joinpath(*parts)


def cache(part: str) -> Path:
    """The folder of one part's cache entries."""
    return build() / "cache" / part


def key(*parts: object) -> str:
    """A name for what ``parts``, strings or bytes, determine together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


def digest(paths: Iterable[str | os.PathLike[str]]) -> str:
    """A name that follows from the names and the bytes of files, in their order."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        with open(path, "rb") as file:
            found.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


# --- Single files -------------------------------------------------------------------------------


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write text or bytes to ``path``, whole or not at all; its folder is made if need be."""
    with replacing(path) as temporary:
        if isinstance(data, bytes):
            temporary.write_bytes(data)
        else:
            temporary.write_text(data)


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write plain data as JSON, as all reports have it."""
    write(path, json.dumps(data, indent=1) + "\n")


def write_csv(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, each a dict, as CSV with a line of column names; what a row lacks is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(path, text.getvalue())


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
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
def scratch() -> Iterator[Path]:
    """A folder for the length of the block, below the build folder; what killed processes left there is removed."""
    place = build() / "scratch"
    place.mkdir(parents=True, exist_ok=True)
    for left in place.iterdir():
        if not _alive(int(left.name.partition("-")[0])):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=f"{os.getpid()}-") as folder:
        yield Path(folder)


@contextmanager
def lock(path: str | os.PathLike[str], wait: float = -1) -> Iterator[None]:
    """Hold the lock of ``path`` (a file or folder, there or not) among all processes and threads that ask for it.

    Raises
    ------
    TimeoutError
        If another has it for more than ``wait`` seconds; -1 waits for ever.
    """
    from filelock import FileLock  # most commands hold none, and it takes a while to load

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=wait):
        yield
