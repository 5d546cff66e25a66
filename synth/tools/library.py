"""Cell libraries: a Liberty file by path, or OSU018 from Debian."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hbfp import entries, files
from hbfp.values import cannot, readable_file, refuse

from .errors import SynthError

PACKAGE = "qflow-tech-osu018"
_INSIDE = "usr/share/qflow/tech/osu018/osu018_stdcells.lib"
#: Where ``python -m synth fetch`` puts the library and where it is looked for.
OSU018 = files.build() / "lib" / "osu018_stdcells.lib"
#: The same for Nangate45, by the name that it has on the pages.
NANGATE45 = OSU018.with_name("NangateOpenCellLibrary_typical.lib")


@dataclass(frozen=True)
class Library:
    """A cell library: ``nand2`` is the area of its smallest two-input NAND, ``flipflops`` names its flip-flops."""
    name: str
    path: Path
    nand2: float
    sha256: str
    flipflops: frozenset[str] = frozenset()


def _cells(text):
    """Name -> area of each cell of a Liberty file."""
    return {name.strip('" '): float(area) for name, area in
            re.findall(r'\bcell\s*\(([^)]+)\)\s*\{.*?\barea\s*:\s*"?([\d.eE+-]+)', text, re.DOTALL)}


def _flipflops(text):
    """Names of the cells that have a group ``ff`` or ``ff_bank``."""
    _, *cells = re.split(r'\bcell\s*\(\s*"?([^")]+?)\s*"?\s*\)\s*\{', text)
    return frozenset(name for name, body in zip(cells[::2], cells[1::2], strict=True)
                     if re.search(r"\bff(_bank)?\s*\(", body))


def functions(path: Path) -> list[str]:
    """Names of the cells of a Liberty file that something can be mapped to: those with a function."""
    _, *cells = re.split(r'\bcell\s*\(\s*"?([^")]+?)\s*"?\s*\)\s*\{', path.read_text())
    return [name for name, body in zip(cells[::2], cells[1::2], strict=True) if re.search(r"\bfunction\s*:", body)]


def _holds_a_bit(text):
    """Whether there is a flip-flop that takes its input as it is, which is what registers are mapped to."""
    return re.search(r'\bff\s*\([^)]*\)\s*\{[^}]*\bnext_state\s*:\s*"\s*\w+\s*"', text) is not None


def load(path: str | os.PathLike[str]) -> Library:
    """Read a Liberty file.

    Raises
    ------
    OptionError
        If it cannot be read, is no Liberty file, or has no two-input NAND to measure by, or no flip-flop.
    """
    if Path(path).name == NANGATE45.name and not Path(path).exists():
        raise refuse("liberty", path, f"is not there: python -m synth fetch --library nangate45 makes {NANGATE45}")
    path = readable_file("liberty", path)
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise cannot("read", "liberty", path, "not text") from None
    name = re.search(r'\blibrary\s*\(\s*"?([^")]+)', text)
    try:
        cells = _cells(text)
    except ValueError:    # an area that is no number
        cells = {}
    if not name or not cells:
        raise refuse("liberty", path, "is not a Liberty file with cells")
    nands = [area for cell, area in cells.items() if re.search(r"nand_?2", cell, re.IGNORECASE) and area > 0]
    if not nands:
        raise refuse("liberty", path, "has no two-input NAND to count areas in")
    if not _holds_a_bit(text):
        raise refuse("liberty", path, "has no flip-flop (ff) to map registers to")
    return Library(name[1], path, min(nands), hashlib.sha256(data).hexdigest(), _flipflops(text))


def _download(package, folder):
    """Unpack a Debian package into ``folder``; return None, or why that cannot be done."""
    done = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, text=True)
    packages = list(Path(folder).glob(f"{package}_*.deb"))
    if done.returncode or not packages:
        return (done.stderr.strip().splitlines() or ["no package came"])[-1]
    subprocess.run(["dpkg", "-x", packages[0], folder], check=True)
    return None


def fetch_timer(path: Path) -> bool:
    """Fetch OpenSTA, a Debian package, into a folder, for ``--timing``; return whether it came."""
    def make(folder):
        if (why := _download("opensta", folder)) is not None:
            raise SynthError(f"apt-get download opensta failed: {why}")

    try:
        entries.entry(path, make)
    except SynthError:
        return False
    return True


def fetch(path: str | os.PathLike[str] = OSU018) -> Path:
    """Fetch OSU018 with ``apt-get download`` and unpack it; nothing is installed.

    Raises
    ------
    SynthError
        If that cannot be done.
    """
    path = Path(path)
    for tool in ("apt-get", "dpkg"):
        if not shutil.which(tool):
            raise SynthError(f"OSU018 comes as the Debian package {PACKAGE}, and there is no {tool} here: "
                             "give a library with --liberty FILE")
    with tempfile.TemporaryDirectory() as folder:
        why = _download(PACKAGE, folder)
        if why is not None:
            raise SynthError(f"apt-get download {PACKAGE} failed: {why}")
        data = (Path(folder) / _INSIDE).read_bytes()
    with files.lock(path):
        files.write(path, data)
        files.write(_sum(path), hashlib.sha256(data).hexdigest() + "\n")
    return path


def _sum(path):
    """The file that keeps the SHA-256 of what was fetched."""
    return path.with_name(path.name + ".sha256")


def present() -> list[Path]:
    """Paths of the libraries in the folder of :data:`OSU018`, that one first: what was fetched and what a user put
    there.
    """
    others = sorted(path for path in OSU018.parent.glob("*.lib") if path != OSU018)
    return ([OSU018] if OSU018.exists() else []) + others


def default() -> Library | None:
    """OSU018 if it was fetched, else None: then areas are transistor counts of generic gates.

    Raises
    ------
    SynthError
        If the file is not what was fetched.
    """
    if not OSU018.exists():
        return None
    if _sum(OSU018).exists() and _sum(OSU018).read_text().strip() != hashlib.sha256(OSU018.read_bytes()).hexdigest():
        raise SynthError(f"{OSU018}: is not what was fetched; fetch it again: python -m synth fetch")
    return load(OSU018)
