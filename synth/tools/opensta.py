"""Finds OpenSTA and asks it for the slack of a netlist."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hbfp import entries, files

from .errors import SynthError

#: Where ``python -m synth fetch`` unpacks OpenSTA if Debian has it.
OPENSTA = files.build() / "lib" / "opensta"


def find() -> str | None:
    """OpenSTA's command, or None."""
    return shutil.which("sta") or (str(OPENSTA / "usr" / "bin" / "sta") if entries.intact(OPENSTA) else None)


#: A pin in a report: its time, and its name.
_PIN = re.compile(r"^ +-?[\d.]+ +(-?[\d.]+) [\^v] (\S+) \(", re.MULTILINE)


@cache
def version(command: str) -> str:
    """What a timer calls itself."""
    return subprocess.run([command, "-version"], capture_output=True, text=True).stdout


def longest_path(top: str, files: Mapping[str, str | Path], script: str
                 ) -> tuple[float, str, str, list[tuple[str, float]]]:
    """The longest path that a script reports, of the files (name -> text or path) that it reads.

    Returns
    -------
    (float, str, str, list of (str, float))
        The slack in ns; the net that the path starts from, and the one that it ends at, or that the register at its end
        drives; the pins on the path, each with its time in ns.

    Raises
    ------
    SynthError
        If it reports none.
    """
    command = find()
    assert command is not None, "no OpenSTA"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, content in files.items():
            if isinstance(content, Path):
                shutil.copyfile(content, place / name)
            else:
                (place / name).write_text(content)
        (place / "run.tcl").write_text(script)
        done = subprocess.run([command, "-no_splash", "-exit", "run.tcl"], cwd=place, capture_output=True, text=True)
    found = re.search(r"^ *(-?[\d.]+) +slack \(", done.stdout, re.MULTILINE)
    if not found:
        lines = (done.stdout + done.stderr).splitlines()
        why = next((line for line in lines if "Error" in line), "no slack reported")
        raise SynthError(f"OpenSTA failed on {top}: {why}")
    pins = [(pin, float(time)) for time, pin in _PIN.findall(done.stdout)]
    nets = re.findall(r"^ +\d+ +(\S+) \(net\)", done.stdout, re.MULTILINE)
    ends = re.search(r"^register (\S+)", done.stdout, re.MULTILINE)
    last = pins[-1][0] if pins else ""
    return float(found[1]), (nets or [last])[0], ends[1] if ends else last, pins
