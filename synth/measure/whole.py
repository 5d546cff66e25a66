"""A whole design on an ECP5: mapped in one piece, placed and routed, and its bitstream."""

import json
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hbfp import entries, files
from hbfp.design import Design
from hbfp.ecp5 import DEVICES

from ..tools import ecp5, nextpnr, yosys
from . import serial
from .area import generate
from .multipliers import multipliers, soft

#: Steps of :func:`build`, for those who watch.
STEPS = ("Yosys: one netlist", "Yosys: LUTs, block RAMs, DSP blocks", "nextpnr: placing and routing", "bitstream")


@dataclass(frozen=True)
class Sources:
    """The Verilog of a design, and what it asks of a placement.

    Attributes
    ----------
    top : str
        Its module.
    files : dict of str to str or bytes
        Name -> what is in it.
    read : str
        How Yosys reads them.
    options : sequence of str
        For nextpnr, beside that of the device.
    constraints : bytes
        LPF, where pins are a board's.
    luts : str
        What Yosys is told of LUTs, :data:`synth.tools.ecp5.NARROW` or nothing.
    chains : dict
        As of :class:`Built`.
    """
    top: str
    files: Mapping[str, str | bytes]
    read: str = "read_verilog -sv unit.v\n"
    options: Sequence[str] = nextpnr.ECP5
    constraints: bytes = b""
    luts: str = ""
    chains: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


def behind_pins(design: Design, placer: Sequence[str] = ()) -> Sources:
    """A core behind six pins, and the options of nextpnr's placer if not its own; OptionError if the generator refuses
    the design.
    """
    text, manifest = generate(design)
    given, kept = serial.chains(manifest.ports)
    return Sources(serial.TOP, {"unit.v": text + serial.wrapper(manifest.top, manifest.ports, manifest.streams)},
                   options=(*nextpnr.ECP5, *placer),
                   chains={"in": [vars(place) for place in given], "out": [vars(place) for place in kept]})


@dataclass
class Built:
    """A design on a device.

    Attributes
    ----------
    device : str
    multipliers : dict
        ``dsp`` and ``luts``: how many multiplications are in DSP blocks, and how many in carry chains.
    memories : dict of str to str
        Name -> ``block``, ``distributed`` or ``flip-flops``: what it became.
    cells : dict of str to int
        How many the mapped netlist has, by type.
    used : dict
        Name -> cells that nextpnr places and that the device has.
    clock, asked : float
        MHz: of the slowest clock by what was asked of it, and that.
    path : list of dict
        The critical path, as :func:`synth.tools.nextpnr.critical` gives it.
    bitstream : Path
    chains : dict
        ``in`` and ``out``: what is where in the chains of :mod:`synth.measure.serial`; empty where pins are a board's.
    seconds : dict
        ``coarse``, ``mapped`` and ``placed``: wall time of each step when it ran.
    """
    device: str
    multipliers: dict[str, int]
    memories: dict[str, str]
    cells: dict[str, int]
    used: dict[str, tuple[int, int]]
    clock: float
    asked: float
    path: list[dict[str, Any]]
    bitstream: Path
    chains: Mapping[str, list[dict[str, Any]]]
    seconds: dict[str, float]


def memories(log: str) -> dict[str, str]:
    """Name -> what it became, of each memory in the log of a mapping."""
    kinds = {"PDPW16KD": "block", "DP16KD": "block", "TRELLIS_DPR16X4": "distributed"}
    lines = re.findall(r"^mapping memory (\S+) via \$__(\w+?)_$", log, re.MULTILINE)
    found = {name: kinds[kind] for name, kind in lines}
    found |= dict.fromkeys(re.findall(r"^using FF mapping for memory (\S+)$", log, re.MULTILINE), "flip-flops")
    return {name.removeprefix(f"{serial.TOP}.dut."): kind for name, kind in found.items()}


@dataclass(frozen=True)
class Mapped:
    """A design as cells of a family.

    Attributes
    ----------
    flat, netlist : Path
        Cache entries: of the flattened design, and of what Yosys said; of an ECP5 ``mapped.json``, too.
    key : str
        What stands for the netlist.
    multipliers : dict of str to int
        As of :class:`Built`.
    """
    flat: Path
    netlist: Path
    key: str
    multipliers: dict[str, int]

    @property
    def cells(self) -> dict[str, int]:
        """How many cells there are, by type."""
        return json.loads((self.netlist / "stat.json").read_text())["design"]["num_cells_by_type"]


@dataclass(frozen=True)
class Way:
    """How a design becomes cells of a family: what Yosys does, and with which multiplications.

    Attributes
    ----------
    coarse, mapped : str
        Scripts that flatten a design, and map it.
    sides : tuple of int
        Bits of the operands of a DSP block.
    soft : str
        Verilog of multipliers that are no DSP blocks, where the script reads it.
    open_ends : bool
        Whether carries that nobody reads are taken off the netlist.
    """
    coarse: str
    mapped: str
    sides: tuple[int, int]
    soft: str = ""
    open_ends: bool = False


ECP5 = Way(ecp5.COARSE, ecp5.MAPPED, ecp5.DSP_BITS, ecp5.SOFT, open_ends=True)


def map_cells(sources: Sources, budget: int, progress: Callable[[int], object] = lambda done: None,
              way: Way = ECP5) -> Mapped:
    """Map a design to the cells of a family; :func:`build` says more."""
    top = sources.top
    coarse, mapped = (script.format(read=sources.read, top=top, luts=sources.luts)
                      for script in (way.coarse, way.mapped))

    def flatten(folder):
        for name, data in sources.files.items():
            (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        _timed("coarse", folder, lambda: yosys.run(coarse, folder))
    key = files.key(yosys.find()[1], coarse, *sources.files.values())
    flat = entries.entry(files.cache("synth") / f"coarse-{key}", flatten)
    progress(1)
    found = multipliers((flat / "muls.il").read_text())
    chosen = soft(found, budget, way.sides)

    def synthesise(folder):
        shutil.copyfile(flat / "coarse.il", folder / "coarse.il")
        if way.soft:
            (folder / "soft.v").write_text(way.soft)
        (folder / "soft.txt").write_text("".join(f"{top}/{each.cell}\n" for each in chosen))
        _timed("mapped", folder, lambda: yosys.run(mapped, folder))
        (folder / "coarse.il").unlink()
        if way.open_ends:
            netlist = json.loads((folder / "mapped.json").read_text())
            ecp5.open_ends(netlist["modules"][top])
            (folder / "mapped.json").write_text(json.dumps(netlist))
    key = files.key(key, mapped, way.soft, way.open_ends, *(each.cell for each in chosen))
    netlist = entries.entry(files.cache("synth") / f"whole-{key}", synthesise)
    progress(2)
    return Mapped(flat, netlist, key, {"dsp": len(found) - len(chosen), "luts": len(chosen)})


def pack_cells(mapped: Mapped, name: str) -> dict[str, tuple[int, int]]:
    """Name -> cells that a netlist takes of a device and that it has; :func:`build` says more, but nothing is placed.

    Raises
    ------
    SynthError
        If nextpnr fails.
    """
    device, tools = DEVICES[name], nextpnr.find("ecp5")
    assert tools is not None, "no nextpnr"

    def pack(folder):
        shutil.copyfile(mapped.netlist / "mapped.json", folder / "mapped.json")
        nextpnr.pack_cells(folder, tools[0], [*nextpnr.ECP5, device.option])
        (folder / "mapped.json").unlink()
    key = files.key(*tools, mapped.key, *nextpnr.ECP5, device.option)
    packed = entries.entry(files.cache("synth") / f"packed-{key}", pack)
    return nextpnr.utilisation((packed / "nextpnr.log").read_text())


def build(sources: Sources, name: str, budget: int, seed: int, limit: int, progress: Callable[[int], object]) -> Built:
    """Map, place and route a design, and make its bitstream; what is in the cache is taken from there.

    Parameters
    ----------
    sources : Sources
    name : str
        One of :data:`hbfp.ecp5.DEVICES`.
    budget : int
        DSP blocks that multipliers may take.
    seed : int
        Seed of the placement.
    limit : int
        Seconds for nextpnr.
    progress : callable
        Called with the number of :data:`STEPS` that are done.

    Raises
    ------
    SynthError
        If a tool fails, or the design does not fit; the message says what it uses and what the device has.
    """
    device, tools = DEVICES[name], nextpnr.find("ecp5")
    assert tools is not None, "no nextpnr"
    mapped = map_cells(sources, budget, progress)
    options = [*sources.options, device.option]
    pins = [sources.constraints] if sources.constraints else []

    def place(folder):
        shutil.copyfile(mapped.netlist / "mapped.json", folder / "mapped.json")
        for text in pins:
            (folder / "pins.lpf").write_bytes(text)
        words = [*options, "--lpf", "pins.lpf"] if pins else options
        _timed("placed", folder, lambda: nextpnr.place(folder, tools[0], words, seed, limit))
        (folder / "mapped.json").unlink()
        progress(3)
        nextpnr.pack(folder)
    key = files.key(*tools, mapped.key, *options, seed, *pins)
    placed = entries.entry(files.cache("synth") / f"placed-{key}", place)
    progress(4)
    report = json.loads((placed / "report.json").read_text())
    return Built(
        name, mapped.multipliers, memories((mapped.netlist / "yosys.log").read_text()), mapped.cells,
        {kind: (row["used"], row["available"]) for kind, row in report["utilization"].items() if row["used"]},
        nextpnr.fmax(report), round(report["fmax"][nextpnr.slowest(report)]["constraint"], 1), nextpnr.critical(report),
        placed / nextpnr.BITSTREAM, sources.chains,
        {step: float((folder / f"{step}.seconds").read_text()) for step, folder in
         (("coarse", mapped.flat), ("mapped", mapped.netlist), ("placed", placed))})


def _timed(step, folder, work):
    """Do it and write how long it took."""
    begin = time.monotonic()
    work()
    (folder / f"{step}.seconds").write_text(f"{time.monotonic() - begin:.0f}")
