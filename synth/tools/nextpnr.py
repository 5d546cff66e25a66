"""Finds nextpnr and asks it for the clock of a mapped design."""

import json
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

from hbfp import yowasp

from .errors import SynthError

#: Family -> device that is placed on, and what makes the netlist and the call fit it.
DEVICES = {
    "ecp5": ("LFE5U-85F", ["--85k", "--package", "CABGA756", "--lpf-allow-unconstrained"]),
    "ice40": ("iCE40 UP5K", ["--up5k", "--package", "sg48", "--pcf-allow-unconstrained"]),
    "ice40-logic": ("iCE40 HX8K", ["--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"]),
}
#: Of the placement: one number, so that a figure can be had again.
SEED = 1
_TARGET = 400    # MHz; more than any of these reaches


def device(recipe):
    """Name and options of the device of a recipe; None where nextpnr has none."""
    return DEVICES.get(recipe) or DEVICES.get(recipe.removesuffix("-logic"))


@cache
def find(family):
    """nextpnr of a family and its version: on PATH, else the wheel's; None without."""
    scripts = Path(sysconfig.get_path("scripts"))
    for command in (shutil.which(f"nextpnr-{family}"), str(scripts / f"yowasp-nextpnr-{family}")):
        if command and Path(command).exists():
            yowasp.prepare(command)
            done = subprocess.run([command, "--version"], capture_output=True, text=True)
            found = re.search(r"Version (?:nextpnr-)?([^)\s]+)", done.stdout + done.stderr)
            if found:
                return command, found[1]
    return None


def clock(folder, command, options, limit):
    """The clock in MHz that nextpnr reports for ``mapped.json`` in a folder, or in words why there is none.

    Raises
    ------
    SynthError
        If it fails for another reason than size or time.
    """
    words = [command, "--json", "mapped.json", "--report", "report.json", "--log", "nextpnr.log", "--quiet",
             "--timing-allow-fail", "--freq", str(_TARGET), "--seed", str(SEED), *options]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"> {limit} s"
    report = folder / "report.json"
    if done.returncode or not report.exists():
        said = done.stderr + done.stdout
        if re.search(r"nable to place|no BELs remaining|not enough|too many|Unable to find legal", said):
            return "does not fit"
        why = next((line for line in said.splitlines() if "ERROR" in line), f"exit status {done.returncode}")
        raise SynthError(f"nextpnr failed: {why.strip()} (log: {folder / 'nextpnr.log'})")
    return round(min(entry["achieved"] for entry in json.loads(report.read_text())["fmax"].values()), 1)
