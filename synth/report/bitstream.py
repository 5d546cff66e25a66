"""What a design takes of a device, and its critical path."""

from rich.table import Table

#: Of nextpnr -> in our words. A slice's two LUTs that write distributed RAM are counted as RAMW, those that hold it
#: as COMB.
NAMES = {"TRELLIS_COMB": "LUTs, carries and distributed RAM", "TRELLIS_FF": "flip-flops",
         "TRELLIS_RAMW": "write ports of distributed RAM", "MULT18X18D": "DSP blocks (18 x 18)",
         "DP16KD": "block RAMs (18 kbit)"}
#: Mapped cells that make up the first of these.
PARTS = {"LUT4": "LUTs", "CCU2C": "carry cells, two LUTs each", "TRELLIS_DPR16X4": "distributed RAMs, 16 x 4"}
#: Steps of a path that a table shows from either end.
_ENDS = 12


def table(design, built):
    """Used and there, by kind of cell."""
    result = Table(title=f"{design.name} on {built.device}: {built.clock} MHz", title_justify="left",
                   caption_justify="left", caption=(
                       f"multiplications: {built.multipliers['dsp']} in DSP blocks, {built.multipliers['luts']} in "
                       "carry chains; the chains of registers behind the pins are counted, too"))
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


def path(built):
    """The critical path, a line for each step."""
    steps = built.path
    lines = [f"{step['ns']:6.2f}  {step['what']:8} {step['net'] or step['cell']}" for step in steps]
    if len(lines) > 2 * _ENDS:
        lines = [*lines[:_ENDS], f"        ... {len(lines) - 2 * _ENDS} more ...", *lines[-_ENDS:]]
    return "\n".join([f"critical path, {sum(step['ns'] for step in steps):.2f} ns:", *lines])
