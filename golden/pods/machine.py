"""The machine that the simulator schedules for a design: its cycles, counted from its parts."""

from hbfp.pods import PodsDesign

from ..perf.pods.interconnect import parse
from ..perf.pods.machine import Machine, Timing

#: Cycles of a row from and to a bank; through an array's converter and adder; through a post-processor.
MEMORY, ADD, ACTIVATE = 2, 2, 5
#: Cycles in the converter to tiles of X, which are some of a post-processor's.
CONVERT = 1
#: A chain longer than any K: sums go on along all of K, as in golden.matmul.
WHOLE = 1 << 16


def timing(design: PodsDesign) -> Timing:
    """Cycles of a machine, without those in its networks; docs/design/10-pods.md derives them.

    A row takes one cycle into the array, one for each group down a column, and one for each group along a row after the
    first.
    """
    core = design.core
    return Timing(MEMORY + core.group_rows + core.group_cols + ADD, ACTIVATE, ACTIVATE - CONVERT,
                  max(core.group_cols + 2, ACTIVATE))


def machine(design: PodsDesign, chain: int = WHOLE) -> Machine:
    """The machine that the simulator schedules for, with chains of at most ``chain`` operations along K."""
    core = design.core
    return Machine(design.pods, core.rows, core.rows, parse(design.interconnect), chains=chain, timing=timing(design))
