"""The machine of the simulator that a description is built as: its cycles, counted from its parts."""

from hbfp.pods import PodsDesign

from ..perf.pods.interconnect import parse
from ..perf.pods.machine import Machine, Timing

#: Cycles to read a row from a bank and to write one; through converter and adder; through a post-processor.
MEMORY, ADD, ACTIVATE = 2, 2, 5
#: Of the last ones, the converter's.
CONVERT = 1
#: Longer than any chain: all of K, which is the order of golden.matmul.
WHOLE = 1 << 16


def timing(design: PodsDesign) -> Timing:
    """Cycles of a machine beside those in networks: see docs/design/10-pods.md.

    A row takes a cycle into the array and one for each of the groups down a column and along a row, but for the first
    of those.
    """
    core = design.core
    return Timing(MEMORY + core.group_rows + core.group_cols + ADD, ACTIVATE, ACTIVATE - CONVERT,
                  max(core.group_cols + 2, ACTIVATE))


def machine(design: PodsDesign, chain: int = WHOLE) -> Machine:
    """The machine that the simulator schedules for, with chains of at most so many operations along K."""
    core = design.core
    return Machine(design.pods, core.rows, core.rows, parse(design.interconnect), chains=chain, timing=timing(design))
