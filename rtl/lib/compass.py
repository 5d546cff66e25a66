"""Chains of cells from west to east: what travels along them has one signature, ``west`` of a cell and its ``east``."""

from amaranth.lib.wiring import connect

from .skew import delay


def west_to_east(m, west, cells):
    """Wire ``west`` to the first cell and each cell to the next; the last cell's east."""
    for cell in cells:
        connect(m, west, cell.west)
        west = cell.east
    return west


def pass_east(m, west, east, reset_less=()):
    """``east`` is ``west`` a cycle later; the registers of members in ``reset_less`` keep their content on reset."""
    outputs = {path: value for path, _, value in east.signature.flatten(east)}
    for path, _, value in west.signature.flatten(west):
        name = "_".join(map(str, path))
        m.d.comb += outputs[path].eq(delay(m, value, 1, f"{name}_east", reset_less=path[0] in reset_less))
