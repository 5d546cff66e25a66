"""Finds OpenSTA and asks it for the slack of a netlist."""

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from hbfp import entries, files

from .errors import SynthError

#: Where ``python -m synth fetch`` unpacks OpenSTA if Debian has it.
OPENSTA = files.build() / "lib" / "opensta"


def find():
    """OpenSTA's command, or None."""
    return shutil.which("sta") or (str(OPENSTA / "usr" / "bin" / "sta") if entries.intact(OPENSTA) else None)


@cache
def version(command):
    """What a timer calls itself."""
    return subprocess.run([command, "-version"], capture_output=True, text=True).stdout


def worst_slack(top, netlist, library, script):
    """The worst slack in ns that a script reports, of ``netlist.v`` with ``cells.lib`` beside it.

    Raises
    ------
    SynthError
        If it reports none.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copyfile(library.path, place / "cells.lib")
        (place / "netlist.v").write_text(netlist)
        (place / "run.tcl").write_text(script)
        done = subprocess.run([find(), "-no_splash", "-exit", "run.tcl"], cwd=place, capture_output=True, text=True)
    found = re.search(r"worst slack\s+(-?[\d.]+)", done.stdout)
    if not found:
        lines = (done.stdout + done.stderr).splitlines()
        why = next((line for line in lines if "Error" in line), "no slack reported")
        raise SynthError(f"OpenSTA failed on {top}: {why}")
    return float(found[1])
