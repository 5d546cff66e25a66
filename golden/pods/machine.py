"""The machine of the simulator that a description is built as: its cycles, counted from its parts."""

from hbfp.pods import PodsDesign

from ..perf.pods.interconnect import parse
from ..perf.pods.machine import Machine, Timing

#: Cycles to read a row from a bank and to write one; through converter and adder; through a post-processor.
MEMORY, ADD, ACTIVATE = 2, 2, 5
#: Of the last ones, the converter's.
CONVERT = 1


def timing(design: PodsDesign) -> Timing:
    """Cycles of a machine beside those in networks: see docs/design/10-pods.md.

    A row takes a cycle into the array and one for each of the groups down a column and along a row, but for the first
    of those.
    """
    core = design.core
    return Timing(MEMORY + core.group_rows + core.group_cols + ADD, ACTIVATE, ACTIVATE - CONVERT,
                  core.group_cols + 2)


def machine(design: PodsDesign) -> Machine:
    """The machine that the simulator schedules for."""
    core = design.core
    return Machine(design.pods, core.rows, core.rows, parse(design.interconnect), chains=True, timing=timing(design))
