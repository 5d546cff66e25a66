"""What a design takes of a device, and its critical path."""

import re
from itertools import groupby

from rich.table import Table

from ..measure.whole import Built

#: nextpnr's name of a kind of cell -> that of the table. A slice's two LUTs that write distributed RAM are counted as
#: RAMW, those that hold it as COMB.
NAMES = {"TRELLIS_COMB": "LUTs, carries and distributed RAM", "TRELLIS_FF": "flip-flops",
         "TRELLIS_RAMW": "write ports of distributed RAM", "MULT18X18D": "DSP blocks (18 x 18)",
         "DP16KD": "block RAMs (18 kbit)"}
#: Mapped cells that make up the first of these.
PARTS = {"LUT4": "LUTs", "CCU2C": "carry cells, two LUTs each", "TRELLIS_DPR16X4": "distributed RAMs, 16 x 4"}
#: What the mapping adds to the name of the register or wire that a cell was made for.
_MADE = re.compile(r"_(?:TRELLIS_FF|LUT4|CCU2C|PFUMX|L6MUX21|DP16KD|MULT18X18D|TRELLIS_DPR16X4)_.*|\$.*"
                   r"|(?<=[^.])\[\d+\]$")


def table(name: str, built: Built) -> Table:
    """How many cells a design of this name uses and the device has, by kind of cell."""
    given, kept = (sum(place["width"] for place in built.chains.get(side, ())) for side in ("in", "out"))
    behind = f"\nflip-flops of the chains behind the pins, counted, too: {given + 2 * kept:,}" if built.chains else ""
    counts, kinds = built.multipliers, list(built.memories.values())
    result = Table(title=f"{name}\n{built.device}: {built.clock} MHz", title_justify="left",
                   caption_justify="left", caption=(
                       f"multiplications: {counts['dsp']} in DSP blocks, {counts['luts']} in carry chains\n"
                       f"memories: {kinds.count('block')} in block RAMs, {kinds.count('distributed')} in distributed "
                       f"RAM, {kinds.count('flip-flops')} in flip-flops{behind}"))
    for head, side in (("", "left"), ("used", "right"), ("there", "right"), ("", "right")):
        result.add_column(head, justify=side)
    for kind, name in NAMES.items():
        used, there = built.used.get(kind, (0, 0))
        if there:
            result.add_row(name, f"{used:,}", f"{there:,}", f"{used / there:.1%}")
    result.add_section()
    for kind, name in PARTS.items():
        result.add_row(name, f"{built.cells.get(kind, 0):,}", "", "")
    return result


def stem(name: str) -> str:
    """The register or wire for which a cell or net was made; nothing if the mapping named it."""
    return _MADE.sub("", name)


def path(built: Built) -> str:
    """The critical path: a line for each register or wire that it passes, with the cells and wires up to it."""
    steps, named, last = built.path, [], ""
    for step in steps:
        last = stem(step["cell"]) or last
        named.append((last, step))
    lines = []
    for name, group in groupby(named, key=lambda pair: pair[0]):
        parts = [step for _, step in group]
        routing = sum(step["ns"] for step in parts if step["what"] == "routing")
        levels = sum(step["what"] == "logic" and step["ns"] > 0 for step in parts)
        lines.append(f"{sum(step['ns'] for step in parts):6.2f}  {routing:6.2f}  {levels:4}  {name}")
    return "\n".join([f"critical path, {sum(step['ns'] for step in steps):.2f} ns: ns, of these wires, cells, up to",
                      *lines])
