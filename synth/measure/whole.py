"""A whole core on an ECP5: mapped in one piece, placed and routed behind six pins, and its bitstream."""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hbfp import entries, files
from hbfp.design import Design
from hbfp.manifest import Manifest

from ..tools import ecp5, nextpnr, yosys
from . import serial
from .area import generate

#: Steps of :func:`build`, for those who watch.
STEPS = ("Yosys: one netlist", "Yosys: LUTs, block RAMs, DSP blocks", "nextpnr: placing and routing", "bitstream")


@dataclass(frozen=True)
class Multiplier:
    """A multiplication of the netlist: its cell, and the bits of its operands."""
    cell: str
    bits: tuple[int, int]

    def blocks(self, sides: tuple[int, int] = ecp5.DSP_BITS) -> int:
        """DSP blocks that it takes, whose operands have so many bits."""
        return min(-(-a // sides[0]) * -(-b // sides[1]) for a, b in (self.bits, self.bits[::-1]))


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
    clock : float
        MHz.
    path : list of dict
        The critical path, as :func:`synth.tools.nextpnr.critical` gives it.
    bitstream : Path
    chains : dict
        ``in`` and ``out``: what is where in the chains of :mod:`synth.measure.serial`.
    seconds : dict
        ``coarse``, ``mapped`` and ``placed``: wall time of each step when it ran.
    """
    device: str
    multipliers: dict[str, int]
    memories: dict[str, str]
    cells: dict[str, int]
    used: dict[str, tuple[int, int]]
    clock: float
    path: list[dict[str, Any]]
    bitstream: Path
    chains: dict[str, list[dict[str, Any]]]
    seconds: dict[str, float]


def multipliers(text: str) -> list[Multiplier]:
    """The :class:`Multiplier` of each ``$mul`` in RTLIL, as Yosys' ``dump`` writes it."""
    found = []
    for cell, body in re.findall(r"^ *cell \$mul (\S+)\n(.*?)^ *end$", text, re.MULTILINE | re.DOTALL):
        widths = dict(re.findall(r"parameter (?:signed )?\\([AB])_WIDTH (\d+)", body))
        found.append(Multiplier(cell, (int(widths["A"]), int(widths["B"]))))
    return found


def memories(log: str) -> dict[str, str]:
    """Name -> what it became, of each memory in the log of a mapping."""
    kinds = {"PDPW16KD": "block", "DP16KD": "block", "TRELLIS_DPR16X4": "distributed"}
    lines = re.findall(r"^mapping memory (\S+) via \$__(\w+?)_$", log, re.MULTILINE)
    found = {name: kinds[kind] for name, kind in lines}
    found |= dict.fromkeys(re.findall(r"^using FF mapping for memory (\S+)$", log, re.MULTILINE), "flip-flops")
    return {name.removeprefix(f"{serial.TOP}.dut."): kind for name, kind in found.items()}


def soft(found: Iterable[Multiplier], budget: int, sides: tuple[int, int] = ecp5.DSP_BITS) -> list[Multiplier]:
    """The multipliers that take no DSP blocks where there are ``budget``: the narrowest, the last ones of equals."""
    result, left = [], budget
    for each in sorted(found, key=lambda one: (-one.bits[0] * one.bits[1], _natural(one.cell))):
        left -= each.blocks(sides)
        if left < 0:
            result.append(each)
            left += each.blocks(sides)
    return result


def _natural(name):
    """A key that sorts numbers in names by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


@dataclass(frozen=True)
class Mapped:
    """A design as cells of a family.

    Attributes
    ----------
    flat, netlist : Path
        Cache entries: of the flattened design, and of what Yosys said; of an ECP5 ``mapped.json``, too.
    key : str
        What stands for the netlist.
    manifest : Manifest
        Of the design that stands behind the pins.
    multipliers : dict of str to int
        As of :class:`Built`.
    """
    flat: Path
    netlist: Path
    key: str
    manifest: Manifest
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


def map_cells(design: Design, budget: int, progress: Callable[[int], object] = lambda done: None,
              way: Way = ECP5) -> Mapped:
    """Map a design behind six pins to the cells of a family; :func:`build` says more."""
    text, manifest = generate(design)
    text += serial.wrapper(manifest.top, manifest.ports, manifest.streams)
    coarse, mapped = (script.format(top=serial.TOP) for script in (way.coarse, way.mapped))

    def flatten(folder):
        (folder / "unit.v").write_text(text)
        _timed("coarse", folder, lambda: yosys.run(coarse, folder))
    key = files.key(yosys.find()[1], coarse, text)
    flat = entries.entry(files.cache("synth") / f"coarse-{key}", flatten)
    progress(1)
    found = multipliers((flat / "muls.il").read_text())
    chosen = soft(found, budget, way.sides)

    def synthesise(folder):
        shutil.copyfile(flat / "coarse.il", folder / "coarse.il")
        if way.soft:
            (folder / "soft.v").write_text(way.soft)
        (folder / "soft.txt").write_text("".join(f"{serial.TOP}/{each.cell}\n" for each in chosen))
        _timed("mapped", folder, lambda: yosys.run(mapped, folder))
        (folder / "coarse.il").unlink()
        if way.open_ends:
            netlist = json.loads((folder / "mapped.json").read_text())
            ecp5.open_ends(netlist["modules"][serial.TOP])
            (folder / "mapped.json").write_text(json.dumps(netlist))
    key = files.key(key, mapped, way.soft, way.open_ends, *(each.cell for each in chosen))
    netlist = entries.entry(files.cache("synth") / f"whole-{key}", synthesise)
    progress(2)
    return Mapped(flat, netlist, key, manifest, {"dsp": len(found) - len(chosen), "luts": len(chosen)})


def pack_cells(mapped: Mapped, name: str) -> dict[str, tuple[int, int]]:
    """Name -> cells that a netlist takes of a device and that it has; :func:`build` says more, but nothing is placed.

    Raises
    ------
    SynthError
        If nextpnr fails.
    """
    device, tools = ecp5.DEVICES[name], nextpnr.find("ecp5")
    assert tools is not None, "no nextpnr"

    def pack(folder):
        shutil.copyfile(mapped.netlist / "mapped.json", folder / "mapped.json")
        nextpnr.pack_cells(folder, tools[0], [*nextpnr.ECP5, device.option])
        (folder / "mapped.json").unlink()
    key = files.key(*tools, mapped.key, *nextpnr.ECP5, device.option)
    packed = entries.entry(files.cache("synth") / f"packed-{key}", pack)
    return nextpnr.utilisation((packed / "nextpnr.log").read_text())


def build(design: Design, name: str, budget: int, seed: int, limit: int, progress: Callable[[int], object]) -> Built:
    """Map, place and route a design, and make its bitstream; what is in the cache is taken from there.

    Parameters
    ----------
    design : Design
    name : str
        One of :data:`synth.tools.ecp5.DEVICES`.
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
    OptionError
        If the generator refuses the design.
    SynthError
        If a tool fails, or the design does not fit; the message says what it uses and what the device has.
    """
    device, tools = ecp5.DEVICES[name], nextpnr.find("ecp5")
    assert tools is not None, "no nextpnr"
    mapped = map_cells(design, budget, progress)

    def place(folder):
        shutil.copyfile(mapped.netlist / "mapped.json", folder / "mapped.json")
        _timed("placed", folder, lambda: nextpnr.place(folder, tools[0], [*nextpnr.ECP5, device.option], seed, limit))
        (folder / "mapped.json").unlink()
        progress(3)
        nextpnr.pack(folder)
    key = files.key(*tools, mapped.key, *nextpnr.ECP5, device.option, seed)
    placed = entries.entry(files.cache("synth") / f"placed-{key}", place)
    progress(4)
    report = json.loads((placed / "report.json").read_text())
    given, kept = serial.chains(mapped.manifest.ports)
    return Built(
        name, mapped.multipliers, memories((mapped.netlist / "yosys.log").read_text()), mapped.cells,
        {kind: (row["used"], row["available"]) for kind, row in report["utilization"].items() if row["used"]},
        nextpnr.fmax(report), nextpnr.critical(report),
        placed / nextpnr.BITSTREAM, {"in": [vars(place) for place in given], "out": [vars(place) for place in kept]},
        {step: float((folder / f"{step}.seconds").read_text()) for step, folder in
         (("coarse", mapped.flat), ("mapped", mapped.netlist), ("placed", placed))})


def _timed(step, folder, work):
    """Do it and write how long it took."""
    begin = time.monotonic()
    work()
    (folder / f"{step}.seconds").write_text(f"{time.monotonic() - begin:.0f}")
